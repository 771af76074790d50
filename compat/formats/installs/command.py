"""Install commands → what they install: pip, uv, conda, poetry and similar tools. Nothing is run.

The words are those a shell would pass to the program; an unexpanded variable (``torch==$VERSION``) makes the version
unknown. ``Installs`` (``steps``) applies the commands in order.
"""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Mapping, Sequence

from compat.errors import InputError
from compat.formats.conda_spec import channel_of, parse_match_spec, stated_distribution
from compat.formats.installs.words import (
    AT_RUN_TIME,
    EDITABLE,
    Install,
    LockInstall,
    Operand,
    backend_of,
    from_index,
    has,
    is_unresolved,
    named,
    names_of,
    operands_of,
    split_options,
    values,
)
from compat.formats.registry import PROGRAMS
from compat.formats.requirements.requirement import mark_source_build, names_to_build
from compat.formats.specifiers import is_version
from compat.model import EMPTY, Distribution, Source
from compat.records import replace
from compat.redact import without_credentials
from compat.workload.wrappers import UV_VALUED, program_name, unwrapped

_VALUED = UV_VALUED | frozenset((
    "r", "requirement", "requirements", "c", "constraint", "constraints", "b", "build-constraint", "build-constraints",
    "override", "overrides", "excludes", "e", "editable", "pypi-url", "no-binary", "only-binary", "platform", "python-version",
    "implementation", "abi", "t", "target", "root", "prefix", "src", "upgrade-strategy", "config-settings", "global-option",
    "install-option", "build-option", "progress-bar", "root-user-action", "report", "log", "proxy", "retries", "timeout",
    "default-timeout", "resume-retries", "exists-action", "trusted-host", "cert", "client-cert", "use-feature",
    "use-deprecated", "fork-strategy", "exclude-newer-package", "no-build-package", "no-binary-package",
    "no-build-isolation-package", "config-settings-package", "allow-insecure-host", "no-install-package", "script", "tag",
    "branch", "rev", "bounds", "m", "marker", "optional", "source", "extras", "uploaded-prior-to", "spec",
))  # fmt: skip
"""Options of pip, of uv, and of programs with the same options, that take a value."""


def install_of(words: Sequence[str], variables: Mapping[str, str] = EMPTY) -> Install | None:
    """Return what a command installs; ``None`` if it does not install into the environment it runs in.

    ``variables`` are its environment variables: pip and uv read options from them.
    """
    assigned: dict[str, str] = dict(variables)
    try:
        rest = unwrapped(words, assigned)
    except InputError:
        return None
    first = len(words) - len(rest)
    found = _install(rest, first, assigned)
    if found is None:
        return _before_run(words[:first], rest[0] if rest else "")
    in_place = first >= 0 and list(words[first + 1 :]) == rest[1:]
    return found if in_place else replace(found, operands=())  # env -S "pip install torch"


def with_inline(words: Sequence[str], install: Install | None) -> Install | None:
    """Return what a command installs, with the script whose inline metadata uv or pipx installs before running it."""
    name = program_name(words[0]) if words else ""
    if name not in ("uv", "pipx") or "run" not in words:
        return install
    try:
        rest = unwrapped(words, {})
    except InputError:
        return install
    if not rest or not rest[0].endswith(".py") or is_unresolved(rest[0]):
        return install
    return replace(install or Install(manager="uv", runs=True), scripts=(rest[0],))


def is_pip_name(name: str) -> bool:
    """``pip``, ``pip3``, ``pip3.11``."""
    return name.startswith("pip") and not name[3:].strip("0123456789.")


