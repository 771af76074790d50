"""Findings about single packages and the driver: duplicates, unusable drivers, and yanked, unsupported or ignored releases."""

from __future__ import annotations

from compat.checks.fix_commands import by_pip, downgrade_to, upgrade_to
from compat.checks.guards import ENGINES
from compat.interfaces.at_once import least_available
from compat.model import Distribution, Environment, Finding, Fix, is_release
from compat.records import replace
from compat.tables.declared import Declared, Package, Published, fits, has_file, newest_python, wheels_of
from compat.versions import contains, is_version, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from compat.rules.facts import Facts


_DUPLICATES = "https://peps.python.org/pep-0376/"
_DRIVER = "https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceEnumvs.html"


def judge(environment: Environment) -> tuple[Finding, ...]:
    """Return the findings about duplicate or shadowed distributions and about the driver."""
    return (*_twice(environment), *_shadowed(environment), *_driver(environment))


def _twice(environment: Environment) -> Iterator[Finding]:
    """Two versions in one folder, as after an interrupted upgrade; the remaining files decide which one is imported."""
    copies: dict[str, list[Distribution]] = {}
    for distribution in environment.distributions or ():
        if distribution.marker is None and distribution.version and is_version(distribution.version):
            copies.setdefault(distribution.name, []).append(distribution)
    for name, found in copies.items():
        versions = sorted({copy.version for copy in found if copy.version}, key=key_of)
        if len(versions) < 2:
            continue
        newest = next((version for version in reversed(versions) if ".dev" not in version), versions[-1])
        wanted = f"{name}=={newest}"
        yield Finding(
            rule="installed-twice", origin="metadata", severity="warning", effect="install",
            title=f"{name} is installed twice: {' and '.join(versions)}",
            why="An upgrade was interrupted, or two tools installed over each other. The files of both versions are mixed, "
            "and no version check can be trusted.",
            packages={name: " and ".join(versions)}, facts=("install",),
            fixes=(Fix(kind="pin", package=name, spec=f"=={newest}", text="remove both copies, then install one",
                       command=f'pip uninstall -y {name}; pip uninstall -y {name}; pip install "{wanted}"'),),
            evidence=(_DUPLICATES,), here=f"{name} {', '.join(versions)}",
        )  # fmt: skip


def _shadowed(environment: Environment) -> Iterator[Finding]:
    for distribution in environment.distributions or ():
        hidden = distribution.source.details.get("shadows") if distribution.source else None
        if not hidden:
            continue
        others = ", ".join(f"{each.get('version')} in {each.get('path')}" for each in hidden)
        yield Finding(
            rule="installed-shadowed", origin="metadata", severity="info", effect="install",
            title=f"{distribution.name} {distribution.version} hides another copy: {others}",
            why="Python imports the first copy on its path. A tool that looks elsewhere reports the other version.",
            packages={distribution.name: distribution.version}, facts=("install",),
            fixes=(Fix(kind="uninstall", package=distribution.name, text="remove the copy you do not want",
                       command=f"pip uninstall {distribution.name}"),),
            evidence=(_DUPLICATES,), here=f"{distribution.name} {distribution.version}",
        )  # fmt: skip


def _driver(environment: Environment) -> Iterator[Finding]:
    state, version = environment.driver_state, environment.driver or "of unknown version"
    if state == "mismatched":
        yield Finding(
            rule="driver-mismatched", origin="build",
            title="The NVIDIA driver library and its kernel module have different versions",
            why="The driver was updated while the old kernel module was loaded. Every CUDA call fails until it is reloaded.",
            facts=("driver",),
            fixes=(Fix(kind="driver", text="reboot, or unload and load the nvidia kernel modules", command="sudo reboot"),),
            evidence=(_DRIVER,), here=f"driver {version}",
        )  # fmt: skip
    elif state == "not-loaded":
        yield Finding(
            rule="driver-not-loaded", origin="build",
            title="An NVIDIA driver is installed but not loaded: no GPU can be used",
            why="The driver library is installed, but its kernel module is not loaded (a kernel update without the module, "
                "Secure Boot, or a container started without the device).",
            facts=("driver",),
            fixes=(Fix(kind="driver", text="load the kernel module; in a container, pass the GPUs in (--gpus all)",
                       command="sudo modprobe nvidia && nvidia-smi"),),
            evidence=(_DRIVER,), here=f"driver {version}",
        )  # fmt: skip


# --- Releases that were yanked, do not support this Python or have no wheel for this Python, system or glibc.


