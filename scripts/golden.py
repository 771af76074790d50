"""``python -m scripts.golden [--quick] [--record] [--only GROUP]``: what every command answers, held against recorded answers.

It knows the product by its command line alone, so that the product may be rebuilt behind it. Answers to inputs of our own
are committed in ``tests/golden/answers``; those that are long, slow or about files of ``../shared`` are kept in ``--store``,
outside git. After a wanted change ``--record`` writes the answers anew and says which of them changed, and copies the help of
every command into its page in ``docs/commands``. The inputs are listed by ``scripts/golden_inputs.py``.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.golden_inputs import GOLDEN, ROOT, SHARED, Input, of_shared, ours

ANSWERS = GOLDEN / "answers"
PAGES = ROOT / "docs" / "commands"
SHOWN = 20
"""How many differences are printed in full, and of each of them how many lines below."""
LINES = 40
_NEW, _GONE, _WORDS, _CHANGED = "new", "gone", "reworded", "changed"


def run(arguments: Sequence[str], stdin: str | None) -> tuple[int | str, str, str]:
    """Run ``compat ARGUMENTS`` in this process; returns its exit code, stdout and stderr. The only entry to the product."""
    from compat.cli import main

    written = io.BytesIO(), io.BytesIO()
    out, err = (io.TextIOWrapper(each, encoding="utf-8", newline="") for each in written)
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO((stdin or "").encode()), encoding="utf-8")
    code: int | str
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(list(arguments))
    except SystemExit as end:
        code = end.code if end.code is not None else 0
    except Exception as problem:  # a crash is recorded as an answer, so that it is noticed
        code = "".join(traceback.format_exception_only(type(problem), problem)).strip().replace("\n", " ")
    finally:
        sys.stdin = before
    out.flush()
    err.flush()
    texts = [each.getvalue().decode("utf-8", "replace") for each in written]
    return code, texts[0], texts[1]


@contextlib.contextmanager
def sandbox() -> Iterator[Path]:
    """Create a temporary empty folder, and hide this machine's settings and caches while it exists."""
    environment, where = dict(os.environ), os.getcwd()
    with tempfile.TemporaryDirectory(prefix="compat-golden-") as name:
        folder = Path(name).resolve()
        home = folder / "home"
        home.mkdir()
        path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"])
        os.environ.clear()
        os.environ.update(
            PATH=path, HOME=str(home), LANG="C.UTF-8", COLUMNS="100", PIP_RETRIES="0", PYTHONPATH=str(ROOT),
            COMPAT_CACHE_DIR=str(folder / "cache"), UV_CACHE_DIR=str(folder / "uv-cache"), UV_PYTHON_DOWNLOADS="never",
        )  # fmt: skip
        try:
            yield folder
        finally:
            os.chdir(where)
            os.environ.clear()
            os.environ.update(environment)


def answers(inputs: Sequence[Input], folder: Path) -> dict[str, str]:
    """Return the answers to the inputs in recorded form, by name."""
    found: dict[str, str] = {}
    for number, each in enumerate(inputs):
        work = folder / "work" / str(number)
        if each.in_place and each.folder is not None:
            found[each.name] = _answer(each, each.folder, {})
            continue
        if each.folder is not None:
            shutil.copytree(each.folder, work, ignore=shutil.ignore_patterns("commands.txt"))
        work.mkdir(parents=True, exist_ok=True)
        for name, content in each.files.items():
            (work / name).write_bytes(content)
        with _indexes(work) as places:
            found[each.name] = _answer(each, work, places)
        shutil.rmtree(work)
    return found


@contextlib.contextmanager
def _indexes(work: Path) -> Iterator[dict[str, str]]:
    """Serve the local package indexes that ``index.json`` lists, by their names there."""
    path = work / "index.json"
    with contextlib.ExitStack() as stack:
        places: dict[str, str] = {}
        if path.is_file():
            from tests.index.server import IndexServer

            for name, served in json.loads(path.read_text(encoding="utf-8")).items():
                server = stack.enter_context(IndexServer(served["packages"], root=served.get("root", "simple")))
                places[name] = server.url
            path.unlink()
        yield places


