"""Distributions of different names that install the same modules or libraries (``matrix/facts/overlaps.csv``).

What was installed last is imported, and uninstalling one distribution takes files of the other away. That alone is a remark:
many environments have two such packages and work. It is a warning where the wrong one has an effect: a release that another
package does not accept, a build for the CPU on a machine with a GPU, a library of CUDA in two releases, files of builds that do
not work together. In installed environments the files say which one is there (``compat.machine.metadata``).
"""

from __future__ import annotations

from compat.checks.overlap_fixes import asked_for, cuda_of_torch, fixes_of
from compat.model import Distribution, Finding, Fix
from compat.rules.facts import ABSENT
from compat.rules.rule import TRAINING, kinds_of
from compat.tables.overlaps import Group, open_overlaps
from compat.versions import contains, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compat.checks.overlap_fixes import Asked
    from compat.rules.facts import Facts

RULE = "overwritten-"
"""How the rules of these findings start."""
_PIP, _UV = "https://github.com/pypa/pip/issues/4625", "https://github.com/astral-sh/uv/issues/15357"
_EVIDENCE = {
    "cv2": ("https://github.com/opencv/opencv-python#installation-and-usage",),
    "onnxruntime": (
        "https://github.com/microsoft/onnxruntime/issues/7748",
        "https://github.com/microsoft/onnxruntime/issues/26996",
    ),
    "flash_attn": ("https://github.com/PrimeIntellect-ai/prime-rl/pull/1949",),
    "nvidia_cutlass_dsl": ("https://github.com/NVIDIA/cutlass/issues/3259", "https://github.com/sgl-project/sglang/pull/25958"),
    "nvidia": ("https://github.com/pytorch/pytorch/issues/186591", "https://github.com/rwth-i6/returnn/issues/1802"),
}
_OVERWRITTEN = (
    "The one that was installed last replaces the files of the other, or both are mixed if they are installed at once, as by "
    "uv. Uninstalling one takes files of the other away."
)
_NOT_BY_TRAINERS = ("onnxruntime", "onnxruntime_genai", "faiss")
"""Modules that no trainer imports."""


def judge(facts: Facts) -> Iterator[Finding]:
    """Yield a finding for each set of distributions that overwrite each other, and for each whose module is gone."""
    copies = facts.environment.distributions or ()
    for copy in copies:
        if copy.extra.get("files") == "missing":
            yield from _gone(copy)
    groups = list(open_overlaps().groups(copies))
    seen: set[tuple[str, ...]] = set()
    for group in groups:
        names = tuple(copy.name for copy in group.copies)
        if not group.is_library and names not in seen:
            seen.add(names)
            yield _of_module(group, facts)
    different = [each for each in groups if each.is_library and len({copy.version for copy in each.copies}) > 1]
    if different and facts.package("torch") != ABSENT:
        yield _of_libraries(different, facts)


def _gone(copy: Distribution) -> Iterator[Finding]:
    for installs in open_overlaps().of(copy)[:1]:
        module = installs.file.removesuffix("/__init__.py")
        again = Fix(
            "pin", copy.name, f"=={copy.version}", "put its files back",
            f'pip install --force-reinstall --no-deps "{copy.name}=={copy.version}"',
        )  # fmt: skip
        yield Finding(
            rule=f"{RULE}{module.partition('/')[0]}", origin="build",
            title=f"{copy.name} is installed, but its files are gone: import {module.replace('/', '.')} fails",
            why=f"Its RECORD lists {installs.file}, which is not there: a distribution with the same files was uninstalled.",
            packages={copy.name: copy.version}, facts=("install",), fixes=(again,), evidence=(_PIP,), here=_shown(copy),
        )  # fmt: skip


def _of_module(group: Group, facts: Facts) -> Finding:
    names, top = _listed([_shown(copy) for copy in group.copies]), group.module.partition("/")[0]
    asked = asked_for(group, facts.environment)
    slow = _slow(group, facts)
    effect = slow or _refused(group, asked) or _mixed(group, facts) or ""
    return Finding(
        rule=f"{RULE}{top}", origin="build", severity="warning" if effect else "info",
        effect="slow" if slow else "crash" if effect else "install",
        title=f"{names} {'both' if len(group.copies) == 2 else 'all'} install {group.module}",
        why=" ".join(filter(None, (_OVERWRITTEN, _on_disk(group), effect))),
        packages={copy.name: copy.version for copy in group.copies},
        facts=("accelerators", "install") if slow else ("install",),
        fixes=fixes_of(group, facts, asked), evidence=(*_EVIDENCE.get(top, ()), _PIP, _UV), here=names,
    )  # fmt: skip


