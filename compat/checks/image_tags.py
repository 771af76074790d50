"""Fixes that start from another release of the image that brings a package: a pinned image is moved as a whole.

Installing another torch over the one of an image leaves everything in it that was built for the old one. So a finding about
something from an image first names the nearest other tag of that image with which it no longer holds, and no new error does.
Nothing is queried: tags are those whose content is known from their name (:mod:`compat.formats.docker.base_images`).
"""

from __future__ import annotations

from compat.checks import builds, requirements
from compat.checks.images import RELEASE
from compat.checks.models import judge_named
from compat.checks.torch_build import image_of, own_image_of
from compat.formats.docker.base_images import NGC_PYTORCH, has_known_stack, known_stack, name_and_tag, with_tag
from compat.model import Environment, Finding, Fix
from compat.records import replace
from compat.rules.evaluate import judge
from compat.rules.facts import Facts, seen_by_torch, visible
from compat.tables.builds import open_code_tables
from compat.tables.declared import open_declared
from compat.versions import contains, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from compat.rules.compiled import Matrix

_MOST_TRIALS = 60
"""Tags tried in each direction."""
_SERVERS = {"vllm/vllm-openai": "vllm", "lmsysorg/sglang": "sglang"}
"""Images with a tag for each release of a package."""
_UNSUPPORTED = "model-unsupported"
_CUDNN_9 = key_of("2.4")
"""The first torch whose images have cuDNN 9."""


def with_image_fixes(findings: Sequence[Finding], environment: Environment, matrix: Matrix) -> tuple[Finding, ...]:
    """The findings, those about packages of an image with the nearest better tag as their first fix."""
    images = {copy.name: image for copy in environment.distributions or () if (image := own_image_of(copy))}
    if not images:
        return tuple(findings)
    found = []
    for each in findings:
        image = next((images[name] for name in each.packages if name in images), "")
        if image and each.verdict == "hit" and each.severity in ("error", "warning"):
            trial = _trials(image, environment, matrix)
            tag = trial.without(each)
            if tag is not None:
                text = f"start from {tag}, which {trial.difference(tag)}"
                others = (fix for fix in each.fixes if not fix.text.startswith(RELEASE))
                each = replace(each, fixes=(Fix("config", text=text), *others))
        found.append(each)
    return tuple(found)


_MOST_KEPT = 100
_kept: dict[tuple[int, str, str], Trials] = {}


def _trials(image: str, environment: Environment, matrix: Matrix) -> Trials:
    """Return the trials of an image, which the services of a file often share."""
    workload = environment.workload and replace(environment.workload, origins={})  # says where in the file, which differs
    key = id(matrix), image, repr(replace(environment, workload=workload))
    if key not in _kept:
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        _kept[key] = Trials(image, environment, matrix)  # keeps the matrix alive, so that its id is not reused
    return _kept[key]


class Trials:
    """One environment with other tags of one of its images."""

    def __init__(self, image: str, environment: Environment, matrix: Matrix) -> None:
        self._image = image
        self._environment = environment
        self._matrix = matrix
        self._before = known_stack(image)
        self._outcomes: dict[str, dict[str, str]] = {}

    def without(self, finding: Finding) -> str | None:
        """The nearest image without a finding and with fewer errors, or no more if it is a warning: a newer one if there is.

        Of images with as few errors, one that supports the model is taken, if there is any, and of the patch releases of a
        server the one with the fewest warnings. An image of which the packages of the finding are not known may have it, too.
        """
        about = {copy.name for copy in self._before.distributions or ()} & finding.packages.keys()
        here = self._outcome(self._image)
        judged = finding.rule in here
        most = _errors(here) - (judged and finding.severity == "error")
        for tags in (newer(self._image), older(self._image)):
            known = (tag for tag in tags if about <= {copy.name for copy in known_stack(tag).distributions or ()})
            tried = [tag for _, tag in zip(range(_MOST_TRIALS), known)]
            good = [tag for tag in tried if (finding.rule not in self._outcome(tag) if judged else _has_fix(tag, finding))]
            left = {tag: (_errors(self._outcome(tag)), _UNSUPPORTED in self._outcome(tag)) for tag in good}
            best = min(left.values(), default=(most + 1, True))
            if best[0] <= most:
                best_tags = [tag for tag in good if left[tag] == best]
                series = [tag for tag in best_tags if _series(tag) == _series(best_tags[0])]
                return min(series, key=lambda tag: _count(self._outcome(tag), "warning"))
        return None

    def difference(self, tag: str) -> str:
        """The releases in which the content of an image differs, in words."""
        old = {copy.name: (copy.version, copy.extra.get("cuda")) for copy in self._before.distributions or ()}
        parts = []
        for copy in known_stack(tag).distributions or ():
            if copy.name != "torchvision" and (copy.version, copy.extra.get("cuda")) != old.get(copy.name):
                cuda = f" for CUDA {copy.extra['cuda']}" if copy.extra.get("cuda") else ""
                parts.append(f"{copy.name} {(copy.version or '').partition('+')[0]}{cuda}")
        return f"has {' and '.join(parts)}"

    def _outcome(self, tag: str) -> dict[str, str]:
        """The rules that certainly hold with this tag, with their severity."""
        if tag not in self._outcomes:
            environment = self._with(tag)
            names = frozenset(copy.name for copy in known_stack(tag).distributions or ())
            seen = visible(environment)
            facts = Facts(seen)
            numbers = {number for name in names for number in self._matrix.names.get(name, ())}
            found = [
                *judge(seen_by_torch(seen), self._matrix, frozenset(self._matrix.rule(number).id for number in numbers)),
                *builds.judge(facts), *judge_named(seen), *requirements.judge(facts, open_declared(), names),
            ]  # fmt: skip
            self._outcomes[tag] = {each.rule: each.severity for each in found if each.verdict == "hit"}
        return self._outcomes[tag]

    def _with(self, tag: str) -> Environment:
        """The environment on another tag: its packages, and what the old one implied about Python, glibc and the toolkit."""
        before, after, here = self._before, known_stack(tag), self._environment
        brought = {copy.name: copy for copy in after.distributions or ()}
        own = [copy for copy in here.distributions or () if image_of(copy) != self._image]
        named = {copy.name for copy in own}
        copies = (*own, *(copy for name, copy in brought.items() if name not in named))
        return replace(on_another(here, before, after), distributions=copies)


