"""Processes that run out of memory or cannot reach each other."""

from __future__ import annotations

import re

from compat.diagnosis.symptoms.symptom import Symptom
from compat.model import Fix

PROCESSES = (
    Symptom(
        "out-of-memory",
        re.compile(
            r"(?:CUDA|HIP|MPS backend) out of memory\.?(?: Tried to allocate (?P<size>[\d.]{1,12} [KMGT]iB))?|OutOfMemoryError"
            r"|No available memory for the cache blocks|CUDA error: out of memory"
        ),
        "The GPU runs out of memory",
        "No package is at fault unless the same job fits with other releases.",
        hints=(
            "out of memory",
            "OutOfMemory",
            "cache blocks",
        ),
        effect="memory",
        facts=("accelerators", "workload"),
        fixes=(
            Fix("config", text="a smaller batch with gradient accumulation, gradient checkpointing, or shorter sequences"),
            Fix("config", text="load the model in 4 or 8 bits, or shard it (FSDP, ZeRO-3)"),
            Fix("env-var", text="against fragmentation", command="export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
        ),
        evidence=("https://pytorch.org/docs/stable/notes/cuda.html#memory-management",),
    ),
    Symptom(
        "rendezvous",
        re.compile(
            r"client socket has (?:failed to connect|timed out)|The server socket has failed to (?:listen|bind)|"
            r"address already in use[^\n]{0,80}(?:EADDRINUSE|port)|EADDRINUSE"
        ),
        "The processes do not meet: their address or port cannot be used",
        "The name of the first node does not resolve to an address that the others reach, the port is in use by a run that has "
        "not ended, or a firewall blocks it.",
        hints=("client socket", "server socket", "EADDRINUSE", "ddress already in use"),
        facts=("variables", "workload", "os"),
        packages=("torch",),
        general=True,
        fixes=(
            Fix(
                "env-var",
                text="an address of the first node that all nodes reach (one machine: 127.0.0.1)",
                command="export MASTER_ADDR=<address>",
            ),
            Fix("launch", text="another port", command="torchrun --master_port 29501 train.py"),
        ),
        evidence=("https://pytorch.org/docs/stable/elastic/run.html",),
    ),
    Symptom(
        "data-parallel-attribute",
        re.compile(r"'DataParallel' object has no attribute '(?P<name>[A-Za-z]\w{0,60})'"),
        "The model is wrapped in DataParallel, which has no {name}",
        "If plain python sees several GPUs, transformers' Trainer and its relatives wrap the model in torch's DataParallel. "
        "The wrapper passes calls on, but not the attributes and methods of the model.",
        hints=("'DataParallel' object",),
        facts=("accelerators", "workload"),
        packages=("torch",),
        fixes=(
            Fix("env-var", text="use one GPU", command="export CUDA_VISIBLE_DEVICES=0"),
            Fix("launch", text="start one process per GPU", command="accelerate launch train.py"),
            Fix("config", text="in code of your own: the model itself is in .module (model.module.{name})"),
        ),
        evidence=("https://pytorch.org/docs/stable/generated/torch.nn.DataParallel.html",),
    ),
    Symptom(
        "distributed-attribute",
        re.compile(r"'DistributedDataParallel' object has no attribute '(?P<name>[A-Za-z]\w{0,60})'"),
        "The model is wrapped in DistributedDataParallel, which has no {name}",
        "In a run of several processes, each wraps the model in torch's DistributedDataParallel. The wrapper passes calls on, "
        "but not the attributes and methods of the model.",
        hints=("'DistributedDataParallel' object",),
        facts=("accelerators", "workload"),
        packages=("torch",),
        fixes=(
            Fix("config", text="accelerator.unwrap_model(model).{name}, or model.module.{name}"),
            Fix("launch", text="run on one GPU, in one process"),
        ),
        evidence=("https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",),
    ),
    Symptom(
        "two-devices",
        re.compile(
            r"Expected all tensors to be on the same device,? but (?:found at least two devices, |got \w{1,40} is on )"
            r"(?P<one>cuda:\d{1,2}|cpu)(?: and |, different from other tensors on )(?P<other>cuda:\d{1,2}|cpu)"
        ),
        "One operation got tensors on {one} and on {other}",
        "device_map='auto' spreads the layers of a model over all visible GPUs, and over the CPU if they are too small; "
        "transformers' Trainer copies the model to all visible GPUs under plain python. Code that keeps a tensor or a layer "
        "where it was created then fails.",
        hints=("on the same device",),
        facts=("accelerators", "workload"),
        packages=("torch",),
        general=True,
        fixes=(
            Fix("env-var", text="use one GPU, if the model fits", command="export CUDA_VISIBLE_DEVICES=0"),
            Fix("launch", text="start one process per GPU", command="accelerate launch train.py"),
            Fix(
                "config",
                text="load the whole model on the GPU of its process: "
                "device_map={'': PartialState().process_index}, from accelerate",
            ),
        ),
        evidence=("https://huggingface.co/docs/accelerate/concept_guides/big_model_inference",),
    ),
    Symptom(
        "device-map-elsewhere",
        re.compile(
            r"You can't train a model that has been loaded (?:in \d-bit(?: or \d-bit)? precision|with `device_map='auto'`) "
            r"(?:on multiple devices|in any distributed mode|on a different device)"
        ),
        "device_map puts the model on other GPUs than the process trains on",
        "device_map='auto' spreads the layers of a model over all visible GPUs. Each of the processes that a launcher starts "
        "needs the whole model on its own GPU.",
        hints=("You can't train a model",),
        facts=("accelerators", "workload"),
        packages=("accelerate",),
        fixes=(
            Fix(
                "config",
                text="load the whole model on the GPU of its process: "
                "device_map={'': PartialState().process_index}, from accelerate",
            ),
            Fix(
                "launch",
                text="if it only fits on several GPUs: one process, so that the layers run one after the other",
                command="accelerate launch --num_processes 1 train.py",
            ),
        ),
        evidence=("https://huggingface.co/docs/accelerate/concept_guides/big_model_inference",),
    ),
    Symptom(
        "ddp-ready-twice",
        re.compile(r"Expected to mark a variable ready only once"),
        "DistributedDataParallel sees a gradient twice: reentrant checkpointing, or a parameter used several times",
        "Reentrant gradient checkpointing runs a part of the model again in the backward pass. With find_unused_parameters, or "
        "with adapters on shared weights, DDP then counts a parameter twice.",
        hints=("mark a variable ready",),
        facts=("workload",),
        packages=("torch",),
        fixes=(
            Fix("config", text="gradient_checkpointing_kwargs=dict(use_reentrant=False)"),
            Fix("config", text="ddp_find_unused_parameters=False"),
            Fix("config", text="turn gradient checkpointing off, or shard the model instead (FSDP, ZeRO-3)"),
        ),
        evidence=("https://pytorch.org/docs/stable/checkpoint.html",),
    ),
    Symptom(
        "killed",
        re.compile(r"exit ?code ?: -9\b|died with <Signals\.SIGKILL|returned non-zero exit status 137|Signal 9 \(SIGKILL\)"),
        "A process was killed from outside (SIGKILL)",
        "Mostly the kernel ends the largest process when the host, or the limit of the container or job, has no memory left. "
        "Loading a model once per process needs that much host memory for each.",
        effect="memory",
        hints=("-9", "SIGKILL", "137"),
        facts=("workload", "platform"),
        general=True,
        fixes=(
            Fix("config", text="see what the kernel ended", command="dmesg | grep -i 'killed process'"),
            Fix("launch", text="more memory for the container or job, or fewer processes and data loader workers per node"),
            Fix("config", text="low_cpu_mem_usage=True, or ZeRO-3 initialization, so that each process loads only its part"),
        ),
        evidence=("https://docs.kernel.org/admin-guide/mm/concepts.html",),
    ),
    Symptom(
        "shared-memory",
        re.compile(
            r"exit ?code ?: -7\b|died with <Signals\.SIGBUS|Signal 7 \(SIGBUS\)|insufficient shared memory \(shm\)"
            r"|No space left on device[^\n]{0,40}/dev/shm|unable to (?:mmap|write) [^\n]{0,80}/torch_\d"
        ),
        "A process ran out of shared memory (/dev/shm)",
        "NCCL and the workers of data loaders share memory through /dev/shm, which has 64 MiB in a container by default.",
        hints=("-7", "SIGBUS", "shared memory", "/dev/shm", "/torch_"),
        facts=("platform", "workload"),
        packages=("torch",),
        general=True,
        fixes=(
            Fix("launch", text="give the container more shared memory", command="docker run --shm-size=16g --ipc=host"),
            Fix("config", text="fewer data loader workers (dataloader_num_workers=0)"),
        ),
        evidence=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html#shared-memory",),
    ),
    Symptom(
        "cause-above",
        re.compile(
            r"Engine core initialization failed\. See root cause above|Worker failed with error[^\n]{0,200}please check the "
            r"stack trace above|ChildFailedError|EngineDeadError|See stack trace \(above\)"
            r"|Engine (?:process|loop) [^\n]{0,40}(?:died|is not running)"
        ),
        "A worker process failed; its error is printed above this one",
        "This message only passes on that a process failed. The traceback of that process names the cause.",
        hints=("root cause above", "stack trace", "EngineDead", "Engine ", "ChildFailedError"),
        facts=("workload",),
        general=True,
        fixes=(Fix("config", text="paste the text from the first traceback of a worker on; it stands above this message"),),
        evidence=("https://docs.vllm.ai/en/latest/usage/troubleshooting.html",),
    ),
)
