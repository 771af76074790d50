"""Processes that run out of memory or do not reach each other."""

from __future__ import annotations

import re

from compat.diagnosis.symptoms.symptom import Symptom
from compat.model import Fix

_NCCL = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html"
_NO_P2P = Fix("env-var", text="go without peer-to-peer", command="export NCCL_P2P_DISABLE=1")
_NCCL_LOG = Fix("env-var", text="let NCCL say what failed", command="export NCCL_DEBUG=INFO")


PROCESSES = (
    Symptom(
        "out-of-memory",
        re.compile(
            r"(?:CUDA|HIP) out of memory\.(?: Tried to allocate (?P<size>[\d.]{1,12} [KMGT]iB))?|OutOfMemoryError|No "
            r"available memory for the cache blocks|CUDA error: out of memory"
        ),
        "The GPU's memory does not suffice",
        "No release is at fault as long as the same job does not fit with others either.",
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
        "nccl",
        re.compile(
            r"unhandled (?P<what>cuda|system) error(?:[^\n]{0,80}NCCL version (?P<version>[\d.]{1,12}))?|"
            r"ncclUnhandledCudaError|ncclSystemError|ncclInternalError|ncclInvalidUsage|NCCL error in: "
        ),
        "NCCL failed: the GPUs or processes could not reach each other",
        "The cause stands in NCCL's own log. Often it is too little /dev/shm in a container, GPUs without peer-to-peer, a "
        "network interface that cannot be used, two processes on one GPU, or an NCCL of another release than torch was built "
        "with.",
        hints=("unhandled", "nccl", "NCCL error"),
        facts=("accelerators", "variables", "driver", "build"),
        packages=("torch",),
        fixes=(
            _NCCL_LOG,
            Fix("launch", text="give the container shared memory", command="docker run --shm-size=16g --ipc=host"),
            _NO_P2P,
        ),
        evidence=(_NCCL,),
    ),
    Symptom(
        "nccl-timeout",
        re.compile(
            r"Watchdog caught collective operation timeout[^\n]{0,60}?(?:OpType=(?P<operation>\w{1,30}))?"
            r"|watchdog got stuck for \d{1,6} seconds|Heartbeat monitor timed out"
        ),
        "A collective operation of NCCL did not end: one process waits for another",
        "One rank never got there: it failed earlier (its own error stands above), does other work or another number of "
        "steps, or the GPUs cannot reach each other directly: peer-to-peer does not work on consumer GPUs, with "
        "some drivers, and with an IOMMU in the way.",
        effect="hang",
        hints=("Watchdog caught", "watchdog got stuck", "Heartbeat monitor"),
        facts=("accelerators", "variables", "driver", "workload"),
        packages=("torch",),
        fixes=(
            _NO_P2P,
            _NCCL_LOG,
            Fix("driver", text="another release of the driver, where peer-to-peer is what hangs"),
            Fix("config", text="a longer timeout, where one rank only works longer (ddp_timeout, init_process_group)"),
        ),
        evidence=(_NCCL,),
    ),
    Symptom(
        "tensor-cores-p2p",
        re.compile(r"(?i:using RTX 40\d\d series doesn't support faster communication)"),
        "GPUs of the RTX 40 series cannot talk to each other directly",
        "Their driver has no peer-to-peer; NCCL hangs or fails where it tries.",
        hints=("faster communication",),
        facts=("accelerators", "variables"),
        fixes=(Fix(kind="env-var", text="keep NCCL off it", command="export NCCL_P2P_DISABLE=1 NCCL_IB_DISABLE=1"),),
        evidence=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",),
    ),
)
