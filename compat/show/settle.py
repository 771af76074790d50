"""Which flag, or which key of a described environment, would answer an open question."""

from __future__ import annotations

_FLAGS = {
    "python": "--python-version VERSION",
    "os": "--os NAME",
    "machine": "--machine NAME",
    "glibc": "--glibc VERSION",
    "accelerators": '--gpu "NAME:COUNT"',
    "driver": "--driver VERSION",
    "cuda_toolkit": "--cuda-toolkit VERSION",
    "workload.launcher": "--launcher NAME, or the command itself behind --",
    "workload.task": "--task TASK",
    "workload.trainer": "--trainer CLASS",
    "workload.model": "--model NAME",
    "workload.processes": "--processes N",
    "workload.batch_size": "--batch-size N",
    "workload.precision": "--precision NAME",
    "workload.quantization": "--quantization NAME",
}


def flags_for(unknown: tuple[str, ...]) -> str:
    """ "--gpu …; --launcher …": everything that would settle a finding, in words."""
    said: list[str] = []
    packages = [
        path.partition(".")[2] for path in unknown if path.startswith("distributions.") and not path.endswith(".source")
    ]
    if packages:
        said.append(
            f"the version of {' and '.join(dict.fromkeys(packages))}, or that it is not there (--python, --environment)"
        )
    features = [path.rpartition(".")[2] for path in unknown if path.startswith("workload.features.")]
    for path in unknown:
        if path.startswith("workload.features.") or path.partition(".")[2] in packages:
            continue
        said.append(_one(path))
    if features:
        said.append(f"--features {' or '.join(features)} (or --without {','.join(features)})")
    return "; ".join(dict.fromkeys(said))


def _one(path: str) -> str:
    if path in _FLAGS:
        return _FLAGS[path]
    if path.endswith(".source"):
        return f"where {path.split('.')[1]} was installed from (source and commit in the described environment)"
    if path.startswith("variables."):
        return f"whether {path.partition('.')[2]} is set (variables in the described environment)"
    return f"{path} in the described environment"
