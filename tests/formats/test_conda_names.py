"""conda's names, platforms, selectors and builds."""

from __future__ import annotations

import pytest
from packaging.markers import Marker

from compat.formats.conda_lock import platform_marker, selector_marker
from compat.formats.conda_spec import cuda_of, distribution_name, pip_source, split_artefact


@pytest.mark.parametrize(
    ("conda", "name"),
    [
        ("pytorch", "torch"),
        ("PyTorch", "torch"),
        ("pytorch-lightning", "pytorch-lightning"),
        ("pytorch-cuda", "pytorch-cuda"),
        ("msgpack-python", "msgpack-python"),
        ("huggingface_hub", "huggingface-hub"),
    ],
)
def test_distributions_that_rules_ask_about_have_the_name_pip_gives_them(conda: str, name: str) -> None:
    assert distribution_name(conda) == name


@pytest.mark.parametrize(
    ("platform", "system", "machine"),
    [
        ("linux-64", "linux", "x86_64"),
        ("linux-aarch64", "linux", "aarch64"),
        ("linux-ppc64le", "linux", "ppc64le"),
        ("osx-64", "darwin", "x86_64"),
        ("osx-arm64", "darwin", "arm64"),
        ("win-64", "win32", "AMD64"),
        ("win-64", "win32", "x86_64"),
        ("win-arm64", "win32", "ARM64"),
    ],
)
def test_a_platform_is_a_marker_for_it_and_no_other(platform: str, system: str, machine: str) -> None:
    text = platform_marker(platform)
    assert text is not None
    marker = Marker(text)
    assert marker.evaluate({"sys_platform": system, "platform_machine": machine})
    for other in {"linux", "darwin", "win32"} - {system}:
        assert not marker.evaluate({"sys_platform": other, "platform_machine": machine})
    assert not marker.evaluate({"sys_platform": system, "platform_machine": "riscv64"})


def test_noarch_is_every_platform_and_nonsense_is_none() -> None:
    assert platform_marker("noarch") is None
    for text in ("linux", "linux-", "-64", "linux-64'", "linux 64", ""):
        with pytest.raises(ValueError, match="is not a platform"):
            platform_marker(text)


@pytest.mark.parametrize(
    ("comment", "systems"),
    [
        (" [linux]", {"linux"}),
        ("[win]  # only there", {"win32"}),
        (" CUDA # [linux or win]", {"linux", "win32"}),
        ("[not osx]", {"linux", "win32"}),
        ("[unix and not linux]", {"darwin"}),
        ("[osx-arm64]", {"darwin"}),
    ],
)
def test_selectors_are_markers(comment: str, systems: set[str]) -> None:
    text = selector_marker(comment)
    assert text is not None
    machine = {"darwin": "arm64"}
    found = {
        system
        for system in ("linux", "darwin", "win32")
        if Marker(text).evaluate({"sys_platform": system, "platform_machine": machine.get(system, "x86_64")})
    }
    assert found == systems


@pytest.mark.parametrize(
    "comment", ["", "linux", "[py>=38]", "[see issue 3]", "[linux and]", "[not not linux]", "[linux win]", "[", "[]"]
)
def test_other_comments_are_no_selectors(comment: str) -> None:
    assert selector_marker(comment) is None


@pytest.mark.parametrize(
    ("build", "cuda"),
    [
        ("py3.12_cuda12.1_cudnn8.9.2_0", "12.1"),
        ("py3.10_cuda11.8_cudnn8_0", "11.8"),
        ("cuda120_py310h5813974_300", "12.0"),
        ("cuda126py311h49fb548_0", "12.6"),
        ("cuda_126_mkl_py312_h1", "12.6"),
        ("gpu_cuda118py310h0_0", "11.8"),
        ("py312_cu121", "12.1"),
        ("cpu_generic_py311_h036dbbb_0", "cpu"),
        ("py3.11_cpu_0", "cpu"),
        ("py312h2054cf2_0_cpu", None),
        ("cuda", None),
        ("py311_cuda12_0", None),
        ("cuda1.x_0", None),
        ("pyhd8ed1ab_0", None),
    ],
)
def test_a_build_tells_its_cuda_where_that_is_sure(build: str, cuda: str | None) -> None:
    assert cuda_of(build) == cuda


def test_an_artefact_is_name_version_and_build() -> None:
    url = "https://conda.example/linux-64/ld_impl_linux-64-2.40-h41732ed_0.conda"
    assert split_artefact(url) == ("ld_impl_linux-64", "2.40", "h41732ed_0")
    assert split_artefact("a\\b-1-0.tar.bz2#md5") == ("b", "1", "0")
    for other in ("b-1.conda", "-1-0.conda", "torch-2.6.0-py3-none-any.whl", ".", ""):
        assert split_artefact(other) is None


def test_what_pip_gets_from_a_repository_a_folder_or_an_index() -> None:
    commit = "3f75e6cd95b56fdf36aedcbe57cf2890c2828dc0"
    newer = pip_source(f"git+https://github.com/a/b?rev=v0.1&subdirectory=x#{commit}", {})
    older = pip_source(f"git+https://github.com/a/b.git@{commit}", {"platform": "linux-64"})
    assert newer.to_json() == {"kind": "vcs", "url": "https://github.com/a/b", "subdirectory": "x", "commit": commit}
    assert older.to_json() == {"kind": "vcs", "url": "https://github.com/a/b.git", "commit": commit, "platform": "linux-64"}
    assert pip_source("git+https://github.com/a/b?tag=v2", {}).details["requested_revision"] == "v2"
    assert pip_source(".", {}, editable=True).to_json() == {"kind": "directory", "path": ".", "editable": True}
    wheel = "https://user:word@files.example/x-1-py3-none-any.whl"
    assert pip_source(wheel, {}).to_json() == {"kind": "index", "file": "https://files.example/x-1-py3-none-any.whl"}
    assert pip_source(wheel, {}, direct=True).kind == "url"