def _of_libraries(groups: Sequence[Group], facts: Facts) -> Finding:
    """Releases of NVIDIA's libraries for two CUDA releases: torch loads the one that was installed last."""
    copies = {copy.name: (copy, each.build) for group in groups for copy, each in zip(group.copies, group.installs)}
    cuda = cuda_of_torch(facts)
    shown = _listed([_shown(copy) for copy, _ in copies.values()])
    kept = [copy for copy, build in copies.values() if build == f"cuda{cuda}"]
    others = [copy.name for copy, _ in copies.values() if copy not in kept]
    again = " ".join(f'"{copy.name}=={copy.version}"' for copy in kept)
    known = bool(kept and others)
    command = f"pip uninstall -y {' '.join(others)} && pip install --force-reinstall --no-deps {again}" if known else None
    text = f"CUDA {cuda}, which torch is built for" if known else "the CUDA release of torch"
    return Finding(
        rule=f"{RULE}nvidia", origin="build", severity="warning",
        title=f"{shown} install the same {'file' if len(groups) == 1 else 'files'}",
        why=f"All of them have {_listed([group.file for group in groups])}, so torch loads what was installed last. If that is "
        "an older release than torch was built with, 'import torch' fails with an undefined symbol.",
        packages={name: copy.version for name, (copy, _) in copies.items()}, facts=("build",),
        fixes=(Fix("uninstall", (others or list(copies))[0], text=f"keep the packages for {text}", command=command),),
        evidence=_EVIDENCE["nvidia"], here=shown,
    )  # fmt: skip


# --- What the wrong one does.


def _slow(group: Group, facts: Facts) -> str | None:
    """What a build for the CPU does on a machine with an NVIDIA GPU."""
    builds = {copy.name: each.build for copy, each in zip(group.copies, group.installs)}
    of_cpu = [name for name, build in builds.items() if build == "cpu"]
    of_cuda = [copy for copy in group.copies if builds[copy.name].startswith("cuda")]
    has_gpu = any(device.vendor in (None, "nvidia") for device in facts.accelerators() or ())
    if not of_cpu or not of_cuda or not has_gpu or any(copy.extra.get("files") == "own" for copy in of_cuda):
        return None
    task = facts.value("workload.task")
    is_unused = facts.has_trainers if task is None else task in ("install", "build") or TRAINING in kinds_of(task)
    if group.module in _NOT_BY_TRAINERS and is_unused:
        return None
    return f"{of_cpu[0]} is a build for the CPU: if its files are the ones that are left, {group.module} does not use the GPU."


def _refused(group: Group, asked: Asked) -> str | None:
    """Who requires one of them in a release that another one is not."""
    left = [copy for copy in group.copies if copy.extra.get("files") == "own"] or list(group.copies)
    for copy in group.copies:
        for asking, specifier in asked.get(copy.name, ()):
            for other in left:
                if other is not copy and not _accepts(specifier, other):
                    return f"{asking} requires {copy.name}{specifier}, in whose place {_shown(other)} may be."
    return None


def _accepts(specifier: str, copy: Distribution) -> bool:
    try:
        return not specifier or contains(ranges_of(specifier), key_of(copy.version or "0"))
    except ValueError:
        return True  # no specifier of PEP 440


def _mixed(group: Group, facts: Facts) -> str | None:
    """Whether files of two builds that do not work together are there, or may be; or those of another one in a part."""
    states = [copy.extra.get("files") for copy in group.copies]
    if "mixed" in states:
        return "Files of two builds do not work together."
    for copy, each, state in zip(group.copies, group.installs, states):
        if state == "replaced" and not each.part and any(other.part for other in group.installs):
            return f"{copy.name} has nothing else, so that what needs it fails."
    is_idle = facts.accelerators() == () and any(each.build for each in group.installs)
    if None in states and group.does_not_mix and not is_idle:
        return "Their modules differ: what is written for one of them fails with the other, or with a mix of both."
    return None


def _on_disk(group: Group) -> str:
    states = {copy.name: copy.extra.get("files") for copy in group.copies}
    owner = next((name for name, state in states.items() if state == "own"), None)
    if owner is not None:
        return f"The files that are there are those of {owner}."
    return "Here files of both are left." if "mixed" in states.values() else ""


def _shown(copy: Distribution) -> str:
    return f"{copy.name} {copy.version}"


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]
