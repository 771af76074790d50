"""A name that one package takes from another and that is not there: their releases do not belong together."""

from __future__ import annotations

import re

from compat.environment import normalized
from compat.report import Finding, Fix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.judge.facts import Facts
    from compat.read.log.traceback_text import RaisedError

_NAME = re.compile(r"cannot import name ['\"](?P<name>\w+)['\"] from ['\"](?P<module>[\w.]+)['\"](?! \(unknown location\))")
_MODULE = re.compile(r"No module named ['\"](?P<module>\w+(?:\.\w+)+)['\"]")
_ATTRIBUTE = re.compile(r"module ['\"](?P<module>[\w.]+)['\"] has no attribute ['\"](?P<name>\w+)['\"]")
_KEYWORD = re.compile(r"(?P<function>[\w.]+)\(\) got an unexpected keyword argument ['\"](?P<name>\w+)['\"]")


def interfaces(error: RaisedError, facts: Facts) -> list[Finding]:
    """A name that one package takes from another and that is not there: their releases do not belong together."""
    if error.exception is None or "partially initialized module" in error.message:
        return []
    match = _NAME.search(error.message) or _MODULE.search(error.message) or _ATTRIBUTE.search(error.message)
    packages = [normalized(name) for name in meeting(error)]
    if match is not None:
        owner = _distribution(match["module"].partition(".")[0])
        asking = next((name for name in reversed(packages) if name != owner), None)
        if asking is None or (match.re is _MODULE and match["module"].partition(".")[0] == asking.replace("-", "_")):
            return []
        what = match.groupdict().get("name") or match["module"]
        return [
            _mismatch(asking, owner, f"{asking} takes {what} from {owner}, and this {owner} has no such name", error, facts)
        ]
    match = _KEYWORD.search(error.message)
    if match is not None and len(packages) == 2 and packages[0] != packages[1]:
        asking, owner = packages
        said = f"{asking} calls {match['function']}() of {owner} with {match['name']}, which this {owner} does not take"
        return [_mismatch(asking, owner, said, error, facts)]
    return []


def _mismatch(asking: str, owner: str, said: str, error: RaisedError, facts: Facts) -> Finding:
    return Finding(
        rule="symptom-interface",
        origin="surface",
        verdict="possible",
        severity="error",
        effect="crash",
        title=said,
        why=f"The releases do not belong together: {asking} was written for an older or a newer {owner}. Which of both "
        f"has to move "
        "the message alone does not tell.",
        confidence="reported",
        packages={asking: version_of(asking, facts), owner: version_of(owner, facts)},
        fixes=(
            Fix("upgrade", asking, None, f"a release of {asking} written for this {owner}", f"pip install -U {asking}"),
            Fix("pin", owner, None, f"the {owner} that this {asking} was written for", None),
        ),
        evidence=("https://packaging.python.org/en/latest/guides/writing-pyproject-toml/#dependencies-optional-dependencies",),
        here=f"the error on line {error.line} of the text",
    )


_IMPORTED = {
    "torch": "torch",
    "cv2": "opencv-python",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "awq": "autoawq",
    "flash_attn": "flash-attn",
    "liger_kernel": "liger-kernel",
    "huggingface_hub": "huggingface-hub",
    "unsloth_zoo": "unsloth-zoo",
    "lmformatenforcer": "lm-format-enforcer",
    "flashinfer": "flashinfer-python",
    "pkg_resources": "setuptools",
}


def _distribution(module: str) -> str:
    return _IMPORTED.get(module) or normalized(module)


def meeting(error: RaisedError) -> tuple[str, ...]:
    """The last two packages among the frames, the one that failed last."""
    found: list[str] = []
    for frame in reversed(error.frames):
        parts = frame.file.replace("\\", "/").split("/")
        name = next((parts[at + 1] for at, part in enumerate(parts[:-1]) if part in ("site-packages", "dist-packages")), None)
        if name is None and parts[0] in ("...", "…") and len(parts) > 2:
            name = parts[1]
        if name is not None and name.removesuffix(".py") not in found:
            found.append(name.removesuffix(".py"))
        if len(found) == 2:
            break
    return tuple(reversed(found))


def version_of(name: str, facts: Facts) -> str | None:
    """The version of a distribution that is there."""
    found = facts.package(name)
    return found[0].version if isinstance(found, list) and found else None
