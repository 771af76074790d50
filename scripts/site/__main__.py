"""``python -m scripts.site [--out FOLDER]``: builds the site; ``make site`` does so into ``dist/site``."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from compat import __version__
from compat.output.html.page import REPORT, Html, element, joined
from compat.rules.compiled import open_matrix
from scripts.site import gpus, knowledge, runtime, tables
from scripts.site.checking import check_page
from scripts.site.frame import NAVIGATION, Page, local, write

ROOT = Path(__file__).resolve().parents[2]
STATIC = Path(__file__).with_name("static")
_ABOUT = {
    "check.html": "paste an environment, a lock file or an error and get the report; nothing leaves the page",
    "pairs/index.html": "tables of releases for the pairs that people ask about",
    "gpus.html": "which releases have code for which GPU",
    "rules/index.html": "every known-bad combination, with its evidence",
    "packages/index.html": "what is known about each package",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.site", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist" / "site", help="the folder to write (it is emptied)")
    parser.add_argument("--address", default="", help="where the site will be, for the links of its feed")
    parser.add_argument("--releases", type=int, default=50, metavar="N", help="releases of each package in a table")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="processes that fill the tables")
    parser.add_argument("--without-runtime", action="store_true", help="leave out what the page that checks runs (no npm)")
    given = parser.parse_args()
    if given.out.exists() and any(given.out.iterdir()) and not (given.out / "site.css").exists():
        print(f"site: {given.out} is not empty and no site: name another folder", file=sys.stderr)
        return 2
    shutil.rmtree(given.out, ignore_errors=True)
    address = given.address and given.address.rstrip("/") + "/"
    count = build(given.out, address=address, releases=given.releases, workers=given.workers)
    if not given.without_runtime:
        try:
            runtime.build(given.out / "runtime", ROOT)
        except runtime.Unavailable as problem:
            print(f"site: the runtime of check.html could not be made: {problem}", file=sys.stderr)
            return 1
    print(f"{count} pages in {given.out}")
    return 0


def build(out: Path, *, address: str = "", releases: int = 50, workers: int = 1) -> int:
    """Write all static files and return the number of pages."""
    matrix = open_matrix()
    rules = matrix.rules()
    packages = list(knowledge.package_pages(rules, matrix.newest))
    pages = [
        _start(),
        check_page((STATIC / "worker.js").read_text(encoding="utf-8")),
        *knowledge.rule_pages(rules),
        *packages,
        *tables.pair_pages(releases, workers),
        gpus.gpu_page(releases, workers),
    ]
    count = write(out, pages, __version__)
    (out / "runtime").mkdir()
    shutil.copy(STATIC / "browser.py", out / "runtime" / "browser.py")
    for name in ("search.js", "check.js"):
        shutil.copy(STATIC / name, out / name)
    (out / "site.css").write_text(REPORT + (STATIC / "site.css").read_text(encoding="utf-8"), encoding="utf-8")
    (out / "entries.js").write_text(knowledge.entries(rules, packages), encoding="utf-8")
    (out / "feed.xml").write_text(knowledge.feed(rules, ROOT, address), encoding="utf-8")
    return count


def _start() -> Page:
    here = "index.html"
    items: list[Html] = [element("li", local(path, text, here), f": {_ABOUT[path]}") for path, text in NAVIGATION]
    text = (
        "compat says before a job starts which known-bad combinations of packages, GPUs, drivers and launchers hold, for "
        "people who fine-tune and serve language models."
    )
    return Page(here, "Can I use it together?", joined((element("p", text), element("ul", *items))))


if __name__ == "__main__":
    sys.exit(main())
