"""Check the user's code against one environment: modules that nothing provides, and names and arguments that releases lack."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Container, Iterator, Mapping

from compat.checks.fix_commands import nearest_fixes
from compat.errors import InputError
from compat.interfaces.code.files import read_code
from compat.interfaces.code.needs import Code, CodeFile, CodeNeed, CodeNeeds, follows, named
from compat.interfaces.code.releases import Releases
from compat.interfaces.needs import Need, verdict_on
from compat.interfaces.source.records import AVAILABLE, BRANCH, FUNCTION, GUARDED
from compat.interfaces.table import open_table, tracked
from compat.model import Environment, Finding, Fix, Location, normalized, of_no_index
from compat.records import cached
from compat.versions import is_version, key_of

INHERITED_FROM = frozenset(("transformers", "accelerate", "peft", "torch", "huggingface-hub", "datasets"))
"""Packages whose classes are subclassed by other packages: code may use them without importing them."""
_EXPLAINED = 200
"""Findings of one run that name fixes and evidence, which takes reading other releases; generated code has thousands."""
_kept: dict[tuple[tuple[str, float, int], ...], CodeNeeds] = {}
_releases: list[Releases] = []


def code_needs(paths: tuple[str, ...]) -> CodeNeeds:
    """The needs of the code in some files, cached until a file changes."""
    stamps = []
    for path in paths:
        try:
            found = os.stat(path)
        except OSError:
            stamps.append((path, 0.0, 0))
        else:
            stamps.append((path, found.st_mtime, found.st_size))
    key = tuple(stamps)
    if key not in _kept:
        try:
            code = read_code(paths)
        except InputError as problem:
            code = Code((), (problem,))
        _kept.clear()
        _kept[key] = CodeNeeds(code, tracked())
    return _kept[key]


def releases() -> Releases:
    """The releases in the shipped tables, with their cached answers."""
    if not _releases:
        _releases.append(Releases(open_table, tracked()))
    return _releases[0]


def load_cached_answers(paths: tuple[str, ...], installed: Mapping[str, str]) -> None:
    """Load the cached answers about the releases that the code uses; :func:`judge_code` adds to the cache."""
    used = {*code_needs(paths).packages(), *INHERITED_FROM}
    releases().remember({name: version for name, version in installed.items() if name in used})


def judge_code(paths: tuple[str, ...], installed: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding for each name or argument that the code uses and an installed release does not have."""
    wanted = code_needs(paths)
    known = releases()
    seen: set[str] = set()
    gone: set[str] = set()
    rejected: set[tuple[str, str]] = set()
    for each in wanted.all:
        if follows(each.need, gone):
            continue  # report each missing name once
        for package in wanted.packages_of(each):
            found = None if package not in installed else lacked_by(known, package, installed, each.need)
            if found is None or (each.need.kind == "complete" and not _says_more(known, package, each, rejected)):
                continue
            if _shares_its_module(known, found, installed, each.need):
                continue
            rejected.add((each.place, each.need.target))
            gone.update(filter(None, (named(each.need),)))
            finding = _finding(each, package, found, wanted, installed, known, explained=len(seen) < _EXPLAINED)
            if finding.rule not in seen:
                seen.add(finding.rule)
                yield finding
            break
    known.save()


def _says_more(known: Releases, package: str, each: CodeNeed, rejected: Container[tuple[str, str]]) -> bool:
    """Whether missing arguments are about the release: another one takes the call, and this is all that is wrong with it."""
    table = known.table(package)
    if table is None or (each.place, each.need.target) in rejected:
        return False
    return any(known.answer(package, version, each.need).met for version in table.versions)


def _shares_its_module(known: Releases, package: str, installed: Mapping[str, str], need: Need) -> bool:
    """Whether what is missing may come from another distribution that puts modules into the same namespace package.

    optimum 2 has no ``optimum.onnxruntime`` any more; optimum-onnx has.
    """
    top, _, inside = need.target.partition(".")
    if not inside or not any(name.startswith(f"{normalized(top)}-") for name in installed):
        return False
    world = known.world(package, installed[package])
    return world is not None and world.shares(top)


