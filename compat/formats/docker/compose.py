"""Compose files: variable interpolation, command lines, ``environment``, ``extends`` and GPU requests → listings."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence

from compat.errors import InputError
from compat.formats.docker.dockerfile import read_dockerfile
from compat.formats.docker.stage import MACHINES
from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import edits_for, of_included
from compat.formats.edit.files import Edit
from compat.formats.include import Missing, NotRead, WorkingFolders
from compat.formats.jobs import Argument, Job, JobFile, texts_of, unread_installs
from compat.formats.listing import Listing
from compat.formats.pins import numbered_lines
from compat.formats.registry import Format
from compat.model import Accelerator, Environment
from compat.records import record, replace
from compat.redact import excerpt, without_secrets
from compat.syntax.parameters import expanded
from compat.syntax.shell import shell_words
from compat.syntax.yaml import Document, Table, Value

_DEEPEST = 10
"""Maximum depth of ``extends`` chains."""
_LONGEST = 1 << 14
"""Longest command, in characters."""
_MERGED = ("environment", "deploy", "resources", "reservations", "limits", "labels", "build")
"""Tables that are merged key by key with those of the extended service."""


def interpolated(text: str) -> str:
    """Replace variables by their defaults and ``$$`` by ``$``; variables without a default are kept."""
    return expanded(text, {"$": "$"})


def words_of(document: Document, value: Value | None, name: str) -> list[Argument] | None:
    """Return the words of ``command`` or ``entrypoint``; ``None`` if missing or if the text cannot be split."""
    if value is None or value.is_null:
        return None
    if value.is_list:
        items = document.items(value, name)
        words = [Argument(interpolated(document.text(each, f"a word of {name}") or ""), each) for each in items]
        return words if sum(len(each.text) for each in words) < _LONGEST else None
    text = document.text(value, name) or ""
    if len(text) >= _LONGEST:
        return None

    try:
        return [Argument(each, value) for each in shell_words(interpolated(text))]
    except ValueError:
        return None


def variables_of(document: Document, value: Value | None, name: str) -> dict[str, str]:
    """Parse ``environment``, a table or a list of ``NAME=value``; values that only the host knows are omitted."""
    found: dict[str, str] = {}
    if value is not None and value.is_list:
        for each in document.items(value, name):
            key, sign, text = (document.text(each, f"a variable of {name}") or "").partition("=")
            if sign:
                found[key.strip()] = interpolated(text)
    else:
        for key, each in document.table(value, name).items():
            written = document.text(each, f"{name}.{key}")
            if written is not None:
                found[key] = interpolated(written)
    return {key: text for key, text in found.items() if "$" not in text}


def extended(document: Document, services: Table, name: str, unread: list[str]) -> Table:
    """Return a service with what it inherits through ``extends``; other files are not opened but listed in ``unread``."""
    chain: list[Table] = []
    seen: set[str] = set()
    while True:
        service = document.table(services[name], f"services.{name}")
        chain.append(service)
        if len(chain) > _DEEPEST:
            raise document.wrong(f"services.{name}: extends more than {_DEEPEST} services in a row", services[name])
        seen.add(name)
        given = service.get("extends")
        if given is None or given.is_null:
            break
        of = {"service": given} if given.is_text else document.table(given, f"services.{name}.extends")
        file, base = document.text(of.get("file"), "extends.file"), document.text(of.get("service"), "extends.service")
        if file:
            unread.append(f"{document.file}:{given.line}: extends {file} was not read")
            break
        if base is None or base not in services or base in seen:
            raise document.wrong(f"services.{name}: expected extends to name another service of this file", given)
        name = base
    result: Table = {}
    for service in reversed(chain):
        result = _merged(document, result, service)
    return {key: value for key, value in result.items() if value.tag != "!reset"}


def _merged(document: Document, base: Table, own: Table) -> Table:
    merged = {**base, **own}
    for key in _MERGED:
        mine, other = own.get(key), base.get(key)
        if mine is not None and other is not None and mine.is_table and other.is_table:
            inner = _merged(document, document.table(other, key), document.table(mine, key))
            merged[key] = mine.as_table(inner)
        elif key == "environment" and mine is not None and other is not None:
            merged[key] = mine.as_table({**_by_name(document, other), **_by_name(document, mine)})
    return merged


def _by_name(document: Document, value: Value) -> Table:
    """Return ``environment`` in either form, by name."""
    if not value.is_list:
        return document.table(value, "environment")
    found: Table = {}
    for each in document.items(value, "environment"):
        key, sign, text = (document.text(each, "a variable") or "").partition("=")
        found[key.strip()] = each.as_text(text if sign else None)
    return found


# --- GPU requests of a service: ``deploy``, ``gpus``, ``runtime: nvidia`` and the container toolkit's variables.


_MOST = 1024
"""GPUs; more than in any machine."""
_VISIBLE = "NVIDIA_VISIBLE_DEVICES"
_NONE = ("none", "void", "")


@record(frozen=True)
class Devices:
    """``requested``: the service requests GPUs; ``accelerators`` are those GPUs, ``None`` if their number is unknown."""

    requested: bool
    accelerators: tuple[Accelerator, ...] | None = None


def devices_of(document: Document, service: Table, variables: Mapping[str, str], where: str) -> Devices:
    """Return the GPUs of a service; :class:`InputError` for an invalid count or a value of a wrong type."""
    requests = _reserved(document, service.get("deploy"), where)
    gpus = service.get("gpus")
    if gpus is not None and gpus.is_text:  # "all"
        requests.append({"count": gpus})
    else:
        requests += [document.table(each, f"an item of {where}.gpus") for each in document.items(gpus, f"{where}.gpus")]
    counts = [count for each in requests if (count := _count(document, each, where)) is not None]
    if counts:
        return _devices(None if "all" in counts else sum(each for each in counts if isinstance(each, int)))
    visible = variables.get(_VISIBLE)
    runtime = document.text(service.get("runtime"), f"{where}.runtime")
    if runtime == "nvidia" or (visible is not None and visible not in _NONE):
        if visible is None or visible == "all":
            return _devices(None)
        return _devices(0 if visible in _NONE else visible.count(",") + 1)
    mapped = [each for each in document.items(service.get("devices"), f"{where}.devices") if each.is_text]
    amd = any(str(each.content).startswith("/dev/kfd") for each in mapped)  # the device that ROCm needs
    return Devices(requested=amd or bool(variables.get("CUDA_VISIBLE_DEVICES")))


def _devices(count: int | None) -> Devices:
    known = None if count is None or count > _MOST else (Accelerator(vendor="nvidia"),) * count
    return Devices(requested=True, accelerators=known)


def _reserved(document: Document, deploy: Value | None, where: str) -> list[Table]:
    value = deploy
    for key in ("resources", "reservations", "devices"):
        value = document.table(value, f"{where}.deploy").get(key)
        if value is None:
            return []
    items = document.items(value, f"{where}.deploy.resources.reservations.devices")
    return [document.table(each, "a reserved device") for each in items]


def _count(document: Document, request: Table, where: str) -> int | str | None:
    """Return the number of requested GPUs or ``"all"``; ``None`` for another device."""
    driver = document.text(request.get("driver"), f"the driver of a device of {where}")
    if driver not in (None, "", "nvidia"):
        return None
    capabilities = request.get("capabilities")
    if capabilities is not None and not _is_gpu(document, capabilities, where):
        return None
    ids = request.get("device_ids")
    if ids is not None and not ids.is_null:
        return len(document.items(ids, f"the device_ids of {where}"))
    text = interpolated(document.text(request.get("count"), f"the count of a device of {where}") or "all")
    if text in ("all", "-1") or "$" in text:
        return "all"
    if not (text.isascii() and text.isdecimal() and len(text) < 5):
        raise document.wrong(f"{where}: expected a number of GPUs or 'all', not {excerpt(text, 40)!r}", request["count"])
    return int(text)


def _is_gpu(document: Document, value: Value, where: str) -> bool:
    """Whether ``capabilities`` (a list, or a list of lists) include a GPU."""
    words: list[str | None] = []
    for each in document.items(value, f"the capabilities of {where}"):
        inner = document.items(each, f"the capabilities of {where}") if each.is_list else [each]
        words += [document.text(word, f"a capability of {where}") for word in inner]
    return "gpu" in words or "nvidia" in words or "compute" in words


# --- Compose files → one listing for each service that runs on GPUs, with the stack of its image and the job it starts.


_COMPOSE_MOST = 1000
_COMPOSE_LONGEST = 500
"""Services in a file; characters in an image name."""
_NOTHING = "no service requests a GPU, uses a known image or starts a known job"


def _listings(file: JobFile, document: Document, services: Table, name: str, elsewhere: list[str]) -> Iterator[Listing]:
    """Yield the listings of a service, if it has anything to check: its own, or those of the Dockerfile it is built from."""
    unread: list[str] = []
    values = extended(document, services, name, unread)
    where = f"services.{name}"
    image = interpolated(document.text(values.get("image"), f"{where}.image") or "")[:_COMPOSE_LONGEST]
    line = values["image"].line if "image" in values else services[name].line
    place = f"{file.path}:{line}"
    job = Job(file.path, image=image, line=line, built="build" in values, here=False, where=f"{place}: service {name}")
    variables = variables_of(document, values.get("environment"), f"{where}.environment")
    devices = devices_of(document, values, variables, where)
    entrypoint, command = (words_of(document, values.get(key), f"{where}.{key}") for key in ("entrypoint", "command"))
    job.run_words(file, [*(entrypoint or ()), *(command or ())], variables)
    job.start_container(
        place, texts_of(entrypoint), texts_of(command), variables, default_memory=_has_default_memory(document, values, where)
    )
    context = Environment(accelerators=devices.accelerators, workload=job.workload)
    built = [] if "build" not in values else list(_built(file, document, values["build"], job, name))
    if "build" in values and not built:
        elsewhere += [each for each in job.files.elsewhere if each not in elsewhere]
    for each in built:
        more = {**(each.context.variables or {}), **without_secrets({**variables, **job.variables})}
        yield replace(
            each,
            context=replace(
                each.context, accelerators=context.accelerators, workload=context.workload or each.context.workload,
                variables=more or None,
            ),
        )  # fmt: skip
    if not (devices.requested or job.is_relevant or unread) or (built and not job.has_steps):
        return
    if "build" not in values:
        if not image:
            job.note("no image is named")
        job.note_image()
    if "env_file" in values:
        job.note("its env_file was not read")
    platform = interpolated(document.text(values.get("platform"), f"{where}.platform") or "")
    system, _, machine = platform.partition("/")
    context = Environment(
        os=system if system in ("linux", "windows") else job.stack.os or "linux",
        machine=MACHINES.get(machine.partition("/")[0]), accelerators=devices.accelerators,
    )  # fmt: skip
    listing = job.listing("compose", label=name, context=context, variables=variables)
    yield replace(listing, unread=(*listing.unread, *unread))


def _has_default_memory(document: Document, service: Table, where: str) -> bool:
    """Whether the shared memory of a service (/dev/shm) has Docker's default size of 64 MiB."""
    if {"shm_size", "ipc"} & service.keys():
        return False
    for key in ("volumes", "tmpfs"):
        value = service.get(key)
        items = [] if value is None else document.items(value, f"{where}.{key}") if value.is_list else [value]
        targets = (document.inner(each, key).get("target") if each.is_table else each for each in items)
        if any(target is None or "/dev/shm" in str(target.content) for target in targets):
            return False
    return True


