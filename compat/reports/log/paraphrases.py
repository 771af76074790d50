"""Python's messages in the words of a title: "X was removed from Y", "unexpected keyword z", "Y has no method x"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compat.reports.log.languages import CANNOT, LACKING, MODULE, NAME, NOT_FOUND, OWNER, REFUSING, VERSION, Q
from compat.reports.words import distribution_of
from compat.workload.trainers import CONFIGS, TASKS

_IS = r"(?:is|was|were|are|has been|have been|got|is now|seems? to be)"
_GONE = r"(?:gone|removed|dropped|renamed|moved|deleted|missing)"
_NO_MORE = r"(?:no longer|does(?: not|n't)(?: seem to)?) (?:exists?|available|there|present|defined|importable)"
_REMOVED = r"(?:removed|dropped|renamed|moved|gone)"
_REMOVES = r"(?:removed|removes|dropped|drops|renamed|renames)"
_KIND = "the|class|classes|function|method|argument|attribute|name|module|old|legacy|deprecated|private|public"
_LACKED = "(?:dependency|package|module|requirement)"
_REFUSES = r"(?:(?:does(?: not|n't)|did(?: not|n't)|no longer) (?:know|takes?|accepts?|supports?|recognizes?))"
_WANTS = r"\b(?:wants?|needs?|requires?|missing|asks for|no)\b"
_FORMS = (
    *(("keyword", *each) for each in REFUSING),
    ("keyword", ("unexpected",),
        rf"unexpected (?:keyword|kwarg)s?(?: arg(?:ument)?s?| parameters?)?:? {Q}(?!arg)(?P<name>[a-z_]\w{{2,60}})"),
    ("keyword", ("unexpected",), r"\bunexpected (?:option |argument )?[`'\"]{0,2}(?P<name>[a-z]\w{2,40}_\w{2,40})\b"),
    ("refused", (" know ", " take ", " accept ", " support ", " recognize ", " takes ", " accepts ", " supports "),
        rf"(?<![\w.]){OWNER} {_REFUSES}(?: the)?(?: (?:keyword|argument|parameter|option)){{0,2}} {NAME}"),
    ("named", ("o module ",), r"\b[Nn]o module (?:named |called )?[`'\"]{0,2}(?P<name>[a-z_][\w.]{2,80}\w)"),
    ("library", (".so",), rf"{CANNOT} (?:find|load|open|locate) {Q}(?P<name>lib[\w-]{{2,40}}\.so[.\d]{{0,8}}\d)"),
    ("version", ("GLIBC", "CXXABI"),
        rf"{_WANTS}[^\n]{{0,20}} [`']?(?P<name>(?:GLIBC|GLIBCXX|CXXABI)_\d[\d.]{{0,10}}\d)"),
    ("symbol", ("ndefined symbol",), r"[Uu]ndefined symbols?:? (?!_Z)(?P<name>[A-Za-z]\w{5,80})"),
    ("module", (" gone", " removed", " dropped", " renamed", " moved", " deleted", " missing"), rf"{MODULE} {_IS} {_GONE}\b"),
    ("module", (" no longer ", " exist", " available"), rf"{MODULE} (?:is )?{_NO_MORE}\b"),
    ("name", (" removed", " dropped", " renamed", " moved", " gone", " missing"),
        rf"{NAME} (?:{_IS} )?(?:{_REMOVED}|missing) (?:from|in|since|with|as of|after|by) {OWNER}{VERSION}"),
    ("name", (" removed ", " removes ", " dropped ", " drops ", " renamed "),
        rf"(?<![\w.]){OWNER}{VERSION} (?:has )?{_REMOVES}(?: (?:{_KIND}))* {NAME}(?![\w.])"),
    ("name", (" import ",), rf"{CANNOT} import (?:the )?(?:name |class |function )?{NAME} from {OWNER}"),
    ("name", (" no longer ",),
        rf"{NAME} (?:is |are )?no longer (?:(?:available|exported|found|defined|part|present) )?(?:from|in|of) {OWNER}"),
    ("name", (" from ",), rf"\b(?:wants?|needs?|imports?|uses?|expects?|looks? for) {NAME} from {OWNER}"),
    ("name", ("から",), rf"{NAME} ?[はがを] ?{OWNER} ?から"),
    ("attribute", (" has no ",), r"(?P<owner>[A-Z]\w{2,60})\b[^.\n]{0,40} has no [`'\"]{1,2}(?P<name>\w{2,80})[`'\"]"),
    ("attribute", (" no attribute ", " no method ", " no member ", " no function "),
        rf"(?<![\w.]){OWNER} (?:object |class |module )?(?:has|have) no (?:attribute|method|member|function) {NAME}"),
    ("attribute", ("o attribute ", "o method "), rf"[Nn]o (?:attribute|method) {NAME} (?:in|on|for|of) {OWNER}"),
    *(("attribute", *each) for each in LACKING),
    *(("named", *each) for each in NOT_FOUND),
    ("package", ("issing ",),
        rf"[Mm]issing (?:\w{{2,12}} )?{_LACKED}(?: on)?:? {Q}(?P<name>[A-Za-z][\w-]{{2,40}}){Q}(?![\w-])"),
)  # fmt: skip
"""What each form is about, words of which one is in every sentence of it, and its pattern."""
_COMPILED = tuple((kind, hints, re.compile(pattern)) for kind, hints, pattern in _FORMS)
_UNEXPECTED = "got an unexpected keyword argument '{name}'"
_PYTHONS = {
    "keyword": (("TypeError", f"{{trainer}}{_UNEXPECTED}"),),
    "refused": (("TypeError", f"{{owner}}{{init}}() {_UNEXPECTED}"),),
    "named": (("ModuleNotFoundError", "No module named '{name}'"),),
    "package": (("ModuleNotFoundError", "No module named '{module}'"),),
    "library": (("ImportError", "{name}: cannot open shared object file: No such file or directory"),),
    "version": (("ImportError", "{before}: version `{name}' not found"),),
    "symbol": (("ImportError", "{before}: undefined symbol: {name}"),),
    "name": (("ImportError", "cannot import name '{name}' from '{owner}'"),),
    # whether a dotted name is a module, or a name of one, only the tables of published source know
    "module": (
        ("ModuleNotFoundError", "No module named '{owner}'"),
        ("ImportError", "cannot import name '{last}' from '{above}'"),
    ),
    "class": (("AttributeError", "'{owner}' object has no attribute '{name}'"),),
    "attribute": (("AttributeError", "module '{owner}' has no attribute '{name}'"),),
}
"""The classes and messages of each kind, as Python and the loader write them."""
_LONGEST_BEFORE = 200


def paraphrased(text: str) -> Iterator[tuple[str, str]]:
    """Yield the class and the message of the exceptions that a sentence tells of in other words than Python's own."""
    for kind, hints, pattern in _COMPILED:
        match = pattern.search(text) if any(hint in text for hint in hints) else None
        groups = {} if match is None else match.groupdict()
        name, owner = groups.get("name") or "", groups.get("owner") or ""
        if match is None or not _is_code(name, owner, kind):
            continue
        above, _, last = owner.rpartition(".")
        if kind in ("attribute", "name") and "_" in owner and not above and distribution_of(owner) is None:
            kind = "refused"  # what looks like a function is no module
        if kind == "attribute" and not above and owner.islower() and distribution_of(owner) is None:
            continue  # "my_dataset isn't in the cache"
        trainer = next((f"{word}.__init__() " for word in _WORD.findall(text) if word in TASKS or word in CONFIGS), "")
        of_class = owner[:1].isupper() and not above
        for exception, message in _PYTHONS["class" if kind == "attribute" and owner[:1].isupper() else kind]:
            yield (
                exception,
                message.format(
                    name=name,
                    owner=owner,
                    above=above,
                    last=last,
                    trainer=trainer,
                    module=name.replace("-", "_"),
                    init=".__init__" if of_class else "",
                    before=text[: match.start()][-_LONGEST_BEFORE:].rstrip(),
                ),
            )
        return