def lacked_by(known: Releases, package: str, installed: Mapping[str, str], need: Need) -> str | None:
    """The package whose installed release does not meet a need: ``package``, or the one it defers to; ``None`` if met."""
    depth = 0
    while package in installed and depth < 4:
        answer = known.answer(package, installed[package], need)
        if answer.met is False:
            return package
        if answer.lean is None:
            return None
        package, need, depth = answer.lean.package, answer.lean.need, depth + 1
    return None


def _finding(
    each: CodeNeed,
    package: str,
    lacking: str,
    wanted: CodeNeeds,
    installed: Mapping[str, str],
    known: Releases,
    *,
    explained: bool,
) -> Finding:
    about = {name: installed[name].partition(" ")[0] for name in (package, lacking)}
    nowhere = explained and known.nowhere(package, each.need)
    fixes = fixes_of(each, package, lacking, wanted, installed, known, nowhere=nowhere) if explained else ()
    path = each.file.path
    return Finding(
        rule=f"surface-{package}-{_short(each)}",
        origin="surface", severity="error" if each.sure else "warning",
        title=_title(each, package, lacking, installed, nowhere=nowhere), why=_why(each, package, lacking, installed, known),
        packages=about, facts=("workload",), fixes=tuple(fixes),
        evidence=tuple(_evidence(each, package, lacking, installed, known)) if explained else (),
        here=", ".join(f"{name} {version}" for name, version in about.items()),
        location=Location(path, None if each.file.is_notebook else each.line),
    )  # fmt: skip


def _title(each: CodeNeed, package: str, lacking: str, installed: Mapping[str, str], *, nowhere: bool) -> str:
    name = f"{lacking} {installed[lacking]}"
    if nowhere:
        return f"{each.what} is in no known release of {package}"
    if lacking != package and each.need.kind != "override":
        both = f"{package} {installed[package]} nor {name}"
        return f"{each.what} is {'accepted by' if each.need.keywords or each.need.positional else 'in'} neither {both}"
    if each.need.kind == "override":
        return f"{name} calls {each.need.name} in a way that your {each.need.name} does not accept"
    if each.need.kind == "complete":
        return f"{each.need.target}() is called without what {name} requires"
    if each.need.keywords:
        return f"{each.what} is not accepted by {name}"
    if each.need.positional:
        return f"{each.what}: {name} accepts fewer"
    return f"{each.what} is not in {name}"


def _why(each: CodeNeed, package: str, lacking: str, installed: Mapping[str, str], known: Releases) -> str:
    if each.need.kind == "complete":
        world = known.world(package, installed[package])
        missing = "" if world is None else verdict_on(world, each.need).missing
        text = f"{_line(each)} does not pass {missing}, which the installed release requires: this raises TypeError."
        return text if each.sure else f"{text} The line only runs under a condition."
    error = "ImportError" if each.need.kind == "import" else "AttributeError" if each.need.kind == "attribute" else "TypeError"
    if each.need.kind in ("method", "inherited", "offered") and not each.need.keywords and not each.need.positional:
        error = "AttributeError"
    text = f"{_line(each)} uses it, and the installed release does not have it: this raises {error}."
    if lacking != package and not each.need.keywords:
        text = (
            f"{_line(each)} uses it, and {package} {installed[package]} imports it from {lacking}, which does not have it: "
            f"this raises {error}."
        )
    return text if each.sure else f"{text} The line only runs under a condition."


def _line(each: CodeNeed) -> str:
    """The location without the file name, which is shown separately."""
    return f"Line {each.line}" if not each.file.is_notebook else each.place.removeprefix(each.file.path).strip().capitalize()


def _short(each: CodeNeed) -> str:
    kind, target, name, bases, _, keywords, _ = each.need
    last = (bases[0] if bases else target).rpartition(".")[2]
    if kind == "complete":
        return f"{last}-required"
    parts = [last]
    if name and kind != "import" and name != "__init__":
        parts.append(name)
    elif name and kind == "import":
        parts = [name]
    return "-".join((*parts, *keywords))


