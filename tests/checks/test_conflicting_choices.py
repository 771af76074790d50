"""Extras that dependencies ask for, and sets of choices that uv refuses because of a declared conflict."""

from __future__ import annotations

from compat.checks.choices import Requested
from compat.checks.contexts import Contexts
from compat.checks.selections import judged_listing
from compat.formats.listing import ROOT, Choice, Edge, Entry, Listing
from compat.formats.locks.uv import UvLock
from compat.model import Accelerator, Distribution, Environment, Source
from compat.rules.compiled import in_memory

CPU, GPU = "extra == 'extra-3-kit-cpu'", "extra == 'extra-3-kit-gpu'"
LOCK = f"""
version = 1
conflicts = [[{{ package = "kit", extra = "cpu" }}, {{ package = "kit", extra = "gpu" }}]]

[manifest]
members = ["kit", "mine"]

[[package]]
name = "kit"
version = "2"
source = {{ editable = "kit" }}

[package.optional-dependencies]
cpu = [{{ name = "torch", version = "2.6.0+cpu", marker = "{CPU}" }}]
gpu = [{{ name = "torch", version = "2.6.0+cu124", marker = "{GPU}" }}]

[[package]]
name = "mine"
version = "1"
source = {{ virtual = "." }}
dependencies = [{{ name = "shared" }}]

[package.optional-dependencies]
slow = [{{ name = "kit", extra = ["cpu"], marker = "{CPU}" }}]
fast = [{{ name = "kit", extra = ["gpu"], marker = "sys_platform == 'linux'" }}]
gpu = [{{ name = "shared" }}]

[[package]]
name = "shared"
version = "3"
source = {{ registry = "https://index.example" }}
dependencies = [
    {{ name = "old", marker = "{CPU}" }},
    {{ name = "new", marker = "extra != 'extra-3-kit-cpu'" }},
]

[[package]]
name = "old"
version = "1"
source = {{ registry = "https://index.example" }}

[[package]]
name = "new"
version = "2"
source = {{ registry = "https://index.example" }}

[[package]]
name = "torch"
version = "2.6.0+cpu"
source = {{ registry = "https://index.example" }}

[[package]]
name = "torch"
version = "2.6.0+cu124"
source = {{ registry = "https://index.example" }}
"""


def read(text: str = LOCK) -> Listing:
    (listing,) = UvLock().read("uv.lock", text)
    return listing


def installed(*extras: str, os: str = "linux") -> tuple[set[str], list[str]]:
    listing = read()
    contexts = Contexts(listing, Environment(os=os, machine="x86_64", python="3.11"), Requested(extras or ("none",), ("none",)))
    assert len(contexts.sets) == 1
    pairs = zip(listing.entries, contexts.installed())
    return {f"{entry.distribution.name} {entry.distribution.version}" for entry, mask in pairs if mask}, contexts.notes


def tried(listing: Listing, os: str | None = None) -> list[set[str]]:
    contexts = Contexts(listing, Environment(os=os), Requested())
    return [
        {
            f"{each.package}[{each.name}]" if each.kind != "package" else each.name
            for each in map(listing.choices.__getitem__, one)
        }
        for one in (chosen.numbers for chosen in contexts.sets)
    ]


def test_an_extra_that_a_dependency_asks_for_is_active_everywhere() -> None:
    assert installed() == ({"mine 1", "shared 3", "new 2"}, [])
    assert installed("slow") == ({"mine 1", "shared 3", "old 1", "kit 2", "torch 2.6.0+cpu"}, [])
    assert installed("fast") == ({"mine 1", "shared 3", "new 2", "kit 2", "torch 2.6.0+cu124"}, [])
    assert installed("fast", os="darwin") == ({"mine 1", "shared 3", "new 2"}, [])


def test_without_a_conflict_in_the_lock_only_what_is_chosen_counts() -> None:
    text = "".join(line for line in LOCK.splitlines(keepends=True) if not line.startswith("conflicts"))
    listing = read(text)
    contexts = Contexts(listing, Environment(os="linux"), Requested(("slow",)))
    kit = next(at for at, entry in enumerate(listing.entries) if entry.distribution.name == "kit")
    assert not contexts.installed()[kit]


def test_what_is_asked_for_and_refused_is_installed_as_asked_and_noted() -> None:
    releases, notes = installed("slow", "fast")
    assert {"torch 2.6.0+cpu", "torch 2.6.0+cu124"} <= releases
    assert notes == [
        "uv.lock: uv does not install these together (declared conflicts): extra kit[cpu], extra kit[gpu]",
    ]
    assert installed("slow", "fast", os="darwin")[1] == []


def test_no_set_has_extras_that_bring_a_conflict() -> None:
    sets = tried(read(), "linux")
    for one, other in (("slow", "fast"), ("slow", "gpu")):  # uv's --extra gpu is that of kit as well
        assert not any({f"mine[{one}]", f"mine[{other}]"} <= each for each in sets), (one, other)
    for name in ("slow", "fast", "gpu"):
        assert any(f"mine[{name}]" in each for each in sets), name
    assert any({"mine[fast]", "mine[gpu]"} <= each for each in sets)
    assert any({"mine[slow]", "mine[fast]"} <= each for each in tried(read(), "darwin"))


def test_worlds_in_which_a_set_is_refused_are_none() -> None:
    listing = read()
    contexts = Contexts(listing, Environment(python="3.11"), Requested(("slow", "fast")))
    assert {place.os for place in contexts.platforms_of(contexts.all)} == {"darwin", "windows"}