def _built(file: JobFile, document: Document, build: Value, job: Job, name: str) -> Iterator[Listing]:
    """Yield what the Dockerfile of a service installs, each entry with its file; :class:`Job` takes what was not read."""
    where = f"services.{name}.build"
    values = {"context": build} if build.is_text else document.table(build, where)
    inline = values.get("dockerfile_inline")
    texts = {
        key: interpolated(document.text(values.get(key), f"{where}.{key}") or "") for key in ("context", "dockerfile", "target")
    }
    arguments = variables_of(document, values.get("args"), f"{where}.args")
    place = f"{file.path}:{build.line}"
    try:
        if inline is not None and inline.is_text:
            lines = file.placed(inline)
            path, text = file.path, "\n" * (lines[0].number - 1) + "\n".join(each.text for each in lines)
        else:
            dockerfile = posixpath.join(texts["context"] or ".", texts["dockerfile"] or "Dockerfile")
            opened = WorkingFolders(file.path).open(posixpath.normpath(dockerfile), None, "build")
            path, text = opened[0], opened[1].decode("utf-8", "replace")
        for each in read_dockerfile(path, text, arguments, texts["target"] or None):
            if each.is_relevant:
                entries = tuple(replace(entry, file=entry.file or path) for entry in each.entries)
                label = name if each.label is None else f"{name}, {each.label}"
                yield replace(each, file=file.path, kind="compose", entries=entries, label=label)
    except Missing as reason:
        job.files.not_here(place, f"the Dockerfile of service {excerpt(name, 60)} was not read: {reason}")
    except (NotRead, InputError) as reason:
        job.files.not_read(place, f"the Dockerfile of service {excerpt(name, 60)} was not read: {reason}")


