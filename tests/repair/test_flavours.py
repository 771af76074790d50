"""torch's builds for other CUDAs as candidates: which there are, what they need, and what must be of the same one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from compat.index import Index, Settings, Store
from compat.index.settings import Source as IndexSource
from compat.model import Accelerator, Distribution, Environment, Source
from compat.records import replace
from compat.repair.builds import Flavours
from compat.repair.candidates import IndexUniverse, Release
from compat.repair.relaxation import Forbidden
from compat.repair.source_builds import Variants
from compat.tables.builds import open_code_tables
from compat.tables.declared import Declared
from tests.index.server import IndexServer
from tests.repair.worlds import TARGET, need

GPU = Environment(os="linux", machine="x86_64", accelerators=(Accelerator(vendor="nvidia", compute_capability="12.0"),))
PACKAGES = {
    "torch": {"2.7.1": {"requires": ["triton==3.3.1", "nvidia-cudnn-cu12==9.5.1.17"]}},
    "torchvision": {"0.22.1": {"requires": ["torch==2.7.1"]}},
}
VENDOR = {"torch": {"2.7.1+cu128": {"requires": ["triton==3.3.1", "nvidia-cudnn-cu12==9.7.1.26"]}}}


@contextmanager
def flavours(
    environment: Environment, current: dict[str, str], address: str = "http://127.0.0.1:9", *, hashed: bool = False
) -> Iterator[Flavours]:  # fmt: skip
    with IndexServer(PACKAGES) as server:
        index = Index(Settings(sources=(IndexSource(server.url),), retries=0), Store(":memory:"))
        there = {name: Release(name, version) for name, version in current.items()}
        base = IndexUniverse(index, TARGET)
        yield Flavours(environment, there, open_code_tables(), Declared(), base, index, address, hashed=hashed)
        index.close()


def versions(found: Flavours, name: str, *known: str) -> list[str]:
    return [each.version for each in found.of(name, [Release(name, version) for version in known])]


def test_the_builds_are_those_that_the_matrix_knows() -> None:
    with flavours(GPU, {"torch": "2.7.1"}) as found:
        assert versions(found, "torch", "2.7.1") == ["2.7.1+cu118", "2.7.1+cu128"]  # the ordinary index has cu126
        assert versions(found, "torchvision", "0.22.1", "0.0.1") == ["0.22.1+cu118", "0.22.1+cu128"]
        assert versions(found, "torch", "2.7.1+cu126", "99.0") == []
        assert versions(found, "transformers", "4.57.1") == []
        (release, *_) = found.of("torch", [Release("torch", "2.7.1", "2025-06-04")])
        assert release.source is not None
        assert release.source.details["url"] == "http://127.0.0.1:9/cu118"
        assert (release.day, release.built) == ("2025-06-04", False)


def test_the_index_of_the_default_build_is_beside_the_one_that_is_used_now() -> None:
    release, mirror = Release("torch", "2.8.0"), Source("index", {"url": "https://mirror.example/whl/cu124/"})
    with flavours(GPU, {"torch": "2.4.0"}) as found:
        assert found.default_index(release, None) == "http://127.0.0.1:9/cu128"
        assert found.default_index(release, mirror) == "https://mirror.example/whl/cu128"
        assert found.default_index(Release("xformers", "0.0.32.post1"), mirror) is None
    with flavours(replace(GPU, accelerators=()), {"torch": "2.4.0"}) as found:
        assert found.default_index(release, mirror) is None


def test_beside_another_build_of_the_release_the_default_one_has_its_label() -> None:
    with flavours(GPU, {"torch": "2.7.1+cu118"}) as found:
        assert versions(found, "torch", "2.7.1", "2.7.0") == ["2.7.1+cu126", "2.7.1+cu128", "2.7.0+cu118", "2.7.0+cu128"]


def test_on_windows_the_ordinary_index_has_builds_for_the_cpu() -> None:
    with flavours(Environment(os="windows", driver="570.86"), {"torch": "2.7.1"}) as found:
        assert versions(found, "torch", "2.7.1") == ["2.7.1+cu118", "2.7.1+cu126", "2.7.1+cu128"]
        assert found.default_index(Release("torch", "2.8.0"), None) is None


@pytest.mark.parametrize(
    "environment",
    [Environment(os="linux"), Environment(os="windows"), Environment(os="windows", accelerators=(Accelerator(vendor="amd"),))],
)  # fmt: skip
def test_where_no_nvidia_gpu_is_known_there_are_none(environment: Environment) -> None:
    with flavours(environment, {"torch": "2.7.1"}) as found:
        assert versions(found, "torch", "2.7.1") == []


@pytest.mark.parametrize(
    ("version", "url", "label"),
    [
        ("2.7.1+cu128", "", "cu128"),
        ("2.7.1", "https://download.pytorch.org/whl/cu128", "cu128"),
        ("2.7.1", "", ""),
        ("2.7.0+cu128", "", ""),  # torchvision 0.22.1 is for another torch
    ],
)
def test_what_goes_with_the_installed_torch_is_on_its_index(version: str, url: str, label: str) -> None:
    """Without a GPU as well: the build shows that there is one, and torchvision was released with it for each CUDA."""
    source = Source("index", {"url": url}) if url else Source("index", {})
    torch = Distribution("torch", version, source=source)
    environment = Environment(os="linux", machine="x86_64", distributions=(torch,))
    current = {"torch": version, "torchvision": "0.23.0"}
    with flavours(environment, current) as found:
        assert versions(found, "torch", "2.7.1") == []
        assert versions(found, "torchvision", "0.22.1", "0.23.0") == ([f"0.22.1+{label}"] if label else [])
        release = Release("torchvision", "0.22.1+cu128")
        assert found.needs(release) == ({"": (need("torch==2.7.1"),)} if label else None)
        known = {"torch": (Release("torch", version),), "torchvision": (Release("torchvision", "0.22.1"), release)}
        apart = {combination for rule in found.forbidden(known) for combination in rule.together}
        assert not (label and ("torchvision", frozenset({release.version})) in apart)


def test_for_an_amd_gpu_there_is_the_build_for_rocm() -> None:
    """No other index has one, so that it is assumed where this one cannot be reached."""
    amd = Environment(os="linux", machine="x86_64", accelerators=(Accelerator(vendor="amd", gfx="gfx942"),))
    with flavours(amd, {"torch": "2.7.1"}) as found:
        assert versions(found, "torch", "2.7.1", "1.0") == ["2.7.1+rocm6.3"]
        assert versions(found, "torchvision", "0.22.1") == ["0.22.1+rocm6.3"]
        (release,) = found.of("torch", [Release("torch", "2.7.1")])
        assert release.source is not None
        assert release.source.details["url"] == "http://127.0.0.1:9/rocm6.3"
        assert found.needs(release) == {"": ()}  # neither CUDA's libraries nor triton
        assert "without its CUDA libraries" in found.assumed[release]
        assert found.default_index(Release("torch", "2.8.0"), None) is None
    newer = replace(amd, accelerators=(Accelerator(vendor="amd", gfx="gfx950"),))  # of which ROCm 6.3 knows nothing
    for none in (newer, replace(amd, machine="aarch64")):
        with flavours(none, {"torch": "2.7.1"}) as found:
            assert versions(found, "torch", "2.7.1") == []


def test_an_old_release_of_an_extension_whose_code_is_unknown_fixes_nothing() -> None:
    """vLLM 0.2.0 is the first of which the code is known, and the installed one may stay."""
    old = tuple(Release("vllm", each) for each in ("0.1.0", "0.1.7", "0.2.0", "0.10.2"))
    with flavours(GPU, {"vllm": "0.1.0"}) as found:
        kept = [each.together for each in found.forbidden({"vllm": old}) if dict(each.together).keys() == {"vllm"}]
    assert kept == [(("vllm", frozenset({"0.1.7"})),)]
    with flavours(Environment(os="linux"), {}) as found:
        assert list(found.forbidden({"vllm": old})) == []


def test_what_a_build_needs_is_what_its_index_says() -> None:
    with IndexServer(VENDOR, root="cu128") as vendor, flavours(GPU, {}, vendor.url.removesuffix("/cu128")) as found:
        needs = found.needs(Release("torch", "2.7.1+cu128"))
        assert needs is not None
        assert needs[""] == (need("triton==3.3.1"), need("nvidia-cudnn-cu12==9.7.1.26"))
        assert found.needs(Release("torch", "2.7.0+cu128")) is None  # read, and not there
        assert found.served(Release("torch", "2.7.1+cu128"))
        assert not found.served(Release("torch", "2.7.0+cu128"))
        assert found.narrowed == {}


def test_an_index_that_cannot_be_reached_narrows_the_plan() -> None:
    """With or without pinned CUDA libraries: nothing is taken for granted about a build that could not be installed."""
    release = Release("torch", "2.7.1+cu128")
    for current in ({"torch": "2.7.1"}, {"torch": "2.7.1", "nvidia-cudnn-cu12": "9.5.1.17"}):
        with flavours(GPU, current) as found:
            assert found.needs(release) is None
            assert found.needs(Release("torch", "2.7.1+cu118")) is None
            assert len(found.narrowed) == 1  # once, whatever builds it has
            assert not found.served(release)


def test_on_windows_a_build_is_assumed_whose_index_cannot_be_reached() -> None:
    """No other index has a build for a GPU there, so that without it there would be no plan at all."""
    with flavours(Environment(os="windows", driver="570.86"), {}) as found:
        release = Release("torch", "2.7.1+cu128")
        assert found.needs(release) is not None
        assert "without its CUDA libraries" in found.assumed[release]
        assert len(found.narrowed) == 1


@pytest.mark.parametrize("hashed", [False, True])
def test_a_build_without_hashes_is_not_assumed_where_they_are_required(hashed: bool) -> None:
    with flavours(GPU, {"torch": "2.7.1+cu126"}, hashed=hashed) as found:
        assert (found.needs(Release("torch", "2.7.1+cu128")) is None) is hashed


def test_what_one_build_shows_about_a_server_holds_for_all_that_come_from_it() -> None:
    """One that is looked up for each of fifty builds would take fifty models."""
    for now, lost in (("2.7.1", {"2.7.1+cu128", "2.7.1+cu118"}), ("2.7.1+cu126", set())):
        with flavours(GPU, {"torch": now}) as found:
            variants = Variants(found._base, found)
            (known, *_) = variants.releases(["torch"]).values()
            (other, *_) = (each for each in known or () if each.version == "2.7.1+cu128")
            needs = variants.needs([other])
            assert {each.version for each, read in needs.items() if read is None} == lost


def test_another_build_of_an_installed_one_comes_from_the_same_index() -> None:
    """The installed build shows that its index can be reached from where it is installed, so the plan does not leave the release."""
    other = Release("torch", "2.7.1+cu118")
    with flavours(GPU, {"torch": "2.7.1+cu128"}) as found:
        assert found.needs(other) == {"": (need("triton==3.3.1"),)}
        assert "without its CUDA libraries" in found.assumed[other]
        assert found.needs(Release("torch", "2.7.0+cu118")) is None
        origin = found.origin(Release("torch", "2.7.1+cu128"))
        assert origin is not None
        assert origin.details["url"] == "http://127.0.0.1:9/cu128"
        assert found.origin(Release("torch", "2.7.1")) is None


def together(found: Flavours, **known: tuple[str, ...]) -> set[tuple[str, str]]:
    """The pairs (torch, torchvision) that must not be together."""
    releases = {name: tuple(Release(name, each) for each in several) for name, several in known.items()}
    pairs = set()
    for each in found.forbidden(releases):
        assert isinstance(each, Forbidden)
        assert each.level == ""
        of = dict(each.together)
        pairs |= {(torch, vision) for torch in of["torch"] for vision in of["torchvision"]}
    return pairs


def test_torch_and_torchvision_are_of_one_index() -> None:
    torch, vision = ("2.7.1", "2.7.1+cu118", "2.7.1+cu128"), ("0.22.1", "0.22.1+cu118", "0.22.1+cu128")
    with flavours(GPU, {"torch": "2.7.1", "torchvision": "0.22.1"}) as found:
        pairs = together(found, torch=torch, torchvision=vision)
    every = {(one, other) for one in torch for other in vision}
    assert every - pairs == {("2.7.1", "0.22.1"), ("2.7.1+cu118", "0.22.1+cu118"), ("2.7.1+cu128", "0.22.1+cu128")}


def test_the_label_of_the_default_build_and_no_label_are_the_same() -> None:
    with flavours(GPU, {"torch": "2.7.1+cu126", "torchvision": "0.22.1"}) as found:
        assert ("2.7.1+cu126", "0.22.1") not in together(found, torch=("2.7.1+cu126",), torchvision=("0.22.1", "0.22.1+cu128"))


def test_a_torch_that_nothing_is_known_about_is_no_candidate_for_a_gpu() -> None:
    known = {"torch": tuple(Release("torch", version) for version in ("1.10.0", "1.11.0", "1.12.0", "2.7.1"))}

    def refused(environment: Environment, current: str) -> set[str]:
        with flavours(environment, {"torch": current}) as found:
            hard = [dict(each.together)["torch"] for each in found.forbidden(known) if each.level == ""]
        return set().union(*hard)

    assert refused(GPU, "2.7.1") == {"1.10.0", "1.11.0"}
    assert refused(GPU, "1.10.0") == {"1.11.0"}
    assert refused(replace(GPU, accelerators=()), "2.7.1") == set()


def test_what_is_installed_may_stay_as_it_is() -> None:
    with flavours(GPU, {"torch": "2.7.1+cu118", "torchvision": "0.22.1+cu128"}) as found:
        pairs = together(found, torch=("2.7.1+cu118", "2.7.1+cu128"), torchvision=("0.22.1+cu118", "0.22.1+cu128"))
    assert ("2.7.1+cu118", "0.22.1+cu128") not in pairs
    assert ("2.7.1+cu128", "0.22.1+cu118") in pairs
