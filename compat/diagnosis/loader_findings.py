"""What the findings about a loader's message share: their form, the package that is loaded, and one built for another torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from compat.diagnosis.frame_packages import meeting, version_of
from compat.diagnosis.wheel_tables import exporting, note_on_strings, spans
from compat.model import Finding, Fix, normalized
from compat.versions import key_of

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError
    from compat.rules.facts import Facts


LOADER = "https://man7.org/linux/man-pages/man8/ld.so.8.html"
TORCH = "https://pytorch.org/docs/stable/cpp_index.html"


def question(
    rule: str,
    title: str,
    why: str,
    packages: Mapping[str, str | None],
    facts: tuple[str, ...],
    fixes: tuple[Fix, ...],
    evidence: tuple[str, ...],
    here: str,
) -> Finding:
    """Build the finding for a loader's message: the crash is certain, the cause is inferred from the library's name."""
    return Finding(
        rule=rule, origin="build", verdict="possible", severity="error", effect="crash", title=title, why=why,
        confidence="reported", packages=packages, facts=facts, fixes=fixes, evidence=evidence, here=here,
    )  # fmt: skip


def importing(error: RaisedError | None) -> list[str]:
    """Return the innermost package among the frames, other than torch, as a list of at most one."""
    names = [] if error is None else [normalized(name) for name in meeting(error)]
    return [name for name in names if name != "torch"][-1:]


def of_torch(name: str, where: str, facts: Facts, symbol: str = "") -> Finding:
    """Return the finding for an undefined symbol in torch's C++ namespaces: the extension was built for another torch."""
    from compat.tables.linked import open_linked, series_of

    torch, here = version_of("torch", facts), version_of(name, facts)
    table, series = open_linked(), exporting(symbol)
    linked = None if here is None or "+" in here else table.release(name, here, None)
    built = [each for each in (linked.series or () if linked is not None else ()) if not series or each in series] or series
    why = ["The missing symbol belongs to torch's C++ ABI, which changes between releases."]
    if series:
        why.append(f"Of torch {table.oldest} to {table.newest}, {spans(series)} exports it.")
    if (note := note_on_strings(symbol, torch)) is not None:
        why.append(note)
    fitting = [
        each.version for each in table.of(name) if torch is not None and each.series and series_of(torch) in each.series
    ]  # fmt: skip
    spec, which = None, f"the torch this {name} was compiled for"
    if built and (torch is None or series_of(torch) not in built):
        above = [each for each in built if torch is None or key_of(each) > key_of(series_of(torch))]
        spec = f"=={above[0] if above else built[-1]}.*"
        if torch is None and len(built) > 1:
            spec, which = _between(built), f"the releases with the symbol; this {name} was compiled for one of them"
    rebuild = f"pip install --no-build-isolation --force-reinstall --no-deps --no-binary {name} {name}"
    fixes = [
        Fix("pin", "torch", spec, which, spec and f'pip install "torch{spec}"'),
        Fix("source-install", name, "", "compile it for the installed torch", rebuild),
    ]
    if fitting and torch is not None:
        text = f"the newest release for torch {series_of(torch)}"
        fixes.insert(0, Fix("pin", name, f"=={fitting[-1]}", text, f'pip install "{name}=={fitting[-1]}"'))
    else:
        fixes.append(Fix("upgrade", name, None, "a release for this torch", f"pip install -U {name}"))
    return question(
        rule="symptom-undefined-symbol",
        title=f"{name} is compiled for a torch other than the installed one",
        why=" ".join(why),
        packages={each: version_of(each, facts) for each in (name, "torch")},
        facts=("build",),
        fixes=tuple(fixes),
        evidence=(TORCH,),
        here=where,
    )


def _between(series: Sequence[str]) -> str:
    """``2.2`` to ``2.6`` as a specifier: ``>=2.2,<2.7``."""
    major, _, minor = series[-1].partition(".")
    return f">={series[0]},<{major}.{int(minor) + 1}"
