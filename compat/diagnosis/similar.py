"""Find the known problem that a text describes in its author's own words, by the words that the two share.

A title says "fully shard does not take ignored params" where the error says ``fully_shard() got an unexpected keyword argument
'ignored_params'``; the names in it survive other languages, too. Rules and symptoms are compared by title and messages. A word
counts as much as it is rare among them, and a pair of neighbouring words counts besides. Most texts are about none of them:
what is found has to share much of the text, and more than the next one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from compat.diagnosis.symptoms import Symptom, symptoms
from compat.records import cached

if TYPE_CHECKING:
    from compat.rules.compiled import Matrix
    from compat.rules.rule import Rule

LONGEST = 600
"""Characters of a text that may be a description; a longer one is a log or an issue."""
_LEAST_SHARED = 14.0
"""Least weight of the shared words: about three rare ones."""
_LEAST_PART = 0.54
"""Least part that the shared words make up of the weight of those words of the text that any problem has."""
_LEAST_WORDS = 4
_AHEAD = 1.25
"""How much more than others the best has to share, except those about the same packages."""
_BESIDE = 1.1
"""The same for those: what shares about as much is named beside it."""
_PAIR = 0.5
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_WORDS = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_NOT_LITERAL = re.compile(r"\\[A-Za-z]|\\(?=\W)|\(\?P<\w+>|\(\?[:!=<]*|[\[\]{}()|.*+?^$]")
_COMMON = frozenset((
    "a", "about", "after", "all", "also", "an", "and", "any", "are", "argument", "as", "at", "attribute", "be", "because",
    "been", "before", "but", "by", "can", "cannot", "class", "did", "do", "does", "doesn", "don", "error", "exception",
    "for", "from", "function", "get", "got", "had", "has", "have", "how", "if", "import", "in", "init", "into", "is", "isn",
    "it", "its", "just", "keyword", "like", "method", "missing", "module", "more", "my", "nam", "name", "no", "not",
    "object", "of", "on", "only", "or", "our", "out", "positional", "required", "runtime", "same", "should", "so", "some",
    "something", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "to", "too", "type",
    "unexpected", "up", "value", "was", "way", "we", "were", "what", "when", "where", "which", "while", "who", "why",
    "will", "with", "won", "would", "you", "your",
))  # fmt: skip
"""Words of any sentence, and those of Python's own messages, by their stem."""
_EVERYWHERE = frozenset(("torch", "transformers"))
_ENDINGS = ("ing", "ed", "es", "s")


def described(text: str, matrix: Matrix) -> tuple[Rule | Symptom, ...]:
    """Return the problem that a short text describes, with those of the same packages that are as likely.

    There is none if the text is about none of them, or could be about several.
    """
    if len(text) > LONGEST:
        return ()
    said = _words(text)
    problems: list[Rule | Symptom] = [*matrix.rules(), *symptoms()]
    index = [(each, _words_of(each)) for each in problems]
    number = Counter(word for _, words in index for word in words)
    weight = {word: math.log(len(index) / (1 + count)) * (_PAIR if " " in word else 1) for word, count in number.items()}
    known = sum(weight.get(word, 0.0) for word in said if " " not in word)
    ranked = sorted(
        ((sum(weight[word] for word in said & words), at) for at, (_, words) in enumerate(index) if said & words), reverse=True
    )
    most, at = ranked[0] if ranked else (0.0, 0)
    best, words = index[at]
    shared = [word for word in said & words if " " not in word]
    if most < _LEAST_SHARED or len(shared) < _LEAST_WORDS or sum(map(weight.__getitem__, shared)) < _LEAST_PART * known:
        return ()
    others = [(score, index[at][0]) for score, at in ranked[1:] if score * _AHEAD > most]
    alike = tuple(problem for score, problem in others if _alike(best, problem) and score * _BESIDE > most)
    return (best, *alike) if all(_alike(best, problem) for _, problem in others) else ()


def _alike(one: Rule | Symptom, other: Rule | Symptom) -> bool:
    """Whether two problems are about the same packages, besides those that most problems are about."""
    return bool(_packages(one) & _packages(other) - _EVERYWHERE)


def _packages(problem: Rule | Symptom) -> frozenset[str]:
    if isinstance(problem, Symptom):
        return frozenset(problem.packages)
    return frozenset(each.name for each in problem.packages)


def _words_of(problem: Rule | Symptom) -> frozenset[str]:
    if isinstance(problem, Symptom):
        said: Iterable[str] = (problem.title, *problem.packages, *_NOT_LITERAL.sub(" ", problem.pattern).split("  "))
    else:
        messages = (f"{each.exception or ''} {_NOT_LITERAL.sub(' ', each.message)}" for each in problem.errors)
        said = (problem.title, *messages, *(each.name for each in problem.packages))
    return frozenset().union(*map(_words, said))


@cached
def _words(text: str) -> frozenset[str]:
    """Return the words of a text without their endings, with those that names are made of, and pairs of neighbours."""
    found = [word for match in _WORDS.finditer(text.replace("_", " ")) for word in _split(match[0])]
    telling = [word for word in found if word not in _COMMON]
    pairs = (f"{one} {next_one}" for one, next_one in pairwise(found) if not {one, next_one} <= _COMMON)
    return frozenset((*telling, *pairs))


def _split(word: str) -> Sequence[str]:
    parts = [part.lower() for part in _PARTS.findall(word) if len(part) > 2]
    if len(parts) < 2:
        parts = [word.lower()] if len(word) > 1 else []
    return [_stem(part) for part in parts]


def _stem(word: str) -> str:
    if word in _COMMON:
        return word
    return next((word.removesuffix(end) for end in _ENDINGS if word.endswith(end) and len(word) > len(end) + 3), word)
