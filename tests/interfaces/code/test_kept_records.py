"""What a script was read as is kept by path, and holds only for the very same text."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.errors import InputError
from compat.interfaces.code import files
from compat.interfaces.code.files import read_file

_TEXT = """from transformers.utils import check_min_version
from trl import ModelConfig, TrlParser
check_min_version("4.46.0")
(args,) = TrlParser((ModelConfig,)).parse_args_and_config()
print(args.dtype)
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COMPAT_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "train.py"
    path.write_text(_TEXT, encoding="utf-8")
    return path


def _never(*_: object, **__: object) -> None:
    raise AssertionError("it is read")


def test_the_second_reading_is_the_first(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read_file(str(script), "train")
    assert (len(first.bounds), len(first.fields)) == (1, 1)
    monkeypatch.setattr(files, "_read_source", _never)
    second = read_file(str(script), "train")
    assert (second.module, second.bounds, second.fields) == (first.module, first.bounds, first.fields)
    assert second.place(3) == f"{script}:3"


def test_a_changed_script_is_read_and_takes_the_place(script: Path) -> None:
    read_file(str(script), "train")
    script.write_text(_TEXT.replace("4.46.0", "4.47.0"), encoding="utf-8")
    assert read_file(str(script), "train").bounds[0].specifier == ">=4.47.0"
    assert len(list((script.parent / "cache" / "scripts").iterdir())) == 1


@pytest.mark.parametrize(("name", "is_package"), [("other", False), ("train", True)])
def test_another_name_is_another_record(script: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_package: bool) -> None:
    read_file(str(script), "train")
    monkeypatch.setattr(files, "_read_source", _never)
    with pytest.raises(AssertionError, match="it is read"):
        read_file(str(script), name, is_package=is_package)


@pytest.mark.parametrize("content", [b"", b"something", b"N"])
def test_a_file_that_was_spoilt_counts_for_nothing(script: Path, content: bytes) -> None:
    first = read_file(str(script), "train")
    (kept,) = (script.parent / "cache" / "scripts").iterdir()
    kept.write_bytes(content)
    assert read_file(str(script), "train").module == first.module


def test_what_is_no_python_is_told_each_time(script: Path) -> None:
    script.write_text("print 1", encoding="utf-8")
    for _ in range(2):
        with pytest.raises(InputError, match="is not Python"):
            read_file(str(script), "train")
    assert not (script.parent / "cache").exists()