class Compose(Format):
    """A compose file: one listing per service."""

    kind = "compose"
    lists_packages = False
    by_hand = "change the Dockerfile or the image it names"
    apply = "docker compose --file {path} up --build"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        """Return the listings of the relevant services, or one empty listing; ``label`` is the service.

        Raises :class:`InputError` for invalid YAML and a value of a wrong type. The Dockerfile that a service is built from is
        read if the project has it; a service that extends one of another file is in ``unread``.
        """
        file = JobFile(path, text, "a compose file")
        found: list[Listing] = []
        outside: list[str] = []
        elsewhere: list[str] = []
        documents = file.documents()
        if not documents:
            raise InputError("expected the 'services' of a compose file", path, 1)
        for document in documents:
            root = document.table(document.root, "the file")
            if "services" not in root:
                raise InputError("expected the 'services' of a compose file", path, 1)
            services = document.table(root["services"], "services")
            if len(services) > _COMPOSE_MOST:
                raise InputError(f"has more than {_COMPOSE_MOST} services", path, root["services"].line)
            include = root.get("include")
            files = [include] if include is not None and include.is_text else document.items(include, "include")
            outside += [f"{path}:{each.line}: include was not read" for each in files]  # they may define relevant services
            for name in services:
                found += _listings(file, document, services, name, elsewhere)
        if not found:
            outside += unread_installs(path, text)
            notes = (_NOTHING, *elsewhere)
            return (Listing(path, "compose", notes=notes, unread=tuple(outside), elsewhere=tuple(elsewhere)),)
        return tuple(replace(each, unread=(*each.unread, *outside)) for each in found)

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        """Edit the Dockerfiles that services are built from, and what those read.

        A package that none of them names is added to the one with another change.
        """
        named = of_included(self.listings(path, content), changes)
        missing = [each for each in changes if not any(each in found for found in named.values())]
        added = [each for each in missing if each.after is not None and (each.direct or not each.implied)]
        if not named or path in named or any(each.after is None for each in missing):
            return super().edit(path, content, changes, depth)
        first = next(iter(named))
        anywhere = {file: [replace(each, lines=None) for each in found] for file, found in named.items()}
        anywhere[first] += (replace(each, lines=None) for each in added)
        return tuple(edit for file, found in anywhere.items() for edit in edits_for(file, found, depth + 1))

    def commands_in(self, path: str, text: str) -> Iterable[tuple[int, str]] | None:
        return numbered_lines(text)
