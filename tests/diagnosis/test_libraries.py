"""Messages of the loader, held against what published wheels ask for and what releases of torch export."""

from __future__ import annotations

import pytest

from compat.diagnosis.loader import exporting, note_on_strings
from compat.model import Distribution, Environment, Finding
from compat.records import replace
from tests.diagnosis.test_symptoms import said

CHECK = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb"
"""torch 2.10 came with it, and no earlier one has it."""
NEW_STRINGS = "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
OLD_STRINGS = "_ZN3c105ErrorC2ENS_14SourceLocationESs"


def of(*distributions: str) -> Environment:
    return Environment(os="linux", distributions=tuple(Distribution(*each.split("==")) for each in distributions))


def undefined(symbol: str, library: str, *distributions: str) -> Finding:
    (finding,) = said(f"ImportError: /v/site-packages/{library}: undefined symbol: {symbol}", of(*distributions))
    assert finding.rule == "symptom-undefined-symbol"
    return finding


def test_an_undefined_symbol_names_the_torch_that_has_it_and_the_release_for_the_one_that_is_there() -> None:
    finding = undefined(CHECK, "sgl_kernel/sm100/common_ops.abi3.so", "torch==2.8.0", "sgl-kernel==0.3.20")
    assert "2.10 to" in finding.why
    assert [(fix.package, fix.spec) for fix in finding.fixes][:2] == [("sgl-kernel", "==0.3.18"), ("torch", "==2.10.*")]


@pytest.mark.parametrize(
    ("symbol", "torch", "certain"),
    [
        (CHECK, "2.8.0", True),
        (CHECK, "2.9.1+cu128", True),
        (CHECK, "2.10.0", False),  # exports it: the copy that ran is another one
        (CHECK, "2.9.0.dev20250901+cu128", False),
        (CHECK, "2.9.0a0+50eac811a6.nv25.09", False),
        (CHECK, "2.99.0", False),
        (CHECK, "1.13.1", False),
        (CHECK, None, False),
        (NEW_STRINGS, "2.5.1", False),  # some builds have it
        ("_ZN2at12no_such_nameEv", "2.8.0", False),
    ],
)
def test_a_torch_whose_wheels_lack_the_symbol_is_the_cause(symbol: str, torch: str | None, certain: bool) -> None:
    stated = () if torch is None else (f"torch=={torch}",)
    finding = undefined(symbol, "sgl_kernel/sm100/common_ops.abi3.so", *stated, "sgl-kernel==0.3.20")
    assert (finding.verdict == "hit", finding.confidence == "confirmed") == (certain, certain)
    assert ("The wheels of torch 2.10.0 have it" in finding.why) is (torch == "2.10.0")


def test_a_symbol_of_the_other_abi_of_strings_says_which_wheel_loads() -> None:
    finding = undefined(
        NEW_STRINGS, "flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so", "torch==2.6.0", "flash-attn==2.7.4.post1"
    )
    assert "cxx11abiFALSE does" in finding.why
    assert (finding.fixes[0].package, finding.fixes[0].spec) == ("torch", "==2.7.*")


@pytest.mark.parametrize(
    ("symbol", "torch", "words"),
    [
        (NEW_STRINGS, "2.6.0", "cxx11abiTRUE does not load"),
        (NEW_STRINGS, "2.7.1+cu128", None),
        (OLD_STRINGS, "2.8.0", "cxx11abiFALSE"),
        (OLD_STRINGS, "2.6.0+cu124", None),
        (NEW_STRINGS, "2.5.0a0+872d972e41.nv24.08", None),  # NVIDIA's builds use the new one
        (NEW_STRINGS, "2.6.0+cu126", None),
        (NEW_STRINGS, None, None),
        (CHECK, "2.6.0", None),
    ],
)
def test_the_abi_of_strings(symbol: str, torch: str | None, words: str | None) -> None:
    note = note_on_strings(symbol, torch)
    assert note is None if words is None else words in (note or "")


def test_a_symbol_that_is_not_known_has_no_series() -> None:
    assert exporting("_ZN3c109inventedEv") == exporting("") == []


def test_a_missing_library_names_the_release_that_is_linked_to_the_cuda_of_torch() -> None:
    text = "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory"
    frame = f'Traceback (most recent call last):\n  File "/v/site-packages/onnxruntime/__init__.py", line 1, in f\n    x()\n{text}\n'
    (finding,) = said(frame, of("torch==2.11.0+cu130", "onnxruntime-gpu==1.23.2"))
    assert finding.rule in ("symptom-cuda-library-missing", "build-onnxruntime-gpu-cuda")


