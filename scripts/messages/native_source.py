"""The messages of C++, CUDA and Rust source: checks, errors, warnings and what kernels print, by their macros and functions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compat.interfaces.messages import HOLE
from scripts.messages.raised import LONGEST_GUARD, Message
from scripts.messages.templates import normal, percent

FORM = 1
"""Of the records; to be raised when what is read of a file changes."""
CPP, RUST = (".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hpp", ".inl"), (".rs",)

_EXCEPTIONS = {
    "NOT_IMPLEMENTED": "NotImplementedError", "VALUE": "ValueError", "TYPE": "TypeError", "INDEX": "IndexError",
    "out_of_range": "IndexError", "invalid_argument": "ValueError", "domain_error": "ValueError", "length_error": "ValueError",
    "value_error": "ValueError", "index_error": "IndexError", "key_error": "KeyError", "type_error": "TypeError",
    "import_error": "ImportError", "attribute_error": "AttributeError", "bad_alloc": "MemoryError",
}  # fmt: skip
"""What pybind11 and torch raise in Python for a macro or a class of C++ with this in its name; else RuntimeError."""
_MACRO = re.compile(
    r"(?<![\w#])(?P<macro>(?:[A-Z][A-Z0-9]*_)*(?:I?CHECK|ASSERT|ENFORCE|REQUIRE|ERROR|THROW|FATAL|WARN(?:ING)?|WARN_ONCE|LOG"
    r"|ASSERTM)(?:_[A-Z0-9]+)*|throw\s+(?:\w+::)*\w+|(?:std::)?f?printf|err|LLAMA_LOG_(?:ERROR|WARN))\s*(?=\()"
)
_RUST = re.compile(
    r"(?P<macro>(?:anyhow|bail|ensure|panic|assert|format|unreachable|unimplemented)!|#\[error|Py\w{3,30}::new_err"
    r"|exceptions::Py\w{3,30}::new_err|\.expect)\s*(?=\()"
)
_NO_MESSAGE = re.compile(
    r"^(?:CHECK_(?:EQ|NE|LT|LE|GT|GE|INPUT|CUDA|CONTIGUOUS|SHAPE|CPU|DTYPE|DIM)|(?:CUDA|CU|NCCL|HIP|ROCBLAS|CUBLAS|CUDNN)_?\w*CHECK\w*"
    r"|STATIC_ASSERT|static_assert)$"
)
_STRING = re.compile(
    r'(?:[uUL]|u8)?R"(?P<fence>[^()\\\s]{0,16})\((?P<raw>.*?)\)(?P=fence)"|b?"(?P<text>(?:[^"\\\n]|\\.)*)"', re.S
)
_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:[^"\\\n]|\\.)*")', re.S)
_ESCAPES = {"n": " ", "t": " ", "r": " ", '"': '"', "'": "'", "\\": "\\", "0": ""}
_ESCAPE = re.compile(r"\\(.)", re.S)
_BRACES = re.compile(r"\{[\w.:?#<>+\-*$]{0,30}\}")
_FUNCTION = re.compile(
    r"(?:^|[\s*&:~])(?P<name>[A-Za-z_]\w{2,60})\s*\([^;{}]{0,2000}?\)\s*(?:const\s*)?(?:noexcept\s*)?(?:->[^{;]{0,80})?\{"
)
_RUST_FUNCTION = re.compile(r"\bfn\s+(?P<name>[A-Za-z_]\w{2,60})")
_NO_FUNCTION = frozenset(("if", "for", "while", "switch", "catch", "return", "sizeof", "defined", "else"))
_LONGEST_CALL = 4000
_TELLS = re.compile(r"[A-Za-z]{3,}[^A-Za-z]+[A-Za-z]{2,}")
_OF_ERROR = re.compile(
    r"error|fail|not support|only support|unsupported|invalid|must|cannot|can't|could not|unknown|requires?\b|expected",
    re.IGNORECASE,
)


def messages_of(path: str, source: str) -> list[Message]:
    """Return the messages of one file with a text that is at least partly known, in the order of the file."""
    rust = path.endswith(RUST)
    source = _COMMENT.sub(lambda found: found[1] or " ", source)
    source = source.partition("#[cfg(test)]")[0] if rust else source
    functions = _functions(source, _RUST_FUNCTION if rust else _FUNCTION)
    found = []
    for start, macro, inside, rest in _calls(source, _RUST if rust else _MACRO):
        message = _of_rust(macro, inside) if rust else _of_cpp(macro, inside, rest)
        if message is not None and _TELLS.search(message.template):
            while functions and len(functions) > 1 and functions[1][0] < start:
                functions.pop(0)
            function = functions[0][1] if functions and functions[0][0] < start else ""
            found.append(Message(message.kind, message.name, message.template, function, message.guards))
    return list(dict.fromkeys(found))


def _calls(source: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, str, str, str]]:
    """Yield the place, the name, the text between the parentheses, and what a stream adds after them, of each outer call."""
    last = 0
    for found in pattern.finditer(source):
        end = None if found.start() < last else _closing(source, found.end())
        if end is not None:
            last = end  # a call inside another one is a part of its text
            semicolon = source.find(";", end, end + _LONGEST_CALL)
            rest = source[end + 1 : semicolon] if semicolon > 0 else ""
            yield found.start(), found["macro"], source[found.end() + 1 : end], rest if rest.lstrip().startswith("<<") else ""


def _closing(source: str, opening: int) -> int | None:
    """Return the place of the parenthesis that closes the one at ``opening``; strings are passed over."""
    depth, at, end = 0, opening, min(len(source), opening + _LONGEST_CALL)
    while at < end:
        char = source[at]
        if char == '"':
            string = _STRING.match(source, at)
            if string is None:
                return None
            at = string.end()
            continue
        depth += (char in "([{") - (char in ")]}")
        if depth == 0:
            return at
        at += 1
    return None


def _functions(source: str, pattern: re.Pattern[str]) -> list[tuple[int, str]]:
    return [(found.end(), found["name"]) for found in pattern.finditer(source) if found["name"] not in _NO_FUNCTION]


def _of_cpp(macro: str, inside: str, rest: str) -> Message | None:
    parts = _parts(inside)
    if macro.startswith("throw"):
        name = macro.rpartition("::")[2].split()[-1]
        return _message("raise", _exception(name), _text(", ".join(parts)), "")
    if macro.endswith("printf"):
        text = percent(_text(inside.partition(",")[2] if macro.endswith("fprintf") else inside))
        return _message("log", "error", text, "") if _OF_ERROR.search(text) else None
    if _NO_MESSAGE.match(macro):
        return None
    if "WARN" in macro:
        return _message("warn", "UserWarning" if macro.startswith("TORCH") else "", _text(inside) or _streamed(rest), "")
    checks = re.search(r"CHECK|ASSERT|ENFORCE|REQUIRE", macro) is not None
    text = _text(", ".join(parts[1:] if checks else parts)) or _streamed(rest)
    return _message("raise", _exception(macro), text, parts[0] if checks and (len(parts) > 1 or rest) else "")


def _of_rust(macro: str, inside: str) -> Message | None:
    parts = _parts(inside)
    checks = macro in ("ensure!", "assert!")
    name = re.search(r"Py(\w+)::", macro)
    return _message(
        "raise", name[1] if name else "", _text(", ".join(parts[1:] if checks else parts[:1])), parts[0] if checks else ""
    )


def _exception(name: str) -> str:
    return next((found for part, found in _EXCEPTIONS.items() if part in name), "RuntimeError")


def _parts(inside: str) -> list[str]:
    """Split the arguments of a call at its own commas."""
    parts, depth, start, at = [], 0, 0, 0
    while at < len(inside):
        char = inside[at]
        string = _STRING.match(inside, at) if char in '"RbuUL' else None
        if string is not None:
            at = string.end()
            continue
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append(inside[start:at])
            start = at + 1
        at += 1
    return [*parts, inside[start:]]


def _streamed(rest: str) -> str:
    """The text of ``<< "a" << b << "c"``."""
    return "".join(_text(part) or HOLE for part in re.split(r"<<", rest)[1:])


def _text(code: str) -> str:
    """Return the strings of some arguments, one after the other, with a hole for everything else between them."""
    text, end, seen = "", 0, False
    for found in _STRING.finditer(code):
        between = re.sub(r"[\s,+]|std::string|format!|\b(?:c10|torch|at)::str|[()]|\.c_str", "", code[end : found.start()])
        text += (HOLE if between else "") + _plain(found)
        end, seen = found.end(), True
    behind = re.sub(r"[\s,+()]|\.c_str|\.to_string|\.into", "", code[end:])
    filled = _BRACES.sub(HOLE, percent(text))  # the arguments of a format are behind it
    return (filled + (HOLE if behind and filled == text else "")) if seen else ""


def _plain(found: re.Match[str]) -> str:
    raw = found["raw"]
    return raw if raw is not None else _ESCAPE.sub(lambda each: _ESCAPES.get(each[1], " "), found["text"])


def _message(kind: str, name: str, text: str, condition: str) -> Message | None:
    template = normal(text.replace("\x00", "")).strip()
    if not template.strip(HOLE + " "):
        return None
    always = condition.strip() in ("", "false", "0")
    return Message(kind, name, template, "", () if always else (f"not ({_in_python(condition)})",))


def _in_python(condition: str) -> str:
    """Write a condition with the operators of Python, in which all guards are read."""
    text = " ".join(condition.split())
    for cpp, python in (("&&", " and "), ("||", " or "), ("->", "."), ("::", ".")):
        text = text.replace(cpp, python)
    text = re.sub(r"!(?!=)\s*", "not ", text)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_GUARD else f"{text[:LONGEST_GUARD]} …"