def _install(rest: Sequence[str], first: int, variables: Mapping[str, str]) -> Install | None:
    """``first`` is the index of the first word of ``rest`` in the command."""
    name = program_name(rest[0]) if rest else ""
    if name.startswith(("python", "pypy")) and (project := _setup_py(rest)) is not None:
        return Install(directories=(project,))
    if name.startswith(("python", "pypy")) and "-mpip" in rest[:6]:
        at = rest.index("-mpip")
        return _install(["pip", *rest[at + 1 :]], first + at, variables)
    if name.startswith(("python", "pypy")) and "-m" in rest[:6]:
        at = rest.index("-m") + 1
        return _install(rest[at:], first + at, variables) if at < len(rest) and rest[at] in _MODULES else None
    is_pip = is_pip_name(name)
    if name in ("pip-sync", "easy_install", "rye"):
        options, operands = split_options(rest[1:], _VALUED, first + 1)
        if name == "easy_install":
            return _pip_install(options, operands, variables, "pip")
        if name == "pip-sync":
            files = [each.text for each in operands] or ["requirements.txt"]
            return _with_index(Install(files=tuple(files), manager="pip"), options, variables)
        command = operands[0].text if operands else ""
        if command == "sync":
            return Install(files=("requirements.lock",), manager="uv")
        return _pip_install(options, operands[1:], variables, "uv") if command == "add" else None
    if not is_pip and name != "uv" and name not in _OTHERS:
        return None
    valued = _CONDA_VALUED if name in _CONDA else _PROJECT_VALUED if name in PROGRAMS and name != "uv" else _VALUED
    valued = valued | _PIXI_VALUED if name == "pixi" else valued
    words = _in_full(rest[1:]) if is_pip else rest[1:]
    options, operands = split_options(words, valued, first + 1)
    if is_pip:
        return _pip(options, operands, variables, "pip")
    if name == "uv":
        return _uv(options, operands, variables)
    return _conda(name, options, operands) if name in _CONDA else _project(name, options, operands)


def _setup_py(words: Sequence[str]) -> str | None:
    """Return the project that ``python setup.py install`` installs; ``None`` for any other command of Python."""
    at = next((at for at, word in enumerate(words) if at and not word.startswith("-")), 0)
    if posixpath.basename(words[at]) != "setup.py" or {"install", "develop"}.isdisjoint(words[at + 1 :]):
        return None
    return posixpath.dirname(words[at]) or "."


_MODULES = ("pip", *PROGRAMS)
_CONDA = ("conda", "mamba", "micromamba", "conda-lock")
_OTHERS = (*_CONDA, *PROGRAMS)


_REQUIREMENT, _CONSTRAINT = "--requirement", "--constraint"


def _in_full(words: Sequence[str]) -> list[str]:
    """Return the words of a pip command with the options that name files in full: pip takes any unambiguous prefix."""
    found: list[str] = []
    for word in words:
        option, equals, value = word.partition("=")
        full = next((each for each in (_REQUIREMENT, _CONSTRAINT) if each.startswith(option)), option)
        found.append(f"{full}{equals}{value}" if len(option) > 4 else word)  # "--re" and less are ambiguous
    return found


def _pip(options: Sequence[Operand], operands: Sequence[Operand], variables: Mapping[str, str], manager: str) -> Install | None:
    command, names = operands[0].text if operands else "", [each.text for each in operands[1:]]
    if command == "install":
        return _pip_install(options, operands[1:], variables, manager)
    if command == "uninstall":
        return Install(removed=names_of(names), manager=manager)
    if command == "sync":
        return _with_index(Install(files=tuple(names), manager=manager), options, variables)
    if is_unresolved(command) and names:
        return Install(unknown=(f"{manager} {command}: {AT_RUN_TIME}",))
    return None


def _pip_install(
    options: Sequence[Operand], operands: Sequence[Operand], variables: Mapping[str, str], manager: str
) -> Install:
    if has(options, "t", "target", "prefix", "root", "dry-run"):
        return Install(manager=manager, notes=("pip installs into another folder: not read",))
    constraints = values(options, "c", "constraint", "constraints")
    constraints += variables.get("PIP_CONSTRAINT" if manager == "pip" else "UV_CONSTRAINT", "").split()
    given = variables.get("PIP_REQUIREMENT", "").split() if manager == "pip" else []
    overrides = values(options, "override", "overrides")
    overrides += variables.get("UV_OVERRIDE", "").split() if manager == "uv" else []
    found = operands_of((*operands, *named(options, *EDITABLE)))
    groups = (f"--group {name}: not read" for name in values(options, "group"))
    found = replace(
        found,
        files=(*found.files, *values(options, "r", "requirement", "requirements", "with-requirements"), *given),
        unknown=(*found.unknown, *groups),
        constraints=tuple(constraints),
        overrides=tuple(overrides),
        no_deps=has(options, "no-deps", "no-dependencies"),
        manager=manager,
        upgrade=has(options, "U", "upgrade"),
        python=_python(values(options, "p", "python")),
    )
    return _with_index(found, options, variables)


