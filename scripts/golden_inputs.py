"""The inputs of ``scripts.golden``: each is a command line, run in a fresh copy of a folder.

A folder of ``tests/golden/inputs`` is a group. Its ``commands.txt`` holds one command a line, without ``compat``; ``{all}``
stands for every output format in turn, ``{index}`` for a package index on this machine that serves what ``index.json`` lists
under that name (``{index-host}``: the same without its last folder), ``< FILE`` for standard input. ``$name = WORDS`` is a
shorthand for later lines, ``#`` starts a comment. The other groups are generated: the examples and the errors of the rules, the
seeds of the fuzz tests, and files of ``../shared``, where it is there.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import re._constants as sre
    import re._parser as sre_parser

    import tomllib

    def read_toml(path: Path) -> dict[str, Any]:
        return tomllib.loads(path.read_text(encoding="utf-8"))
else:
    import sre_constants as sre
    import sre_parse as sre_parser

    import tomlkit

    def read_toml(path: Path) -> dict[str, Any]:
        return tomlkit.parse(path.read_text(encoding="utf-8")).unwrap()


ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
SEEDS = ROOT / "tests" / "fuzz" / "seeds"
FORMATS = ("text", "json", "github", "sarif", "junit")
SEED_NAMES = {
    "compose": "compose.yml", "conda": "environment.yml", "conda-lock": "conda-lock.yml", "described": "described.json",
    "dockerfile": "Dockerfile", "notebook": "notebook.ipynb", "pasted": "pasted.txt", "pdm": "pdm.lock",
    "pipfile": "Pipfile.lock", "pixi": "pixi.lock", "poetry": "poetry.lock", "project_config": "pyproject.toml",
    "pylock": "pylock.toml",
    "pyproject": "pyproject.toml", "requirements": "requirements.txt", "script": "script.py", "shell": "setup.sh",
    "uv": "uv.lock", "kubernetes": "job.yaml", "workflow": "ci.yml", "cloud": "task.yaml", "devcontainer": "devcontainer.json",
    "training": "config.yml", "setup_py": "setup.py", "setup_cfg": "setup.cfg", "cog": "cog.yaml",
    "gitlab": ".gitlab-ci.yml", "singularity": "train.def", "nox": "noxfile.py", "makefile": "Makefile", "tox": "tox.ini",
    "pipfile_source": "Pipfile",
}  # fmt: skip
"""What the files of a folder of seeds are called where people use them."""
_WORKLOAD = ("task", "trainer", "model", "launcher", "processes", "batch_size", "precision", "quantization",
             "features", "features_absent", "features_complete")  # fmt: skip
_EXAMPLE_ONLY = ("packages", "sources", "gpus", "complete", *_WORKLOAD)


def _shared() -> Path:
    """Return the folder of published files and cases: next to this tree, or next to the main one of a linked worktree."""
    link = ROOT / ".git"
    if link.is_file():
        git = Path(link.read_text(encoding="utf-8").partition("gitdir: ")[2].strip())
        return git.parents[2].parent / "shared"
    return ROOT.parent / "shared"


SHARED = _shared()


@dataclass(frozen=True)
class Input:
    """One command line, run in a copy of ``folder`` with ``files`` put in. ``name`` is unique in its group.

    ``digest``: only the essentials of its report are recorded. ``in_place``: ``folder`` itself is where it runs, which is large
    and only read.
    """

    name: str
    words: tuple[str, ...]
    folder: Path | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    stdin: str | None = None
    digest: bool = False
    in_place: bool = False


def ours() -> dict[str, list[Input]]:
    """Return the groups whose inputs and answers are committed."""
    folders = sorted(path.parent for path in (GOLDEN / "inputs").glob("*/commands.txt"))
    rules = sorted((ROOT / "matrix" / "rules").glob("*.toml"))
    return {
        **{folder.name: list(_of_folder(folder)) for folder in folders},
        "seeds": list(_of_seeds()),
        "errors": [each for path in rules for each in _of_errors(path)],
        **{f"examples/{path.stem}": list(_of_examples(path)) for path in rules},
    }


def of_shared() -> dict[str, list[Input]]:
    """Return the groups whose answers are stored outside git: slow ones, long ones and those from ``../shared``."""
    found = {
        "lint": [Input("rules lint", ("rules", "lint"))],
        "list": [Input("rules list", ("rules", "list", "--format", "json"))],
    }
    rules = sorted((ROOT / "matrix" / "rules").glob("*.toml"))
    identifiers = [rule["id"] for path in rules for rule in read_toml(path)["rule"]]
    found["rules"] = [
        Input(f"rules show {rule} --format {form}", ("rules", "show", rule, "--format", form))
        for rule in identifiers for form in ("text", "json")
    ]  # fmt: skip
    for path in rules:
        found[f"examples-in-full/{path.stem}"] = list(_of_examples(path, digest=False))
    for name in ("cases", "known_good"):
        if (path := SHARED / "cases" / f"{name}.jsonl").is_file():
            found[name] = list(_of_cases(path))
    if (corpus := SHARED / "corpus" / "files").is_dir():
        for kind in sorted(path for path in corpus.iterdir() if path.is_dir()):
            files = [file.name for file in sorted(kind.iterdir()) if file.is_file()]
            commands = [
                words for name in files for words in (("check", name), ("check", name, "--format", "json"), ("facts", name))
            ]  # fmt: skip
            found[f"corpus/{kind.name}"] = [Input(shlex.join(words), words, kind, in_place=True) for words in commands]
    return found


def _of_folder(folder: Path) -> Iterator[Input]:
    shorthands: dict[str, str] = {}
    for line in (folder / "commands.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("$"):
            name, _, text = line.partition(" = ")
            shorthands[name] = text
        elif line.strip() and not line.startswith("#"):
            for form in FORMATS if "{all}" in line else ("",):
                name = line.replace("{all}", form)
                command, _, standard_input = name.partition(" < ")
                for shorthand, text in shorthands.items():
                    command = command.replace(shorthand, text)
                stdin = (folder / standard_input.strip()).read_text(encoding="utf-8") if standard_input else None
                yield Input(name, tuple(shlex.split(command)), folder, stdin=stdin)


def _of_seeds() -> Iterator[Input]:
    for folder in sorted(SEEDS.iterdir()):
        if (name := SEED_NAMES.get(folder.name)) is None:
            continue
        for seed in sorted(folder.glob("*.txt")):
            files = {name: seed.read_bytes().replace(b"2027-03-01", b"2999-01-01")}  # no ignore expires
            option = {"pasted": ("--pasted",), "described": ("--environment",)}.get(folder.name, ())
            for form in FORMATS:
                words = ("check", *option, name, "--format", form)
                yield Input(f"{folder.name}/{seed.stem}: {shlex.join(words)}", words, files=files)
            if folder.name != "described":
                yield Input(f"{folder.name}/{seed.stem}: facts", ("facts", *option, name), files=files)


def _of_examples(path: Path, *, digest: bool = True) -> Iterator[Input]:
    words = ("check", "--environment", "example.json", "--format", "json")
    seen: set[str] = set()
    for rule in read_toml(path)["rule"]:
        for example in rule["example"]:
            name = f"{rule['id']}: {json.dumps(example, sort_keys=True, default=str)}"
            if name not in seen:
                seen.add(name)
                (table,) = example.values()
                yield Input(name, words, files={"example.json": json.dumps(described(table)).encode()}, digest=digest)


def described(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rule's example as a described environment (docs/rules.md, "Examples")."""
    sources = table.get("sources", {})
    found: dict[str, Any] = {"schema": "compat/environment/1", **{key: table[key] for key in table if key not in _EXAMPLE_ONLY}}
    found["distributions"] = [
        {"name": name, "version": version, **({"source": sources[name]} if name in sources else {})}
        for name, version in table.get("packages", {}).items()
    ]
    found["distributions_complete"] = bool(table.get("complete", True))
    if "gpus" in table:
        parts = [part.strip().partition(":") for part in table["gpus"].split(",") if part.strip() != "none"]
        found["accelerators"] = [{"name": name} for name, _, count in parts for _ in range(int(count or 1))]
    if workload := {key: table[key] for key in _WORKLOAD if key in table}:
        found["workload"] = workload
    return found


