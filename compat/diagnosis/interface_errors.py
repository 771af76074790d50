"""A name that one package takes from another and that is not there: their releases do not belong together.

Where the tables of published source know the name, they say which releases have it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from compat.model import Finding, Fix, normalized
from compat.records import replace

if TYPE_CHECKING:
    from compat.diagnosis.named_releases import Named
    from compat.reports.log.traceback import RaisedError
    from compat.rules.facts import Facts


_NAME = re.compile(r"cannot import name ['\"](?P<name>\w+)['\"] from ['\"](?P<module>[\w.]+)['\"](?! \(unknown location\))")
_MODULE = re.compile(r"No module named ['\"](?P<module>\w+(?:\.\w+)+)['\"]")
_ATTRIBUTE = re.compile(r"module ['\"]?(?P<module>\w[\w.]*\w)['\"]? has no attribute ['\"]?(?P<name>\w+)")
"""transformers' lazy modules write it without quotes."""
_MEMBER = re.compile(r"['\"](?P<owner>\w+)['\"] object has no attribute ['\"](?P<name>\w+)['\"]")
_FLAGS = re.compile(
    r"(?:not used by the (?:HfArgumentParser|TrlParser)|Unknown arguments from config file): [\[{](?P<flags>[^\]}]{1,2000})"
)
_KEYWORD = re.compile(r"(?<![\w.])(?P<function>[\w.]+)\(\) got an unexpected keyword argument ['\"](?P<name>\w+)['\"]")
_MISSING_NAMES = (_NAME, _MODULE, _ATTRIBUTE, _MEMBER, _KEYWORD)


def interfaces(error: RaisedError, facts: Facts) -> list[Finding]:
    """A name that one package, or the user's code, takes from another and that is not there."""
    if error.exception is None or "partially initialized module" in error.message:
        return []
    if found := _between(error, facts):
        return found
    match = _NAME.search(error.message) or _MODULE.search(error.message) or _ATTRIBUTE.search(error.message)
    packages = [normalized(name) for name in meeting(error)]
    if match is not None:
        owner = _distribution(match["module"].partition(".")[0])
        asking = next((name for name in reversed(packages) if name != owner), None)
        known = _known_name(match)
        if asking is None:
            return _lacking(known, error, facts)
        if match.re is _MODULE and match["module"].partition(".")[0] == asking.replace("-", "_"):
            return []
        what = match.groupdict().get("name") or match["module"]
        said = f"{asking} takes {what} from {owner}, and this {owner} has no such name"
        return [_mismatch(asking, owner, said, known, error, facts)]
    from compat.diagnosis.named_releases import of_keyword, of_member

    modules = [name.replace("-", "_") for name in reversed(packages)]
    match = _MEMBER.search(error.message)
    if match is not None:
        return _lacking(of_member(match["owner"], match["name"], modules), error, facts)
    match = _FLAGS.search(error.message)
    if match is not None:
        return _unused(match["flags"], error, facts)
    match = _KEYWORD.search(error.message)
    if match is None:
        return []
    known = of_keyword(match["function"], match["name"], modules)
    if len(packages) == 2 and packages[0] != packages[1]:
        asking, owner = packages
        said = f"{asking} calls {match['function']}() of {owner} with {match['name']}, which this {owner} does not take"
        return [_mismatch(asking, owner, said, known, error, facts)]
    return _lacking(known, error, facts)


def _between(error: RaisedError, facts: Facts) -> list[Finding]:
    """What the rows of published source know of the installed releases and of the name that is missing: both sides at once.

    The error shows that what is reached only later was reached.
    """
    match = next((found for pattern in _MISSING_NAMES if (found := pattern.search(error.message))), None)
    if match is None or not facts.environment.distributions:
        return []
    from compat.checks import interfaces as rows

    groups = match.groupdict()
    name = groups.get("name") or (groups.get("module") or "").rpartition(".")[2]
    provider = _distribution(groups["module"].partition(".")[0]) if groups.get("module") else None
    where = f"the error on line {error.line} of the text"
    return [
        replace(each, verdict="hit", missing=(), unknown=(), here=", ".join(filter(None, (where, each.here))))
        for each in (*rows.judge(facts), *rows.unreached(facts.environment))
        if re.search(rf"\b{name}\b", f"{each.title} {each.why}") and (provider is None or provider in each.packages)
    ][:2]


def _unused(listed: str, error: RaisedError, facts: Facts) -> list[Finding]:
    """Arguments that no configuration of the installed releases has; a value may stand between two flags."""
    from compat.diagnosis.named_releases import of_flags

    flags = re.findall(r"--(\w+)", listed) or re.findall(r"['\"](\w+)['\"]", listed)
    return next((found for known in of_flags(flags[:4]) if (found := _lacking(known, error, facts))), [])


def _known_name(match: re.Match[str]) -> Named | None:
    from compat.diagnosis.named_releases import of_attribute, of_name

    if match.re is _MODULE:
        return of_name(match["module"], None)
    return (of_name if match.re is _NAME else of_attribute)(match["module"], match["name"])


def _lacking(known: Named | None, error: RaisedError, facts: Facts) -> list[Finding]:
    """What the user's code takes from a package whose release, as far as it is known, does not have it."""
    if known is None:
        return []
    version = version_of(known.package, facts)
    if version is not None and not known.lacked_by(version):
        return []  # another release ran, or one that nobody has read
    return [
        Finding(
            rule="symptom-interface",
            origin="surface",
            verdict="possible" if version is None or (known.doubt and not error.frames) else "hit",
            severity="error",
            effect="crash",
            title=f"{known.what} is in {known.package} {known.span}",
            why=_sentence(known),
            confidence="confirmed",
            packages={known.package: version},
            fixes=tuple(known.fixes(version)),
            here=f"the error on line {error.line} of the text",
        )
    ]


def _sentence(known: Named) -> str:
    return f"Its published source says so{f': {known.why}' if known.why else ''}.{known.doubt}"


def _mismatch(asking: str, owner: str, said: str, known: Named | None, error: RaisedError, facts: Facts) -> Finding:
    newer = Fix("upgrade", asking, None, f"a release of {asking} written for this {owner}", f"pip install -U {asking}")
    why = "Which of both has to move the message alone does not tell."
    fixes: tuple[Fix, ...] = (newer, Fix("pin", owner, None, f"the {owner} that this {asking} was written for", None))
    version = version_of(owner, facts)
    if known is not None and known.package == owner and (version is None or known.lacked_by(version)):
        why = f"{known.what} is in {owner} {known.span}. {_sentence(known)}"
        moved = next(fix for fix in known.fixes(version) if fix.package)
        fixes = (newer, moved) if known.gone else (moved, newer)
    return Finding(
        rule="symptom-interface",
        origin="surface",
        verdict="possible",
        severity="error",
        effect="crash",
        title=said,
        why=f"The releases do not belong together: {asking} was written for an older or a newer {owner}. {why}",
        confidence="reported",
        packages={asking: version_of(asking, facts), owner: version},
        fixes=fixes,
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
        if "unsloth_compiled_cache" in parts:  # unsloth writes trainers of its own while it is imported
            parts = ["site-packages", "unsloth"]
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
