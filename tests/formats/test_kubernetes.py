"""Manifests of Kubernetes against what PyYAML finds in them, and edits that change nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from compat.errors import InputError
from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import edits_for
from compat.formats.listing import Listing
from compat.formats.registry import read_listings
from tests.formats.listings import placed_pins

MANIFEST = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  script: pip install nothing==1.0
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: sft}
spec:
  nprocPerNode: "8"
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        spec:
          containers: &containers
            - name: pytorch
              image: nvcr.io/nvidia/pytorch:24.10-py3
              command: ["bash", "-c"]
              args:
                - |
                  pip install transformers==4.46.3 \\
                    "trl==0.12.1"
                  torchrun train.py --per_device_train_batch_size 2 --bf16 True
              env:
                - {name: NCCL_DEBUG, value: INFO}
                - {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: a, key: b}}}
              resources: {limits: {nvidia.com/gpu: "8"}}
    Worker:
      replicas: 3
      template: {spec: {containers: *containers}}
---
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: grpo}
spec:
  entrypoint: python train.py --bf16 True
  runtimeEnvYAML: |
    pip:
      - torch==2.5.1
      - trl==0.14.0
    env_vars: {VLLM_USE_V1: "0"}
  rayClusterSpec:
    headGroupSpec:
      template:
        spec:
          containers: [{name: head, image: "rayproject/ray:2.40.0-py311-cu124"}]
    workerGroupSpecs:
      - groupName: gpu
        template:
          spec:
            nodeSelector: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}
            containers:
              - name: worker
                image: rayproject/ray:2.40.0-py311-cu124
                resources: {limits: {nvidia.com/gpu: 4}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: server}
spec:
  template:
    spec:
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
              - matchExpressions:
                  - {key: nvidia.com/gpu.product, operator: In, values: [NVIDIA-H100-80GB-HBM3]}
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.8.5
          args: ["--model", "Qwen/Qwen2.5-7B", "--tensor-parallel-size", "2"]
          resources: {limits: {nvidia.com/gpu: 2}}
"""


def read(tmp_path: Path, text: str, name: str = "job.yaml") -> dict[str | None, Listing]:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return {listing.label: listing for listing in read_listings(str(path))}


def at(text: str) -> int:
    """The line of the manifest that has a text."""
    return next(number for number, line in enumerate(MANIFEST.split("\n"), 1) if text in line)


def test_every_container_that_matters_is_a_listing(tmp_path: Path) -> None:
    found = read(tmp_path, MANIFEST)
    assert list(found) == [
        "PyTorchJob sft Master",
        "PyTorchJob sft Worker",
        "RayJob grpo head",
        "RayJob grpo gpu",
        "Deployment server",
    ]


def test_replicas_and_processes_a_node_are_the_world_size(tmp_path: Path) -> None:
    listing = read(tmp_path, MANIFEST)["PyTorchJob sft Worker"]
    workload = listing.context.workload
    assert workload is not None
    assert (workload.launcher, workload.processes, workload.batch_size, workload.precision) == ("torchrun", 32, 2, "bf16")
    assert len(listing.context.accelerators or ()) == 8
    assert listing.context.variables == {"NCCL_DEBUG": "INFO"}
    assert placed_pins(listing)["transformers"] == ("4.46.3", at("pip install transformers"))
    assert placed_pins(listing)["trl"] == ("0.12.1", at('"trl==0.12.1"'))
    assert placed_pins(listing)["torch"][0] == "2.5.0a0+e000cf0ad9.nv24.10"


def test_a_ray_job_installs_its_runtime_environment_in_every_container(tmp_path: Path) -> None:
    listing = read(tmp_path, MANIFEST)["RayJob grpo gpu"]
    assert placed_pins(listing) == {
        "ray": ("2.40.0", at("image: rayproject")),
        "torch": ("2.5.1", at("- torch==")),
        "trl": ("0.14.0", at("- trl==")),
    }
    assert listing.context.variables == {"VLLM_USE_V1": "0"}
    assert listing.context.workload is not None
    assert (listing.context.workload.launcher, listing.context.workload.precision) == ("ray", "bf16")
    assert [each.name for each in listing.context.accelerators or ()] == ["NVIDIA A100 SXM4 80GB"] * 4


