"""Container images that a text names: the releases in them, where nothing else in the text states them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compat.formats.docker.base_images import known_stack
from compat.reports.findings import HINTED, WRITTEN, Findings
from compat.reports.lines import Line

_IMAGE = re.compile(
    r"(?<![\w/.:@-])(?:[\w-]{1,60}(?:\.[\w-]{1,60}){1,4}/)?[a-z\d][\w.-]{0,60}/[a-z\d][\w./-]{0,100}:[A-Za-z\d][\w.-]{0,127}"
    r"(?![\w/:])"
)
_MOST = 40
"""Images looked at; a text with more is a list of them."""


def read_images(lines: Sequence[Line], found: Findings) -> None:
    """Record the stack of the image that the text names, if it names one alone: of two, one may be what works."""
    named = (line.text for line in lines if ":" in line.text and "/" in line.text)
    images = {match[0].rstrip(".") for text in named for match in _IMAGE.finditer(text)}
    stacks = {image: known_stack(image) for image in sorted(images)[:_MOST]}
    known = [stack for stack in stacks.values() if stack.distributions or stack.cuda_toolkit]
    if len(known) != 1:
        return
    (stack,) = known
    for each in stack.distributions or ():
        if each.name not in found.packages:
            found.package(each.name, each.version, WRITTEN, each.source, each.extra)
    for field in ("python", "os", "glibc", "cuda_toolkit"):
        if field not in found.values:
            found.say(field, getattr(stack, field), HINTED)