def test_a_release_older_than_all_known_builds_is_not_led_to_one_of_years_later() -> None:
    text = "    from vllm import cuda_utils\nImportError: libcudart.so.12: cannot open shared object file: No such file or directory\n"
    (finding,) = said(text, of("vllm==0.2.2"))
    first = finding.fixes[0]
    assert (first.kind, first.package) == ("source-install", "torch")
    assert first.text == "a build for the CUDA of vllm 0.2.2, which is 12"
    assert not any(fix.kind == "upgrade" for fix in finding.fixes)


PROVIDER = (
    "[ONNXRuntimeError] : 1 : FAIL : Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.11: "
    "cannot open shared object file: No such file or directory"
)


@pytest.mark.parametrize(
    ("keys", "fix"),
    [
        ({}, ("upgrade", ">=1.19.0")),  # the first for another CUDA, as nothing says which is there
        ({"cuda_toolkit": "13.0"}, ("upgrade", ">=1.27.0")),
    ],
)
def test_a_provider_of_onnxruntime_names_its_package_and_the_release_for_the_cuda(
    keys: dict[str, str], fix: tuple[str, str]
) -> None:
    (finding,) = said(PROVIDER, replace(of("onnxruntime-gpu==1.17.1"), **keys))
    assert "onnxruntime-gpu" in finding.packages
    assert fix in [(each.kind, each.spec) for each in finding.fixes if each.package == "onnxruntime-gpu"]


@pytest.mark.parametrize(
    ("library", "symbol", "file", "wheel"),
    [
        ("libcublas.so.11", "free_gemm_select", "libcublasLt.so.11", "nvidia-cublas-cu11"),
        ("_turbomind.cpython-38-x86_64-linux-gnu.so", "cudaFreeAsync,", "libcudart.so.11.0", "nvidia-cuda-runtime-cu11"),
        ("libcusparse.so.12", "__nvJitLinkAddData_12_1,", "libnvJitLink.so.12", "nvidia-nvjitlink-cu12"),
        ("libssl.so.3", "EVP_KDF_fetch", "libcrypto.so.3", None),  # not a library of CUDA
    ],
)
def test_a_symbol_that_the_older_library_of_cuda_lacks(library: str, symbol: str, file: str, wheel: str | None) -> None:
    text = f"OSError: /env/lib/{library}: symbol {symbol} version {file} not defined in file {file} with link time reference"
    found = said(text, of())
    assert [each.rule for each in found if "mixed" in each.title] == (["symptom-nvjitlink"] if wheel else [])
    assert all(wheel is None or wheel in each.packages for each in found)


def test_the_version_of_a_symbol_tells_the_cuda_of_its_wheel() -> None:
    file = "/v/site-packages/transformer_engine/wheel_lib/libtransformer_engine.so"
    (finding,) = said(f"OSError: {file}: undefined symbol: cublasLtMatmulDescInit, version libcublasLt.so.13", of())
    assert list(finding.packages) == ["transformer-engine", "nvidia-cublas"]
    assert ("upgrade", "nvidia-cublas") in [(each.kind, each.package) for each in finding.fixes]


def test_a_missing_version_of_the_c_library_names_a_release_whose_wheel_asks_for_less() -> None:
    by = "required by /v/site-packages/bitsandbytes/libbitsandbytes_cuda126.so"
    text = f"OSError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found ({by})"
    (finding,) = said(text, of("torch==2.6.0+cu126", "bitsandbytes==0.45.0"))
    assert finding.rule == "symptom-glibc"
    assert finding.fixes[0].package == "bitsandbytes"
    assert finding.fixes[0].spec not in (None, "==0.45.5")


def test_the_only_listed_wheel_that_asks_for_a_c_library_is_meant() -> None:
    text = "OSError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found"
    (finding,) = said(text, of("torch==2.6.0+cu126", "bitsandbytes==0.45.0"))
    assert list(finding.packages) == ["bitsandbytes"]
    (finding,) = said(text, of("torch==2.6.0+cu126"))
    assert list(finding.packages) == []


def test_a_missing_version_of_the_cpp_library_names_its_compiler() -> None:
    text = "ImportError: /lib/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by /v/vllm/_C.abi3.so)"
    (finding,) = said(text, of("vllm==0.9.0"))
    assert "GCC 13.2 (Ubuntu 24.04)" in finding.why


