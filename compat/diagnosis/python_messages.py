"""Python's own messages about missing names, modules and attributes, and about rejected calls; names that Python removed.

Where a message does not say which call rejected an argument (``unexpected keyword argument 'tokenizer'`` in a title,
``__init__() got …`` before Python 3.10), the code in the report shows it.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from compat.diagnosis.frame_packages import version_of
from compat.model import Finding, Fix
from compat.records import record, replace
from compat.reports.log.frames import RaisedError
from compat.versions import is_version, key_of

if TYPE_CHECKING:
    from compat.rules.facts import Facts


NAME, MODULE, ATTRIBUTE, MEMBER, KEYWORD, CALL, GLOBAL = "name", "module", "attribute", "member", "keyword", "call", "global"


@record(frozen=True)
class Lack:
    """What an error reports as missing: ``name`` of ``owner``, which is a module, class or function as spelled in the message.

    ``kind``: NAME and ATTRIBUTE of a module, MODULE (its name is ``owner``), MEMBER of a class's instances, KEYWORD of a
    function, CALL that a function rejects (``name`` is the argument, if the message names one), or GLOBAL name. ``given``: the
    number of positional arguments, if they are too many. ``required``: the arguments that were not passed.
    """

    kind: str
    owner: str
    name: str
    given: int = 0
    required: tuple[str, ...] = ()

    @property
    def what(self) -> str:
        """The missing name in full: ``transformers.Cache``, ``Trainer.__init__(processing_class=)``, ``forward()``."""
        if self.required:
            return f"{self.owner}() without {' and '.join(filter(None, (', '.join(self.required[:-1]), self.required[-1])))}"
        if self.kind in (KEYWORD, CALL):
            return f"{self.owner}({self.name}{'=' if self.kind == KEYWORD else ''})"
        return ".".join(filter(None, (self.owner, self.name)))


UNKNOWN_LOCATION = " (unknown location)"
"""What Python adds if a module that lacks a name has no file."""
_Q = r"['\"`‘’]?"
_F = r"(?<![\w.])(?P<owner>[\w.]*\w)(?:\.<locals>\.[\w.]+)?\(\)"
_MESSAGES = (
    (NAME, "cannot import name",
        rf"cannot import name {_Q}(?P<name>\w+){_Q} from {_Q}(?P<owner>[\w.]+)(?![\w.]|:?[\\/])(?!.*\(unknown location\))"),
    # transformers, of a class that a model's files name
    (NAME, "neither in <module", r"Could not find (?P<name>\w+) neither in <module '(?P<owner>\w+)[\w.]*'"),
    (MODULE, "No module named", rf"No module named {_Q}(?P<owner>\w+(?:\.\w+)*)"),
    # transformers' lazy modules write it without quotes
    (ATTRIBUTE, "has no attribute", rf"\b[Mm]odule {_Q}(?P<owner>\w[\w.]*){_Q} has no attribute {_Q}(?P<name>\w+)"),
    (ATTRIBUTE, "was removed in the NumPy", r"`(?P<owner>np)\.(?P<name>\w+)` was removed in the NumPy"),
    (MEMBER, "has no attribute", r"['\"](?P<owner>\w+)['\"](?: object)? has no attribute ['\"](?P<name>\w+)['\"]"),
    # transformers' tokenizers also omit the word "object", and those who quote them add the quotes to the name alone
    (MEMBER, "has no attribute",
        rf"(?:^|: )(?P<owner>[A-Z]\w{{0,60}}[a-z]\w{{0,60}}) has no attribute {_Q}(?P<name>\w+){_Q}(?=\n|$|\. Did you mean)"),
    (KEYWORD, "unexpected keyword argument", rf"{_F} got an unexpected keyword argument ['\"](?P<name>\w+)"),
    (CALL, "positional argument",
        rf"{_F} takes [^\n]{{0,60}}?positional arguments? but (?P<given>\d{{1,3}}) [^\n]{{0,90}}?(?:was|were) given"),
    (CALL, "missing ",
        rf"{_F} missing \d+ required (?:positional|keyword-only) arguments?: (?P<required>['\"](?P<name>\w+)['\"\w, ]*)"),
    (CALL, "multiple values", rf"{_F} got multiple values for (?:keyword )?argument ['\"](?P<name>\w+)"),
    (CALL, "positional-only", rf"{_F} got some positional-only arguments passed as keyword arguments: ['\"](?P<name>\w+)"),
    (GLOBAL, "is not defined", r"\bname ['\"](?P<name>\w+)['\"] is not defined"),
)  # fmt: skip
_WRAPPED = 400
"""Characters at the start of a message in which line breaks may be the terminal's."""
_COMPILED = tuple((kind, hint, re.compile(pattern)) for kind, hint, pattern in _MESSAGES)


