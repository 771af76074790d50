"""GPUs and nodes that exchange data: NCCL, peer-to-peer access, network interfaces."""

from __future__ import annotations

import re

from compat.diagnosis.symptoms.symptom import Symptom
from compat.model import Fix

_NCCL = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html"
_NO_P2P = Fix("env-var", text="disable peer-to-peer transfers", command="export NCCL_P2P_DISABLE=1")
_NCCL_LOG = Fix("env-var", text="make NCCL log what failed", command="export NCCL_DEBUG=INFO")

_WAITING = (
    r"[Hh]angs?|[Hh]anging|[Hh]ung|[Ss]tuck|[Ss]talls?|[Ss]talled|[Ff]reezes?|[Ff]rozen|[Dd]eadlocks?|[Dd]eadlocked|卡住|卡死"
)
_TOGETHER = (
    r"\bNCCL|\bnccl|[Tt]ensor[- _][Pp]arallel|[Mm]ulti[- ]?GPUs?|multi[- ]gpus?|[Mm]ultiple GPUs|(?:two|both|[2-9]|all) GPUs"
    r"|-tp[ =]?[2-9]|\btorchrun\b|init_process_group|多卡"
)


COMMUNICATION = (
    Symptom(
        "duplicate-gpu",
        re.compile(r"Duplicate GPU detected ?: rank (?P<one>\d{1,5}) and rank (?P<other>\d{1,5}) both on CUDA device"),
        "Two processes use the same GPU (ranks {one} and {other})",
        "NCCL needs a GPU for every process. Either more processes were started than GPUs are visible, or the program does not "
        "select its device by LOCAL_RANK.",
        hints=("Duplicate GPU",),
        facts=("accelerators", "workload", "variables"),
        packages=("torch",),
        fixes=(
            Fix("launch", text="start one process per visible GPU", command="torchrun --nproc_per_node gpu train.py"),
            Fix("config", text="torch.cuda.set_device(int(os.environ['LOCAL_RANK'])) before the process group is created"),
            Fix("env-var", text="stop hiding the other devices", command="unset CUDA_VISIBLE_DEVICES"),
        ),
        evidence=(_NCCL,),
    ),
    Symptom(
        "custom-all-reduce",
        re.compile(
            r"custom_all_reduce\.cuh:\d{1,5}[^\n]{0,20}'(?P<what>[\w ]{3,60})'|custom_all_reduce[^\n]{0,200}cudaIpc\w{5,30}"
        ),
        "The custom all-reduce kernel cannot share memory between the GPUs ({what})",
        "vLLM and SGLang replace NCCL's all-reduce by a kernel that opens the other processes' memory (CUDA IPC). That "
        "fails for memory in expandable segments, and where the processes or GPUs may not access each other.",
        hints=("custom_all_reduce",),
        facts=("accelerators", "variables", "workload"),
        else_packages=("vllm",),
        fixes=(
            Fix("config", text="use NCCL instead", command="--disable-custom-all-reduce"),
            Fix("env-var", text="do without expandable segments", command="unset PYTORCH_CUDA_ALLOC_CONF"),
        ),
        evidence=(
            "https://github.com/vllm-project/vllm/issues/5613",
            "https://github.com/vllm-project/vllm/issues/9046",
            "https://github.com/vllm-project/vllm/issues/42609",
        ),
    ),
    Symptom(
        "network-interface",
        re.compile(
            r"Bootstrap : no socket interface found|no socket interface found|Gloo connectFullMesh failed"
            r"|socketStartConnect: Connect to \S{3,60} failed|Unable to (?:find address for|resolve hostname to a)"
            r"|ncclSocketInit: connecting to address|NET/Socket : [^\n]{0,80}(?:No route to host|Connection refused)"
        ),
        "The processes use a network interface that the others do not reach",
        "NCCL and Gloo choose an interface by its name and order. That of a container, of a VPN, or one without a route to the "
        "other nodes does not work.",
        hints=("socket", "Socket", "connectFullMesh", "Unable to"),
        facts=("variables", "platform"),
        packages=("torch",),
        fixes=(
            Fix(
                "env-var",
                text="name the interface that reaches the other nodes ('ip addr' lists them)",
                command="export NCCL_SOCKET_IFNAME=<interface> GLOO_SOCKET_IFNAME=<interface>",
            ),
            Fix("launch", text="let containers use the host's network", command="docker run --network=host"),
        ),
        evidence=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html#networking-issues",),
    ),
    Symptom(
        "infiniband",
        re.compile(
            r"NET/IB : [^\n]{0,80}(?:error|failed|timed out)|ibv_(?:reg_mr|create_cq|create_qp|modify_qp|open_device"
            r"|poll_cq)\w{0,20}"
            r"[^\n]{0,40}(?:failed|error)|Got completion from peer [^\n]{0,120}status=\d"
        ),
        "NCCL's InfiniBand or RoCE transport failed",
        "Common causes are a limit on locked memory in the container, the wrong GID or device, and a link that is down.",
        hints=("NET/IB", "ibv_", "completion from peer"),
        facts=("variables", "platform", "accelerators"),
        packages=("torch",),
        fixes=(
            Fix(
                "launch",
                text="lift the limit on locked memory",
                command="docker run --ulimit memlock=-1 --device=/dev/infiniband",
            ),
            Fix("env-var", text="use TCP instead, to see whether it is the cause", command="export NCCL_IB_DISABLE=1"),
            Fix("env-var", text="choose device and GID", command="export NCCL_IB_HCA=<device> NCCL_IB_GID_INDEX=<index>"),
        ),
        evidence=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html#networking-issues",),
    ),
    Symptom(
        "nccl-shared-memory",
        re.compile(
            r"Error while (?:creating|attaching to) shared memory segment|\bncclShm\w{3,30}"
            r"|posix_fallocate failed ?: No space left on device"
        ),
        "NCCL ran out of shared memory (/dev/shm)",
        "The processes of a node exchange data through /dev/shm, which has 64 MiB in a container by default.",
        hints=("shared memory segment", "ncclShm", "posix_fallocate"),
        facts=("platform", "variables"),
        packages=("torch",),
        fixes=(
            Fix("launch", text="give the container more shared memory", command="docker run --shm-size=16g --ipc=host"),
            Fix("config", text="in Kubernetes, mount an emptyDir with medium: Memory at /dev/shm"),
            Fix("env-var", text="do without shared memory, which is slower", command="export NCCL_SHM_DISABLE=1"),
        ),
        evidence=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html#shared-memory",),
    ),
    Symptom(
        "nccl",
        re.compile(
            r"NCCL [Ee]rror \d|unhandled (?P<what>cuda|system) error(?:[^\n]{0,80}NCCL version (?P<version>[\d.]{1,12}))?|"
            r"ncclUnhandledCudaError|ncclSystemError|ncclInternalError|ncclInvalidUsage|NCCL error in: "
        ),
        "NCCL failed: the GPUs or processes could not reach each other",
        "NCCL's own log names the cause. Common ones are too little /dev/shm in a container, GPUs without peer-to-peer, an "
        "unusable network interface, two processes on one GPU, or an NCCL release other than the one torch was built with.",
        hints=("unhandled", "nccl", "NCCL error", "NCCL Error"),
        facts=("accelerators", "variables", "driver", "build"),
        packages=("torch", "nvidia-nccl-cu12"),
        fixes=(
            _NCCL_LOG,
            Fix("launch", text="give the container more shared memory", command="docker run --shm-size=16g --ipc=host"),
            _NO_P2P,
            Fix(
                "upgrade",
                "nvidia-nccl-cu12",
                None,
                "a later NCCL, which torch loads in place of its own; new GPUs and drivers often need it",
                "pip install -U nvidia-nccl-cu12",
            ),
        ),
        evidence=(_NCCL,),
    ),
    Symptom(
        "nccl-timeout",
        re.compile(
            r"Watchdog caught collective operation timeout[^\n]{0,60}?(?:OpType=(?P<operation>\w{1,30}))?"
            r"|watchdog got stuck for \d{1,6} seconds|Heartbeat monitor timed out"
        ),
        "An NCCL collective timed out: one process waits for another",
        "One rank never reached it: it failed earlier (look for its own error above), does other work or a different number "
        "of steps, or the GPUs cannot reach each other directly. Peer-to-peer does not work on consumer GPUs, with some "
        "drivers, and behind an IOMMU.",
        effect="hang",
        hints=("Watchdog caught", "watchdog got stuck", "Heartbeat monitor"),
        facts=("accelerators", "variables", "driver", "workload"),
        packages=("torch",),
        fixes=(
            _NO_P2P,
            _NCCL_LOG,
            Fix("driver", text="use another driver release if peer-to-peer is what hangs"),
            Fix("config", text="use a longer timeout if one rank just takes longer (ddp_timeout, init_process_group)"),
        ),
        evidence=(_NCCL,),
    ),
    Symptom(
        "nccl-nvls",
        re.compile(r"nvls\.cc:\d+ NCCL WARN|bind NVLink SHARP \(NVLS\)"),
        "NCCL cannot use NVLink SHARP (multicast through NVSwitch)",
        "NVLS needs the fabric manager, access to its devices in a container or virtual machine, and about 1 GiB on each "
        "GPU. NCCL does not fall back if only the last step fails.",
        hints=("nvls.cc", "NVLS"),
        facts=("accelerators", "variables", "driver"),
        packages=("torch",),
        fixes=(
            Fix("env-var", text="use plain NVLink", command="export NCCL_NVLS_ENABLE=0"),
            Fix("driver", text="let the fabric manager run in the release of the driver, and pass its devices on"),
        ),
        evidence=(
            "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
            "https://github.com/NVIDIA/nccl/issues/1769",
            "https://github.com/pytorch/ao/pull/3841",
        ),
    ),
    Symptom(
        "tensor-cores-p2p",
        re.compile(r"(?i:using RTX 40\d\d series doesn't support faster communication)"),
        "RTX 40 series GPUs cannot communicate directly",
        "Their driver does not support peer-to-peer; NCCL hangs or fails when it tries to use it.",
        hints=("faster communication",),
        facts=("accelerators", "variables"),
        fixes=(Fix(kind="env-var", text="disable it for NCCL", command="export NCCL_P2P_DISABLE=1 NCCL_IB_DISABLE=1"),),
        evidence=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",),
    ),
    Symptom(
        "multi-gpu-hang",
        re.compile(rf"\b(?:{_WAITING})\b[\s\S]{{0,1500}}?(?:{_TOGETHER})|(?:{_TOGETHER})[\s\S]{{0,1500}}?\b(?:{_WAITING})\b"),
        "Several GPUs wait for each other, and no error is shown",
        "The GPUs exchange data for the first time, and it does not arrive. Peer-to-peer access does not work behind an "
        "IOMMU or with PCIe ACS, on consumer GPUs and with some drivers, although the driver says it does.",
        effect="hang",
        hints=("GPU", "gpu", "nccl", "NCCL", "tensor", "Tensor", "tp", "TP", "torchrun", "process_group", "多卡"),
        facts=("accelerators", "variables", "driver", "workload"),
        packages=("torch", "nvidia-nccl-cu12"),
        general=True,
        fixes=(
            _NO_P2P,
            Fix(
                "config",
                text="disable the IOMMU (iommu=off, or pt) and PCIe ACS in the firmware or on the kernel's command line",
            ),
            Fix("config", text="in vLLM and SGLang, use NCCL for all-reduce as well", command="--disable-custom-all-reduce"),
            _NCCL_LOG,
        ),
        evidence=(
            _NCCL,
            "https://docs.vllm.ai/en/latest/usage/troubleshooting.html",
            "https://github.com/vllm-project/vllm/issues/9920",
            "https://github.com/vllm-project/vllm/issues/8087",
        ),
    ),
)
