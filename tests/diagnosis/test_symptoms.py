"""What a message means where no rule knows it."""

from __future__ import annotations

import pytest

from compat.checks import derived_findings
from compat.diagnosis.explanations import between, explain_symptoms
from compat.model import Accelerator, Distribution, Environment, Finding
from compat.reports.log.traceback import decisive, parse_log
from compat.rules.facts import Facts


def said(text: str, environment: Environment | None = None) -> list[Finding]:
    environment = environment or Environment()
    errors = parse_log(text)
    return list(explain_symptoms(text, errors, decisive(errors), Facts(environment), derived_findings(environment)))


def trace(error: str, *frames: str) -> str:
    lines = "".join(f'  File "/v/lib/python3.11/site-packages/{frame}", line 1, in f\n    x()\n' for frame in frames)
    return f"Traceback (most recent call last):\n{lines}{error}\n"


@pytest.mark.parametrize(
    ("error", "rule", "packages"),
    [
        ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "symptom-no-kernel-image", ["vllm"]),
        ("RuntimeError: The NVIDIA driver on your system is too old (found version 12080).", "symptom-driver-too-old", ["vllm"]),
        ("RuntimeError: Error 804: forward compatibility was attempted on non supported HW", "symptom-forward-compatibility", ["vllm"]),
        ("ImportError: libcudart.so.12: cannot open shared object file: No such file or directory", "symptom-cuda-library-missing", ["vllm", "nvidia-cuda-runtime-cu12"]),
        ("ImportError: /v/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so: undefined symbol: _ZN3c105ErrorC2E", "symptom-undefined-symbol", ["flash-attn", "torch"]),
        ("ImportError: cannot import name 'Gone' from 'transformers' (/v/transformers/__init__.py)", "symptom-interface", ["vllm", "transformers"]),
        ("ImportError: /root/.cache/torch_extensions/py310_cu118/cpu_adam/cpu_adam.so: cannot open shared object file", "symptom-jit-not-there", ["deepspeed"]),
        ("ImportError: /v/flash_attn_2_cuda.so: undefined symbol:\n  _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib", "symptom-undefined-symbol", ["flash-attn", "torch"]),
        ("RuntimeError: Failed to find C compiler. Please specify via CC environment variable.", "symptom-no-compiler", ["vllm"]),
        ("torch._inductor.exc.InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx: (None, 'g++')", "symptom-no-compiler", ["vllm"]),
        ("AssertionError: libcuda.so cannot found!", "symptom-libcuda-link", ["vllm"]),
        ("_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so you have two options", "symptom-weights-only", ["torch"]),
        ("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB", "symptom-out-of-memory", ["vllm"]),
        ("RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized", "symptom-fabric-manager", ["vllm"]),
        ('RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":995', "symptom-nvml-assert", ["torch"]),
        ("ImportError: /v/scikit_learn.libs/libgomp-d22c30c5.so.1.0.0: cannot allocate memory in static TLS block", "symptom-static-tls", ["vllm"]),
    ],
)  # fmt: skip
def test_messages(error: str, rule: str, packages: list[str]) -> None:
    (finding,) = said(trace(error, "vllm/engine.py"))
    assert (finding.rule, finding.verdict, list(finding.packages)) == (rule, "possible", packages)


@pytest.mark.parametrize(
    ("error", "rule", "title"),
    [
        ("AttributeError: 'DataParallel' object has no attribute 'config'", "symptom-data-parallel-attribute", "has no config"),
        ("AttributeError: 'DistributedDataParallel' object has no attribute 'generate'", "symptom-distributed-attribute", "has no generate"),
        ("RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cuda:7! (when checking argument for argument mat2 in method wrapper_CUDA_mm)", "symptom-two-devices", "on cuda:0 and on cuda:7"),
        ("ValueError: You can't train a model that has been loaded in 8-bit or 4-bit precision on multiple devices in any distributed mode. In order to use", "symptom-device-map-elsewhere", "on GPUs other than the one the process trains on"),
        ("ValueError: You can't train a model that has been loaded with `device_map='auto'` in any distributed mode. Please rerun", "symptom-device-map-elsewhere", "on GPUs other than the one the process trains on"),
        ("RuntimeError: Expected all tensors to be on the same device, but got mat2 is on cuda:0, different from other tensors on cpu (when checking argument in method wrapper_CUDA_addmm)", "symptom-two-devices", "on cuda:0 and on cpu"),
        ("RuntimeError: GPU with CUDA capability 7 0 is not supported!", "symptom-capability-too-low", "lower than this kernel requires"),
    ],
)  # fmt: skip
def test_models_on_several_devices_and_gpus_that_are_too_old(error: str, rule: str, title: str) -> None:
    (finding,) = said(trace(error, "torch/nn/modules/linear.py"))
    assert finding.rule == rule
    assert finding.title.endswith(title)


