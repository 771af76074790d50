"""Attributes that an object lacks because the method that sets them did not run, or failed with an error printed above."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat.checks.code import releases
from compat.diagnosis.frame_packages import inferred, location_text, modules_of, version_of
from compat.diagnosis.missing_names import modules_of_name
from compat.diagnosis.python_messages import MEMBER, Lack
from compat.interfaces.source.records import Class
from compat.interfaces.table import tracked
from compat.model import Finding, Fix
from compat.rules.facts import Facts

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError


_CLASSES = "https://docs.python.org/3/reference/datamodel.html#object.__del__"


def of_unfinished_object(lack: Lack, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for an attribute that every release of a class sets on ``self``, and nowhere else."""
    module = next(modules_of_name(lack.owner, modules_of(error)), None) if lack.kind == MEMBER else None
    package = None if module is None else tracked()[module.partition(".")[0]]
    table = None if package is None else releases().table(package)
    if module is None or package is None or table is None:
        return []
    if not all(_sets(package, version, module, lack) for version in (*table.versions[::-12], table.versions[0])):
        return []
    return [
        inferred(
            rule="symptom-unfinished-object",
            title=f"{lack.owner} sets {lack.name} itself, but the method that does so has not run for this object",
            why=f"Every analyzed release of {package} has a method that sets {lack.what}. If __init__ failed before that, the "
            "error that ended it is printed further up, and this message often comes from __del__. Otherwise the object was "
            "not prepared for what needs it, such as a feature that is not enabled.",
            packages={package: version_of(package, facts)},
            fixes=(Fix("config", text="look for an error above this message, and give the text from its first traceback on"),),
            evidence=(_CLASSES,),
            here=location_text(error),
        )
    ]


def _sets(package: str, version: str, module: str, lack: Lack) -> bool:
    """Whether the class, or a known base, only has the attribute once it is set on ``self``."""
    world = releases().world(package, version)
    found = None if world is None else world.imported(module, lack.owner)
    if world is None or found is None or not isinstance(found.definition, Class):
        return False
    classes = [each.definition for each in world.bases(found)[0] if isinstance(each.definition, Class)]
    on_class = any(lack.name in (*each.methods, *each.attributes, *dict(each.fields)) for each in classes)
    return not on_class and any(lack.name in each.instance for each in classes)