def test_a_server_is_known_by_its_image(tmp_path: Path) -> None:
    listing = read(tmp_path, MANIFEST)["Deployment server"]
    workload = listing.context.workload
    assert workload is not None
    assert (workload.task, workload.model, workload.processes) == ("serve", "Qwen/Qwen2.5-7B", 2)
    assert placed_pins(listing)["vllm"][0] == "0.8.5"
    assert [each.name for each in listing.context.accelerators or ()] == ["NVIDIA H100 80GB HBM3"] * 2


def containers(value: Any) -> Iterator[dict[str, Any]]:
    """The oracle: every item of every ``containers``, by PyYAML."""
    if isinstance(value, dict):
        yield from value.get("containers", ())
        for each in value.values():
            yield from containers(each)
    elif isinstance(value, list):
        for each in value:
            yield from containers(each)


def test_images_gpus_and_pins_are_those_that_pyyaml_finds(tmp_path: Path) -> None:
    expected = []
    for document in yaml.safe_load_all(MANIFEST):
        environment = yaml.safe_load(document.get("spec", {}).get("runtimeEnvYAML", "{}")).get("pip", [])
        for container in containers(document):
            text = " ".join([*container.get("args", ()), *environment])
            count = int(container.get("resources", {}).get("limits", {}).get("nvidia.com/gpu", 0))
            expected.append((count, set(re.findall(r"[a-z-]+==[\w.]+", text))))
    found = []
    for listing in read(tmp_path, MANIFEST).values():
        own = [e.distribution for e in listing.entries if e.distribution.source and e.distribution.source.kind == "index"]
        found.append((len(listing.context.accelerators or ()), {f"{each.name}=={each.version}" for each in own}))
    assert found == expected


def test_a_trainjob_says_its_nodes_and_processes(tmp_path: Path) -> None:
    found = read(tmp_path, """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: tune}
spec:
  trainer:
    numNodes: 2
    numProcPerNode: 4
    image: pytorch/pytorch:2.5.1-cuda12.4-cudnn9-devel
    command: [torchrun, train.py, --fp16, "True"]
    resourcesPerNode: {requests: {nvidia.com/gpu: 4}}
""")  # fmt: skip
    listing = found["TrainJob tune"]
    assert listing.context.workload is not None
    assert (listing.context.workload.processes, listing.context.workload.precision) == (8, "fp16")
    assert len(listing.context.accelerators or ()) == 4
    assert placed_pins(listing) == {"torch": ("2.5.1", 8), "torchvision": ("0.20.1", 8)}


HELM = """\
{{- if .Values.train.enabled }}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-train
  labels:
    {{- include "train.labels" . | nindent 4 }}
spec:
  template:
    spec:
      containers:
        - name: train
          image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
          command: ["sh", "-c", "pip install torch=={{ .Values.torch }} trl==0.12.1 && python train.py"]
          resources:
            limits:
              nvidia.com/gpu: {{ .Values.gpus }}
{{- end }}
"""


def test_what_a_template_fills_in_is_not_known(tmp_path: Path) -> None:
    (listing,) = read(tmp_path, HELM).values()
    assert listing.label == "Job"
    assert placed_pins(listing) == {"torch": (None, 14), "trl": ("0.12.1", 14)}
    assert listing.context.accelerators is None
    assert "a template: the values it is rendered with are unknown" in listing.notes[0]
    assert any(" is only known at run time" in note for note in listing.notes)


def test_a_manifest_without_jobs_is_a_note(tmp_path: Path) -> None:
    found = read(tmp_path, "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80}]}\n")
    assert found[None].entries == ()
    assert "no container requests a GPU" in found[None].notes[0]


