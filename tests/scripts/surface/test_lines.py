"""Lines of functions: which are read, and which the newest release does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.interfaces.lines import Lines
from scripts.surface import lines
from scripts.surface.lines import existing, lines_of, mask_of, packed
from scripts.surface.store import Fetched, Store

SOURCE = '''
import numpy as numbers

class Pool:
    size = count_of("pools")

    def take(self, count):
        """Take some.

        self.documented = count
        """
        if count:
            # self.commented = count
            return self.free_ones.pop(
                count_of_all,
            )

        def give_back(each):
            self.returned.append(each)
        x = 1

    async def wait(self):
        text = """
        self.quoted = 1
        """
        await self.event_of_pool


run_everything(Pool)
'''


def test_lines_are_of_the_innermost_function() -> None:
    assert lines_of(SOURCE) == {
        ("<module>", "import numpy as numbers"),
        ("Pool", 'size = count_of("pools")'),
        ("take", "return self.free_ones.pop("),
        ("take", "count_of_all,"),
        ("give_back", "self.returned.append(each)"),
        ("wait", "await self.event_of_pool"),
        ("<module>", "run_everything(Pool)"),
    }


def test_what_is_no_code_gives_nothing() -> None:
    assert lines_of("") == set()
    assert lines_of('"""One module."""\n# and a comment of it\n') == set()


def written(folder: Path, *releases: dict[str, str]) -> Path:
    store = Store(folder)
    for at, modules in enumerate(releases, 1):
        members = {path: text.encode() for path, text in modules.items()}
        store.keep(Fetched("trl", f"1.{at}", "trl.whl", None, None, True, 1, 0.1, (), members))
    store.close()
    path = folder / "lines.bin"
    assert lines.main(["trl", "--store", str(folder), "--out", str(path)]) == 0
    return path


def test_the_lines_that_the_newest_release_does_not_have(tmp_path: Path) -> None:
    before = "def step(self):\n    self.optimizer.train()\n    return self.model_of(1)\n"
    after = "def step(self):\n    return self.model_of(1)\n"
    table = Lines(written(tmp_path, {"trl/a.py": before}, {"trl/a.py": before}, {"trl/a.py": after}).read_bytes())
    assert table.known("trl") == ("1.1", "1.2", "1.3")
    assert table.having("trl", "step", "self.optimizer.train()") == ("1.1", "1.2")
    assert table.having("trl", "step", "return self.model_of(1)") == ()


def test_a_function_that_moved_to_another_module_keeps_its_lines(tmp_path: Path) -> None:
    text = "def step(self):\n    self.optimizer.train()\n"
    table = Lines(written(tmp_path, {"trl/a.py": text}, {"trl/b.py": text}).read_bytes())
    assert table.having("trl", "step", "self.optimizer.train()") == ()


def test_a_package_outside_the_store_keeps_its_lines(tmp_path: Path) -> None:
    packages = {"a": (["1", "2", "3"], {7: 0b11, 1 << 31: 0b01}), "b": (["1"], {})}
    path = tmp_path / "lines.bin"
    assert existing(path) == {}
    path.write_bytes(packed(packages))
    assert existing(path) == packages


def test_sets_of_releases() -> None:
    assert [mask_of(spans) for spans in ((), (0, 0), (1, 3), (0, 1, 4, 4))] == [0, 1, 0b1110, 0b10011]


def test_random_lines_are_looked_up_in_the_releases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = "def step(self):\n    self.optimizer.train()\n", "def step(self):\n    self.model_of(1)\n"
    path = written(tmp_path, {"trl/a.py": before}, {"trl/a.py": before}, {"trl/a.py": after})
    words = ["trl", "--store", str(tmp_path), "--out", str(path), "--verify", "4"]
    assert lines.main(words) == 0
    assert "4 of 4 lines are right" in capsys.readouterr().out
    path.write_bytes(packed({"trl": (["1.1", "1.2", "1.3"], {})}))
    assert lines.main(words) == 1
    assert "trl 1.2: step: self.optimizer.train()" in capsys.readouterr().out
