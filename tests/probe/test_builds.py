"""Extensions that cannot be loaded, really built and really refused by the loader; and the assembler that Triton would call."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compat.probe.request import FAILED, PASSED, ProbeReport
from tests.probe.conftest import needs

needs("torch")

Probe = Callable[..., ProbeReport]
MODULE = "struct m; extern int {symbol}(void); void *PyInit_{module}(void) {{ return {call}; }}\n"


def built(folder: Path, package: str, module: str, *, symbol: str = "", library: str = "") -> None:
    """A distribution with one extension module: it needs a symbol that nobody has, or a library that is gone when it is loaded."""
    compiler = shutil.which("gcc") or pytest.skip("no C compiler")
    folder.mkdir(exist_ok=True)
    name = symbol or "gone"
    (folder / "m.c").write_text(MODULE.format(symbol=name, module=module, call=f"(void *)(long){name}()"))
    more: list[str] = []
    if library:
        (folder / "l.c").write_text("int gone(void) { return 0; }\n")
        subprocess.run(
            [compiler, "-shared", "-fPIC", f"-Wl,-soname,{library}", "-o", folder / library, folder / "l.c"], check=True
        )
        more = [str(folder / library)]
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / f"{module}.so", folder / "m.c", *more], check=True)
    if library:
        (folder / library).unlink()
    listed(folder, package, "2.8.3", "Requires-Dist: torch\n")


def listed(site: Path, package: str, version: str, more: str = "") -> None:
    """The metadata of a distribution that is installed there."""
    info = site / f"{package.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n{more}")


@pytest.mark.parametrize(
    ("symbol", "library", "words"),
    [
        ("_ZN3c105ErrorC2ENS_14SourceLocationESs", "", r"undefined symbol: _ZN3c10.*compiled for another torch"),
        ("", "libcudart.so.11.0", r"libcudart\.so\.11\.0: cannot open shared object file.*built for CUDA 11; installed: torch"),
        ("", "libc10_cuda.so", r"libc10_cuda\.so: cannot open.*built for a torch with CUDA; installed: torch .* for CPU only"),
    ],
)
def test_what_the_loader_says_is_put_into_terms_of_builds(
    probed: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, symbol: str, library: str, words: str
) -> None:
    built(tmp_path / "site", "flash-attn", "flash_attn_2_cuda", symbol=symbol, library=library)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    report = probed("extensions/flash-attn")
    (result,) = report.results
    assert (result.probe, result.status) == ("extensions/flash-attn", FAILED)
    assert re.search(words, result.why), result.why
    assert result.last_words
    assert result.fix
    assert report.exit == 1


def test_an_extension_that_crashes_takes_nothing_with_it(
    probed: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    (site / "awq_ext").mkdir(parents=True)
    (site / "awq_ext" / "__init__.py").write_text("import os; os.abort()\n")
    listed(site, "autoawq-kernels", "0.1")
    (site / "torchao").mkdir()
    (site / "torchao" / "__init__.py").write_text("")
    listed(site, "torchao", "1")
    monkeypatch.setenv("PYTHONPATH", str(site))
    results = {each.probe: each for each in probed("extensions").results}
    assert results["extensions/autoawq-kernels"].status == FAILED
    assert "signal 6" in results["extensions/autoawq-kernels"].why
    assert results["extensions/torchao"].status == PASSED


def test_a_package_that_goes_on_without_its_compiled_code(
    probed: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As xformers does: a warning, and a memory_efficient_attention that is not there when it is called."""
    site = tmp_path / "site"
    (site / "xformers").mkdir(parents=True)
    (site / "xformers" / "__init__.py").write_text(
        'import logging\nlogging.warning("WARNING[XFORMERS]: xFormers can\'t load C++/CUDA extensions. xFormers was built for:")\n'
    )
    (site / "xformers" / "ops.py").write_text("")
    listed(site, "xformers", "1")
    monkeypatch.setenv("PYTHONPATH", str(site))
    (result,) = probed("extensions/xformers").results
    assert result.status == FAILED
    assert "without its compiled code" in result.why


