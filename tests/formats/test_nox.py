"""noxfile.py: what the sessions install."""

from __future__ import annotations

from pathlib import Path

from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import edits_for
from compat.formats.test_runners import Nox
from tests.formats.listings import lines, pins

TEXT = """\
import nox

TORCH = "2.1.2"


def common(session):
    session.install("numpy<2", 'transformers==4.40.1')


@nox.session(python="3.11")
def tests(session: nox.Session) -> None:
    common(session)
    session.install(f"torch=={TORCH}", "--extra-index-url", "https://download.pytorch.org/whl/cpu")
    session.run("pip", "install", "trl==0.8.6", external=True)
    session.run("pytest")


@nox.session
def lint(session):
    session.run("ruff", "check")
"""


def test_sessions_and_the_functions_they_call() -> None:
    (listing,) = Nox().read("noxfile.py", TEXT)
    assert (listing.label, listing.requires_python) == ("session tests", "==3.11.*")
    assert pins(listing) == {"numpy": "<2", "transformers": "4.40.1", "torch": "2.1.2", "trl": "0.8.6"}
    assert lines(listing) == {"numpy": 7, "transformers": 7, "torch": 13, "trl": 14}


def test_only_versions_change(tmp_path: Path) -> None:
    (tmp_path / "noxfile.py").write_text(TEXT)
    changes = (Change("transformers", "4.40.1", "4.46.3"), Change("trl", "0.8.6", "0.12.2"))
    (edit,) = edits_for(str(tmp_path / "noxfile.py"), changes)
    assert edit.after.decode() == TEXT.replace("'transformers==4.40.1'", '"transformers==4.46.3"').replace("0.8.6", "0.12.2")