def test_an_extra_of_the_same_name_counts_where_its_package_is_installed() -> None:
    text = LOCK.replace('extra = "cpu" }', 'extra = "cpu" }, { package = "mine", extra = "gpu" }', 1)
    sets = tried(read(text), "linux")
    assert not any({"kit", "mine[gpu]"} <= each for each in sets)
    assert any("mine[gpu]" in each for each in sets)


def test_forks_of_the_resolution_limit_platforms_only() -> None:
    text = LOCK.replace(
        "[manifest]", """resolution-markers = ["sys_platform == 'linux' and extra == 'extra-3-kit-cpu'"]\n[manifest]"""
    )
    listing = read(text)
    assert Contexts(listing, Environment(os="linux"), Requested()).notes == []
    assert Contexts(listing, Environment(os="windows"), Requested()).notes == ["uv.lock does not support the target's platform"]


# --- A build of torch that does not fit the target, where a conflicting extra has one that does.


def builds(*versions: str) -> Listing:
    """A lock whose extras are in conflict and install one build of torch each."""
    entries = tuple(Entry(Distribution("torch", each, source=Source("index", {})), at) for at, each in enumerate(versions))
    edges = tuple(Edge(ROOT, at, None, at) for at in range(len(versions)))
    choices = tuple(Choice("extra", each.partition("+")[2] or "plain") for each in versions)
    conflicts = (tuple(range(len(versions))),)
    return Listing("uv.lock", "uv.lock", entries, edges, choices, conflicts, complete=True)


def about_torch(listing: Listing, *gpus: Accelerator, extras: tuple[str, ...] | None = None) -> list[tuple[str, str, object]]:
    known = Environment(python="3.12", os="linux", machine="x86_64", accelerators=gpus)
    found, _ = judged_listing(listing, known, in_memory([]), Requested(extras))
    return [(each.rule, each.verdict, each.unknown) for each in found if each.rule.startswith("build-torch-")]


T4 = Accelerator("nvidia", "T4", compute_capability="7.5")
B200 = Accelerator("nvidia", "B200", compute_capability="10.0")
MI300X = Accelerator("amd", "MI300X", gfx="gfx942")


def test_an_extra_for_another_machine_is_no_error_if_there_is_one_for_this() -> None:
    assert about_torch(builds("2.9.1+cpu", "2.9.1+cu128"), T4) == [("build-torch-cpu-only", "possible", ("extras",))]
    assert about_torch(builds("2.8.0+cu126", "2.8.0+cu128"), B200) == [("build-torch-gpu", "possible", ("extras",))]


def test_an_extra_that_is_asked_for_is_judged() -> None:
    found = about_torch(builds("2.9.1+cpu", "2.9.1+cu128"), T4, extras=("cpu",))
    assert found == [("build-torch-cpu-only", "hit", ())]


def test_an_error_without_a_build_that_fits_stays() -> None:
    assert ("build-torch-vendor", "hit", ()) in about_torch(builds("2.9.1+cpu", "2.9.1+cu128"), MI300X)
    found = about_torch(builds("2.5.1+cu124", "2.9.1+cu128"), B200)  # another release of torch, for other packages
    assert found == [("build-torch-gpu", "hit", ())]


ROCM = """
version = 1
requires-python = "==3.12.*"
conflicts = [[{ package = "mine", group = "cuda" }, { package = "mine", group = "rocm" }]]

[manifest]
members = ["mine"]

[[package]]
name = "mine"
version = "1"
source = { virtual = "." }
dependencies = [{ name = "torch", version = "2.10.0" }]

[package.dev-dependencies]
cuda = [{ name = "nvidia-nccl-cu12" }]
plots = [{ name = "shared" }]
rocm = [
    { name = "torchaudio", version = "2.9.0+eaa9e4e", source = { registry = "https://index.example/rocm/" } },
    { name = "vllm", version = "0.22.0+rocm722", source = { registry = "https://index.example/rocm/" } },
]

[[package]]
name = "torch"
version = "2.10.0"
source = { registry = "https://index.example" }

[[package]]
name = "nvidia-nccl-cu12"
version = "2.27.5"
source = { registry = "https://index.example" }

[[package]]
name = "shared"
version = "3"
source = { registry = "https://index.example" }

[[package]]
name = "torchaudio"
version = "2.9.0+eaa9e4e"
source = { registry = "https://index.example/rocm/" }

[[package]]
name = "vllm"
version = "0.22.0+rocm722"
source = { registry = "https://index.example/rocm/" }
"""


def left_out(vendor: str, *groups: str) -> tuple[set[str], list[str]]:
    asked = Requested(groups=groups or None)
    contexts = Contexts(read(ROCM), Environment(accelerators=(Accelerator(vendor),)), asked)
    return {each.label for each in contexts.left_out}, [chosen.label for chosen in contexts.sets]


def test_groups_for_another_vendors_gpus_are_not_checked() -> None:
    assert left_out("nvidia") == ({"group rocm"}, ["", "group cuda", "group plots", "everything but group rocm"])
    assert left_out("amd")[0] == set()  # the default set is for NVIDIA's as well: a finding says so
    found, notes = judged_listing(read(ROCM), Environment(accelerators=(Accelerator("nvidia", "V100"),)), in_memory(()))
    assert [each.title for each in found if "torchaudio" in each.packages] == []
    assert "uv.lock: not checked, as it has builds for another vendor's GPUs: group rocm" in notes


def test_a_group_that_is_asked_for_is_checked_whatever_it_is_for() -> None:
    assert left_out("nvidia", "rocm")[0] == set()
    found, _ = judged_listing(
        read(ROCM), Environment(accelerators=(Accelerator("nvidia", "V100"),)), in_memory(()), Requested(groups=("rocm",))
    )
    assert any("torchaudio" in each.packages for each in found)