@pytest.mark.parametrize(("capability", "releases"), [("86", [("vllm", ">=0.5.1"), ("sglang", ">=0.1.22")]), ("70", [])])
def test_the_releases_that_support_a_quantization_on_the_gpu(capability: str, releases: list[tuple[str, str]]) -> None:
    text = (
        "ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: 90. "
        f"Current capability: {capability}.\n"
    )
    device = Accelerator(vendor="nvidia", compute_capability=f"{capability[0]}.{capability[1]}")
    (finding,) = said(text, Environment(accelerators=(device,)))
    assert finding.rule == "symptom-capability-too-low"
    assert [(fix.package, fix.spec) for fix in finding.fixes if fix.spec] == releases


@pytest.mark.parametrize(
    ("text", "rule", "command"),
    [
        ("ImportError: \nLlamaTokenizer requires the SentencePiece library but it was not found in your environment. Check", "symptom-optional-backend", "pip install sentencepiece"),
        ("ImportError: \nViTImageProcessor requires the PIL library but it was not found in your environment. You", "symptom-optional-backend", "pip install pillow"),
        ("ImportError: \nLlamaModel requires the PyTorch library but it was not found in your environment. Check", "symptom-optional-backend", "pip install torch"),
        ("torch._inductor.exc.InductorError: RuntimeError: PassManager::run failed", "symptom-triton-gpu", "pip install -U torch"),
        ("deepspeed.ops.op_builder.builder.MissingCUDAException: CUDA_HOME does not exist, unable to compile CUDA op(s)", "symptom-no-nvcc", "export CUDA_HOME=/usr/local/cuda"),
        ("RuntimeError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!", "symptom-no-driver", "docker run --gpus all"),
        ("RuntimeError: Could not load libtorchcodec. Likely causes:", "symptom-torchcodec-library", "apt-get install -y ffmpeg"),
        ("RuntimeError: \nThe detected CUDA version (12.6) mismatches the version that was used to compile\nPyTorch (11.8). Please make", "symptom-cuda-mismatch", "export CUDA_HOME=/usr/local/cuda-11.8"),
    ],
)  # fmt: skip
def test_what_to_install_or_to_set(text: str, rule: str, command: str) -> None:
    (finding,) = said(text + "\n")
    assert (finding.rule, command in [fix.command for fix in finding.fixes]) == (rule, True)


def test_the_toolkit_of_a_message_is_named() -> None:
    (finding,) = said(
        "RuntimeError: \nThe detected CUDA version (12.6) mismatches the version that was used to compile\nPyTorch (11.8).\n"
    )
    assert finding.title == "nvcc belongs to CUDA 12.6, but torch is built for CUDA 11.8"


def test_private_names_of_a_wrapper_are_a_matter_of_releases() -> None:
    found = said(
        trace("AttributeError: 'DistributedDataParallel' object has no attribute '_ddp_x'", "accelerate/accelerator.py")
    )
    assert "symptom-distributed-attribute" not in [each.rule for each in found]


def test_an_error_counts_more_than_a_warning_that_was_logged_before_it() -> None:
    first, *_ = said(
        "WARNING 08-27 13:59:59 _custom_ops.py:15] Failed to import from vllm._C with ImportError('libcudart.so.12: cannot open "
        "shared object file: No such file or directory')\n"
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!\n"
    )
    assert first.rule == "symptom-cuda-library-missing"  # a general explanation yields to a precise one
    first, *_ = said(
        "WARNING 08-27 13:59:59 _custom_ops.py:15] Failed to import from vllm._C with ImportError('libcudart.so.12: cannot open "
        "shared object file: No such file or directory')\n"
        "ImportError: cannot import name 'GRPOConfig' from 'trl' (/v/trl/__init__.py)\n"
    )
    assert first.title.startswith("trl.GRPOConfig")


