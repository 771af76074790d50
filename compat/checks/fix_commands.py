"""Fixes with their commands: for pip or the tool of a project, and for the drivers and toolkits of this system."""

from __future__ import annotations

from compat.model import Finding, Fix
from compat.records import record, replace
from compat.tables.declared import open_declared
from compat.versions import is_version, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from compat.formats.registry import Format


def by_pip(kind: str, name: str, spec: str | None, text: str) -> Fix:
    """A fix by pip: its command installs what ``spec`` allows; ``None``: the newest release for an upgrade, otherwise any."""
    if spec is None:
        return Fix(kind, name, None, text, f"pip install {'-U ' if kind == 'upgrade' else ''}{name}")
    return Fix(kind, name, spec, text, f'pip install "{name}{spec}"')


def upgrade_to(name: str, version: str, text: str) -> Fix:
    """A fix that upgrades to ``version`` or later."""
    return by_pip("upgrade", name, f">={version}", text)


def downgrade_to(name: str, version: str, text: str, *, kind: str = "downgrade") -> Fix:
    """A fix that downgrades to ``version`` or earlier; the command installs exactly ``version``, the newest one that works."""
    return Fix(kind, name, f"<={version}", text, f'pip install "{name}=={version}"')


def moved_to(name: str, here: str, version: str, text: str) -> Fix:
    """A fix that installs exactly ``version``, which is newer or older than the release that is ``here``."""
    if key_of(version) <= key_of(here):
        return downgrade_to(name, version, text)
    return Fix("upgrade", name, f">={version}", text, f'pip install "{name}=={version}"')


def compiled(name: str, text: str, *, spec: str = "", options: str = "", variable: str = "") -> Fix:
    """A fix that compiles a package; without a command where no source distribution of it is published."""
    package = open_declared().package(name)
    newest = None if package is None else package.published(package.versions[-1])
    if newest is not None and newest.wheels and "sdist" not in newest.wheels.split(" "):
        return Fix("source-install", name, "", f"{text}, from its repository (only wheels are published)")
    command = f"{variable}pip install --no-build-isolation --no-binary {name} {options}{name}{spec}"
    return Fix("source-install", name, "", text, command)


def compiled_anew(name: str, spec: str = "", text: str = "compile it for the installed torch") -> Fix:
    """Compile an extension for the installed torch, in place of the installed one."""
    return compiled(name, text, spec=spec, options="--force-reinstall --no-deps ")


def in_project(finding: Finding, kind: str, of_conda: Mapping[str, str]) -> Finding:
    """The finding with fix commands for the project tool that belongs to this kind of file (such as ``uv add``).

    ``of_conda`` are packages from conda, with the names that they have there.
    """
    from compat.formats.registry import format_named  # imported late: not needed for installed environments

    tool = format_named(kind)
    return finding if tool.add is None else replace(finding, fixes=tuple(_by(tool, fix, of_conda) for fix in finding.fixes))


def _by(tool: Format, fix: Fix, of_conda: Mapping[str, str]) -> Fix:
    what, _, url = (fix.command or "").removeprefix("pip install ").partition(" --index-url ")
    parts = what.count('" "') + 1
    single = what[:1] == what[-1:] == '"' and what.count('"') == 2 * parts and (parts == 1 or url)
    if what == fix.command or not single or " " in url:
        return fix  # it does not add one requirement (or builds from one index) to what there is, and nothing else
    conda = of_conda.get(fix.package or "")
    if conda is not None and tool.add_conda is not None:
        # conda has neither the builds of an index nor those of a commit
        return fix if url or not fix.spec else replace(fix, command=f'{tool.add_conda} "{conda}{fix.spec}"')
    if not url:
        return replace(fix, command=f"{tool.add} {what}")
    if tool.add_from is None:
        return fix
    name = f"pytorch-{url.rpartition('/')[2]}"
    return replace(fix, command=tool.add_from.format(what=what, url=url, name=name))


_FINAL = key_of("1")


def nearest_fixes(
    name: str, here: str, good: Iterable[str], known: tuple[str, ...], text: str, *, check: Callable[[str], bool] | None = None
) -> Iterator[Fix]:
    """Yield the nearest good release after and before the installed one; ``check`` may reject a release.

    One from years before is only offered where nothing later is good.
    """
    key = key_of(here)
    candidates = list(good)
    finals = [version for version in candidates if is_version(version) and key_of(version)[2:] == _FINAL[2:]] or candidates
    after = (version for version in finals if key_of(version) > key and (check is None or check(version)))
    before = (version for version in reversed(finals) if key_of(version) < key and (check is None or check(version)))
    above = next(after, None)
    if above is not None:
        stays = known[-1] in finals and (check is None or check(known[-1]))
        spec = f">={above}" if stays else f"=={above}"
        yield by_pip("upgrade", name, spec, f"the next release that {text}")
    below = next(before, None)
    if below is not None and (above is None or not _is_long_before(name, below, here)):
        yield by_pip("downgrade", name, f"=={below}", f"the last release before that {text}")


_LONG = 365
"""Days between the uploads of two releases."""


def _is_long_before(name: str, one: str, other: str) -> bool:
    from compat.tables.declared import open_declared  # imported late: not needed for most findings

    package = open_declared().package(name)
    return package is not None and 0 < package.day(one) < package.day(other) - _LONG


