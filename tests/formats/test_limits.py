"""What one file may list at most: a file made to be too much is refused at once."""

from __future__ import annotations

import json

import pytest

from compat.errors import InputError
from compat.formats import listing as limits
from compat.formats.listing import CHOICES, CONFLICTING, EDGES, ENTRIES, ROOT, Choice, Entry, Listing, within_limits
from compat.formats.registry import format_of
from compat.formats.requirements.requirement import parse_requirement

NAMES = {
    "requirements": "requirements.txt", "pyproject": "pyproject.toml", "poetry": "poetry.lock", "pdm": "pdm.lock", "pylock": "pylock.toml",
    "uv": "uv.lock", "pipfile": "Pipfile.lock", "conda": "environment.yml", "conda-lock": "conda-lock.yml",
}  # fmt: skip


def listings_of(path: str, content: bytes) -> tuple[Listing, ...]:
    return format_of(path, content).listings(path, content)


def project(requirements: int, **tables: str) -> str:
    listed = ",\n".join(f'"a{number}==1.{number}"' for number in range(requirements))
    more = "".join(f"{name} = [{text}]\n" for name, text in tables.items())
    return f'[project]\nname = "x"\nversion = "1"\ndependencies = [{listed}]\n[tool.uv]\n{more}'


def packages(count: int, table: str, body: str) -> str:
    return "".join(f'[[{table}]]\nname = "a{number}"\nversion = "1.{number}"\n{body}\n' for number in range(count))


def conda_lock(count: int) -> str:
    url = "https://files.example/linux-64/a-1-0.conda"
    item = "- {{name: a{}, version: '1', manager: conda, platform: linux-64, url: '{}'}}\n"
    return "version: 1\nmetadata: {platforms: []}\npackage:\n" + "".join(item.format(number, url) for number in range(count))


def text_of(kind: str, count: int) -> str:
    if kind == "requirements":
        return "".join(f"a{number}==1.{number}\n" for number in range(count))
    if kind == "pyproject":
        return project(count)
    if kind == "poetry":
        return (
            packages(count, "package", 'optional = false\ngroups = ["main"]')
            + '[metadata]\nlock-version = "2.1"\npython-versions = ">=3.9"\n'
        )
    if kind == "pdm":
        return '[metadata]\nlock_version = "4.5.0"\n' + packages(count, "package", 'groups = ["default"]')
    if kind == "pylock":
        return 'lock-version = "1.0"\ncreated-by = "x"\n' + packages(count, "packages", "")
    if kind == "uv":
        return "version = 1\n" + packages(count, "package", 'source = { registry = "https://index.example/simple" }')
    if kind == "pipfile":
        listed = {f"a{number}": {"version": f"==1.{number}"} for number in range(count)}
        return json.dumps({"_meta": {"pipfile-spec": 6, "requires": {}, "sources": []}, "default": listed, "develop": {}})
    if kind == "conda":
        return "dependencies:\n" + "".join(f"- a{number}=1.{number}\n" for number in range(count))
    return conda_lock(count)


@pytest.mark.parametrize("kind", NAMES)
def test_a_file_with_too_many_entries_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ENTRIES", 300)
    (listing,) = listings_of(NAMES[kind], text_of(kind, 300).encode())
    assert len(listing.entries) == 300
    with pytest.raises(InputError, match="has more than 300 entries") as caught:
        listings_of(NAMES[kind], text_of(kind, 301).encode())
    assert caught.value.file == NAMES[kind]


def test_reading_ends_at_the_first_entry_that_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ENTRIES", 300)
    with pytest.raises(InputError, match="has more than 300 entries") as caught:
        listings_of("r.txt", text_of("requirements", 600).encode())
    assert caught.value.line == 301
    with pytest.raises(InputError, match="has more than 300 entries") as caught:
        listings_of("pyproject.toml", project(600).encode())
    assert caught.value.line == 304


def test_constraints_count_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ENTRIES", 300)
    constraints = ", ".join(f'"a{number}<2"' for number in range(300))
    with pytest.raises(InputError, match="more than 300 entries"):
        listings_of("pyproject.toml", project(1, **{"constraint-dependencies": constraints}).encode())
    assert listings_of("pyproject.toml", project(0, **{"constraint-dependencies": constraints}).encode())


def test_what_a_listing_may_have() -> None:
    entry = Entry(parse_requirement("a==1"))
    choices = tuple(Choice("extra", f"e{number}") for number in range(CHOICES))
    full = Listing(
        "f", "uv.lock", (entry,) * ENTRIES, ((ROOT, 0, None, None),) * EDGES, choices,
        conflicts=(tuple(range(CONFLICTING)),),
    )  # fmt: skip
    assert within_limits(full) is full
    for changed, what in (
        (Listing("f", "k", (*full.entries, entry)), "entries"),
        (Listing("f", "k", edges=((*(full.edges or ()), (ROOT, 0, None, None)))), "dependencies"),
        (Listing("f", "k", choices=(*choices, choices[0])), "extras, groups or environments"),
        (Listing("f", "k", conflicts=((0, 1),) * (CONFLICTING // 2 + 1)), "extras and groups in its conflicts"),
    ):
        with pytest.raises(InputError, match=rf"^f: has more than \d+ {what}$"):
            within_limits(changed)
