"""What ``fix`` does about errors in an image that a file names: it starts from another tag of that image.

A release installed over those of an image breaks what the image built for them, so another tag comes first; what then remains
is planned for as usual.
"""

from __future__ import annotations

import re

from compat.api.case import Case, environments_in, part_of, read_again
from compat.api.obstacles import Settled
from compat.api.planning import planner_of
from compat.api.resolution import completed, unresolved
from compat.checks.image_tags import Trials, on_another
from compat.checks.installation import NO_COMPILER
from compat.checks.torch_build import image_of
from compat.formats.docker.base_images import name_and_tag, with_compiler
from compat.formats.edit.changes import Change
from compat.formats.edit.files import Edit, as_if_written
from compat.formats.registry import read_content
from compat.model import Environment, Source
from compat.records import replace
from compat.repair.plan import Planner


def on_another_image(case: Case, planner: Planner) -> Settled | None:
    """The file of a case with the nearest tag of its image that has fewer errors; ``None`` if none is known to have."""
    copies = case.environment.distributions or ()
    images = {copy.name: image for copy in copies if (image := image_of(copy))}
    trials = {image: Trials(image, case.environment, planner.means.matrix) for image in images.values()}
    running = {copy.name: str(copy.extra["no_compiler"]) for copy in copies if "no_compiler" in copy.extra}
    for error in planner.errors:
        if error.rule == NO_COMPILER:
            image = next(running[name] for name in error.packages)
            better, difference = with_compiler(image), "has the CUDA compiler"
        else:
            image = next((images[name] for name in error.packages if name in images), "")
            better = trials[image].without(error) if image else None
            difference = "" if better is None else trials[image].difference(better)
        found = None if better is None else _moved(case, planner, image, better, difference)
        if found is not None:
            return found
    return None


def _moved(case: Case, planner: Planner, image: str, better: str, difference: str) -> Settled | None:
    """The file with every mention of an image replaced; ``None`` if its tag is not in it, or not fewer errors remain."""
    if case.file is None:
        return None
    content = read_content(case.file)
    after = _with_tag(content, image, better)
    if after is None:
        return None
    edit = Edit(case.file, content, after)
    with as_if_written((edit,)):
        listing = part_of(case, environments_in(case.file))
        if listing is None:
            return None
        bare = _on(listing.context, unresolved(case))
        again = completed(read_again(bare, listing, planner.means), planner.means)
        problem = planner.problem
        rest = planner_of(again, problem.policy, planner.means, [need.text for need in problem.keep])
    left = {(each.rule, *sorted(each.packages)) for each in rest.errors}
    gone = tuple(each for each in planner.errors if (each.rule, *sorted(each.packages)) not in left)
    if not gone or len(rest.errors) >= len(planner.errors):
        return None
    name, tag = name_and_tag(image)
    why = f"{gone[0].title} ({gone[0].rule}); {name_and_tag(better)[1]} {difference}"
    change = Change(
        name, tag, name_and_tag(better)[1], source=Source("image", {"image": better}), direct=True,
        why=why, before_source=Source("image", {"image": image}),
    )  # fmt: skip
    return Settled(gone, (change,), (edit,), again, rest)


def _on(context: Environment, case: Case) -> Case:
    """The case with what the new image says about Python, glibc and the CUDA toolkit, where the old one did."""
    here, before = case.environment, case.listing.context if case.listing is not None else Environment()
    there = on_another(here, before, context)
    told = case.told if there.python == here.python else (f"Python {there.python}", *case.told[1:])
    return replace(case, environment=there, told=told)


def _with_tag(content: bytes, image: str, better: str) -> bytes | None:
    """The content of a file with another tag of an image, which is spelled out, or has its tag in one assignment."""
    whole = re.compile(rb"(?<![\w./:@-])" + re.escape(image.encode()) + rb"(?![\w.:@-])")
    if whole.search(content):
        return whole.sub(better.encode(), content)
    tag, other = (name_and_tag(each)[1].encode() for each in (image, better))
    assigned = re.compile(rb"(?<==)([\"']?)" + re.escape(tag) + rb"(?![\w.-])")
    return assigned.sub(rb"\g<1>" + other, content) if tag and len(assigned.findall(content)) == 1 else None