# --- Commands that install drivers and CUDA toolkits on this system, with links to their documentation.


_DRIVER_GUIDE = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"
_CUDA_GUIDE = "https://docs.nvidia.com/cuda/cuda-installation-guide-linux/"
_UBUNTU = "https://documentation.ubuntu.com/server/how-to/graphics/install-nvidia-drivers/"
_WSL = "https://docs.nvidia.com/cuda/wsl-user-guide/"
_WINDOWS = "https://www.nvidia.com/drivers/"
_TOOLKIT = "CUDA_HOME=/usr/local/cuda-"
"""In the fix of a rule that requires a CUDA toolkit, followed by its release."""


@record(frozen=True)
class Host:
    """The facts that decide how a driver is installed; ``family`` and ``release`` come from /etc/os-release, "" if unknown."""

    os: str
    family: str = ""
    release: str = ""
    wsl: bool = False
    container: bool = False
    conda: bool = False
    old: bool = False
    """Whether a GPU is older than Turing: the open kernel modules do not support it, and branch 580 is the last that does."""


def host_of(os_name: str, os_release: str, *, wsl: bool, container: bool, conda: bool, old: bool = False) -> Host:
    """The host for the text of /etc/os-release (os-release(5)); its family is ``ubuntu``, ``debian``, ``rhel``, or ""."""
    values = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    names = f"{values.get('ID', '')} {values.get('ID_LIKE', '')}".replace('"', "").split()
    family = next((name for name in names if name in ("ubuntu", "debian", "rhel", "fedora")), "")
    release = values.get("VERSION_ID", "").strip('"').partition(".")[0]
    return Host(
        os_name,
        "rhel" if family == "fedora" else family,
        release if "fedora" not in names[:1] else "",
        wsl,
        container,
        conda,
        old,
    )


def with_host_commands(host: Host, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Add commands for this host to fixes that install a driver or a toolkit, and their documentation to the evidence."""
    found = []
    for finding in findings:
        fixes, sources = [], []
        for fix in finding.fixes:
            toolkit = _toolkit_in(fix.command or fix.text) if fix.kind == "config" else None
            if fix.kind == "driver" and fix.command is None and fix.spec:
                fix, source = _driver(host, fix)
                sources.append(source)
            elif toolkit:
                fixes.append(fix)
                fix, source = _toolkit(host, toolkit)
                sources.append(source)
            fixes.append(fix)
        if sources:
            finding = replace(finding, fixes=tuple(fixes), evidence=tuple(dict.fromkeys((*finding.evidence, *sources))))
        found.append(finding)
    return tuple(found)


def _toolkit_in(text: str) -> str | None:
    """The release of the CUDA toolkit that a fix requires ("12" or "12.4")."""
    _, found, rest = text.partition(_TOOLKIT)
    version = rest.split(maxsplit=1)[0] if found and rest.strip() and not rest[0].isspace() else ""
    return version if version.count(".") < 2 and all(part.isdecimal() for part in version.split(".")) else None


def _driver(host: Host, fix: Fix) -> tuple[Fix, str]:
    if host.wsl:
        return replace(fix, text=f"{fix.text} on Windows; no Linux driver inside WSL"), _WSL
    if host.os == "windows":
        return replace(fix, text=f"{fix.text}: {_WINDOWS}"), _WINDOWS
    if host.container:
        return replace(fix, text=f"{fix.text} on the host, not in the container"), _DRIVER_GUIDE
    if host.family == "ubuntu":
        return replace(fix, text=f"{fix.text}, then reboot", command="sudo ubuntu-drivers install"), _UBUNTU
    if host.family in _TOOLS:
        tool = _TOOLS[host.family]
        if host.family == "rhel" and host.release in ("8", "9"):
            install = f"dnf module install nvidia-driver:{f'{_LAST_OLD}-dkms' if host.old else 'open-dkms'}"
        else:  # Blackwell and Grace Hopper only work with the open kernel modules
            install = f"{tool} install {f'cuda-drivers-{_LAST_OLD}' if host.old else 'nvidia-open'}"
        fix = replace(fix, text=f"{fix.text} from {_REPOSITORY}, then reboot", command=f"sudo {install}")
    return fix, _DRIVER_GUIDE


_LAST_OLD = 580
"""The last driver branch for Maxwell, Pascal and Volta."""


_TOOLS = {"ubuntu": "apt-get", "debian": "apt-get", "rhel": "dnf"}
_REPOSITORY = "NVIDIA's package repository"


def _toolkit(host: Host, version: str) -> tuple[Fix, str]:
    """A fix that installs the toolkit next to existing ones, and its source; the package ``cuda`` would add a driver."""
    text = f"install the CUDA {version} toolkit"
    if host.conda:
        return Fix("config", text=text, command=f'conda install -c nvidia "cuda-toolkit={version}"'), _CUDA_GUIDE
    if host.family in _TOOLS:
        command = f"sudo {_TOOLS[host.family]} install cuda-toolkit-{version.replace('.', '-')}"
        return Fix("config", text=f"{text} from {_REPOSITORY}", command=command), _WSL if host.wsl else _CUDA_GUIDE
    return Fix("config", text=f"{text}: {_ARCHIVE}"), _ARCHIVE


_ARCHIVE = "https://developer.nvidia.com/cuda-toolkit-archive"