def _with_index(found: Install, options: Sequence[Operand], variables: Mapping[str, str]) -> Install:
    """Return the install with its named indexes, and the sources they imply for the requirements."""
    uv = found.manager == "uv"
    main = values(options, "i", "index-url", "pypi-url", "default-index")
    names = ("UV_DEFAULT_INDEX", "UV_INDEX_URL") if uv else ("PIP_INDEX_URL",)
    main = main or [variables[name] for name in names if variables.get(name)]
    more = values(options, "extra-index-url", "index")
    for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL") if uv else ("PIP_EXTRA_INDEX_URL",):
        more += variables.get(name, "").split()
    urls = [without_credentials(url.partition("=")[2] if "=" in url.partition("://")[0] else url) for url in (*main, *more)]
    index, extra = (urls[len(main) - 1] if main else None), urls[len(main) :]
    notes = list(found.notes)
    requirements = found.requirements
    for url in filter(None, (index, *extra)):
        if url == index or (uv and not has(options, "index-strategy")):
            # uv queries the extra indexes first, and uses the first index that has the distribution
            sure = url == index and not is_unresolved(url)
            requirements = tuple(d if not (sure or _has_builds(url, d)) else from_index(d, url) for d in requirements)
        else:
            named = [d.name for d in requirements if _has_builds(url, d)]
            if named:
                notes.append(f"{', '.join(named)}: may come from {url}")
            source = Source("index", {"more": extra})
            requirements = tuple(replace(d, source=source) if d.name in named and d.name in _TORCH else d for d in requirements)
    no_binary = {name for value in values(options, "no-binary", "no-binary-package") for name in names_to_build(value)}
    requirements = tuple(mark_source_build(each, no_binary) for each in requirements)
    backends = values(options, "torch-backend") or [variables.get("UV_TORCH_BACKEND", "")]
    if uv and (build := backend_of(backends[-1])):
        requirements = tuple(replace(d, extra={**d.extra, **build}) if d.name in _TORCH else d for d in requirements)
    links = [*values(options, "f", "find-links"), *variables.get("UV_FIND_LINKS" if uv else "PIP_FIND_LINKS", "").split()]
    named_places = (*urls, *map(without_credentials, links))
    return replace(found, requirements=requirements, index_url=index, indexes=named_places, notes=tuple(notes))


_TORCH = ("torch", "torchvision", "torchaudio", "xformers")


def _has_builds(url: str, distribution: Distribution) -> bool:
    """Whether an index is known to have builds of a distribution for one CUDA release."""
    if is_unresolved(url) or (distribution.source is not None and distribution.source.kind not in ("index", "nightly")):
        return False
    return "cuda" in (extra := from_index(distribution, url).extra) or "rocm" in extra


def _python(wanted: Sequence[str]) -> str | None:
    """Return ``3.11`` or ``cpython@3.11.9`` as a version; ``None`` for a path, a range or nothing."""
    text = wanted[-1].removeprefix("cpython").removeprefix("python").lstrip("@-") if wanted else ""
    return text if "." in text and text.replace(".", "").isdecimal() and is_version(text) else None


def _uv(options: Sequence[Operand], operands: Sequence[Operand], variables: Mapping[str, str]) -> Install | None:
    command, *subcommand = [each.text for each in operands[:2]] or [""]
    if command == "pip":
        return _pip(options, operands[1:], variables, "uv")
    if command == "remove":
        return Install(removed=names_of(each.text for each in operands[1:]), manager="uv")
    if command == "add" and not has(options, "script"):
        return _uv_add(options, operands[1:], variables)
    if command == "tool" and subcommand == ["install"] and (wanted := _with(options)):
        return _pip_install(options, [*operands[2:], *wanted], variables, "uv")
    python = _python(values(options, "p", "python") or [variables.get("UV_PYTHON", "")])
    if command in ("sync", "add") and (scripts := values(options, "script")):
        found = _pip_install(options, operands[1:], variables, "uv") if command == "add" else Install(manager="uv")
        return replace(found, scripts=tuple(scripts))
    if command == "sync":
        return Install(manager="uv", locks=(_uv_lock(options),), python=python)
    if command == "venv" and python:
        return Install(manager="uv", python=python)
    if command == "python" and subcommand in (["install"], ["pin"]):
        return Install(manager="uv", python=_python([each.text for each in operands[2:3]]))
    return None


def _uv_add(options: Sequence[Operand], operands: Sequence[Operand], variables: Mapping[str, str]) -> Install:
    found = _pip_install(options, operands, variables, "uv")
    wanted = values(options, "tag", "branch", "rev")
    if not wanted:
        return found
    requirements = []
    for each in found.requirements:
        if each.source is not None and each.source.kind == "vcs" and "requested_revision" not in each.source.details:
            source = replace(each.source, details={**each.source.details, "requested_revision": wanted[-1]})
            each = replace(each, source=source)
        requirements.append(each)
    return replace(found, requirements=tuple(requirements))


