"""Explain names and modules that are missing because a package, or its compiled part, is not installed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from compat.checks.code import providers
from compat.checks.fix_commands import by_pip
from compat.checks.guards import importing_undeclared
from compat.checks.installation import INSTEAD
from compat.checks.requirements import unmet_markers
from compat.diagnosis.frame_packages import (
    MODELS_OWN,
    distribution_of_module,
    distribution_of_submodule,
    inferred,
    location_text,
    modules_of,
    package_of,
    version_of,
)
from compat.diagnosis.installations import DEPENDENCIES
from compat.diagnosis.loader import EXTENSIONS
from compat.diagnosis.missing_wheels import SYSTEMS, of_other_systems
from compat.diagnosis.stated import installs_in
from compat.model import Finding, Fix, normalized
from compat.records import replace
from compat.reports.stated import meets
from compat.reports.words import distribution_of
from compat.rules.facts import ABSENT, Facts

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError


KERNELS = (
    "flash_attn", "flash_attn.bert_padding", "mamba_ssm", "mamba_ssm.ops.selective_scan_interface", "causal_conv1d",
    "xformers.ops", "fla.ops", "liger_kernel.transformers",
)  # fmt: skip
"""Modules of optional kernels: code imports their functions if it can, and uses them in any case."""


def optional_import(name: str, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for a name whose import is skipped where the package that exports it is missing or too old.

    The user's own code is expected to import what it uses, so a traceback has to end in a package; functions of
    :data:`KERNELS` are optional everywhere.
    """
    from compat.diagnosis.missing_names import module_of_name
    from compat.diagnosis.named_releases import of_name

    modules = modules_of(error)
    module = next(homes_of_kernels(name), None) if "_" in name else None
    of_kernels = module is not None
    if not of_kernels and error.frames and package_of(error.frames[-1]) is None:
        return []
    if not of_kernels and len(name) > 3 and name[0].isupper() and not name.isupper():
        module = module_of_name(name, modules)
    asking = distribution_of_module(modules[0]) if modules else None
    if module is None or distribution_of_module(module) == asking:
        return []
    owner, known = distribution_of_module(module), of_name(module, name)
    version = version_of(owner, facts)
    if version is not None and (known is None or not known.lacked_by(version)) and not of_kernels:
        return []
    if version is None and not facts.environment.distributions and not of_kernels:
        return []
    state = f"{owner}, which is missing" if version is None else f"another {owner} than {version}"
    if of_kernels and (version is None or known is None or not known.lacked_by(version)):
        state = f"{owner}, which is not installed or cannot be imported"
        known = None
    text, command = f"provides {name}", f"pip install {owner}"
    if of_kernels:
        text, command = f"{text}; python -c 'import {module}' shows why it fails", f"pip install --no-build-isolation {owner}"
    install = Fix("pin", owner, None, text, command)
    return [
        inferred(
            rule="symptom-optional-import",
            title=f"{name} comes from {state}",
            why=f"{asking or 'The code'} imports it only if {owner} has it, and uses it in any case."
            + (f" {known.what} is in {owner} {known.span}. {known.sentence()}" if known is not None else ""),
            packages={each: version_of(each, facts) for each in (asking, owner) if each},
            fixes=tuple(known.fixes(version)) if known is not None else (install,),
            evidence=(DEPENDENCIES,),
            here=location_text(error),
        )
    ]


def homes_of_kernels(name: str) -> Iterator[str]:
    """Yield the modules of :data:`KERNELS` that have a name in some release."""
    from compat.diagnosis.missing_names import modules_of_name

    yield from (module for module in modules_of_name(name, KERNELS) if module in KERNELS)