def _errors(outcome: Mapping[str, str]) -> int:
    return _count(outcome, "error")


def _count(outcome: Mapping[str, str], severity: str) -> int:
    return sum(each == severity for each in outcome.values())


def _series(image: str) -> str:
    """The image of a server without the patch release (``v0.9``); any other image."""
    name, tag = name_and_tag(image)
    return tag.rpartition(".")[0] if name in _SERVERS else image


def _has_fix(tag: str, finding: Finding) -> bool:
    """Whether an image has a release that a fix of a finding asks for; the finding itself depends on more than the image."""
    has = {copy.name: copy.version for copy in known_stack(tag).distributions or ()}
    return any(
        fix.kind in ("upgrade", "downgrade", "pin") and fix.spec is not None and (version := has.get(fix.package or ""))
        and contains(ranges_of(fix.spec), key_of(version))
        for fix in finding.fixes
    )  # fmt: skip


def on_another(here: Environment, before: Environment, after: Environment) -> Environment:
    """An environment with what another image implies about Python, glibc and the CUDA toolkit, where the image before did."""
    implied = {
        name: value for name in ("python", "glibc", "cuda_toolkit")
        if (value := getattr(after, name)) is not None and getattr(here, name) == getattr(before, name)
    }  # fmt: skip
    return replace(here, **implied)


def newer(image: str) -> Iterator[str]:
    """Yield the later tags of an image whose content is known, the nearest first; those of an older CUDA are left out."""
    tags, place = _tags(image)
    return (with_tag(image, tag) for tag in tags[place + 1 :]) if place >= 0 else iter(())


def older(image: str) -> Iterator[str]:
    """Yield the earlier tags of an image, as :func:`newer`; those of a newer CUDA are left out."""
    tags, place = _tags(image, older=True)
    return (with_tag(image, tag) for tag in reversed(tags[:place])) if place >= 0 else iter(())


def _tags(image: str, *, older: bool = False) -> tuple[list[str], int]:
    """The tags of an image's repository, oldest first, and the place of its own; -1 if it is unknown."""
    name, tag = name_and_tag(image)
    tags: list[str] = []
    if name == "nvidia/pytorch":
        release, _, rest = tag.partition("-")
        tags = [f"{each}-{rest}" if rest else each for each in NGC_PYTORCH] if release in NGC_PYTORCH else []
    elif name in _SERVERS:
        package = open_declared().package(_SERVERS[name])
        tags = [f"v{each}" for each in package.versions if has_known_stack(f"{name}:v{each}")] if package else []
    elif name == "pytorch/pytorch":
        tags = list(_of_torch(tag, older=older))
        if tags and tag not in tags and key_of(tag.partition("-")[0]) < key_of(tags[0].partition("-")[0]):
            tags.insert(0, tag)  # older than the oldest release whose builds are recorded
    return tags, tags.index(tag) if tag in tags else -1


def _of_torch(tag: str, *, older: bool) -> Iterator[str]:
    """Yield the tags of PyTorch's images: one for each CUDA release with a wheel, as devel or runtime image."""
    parts = tag.split("-")
    if len(parts) != 4 or not parts[1].startswith("cuda"):
        return
    own = _numbers(parts[1].removeprefix("cuda"))
    tables = open_code_tables()
    for release in sorted(tables.torch, key=key_of):
        cudnn = "cudnn9" if key_of(release) >= _CUDNN_9 else "cudnn8"
        cudas = {each.cuda for each in tables.torch_builds(release) if each.machine == "x86_64" and each.cuda[:1].isdecimal()}
        for cuda in sorted(cudas, key=_numbers):
            if _numbers(cuda) <= own if older else _numbers(cuda) >= own:
                yield f"{release}-cuda{cuda}-{cudnn}-{parts[3]}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())