def test_a_release_whose_compiled_module_has_another_name(
    probed: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vLLM 0.24.0 has no ``vllm._C`` any more; without any of the names it has no compiled code."""
    site = tmp_path / "site"
    (site / "vllm").mkdir(parents=True)
    (site / "vllm" / "__init__.py").write_text("print('INFO vllm is here')\n")
    (site / "vllm" / "_C_stable_libtorch.py").write_text("")
    listed(site, "vllm", "0.24.0")
    monkeypatch.setenv("PYTHONPATH", str(site))
    (result,) = probed("extensions/vllm").results
    assert (result.status, result.measured["modules"]) == (PASSED, ["vllm._C_stable_libtorch"])
    (site / "vllm" / "_C_stable_libtorch.py").write_text("import gone\n")
    (result,) = probed("extensions/vllm").results
    assert result.status == FAILED
    assert "No module named 'gone'" in result.why
    (site / "vllm" / "_C_stable_libtorch.py").unlink()
    (result,) = probed("extensions/vllm").results
    assert result.status == FAILED
    assert "No module named 'vllm._C_stable_libtorch'" in result.why


def stand_in(folder: Path, ptxas: str | None) -> None:
    """A package called triton that has the assembler where Triton has it, and nothing else."""
    place = folder / "triton" / "backends" / "nvidia" / "bin"
    place.mkdir(parents=True)
    (folder / "triton" / "__init__.py").write_text("")
    if ptxas is not None:
        (place / "ptxas").write_text("#!/bin/sh\n" + ptxas)
        (place / "ptxas").chmod(0o755)


KNOWS_90 = "case $1 in --version) echo 'Cuda compilation tools, release 12.4, V12.4.99';; *) echo \"sm_80,sm_90\";; esac\n"


@pytest.mark.parametrize(
    ("ptxas", "capability", "status", "words"),
    [
        (KNOWS_90, 90, PASSED, ""),
        (KNOWS_90, 80, PASSED, ""),
        (KNOWS_90, 89, FAILED, "does not support sm_89; the newest it supports is sm_90"),
        ("echo nonsense\n", 90, FAILED, "does not list its architectures"),
        ("exit 1\n", 90, FAILED, "does not list its architectures"),
        (None, 90, FAILED, "Triton has no ptxas"),
    ],
)
def test_the_assembler_triton_would_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ptxas: str | None, capability: int, status: str, words: str
) -> None:
    from compat.probe.child import triton_compiler

    stand_in(tmp_path, ptxas)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    for name in [name for name in sys.modules if name.partition(".")[0] == "triton"]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"):
        monkeypatch.delenv(name, raising=False)
    verdict = triton_compiler.assembler_for(capability)
    assert (verdict["status"], words in verdict["why"]) == (status, True)
    for name in [name for name in sys.modules if name.partition(".")[0] == "triton"]:
        del sys.modules[name]  # the stand-in: monkeypatch would put it back


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
@pytest.mark.parametrize("capability", [75, 80, 90, 100, 120])
def test_the_rotary_kernel_compiles_to_wide_loads(capability: int) -> None:
    """No device is needed to compile for one: the heads of a token are read in loads of sixteen bytes."""
    from compat.probe.child import triton_compiler, triton_kernels

    for dtype, dim in (("bf16", 128), ("fp16", 64), ("fp32", 256)):
        for interleaved in (False, True):
            code = triton_compiler.aot(triton_kernels, capability, dtype, dim, interleaved=interleaved)
            assert len(re.findall(r"ld\.global[.\w:]*\.v4\.b32", code["ptx"])) >= 4
            assert code["cubin"][:4] == b"\x7fELF"


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
def test_the_rotary_kernel_turns_right_in_tritons_interpreter(probed: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    report = probed("rotary/triton", depth="quick")
    assert {(each.probe, each.status, each.why) for each in report.results} == {
        (f"rotary/triton-{name}", PASSED, "") for name in ("half", "interleaved", "lengths")
    }
