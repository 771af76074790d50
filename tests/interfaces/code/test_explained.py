from __future__ import annotations

from pathlib import Path

from compat.interfaces.code.explained import absent_everywhere, explain_ranges
from compat.interfaces.code.releases import Reverse
from tests.interfaces.code.made_up import releases, wanted_in


def _of(folder: Path, text: str):  # type: ignore[no-untyped-def]
    answers, wanted = releases(), wanted_in(folder, text)
    reverse = Reverse(wanted, answers)
    return explain_ranges(reverse.ranges(), reverse, answers), absent_everywhere(reverse, answers, wanted)


def test_each_bound_has_the_line_that_decides_it_and_the_new_name(tmp_path: Path) -> None:
    (found,), _ = _of(tmp_path, "\nfrom lib import Special\nSpecial(1, tokenizer=2)")
    assert (found.first, found.last, found.below, found.specifier) == ("0.1", "0.2", None, "<=0.2")
    assert found.above is not None
    release, (reason,) = found.above
    assert (release, reason.place, reason.renamed) == ("0.3", f"{tmp_path}/train.py:3", "processing")
    assert "renamed processing in 0.3" in reason.text


def test_the_old_name_is_told_at_the_lower_bound(tmp_path: Path) -> None:
    (found,), _ = _of(tmp_path, "from lib import Special\nSpecial(1, processing=2)")
    assert found.below is not None
    assert found.below[1][0].renamed == "tokenizer"
    assert found.specifier == ">=0.3"


def test_what_cannot_be_had_together_is_told_with_where_each_is(tmp_path: Path) -> None:
    (found,), _ = _of(tmp_path, "from lib import Special, helper\nSpecial(1, processing=2)")
    assert found.first is None
    assert [(each.what, each.text) for each in found.conflict] == [
        ("lib.Special(processing=)", "only in 0.3"),
        ("lib.helper", "only in 0.1 – 0.2"),
    ]


def test_a_keyword_in_no_release_is_told_with_the_nearest(tmp_path: Path) -> None:
    (found,), gone = _of(tmp_path, "from lib import Special\nSpecial(1, procesing=2)")
    assert len(found.range.allowed) == 3
    assert [(each.what, each.nearest) for each in gone] == [("lib.Special(procesing=)", "processing")]