def _uv_lock(options: Sequence[Operand]) -> LockInstall:
    folder = "/".join(values(options, "directory", "project")[-1:])
    return LockInstall(
        file=f"{folder.rstrip('/')}/uv.lock" if folder else "uv.lock",
        extras=tuple(values(options, "extra")),
        groups=(*values(options, "group", "only-group"), *(("dev",) if has(options, "dev", "only-dev") else ())),
        without=(*values(options, "no-group"), *(("dev",) if has(options, "no-dev") else ())),
        all_extras=has(options, "all-extras"),
        all_groups=has(options, "all-groups"),
        default_groups=not has(options, "no-default-groups", "only-group", "only-dev"),
        left_out=names_of(values(options, "no-install-package")),
    )


def _before_run(prefix: Sequence[str], program: str) -> Install | None:
    """Return what is installed before a program runs: ``uv run --with vllm==0.9 …``, ``uvx --from vllm==0.9 …``."""
    at = next((i for i, word in enumerate(prefix[:-1]) if program_name(word) in ("uv", "uvx", "pipx")), None)
    if at is None or (program_name(prefix[at]) != "uvx" and "run" not in prefix[at:]):
        return None
    options, operands = split_options(prefix[at + 1 :], _VALUED, at + 1)
    is_tool = program_name(prefix[at]) == "uvx" or [each.text for each in operands[:1]] == ["tool"]
    options = [each for each in options if each.option not in ("e", "m")]
    wanted = [*named(options, "from", "spec"), *_with(options)]
    name, _, version = program.partition("@")
    if is_tool and is_version(version):  # uvx trl@0.15.2
        wanted.append(Operand(f"{name}=={version}", 0))
    found = replace(_pip_install(options, wanted, EMPTY, "uv"), runs=True)
    if is_tool:
        return found if wanted else None
    if has(options, "frozen", "locked", *_SELECTING) and not has(options, "no-project", "no-sync", "script"):
        return replace(found, locks=(_uv_lock(options),))
    return found if wanted or has(options, "with-requirements", "with-editable") else None


def _with(options: Sequence[Operand]) -> list[Operand]:
    return [replace(each, text=part) for each in named(options, "with", "w") for part in _split_requirements(each.text)]


_SELECTING = ("extra", "group", "all-extras", "all-groups", "only-group", "no-group", "no-default-groups", "no-dev")
"""Options of ``uv run`` that show that it first installs the project's lock."""


def _split_requirements(text: str) -> list[str]:
    """Split ``--with a==1,b>=2,<3`` into requirements: a comma separates them only before a name."""
    parts: list[str] = []
    for part in text.split(","):
        if parts and not part.strip()[:1].isalpha():
            parts[-1] += f",{part}"
        else:
            parts.append(part)
    return parts


# --- conda, poetry, pdm, pipenv and pixi.


_CONDA_VALUED = frozenset((
    "n", "name", "p", "prefix", "c", "channel", "file", "f", "solver", "experimental-solver", "platform", "subdir", "clone",
    "repodata-fn", "environment", "e", "manifest-path", "feature", "r", "root-prefix", "rc-file", "channel-priority",
))  # fmt: skip
_PROJECT_VALUED = frozenset((
    "E", "extras", "G", "group", "groups", "with", "without", "only", "only-root", "python", "source", "p", "project",
    "C", "directory", "platform", "markers", "L", "lockfile", "save-path", "categories", "i", "index", "platforms",
    "pypi-mirror",
))  # fmt: skip


_PIXI_VALUED = frozenset(("s", "spec", "w", "expose"))


def _conda(name: str, options: Sequence[Operand], operands: Sequence[Operand]) -> Install | None:
    """Return what conda, mamba or micromamba installs; ``None`` for their other commands."""
    command, *subcommand = [each.text for each in operands[:2]] or [""]
    if command == "env" and subcommand:
        command = f"env {subcommand[0]}"
    if name == "conda-lock" and command == "install":
        return Install(manager="conda", locks=(LockInstall(subcommand[0] if subcommand else "conda-lock.yml"),))
    if name == "conda-lock":
        return None
    if command in ("env create", "env update"):
        return Install(manager="conda", locks=(LockInstall((values(options, "f", "file") or ["environment.yml"])[-1]),))
    if command in ("remove", "uninstall"):
        return Install(removed=tuple(each.name for each in _conda_specs(operands[1:]).requirements), manager="conda")
    if command not in ("install", "create", "update", "upgrade"):
        return None
    files = values(options, "file", "f")
    environments = [file for file in files if file.endswith((".yml", ".yaml", ".lock"))]
    return replace(
        _conda_specs(operands[1:], values(options, "c", "channel")),
        locks=tuple(LockInstall(file) for file in environments),
        files=tuple(file for file in files if file not in environments),
    )