@pytest.mark.parametrize(
    ("change", "old", "new"),
    [
        (Change("trl", "0.14.0", "0.15.2"), "- trl==0.14.0", "- trl==0.15.2"),
        (Change("trl", "0.12.1", "0.15.2"), '"trl==0.12.1"', '"trl==0.15.2"'),
        (Change("transformers", "4.46.3", "4.48.0"), "transformers==4.46.3", "transformers==4.48.0"),
    ],
)
def test_an_edit_changes_one_pin_where_it_stands(tmp_path: Path, change: Change, old: str, new: str) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(MANIFEST, encoding="utf-8")
    (edit,) = edits_for(str(path), [change])
    assert edit.after.decode() == MANIFEST.replace(old, new)


def test_what_the_image_brings_is_not_edited(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(MANIFEST[MANIFEST.index("apiVersion: apps") :], encoding="utf-8")
    with pytest.raises(InputError, match="vllm is installed here in a way that cannot be changed safely"):
        edits_for(str(path), [Change("vllm", "0.8.5", "0.9.0")])


VALUES = """\
image: {repository: registry.example/base, tag: "1.0"}
router:
  enabled: false
  image: vllm/vllm-openai:v0.6.0
servingEngineSpec:
  modelSpec:
    - name: qwen
      repository: vllm/vllm-openai
      tag: v0.8.5
      modelURL: Qwen/Qwen2.5-14B-Instruct
      requestGPU: 4
      vllmConfig: {dtype: half, v0: "1", tensorParallelSize: 4, extraArgs: [--enforce-eager]}
    - name: amd
      repository: rocm/vllm
      tag: main
      modelURL: facebook/opt-125m
      requestGPU: 1
      requestGPUType: amd.com/gpu
server:
  image:
    registry: docker.io
    repository: vllm/vllm-openai
    tag: v0.8.5
    command: [vllm, serve, /data]
  nodeSelector: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}
  resources: {limits: {nvidia.com/gpu: 2}}
  env: {VLLM_USE_V1: "0"}
worker:
  resources: {requests: {nvidia.com/gpu: 1}}
"""


def test_values_of_a_chart_describe_its_containers(tmp_path: Path) -> None:
    found = read(tmp_path, VALUES, "values-prod.yaml")
    assert set(found) == {"qwen", "amd", "server", "worker"}, "nothing of what is not enabled"
    qwen = found["qwen"].context
    assert qwen.workload is not None
    assert (qwen.workload.task, qwen.workload.model, qwen.workload.processes) == ("serve", "Qwen/Qwen2.5-14B-Instruct", 4)
    assert (qwen.workload.precision, qwen.variables) == ("fp16", {"VLLM_USE_V1": "0"})
    assert placed_pins(found["qwen"])["vllm"] == ("0.8.5", 8)
    assert [(each.vendor, each.name) for each in found["amd"].context.accelerators or ()] == [("amd", None)]
    server = found["server"].context
    assert [each.name for each in server.accelerators or ()] == ["NVIDIA A100 SXM4 80GB"] * 2
    assert server.variables == {"VLLM_USE_V1": "0"}
    assert placed_pins(found["server"])["vllm"][0] == "0.8.5"
    assert len(found["worker"].context.accelerators or ()) == 1
    assert any("registry.example/base:1.0" in note for note in found["worker"].notes)


def test_a_manifest_named_like_values_is_one(tmp_path: Path) -> None:
    assert list(read(tmp_path, MANIFEST, "my-values.yaml")) == list(read(tmp_path, MANIFEST))


def test_values_without_a_job_say_so(tmp_path: Path) -> None:
    (only,) = read(tmp_path, "replicaCount: 1\nimage: {repository: nginx, tag: latest}\n", "values.yaml").values()
    assert "no container requests a GPU" in only.notes[0]