@pytest.mark.parametrize(
    ("compiler", "rule"),
    [
        ("/tmp/tmpx/main.c:5:10: fatal error: Python.h: No such file or directory\ncompilation terminated.", "symptom-python-headers"),
        ("/usr/bin/ld: cannot find -lcuda: No such file or directory\ncollect2: error: ld returned 1 exit status", "symptom-libcuda-link"),
    ],
)  # fmt: skip
def test_what_the_compiler_said_stands_before_the_error(compiler: str, rule: str) -> None:
    error = "subprocess.CalledProcessError: Command '['/usr/bin/gcc', '/tmp/tmpx/main.c', '-lcuda']' returned non-zero exit status 1."
    (finding,) = said(compiler + "\n" + trace(error, "triton/runtime/build.py"))
    assert (finding.rule, list(finding.packages)) == (rule, ["triton"])


def test_what_the_environment_shows_goes_before_what_the_message_says() -> None:
    environment = Environment(
        distributions=(Distribution("torch", "2.6.0+cu124"),), accelerators=(Accelerator("nvidia", "RTX 5090", "12.0"),)
    )
    (finding,) = said(
        trace("RuntimeError: CUDA error: no kernel image is available for execution on the device", "torch/x.py"), environment
    )
    assert (finding.rule, finding.verdict) == ("build-torch-gpu", "hit")
    assert finding.here.startswith("the error on line 4 of the text")


@pytest.mark.parametrize(
    "error",
    [
        "ValueError: the learning rate must be positive",
        "ImportError: cannot import name 'x' from partially initialized module 'vllm' (most likely due to a circular import)",
        "TypeError: f() got an unexpected keyword argument 'x'",
    ],
)
def test_other_errors_get_no_guess(error: str) -> None:
    assert said(trace(error, "vllm/engine.py")) == []


@pytest.mark.parametrize(
    ("built", "have", "rule", "title", "fix"),
    [
        ("2.1.2+cu121", "2.1.2+cpu", "symptom-xformers-cpu-torch", "the installed torch 2.1.2+cpu is a CPU build", ("torch", "==2.1.2+cu121")),
        ("2.1.0+cu121", "2.1.0+cu118", "symptom-xformers-other-cuda", "built for torch 2.1.0+cu121", ("torch", "")),
        ("2.1.0+cu118", "2.0.1+cu118", "symptom-xformers-other-torch", "2.0.1+cu118 is installed", ("torch", "==2.1.0")),
    ],
)  # fmt: skip
def test_what_xformers_was_built_for(built: str, have: str, rule: str, title: str, fix: tuple[str, str]) -> None:
    (finding,) = said(
        "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:\n"
        f"    PyTorch {built} with CUDA 1201 (you have {have})\n    Python  3.11.7 (you have 3.11.0)\n"
    )
    assert finding.rule == rule
    assert title in finding.title
    assert (finding.fixes[0].package, finding.fixes[0].spec) == fix


def test_a_particular_line_explains_a_general_error() -> None:
    (finding,) = said(
        "RuntimeError: CUDA error: no kernel image is available for execution on the device\n\nPyTorch prints:\n"
        "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.\n"
    )
    assert finding.rule == "symptom-torch-gpu"
    assert "sm_120" in finding.title


def test_a_kernel_that_an_extension_lacks_is_its_own() -> None:
    (finding,) = said(
        "ImportError: /src/vllm/_C.abi3.so: undefined symbol: _Z24silu_and_mul_nvfp4_quantRN2at6TensorES1_S1_S1_\n"
    )
    assert (finding.rule, list(finding.packages)) == ("symptom-own-symbol", ["vllm"])
    assert finding.title.endswith("silu_and_mul_nvfp4_quant")


def test_a_system_library_is_not_said_to_be_needed_by_a_package_that_nobody_named() -> None:
    text = "ImportError: libnuma.so.1: cannot open shared object file\n"
    (alone,) = said(text)
    (known,) = said(text, Environment(distributions=(Distribution("vllm", "0.8.4"),)))
    assert (alone.packages, known.packages) == ({}, {"vllm": "0.8.4"})


def test_each_conflict_that_pip_lists_exact_pins_first() -> None:
    found = said(
        "foo 1.0 requires typing-extensions<4.6.0, but you have typing-extensions 4.9.0 which is incompatible.\n"
        "torchaudio 2.1.0 requires torch==2.1.0, but you have torch 2.1.1 which is incompatible.\n"
    )
    assert [list(finding.packages)[-1] for finding in found] == ["torchaudio", "foo"]