def lack_in(message: str) -> Lack | None:
    """Return what an error message reports as missing; ``None`` for any other message and for circular imports."""
    if "partially initialized module" in message:
        return None
    for text in dict.fromkeys((message, " ".join(message[:_WRAPPED].split()))):  # a terminal or a writer may wrap the line
        for kind, hint, pattern in _COMPILED:
            match = pattern.search(text) if hint in text else None
            if match is not None:
                groups = match.groupdict()
                required = tuple(re.findall(r"['\"](\w+)", groups.get("required") or ""))
                given = int(groups.get("given") or 0)
                return Lack(kind, groups.get("owner") or "", groups.get("name") or "", given, required)
    return None


# --- Names that releases of Python and NumPy added or removed. Only those that machine-learning packages used are listed.


REMOVED = {
    "3.8": "time.clock platform.dist platform.linux_distribution cgi.escape",
    "3.9": "fractions.gcd base64.encodestring base64.decodestring",
    "3.10": "formatter parser symbol collections.Mapping collections.MutableMapping collections.Sequence collections.Iterable "
    "collections.MutableSequence collections.Callable collections.Hashable collections.Sized collections.Container "
    "collections.Set collections.MutableSet collections.Iterator collections.Generator collections.Awaitable",
    "3.11": "binhex inspect.getargspec inspect.formatargspec asyncio.coroutine",
    "3.12": "distutils imp asyncore asynchat smtpd pkgutil.ImpImporter pkgutil.ImpLoader locale.format ssl.wrap_socket "
    "ssl.match_hostname configparser.SafeConfigParser",
    "3.13": "aifc audioop cgi cgitb chunk crypt imghdr mailcap msilib nis nntplib ossaudiodev pipes sndhdr spwd sunau "
    "telnetlib uu xdrlib lib2to3 typing.io typing.re unittest.makeSuite unittest.findTestCases",
    "3.14": "ast.Num ast.Str ast.Bytes ast.NameConstant ast.Ellipsis pkgutil.find_loader pkgutil.get_loader",
}
ADDED = {
    "3.8": "importlib.metadata typing.Literal typing.Protocol typing.Final typing.TypedDict typing.get_origin typing.get_args "
    "functools.cached_property math.prod math.comb math.isqrt shlex.join",
    "3.9": "zoneinfo graphlib typing.Annotated functools.cache math.lcm importlib.resources.files ast.unparse random.randbytes "
    "argparse.BooleanOptionalAction",
    "3.10": "typing.ParamSpec typing.TypeAlias typing.Concatenate typing.TypeGuard typing.is_typeddict types.NoneType "
    "types.UnionType types.EllipsisType dataclasses.KW_ONLY inspect.get_annotations itertools.pairwise contextlib.aclosing "
    "sys.stdlib_module_names",
    "3.11": "tomllib enum.StrEnum enum.verify enum.EnumType enum.ReprEnum typing.Self typing.LiteralString typing.Never "
    "typing.assert_never typing.assert_type typing.reveal_type typing.Required typing.NotRequired typing.Unpack "
    "typing.TypeVarTuple typing.dataclass_transform datetime.UTC contextlib.chdir asyncio.TaskGroup asyncio.timeout "
    "asyncio.Runner hashlib.file_digest wsgiref.types",
    "3.12": "typing.override typing.TypeAliasType itertools.batched calendar.Month collections.abc.Buffer sys.monitoring",
    "3.13": "typing.TypeIs typing.ReadOnly typing.NoDefault copy.replace warnings.deprecated queue.ShutDown",
}
_OF_NUMPY = {
    "1.24": "float int bool object str long unicode complex",
    "2.0": "product cumproduct alltrue sometrue msort compat find_common_type float_ complex_ unicode_ string_ Inf NaN "
    "NINF PINF asfarray mat round_ cast source lookfor who sctypes",
}
_WHATS_NEW = "https://docs.python.org/3/whatsnew/"
_MIGRATION = "https://numpy.org/doc/stable/numpy_2_0_migration_guide.html"


def by_name(table: dict[str, str]) -> dict[str, str]:
    return {name: version for version, names in table.items() for name in names.split()}


def is_of_release(lack: Lack) -> bool:
    """Whether the missing name is in the standard library, or is one that NumPy removed."""
    if lack.owner in ("numpy", "np"):
        return lack.name in by_name(_OF_NUMPY)
    return lack.kind in (NAME, MODULE, ATTRIBUTE) and lack.owner.partition(".")[0] in sys.stdlib_module_names


