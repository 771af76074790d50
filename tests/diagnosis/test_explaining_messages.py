"""Messages that say themselves what is wrong: what is made of each, without any environment."""

from __future__ import annotations

import pytest

from compat.diagnosis.diagnose import diagnose
from compat.diagnosis.symptoms import Symptom, symptoms
from compat.model import Accelerator, Distribution, Environment, Finding, Workload
from compat.reports.log.traceback import decisive, parse_log
from compat.rules.compiled import in_memory

NO_RULES = in_memory(())


def said(text: str, environment: Environment | None = None) -> tuple[Finding, ...]:
    errors = parse_log(text)
    return diagnose(text, errors, decisive(errors), environment or Environment(), NO_RULES)


@pytest.mark.parametrize(
    ("text", "rule", "packages", "fix"),
    [
        ("RuntimeError: operator torchvision::nms does not exist", "torchvision-operator", ["torchvision", "torch"], "--force-reinstall torch torchvision"),
        ("ptxas fatal   : Value 'sm_120a' is not defined for option 'gpu-name'", "ptxas-too-old", ["triton"], "torch triton"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_120'", "nvcc-architecture", [], "12.8"),
        ("RuntimeError: The detected CUDA version (12.1) mismatches the version that was used to compile\nPyTorch (11.8). Please", "cuda-mismatch", ["torch"], "CUDA_HOME=/usr/local/cuda-11.8"),
        (r"RuntimeError: ('\nThe detected CUDA version (%s) mismatches the version that was used to compile\nPyTorch (%s). Please make sure to use the same CUDA versions.\n', '13.0', '12.8')", "cuda-mismatch", ["torch"], "CUDA_HOME=/usr/local/cuda-12.8"),
        ("CUDAMismatchException: >- DeepSpeed Op Builder: Installed CUDA version 12.1 does not match the version torch was compiled with 11.8, unable to", "cuda-mismatch", ["torch"], "CUDA_HOME=/usr/local/cuda-11.8"),
        ("AttributeError: 'NoneType' object has no attribute 'cquantize_blockwise_fp16_nf4'", "bitsandbytes-no-library", ["bitsandbytes"], "bitsandbytes"),
        ("RuntimeError: Expected to mark a variable ready only once. This error is caused by one of", "ddp-ready-twice", ["torch"], "use_reentrant"),
        ("subprocess.CalledProcessError: Command '['/usr/bin/gcc', '/tmp/tmpx/main.c', '-lcuda']' returned non-zero exit status 1.", "launcher-not-compiled", ["triton"], "python3-dev"),
        ("RuntimeError: \"addmm_impl_cpu_\" not implemented for 'Half'", "half-on-cpu", ["torch"], "fp32"),
        ("RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16", "two-dtypes", [], "bf16=True"),
        ("RuntimeError: Found dtype Half but expected Float", "two-dtypes", [], "bf16=True"),
        ("RuntimeError: self and mat2 must have the same dtype, but got BFloat16 and Float", "two-dtypes", [], "bf16=True"),
        ("RuntimeError: Input type (float) and bias type (c10::BFloat16) should be the same", "two-dtypes", [], "bf16=True"),
        ("RuntimeError: expected dtype float for `end` but got dtype c10::BFloat16", "two-dtypes", [], "bf16=True"),
        ("ValueError: Attempting to unscale FP16 gradients.", "fp16-parameters", ["torch"], "bf16=True"),
        ("RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn", "nothing-to-train", [], "use_reentrant"),
        ("RuntimeError: probability tensor contains either `inf`, `nan` or element < 0", "not-finite", [], "compat probe"),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`", "cublas", ["torch"], "LD_LIBRARY_PATH"),
        ("RuntimeError: GET was unable to find an engine to execute this computation", "no-cudnn-engine", ["torch"], "LD_LIBRARY_PATH"),
        ("NotImplementedError: The operator 'aten::isin.Tensor_Tensor_out' is not currently implemented for the MPS device.", "mps-operator", ["torch"], "PYTORCH_ENABLE_MPS_FALLBACK"),
        ("RuntimeError: FlashAttention only support fp16 and bf16 data type", "attention-limits", ["flash-attn"], "bf16"),
        ("triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 163840, Hardware limit: 101376.", "triton-shared-memory", ["triton"], "later release"),
        ("LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.shfl.sync.bfly.i32", "triton-gpu", ["triton"], "fp16 instead"),
        ("safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge", "cut-file", ["safetensors"], "git lfs pull"),
        ("torch.distributed.DistBackendError: NCCL error: Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1000", "duplicate-gpu", ["torch"], "nproc_per_node"),
        ("[W socket.cpp:663] [c10d] The client socket has failed to connect to [HOST]:29500", "rendezvous", ["torch"], "MASTER_ADDR"),
        ("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}", "cause-above", [], "first traceback"),
        ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", "cause-above", [], "first traceback"),
        ("ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 2 (pid: 94) of binary: /x/python", "killed", [], "dmesg"),
        ("ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -7) local_rank: 2 (pid: 94) of binary: /x/python", "shared-memory", ["torch"], "shm-size"),
        ("RuntimeError: No HIP GPUs are available", "no-amd-gpu", ["torch"], "/dev/kfd"),
        ("AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'", "operators-not-loaded", ["torch"], "vllm._C"),
        ("RuntimeError: MPS backend out of memory", "out-of-memory", [], "batch"),
        ("ImportError: libc10_cuda.so: cannot open shared object file: No such file or directory", "cpu-only-torch", ["torch"], "--torch-backend=auto"),
        ("OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.", "no-nvcc", [], "CUDA_HOME"),
        ("main.cpp:62:275: error: no matching function for call to 'at::vec::CPU_CAPABILITY::VecMask<long int, 2>::VecMask(int&)'", "inductor-vector-mask", ["torch"], "torch>=2.12"),
        ("RuntimeError: Failed to run autotuning code block: name 'get_raw_stream' is not defined", "inductor-raw-stream", ["torch"], "torch>=2.10"),
        ("AttributeError: Qwen2Tokenizer has no attribute additional_special_tokens. Did you mean: 'add_special_tokens'?", "tokenizer-additional-special-tokens", ["transformers"], "extra_special_tokens"),
        ("AttributeError: 'LlamaTokenizerFast' object has no attribute 'additional_special_tokens_ids'", "tokenizer-additional-special-tokens", ["transformers"], "transformers>=4.47,<5"),
        ("TypeError: Unexpected keyword argument 'guided_decoding'", "vllm-guided-decoding", ["vllm"], "structured_outputs"),
        ("train.py: error: argument --lr_scheduler_kwargs/--lr-scheduler-kwargs: invalid dict value: '{\"min_lr\": 1e-6}'", "scheduler-option-of-a-release", ["transformers"], "transformers>=4.57.5,<5"),
        ("error: #error -- unsupported GNU version! gcc versions later than 12 are not supported!", "gcc-too-new", [], "CC=gcc-12"),
        ("ERROR: Failed building wheel for flash-attn", "build-failed", ["flash-attn"], "--only-binary :all: flash-attn"),
        ("error: Microsoft Visual C++ 14.0 or greater is required. Get it with it", "no-msvc", [], "wheel for Windows"),
        ("ERROR: No matching distribution found for torch==1.12.1", "no-such-release", ["torch"], "pip index versions torch"),
        ("  Because there is no version of xformers==0.0.99 and you require xformers==0.0.99, it fails", "no-such-release", ["xformers"], "xformers"),
        ("nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update your driver", "container-driver", [], "newer driver"),
        ("ERROR: This container was built for NVIDIA Driver Release 535.86 or later, but\n       version 510.85.02 was detected and compatibility mode is UNAVAILABLE.", "container-driver-release", [], "535.86"),
        ("RuntimeError: _int_mm_out_cuda not compiled for this platform.", "not-compiled-for-platform", ["torch"], "newer torch"),
        ("CUDA SETUP: WARNING! libcuda.so not found! Do you have a CUDA driver installed?", "libcuda-name", [], "/usr/lib/wsl/lib"),
        ("AttributeError: 'NoneType' object has no attribute 'causal_conv1d_fwd'", "extension-not-loaded", ["causal-conv1d"], "import causal_conv1d_cuda"),
        ("nvcc fatal   : Unsupported gpu architecture 'sm_100f'", "nvcc-architecture", [], "12.9"),
        ("RuntimeError: FlashInfer requires GPUs with sm75 or higher", "no-kernel-image", ["flashinfer-python"], "FLASHINFER_CUDA_ARCH_LIST"),
        ("RuntimeError: Version mismatch: The cluster was started with:\n    Ray: 2.40.0\n    Python: 3.10.12\nThis process on node 10.0.0.3 was started with:\n    Ray: 2.9.0\n    Python: 3.10.12", "ray-cluster-version", ["ray"], "ray==2.40.0"),
        ("ImportError: Unable to import required dependencies:\nnumpy: \n\nImporting the numpy C-extensions failed.", "numpy-not-loaded", ["numpy"], "--force-reinstall"),
        ("ImportError: This modeling file requires the following packages that were not found in your environment: flash_attn. Run `pip install flash_attn`", "not-installed", ["flash-attn"], "--no-build-isolation"),
        ("ImportError: cannot import name 'flash_attn_func' from 'flash_attn' (unknown location)", "empty-package", ["flash-attn"], "rename the folder"),
        ("ImportError: \n[sgl_kernel] CRITICAL: Could not load any common_ops library!", "sgl-kernel-not-loaded", ["sgl-kernel", "torch"], "reinstall sglang"),
        ("ValueError: Model architectures ['Qwen3ForCausalLM'] failed to be inspected. Please check the logs", "model-not-inspected", ["vllm", "transformers"], "vllm"),
        ("RuntimeError: Unsloth: Please file a bug report! Error patching SFTTrainer", "unsloth-patching", ["unsloth", "unsloth-zoo", "trl"], "unsloth_zoo"),
        ("ModuleNotFoundError: No module named 'vllm._C'", "no-extension", ["vllm"], "another directory"),
        ("c++: error: unrecognized command-line option '-std=c++20'", "compiler-too-old", ["torch"], "gxx_linux-64"),
        ("torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 1/2 clients joined.", "rendezvous", ["torch"], "MASTER_ADDR"),
        ("ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not set", "not-launched", ["torch"], "torchrun"),
        ("ValueError: Free memory on device (20.5/23.6 GiB) on startup is less than desired GPU memory utilization (0.9, 21.3 GiB).", "memory-in-use", ["vllm"], "nvidia-smi"),
        ("ValueError: Must flatten tensors with uniform dtype but got torch.bfloat16 and torch.float32", "fsdp-two-dtypes", ["torch"], "bnb_4bit_quant_storage"),
        ("/usr/bin/ld: cannot find -lcudart", "cuda-library-not-linked", [], "LIBRARY_PATH"),
        ("error: externally-managed-environment", "externally-managed", [], "uv venv"),
        ("error: invalid command 'bdist_wheel'", "no-wheel-package", ["setuptools"], "setuptools wheel"),
        ("packaging.version.InvalidVersion: Invalid version: '2.0.1-cu118x'", "invalid-version", ["packaging"], "pip list"),
        ("python3: /project/lib/Tools/LinearLayout.cpp:562: mlir::triton::LinearLayout mlir::triton::LinearLayout::reshapeOuts() const: Assertion `x == y' failed.", "triton-assertion", ["triton"], "newer torch"),
        ("RuntimeError: Triton Error [CUDA]: invalid argument", "triton-launch", ["triton"], "older Triton"),
        ("ImportError: Please install librosa to use AudioProcessor.", "not-installed", ["librosa"], "pip install librosa"),
        ("RuntimeError: No available kernel. Aborting execution.", "no-sdpa-kernel", ["torch"], "math kernel"),
        ("RuntimeError: cu_seqlens_q must have shape (batch_size + 1)", "flash-attention-lengths", ["flash-attn", "transformers"], "sdpa"),
        ("RuntimeError: CUDA error: operation not permitted when stream is capturing", "stream-is-capturing", [], "--enforce-eager"),
        ("RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.", "ddp-unused-parameters", ["torch"], "ddp_find_unused_parameters"),
        ("RuntimeError: size mismatch for base_model.model.lm_head.weight: copying a param with shape torch.Size([32001, 4096]) from checkpoint, the shape in current model is torch.Size([32000, 4096]).", "other-vocabulary", [], "resize_token_embeddings"),
        ("ModuleNotFoundError: No module named 'transformers_modules.Qwen2'", "own-code-of-a-model", ["transformers"], "local folder"),
        ("AttributeError: 'DeepSpeedCPUAdam' object has no attribute 'ds_opt_adam'", "deepspeed-cpu-adam", ["deepspeed"], "CPUAdamBuilder"),
        ("RuntimeError: only Tensors of floating point and complex dtype can require gradients", "gradient-of-integers", [], "LoRA"),
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x4096 and 1x8388608)", "packed-weights", ["bitsandbytes"], "bitsandbytes"),
        ("importlib.metadata.PackageNotFoundError: No package metadata was found for flashinfer", "no-metadata", ["flashinfer", "flashinfer-python"], "asks for flashinfer-python"),
        ("AssertionError: {'id': 0, 'status': 'INFLIGHT', 'numel': 1}", "zero-3-parameter-not-gathered", ["deepspeed"], "set_z3_leaf_modules"),
        ("TypeError: BackendCompilerFailed.__init__() missing 1 required positional argument: 'inner_exception'", "cause-above", [], "first traceback"),
        ("OSError: [WinError 193] %1 is not a valid Win32 application", "wrong-architecture", [], "for this processor"),
        ("RuntimeError: uvloop does not support Windows at the moment", "not-for-windows", [], "WSL 2"),
        ("WARNING: Ignoring version 1.9.3 of pytorch-lightning since it has invalid metadata: Please use pip<24.1", "metadata-refused-by-pip", ["pytorch-lightning", "pip"], "valid metadata"),
        ("RuntimeError: Found no NVIDIA driver on your system. Please check", "no-driver", [], "--gpus all"),
        ("AssertionError: Torch not compiled with CUDA enabled", "cpu-only-torch", ["torch"], "--torch-backend=auto"),
        ("RuntimeError: Cannot find a working triton installation. Either the package is not installed or too old.", "no-triton", ["triton", "torch"], "torch"),
        ("ImportError: FlashAttention2 has been toggled on, but it cannot be used", "no-flash-attention", ["flash-attn"], "flash-attn"),
        ("RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1275, unhandled cuda error, NCCL version 2.19.3", "nccl", ["torch", "nvidia-nccl-cu12"], "NCCL_DEBUG"),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "out-of-memory", [], "batch"),
        ("RuntimeError: HIP error: invalid device function", "hip-no-code", ["torch"], "HSA_OVERRIDE_GFX_VERSION"),
        ("RuntimeError: module compiled against API version 0x10 but this version of numpy is 0xe", "numpy-abi", ["numpy"], "numpy"),
        ("ImportError: DLL load failed while importing flash_attn_2_cuda: The specified module could not be found.", "dll-load", ["flash-attn"], "Redistributable"),
        ("ERROR: flash_attn-2.5.8+cu122torch2.3-cp310-cp310-linux_x86_64.whl is not a supported wheel on this platform.", "wheel-not-supported", [], "wheel"),
        ("ImportError: /v/libtorch_cuda.so: undefined symbol: ncclCommRegister", "nvjitlink", ["torch", "nvidia-nccl-cu12"], "unset LD_LIBRARY_PATH"),
        ("ImportError: /v/nvidia/cusparse/lib/libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12", "nvjitlink", ["torch", "nvidia-nvjitlink-cu12"], "unset LD_LIBRARY_PATH"),
        ("ImportError: /v/sgl_kernel/common_ops.abi3.so: undefined symbol: cuGreenCtxDestroy", "driver-too-old", ["sgl-kernel"], "newer driver"),
        ("transformers.integrations.heterogeneity.configuration_utils.AmbiguousGlobalPerLayerAttributeError: 'head_dim' is a per-layer attribute and may vary across layers.", "per-layer-attribute", ["transformers"], "transformers<5.15"),
        ("Exception: Could not find the transformer layer class to wrap in the model.", "no-layer-to-wrap", ["accelerate", "transformers"], "SIZE_BASED_WRAP"),
        ("RuntimeError: \n        An attempt has been made to start a new process before the\n        current process has finished its bootstrapping phase.", "no-main-guard", [], "__main__"),
        ("ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache (52512).", "out-of-memory", [], "--max-model-len"),
        ("RuntimeError: Engine process failed to start. See stack trace for the root cause.", "cause-above", [], "first traceback"),
        ("RuntimeError: DataLoader worker (pid 1234) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.", "shared-memory", ["torch"], "shm-size"),
        ("torch.distributed.DistBackendError: NCCL error: invalid usage, NCCL version 2.21.5", "nccl", ["torch", "nvidia-nccl-cu12"], "NCCL_DEBUG"),
        ("ModuleNotFoundError: No module named 'flash_attn_interface'", "no-extension", ["flash-attn-3"], "flash-attn-3"),
        ("    self.src = self.src[re.search(r\"^def\\s+\\w+\\s*\\(\", self.src, re.MULTILINE).start():]\nAttributeError: 'NoneType' object has no attribute 'start'", "triton-kernel-source", ["triton"], "3.12"),
        ("RuntimeError: Could not find 'RANK' in the torch environment", "not-launched", ["torch"], "torchrun"),
        ("Check the documentation of torch.load to learn more about types accepted by default with weights_only https://docs.example", "weights-only", ["torch"], "torch<2.6"),
        ("ImportError: undefined symbol: _ZN5torch3jit17parseSchemaOrNameERKSs", "undefined-symbol", ["torch"], "no-build-isolation"),
        ("ImportError: /x/lib/python3.10/site-packages/transformer_engine_extensions.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZN18transformer_engine6getenvIiEET_RKSsRKS1_", "own-symbol", ["transformer-engine"], "transformer-engine"),
        ("ImportError: libcudart.so.13: cannot open shared object file: No such file or directory", "cuda-library-missing", ["nvidia-cuda-runtime"], "nvidia-cuda-runtime"),
        ("ImportError: libcudnn.so.8: cannot open shared object file: No such file or directory", "cuda-library-missing", ["nvidia-cudnn-cu12"], "nvidia-cudnn-cu12==8.*"),
        ("ImportError: libcufft.so.11: cannot open shared object file: No such file or directory", "cuda-library-missing", ["nvidia-cufft-cu12"], "nvidia-cufft-cu12"),
        ("ImportError: libGL.so.1: cannot open shared object file: No such file or directory", "system-library", ["opencv-python"], "libgl1"),
        ("ImportError: /v/torchvision/_C.so: undefined symbol: _ZN3c104cuda9SetDeviceEi", "undefined-symbol", ["torchvision", "torch"], "torchvision"),
        ("ImportError: /lib/libc.so.6: version `GLIBC_2.34' not found (required by /v/flash_attn_2_cuda.so)", "glibc", ["flash-attn"], "Ubuntu 22.04"),
        ("ImportError: /opt/conda/lib/libstdc++.so.6: version `CXXABI_1.3.13' not found (required by /v/xformers/_C.so)", "glibcxx", ["xformers"], "LD_PRELOAD"),
        ("ImportError: apply_chat_template requires jinja2>=3.1.0 to be installed. Your version is 3.0.3.", "stated-requirement", ["jinja2"], "jinja2>=3.1.0"),
        ("Building cuda extension requires PyTorch(>=1.13.0) been installed, please install PyTorch first!", "build-without-torch", [], "no-build-isolation"),
        ("RuntimeError: Can't enable access between nodes 0 and 1", "peer-access", ["torch"], "NCCL_P2P_DISABLE"),
        ("the NVIDIA driver is too old for CUDA 13", "driver-too-old", [], "newer driver"),
        ("UNREACHABLE executed at /project/lib/Conversion/TritonGPUToLLVM/ElementwiseOpToLLVM.cpp:816!", "triton-gpu", ["triton"], "fp16 instead"),
        ("RuntimeError: Expected is_sm90 || is_sm8x || is_sm75 to be true, but got false.", "attention-gpu", ["flash-attn"], "sdpa"),
        ("image_processor.py:147: RuntimeWarning: invalid value encountered in cast\n  images = (images * 255).round().astype(\"uint8\")", "black-image", ["diffusers"], "float32"),
        ("AttributeError: 'AsyncLLM' object has no attribute 'engine'", "vllm-v1-engine", ["vllm"], "VLLM_USE_V1=0"),
    ],
)  # fmt: skip
def test_each_message(text: str, rule: str, packages: list[str], fix: str) -> None:
    first = said(text)[0]
    assert (first.rule, list(first.packages)) == (f"symptom-{rule}", packages)
    assert any(fix in f"{each.command} {each.text}" for each in first.fixes)
    assert "{" not in f"{first.title} {first.why} {first.fixes}".replace("Fix({", "")