def none_of_module(name: str, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for a name that was asked of ``None``, where the failing line asks it of an optional module.

    A package that sets the module to ``None`` if its import fails, and uses it in any case, ends like this.
    """
    asked = re.search(rf"(?<![\w.])(?P<module>[a-z]\w{{2,60}})\.{re.escape(name)}\b", error.code)
    if asked is None:
        return []
    modules = modules_of(error)
    return not_installed(asked["module"], distribution_of_module(modules[0]) if modules else None, error, facts)


def undefined_name(name: str, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for a global name that the code of an installed package uses but does not define."""
    package = None if not error.frames else package_of(error.frames[-1])
    if package is None or package == MODELS_OWN or not providers(package):
        return []
    asking = distribution_of_module(package)
    return [
        inferred(
            rule="symptom-undefined-name",
            title=f"{asking} uses {name}, which its code did not define or import",
            why="Either an optional import failed, or the code is derived from that of a package whose release has changed "
            "since. Both depend on releases, not on the program that runs.",
            packages={asking: version_of(asking, facts)},
            fixes=(by_pip("upgrade", asking, None, f"a release of {asking} for what is installed"),),
            evidence=(DEPENDENCIES,),
            here=location_text(error),
        )
    ]


def not_installed(module: str, asking: str | None, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for a package that is not installed; an unknown module may be the user's own and is ignored."""
    if module in EXTENSIONS and not providers(module):
        return [_no_extension(module, error, facts)]
    among = distribution_of_submodule(module)
    if among is None and not providers(module) and distribution_of(module) is None:
        return []
    name, spec = among or (distribution_of_module(module), "")
    there = "".join(_not_brought(name, facts))
    undeclared = next(importing_undeclared(name, facts), None) if asking is None else None
    if undeclared is not None:
        asking, there = undeclared, f" {undeclared} does not require it."
    system = str(facts.value("os"))
    name = INSTEAD.get((name, system), name)
    version = version_of(name, facts)
    if asking == name:
        return []
    fix = Fix("pin", name, spec or None, f"provides {module}", f"pip install {_quoted(name, spec)}")
    if system in SYSTEMS and (elsewhere := of_other_systems(name, system)) is not None:
        there = f"{there} {name} has no wheels for {SYSTEMS[system]}."
        without = f"a release of {asking or 'the package that imports it'} that runs without {module}"
        fix = elsewhere.fixes[0] if asking in (None, MODELS_OWN) else Fix("downgrade", asking, None, without)
    who = f"{asking} imports it" if asking and asking != MODELS_OWN else "the code imports it"
    if version:
        there = f" Release {version} is listed as installed, so another environment was running."
    if version and spec and not meets(version, spec):
        there = f" It is in the releases {spec}; {version} is installed."
    return [
        inferred(
            rule="symptom-not-installed",
            title=f"{module} cannot be imported, and {who}",
            why=f"The package {name} provides it.{there}",
            packages={each: version_of(each, facts) for each in (asking, name) if each and each != MODELS_OWN},
            fixes=(fix,),
            evidence=(DEPENDENCIES,),
            here=location_text(error),
        )
    ]


_MISSING = re.compile(r"not found|not installed|missing|requires?|needs?|install |could not be imported", re.IGNORECASE)
_TO_INSTALL = re.compile(r"\b[Ii]nstall(?:ed)?\b")


def asked_for(error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for packages that an error says to install, and that are not installed."""
    failed_import = (error.exception or error.message.partition(":")[0]).endswith(
        ("ImportError", "ModuleNotFoundError", "DistributionNotFound")
    )
    if not (_MISSING if failed_import else _TO_INSTALL).search(error.message):
        return []
    fixes = [fix for fix in installs_in(error.message) if fix.package and version_of(fix.package, facts) is None]
    names = [fix.package for fix in fixes if fix.package]
    if not names:
        return []
    who = "a model's own code" if "modeling file" in error.message else "the code"
    are, them = ("are", "them") if len(names) > 1 else ("is", "it")
    return [
        inferred(
            rule="symptom-not-installed",
            title=f"{' and '.join(names)} {are} not installed, and {who} imports {them}",
            why="The message says so.",
            packages=dict.fromkeys(names),
            fixes=tuple(_built(fix) for fix in fixes),
            evidence=(DEPENDENCIES,),
            here=location_text(error),
        )
    ]


def empty_package(module: str, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for a package of which only a folder is there: Python names no location for a name it lacks."""
    top = module.partition(".")[0]
    if not providers(top) or distribution_of_submodule(module) is not None:
        return []
    name = distribution_of_module(top)
    again = Fix("pin", name, None, "install it anew", f"pip install --force-reinstall --no-deps {name}")
    return [
        inferred(
            rule="symptom-empty-package",
            origin="build",
            title=f"Python finds a folder {top} without the code of {name}",
            why="It names no location of a module that is a folder without __init__.py: what an uninstalled release or an "
            f"interrupted installation left, or a folder called {top} in the current directory or on PYTHONPATH.",
            packages={name: version_of(name, facts)},
            facts=("install",),
            fixes=(_built(again), Fix("config", text=f"run from another directory, or rename the folder {top}")),
            evidence=("https://docs.python.org/3/reference/import.html#namespace-packages",),
            here=location_text(error),
        )
    ]


def _built(fix: Fix) -> Fix:
    """The installation of a package whose build needs the installed torch."""
    if fix.command is None or fix.package is None or fix.package not in map(distribution_of_module, KERNELS):
        return fix
    return replace(fix, command=fix.command.replace("install ", "install --no-build-isolation ", 1))


def _quoted(name: str, spec: str) -> str:
    return f'"{name}{spec}"' if spec else name


def _not_brought(name: str, facts: Facts) -> Iterator[str]:
    """Yield a sentence on the installed package that requires a distribution, but not on this platform."""
    for copy in facts.environment.distributions or ():
        if (markers := unmet_markers(copy, name, facts.environment)) and facts.package(name) in (None, ABSENT):
            yield f" {copy.name} {copy.version} requires it only if {markers[0]}."
            return


_NO_METADATA = re.compile(
    r"(?:No package metadata was found for )?['\"]?(?P<name>[A-Za-z\d](?:[\w.-]{0,80}[A-Za-z\d])?)['\"]?\.?\s*$"
)


def without_metadata(error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for a distribution whose metadata Python did not find: it is not installed, or only its files are."""
    match = _NO_METADATA.match(error.message) if (error.exception or "").endswith("PackageNotFoundError") else None
    if match is None:
        return []
    name = normalized(match["name"])
    modules = modules_of(error)
    asking = distribution_of_module(modules[0]) if modules else None
    version = version_of(name, facts)
    there = f" Release {version} is listed as installed, so another environment was running." if version else ""
    system = str(facts.value("os"))
    fix = by_pip("pin", name, None, f"installs {name}")
    renamed = next(iter(providers(match["name"].replace("-", "_"))), name)
    if renamed not in (name, asking):
        there = f"{there} The module {match['name']} is now in {renamed}, whose metadata has that name."
        text = f"a release of {asking or 'the calling package'} that asks for {renamed}"
        fix = by_pip("upgrade", asking, None, text) if asking not in (None, name) else Fix("config", text=text)
    if (instead := INSTEAD.get((name, system))) is not None:
        there = f" {name} has no wheels for {SYSTEMS[system]}: there, {instead} provides the module, under its own name."
        text = f"a release of {asking or 'the package that asks'} that knows {instead}"
        fix = by_pip("upgrade", asking, None, text) if asking not in (None, name) else Fix("config", text=text)
    return [
        inferred(
            rule="symptom-no-metadata",
            title=f"{name} is not installed: {'the code' if asking in (None, name) else asking} asks for its version",
            why="Python found no metadata of the distribution (its .dist-info folder). It was not installed, was "
            "installed under "
            f"another name, or the module was only copied there.{there}",
            packages={each: version_of(each, facts) for each in (asking, name, instead, renamed) if each},
            fixes=(fix,),
            evidence=("https://docs.python.org/3/library/importlib.metadata.html",),
            here=location_text(error),
        )
    ]


_COMPILED_PART = re.compile(r"(?P<top>[A-Za-z]\w{1,60})\.(?:\w{1,60}\.){0,4}_(?:\w{1,20}_)?C(?:_\w{1,40})?")


def without_compiled_part(module: str, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for a package whose own compiled module (``vllm._C``) Python does not find."""
    match = _COMPILED_PART.fullmatch(module)
    if match is None or not providers(match["top"]):
        return []
    top, name = match["top"], distribution_of_module(match["top"])
    return [
        inferred(
            rule="symptom-no-extension",
            origin="build",
            title=f"{name} is imported without its compiled part {module}",
            why=f"Python found the source of {name}: a folder {top} in the current directory or on PYTHONPATH comes before the "
            "installed package. Or the package was built without it, for another platform or another Python.",
            packages={name: version_of(name, facts)},
            facts=("build", "install"),
            fixes=(
                Fix("config", text=f"run from another directory than the one with the folder {top}"),
                _built(Fix("pin", name, None, "or install it anew", f"pip install --force-reinstall --no-deps {name}")),
            ),
            evidence=(DEPENDENCIES,),
            here=location_text(error),
        )
    ]


def _no_extension(module: str, error: RaisedError, facts: Facts) -> Finding:
    name = EXTENSIONS[module]
    build = f"pip install --no-build-isolation --force-reinstall --no-deps --no-cache-dir {name}"
    return inferred(
        rule="symptom-no-extension",
        origin="build",
        title=f"{module}, the compiled part of {name}, is not installed",
        why="The package was installed without it: built without a CUDA toolkit, or from a wheel for another Python, torch or "
        "platform.",
        packages={name: version_of(name, facts)},
        facts=("build", "install"),
        fixes=(
            Fix("source-install", name, "", "build it against the installed torch (needs nvcc)", build),
            Fix("pin", name, None, "or a wheel of it for this Python, torch and CUDA, from its releases"),
        ),
        evidence=(DEPENDENCIES,),
        here=location_text(error),
    )