def test_a_name_that_the_code_of_a_package_does_not_define() -> None:
    (finding,) = between_of(trace("NameError: name 'Unpack' is not defined", "unsloth/kernels/cross_entropy_loss.py"))
    assert (finding.rule, finding.verdict, list(finding.packages)) == ("symptom-undefined-name", "possible", ["unsloth"])
    assert (
        between_of("Traceback (most recent call last):\n  File \"/app/x.py\", line 1, in f\nNameError: name 'a' is not defined")
        == []
    )


def between_of(text: str, environment: Environment | None = None) -> list[Finding]:
    errors = parse_log(text)
    return list(between(text, errors, decisive(errors), Facts(environment or Environment()), ()))


@pytest.mark.parametrize(
    ("packages", "title"),
    [
        ((("trl", "0.23.0"), ("accelerate", "1.4.0")), "ParallelismConfig comes from another accelerate than 1.4.0"),
        ((("trl", "0.23.0"),), "ParallelismConfig comes from accelerate, which is missing"),
        ((("trl", "0.23.0"), ("accelerate", "1.12.0")), "trl uses ParallelismConfig, which its code did not define or import"),
    ],
)
def test_a_name_whose_import_is_optional(packages: tuple[tuple[str, str], ...], title: str) -> None:
    text = trace("NameError: name 'ParallelismConfig' is not defined", "trl/trainer/sft_config.py")
    finding = between_of(text, Environment(distributions=tuple(Distribution(*each) for each in packages)))[0]
    assert finding.title == title


def test_a_symbol_of_torch_without_the_file_that_needs_it() -> None:
    text = "ImportError: undefined symbol: _ZN3c104cuda9SetDeviceEi\n"
    one = Environment(distributions=(Distribution("torch", "2.0.1"), Distribution("flash-attn", "2.3.6")))
    (finding,) = said(text, one)
    assert finding.packages == {"flash-attn": "2.3.6", "torch": "2.0.1"}
    several = Environment(distributions=(*(one.distributions or ()), Distribution("xformers", "0.0.20")))
    assert [each.title for each in said(text, several)] == [
        "A compiled extension was built for a torch other than the installed one"
    ]
    pinned = Environment(distributions=(Distribution("torch", "2.3.0"), Distribution("vllm", "0.4.2")))
    (finding,) = said(text, pinned)  # vllm 0.4.2 requires this torch, so its own wheel is for it
    assert (finding.rule, finding.packages) == ("symptom-undefined-symbol", {"torch": "2.3.0"})


@pytest.mark.parametrize(
    ("place", "hidden"),
    [
        ("/home/me/LLaVA/llava/model/__init__.py", True),
        ("/v/lib/python3.10/site-packages/llava/model/__init__.py", False),
        ("/home/me/LLaVA/llava/model/builder.py", False),
    ],
)
def test_a_checkout_may_hide_why_its_module_fails(place: str, hidden: bool) -> None:
    text = f"ImportError: cannot import name 'LlavaLlamaForCausalLM' from 'llava.model' ({place})\n"
    (finding,) = said(text) or between_of(text)
    assert ("import the module of llava" in finding.fixes[0].text) == hidden


def test_an_import_whose_error_is_missing_says_how_to_see_it() -> None:
    lost = "RuntimeError: Failed to import transformers.trainer because of the following error (look up to see its traceback):"
    (finding,) = said(f"{lost}\n")
    assert (finding.rule, list(finding.packages)) == ("symptom-import-error-missing", ["transformers"])
    assert said(f"{lost}\noperator torchvision::nms does not exist\n")[0].rule == "symptom-torchvision-operator"


@pytest.mark.parametrize(
    ("error", "known"),
    [
        ("AttributeError: 'FieldInfo' object has no attribute 'required'", True),
        ("AttributeError: 'FieldInfo' object has no attribute 'outer_type_'", True),
        ("ImportError: cannot import name 'ModelField' from 'pydantic.fields' (/v/pydantic/fields.py)", True),
        ("AttributeError: 'FieldInfo' object has no attribute 'exclude_if'", False),  # of a later pydantic 2
    ],
)
def test_what_pydantic_2_removed(error: str, known: bool) -> None:
    found = {each.rule for each in said(trace(error, "deepspeed/runtime/config_utils.py"))}
    assert ("symptom-pydantic-2" in found) is known