def fixes_of(
    each: CodeNeed,
    package: str,
    lacking: str,
    wanted: CodeNeeds,
    installed: Mapping[str, str],
    known: Releases,
    *,
    nowhere: bool,
    what: str = "has everything your code uses",
) -> Iterator[Fix]:
    """Yield fixes for a need that ``lacking`` does not meet; ``what`` describes a release that meets all needs."""
    from compat.interfaces.code.renamed import nearest

    if nowhere:
        near = nearest(known, package, each.need)
        if near:
            yield Fix("config", None, None, f"did you mean {near}?")
        return
    for moved in dict.fromkeys((lacking, package)):  # an earlier release may have defined it itself
        found = tuple(_by_moving(moved, each, package, wanted, installed, known, what))
        if found:
            yield from found
            return


def _by_moving(
    moved: str, each: CodeNeed, package: str, wanted: CodeNeeds, installed: Mapping[str, str], known: Releases, what: str
) -> Iterator[Fix]:
    """Yield the nearest releases that have it, and its name in the installed release if it was renamed."""
    from compat.interfaces.code.renamed import advice_on, in_other_release

    if not is_version(installed[moved]):
        return  # read from a source tree: it has no next release
    table = known.table(moved)
    versions = () if table is None else table.versions
    everything, now = _asked_once(moved, package, wanted, installed, known)

    def has_this(version: str) -> bool:
        return _met(known, each, wanted, {**installed, moved: version}) and now(version)

    here = moved, installed[moved], versions, versions
    fixes = tuple(nearest_fixes(*here, what, check=everything)) or tuple(
        nearest_fixes(*here, "has this, but not everything your code uses: see compat script", check=has_this)
    )
    nearby = next((fix.spec.lstrip("=>") for fix in fixes if fix.spec), None)
    lean = known.answer(package, installed[package], each.need).lean
    need = each.need if lean is None or moved == package else lean.need
    found = None if nearby is None else in_other_release(known, moved, need, nearby, installed[moved])
    advice = None
    if found is not None and found.stated:
        yield Fix("config", None, None, _instead(found.name, need))
    elif nearby is not None and key_of(nearby) < key_of(installed[moved]):
        advice = advice_on(known, moved, need, nearby)
    if advice is not None:
        yield Fix("config", None, None, advice.quoted(moved))
    yield from fixes


_asked: list[tuple[tuple[object, ...], dict[tuple[str, str], tuple[Callable[[str], bool], Callable[[str], bool]]]]] = []
"""The checks of the last environment and code; the findings of one run share them."""


def _asked_once(
    moved: str, package: str, wanted: CodeNeeds, installed: Mapping[str, str], known: Releases
) -> tuple[Callable[[str], bool], Callable[[str], bool]]:
    """Return whether a release of ``moved`` meets all needs of the code, and whether it meets those that are met now.

    Each release is asked once: generated code lacks hundreds of names, and each of them looks for a release.
    """
    here = wanted, dict(installed), known
    if not _asked or _asked[0][0][0] is not wanted or _asked[0][0] != here:
        _asked[:] = [(here, {})]
    checks = _asked[0][1]
    if (moved, package) not in checks:
        about = [
            one
            for one in wanted.all
            if {moved, package} & set(wanted.packages_of(one)) and _says(known, one, wanted, installed)
        ]

        def has(which: list[CodeNeed]) -> Callable[[str], bool]:
            answers: dict[str, bool] = {}

            def check(version: str) -> bool:
                if version not in answers:
                    answers[version] = all(_met(known, one, wanted, {**installed, moved: version}) for one in which)
                return answers[version]

            return check

        checks[moved, package] = has(about), has([one for one in about if _met(known, one, wanted, installed)])
    return checks[moved, package]


def _instead(new: str, need: Need) -> str:
    """What to write instead of what a release does not have: "use eval_strategy= instead of evaluation_strategy="."""
    if need.keywords:
        return f"use {new}= instead of {need.keywords[0]}="
    return f"use {new} instead of {need.target}{f'.{need.name}' if need.kind == 'import' and need.name else ''}"


