"""The static pages: whole, linked, loading nothing from elsewhere, and saying what a check says."""

from __future__ import annotations

import html
import json
import re
import shlex
import urllib.parse
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from compat.model import Accelerator, Distribution, Environment
from compat.rules.compiled import open_matrix
from compat.rules.rule import Rule
from compat.versions import key_of
from scripts.site.__main__ import build
from scripts.site.checking import check_page
from scripts.site.frame import Page, to, write
from scripts.site.gpus import GpuCells, RocmCells, gpu_page
from scripts.site.knowledge import entries, rule_pages
from scripts.site.tables import Cell, PairCells, releases_of, table_of

pytestmark = pytest.mark.xdist_group("site")  # what its fixtures install or build is made once, by one worker
ATOM = "{http://www.w3.org/2005/Atom}"


class Links(HTMLParser):
    """What a page leads to and loads, the identifiers in it, and its policy."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.names: set[str] = set()
        self.policy = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        if "id" in found:
            self.names.add(found["id"])
        if tag == "a":
            self.links.append(found["href"])
        if tag in ("script", "img", "iframe") and "src" in found:
            self.loaded.append(found["src"])
        if tag == "link":
            self.loaded.append(found["href"])
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found["content"]
        assert "style" not in found
        assert not [name for name in found if name.startswith("on")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "out"
    assert build(folder, releases=2) > 300
    return folder


def test_every_link_leads_somewhere_and_nothing_comes_from_elsewhere(site: Path) -> None:
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    for path, page in pages.items():
        assert "default-src 'none'" in page.policy
        for address in page.links + page.loaded:
            if address.startswith(("https://", "http://")):
                assert address not in page.loaded, f"{path} loads {address}"
                continue
            file, _, name = urllib.parse.unquote(address).partition("#")
            target = (path.parent / file).resolve() if file else path
            assert target.is_file(), f"{path}: {address}"
            assert target.is_relative_to(site.resolve())
            if name:
                assert name in pages[target].names, f"{path}: {address}"


def test_every_rule_has_a_page_and_can_be_found(site: Path) -> None:
    text = (site / "entries.js").read_text(encoding="utf-8")
    found = {entry["path"]: entry for entry in json.loads(text.removeprefix("window.entries = ").removesuffix(";\n"))}
    for rule in open_matrix().rules():
        page = (site / f"rules/{rule.id}.html").read_text(encoding="utf-8")
        assert all(address.replace("&", "&amp;") in page for address in rule.evidence)
        assert rule.title.lower() in found[f"rules/{rule.id}.html"]["text"]
    assert "packages/vllm.html" in found


def test_the_feed_is_one(site: Path) -> None:
    feed = ElementTree.parse(site / "feed.xml").getroot()
    assert feed.tag == f"{ATOM}feed"
    items = feed.findall(f"{ATOM}entry")
    assert items
    dates = [item.findtext(f"{ATOM}updated") or "" for item in items]
    assert dates == sorted(dates, reverse=True)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", date) for date in dates)
    assert len({item.findtext(f"{ATOM}id") for item in items}) == len(items)


def test_hostile_words_of_a_rule_stay_words(tmp_path: Path) -> None:
    bad = '</script><script>alert(1)</script>"><img src=x onerror=alert(1)>'
    rule = Rule("x", bad, "error", "crash", "reported", bad, (bad,))
    write(tmp_path, rule_pages([rule]), "1")
    for path in tmp_path.rglob("*.html"):
        assert Links(path.read_text(encoding="utf-8")).loaded[:1] == ["../site.css"]
        assert "<img" not in path.read_text(encoding="utf-8")
    assert "</script>" not in entries([rule], [])


def test_addresses_hold_below_any_folder() -> None:
    assert to("rules/x.html", "index.html") == "rules/x.html"
    assert to("index.html", "rules/x.html") == "../index.html"


def test_the_page_that_checks_may_reach_its_own_origin_alone() -> None:
    page: Page = check_page("let x = 1;")
    assert "connect-src 'self'" in page.policy
    assert "worker-src blob:" in page.policy
    assert "unsafe-inline" not in page.policy
    assert "'unsafe-eval'" not in page.policy


# --- Tables: every cell is what a check says.


def test_a_declared_conflict_and_what_is_known_to_be_bad() -> None:
    assert PairCells("trl", "vllm")("0.20.0", "0.7.1").state == "declared"
    depends = PairCells("trl", "vllm")("0.14.0", "0.6.6.post1")
    assert depends.state in ("bad", "depends")
    assert "trl-grpo-vllm-second-device" in [reason.rule for reason in depends.reasons]
    assert PairCells("torchvision", "torch")("0.20.1", "2.5.1").state in ("works", "unknown")
    assert PairCells("torchvision", "torch")("0.20.1", "2.6.0").state == "declared"


def test_what_is_newer_than_the_matrix_is_not_assessed() -> None:
    assert PairCells("trl", "vllm")("999.0", "998.0") == Cell("unknown")


def test_which_torch_has_code_for_a_gpu() -> None:
    assert GpuCells("torch")("2.8.0", "A100 (8.0)").state == "works"
    assert GpuCells("torch")("2.5.1", "RTX 50 (12.0)").state in ("bad", "depends")


def test_which_torch_for_rocm_has_code_for_an_amd_gpu() -> None:
    assert RocmCells()("6.0", "MI300 (gfx942)").state == "works"
    assert RocmCells()("6.0", "RX 9070 (gfx1201)").state == "bad"
    assert RocmCells()("6.4", "RX 9070 (gfx1201)").state == "works"


def test_what_fails_on_amd_gpus_and_from_which_release_on_it_does_not() -> None:
    assert GpuCells("bitsandbytes")("0.48.0", "MI300 (gfx942)").state == "depends"
    assert GpuCells("bitsandbytes")("0.49.0", "MI300 (gfx942)").state == "works"
    assert GpuCells("flash-attn")("2.7.4", "RX 7900 (gfx1100)").state == "depends"
    assert GpuCells("flash-attn")("2.7.4", "MI300 (gfx942)").state == "works"


def test_the_page_of_gpus_has_both_vendors() -> None:
    page = gpu_page(2, 1).content
    for word in ("torch ↓ NVIDIA GPU", "torch for ROCm ↓ AMD GPU", "bitsandbytes on AMD", "MI300 (gfx942)", "RTX 50 (12.0)"):
        assert word in page
    assert "vllm on AMD" not in page


def test_the_newest_combinations_are_those_that_suggest_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    from compat.api.commands import COMMANDS
    from compat.cli import parse
    from compat.tables.stacks import open_stacks

    monkeypatch.setattr("scripts.site.gpus.ON_GPUS", ())
    page = gpu_page(2, 1)
    shown = [html.unescape(each) for each in re.findall(r"<code>(compat suggest [^<]*)</code>", page.content)]
    assert len(shown) == len(open_stacks())
    suggest = next(each for each in COMMANDS if each.name == "suggest")
    for command, stack in zip(shown, open_stacks()):
        read = parse(suggest, shlex.split(command)[2:])
        assert (read.one("task"), read.one("gpu"), read.one("with")) == (stack.task, stack.gpu, stack.stack)


def test_a_cell_is_what_check_says(tmp_path: Path) -> None:
    import compat

    report = compat.check(
        Environment(
            python="3.12",
            os="linux",
            machine="x86_64", distributions=(Distribution("torch", "2.5.1"),),
            accelerators=(Accelerator(vendor="nvidia", compute_capability="12.0"),),
        )
    )  # fmt: skip
    rules = {each.rule for each in report.findings if "accelerators" in each.facts and each.severity != "info"}
    assert {reason.rule for reason in GpuCells("torch")("2.5.1", "RTX 50 (12.0)").reasons} <= rules


def test_a_table_has_the_newest_releases_and_the_last_of_older_lines() -> None:
    found = releases_of("transformers", 20)
    assert len(found) == 20
    assert found == sorted(found, key=key_of)
    older = [key_of(version)[1][:2] for version in found[:10]]
    assert len(set(older)) == 10
    assert releases_of("transformers", 1000)[-1] == found[-1]
    assert releases_of("no-such-package", 20) == []


def test_neighbours_that_are_alike_share_a_row() -> None:
    def cell(row: str, column: str) -> Cell:
        return Cell("works" if int(row) < 3 or column == "b" else "bad")

    table = table_of(["1", "2", "3", "4"], ["a", "b", "c"], cell)
    assert [group.label for group in table.rows] == ["1 – 2", "3 – 4"]
    assert [group.label for group in table.columns] == ["a", "b", "c"]
    assert [[each.state for each in row] for row in table.cells] == [["works"] * 3, ["bad", "works", "bad"]]
    assert len(table_of(["1"], ["a", "b"], cell, ranged=False).columns) == 2