def of_release(lack: Lack, asking: str | None, where: str, facts: Facts) -> Finding | None:
    """Return the finding for a missing name that another release of Python or NumPy defines; otherwise ``None``."""
    if lack.kind not in (NAME, MODULE, ATTRIBUTE):
        return None
    if lack.owner in ("numpy", "np") and lack.kind != MODULE:
        return _numpy(lack.name, asking, where, facts)
    removed, added = by_name(REMOVED).get(lack.what), by_name(ADDED).get(lack.what)
    if removed is None and added is None:
        return None
    python = facts.value("python")
    release = removed or added or ""
    if isinstance(python, str) and is_version(python) and (key_of(python) >= key_of(release)) != bool(removed):
        return None  # another interpreter was running
    who = asking or "A package"
    spec = f"<{release}" if removed else f">={release}"
    text = f"use Python {spec}" + (", or setuptools, which includes its own copy" if lack.what == "distutils" else "")
    fixes = [Fix("config", text=text, command=f"uv venv --python '{spec}'")]
    if lack.what == "distutils":
        fixes.append(Fix("pin", "setuptools", None, "includes distutils", "pip install setuptools"))
    if asking is not None:
        newer = Fix("upgrade", asking, None, f"a release of {asking} that supports this Python", f"pip install -U {asking}")
        fixes.insert(0 if removed else 1, newer)
    return Finding(
        rule="symptom-python-release", origin="surface", verdict="hit" if isinstance(python, str) else "possible",
        severity="error", effect="crash", confidence="confirmed",
        title=f"{who} uses {lack.what} of the standard library, which "
        + (f"Python {release} removed" if removed else f"has it since Python {release}"),
        why=f"{who} was written for a different Python than the running "
        f"one{f' ({python})' if isinstance(python, str) else ''}.",
        packages={asking: version_of(asking, facts)} if asking else {}, facts=("python",), fixes=tuple(fixes),
        evidence=(f"{_WHATS_NEW}{release}.html",), here=where,
    )  # fmt: skip


def _numpy(name: str, asking: str | None, where: str, facts: Facts) -> Finding | None:
    release = by_name(_OF_NUMPY).get(name)
    version = version_of("numpy", facts)
    if release is None or (version is not None and is_version(version) and key_of(version) < key_of(release)):
        return None
    who = asking or "A package"
    older = Fix("downgrade", "numpy", f"<{release}", f"still has numpy.{name}", f'pip install "numpy<{release}"')
    newer = Fix("upgrade", asking, None, "a release that supports this NumPy", f"pip install -U {asking}")
    return Finding(
        rule="symptom-numpy-name", origin="surface", verdict="hit" if version is not None else "possible", severity="error",
        effect="crash", confidence="confirmed", title=f"{who} uses numpy.{name}, which NumPy {release} removed",
        why=f"{who} was written for an older NumPy.",
        packages={**({asking: version_of(asking, facts)} if asking else {}), "numpy": version},
        fixes=(newer, older) if asking else (older,), evidence=(_MIGRATION,), here=where,
    )  # fmt: skip


_REFUSED_ARGUMENT = re.compile(r"unexpected (?:keyword )?argument:? [`'\"]*(?P<name>[a-z_]\w{1,60})\b")
_SAYS_WHOSE = re.compile(r"(?<![\w.>])(?!__init__\(\))[\w.>]+\(\) got an unexpected ")
_CALL = re.compile(r"(?<![\w.])(?P<class>[A-Z]\w{2,60})\(")
_LONGEST_CALL = 4000
"""Characters of a call that are read."""


def with_call(error: RaisedError, text: str) -> RaisedError:
    """Return the error with the class that is called with the rejected argument, if exactly one is in the text."""
    first = error.message.partition("\n")[0]
    match = _REFUSED_ARGUMENT.search(first) if error.exception in (None, "TypeError") else None
    if match is None or _SAYS_WHOSE.search(first) is not None or (error.frames and error.frames[-1].code):
        return error
    called = {call["class"] for call in _CALL.finditer(text) if _passes(text, call.end(), match["name"])}
    if len(called) != 1:
        return error
    message = f"{called.pop()}.__init__() got an unexpected keyword argument '{match['name']}'"
    return replace(error, exception="TypeError", message=message)


def _passes(text: str, start: int, name: str) -> bool:
    """Whether the call whose arguments begin at ``start`` passes a keyword itself, not to a call inside it."""
    depth, own = 0, []
    for character in text[start : start + _LONGEST_CALL]:
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            break
        own.append(character if depth == 0 else " ")
    return re.search(rf"(?:^|[,\s]){name}\s*=(?!=)", "".join(own)) is not None