def _answer(each: Input, work: Path, places: Mapping[str, str]) -> str:
    words = list(each.words)
    for name, url in places.items():
        words = [word.replace(f"{{{name}}}", url) for word in words]
        words = [word.replace(f"{{{name}-host}}", url.rpartition("/")[0]) for word in words]
    before = {} if each.in_place else _contents(work)
    os.chdir(work)
    code, out, err = run(words, each.stdin)
    if each.digest:
        return f"exit {code}\n{_essentials(out)}{_marked('!', _normal(err, work))}"
    changed = {} if each.in_place else {k: text for k, text in _contents(work).items() if before.get(k) != text}
    return "".join([
        f"exit {code}\n", _marked("|", _normal(out, work)), _marked("!", _normal(err, work)),
        *(f"written {name}\n{_marked('>', _normal(text, work))}" for name, text in changed.items()),
    ])  # fmt: skip


def _contents(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8", errors="replace") for path in files}


def _normal(text: str, work: Path) -> str:
    """Normalize text that differs between machines and runs: folders, ports, the version of compat."""
    for place, name in ((str(work), "<here>"), (str(SHARED), "<shared>"), (str(ROOT), "<tree>"), (sys.executable, "<python>")):
        text = text.replace(place, name)
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:<port>", text)
    text = re.sub(r"(?m)(^|Made by )compat \d+\.\d+\.\d+[^.\s]*(?=$|\.)", r"\1compat <version>", text)
    text = re.sub(r"is not Python \d+\.\d+", "is not Python <version>", text)
    return re.sub(r'("(?:semanticV|v)ersion": ")\d+\.\d+\.\d+[^"]*(",?\s+"(?:informationUri|rules)")', r"\1<version>\2", text)


def _marked(mark: str, text: str) -> str:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    elif text:
        lines[-1] += "\\"  # no trailing newline
    return "".join(f"{mark} {line}".rstrip(" ") + "\n" for line in lines)


def _essentials(out: str) -> str:
    """Return a report as one line per finding, with digests of its data and of its wording."""
    try:
        report = json.loads(out)
    except ValueError:
        return _marked("|", out)
    lines = [f"data {_digest(_without_words(report))} words {_digest(report)}\n"]
    for each in report["findings"]:
        missing = f" ({', '.join(each['missing'])})" if each.get("missing") else ""
        lines.append(f"| {each['verdict']} {each['severity']} {each['rule']}{missing}\n")
        lines += [f"|   {fix['kind']}: {fix['command'] or fix.get('spec') or ''}".rstrip() + "\n" for fix in each["fixes"]]
    return "".join(lines)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:8]


def _without_words(value: Any) -> Any:
    """Return the report without its prose."""
    if isinstance(value, dict):
        words = ("title", "why", "here", "text", "notes", "evidence")
        return {key: _without_words(each) for key, each in value.items() if key not in words}
    return [_without_words(each) for each in value] if isinstance(value, list) else value


# Recorded answers and their differences