def test_a_hang_without_a_word_of_gpus_is_theirs_where_there_are_several() -> None:
    text = "after the first step the training freezes"
    gpu = Accelerator(vendor="nvidia", name="NVIDIA GeForce RTX 3090")
    assert said(text, Environment(accelerators=(gpu,))) == ()
    for several in (Environment(accelerators=(gpu, gpu)), Environment(workload=Workload(processes=4))):
        assert [each.rule for each in said(text, several)] == ["symptom-multi-gpu-hang"]


def test_what_is_built_without_torch_is_the_only_extension() -> None:
    text = "Getting requirements to build wheel ... error\n  Please install PyTorch first!"
    (finding,) = said(text, Environment(distributions=(Distribution("auto-gptq", "0.4.2"),)))
    assert (finding.rule, list(finding.packages)) == ("symptom-build-without-torch", ["auto-gptq"])


def test_a_torch_of_unknown_release_may_have_a_build_for_the_gpu() -> None:
    (finding,) = said(
        "UserWarning: NVIDIA A10G with CUDA capability sm_86 is not compatible with the current PyTorch installation."
    )
    assert [fix.kind for fix in finding.fixes] == ["pin", "source-install"]


def test_a_resolver_names_who_wants_what() -> None:
    text = (
        "  x No solution found when resolving dependencies:\n"
        "  ╰─▶ Because vllm==0.5.1 depends on torch==2.3.0 and you require torch==2.4.0, your requirements are unsatisfiable.\n"
    )
    first = said(text)[0]
    assert (first.title, first.effect) == ("vllm 0.5.1 requires torch==2.3.0", "install")


