"""``devcontainer.json``: the image, the features that install Python or CUDA, and the creation commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from compat.errors import InputError
from compat.formats.installs.files import InstallFormat
from compat.formats.jobs import Job, Placed, Script, check_size, is_known
from compat.formats.listing import Listing
from compat.model import Environment
from compat.syntax.json import parse_json

if TYPE_CHECKING:
    from compat.formats.installs.edit import InstallScript

    Table = dict[str, object]


_STRING_OR_REST = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)
_COMMANDS = ("initializeCommand", "onCreateCommand", "updateContentCommand", "postCreateCommand", "postStartCommand")
"""In execution order; the first runs outside of the container."""
_PLAIN = re.compile(r"[0-9]+(?:\.[0-9]+)+")


class Devcontainer(InstallFormat):
    """A development container; :class:`InputError` for invalid JSON with comments and for values of a wrong type."""

    kind = "devcontainer"
    apply = "devcontainer up --config {path}"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        file = _File(path, text)
        job = Job(path, image=file.text("image"), line=file.line("image"))
        for script in file.scripts():
            job.run(Script((script,)))
        build, compose = file.root.get("build"), file.root.get("dockerComposeFile")
        dockerfile = file.root.get("dockerFile") or (build.get("dockerfile") if isinstance(build, dict) else None)
        for other in (dockerfile, *(compose if isinstance(compose, list) else [compose])):
            if other:
                job.files.note(path, f"is built from {other}: check that one too")
        job.note_image()
        python, toolkit = file.feature("python", "version"), file.feature("nvidia-cuda", "cudaVersion")
        context = Environment(os="linux", python=python, cuda_toolkit=toolkit)
        variables = {**file.variables("containerEnv"), **file.variables("remoteEnv")}
        return (job.listing(self.kind, context=context, variables=variables),)

    def collect(self, script: InstallScript) -> None:
        from compat.formats.edit.files import Mapped

        for each in _File(script.path, script.text).scripts():
            if each.offset is not None:
                script.read(Mapped(each.text, range(each.offset, each.offset + len(each.text))), '"')


class _File:
    """The object in the file, and the positions of its keys and strings."""

    def __init__(self, path: str, text: str) -> None:
        check_size(path, text, "a devcontainer.json")
        self.path = path
        # blank out the byte order mark, comments and trailing commas, so that all offsets stay the same
        text = f" {text[1:]}" if text.startswith("\ufeff") else text
        self.plain = _STRING_OR_REST.sub(_kept, text)
        root = parse_json(self.plain, path)
        if not isinstance(root, dict):
            raise InputError("expected a JSON object, as in every devcontainer.json", path, 1)
        self.root: Table = root

    def wrong(self, key: str, expected: str) -> InputError:
        return InputError(f"expected {key} to be {expected}", self.path, self.line(key))

    def line(self, key: str) -> int:
        """Return the line of a key, or the first line if it is not found."""
        found = re.search(rf'"{re.escape(key)}"\s*:', self.plain)
        return 1 if found is None else self.plain.count("\n", 0, found.start()) + 1

    def text(self, key: str) -> str | None:
        value = self.root.get(key)
        if value is not None and not isinstance(value, str):
            raise self.wrong(key, "a string")
        return value

    def table(self, key: str) -> Table:
        value = self.root.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, "an object")
        return value

    def variables(self, key: str) -> dict[str, str]:
        return {name: value for name, value in self.table(key).items() if isinstance(value, str) and is_known(value)}

    def feature(self, name: str, option: str) -> str | None:
        """Return the version requested from a feature, if it is a single one."""
        for feature, options in self.table("features").items():
            if feature.partition(":")[0].rpartition("/")[2] == name:
                value = options.get(option) if isinstance(options, dict) else options
                return value if isinstance(value, str) and _PLAIN.fullmatch(value) else None
        return None

    def scripts(self) -> Iterator[Placed]:
        """Yield the lifecycle commands with their lines; a list of words is one command."""
        for key in _COMMANDS[1:]:
            value = self.root.get(key)
            for each in value.values() if isinstance(value, dict) else [value]:
                if isinstance(each, str):
                    at = self.plain.find(f'"{each}"', self.plain.find(f'"{key}"'))
                    if at < 0:  # written with escapes
                        yield Placed(self.line(key), each, None)
                    else:
                        yield Placed(self.plain.count("\n", 0, at) + 1, each, at + 1)
                elif isinstance(each, list) and all(isinstance(word, str) for word in each):
                    from shlex import join

                    yield Placed(self.line(key), join(each), None)
                elif each is not None:
                    raise self.wrong(key, "a string, a list of words or an object of them")


def _kept(found: re.Match[str]) -> str:
    text = found[0]
    return text if text[0] == '"' else re.sub(r"[^\n]", " ", text)
