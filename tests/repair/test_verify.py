"""A plan handed to uv: what it is asked, what it says, and what keeps it from answering."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from compat.index import Settings
from compat.index.settings import Credentials
from compat.index.settings import Source as IndexSource
from compat.model import Environment, Source
from compat.records import replace
from compat.repair import verify
from compat.repair.candidates import Release
from compat.repair.problem import Problem
from compat.repair.resolved import Resolved, resolved_by_uv
from compat.repair.target import Need, Target
from compat.repair.verify import (
    Question,
    Verified,
    accepted_by_uv,
    brought_along,
    installable_by_uv,
    question,
    replaced_libraries,
)
from tests.index.server import IndexServer
from tests.repair.worlds import TARGET, need

PACKAGES = {
    "a": {"1.0": {"requires": ["b>=1"]}, "2.0": {"requires": ["b>=2"]}},
    "b": {"1.0": {}, "2.0": {}},
    "own": {"1.0": {"wheel": False, "dynamic": True}},
    "user": {"1.0": {"requires": ["own>=0.5", "b"]}},
}
Needs = Mapping[Release, Mapping[str, tuple[Need, ...]]]


class Served:
    """An index that has everything but what is named."""

    def __init__(self, *missing: str) -> None:
        self.missing = missing

    def serves(self, release: Release) -> bool | None:
        return release.name not in self.missing


def asked(
    chosen: dict[str, str], needs: dict[str, tuple[str, ...]], *missing: str, complete: bool = True,
    sources: Mapping[str, Source] | None = None, current: Mapping[str, str] | None = None,
) -> Question:  # fmt: skip
    picked = {name: Release(name, version, source=(sources or {}).get(name)) for name, version in chosen.items()}
    there = {name: Release(name, version) for name, version in (chosen if current is None else current).items()}
    problem = Problem(Environment(distributions_complete=complete), TARGET, there)
    wanted: Needs = {picked[name]: {"": tuple(map(need, texts))} for name, texts in needs.items()}
    return question(problem, picked, wanted, Served(*missing))


def test_everything_is_pinned() -> None:
    found = asked({"a": "2.0", "b": "2.0"}, {"a": ("b>=2",)})
    assert found.lines() == ["a==2.0", "b==2.0"]
    assert found.overrides() == []


def test_what_was_broken_before_is_not_asked_about() -> None:
    found = asked({"a": "2.0", "b": "1.0"}, {"a": ("b>=2", "missing>=1")})
    assert found.lines() == ["a==2.0", "b==1.0"]
    assert found.overrides() == ["b==1.0", "missing ; python_version < '0'"]


@pytest.mark.parametrize("source", [None, Source("vcs", {"url": "https://git.example/own"})])
def test_what_no_index_has_is_left_out_and_what_it_needs_is_asked(source: Source | None) -> None:
    missing = () if source else ("own",)
    found = asked({"own": "1.0", "b": "2.0"}, {"own": ("b>=2",)}, *missing, sources={"own": source} if source else None)
    assert found.lines() == ["b==2.0", "b>=2"]
    assert found.overrides() == ["own ; python_version < '0'"]


def test_what_comes_along_is_the_newest_that_all_take() -> None:
    problem = Problem(Environment(), TARGET, {"a": Release("a", "1.0")})
    opened = {name: tuple(Release(name, version) for version in ("1.0", "2.0", "3.0")) for name in ("b", "c", "d")}
    chosen = {"a": Release("a", "2.0"), "b": Release("b", "2.0"), "c": Release("c", "2.0"), "d": Release("d", "3.0")}
    needs = {chosen["a"]: {"": (need("b<3"), need("c"))}}
    assert brought_along(problem, chosen, needs, opened) == {"b"}  # an older c was chosen, and nobody needs d
    newest = {opened["c"][-1]: {"": (need("b>=3"),)}}
    assert brought_along(problem, chosen, {**needs, **newest}, opened) == {"b", "c"}  # an installer cannot take c 3.0 either


def test_what_only_the_torch_before_required_goes_with_it() -> None:
    """The libraries of its CUDA, also where one of them requires another; not those of a release that nobody asked torch for."""
    names = ("nvidia-cublas-cu11", "nvidia-cusparse-cu12", "nvidia-nvjitlink-cu12", "nvidia-ml-py", "nvidia-cudnn-cu11")
    current = {name: Release(name, "1.0") for name in (*names, "torch", "monitor", "sympy")}
    new = Release("torch", "2.0")
    needs = {
        current["torch"]: {
            "": tuple(map(need, ("nvidia-cublas-cu11==1.0", "nvidia-cusparse-cu12==1.0", "nvidia-ml-py", "nvidia-cudnn-cu11==0.9", "sympy")))
        },
        current["nvidia-cusparse-cu12"]: {"": (need("nvidia-nvjitlink-cu12"),)},
        current["monitor"]: {"": (need("nvidia-ml-py"),)},
        new: {"": (need("nvidia-cublas-cu12"),)},
    }  # fmt: skip
    problem = Problem(Environment(), TARGET, current, direct=frozenset(current))
    gone = {"nvidia-cublas-cu11", "nvidia-cusparse-cu12", "nvidia-nvjitlink-cu12"}
    assert replaced_libraries(problem, current | {"torch": new}, needs) == gone
    assert replaced_libraries(problem, current, needs) == frozenset()
    kept = replace(problem, keep=(need("nvidia-cublas-cu11"),))
    assert replaced_libraries(kept, current | {"torch": new}, needs) == gone - {"nvidia-cublas-cu11"}


def checked(packages: Question, *, offline: bool = False, **options: object) -> tuple[bool | None, str]:
    with IndexServer(PACKAGES, **options) as server:  # type: ignore[arg-type]
        settings = Settings(sources=(IndexSource(server.url),), retries=0)
        answer = accepted_by_uv(packages, TARGET, settings, offline=offline)
        assert not any("setuptools" in path for path in server.requests)
    return answer


@pytest.fixture
def uv_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    if verify.uv_binary() is None:
        pytest.skip("uv is not installed")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path_factory.mktemp("uv")))


@pytest.mark.usefixtures("uv_cache")
@pytest.mark.parametrize(
    ("packages", "accepted", "why"),
    [
        (Question({"a": "2.0", "b": "2.0"}), True, ""),
        (Question({"a": "2.0", "b": "1.0"}), False, "depends on b>=2"),
        (Question({"a": "2.0", "b": "1.0"}, loose=frozenset({"b"})), True, ""),
        (Question({"a": "2.0"}), False, "uv also requires b"),
        (Question({"a": "2.0"}, without=frozenset({"b"})), True, ""),
        (Question({"a": "9.0", "b": "2.0"}), False, "no version of a==9.0"),
        (Question({"own": "1.0"}), False, "own==1.0 has no usable wheels"),
        (Question({"user": "1.0", "b": "1.0"}, without=frozenset({"own"})), True, ""),
        (Question({"b": "1.0"}, requires=("b>=2",)), False, "b>=2"),
    ],
)
def test_what_uv_says(packages: Question, accepted: bool, why: str) -> None:
    found, said = checked(packages)
    assert (found, why in said) == (accepted, True), said


@pytest.mark.usefixtures("uv_cache")
def test_a_requirement_of_early_builds_of_a_python_is_no_requirement_of_its_releases() -> None:
    """uv reads the bound as 3.11.0, the first patch release, which stands for all of 3.11."""
    marked = {"coverage": {"1.0": {"requires": ["tomli; python_full_version <= '3.11.0a6'"]}}, "tomli": {"1.0": {}}}
    for python, accepted in (("3.11", True), ("3.11.0", True), ("3.10", False)):
        with IndexServer(marked) as server:
            settings = Settings(sources=(IndexSource(server.url),), retries=0)
            target = Target(Environment(python=python, os="linux", machine="x86_64"))
            assert accepted_by_uv(Question({"coverage": "1.0"}), target, settings)[0] is accepted


@pytest.mark.usefixtures("uv_cache")
def test_an_index_that_does_not_answer_is_no_refusal() -> None:
    assert checked(Question({"a": "2.0", "b": "2.0"}), faults={"*": "500"})[0] is None
    accepted, why = checked(Question({"a": "2.0", "b": "2.0"}), offline=True)
    assert accepted is None
    assert "with only its own cache" in why


@pytest.mark.usefixtures("uv_cache")
@pytest.mark.parametrize(
    ("packages", "fault", "installs", "why"),
    [
        (Question({"a": "2.0", "b": "2.0"}), {}, True, ""),
        (Question({"a": "2.0", "b": "1.0"}), {}, False, "depends on b>=2"),
        (Question({"own": "1.0"}), {}, False, "own==1.0 has no usable wheels"),
        (Question({"a": "2.0", "b": "2.0"}), {"a": "500"}, None, "500"),
    ],
)
def test_a_dry_run_of_an_installation(packages: Question, fault: dict[str, str], installs: bool | None, why: str) -> None:
    with IndexServer(PACKAGES, faults=fault) as server:
        found, said = installable_by_uv(packages, TARGET, Settings(sources=(IndexSource(server.url),), retries=0))
        assert (found, why in said) == (installs, True), said
    assert Verified(rules=True, uv=True, why=said, installs=found).stands is (installs is not False)


@pytest.mark.usefixtures("uv_cache")
def test_a_dry_run_sees_what_is_installed(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    with IndexServer(PACKAGES) as server:
        settings = Settings(sources=(IndexSource(server.url),), retries=0)
        assert installable_by_uv(Question({"b": "2.0"}), TARGET, settings, python=python) == (True, "")
    assert not list(tmp_path.glob("venv/lib/*/site-packages/b*"))


@pytest.mark.usefixtures("uv_cache")
def test_a_pin_of_another_index_is_looked_for_there() -> None:
    wheel = {"a": {"2.0+cu128": {}}}
    with IndexServer(PACKAGES) as server, IndexServer(wheel, root="cu128") as vendor:
        settings = Settings(sources=(IndexSource(server.url),), retries=0)
        assert accepted_by_uv(Question({"a": "2.0+cu128"}), TARGET, settings)[0] is False
        assert accepted_by_uv(Question({"a": "2.0+cu128"}, indexes=(vendor.url,)), TARGET, settings) == (True, "")


@pytest.mark.usefixtures("uv_cache")
def test_a_list_resolves_without_what_has_no_wheel_however_it_is_required() -> None:
    """Named without a version, by a pin or by a range, by the list or by another package; as many as there are."""
    source = {"wheel": False, "dynamic": True}
    built = {f"built{number}": {"1.0": source, "1.1": source} for number in range(8)}
    needy = {"needy": {"1.0": {"requires": ["built6>=1,<2", "built7[extra]>=1.1", "b"]}}}
    asked = ("built0", "built1>=1", "built2<1.1", "built3~=1.0", "built4>0.5,!=1.0", "needy")
    with IndexServer({**PACKAGES, **built, **needy}) as server:
        settings = Settings(sources=(IndexSource(server.url),), retries=0)
        found = resolved_by_uv(Question({"built5": "1.0"}, requires=asked), TARGET, settings)
    assert found == Resolved({"b": "2.0", "needy": "1.0"}, frozenset(built))


def test_without_uv_it_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "uv_binary", lambda: None)
    accepted, why = accepted_by_uv(Question({"a": "1.0"}), TARGET, Settings())
    assert accepted is None
    assert "uv was not found" in why
    assert Verified(rules=True, uv=accepted, why=why).stands


def test_a_uv_that_cannot_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "uv_binary", lambda: "/nowhere/uv")
    assert accepted_by_uv(Question({"a": "1.0"}), TARGET, Settings())[0] is None


@pytest.mark.parametrize(
    ("rules", "uv", "stands"), [(True, True, True), (True, None, True), (True, False, False), (False, True, False)]
)
def test_a_plan_stands_where_nobody_refuses_it(rules: bool, uv: bool | None, stands: bool) -> None:
    assert Verified(rules, uv).stands is stands


def test_uv_is_reached_as_the_index_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UV_INDEX", "https://elsewhere.example/simple")
    monkeypatch.setenv("UV_CONSTRAINT", "constraints.txt")
    monkeypatch.setenv("UV_CACHE_DIR", "cache")
    settings = Settings(
        sources=(
            IndexSource("https://links.example/", flat=True), IndexSource("https://one.example/simple"),
            IndexSource("https://two.example/simple", explicit=True), IndexSource("https://index.example/simple"),
        ),
        credentials={"https://one.example": Credentials("user", "secret")}, certificates="ca.pem", proxy="http://proxy:1",
        trusted=("two.example",),
    )  # fmt: skip
    words, variables = verify._indexes(settings), verify._variables(settings)
    assert words == [
        "--find-links", "https://links.example/", "--index", "compat1=https://one.example/simple", "--index",
        "compat2=https://two.example/simple", "--default-index", "compat3=https://index.example/simple",
        "--index-strategy", "unsafe-best-match", "--allow-insecure-host", "two.example",
    ]  # fmt: skip
    assert not any("secret" in word for word in words)
    assert {name: text for name, text in variables.items() if name.startswith("UV_")} == {
        "UV_CACHE_DIR": "cache", "UV_INDEX_COMPAT1_USERNAME": "user", "UV_INDEX_COMPAT1_PASSWORD": "secret",
        "UV_HTTP_TIMEOUT": "15", "UV_HTTP_RETRIES": "3",
    }  # fmt: skip
    assert (variables["SSL_CERT_FILE"], variables["HTTPS_PROXY"]) == ("ca.pem", "http://proxy:1")
    assert verify._indexes(Settings(sources=())) == ["--no-index"]
    assert verify._access(settings, str(tmp_path), offline=True) == ["--offline", "--no-config", *words]
    online = verify._access(settings, str(tmp_path), offline=False)
    assert online == ["--config-file", str(tmp_path / "uv.toml"), *words[:2], *words[-4:]]
    text = (tmp_path / "uv.toml").read_text()
    assert re.findall(r'name = "(\w+)"\n.*\ndefault = (\w+)', text) == [
        ("compat1", "false"),
        ("compat2", "false"),
        ("compat3", "true"),
    ]
    assert text.count('cache-control = { api = "max-age=600"') == 3
    assert "secret" not in text