def _of_errors(path: Path) -> Iterator[Input]:
    for rule in read_toml(path)["rule"]:
        for number, error in enumerate(rule.get("errors", ()), start=1):
            lines = ["Traceback (most recent call last):", '  File "train.py", line 1, in <module>', "    main()"]
            for frame in error.get("frames", ()):
                file, _, function = sample(frame).partition("::")
                lines += [f'  File "/site-packages/{file}", line 10, in {function or "call"}', "    call()"]
            raised = f"{error.get('exception', 'RuntimeError')}: {sample(error.get('message', 'it failed'))}"
            text = "\n".join([*lines, raised, ""])
            yield Input(f"{rule['id']} {number}", ("diagnose", "error.txt"), files={"error.txt": text.encode()})


def sample(pattern: str) -> str:
    """Generate a text that matches the pattern: first alternatives, minimum repetitions. Look-arounds are ignored."""
    return "".join(_sampled(sre_parser.parse(pattern).data))


def _sampled(parsed: Iterable[Any]) -> Iterator[str]:
    for operation, value in parsed:
        if operation is sre.LITERAL:
            yield chr(value)
        elif operation in (sre.ANY, sre.NOT_LITERAL):
            yield "x" if value != ord("x") else "y"
        elif operation is sre.IN:
            yield _of_class(value)
        elif operation is sre.BRANCH:
            yield from _sampled(value[1][0])
        elif operation is sre.SUBPATTERN:
            yield from _sampled(value[-1])
        elif operation in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            yield from [text for _ in range(value[0]) for text in _sampled(value[2])]


def _of_class(members: list[Any]) -> str:
    """Return the first of these characters in the class ``[…]``."""
    tested = re.compile("[" + "".join(_written(*member) for member in members) + "]")
    return (
        next(text for text in "x1 '._-/:(,@A\n\"`" if tested.match(text))
        if members[0][0] is not sre.LITERAL
        else chr(members[0][1])
    )


def _written(kind: Any, value: Any) -> str:
    if kind is sre.NEGATE:
        return "^"
    if kind is sre.RANGE:
        return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
    if kind is sre.CATEGORY:
        return (
            "\\"
            + {"SPACE": "s", "NOT_SPACE": "S", "DIGIT": "d", "NOT_DIGIT": "D", "WORD": "w", "NOT_WORD": "W"}[str(value)[9:]]
        )
    return re.escape(chr(value))


def _of_cases(path: Path) -> Iterator[Input]:
    for line in path.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        files = {"environment.json": json.dumps(case["environment"]).encode()}
        for form in ("text", "json"):
            words = ("check", "--environment", "environment.json", "--format", form)
            yield Input(f"{case['id']}: {shlex.join(words)}", words, files=files)
        if case.get("traceback"):
            files = {**files, "error.txt": case["traceback"].encode()}
            given = ("--environment", "environment.json", "--format", "json")
            yield Input(f"{case['id']}: diagnose with its environment", ("diagnose", "error.txt", *given), files=files)
            yield Input(f"{case['id']}: diagnose", ("diagnose", "error.txt"), files=files)