_YANKING = "https://peps.python.org/pep-0592/"
_TAGS = "https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/"
_SYSTEMS = {"linux": "Linux", "windows": "Windows", "darwin": "macOS"}
_ELSEWHERE = ("vcs", "directory", "image", "conda", "url")


def uncompiled(copies: Iterable[Distribution]) -> Iterator[Finding]:
    """What is compiled for CUDA when it is installed, on an image without a compiler: its setup.py ends with an error."""
    for copy in copies:
        image = copy.extra.get("no_compiler")
        if not image or (copy.source is not None and copy.source.kind in ("url", "conda", "image")):
            continue
        from compat.formats.docker.base_images import with_compiler  # imported late: with re, it doubles the start of a check

        fixes = [Fix("config", text="install a wheel that matches torch and CUDA by URL, from the releases of its repository")]
        better = with_compiler(image)
        if better is not None:
            fixes.insert(0, Fix("config", text=f"start from {better}, which has the CUDA compiler"))
        raised = "OSError: CUDA_HOME environment variable is not set" if copy.name == "flash-attn" else _UNBOUND
        yield Finding(
            rule=NO_COMPILER, origin="build", effect="install",
            title=f"{copy.name} is compiled during installation, but this image has no CUDA compiler (nvcc)",
            why=f"The index only has its source, and setup.py needs CUDA_HOME even if it would then find a wheel: {raised}.",
            packages={copy.name: copy.version}, facts=("install",), fixes=tuple(fixes),
            evidence=(_COMPILES[copy.name],), here=f"{copy.name} {copy.version or ''}".rstrip() + f", {image}",
        )  # fmt: skip


NO_COMPILER = "build-no-cuda-compiler"
_UNBOUND = "NameError: name 'bare_metal_version' is not defined"
_COMPILES = {
    "flash-attn": "https://github.com/Dao-AILab/flash-attention/blob/v2.8.3/setup.py",
    "mamba-ssm": "https://github.com/state-spaces/mamba/blob/v2.2.2/setup.py",
    "causal-conv1d": "https://github.com/Dao-AILab/causal-conv1d/blob/v1.4.0/setup.py",
}


def judge_releases(facts: Facts, declared: Declared) -> Iterator[Finding]:
    """Yield findings about individual releases: yanked, unsupported Python, no wheel, unsupported glibc.

    Only those of :func:`uncompiled` are errors.
    """
    yield from uncompiled(facts.environment.distributions or ())
    yield from _of_further_packages(facts.environment, declared)
    for copy in facts.environment.distributions or ():
        if copy.name not in declared or copy.version is None or not is_version(copy.version):
            continue
        package = declared.package(copy.name)
        release = None if package is None else package.published(copy.version)
        if package is None or release is None or (copy.source is not None and copy.source.kind in _ELSEWHERE):
            continue
        if release.yanked is not None:
            yield _yanked(copy, release, package)
        unsupported = tuple(_python(copy, release, package, facts.environment))
        yield from unsupported or _wheels(copy, release, package, facts.environment)
        yield from _glibc(copy, release, package, facts.environment)


def _yanked(copy: Distribution, release: Published, package: Package) -> Finding:
    good = [each for each in package.releases if each.yanked is None]
    here = key_of(release.version)
    above = next((each for each in good if key_of(each.version) > here), None)
    below = next((each for each in reversed(good) if key_of(each.version) < here), None)
    fixes = []
    if above is not None:
        fixes.append(upgrade_to(copy.name, above.version, "the next release"))
    if below is not None:
        fixes.append(by_pip("downgrade", copy.name, f"=={below.version}", "the release before"))
    reason = f": {release.yanked}" if release.yanked else ""
    return Finding(
        rule=f"yanked-{copy.name}",
        origin="release",
        severity="warning",
        effect="install",
        title=f"{copy.name} {release.version} was yanked",
        why=f"Its authors yanked it from the index{reason}. Installers only use it if it is pinned.",
        packages={copy.name: copy.version},
        fixes=tuple(fixes),
        evidence=(_YANKING,),
        here=f"{copy.name} {copy.version}",
    )