def _met(known: Releases, each: CodeNeed, wanted: CodeNeeds, installed: Mapping[str, str]) -> bool:
    return all(lacked_by(known, name, installed, each.need) is None for name in wanted.packages_of(each))


def _says(known: Releases, each: CodeNeed, wanted: CodeNeeds, installed: Mapping[str, str]) -> bool:
    """Whether a need distinguishes releases: one that no known release meets does not."""
    return all(
        name not in installed or lacked_by(known, name, installed, each.need) is None or not known.nowhere(name, each.need)
        for name in wanted.packages_of(each)
    )


def _evidence(each: CodeNeed, package: str, lacking: str, installed: Mapping[str, str], known: Releases) -> Iterator[str]:
    need = each.need
    world = known.world(package, installed[package])
    found = None if world is None else world.find(need.bases[0] if need.bases else need.target)
    if found is not None and found.module:
        yield f"{package} {installed[package]} {found.module.replace('.', '/')}.py"


# --- Modules that the user's code imports and no installed distribution provides.


PROVIDERS = {
    "accelerate": ("accelerate",), "apex": ("apex",), "auto_gptq": ("auto-gptq",), "awq": ("autoawq",),
    "bitsandbytes": ("bitsandbytes",), "bs4": ("beautifulsoup4",), "Crypto": ("pycryptodome",),
    "cutlass": ("nvidia-cutlass-dsl",),
    "cv2": ("opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless"),
    "dateutil": ("python-dateutil",), "deepspeed": ("deepspeed",), "docx": ("python-docx",), "dotenv": ("python-dotenv",),
    "einops": ("einops",),
    "evaluate": ("evaluate",), "faiss": ("faiss-cpu", "faiss-gpu", "faiss-gpu-cu12"), "fire": ("fire",),
    "fitz": ("pymupdf",), "flash_attn": ("flash-attn",), "flashinfer": ("flashinfer-python",), "gptqmodel": ("gptqmodel",),
    "hydra": ("hydra-core",), "jinja2": ("jinja2",), "jsonlines": ("jsonlines",), "jwt": ("pyjwt",),
    "langchain": ("langchain",),
    "liger_kernel": ("liger-kernel", "liger-kernel-nightly"), "lightning": ("lightning",),
    "llguidance": ("llguidance",), "lmformatenforcer": ("lm-format-enforcer",), "matplotlib": ("matplotlib",),
    "mlflow": ("mlflow",), "mpi4py": ("mpi4py",), "nltk": ("nltk",), "numpy": ("numpy",), "omegaconf": ("omegaconf",),
    "onnxruntime": ("onnxruntime", "onnxruntime-gpu"), "openai": ("openai",), "pandas": ("pandas",),
    "PIL": ("pillow", "pillow-simd"), "pkg_resources": ("setuptools",), "psutil": ("psutil",), "pyarrow": ("pyarrow",),
    "pydantic": ("pydantic",),
    "pynvml": ("nvidia-ml-py", "pynvml"),
    "pytest": ("pytest",), "pytorch_lightning": ("pytorch-lightning",), "ray": ("ray",), "regex": ("regex",),
    "quark": ("amd-quark",), "requests": ("requests",), "rouge_score": ("rouge-score",), "sacrebleu": ("sacrebleu",),
    "scipy": ("scipy",),
    "seaborn": ("seaborn",), "sentencepiece": ("sentencepiece",), "sgl_kernel": ("sgl-kernel",), "sglang": ("sglang",),
    "skimage": ("scikit-image",),
    "sklearn": ("scikit-learn",), "tensorboard": ("tensorboard",), "tensorboardX": ("tensorboardx",),
    "tiktoken": ("tiktoken",), "tqdm": ("tqdm",), "tyro": ("tyro",), "wandb": ("wandb",), "yaml": ("pyyaml",),
    "zmq": ("pyzmq",),
    "absl": ("absl-py",), "aiohttp": ("aiohttp",), "attr": ("attrs",), "click": ("click",), "cpuinfo": ("py-cpuinfo",),
    "dill": ("dill",), "fastapi": ("fastapi",), "filelock": ("filelock",), "hjson": ("hjson",), "httpx": ("httpx",),
    "msgpack": ("msgpack",), "msgspec": ("msgspec",), "multiprocess": ("multiprocess",), "networkx": ("networkx",),
    "ninja": ("ninja",), "packaging": ("packaging",), "rich": ("rich",), "six": ("six",), "sympy": ("sympy",),
    "tabulate": ("tabulate",), "termcolor": ("termcolor",), "typer": ("typer",), "typing_extensions": ("typing-extensions",),
    "uvicorn": ("uvicorn",), "xxhash": ("xxhash",),
}  # fmt: skip
"""Commonly imported modules and the distributions that provide them; the first one is suggested."""
_GUIDE = "https://packaging.python.org/en/latest/discussions/distribution-package-vs-import-package/"