def test_where_both_releases_are_known_either_may_move() -> None:
    (finding,) = said("vllm 0.5.1 requires torch==2.3.0, but you have torch 2.4.0 which is incompatible.")
    assert finding.verdict == "hit"
    assert [fix.package for fix in finding.fixes] == ["torch", "vllm"]


def test_a_release_that_meets_what_is_asked_for_is_not_blamed() -> None:
    environment = Environment(distributions=(Distribution("jinja2", "3.1.4"),))
    (finding,) = said("ImportError: this requires `jinja2>=3.1.0`", environment)
    assert (finding.rule, [fix.package for fix in finding.fixes]) == ("symptom-requirement-met", [None, None])


@pytest.mark.parametrize("symptom", symptoms(), ids=lambda symptom: symptom.name)
def test_each_row_has_literals_a_fix_and_evidence(symptom: Symptom) -> None:
    assert all((symptom.hints, symptom.fixes, symptom.evidence))


@pytest.mark.parametrize(
    ("error", "rule", "said_of_it"),
    [
        ("KeyError: 'language_model.embed_tokens.weight'", "symptom-checkpoint-names", "language_model.embed_tokens.weight"),
        (
            "KeyError: 'layers.0.mlp.down_proj.weight.absmax'",
            "symptom-checkpoint-names",
            "layers.0.mlp.down_proj.weight.absmax",
        ),
        ("KeyError: 'layers.3.mlp.down_proj.qweight'", "symptom-quantized-weights", "layers.3.mlp.down_proj.qweight"),
        ("RuntimeError: 'weight' must be 2-D", "symptom-partitioned-weight", "ZeRO-3"),
        (
            "ptxas /tmp/tmpxft_01_00-11_k.compute_50.ptx, line 5; error   : Feature '.bf16' requires .target sm_80 or higher",
            "symptom-nvcc-target",
            "compute_50",
        ),
    ],
)
def test_messages_of_loading_training_and_building(error: str, rule: str, said_of_it: str) -> None:
    (finding,) = said(error)
    assert finding.rule == rule
    assert said_of_it in finding.title


@pytest.mark.parametrize("error", ["KeyError: 'weight'", "KeyError: 'loss.weight'", "KeyError: 'model.config'"])
def test_keys_that_are_no_weights_of_a_layer(error: str) -> None:
    assert said(error) == ()