def _is_code(name: str, owner: str, kind: str) -> bool:
    """Whether words of a sentence are names of code: a class, or something with an underscore or a dot."""
    if kind in ("keyword", "named"):
        return ("_" in name or name not in _AFTER) and name.rpartition(".")[2] not in _FILES
    if kind in ("module", "package", "library", "version", "symbol"):
        return True
    if kind == "refused":
        return ("_" in owner or _is_camel_case(owner)) and name not in _AFTER
    of_class = kind == "attribute" and _is_camel_case(owner)
    return (of_class or "_" in name or _is_camel_case(name)) and owner.lower() not in _NO_OWNERS


def _is_camel_case(name: str) -> bool:
    return name[:1].isupper() and any(map(str.islower, name)) and any(map(str.isupper, name[1:]))


_WORD = re.compile(r"[A-Z]\w{4,60}")
_AFTER = frozenset(
    ("and", "are", "but", "does", "error", "errors", "for", "from", "has", "issue", "not", "was", "were", "when", "with")
)
"""Words that follow "unexpected keyword" in sentences."""
_FILES = frozenset(
    ("bin", "cfg", "cu", "dll", "gguf", "h", "json", "md", "pt", "pth", "py", "safetensors", "so", "toml", "txt", "yaml", "yml")
)
"""Ends of names of files, which are no modules."""
_NO_OWNERS = frozenset(
    ("the", "this", "that", "it", "version", "main", "master", "release", "latest", "newer", "recent", "update", "pip")
)