NUMPY_1 = """Traceback (most recent call last):
  File "/env/lib/python3.11/site-packages/mine/__init__.py", line 1, in <module>
    import skimage.feature
  File "/env/lib/python3.11/site-packages/skimage/feature/__init__.py", line 9, in <module>
    from .corner import corner_peaks
  File "skimage/feature/_hessian_det_appx.pyx", line 1, in init skimage.feature._hessian_det_appx
ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C header, got 88 from PyObject
"""


@pytest.mark.parametrize(
    ("packages", "rule"),
    [
        ((), "build-scikit-image-numpy"),
        (("scikit-image==0.22.0",), "build-scikit-image-numpy"),
        (("scikit-image==0.25.0",), "symptom-numpy-abi"),  # another package's code
        (("scikit-image==0.22.0", "numpy==1.26.4"), "symptom-numpy-abi"),
    ],
)
def test_code_that_was_compiled_against_numpy_1_names_its_package(packages: tuple[str, ...], rule: str) -> None:
    (finding,) = said(NUMPY_1, of(*packages))
    assert finding.rule == rule
    if rule.startswith("build"):
        assert [(fix.package, fix.spec) for fix in finding.fixes] == [("scikit-image", ">=0.23.0"), ("numpy", "<2")]


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("ImportError: /opt/site-packages/transformer_engine_extensions.cpython-38.so: undefined symbol", "transformer-engine"),
        ("ImportError: /usr/lib/python3.10/dist-packages/transformer_engine_extensions", "transformer-engine"),
        ("ImportError: /v/site-packages/vllm/_C.abi3.so: undefined symbol: ", "vllm"),
        ("OSError: /v/site-packages/torchaudio/lib/libtorchaudio.so", "torchaudio"),
    ],
)  # fmt: skip
def test_a_message_that_ends_before_its_reason_names_the_package_of_the_library(message: str, name: str) -> None:
    (finding,) = said(message, of())
    assert (finding.rule, finding.verdict, next(iter(finding.packages))) == ("symptom-extension-not-loaded", "possible", name)


@pytest.mark.parametrize(
    "message",
    [
        "OSError: /v/site-packages/vllm/config.json",
        "ImportError: /v/site-packages/my_project/loader.py",
        "/v/site-packages/vllm/_C.abi3.so",
    ],
)
def test_a_path_alone_is_no_message_of_the_loader(message: str) -> None:
    assert said(message, of()) == []


def test_a_path_at_the_end_of_a_wrapped_error_is_the_loaders() -> None:
    text = (
        "RuntimeError: Failed to import transformers.models.bloom.modeling_bloom because of the following error (look up to see "
        "its traceback): /v/lib/python3.8/dist-packages/transformer_engine_extensions"
    )
    (finding,) = said(text, of())
    assert (finding.rule, next(iter(finding.packages))) == ("symptom-extension-not-loaded", "transformer-engine")


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("cudnn_ops64_9.dll is not found", "ctranslate2 is linked to cuDNN 9"),
        ("cudnn ops64_9.dll is not found", "ctranslate2 is linked to cuDNN 9"),  # Markdown took the underscore
        ("        cublas64_13.dll => not found", "ctranslate2 is linked to CUDA 13"),
        ("libcudart.so.12 => not found", "ctranslate2 is linked to CUDA 12"),
        ("cudart64_110.dll was not found", "ctranslate2 is linked to CUDA 11"),
        ("OSError: cublas64_12.dll could not be found", "ctranslate2 is linked to CUDA 12"),
    ],
)
def test_a_library_of_cuda_that_is_not_found_in_any_words(message: str, title: str) -> None:
    (finding,) = said(message, of("ctranslate2==4.5.0"))
    assert finding.rule == "symptom-cuda-library-missing"
    assert finding.title.startswith(title)


def test_the_package_whose_own_message_comes_before_those_of_the_loader() -> None:
    text = (
        "RuntimeError: Could not load libtorchcodec. Likely causes:\n  1. FFmpeg is not properly installed.\n"
        'FFmpeg version 8:\nTraceback (most recent call last):\n  File "/x/lib/python3.12/site-packages/torch/_ops.py", line 1503, '
        "in load_library\n    ctypes.CDLL(path)\nOSError: libnvrtc.so.13: cannot open shared object file: No such file or directory\n"
    )
    torch = Distribution("torch", "2.11.0+cu128")
    finding = next(
        each for each in said(text, Environment(distributions=(torch,))) if each.rule == "symptom-cuda-library-missing"
    )
    assert finding.title == "torchcodec is linked to CUDA 13, but those libraries are not installed"
    assert (finding.fixes[0].command or "").endswith("torchcodec --index-url https://download.pytorch.org/whl/cu128")