def _python(copy: Distribution, release: Published, package: Package, environment: Environment) -> Iterator[Finding]:
    python = environment.python
    wanted = release.pythons
    if not python or wanted is None or not is_version(python):
        return
    exact = python.count(".") > 1
    if contains(wanted, key_of(python)) or (not exact and contains(wanted, key_of(f"{python}.99"))):
        return
    fitting = (each.version for each in reversed(package.releases) if each.is_offered(python))
    newest = next(fitting, None)
    text = f"the newest release for Python {python}"
    fixes = () if newest is None else (downgrade_to(copy.name, newest, text, kind="pin"),)
    yield Finding(
        rule=f"python-{copy.name}",
        origin="metadata",
        severity="warning",
        effect="install",
        title=f"{copy.name} {release.version} does not support Python {python}",
        why=f"It declares Requires-Python {release.requires_python}; installers reject it.",
        packages={copy.name: copy.version},
        facts=("python",),
        fixes=fixes,
        evidence=("https://packaging.python.org/en/latest/specifications/core-metadata/#requires-python",),
        here=f"{copy.name} {copy.version}, Python {python}",
    )


def _wheels(copy: Distribution, release: Published, package: Package, environment: Environment) -> Iterator[Finding]:
    """Yield a finding if a release has neither a wheel for this Python, system and processor nor a source distribution.

    A complete list is what is installed, so that there was a wheel, whoever built it.
    """
    if environment.distributions_complete:
        return
    offers = tuple((each.version, each.wheels) for each in package.releases if each.yanked is None or each is release)
    yield from _without_wheel(copy, release.version, offers, environment)


def _without_wheel(
    copy: Distribution, release: str, offers: Sequence[tuple[str, str]], environment: Environment
) -> Iterator[Finding]:
    """Yield a finding if a release has no file for this Python, system and processor.

    ``offers`` are the releases of the package with the wheels that they have, oldest first.
    """
    wheels = next((each for version, each in offers if version == release), "")
    if copy.source is not None and copy.source.details:
        environment = replace(environment, machine=None)  # another index may have wheels for other processors
    lacking = _lacking(wheels, environment)
    if lacking is None:
        return
    fact, here = lacking
    yield Finding(
        rule=f"wheels-{copy.name}",
        origin="release",
        severity="warning",
        effect="install",
        title=f"{copy.name} {release} has no wheel for {here}",
        why="It has no source distribution either, so installers find no version for this Python and system.",
        packages={copy.name: copy.version},
        facts=(fact,),
        fixes=tuple(_with_wheel(copy, wheels, offers, environment, lacking)),
        evidence=(_TAGS,),
        here=f"{copy.name} {copy.version}, {here}",
    )


def _lacking(wheels: str, environment: Environment) -> tuple[str, str] | None:
    """The fact for which there is no file, and its value in words: the system, its processor, or the Python."""
    python, system, machine = environment.python, environment.os, environment.machine
    if python is not None and not is_version(python):
        python = None
    if system not in (None, *_SYSTEMS) or has_file(wheels, system, python, machine):
        return None
    shown = _SYSTEMS[system or "linux"]
    if not fits(wheels, system, None):
        return "os", shown
    return ("python", f"Python {python}") if fits(wheels, system, None, machine) else ("machine", f"{shown} on {machine}")


def _with_wheel(
    copy: Distribution, wheels: str, offers: Sequence[tuple[str, str]], environment: Environment, lacking: tuple[str, str]
) -> Iterator[Fix]:
    """Yield the nearest release that has a file, and what else helps."""
    fact, here = lacking
    system, key = environment.os, key_of(copy.version or "0")
    if fact == "os" and (other := INSTEAD.get((copy.name, system or ""))) is not None:
        yield by_pip("pin", other, None, f"a build of it for {here}")
    python = environment.python if environment.python is None or is_version(environment.python) else None
    fitting = [version for version, each in offers if has_file(each, system, python, environment.machine)]
    above = next((version for version in fitting if key_of(version) > key), None)
    if above is not None:
        yield upgrade_to(copy.name, above, f"the next release with wheels for {here}")
    elif fitting:
        yield downgrade_to(copy.name, fitting[-1], f"the newest release with wheels for {here}")
    elif fact != "os":
        yield Fix("source-install", copy.name, "", f"build it from its repository: no release has a wheel for {here}")
    if fact == "os":
        others = " and ".join(_SYSTEMS[each] for each in _SYSTEMS if fits(wheels, each, None))
        yield Fix("config", text=f"use {others}, or exclude it on this system with a marker")
    if fact == "python":
        newest = newest_python(wheels, system)
        yield Fix("config", text=f"use Python {newest}, the newest one with wheels", command=f"uv venv --python {newest}")


