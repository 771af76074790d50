"""No pattern of the package takes more than linear time: on three times the hostile text, about three times as long."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import compat
from compat import redact
from compat.cli import main
from compat.diagnosis.symptoms import symptoms
from compat.reports.lines import cut_lines
from compat.reports.log.traceback import parse_log
from tests.growth import QUICK, assert_linear, growth, seconds

_TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "/venv/lib/python3.11/site-packages/trl/trainer.py", line 3, in train\n'
    "    step()\n"
    "RuntimeError: strange thing\n"
)
_METHODS = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
_PACKAGE = Path(compat.__file__).parent
_SHORT, _LONG = 1_500, 4_500
"""Characters. A quadratic pattern takes nine times as long on the long text as on the short one, a linear one three times."""
_TILES = (
    "a", "A", "0", " ", ".", "/", "-", "_", "=", "'", '"', "(", "[", "<", "{", "\\", "\t", "\n", ",", "|", "~", "#", ":", "@", "$", "%", "+", "*", "!",
    "/a", "a.", "a-", "a ", " a", "a=", "a,", "a:", "a/", "A.", "0.", "1 ", "0,", "a(", "${", "a[", "'a", " \n", "a\n", "=a ", "-a ", "é", "x" * 60 + " ",
)  # fmt: skip


def _modules() -> list[ModuleType]:
    """Every module of the package but those of the probes' child, which import torch, and integrations of what is not installed."""
    names = [each.name for each in pkgutil.walk_packages(compat.__path__, "compat.")]
    names = [name for name in names if ".probe.child" not in name and not name.endswith("__main__")]
    return [module for name in names if (module := _imported(name)) is not None]


def _imported(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if not name.startswith("compat.integrations.") or (missing.name or "").partition(".")[0] == "compat":
            raise
        return None


def _held(value: Any, depth: int = 0) -> Iterator[re.Pattern[str]]:
    """The patterns in a value, through tables and objects."""
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
    elif isinstance(value, dict) and depth < 5:
        for each in [*value, *value.values()]:
            yield from _held(each, depth + 1)
    elif isinstance(value, (tuple, list, set, frozenset)) and depth < 5:
        for each in value:
            yield from _held(each, depth + 1)
    elif type(value).__module__.startswith("compat.") and depth < 5:
        names = [*getattr(type(value), "__slots__", ()), *getattr(value, "__dict__", ())]
        for name in names:
            yield from _held(getattr(value, name, None), depth + 1)


def _only_matched(name: str, source: str) -> bool:
    """Whether a module applies one of its patterns to the beginning of a text only, so that it is not tried everywhere."""
    used = re.findall(rf"\b{name}\b(?:\.(\w+))?", source)
    return name.startswith("_") and {method for method in used if method} <= {"match", "fullmatch"} and used.count("") == 1


def _patterns() -> list[tuple[str, re.Pattern[str], str]]:
    """(where, pattern, ``search`` or ``match``): from module-level names and tables, and those written inside calls."""
    modules = _modules()
    found: dict[tuple[str, int], tuple[str, re.Pattern[str], str]] = {}
    for number, (_, text, flags, _) in enumerate(redact._patterns()):
        pattern = redact.compiled(text, flags)
        found[pattern.pattern, pattern.flags] = f"compat.redact, pattern {number}", pattern, "search"
    for symptom in symptoms():
        pattern = re.compile(symptom.pattern)
        found[pattern.pattern, pattern.flags] = f"symptom {symptom.name}", pattern, "search"
    for module in modules:
        source = Path(str(module.__file__)).read_text()
        for name, value in vars(module).items():
            for pattern in _held(value):
                anchored = isinstance(value, re.Pattern) and _only_matched(name, source)
                key = (pattern.pattern, pattern.flags)
                if key not in found or not anchored:
                    found[key] = (f"{module.__name__}.{name}", pattern, "match" if anchored else "search")
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "re":
                text = node.args[0] if node.args else None
                if node.func.attr in _METHODS and isinstance(text, ast.Constant) and isinstance(text.value, str):
                    pattern = re.compile(text.value)
                    how = "match" if node.func.attr in ("match", "fullmatch") else "search"
                    found.setdefault((pattern.pattern, pattern.flags), (f"{module.__name__}:{node.lineno}", pattern, how))
    return list(found.values())


def _hostile(pattern: re.Pattern[str], characters: int) -> Iterator[str]:
    """Texts that keep a pattern's loops going and let it fail at the end, its own words among them."""
    words = sorted(set(re.findall(r"[A-Za-z_/ =:.'\"-]{2,30}", pattern.pattern)))[:12]
    for tile in (*_TILES, *words, *(f"{word} 1" for word in words)):
        yield (tile * (characters // len(tile) + 1))[:characters] + "\0"
    for word in words[:6]:
        yield word + "a" * characters + "\0"
        yield word + "1." * (characters // 2) + "\0"


def test_every_pattern_takes_linear_time() -> None:
    patterns = _patterns()
    assert len(patterns) > 200
    worse = []
    for where, pattern, method in patterns:
        call = getattr(pattern, method)
        for short, long in zip(_hostile(pattern, _SHORT), _hostile(pattern, _LONG), strict=True):
            if seconds(call, long) < QUICK:
                continue
            ratio = growth(call, short, long, rounds=1)
            if ratio > 5 and (ratio := growth(call, short, long, rounds=20)) > 5:
                worse.append(f"{where} ({method}): {ratio:.1f} times as long on {short[:20]!r}")
                break
    assert worse == []


@pytest.mark.parametrize("tile", ["fYx9dQ", "a", "'", "/a", " ", "NumPy 1.", "a==", "a.so", '{"log":', "\x1b[", "\r"])
def test_diagnose_takes_linear_time_in_the_length_of_a_line(
    tile: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "train.log"

    def diagnose(text: str) -> None:
        log.write_text(text, newline="")
        assert main(["diagnose", str(log)]) in (0, 1)
        assert "strange" in capsys.readouterr().out

    assert_linear(diagnose, lambda length: f"{(tile * length)[:length]}\n{_TRACEBACK}", 300_000)


def test_what_stands_behind_a_long_line_is_read() -> None:
    picture = "data:image/png;base64," + "iVBORw0KGgo" * 10_000
    (error,) = parse_log(cut_lines(f"{picture}\n{_TRACEBACK}"))
    assert (error.exception, error.message, error.line) == ("RuntimeError", "strange thing", 5)
    bar = "".join(f"\r{done}%|###   | {done}/100 [00:01<00:02]" for done in range(1000)) + f"\r{_TRACEBACK}"
    assert [each.message for each in parse_log(cut_lines(bar))] == ["strange thing"]
