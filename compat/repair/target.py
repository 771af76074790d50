"""The target machine of a plan: which markers hold and which files an installer accepts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, partial
from itertools import product
from typing import NamedTuple

from packaging import tags
from packaging.markers import Marker
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from compat import markers
from compat.errors import InputError
from compat.index import Requirement
from compat.index.metadata import parse_requirement
from compat.model import Environment, normalized
from compat.versions import Ranges, contains, key_of, ranges_of

_GLIBC = "2.35"
"""Default if unknown: that of Ubuntu 22.04."""
_MACOS = (14, 0)
_UV_GLIBCS = (17, 28, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40)
"""Minor versions of glibc for which uv has a platform."""

_RELEASED = {
    "3.9": "2020-10-05", "3.10": "2021-10-04", "3.11": "2022-10-24", "3.12": "2023-10-02", "3.13": "2024-10-07",
    "3.14": "2025-10-07",
}  # fmt: skip


class Need(NamedTuple):
    """A declared requirement that applies to the target: ``name`` with its ``specifier`` and ``extras``."""

    name: str
    specifier: str
    extras: tuple[str, ...]

    @property
    def text(self) -> str:
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        return f"{self.name}{extras}{self.specifier}"


class Target:
    """A target machine; :class:`InputError` if its Python version is unknown."""

    def __init__(self, environment: Environment) -> None:
        python = environment.python
        if not python:
            raise InputError("the target's Python is unknown: pass --python-version")
        self.python = python if python.count(".") > 1 else f"{python}.0"  # like uv: the lowest patch release
        self.minor = ".".join(python.split(".")[:2])
        self.system = environment.os or "linux"
        self.machine = environment.machine or ("AMD64" if self.system == "windows" else "x86_64")
        self.glibc = environment.glibc or _GLIBC
        self._markers = self._marker_environment()
        self._accepted: dict[str, bool] = {}
        self._taken: dict[tuple[str, str, str], bool] = {}
        self._applying: dict[Requirement, tuple[tuple[str, ...], Need]] = {}
        self._extras: dict[str, tuple[str, ...]] = {}
        self._needs: dict[int, tuple[Iterable[str | Requirement], dict[str, tuple[Need, ...]]]] = {}
        self._platform_tags = {"any", *self._platforms()}
        self._tags = {(tag.interpreter, tag.abi, tag.platform) for tag in self._supported()}

    def holds(self, marker: Marker | None, extra: str = "") -> bool:
        return marker is None or marker.evaluate({**self._markers, "extra": extra})

    def accepts_python(self, specifier: str | None) -> bool:
        """Whether a Requires-Python accepts the target; an invalid one does, as with installers."""
        if not specifier:
            return True
        if specifier not in self._accepted:
            try:
                self._accepted[specifier] = _specifiers(specifier).contains(self.python, prereleases=True)
            except InvalidSpecifier:
                self._accepted[specifier] = True
        return self._accepted[specifier]

    @property
    def released(self) -> str:
        """The day of the first release of the target's Python; "" if unknown."""
        return _RELEASED.get(self.minor, "")

    def has_system(self, platform: str) -> bool:
        """Whether a wheel's platform tag is for the target's operating system, on any machine and in any version."""
        return platform == "any" or {"darwin": "macosx", "windows": "win"}.get(self.system, "linux") in platform.split("_")[0]

    def has_platform(self, platform: str) -> bool:
        """Whether a wheel's (compressed) platform tag is among those of the target, whatever its Python."""
        return not self._platform_tags.isdisjoint(platform.split("."))

    def takes(self, wheel: tuple[str, str, str]) -> bool:
        """Whether a wheel with these (compressed) tags can be installed."""
        if wheel not in self._taken:
            self._taken[wheel] = any(each in self._tags for each in product(*(part.split(".") for part in wheel)))
        return self._taken[wheel]

    def needs(self, requirements: Iterable[str | Requirement]) -> tuple[Need, ...]:
        """The requirements of a release that apply without extras."""
        return self.needs_by_extra(requirements).get("", ())

    def needs_by_extra(self, requirements: Iterable[str | Requirement]) -> dict[str, tuple[Need, ...]]:
        """The requirements of a release that apply: the unconditional ones under ``""``, the others under their extra."""
        known = self._needs.get(id(requirements))  # releases with the same metadata share the object
        if known is not None and known[0] is requirements:
            return known[1]
        found: dict[str, dict[Need, None]] = {}
        for each in requirements:
            requirement = _requirement(each) if isinstance(each, str) else each
            if requirement is None:
                continue
            applying = self._applying.get(requirement)
            if applying is None:
                need = Need(requirement.name, "" if requirement.url else requirement.specifier, requirement.extras)
                applying = self._applying[requirement] = self._extras_for(requirement.marker), need
            for extra in applying[0]:
                found.setdefault(extra, {})[applying[1]] = None
        needs = {extra: tuple(needs) for extra, needs in found.items()}
        self._needs[id(requirements)] = requirements, needs
        return needs

    def _extras_for(self, marker: str) -> tuple[str, ...]:
        """The extras for which a marker holds ("" if no extra is needed); cached, as most markers repeat."""
        if marker not in self._extras:
            tree = markers.parse(marker) if marker else None
            named = dict.fromkeys(map(_extra_of, markers.comparisons(tree))) if tree is not None else {}
            places = {extra: 1 << at for at, extra in enumerate(("", *filter(None, named)))}
            try:
                where = markers.combined(tree, partial(self._where, places)) if tree is not None else 1
            except _UnusualError:
                parsed = Marker(marker)
                where = sum(place for extra, place in places.items() if self.holds(parsed, extra))
            extras = tuple(normalized(extra) for extra, place in places.items() if where & place)
            self._extras[marker] = ("",) if where & 1 else extras
        return self._extras[marker]

    def _where(self, places: Mapping[str, int], comparison: markers.Comparison) -> int:
        """The extras for which a comparison holds, as bits; :class:`_UnusualError` if packaging has to evaluate it."""
        (is_left, variable), operator, (is_right, text) = comparison
        everywhere = (1 << len(places)) - 1
        if not is_left or is_right or operator not in markers.ORDERS:
            raise _UnusualError
        if variable == "extra" and operator in ("==", "!="):
            return places[text] if operator == "==" else everywhere ^ places[text]
        if variable in ("python_version", "python_full_version"):
            numbers = tuple(map(int, (self.minor if variable == "python_version" else self.python).split(".")))
            holds = markers.version_holds(numbers, operator, text)
        else:
            is_name = operator in ("==", "!=") and variable in (*markers.OF_SYSTEM, "platform_machine", "implementation_name")
            holds = (self._markers[variable] == text) == (operator == "==") if is_name else None
        if holds is None:
            raise _UnusualError
        return everywhere if holds else 0

    @property
    def uv_platform(self) -> str:
        """The target as a value of uv's ``--python-platform``."""
        arm = self.machine in ("arm64", "aarch64")
        if self.system == "darwin":
            return f"{'aarch64' if arm else 'x86_64'}-apple-darwin"
        if self.system == "windows":
            return f"{'aarch64' if arm else 'x86_64'}-pc-windows-msvc"
        minor = int(self.glibc.split(".")[1])
        known = max((each for each in _UV_GLIBCS if each <= minor), default=_UV_GLIBCS[0])
        return f"{'aarch64' if arm else 'x86_64'}-manylinux_2_{known}"

    @property
    def next_patch(self) -> str:
        """The second patch release of the target's Python, if the target is the first one, else ""."""
        return f"{self.minor}.1" if self.python == f"{self.minor}.0" else ""

    @property
    def uv_variables(self) -> dict[str, str]:
        """Environment variables for uv: the version of macOS, which defaults to the oldest."""
        return {"MACOSX_DEPLOYMENT_TARGET": ".".join(map(str, _MACOS))} if self.system == "darwin" else {}

    def _marker_environment(self) -> dict[str, str]:
        platform, system, name = markers.SYSTEMS.get(self.system, (self.system, self.system, "posix"))
        return {
            "implementation_name": "cpython", "implementation_version": self.python, "os_name": name,
            "platform_machine": self.machine, "platform_release": "", "platform_system": system, "platform_version": "",
            "python_full_version": self.python, "platform_python_implementation": "CPython", "python_version": self.minor,
            "sys_platform": platform, "extra": "",
        }  # fmt: skip

    def _supported(self) -> Iterable[tags.Tag]:
        version = tuple(int(part) for part in self.minor.split("."))
        platforms = list(self._platforms())
        yield from tags.cpython_tags(version, platforms=platforms)
        yield from tags.compatible_tags(version, interpreter=f"cp{version[0]}{version[1]}", platforms=platforms)

    def _platforms(self) -> Iterable[str]:
        if self.system == "darwin":
            yield from tags.mac_platforms(_MACOS, "arm64" if self.machine in ("arm64", "aarch64") else "x86_64")
        elif self.system == "windows":
            yield "win_arm64" if self.machine.lower() == "arm64" else "win_amd64"
        else:
            machine = {"arm64": "aarch64", "AMD64": "x86_64"}.get(self.machine, self.machine)
            major, minor = (int(part) for part in self.glibc.split(".")[:2])
            for older in range(minor, 4, -1):
                yield f"manylinux_{major}_{older}_{machine}"
                legacy = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}.get(older)
                if legacy:
                    yield f"{legacy}_{machine}"
            yield f"linux_{machine}"


class _UnusualError(Exception):
    """A comparison of markers that is rare, or not the same in all tools."""


def _extra_of(comparison: markers.Comparison) -> str:
    """The extra that a comparison names, else ""."""
    one, _, other = comparison
    return other[1] if one == (True, "extra") else one[1] if other == (True, "extra") else ""


def _requirement(text: str) -> Requirement | None:
    try:
        return parse_requirement(text)
    except ValueError:
        return None


@cache
def _specifiers(text: str) -> SpecifierSet:
    return SpecifierSet(text)


@cache
def _ranges(specifier: str) -> Ranges | None:
    """A specifier set as intervals; ``None`` if it has to be left to ``packaging``."""
    try:
        return ranges_of(specifier)
    except ValueError:
        return None


@cache
def satisfies(version: str, specifier: str) -> bool:
    """Whether a version satisfies a specifier set, including pre-releases; an invalid specifier accepts everything."""
    if not specifier:
        return True
    if "+" not in version and (ranges := _ranges(specifier)) is not None:
        return contains(ranges, key_of(version))
    try:
        return _specifiers(specifier).contains(version, prereleases=True)
    except InvalidSpecifier:
        return True
