"""What releases of Python and NumPy added and removed, and what Python only has on some systems: names, and features of the
language.

Only what machine-learning packages used is listed.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from compat.checks.fix_commands import by_pip
from compat.diagnosis.frame_packages import MODELS_OWN, distribution_of_module, is_before, location_text, package_of, version_of
from compat.diagnosis.python_messages import ATTRIBUTE, MODULE, NAME, Lack
from compat.model import Finding, Fix
from compat.records import replace
from compat.versions import is_version, key_of

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError
    from compat.rules.facts import Facts

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
_BACKPORTS = {
    "audioop": "audioop-lts", "cgi": "legacy-cgi", "asyncore": "pyasyncore", "asynchat": "pyasynchat", "imp": "zombie-imp",
    "distutils": "setuptools",
    **{name: f"standard-{name}" for name in (
        "aifc", "cgitb", "chunk", "crypt", "imghdr", "mailcap", "nntplib", "pipes", "smtpd", "sndhdr", "sunau", "telnetlib",
        "uu", "xdrlib",
    )},
}  # fmt: skip
"""Modules that Python removed, by the distributions that have them for later releases."""
_FALLBACKS = {"pyaudioop": ("audioop", "pydub")}
"""Modules that packages try where a removed one is missing, so that only their names are in the message: what is meant, and who
tries them."""
_ONLY_ON = {
    "Unix": "fcntl grp pwd resource termios tty pty syslog posix signal.SIGKILL signal.SIGUSR1 signal.SIGUSR2 signal.SIGALRM "
    "signal.SIGHUP signal.SIGQUIT signal.SIGCHLD signal.SIGSTOP signal.SIGCONT signal.alarm signal.pause signal.setitimer "
    "os.fork os.geteuid os.getuid os.getgid os.getpgid os.setsid os.killpg os.uname os.getloadavg os.statvfs os.mkfifo",
    "Linux": "os.sched_getaffinity os.sched_setaffinity os.memfd_create select.epoll socket.AF_NETLINK",
    "Windows": "winreg msvcrt winsound _winapi os.startfile os.add_dll_directory ctypes.windll ctypes.WinDLL",
}
"""Names of the standard library by the systems that have them."""
_HAVE = {"Unix": ("linux", "darwin"), "Linux": ("linux",), "Windows": ("windows",)}
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
    if lack.kind == MODULE and lack.owner in _FALLBACKS:
        return True
    if lack.owner in ("numpy", "np"):
        return lack.name in by_name(_OF_NUMPY)
    return lack.kind in (NAME, MODULE, ATTRIBUTE) and lack.owner.partition(".")[0] in sys.stdlib_module_names


def of_release(lack: Lack, asking: str | None, where: str, facts: Facts) -> Finding | None:
    """Return the finding for a missing name that another release of Python or NumPy defines; otherwise ``None``."""
    if lack.kind not in (NAME, MODULE, ATTRIBUTE):
        return None
    if lack.owner in ("numpy", "np") and lack.kind != MODULE:
        return _numpy(lack.name, asking, where, facts)
    fallback = lack.kind == MODULE and lack.owner in _FALLBACKS
    if fallback:
        meant, asking = _FALLBACKS[lack.owner]
        lack = replace(lack, owner=meant)
    removed, added = by_name(REMOVED).get(lack.what), by_name(ADDED).get(lack.what)
    if removed is None and added is None:
        return _of_system(lack.what, asking, where, facts)
    python = _running(facts)
    release = removed or added or ""
    if python is not None and (key_of(python) >= key_of(release)) != bool(removed):
        return None  # another interpreter was running
    who = asking or "A package"
    spec = f"<{release}" if removed else f">={release}"
    fixes = [Fix("config", text=f"use Python {spec}", command=f"uv venv --python '{spec}'")]
    if asking is not None and not fallback:  # what tries a fallback does so in its newest release
        newer = by_pip("upgrade", asking, None, f"a release of {asking} that supports this Python")
        fixes.insert(0 if removed else 1, newer)
    if (backport := _BACKPORTS.get(lack.what)) is not None:
        fixes.insert(0 if fallback else len(fixes), by_pip("pin", backport, None, f"has {lack.what} for later Pythons"))
    title = f"{who} uses {lack.what} of the standard library, which "
    title += f"Python {release} removed" if removed else f"has it since Python {release}"
    return _of_python("symptom-python-release", title, "a different", release, asking, fixes, where, facts)


def _of_system(name: str, asking: str | None, where: str, facts: Facts) -> Finding | None:
    """Return the finding for a name of the standard library that Python only has on other systems than this one."""
    having, system = by_name(_ONLY_ON).get(name), str(facts.value("os"))
    known = system in ("linux", "darwin", "windows")
    if having is None or system in _HAVE[having]:
        return None
    who = asking or "A package"
    fixes = [Fix("config", text="run it on Linux (on Windows: in WSL 2)" if having != "Windows" else "run it on Windows")]
    if asking is not None:
        fixes.append(by_pip("upgrade", asking, None, f"a release of {asking} that supports this system"))
    return Finding(
        rule="symptom-python-system", origin="surface", verdict="hit" if known else "possible",
        title=f"{who} uses {name} of the standard library, which Python only has on {having}",
        why="The code was not written for this system.",
        packages={asking: version_of(asking, facts)} if asking else {}, facts=("os",),
        fixes=tuple(fixes), evidence=("https://docs.python.org/3/library/index.html",), here=where,
    )  # fmt: skip


def _running(facts: Facts) -> str | None:
    """Return the version of the running Python, if it is known."""
    python = facts.value("python")
    return python if isinstance(python, str) and is_version(python) else None


def _of_python(
    rule: str, title: str, other: str, release: str, asking: str | None, fixes: list[Fix], where: str, facts: Facts
) -> Finding:  # fmt: skip
    """Return the finding for code that runs on ``other`` Pythons, those before or since a release."""
    python = _running(facts)
    return Finding(
        rule=rule, origin="surface", verdict="possible" if python is None else "hit", title=title,
        why=f"{asking or 'A package'} was written for {other} Python than the running one{f' ({python})' if python else ''}.",
        packages={asking: version_of(asking, facts)} if asking else {}, facts=("python",),
        fixes=tuple(fixes), evidence=(f"{_WHATS_NEW}{release}.html",), here=where,
    )  # fmt: skip


def _numpy(name: str, asking: str | None, where: str, facts: Facts) -> Finding | None:
    release = by_name(_OF_NUMPY).get(name)
    version = version_of("numpy", facts)
    if release is None or is_before(version, release):
        return None
    who = asking or "A package"
    older = by_pip("downgrade", "numpy", f"<{release}", f"still has numpy.{name}")
    newer = (by_pip("upgrade", asking, None, "a release that supports this NumPy"),) if asking else ()
    return Finding(
        rule="symptom-numpy-name", origin="surface", verdict="hit" if version is not None else "possible",
        title=f"{who} uses numpy.{name}, which NumPy {release} removed",
        why=f"{who} was written for an older NumPy.",
        packages={**({asking: version_of(asking, facts)} if asking else {}), "numpy": version},
        fixes=(*newer, older), evidence=(_MIGRATION,), here=where,
    )  # fmt: skip


_CLASS = r"(?:type|NoneType|ABCMeta|EnumMeta|EnumType|_?\w{0,20}GenericAlias|_SpecialForm|types\.GenericAlias)"
_FEATURES = (
    # a subscripted class of a package fails with the same message under any Python: the line decides
    ("3.9", "TypeError", r"'(?:type|ABCMeta)' object is not subscriptable", "list[…] in annotations",
        r"\b(?:list|dict|tuple|set|frozenset|type|deque|defaultdict|Callable|Iterable|Iterator|Mapping|Sequence)\["),
    ("3.9", "TypeError", r"unsupported operand type\(s\) for \|=?: 'dict' and 'dict'", "| between dictionaries", ""),
    ("3.9", "AttributeError", r"'(?:str|bytes)' object has no attribute 'remove(?:prefix|suffix)'", "str.removeprefix", ""),
    ("3.10", "TypeError", rf"unsupported operand type\(s\) for \|: '{_CLASS}' and '{_CLASS}'", "X | Y in annotations", ""),
    ("3.10", "TypeError", r"dataclass\(\) got an unexpected keyword argument '(?:slots|kw_only|match_args)'",
        "the slots or kw_only of data classes", ""),
    ("3.10", "TypeError", r"^zip\(\) takes no keyword arguments", "the strict of zip()", ""),
    ("3.10", "TypeError", r"^'staticmethod' object is not callable", "the call of a static method inside its class", ""),
    ("3.10", "SyntaxError", r"^invalid syntax", "match statements", r"^(?:match|case) [^=]{1,200}:$"),
    ("3.11", "SyntaxError", r"^invalid syntax", "except*", r"^except ?\*"),
    ("3.11", "NameError", r"name '(?:Base)?ExceptionGroup' is not defined", "ExceptionGroup", ""),
    ("3.11", "AttributeError", r"object has no attribute 'add_note'", "BaseException.add_note", ""),
    ("3.12", "SyntaxError", r"^(?:invalid syntax|expected '\(')", "type parameters",
        r"^(?:type \w{1,60}\s?=|(?:async )?def \w{1,60}\[|class \w{1,60}\[)"),
    ("3.12", "SyntaxError", r"^f-string: (?:expecting '}'|unmatched|expression part cannot include a backslash)",
        "quotes and backslashes inside an f-string", ""),
)  # fmt: skip
"""Features of the language: the release that has them, how an older one fails, their name, and the line that uses them."""


def of_language(error: RaisedError, facts: Facts) -> list[Finding]:
    """Return the finding for an error of code that uses a feature of the language that an older Python does not have."""
    name = (error.exception or "").rpartition(".")[2]
    frame, code = error.frame, error.code.strip()
    python = _running(facts)
    for release, exception, message, feature, line in _FEATURES:
        if name != exception or not re.search(message, error.message) or not (not line or re.search(line, code)):
            continue
        if python is not None and key_of(python) >= key_of(release):
            return []
        module = package_of(frame) if frame else None
        asking = distribution_of_module(module) if module not in (None, MODELS_OWN) and module else None
        fixes = [Fix("config", text=f"use Python >={release}", command=f"uv venv --python '>={release}'")]
        if asking is not None:
            fixes.append(Fix("pin", asking, None, f"a release of {asking} that supports this Python"))
        title = f"{asking or 'A package'} uses {feature}, which Python has since {release}"
        where = location_text(error)
        found = _of_python("symptom-python-feature", title, "a newer", release, asking, fixes, where, facts)
        return [found if python else replace(found, confidence="reported")]
    return []