def _conda_specs(specs: Sequence[Operand], channels: Sequence[str] = ()) -> Install:
    requirements: list[Distribution] = []
    stated: list[Operand] = []
    notes: list[str] = []
    unknown: list[str] = []
    python = None
    for operand in specs:
        text = operand.text
        try:
            spec = parse_match_spec(text.partition("$")[0].rstrip("=<>!~ ") if is_unresolved(text) else text)
        except ValueError:
            unknown.append(f"{text}: {AT_RUN_TIME if is_unresolved(text) else 'not read, expected a conda package'}")
            continue
        if is_unresolved(text):
            notes.append(f"{text}: its version is {AT_RUN_TIME}")
        if spec.name == "python":
            version = spec.version if spec.version and is_version(spec.version) else None
            python = version or _family(spec.specifier) or python
        else:
            details = {"channel": channel_of(spec.name, spec.channel, channels), "spec": spec.unclear}
            requirements.append(stated_distribution(spec, details, spec.specifier))
            stated.append(operand)
    return Install(
        tuple(requirements), tuple(stated), manager="conda", notes=tuple(dict.fromkeys(notes)),
        unknown=tuple(dict.fromkeys(unknown)), python=python,
    )  # fmt: skip


def _family(specifier: str | None) -> str | None:
    """``==3.11.*`` → ``3.11``."""
    text = (specifier or "").removeprefix("==").removesuffix(".*")
    return text if all(part.isascii() and part.isdecimal() for part in text.split(".")) else None


def _project(manager: str, options: Sequence[Operand], operands: Sequence[Operand]) -> Install | None:
    """Return what poetry, pdm, pipenv or pixi installs: packages added to a project, or its lock file."""
    lock = PROGRAMS[manager]
    command = operands[0].text if operands else ""
    if manager == "pixi" and command in ("exec", "x", "global"):
        # what they install is beside the project
        if command == "global":
            installs = [each.text for each in operands[1:2]] in (["install"], ["add"])
            specs = [*operands[2:], *named(options, "with")] if installs else []
        else:
            program = operands[1].at if len(operands) > 1 else sys.maxsize  # options behind it are its own
            specs = [each for each in named(options, "s", "spec", "w", "with") if each.at < program]
        return replace(_conda_specs(specs), manager="pixi") if specs else None
    if command in ("remove", "uninstall"):
        return Install(removed=names_of(each.text for each in operands[1:]), manager=manager)
    if command == "add" or (command == "install" and manager == "pipenv" and len(operands) > 1):
        if manager == "pixi" and not has(options, "pypi"):
            return replace(_conda_specs(operands[1:]), manager=manager)
        return replace(operands_of(replace(each, text=_from_poetry(each.text)) for each in operands[1:]), manager=manager)
    if command not in ("install", "sync"):
        return None
    folder = "/".join(values(options, "C", "directory", "project")[-1:])
    extras = [name for value in values(options, "E", "extras") for name in value.replace(",", " ").split()]
    groups = _comma_separated(options, "with", "only", "G", "group", "groups")
    dev_off = has(options, "no-dev", "prod", "production")
    if has(options, "dev", "d") and manager in ("pipenv", "pdm"):
        groups = (*groups, "develop" if manager == "pipenv" else "dev")
    chosen = LockInstall(
        file=f"{folder.rstrip('/')}/{lock}" if folder else lock,
        extras=tuple(extras),
        groups=groups,
        without=(*_comma_separated(options, "without"), *(("dev",) if dev_off else ())),
        all_extras=has(options, "all-extras"),
        all_groups=has(options, "all-groups"),
        default_groups=not has(options, "only", "only-main"),
        environment="".join(values(options, "e", "environment")[-1:]) or None,
    )
    return Install(manager=manager, locks=(chosen,))


def _comma_separated(options: Sequence[Operand], *names: str) -> tuple[str, ...]:
    return tuple(name.strip() for value in values(options, *names) for name in value.split(",") if name.strip())


def _from_poetry(word: str) -> str:
    """Convert Poetry's ``torch@2.6.0`` and ``torch@^2.6``: a plain version is a pin, a caret or tilde a lower bound."""
    name, sign, version = word.partition("@")
    if not sign or "://" in version or not version[:1].isdecimal():
        return name if sign and "://" not in version and version[:1] in ("l", "^", "~") else word
    return f"{name}=={version}"
