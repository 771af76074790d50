"""What Python code installs remotely: Modal images and Ray's ``runtime_env``, read from the syntax tree.

``Image.debian_slim().pip_install("torch==2.6.0")`` is one image, also if its name is used to extend it; a ``runtime_env`` is
the dictionary of that name. Strings built at run time are unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from compat.formats.edit.files import Mapped
from compat.formats.installs.command import install_of
from compat.formats.installs.edit import InstallScript
from compat.formats.installs.values import Values
from compat.formats.jobs import Job, Placed, Script, count_of, devices, known_version
from compat.formats.listing import Listing
from compat.model import Accelerator, Environment
from compat.records import record
from compat.syntax.python import Positions, parsed
from compat.syntax.shell import Word

_STARTS = ("debian_slim", "from_registry", "micromamba", "from_dockerfile", "from_aws_ecr", "from_gcp_artifact_registry")
_INSTALLERS = {"pip_install": ("pip",), "uv_pip_install": ("uv", "pip"), "micromamba_install": ("micromamba",)}
_FILES = {"pip_install_from_requirements": "-r", "pip_install_from_pyproject": "-r"}
_OPTIONS = {"index_url": "--index-url", "extra_index_url": "--extra-index-url", "find_links": "--find-links"}
_UNREAD = ("poetry_install_from_file", "uv_sync", "pip_install_private_repos", "dockerfile_commands", "run_function")
_MOST = 200
"""Calls of one chain, and images of one file."""


@record(frozen=True)
class Requirement:
    """A requirement that is installed, and its node if it is a constant."""

    text: str
    node: ast.expr


class _Image:
    """An image or a ``runtime_env``: the calls that build it, in order."""

    def __init__(self, label: str, line: int) -> None:
        self.label = label
        self.line = line
        self.start: ast.Call | None = None
        self.calls: list[tuple[str, ast.Call]] = []
        self.lists: list[ast.expr] = []
        """Requirement lists of a ``runtime_env``."""
        self.variables: dict[str, str] = {}
        self.gpus: set[str] = set()


def mentions_images(text: str) -> bool:
    """Whether a text may contain images or a ``runtime_env``."""
    return ".pip_install" in text or ".uv_pip_install" in text or "runtime_env" in text or "RuntimeEnv" in text


class PythonImages:
    """The images of a script; :class:`InputError` if it is not valid Python."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        # a form feed does not indent, and keeps the offsets of a text with a byte order mark
        self.text = f"\f{text[1:]}" if text.startswith("\ufeff") else text
        self.values = Values()
        self.images: list[_Image] = []
        self._named: dict[str, _Image] = {}
        self._inner: set[ast.Call] = set()
        tree = parsed(self.text, path)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self.values.assign(target, node.value)
                    if isinstance(target, ast.Name):
                        if isinstance(node.value, ast.Call):
                            self._chain(node.value, target.id)
                        if "runtime_env" in target.id.lower():
                            self._runtime(node.value)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                self._chain(node, None)
                self._keywords(node)
            elif isinstance(node, ast.Dict) and (value := _entries(node).get("runtime_env")) is not None:
                self._runtime(value)

    def _chain(self, node: ast.Call, name: str | None) -> None:
        """Read ``modal.Image.debian_slim().pip_install(…)`` from its outermost call, under the name it is assigned to."""
        if node in self._inner:
            return
        calls: list[tuple[str, ast.Call]] = []
        at: ast.expr = node
        while isinstance(at, ast.Call) and isinstance(at.func, ast.Attribute) and len(calls) < _MOST:
            calls.append((at.func.attr, at))
            at = at.func.value
        calls.reverse()
        known = self._named.get(at.id) if isinstance(at, ast.Name) else None
        last = at.attr if isinstance(at, ast.Attribute) else at.id if isinstance(at, ast.Name) else ""
        if not calls or len(self.images) >= _MOST or (known is None and (last != "Image" or calls[0][0] not in _STARTS)):
            return
        self._inner.update(call for _, call in calls)
        image = _Image(name or (known.label if known is not None else f"line {node.lineno}"), node.lineno)
        if known is not None:
            image.start, image.calls = known.start, [*known.calls, *calls][:_MOST]
            if name == known.label:
                self.images.remove(known)
        else:
            image.start, image.calls = calls[0][1], calls[1:]
        self.images.append(image)
        if name is not None:
            self._named[name] = image

    def _keywords(self, node: ast.Call) -> None:
        given = {each.arg: each.value for each in node.keywords if each.arg}
        if "runtime_env" in given:
            self._runtime(given["runtime_env"])
        function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if function == "RuntimeEnv":
            self._runtime(ast.copy_location(ast.Dict([ast.Constant(key) for key in given], list(given.values())), node))
        gpu = self._gpu(given.get("gpu"))
        if gpu is not None:
            used = given.get("image")
            for image in self.images:
                if (isinstance(used, ast.Name) and used.id == image.label) or (used is None and len(self.images) == 1):
                    image.gpus.add(gpu)

    def _gpu(self, node: ast.expr | None) -> str | None:
        """Return ``A100-80GB:2`` of a text, one built from names, or ``modal.gpu.A100(size="80GB", count=2)``."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if getattr(node.func.value, "attr", getattr(node.func.value, "id", None)) != "gpu":
                return None
            given = {each.arg: self.values.text(each.value) for each in node.keywords}
            name = f"{node.func.attr}-{given['size']}" if "size" in given else node.func.attr
            text = f"{name}:{given.get('count', '1')}"
        elif isinstance(node, (ast.Name, ast.JoinedStr, ast.BinOp)) or (isinstance(node, ast.Constant) and node.value):
            text = self.values.text(node)
        else:
            return None
        return None if "$" in text else text

    def _runtime(self, value: ast.expr) -> None:
        found = _entries(value)
        image = _Image(f"runtime_env on line {value.lineno}", value.lineno)
        for key in ("pip", "uv"):
            listed = found.get(key)
            if isinstance(listed, ast.Dict):
                listed = _entries(listed).get("packages")
            if listed is not None and all(each is not listed for other in self.images for each in other.lists):
                image.lists.append(listed)
        image.variables.update(_texts(found.get("env_vars")))
        if image.lists and len(self.images) < _MOST:
            self.images.append(image)

    def requirements(self, nodes: Sequence[ast.expr]) -> Iterator[Requirement]:
        """Yield the strings in arguments, with lists flattened."""
        for node in nodes:
            if isinstance(node, (ast.List, ast.Tuple)):
                yield from self.requirements(node.elts)
            elif isinstance(node, ast.Starred):
                yield Requirement("${...}", node)
            else:
                yield Requirement(self.values.text(node), node)

    def listings(self) -> tuple[Listing, ...]:
        """Return what each image installs."""
        return tuple(map(self._listing, self.images))

    def _listing(self, image: _Image) -> Listing:
        given = {} if image.start is None else {each.arg: each.value for each in image.start.keywords}
        start = image.start.func.attr if image.start is not None and isinstance(image.start.func, ast.Attribute) else ""
        base = self.values.text(image.start.args[0]) if image.start and image.start.args and start != "debian_slim" else None
        job = Job(self.path, image=base if start.startswith("from_") and start != "from_dockerfile" else None, line=image.line)
        python = given.get("python_version") or given.get("add_python")
        version = self.values.text(python) if python is not None else None
        if start == "from_dockerfile":
            job.files.note(f"{self.path}:{image.line}", f"is built from {base}: check that file as well")
        variables = dict(image.variables)
        for name, call in image.calls:
            self._call(job, name, call, variables)
        for listed in image.lists:
            if isinstance(listed, ast.Constant) and isinstance(listed.value, str):
                job.requirements(listed.value, listed.lineno)
            for each in self.requirements([listed]) if isinstance(listed, (ast.List, ast.Tuple)) else ():
                job.install(each.text, each.node.lineno)
        context = Environment(os="linux", accelerators=self._devices(image), python=known_version(version))
        return job.listing("script", label=image.label, context=context, variables=variables)

    def _call(self, job: Job, name: str, call: ast.Call, variables: dict[str, str]) -> None:
        where = f"{self.path}:{call.lineno}"
        if name in _INSTALLERS:
            for line, words in self._commands(name, call):
                install = install_of(words, {})
                if install is not None:
                    job.step(install, line)
        elif name in _FILES and call.args:
            job.requirements(self.values.text(call.args[0]), call.lineno)
        elif name == "run_commands":
            texts = list(self.requirements(call.args))
            job.run(Script(tuple(Placed(each.node.lineno, each.text, None) for each in texts)))
        elif name == "env" and call.args:
            variables.update(_texts(call.args[0]))
        elif name in _UNREAD:
            job.files.note(where, f"what {name} installs was not read")

    def _commands(self, name: str, call: ast.Call) -> Iterator[tuple[int, list[str]]]:
        """Yield an install command for each requirement of a call, so that each has its own line."""
        options: list[str] = []
        for each in call.keywords:
            if each.arg in _OPTIONS:
                options += [_OPTIONS[each.arg], self.values.text(each.value)]
            elif each.arg == "extra_options":
                options += self.values.text(each.value).split()
        for found in self.requirements(call.args):
            yield found.node.lineno, [*_INSTALLERS[name], "install", *options, found.text]

    def _devices(self, image: _Image) -> tuple[Accelerator, ...] | None:
        """Return the GPUs (``gpu="A100-80GB:2"``) of the functions that run in an image, if they agree."""
        if len(image.gpus) != 1:
            return None
        name, _, count = next(iter(image.gpus)).partition(":")
        return None if name.lower() == "any" else devices(name.rstrip("!"), count_of(count or "1"))

    def edited(self, script: InstallScript) -> None:
        """Pass the installed constants to the editor of install commands."""
        mapped = Mapped(self.text, range(len(self.text)))
        positions = Positions(self.text)
        for image in self.images:
            nodes = [(_INSTALLERS[name], call.args) for name, call in image.calls if name in _INSTALLERS]
            for program, args in (*nodes, *((("pip",), [listed]) for listed in image.lists)):
                words = [Word(each, 0, 0) for each in (*program, "install")]
                for each in self.requirements(args):
                    span = positions.quoted(each.node)
                    if span is not None and isinstance(each.node, ast.Constant) and each.node.value == each.text:
                        words.append(Word(each.text, *span))
                script.read_words(mapped, words, json=True)


def _entries(node: ast.expr | None) -> dict[object, ast.expr]:
    """Return the values of a dictionary whose keys are constants, by key."""
    pairs = zip(node.keys, node.values) if isinstance(node, ast.Dict) else ()
    return {key.value: value for key, value in pairs if isinstance(key, ast.Constant)}


def _texts(node: ast.expr | None) -> dict[str, str]:
    """Return the strings of a dictionary, by key."""
    found = ((key, each.value) for key, each in _entries(node).items() if isinstance(each, ast.Constant))
    return {str(key): text for key, text in found if isinstance(text, str)}