def read(path: Path) -> dict[str, str]:
    """Return the recorded answers of a group; none if the file does not exist."""
    if not path.is_file():
        return {}
    parts = re.split(r"(?m)^=== (.*)\n", path.read_text(encoding="utf-8"))[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def write(path: Path, recorded: Mapping[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"=== {name}\n{text}" for name, text in recorded.items()), encoding="utf-8")


def write_help() -> list[str]:
    """Copy the help of every command into its page; returns the names of the pages that changed."""
    changed = []
    for page in sorted(PAGES.glob("*.md")):
        before = page.read_text(encoding="utf-8")
        shown = run((page.stem, "--help"), None)[1]
        now = re.sub(r"(?s)(?<=```\n)usage: .*?(?=```)", lambda _: shown, before)  # noqa: B023
        if now != before:
            page.write_text(now, encoding="utf-8")
            changed.append(page.name)
    return changed


@dataclass(frozen=True)
class Difference:
    group: str
    name: str
    kind: str
    lines: tuple[str, ...]


def differences(group: str, recorded: Mapping[str, str], now: Mapping[str, str]) -> list[Difference]:
    """Compare the current answers with the recorded ones, in the order of the inputs."""
    found = []
    for name in [*now, *(name for name in recorded if name not in now)]:
        old, new = recorded.get(name, ""), now.get(name, "")
        if old != new:
            kind = _NEW if name not in recorded else _GONE if name not in now else _WORDS if _only_words(old, new) else _CHANGED
            lines = difflib.unified_diff(old.splitlines(), new.splitlines(), "recorded", "now", lineterm="", n=2)
            found.append(Difference(group, name, kind, tuple(lines)[2:]))
    return found


def _only_words(old: str, new: str) -> bool:
    """Return whether two digests differ only in wording."""
    return re.sub(r"(?m) words \w+$", "", old) == re.sub(r"(?m) words \w+$", "", new)


def printed(found: Sequence[Difference], shown: int) -> Iterator[str]:
    """Yield lines describing the differences, truncated to a readable size, and a count of reworded digests."""
    detailed = [each for each in found if each.kind != _WORDS]
    for each in detailed[:shown]:
        yield f"{each.kind} {each.group}: {each.name}"
        if each.kind == _CHANGED:
            yield from (f"    {line[:240]}" for line in each.lines[:LINES])
            if len(each.lines) > LINES:
                yield f"    … {len(each.lines) - LINES} more lines"
    if len(detailed) > shown:
        yield f"… {len(detailed) - shown} more"
    if reworded := [each for each in found if each.kind == _WORDS]:
        yield f"reworded: {len(reworded)} examples of rules, such as {reworded[0].name[:120]}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.golden", description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="only what is committed")
    parser.add_argument("--record", action="store_true", help="write the answers of this tree, and print what changed")
    parser.add_argument("--only", metavar="GROUP", action="append", help="these groups, such as 'files' or 'examples'")
    parser.add_argument("--show", metavar="N", type=int, default=SHOWN, help="print so many differences (default: %(default)s)")
    parser.add_argument(
        "--store", "--shared-store", metavar="DIR", type=Path,
        default=Path(os.environ.get("COMPAT_GOLDEN_STORE") or ROOT / ".golden"),
        help="answers that are not committed (default: COMPAT_GOLDEN_STORE, or .golden)",
    )  # fmt: skip
    words = parser.parse_args(arguments)
    groups = {name: (ANSWERS, inputs) for name, inputs in ours().items()}
    if not words.quick:
        groups.update({f"shared/{name}": (words.store.resolve(), inputs) for name, inputs in of_shared().items()})
    if words.only:
        groups = {name: each for name, each in groups.items() if any(f"{name}/".startswith(f"{only}/") for only in words.only)}
    if not groups:
        parser.error("no such group")
    began, found, count = time.monotonic(), list[Difference](), 0
    for name, (store, inputs) in groups.items():
        path = store / f"{name.removeprefix('shared/')}.txt"
        with sandbox() as folder:
            now = answers(inputs, folder)
        count += len(now)
        if store != ANSWERS and not path.is_file():
            print(f"{name}: nothing was recorded in {store}: {len(now)} answers of this tree are")
            write(path, now)
            continue
        differing = differences(name, read(path), now)
        found += differing
        if differing and words.record:
            write(path, now)
    if words.record:
        for page in write_help():
            print(f"changed docs/commands/{page}: its help")
    if not (words.only or words.record):
        found += [Difference(path.stem, "the group", _GONE, ()) for path in _left_over(groups)]
    if not (words.quick or words.only or SHARED.is_dir()):
        print(f"not compared: cases and published files, which would lie in {SHARED}")
    for line in printed(found, words.show):
        print(line)
    kinds = [f"{sum(each.kind == kind for each in found)} {kind}" for kind in (_NEW, _GONE, _CHANGED, _WORDS)]
    end = "; recorded" if words.record and found else ""
    print(f"{count} answers, {', '.join(kinds)}{end} ({time.monotonic() - began:.0f} s)")
    return int(bool(found) and not words.record)


def _left_over(groups: Mapping[str, object]) -> list[Path]:
    """Return recorded groups that no longer have inputs."""
    return [path for path in ANSWERS.rglob("*.txt") if path.relative_to(ANSWERS).with_suffix("").as_posix() not in groups]


if __name__ == "__main__":
    sys.exit(main())