def judge_imports(environment: Environment) -> Iterator[Finding]:
    """Yield an error for each missing module that is imported unconditionally; nothing if the package list is incomplete."""
    code = environment.workload.code if environment.workload is not None else None
    if not code or not environment.distributions_complete:
        return
    wanted = code_needs(code)
    own = wanted.code.tops | wanted.code.shadowed | sys.stdlib_module_names | {"__main__"}
    seen: set[str] = set()
    for file in wanted.code.files:
        for each in file.module.imports:
            top = each.module.partition(".")[0]
            optional = each.flags & (GUARDED | AVAILABLE | BRANCH | FUNCTION)
            if top and not optional and top not in own and top not in seen:
                seen.add(top)
                if _is_missing(top, environment):
                    yield _missing_module(top, file, each.line, environment)


def _is_missing(top: str, environment: Environment) -> bool:
    """Whether nothing provides a module: no matching distribution, and no file on the import path."""
    known = providers(top)
    listed = [copy for copy in environment.distributions or () if copy.name in (*known, normalized(top))]
    if environment.folders is None:
        return bool(known) and not listed
    if any(of_no_index(copy) or (copy.name == tracked().get(top) and _has_table(copy.name, copy.version)) for copy in listed):
        return False  # an editable installation may provide it from anywhere; the tables say more of these releases
    return not any(_lies_in(folder, top) for folder in environment.folders)


def _has_table(name: str, version: str | None) -> bool:
    return version is None or releases().world(name, version) is not None


def providers(top: str) -> tuple[str, ...]:
    """The distributions that are known to provide a top-level module."""
    return PROVIDERS.get(top) or ((tracked()[top],) if top in tracked() else ())


def _lies_in(folder: str, top: str) -> bool:
    """Whether a folder on the import path contains a module; an editable install lists its modules in a separate file."""
    for name in _listed(folder):
        if name.partition(".")[0] == top:
            return True
        if name.startswith("__editable__") and name.endswith(".py"):
            try:
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                    if f"'{top}'" in file.read(1 << 16):
                        return True
            except OSError:
                continue
    return False


@cached
def _listed(folder: str) -> tuple[str, ...]:
    try:
        return tuple(os.listdir(folder))
    except OSError:
        return ()


def _missing_module(top: str, file: CodeFile, line: int, environment: Environment) -> Finding:
    known = providers(top)
    versions = {copy.name: copy.version for copy in environment.distributions or ()}
    here = next((name for name in (*known, normalized(top)) if name in versions), None)
    name = here or (known[0] if known else normalized(top))
    command = f"pip install {name}" if known else None
    text = f"{name} provides {top}" if known else f"install the package that provides {top}"
    if here is not None:
        text, command = f"{here} {versions[here]} was installed without it: another release", f"pip install -U {here}"
    return Finding(
        rule=f"missing-{name}", origin="surface",
        title=f"{os.path.basename(file.path)} imports {top}, which no installed package provides",
        why=f"The import is unconditional, so the script fails with ModuleNotFoundError: No module named '{top}'.",
        packages={name: versions.get(name)} if known or here else {}, facts=("workload",),
        fixes=(Fix("pin", name if known or here else None, None, text, command),), evidence=(_GUIDE,), here=file.place(line),
        location=Location(file.path, None if file.is_notebook else line),
    )  # fmt: skip