def _of_further_packages(environment: Environment, declared: Declared) -> Iterator[Finding]:
    """Yield what :func:`_without_wheel` finds of packages of which only the wheels are known, in a list to be installed."""
    if environment.distributions_complete or not (environment.python or environment.os or environment.machine):
        return
    for copy in environment.distributions or ():
        runs = () if copy.name in declared else wheels_of(copy.name)
        if runs and copy.version is not None and is_version(copy.version) and is_release(copy):
            here = key_of(copy.version)
            own = next((each for each in runs if key_of(each.first) <= here <= key_of(each.last)), None)
            offers = [(each.first, each.wheels) for each in runs if each is not own]
            if own is not None:
                offers.insert(runs.index(own), (copy.version, own.wheels))
            yield from _without_wheel(copy, copy.version, offers, environment)


INSTEAD = {("triton", "windows"): "triton-windows"}
"""Distribution and system without wheels → the distribution that others publish for that system."""


def _glibc(copy: Distribution, release: Published, package: Package, environment: Environment) -> Iterator[Finding]:
    glibc = environment.glibc
    if not glibc or not release.glibc or environment.os not in (None, "linux") or environment.machine not in (None, "x86_64"):
        return
    if key_of(release.glibc) <= key_of(glibc):
        return
    fitting = [each for each in package.releases if each.yanked is None and each.glibc and key_of(each.glibc) <= key_of(glibc)]
    near = [each.version for each in fitting if key_of(each.version) > key_of(release.version)][:1]
    older = [each.version for each in fitting if key_of(each.version) < key_of(release.version)][-1:]
    fixes = [upgrade_to(copy.name, each, "the next release with a wheel for it") for each in near]
    fixes += [downgrade_to(copy.name, each, "the last release before it") for each in older]
    yield Finding(
        rule=f"glibc-{copy.name}",
        origin="build",
        severity="warning",
        effect="install",
        title=f"{copy.name} {release.version} has no wheel for glibc {glibc}: it needs {release.glibc}",
        why="Installers skip the wheels and build the source distribution, which takes long and often fails.",
        packages={copy.name: copy.version},
        facts=("glibc",),
        fixes=tuple(fixes),
        evidence=("https://peps.python.org/pep-0600/",),
        here=f"{copy.name} {copy.version}, glibc {glibc}",
    )


# --- Optional packages that are too old for a package that uses them, so that it takes them for not installed.


_BY = "transformers"
_SOURCE = "https://github.com/huggingface/transformers/blob/main/src/transformers/utils/import_utils.py"


def judge_ignored(facts: Facts) -> Iterator[Finding]:
    """Yield a finding for an accelerate that transformers ignores, and for such a bitsandbytes if the job quantizes with it.

    Without accelerate, the Trainer and ``device_map`` raise ImportError: an error if the job trains, otherwise a warning.
    """
    task = facts.value("workload.task")
    if task in _UNAFFECTED or (task is None and facts.workload.script is not None):
        return
    trains = task != "inference" if task else facts.has_trainers
    if not trains and any(isinstance(facts.package(engine), list) for engine in ENGINES):
        return
    yield from _ignored(facts, "accelerate", "error" if trains else "warning", "the Trainer and device_map raise")
    if facts.value("workload.quantization") in ("4bit", "8bit"):
        yield from _ignored(facts, "bitsandbytes", "error", "loading a quantized model raises")


_UNAFFECTED = ("serve", "import", "install", "build")


def _ignored(facts: Facts, name: str, severity: str, what: str) -> Iterator[Finding]:
    by, other = _only_release(facts, _BY), _only_release(facts, name)
    if by is None or other is None:
        return
    least = least_available(_BY, by, name)
    if least is not None and key_of(other) < key_of(least):
        yield Finding(
            rule=f"ignored-{_BY}-{name}", origin="guard", severity=severity,
            title=f"{_BY} {by} ignores {name} {other}: it uses {name}>={least}",
            why=f"{_BY} takes an older {name} for not installed, so {what} ImportError.",
            packages={_BY: by, name: other}, facts=("workload",),
            fixes=(upgrade_to(name, least, f"the first release that {_BY} {by} uses"),), evidence=(_SOURCE,),
            here=f"{_BY} {by}, {name} {other}",
        )  # fmt: skip


def _only_release(facts: Facts, name: str) -> str | None:
    """The version of a package of which one release is installed."""
    copies = facts.package(name)
    if not isinstance(copies, list) or len(copies) != 1:
        return None
    copy: Distribution = copies[0]
    return copy.version if copy.version is not None and is_version(copy.version) and is_release(copy) else None
