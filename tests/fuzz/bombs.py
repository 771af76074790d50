"""Texts that are made to be too much: deep, long, repeated, referring to themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator

_REPEATED = (
    "[", "{", "(", "]", "- ", "? ", "'", '"', "\\", "`", "$(", "${A:-", "[[", "((", ".", "1.", "1!", "0", "9", "-", "a", "a.", "é", "\ufeff", "\0",
    " ", "\t", "\n", "\r", "\r\n", "\\\n", "#", "# /// script\n", "; ", ",", "a,", "==1,", "[a]", "&a ", "*a ", "!!x ", "<<: *a\n", "|\n", "> ",
    "a: ", "a: b\n", "- a\n", "a = ", "a = 1\n", "a.b = 1\n", "[a]\n", "[[a]]\n", "[[package]]\n", '[[package]]\nname="a"\nversion="1"\n',
    "a==1\n", "a==${X}\n", "-r base.txt\n", "-c wide.txt\n", "--hash=sha256:0 ", "<<<<<<< HEAD\n=======\n>>>>>>> b\n", "os_name=='a' or ",
    "(os_name=='a')and", "not ", "extra == 'x' and ", "FROM a\n", "FROM a AS b\n", "RUN pip install a\n", "RUN <<E\n", "ENV A=$A$A\n",
    "ARG A=${A}\n", "&& ", "if x; then\n", "fi\n", "for a in b; do\n", "pip install a;", "$A", "`id`", "<(", "cat <<E\n", '{"a":', '"a",', '{"cells":[',
    "GPU 0: NVIDIA L4\n", "Package Version\n", "---- ----\n", "torch 2.6.0\n", "| a |\n", "  ", "\u2028", "e1", "x==", ">=1 ", "||", "^1 ", "~", "*",
    "services:\n", "a==1 ; python_version<'3'\n", "conda install a=1=b\n", "[tool.compat]\n", "[[tool.compat.target]]\nname='a'\n",
)  # fmt: skip
"""Repeated as often as the size allows."""


def repeated(piece: str, size: int) -> str:
    return piece * max(1, size // len(piece))


def _alias_tree(size: int) -> str:
    """Each line holds nine times the one before it."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    numbers = range(1, max(2, min(size // 60, 3000)))
    lines += [f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 9)}]" for number in numbers]
    return "\n".join([*lines, f"dependencies: *a{len(lines) - 1}", f"services: *a{len(lines) - 1}", ""])


def _merge_tree(size: int) -> str:
    lines = ["a0: &a0 {k0: 1}"]
    numbers = range(1, max(2, min(size // 60, 3000)))
    lines += [f"a{number}: &a{number} {{<<: [*a{number - 1}, *a{number - 1}], k{number}: 1}}" for number in numbers]
    return "\n".join([*lines, f"services: {{s: *a{len(lines) - 1}}}", ""])


def _doubling(size: int) -> str:
    """Variables of which each is twice the one before."""
    count = max(2, min(size // 30, 20000))
    lines = ["FROM a", "ENV V0=aaaaaaaa"] + [f"ENV V{number}=${{V{number - 1}}}$V{number - 1}" for number in range(1, count)]
    return "\n".join([*lines, f"RUN pip install a==$V{count - 1}", ""])


def _doubling_shell(size: int) -> str:
    count = max(2, min(size // 30, 20000))
    lines = ["V0=aaaaaaaa"] + [f'V{number}="${{V{number - 1}}}$V{number - 1}"' for number in range(1, count)]
    return "\n".join([*lines, f"pip install a==$V{count - 1}", ""])


def _doubling_python(size: int) -> str:
    count = max(2, min(size // 30, 20000))
    source = ["v0 = 'aaaaaaaa'"] + [f"v{number} = v{number - 1} + f'{{v{number - 1}}}'" for number in range(1, count)]
    source.append(f"!pip install {{v{count - 1}}} {{'a' * 10**9}} {{10**10**8}}")
    cells = ", ".join(f'{{"cell_type": "code", "source": "{line}"}}' for line in source)
    return f'{{"nbformat": 4, "cells": [{cells}]}}'


def _marker(size: int) -> str:
    depth = max(1, size // 20)
    return f"a ; {'(' * depth}os_name == 'a'{')' * depth}\n"


def _long_marker(size: int) -> str:
    parts = (f"python_version {'<>'[number % 2]} '3.{number % 40}'" for number in range(max(2, size // 26)))
    return f"a==1 ; {' or '.join(parts)}\n"


def _toml_marker(size: int) -> str:
    text = _long_marker(size).partition(" ; ")[2].strip()
    head = 'version = 1\nrequires-python = ">=3.8"\nlock-version = "1.0"\n'
    package = f'name = "torch"\nversion = "1"\nmarker = "{text}"\nmarkers = "{text}"\ngroups = ["default"]\n'
    return f'{head}[[package]]\n{package}resolution-markers = ["{text}"]\n[[packages]]\n{package}'


def _packages(table: str, body: Callable[[int], str]) -> Callable[[int], str]:
    def text(size: int) -> str:
        count = max(1, size // (len(table) + len(body(10_000)) + 2))
        head = 'version = 1\nrequires-python = ">=3.8"\nlock-version = "1.0"\n\n'
        return head + "".join(f"{table}\n{body(number)}\n" for number in range(count))

    return text


def _chain(number: int) -> str:
    return f'name = "p{number}"\nversion = "1"\nsource = {{ registry = "https://index.example" }}\ndependencies = [{{ name = "p{number + 1}" }}]'


def _same(number: int) -> str:
    return (
        f'name = "torch"\nversion = "{number}"\nsource = {{ registry = "x" }}\nmarker = "python_version > \'3.{number % 50}\'"'
    )


def _fan(number: int) -> str:
    return f'name = "p{number}"\nversion = "1"\nsource = {{ editable = "." }}\ndependencies = [{{ name = "p0", extra = ["e{number}"] }}]'


def _project(size: int) -> str:
    """Extras that each hold the next one, in a circle, and groups that each include the next one."""
    count = max(2, size // 70)
    extras = "".join(f'e{number} = ["a{number}==1", "app[e{(number + 1) % count}]"]\n' for number in range(count))
    groups = "".join(f'g{number} = [{{include-group = "g{number + 1}"}}]\n' for number in range(count // 2))
    head = '[project]\nname = "app"\nversion = "1"\n[project.optional-dependencies]\n'
    return f"{head}{extras}[dependency-groups]\n{groups}g{count // 2} = []\n"


def _constraints(size: int) -> str:
    count = max(2, size // 60)
    parts = ",\n".join(f'"p{number % 500}>={number}"' for number in range(count))
    return f'[project]\nname = "app"\nversion = "1"\ndependencies = [{parts}]\n[tool.uv]\nconstraint-dependencies = [{parts}]\noverride-dependencies = [{parts}]\n'


def _conflicts(size: int) -> str:
    count = max(2, min(size // 60, 5000))
    extras = "".join(f'e{number} = ["a{number}==1"]\n' for number in range(count))
    sets = ", ".join(f'[{{ extra = "e{number}" }}, {{ extra = "e{number + 1}" }}]' for number in range(count - 1))
    return f'[project]\nname = "app"\nversion = "1"\n[project.optional-dependencies]\n{extras}[tool.uv]\nconflicts = [{sets}]\n'


def _distinct_lines(size: int) -> str:
    return "".join(f"p{number}==1.{number}.*+x{number};a\n" for number in range(max(1, size // 22)))


def _many_services(size: int) -> str:
    count = max(1, size // 60)
    return "services:\n" + "".join(
        f"  s{number}:\n    image: a:{number}\n    extends: s{number + 1}\n" for number in range(count)
    )


def _many_stages(size: int) -> str:
    count = max(1, size // 60)
    return "FROM a AS s0\nRUN pip install b==1\n" + "".join(
        f"FROM s{number} AS s{number + 1}\nRUN pip install a{number}==1\n" for number in range(count)
    )


def _conda_platforms(size: int) -> str:
    count = max(1, size // 110)
    return "version: 1\nmetadata: {platforms: []}\npackage:\n" + "".join(
        f"- name: p{number}\n  version: '1'\n  manager: conda\n  platform: p{number}\n  category: c{number}\n  url: https://x.example/a-1-0.conda\n"
        for number in range(count)
    )


def _quoted_headers(size: int) -> str:
    head = 'version = 1\nlock-version = "1.0"\nrequires-python = ">=3.8"\n'
    return f'{head}x = "{"[[packages]][[package]]" * (size // 23)}"\n[[packages]]\nname = "a"\n[[package]]\nname = "a"\n'


def _pixi_environments(size: int) -> str:
    count = max(1, size // 150)
    url = "https://files.example/torch-2.6.0-cp312-cp312-manylinux1_x86_64.whl"
    environments = "".join(f"  e{n}:\n    packages:\n      linux-{n}:\n      - pypi: {url}\n" for n in range(count))
    return f"version: 6\nenvironments:\n{environments}packages:\n- pypi: {url}\n  name: torch\n  version: 2.6.0\n"


_MADE: tuple[Callable[[int], str], ...] = (
    _alias_tree, _merge_tree, _doubling, _doubling_shell, _doubling_python, _marker, _long_marker, _toml_marker,
    _packages("[[package]]", _chain), _packages("[[package]]", _same), _packages("[[package]]", _fan), _packages("[[packages]]", _same),
    _packages("[[packages]]", _chain), _project, _constraints, _conflicts, _distinct_lines, _many_services, _many_stages,
    _conda_platforms, _pixi_environments, _quoted_headers,
    lambda size: f"a=={'1.' * (size // 2)}1\n", lambda size: f"a=={'9' * size}\n", lambda size: f"{'a' * size}==1\n",
    lambda size: f"a>={','.join(['1'] * (size // 2))}\n", lambda size: "a==1 # " + "x" * size, lambda size: "[" * size + "]" * size,
    lambda size: '{"a":' * (size // 6) + "1" + "}" * (size // 6), lambda size: f"a = {'[' * size}{']' * size}\n",
    lambda size: f"{'a.' * (size // 2)}a = 1\n", lambda size: f"[{'a.' * (size // 2)}a]\n", lambda size: f"a: {'{a: ' * (size // 4)}{'}' * (size // 4)}\n",
    lambda size: "\n".join(" " * depth + "a:" for depth in range(int((2 * size) ** 0.5))) + "\n",
    lambda size: f"dependencies:\n  - a={'1,' * (size // 2)}\n", lambda size: f"RUN pip install {'a==1 ' * (size // 5)}\n",
    lambda size: "FROM a\nRUN " + "\\\n# x\n" * (size // 6) + "pip install a\n",
    lambda size: f'{{"version": {"9" * size}, "n": 1e{"9" * 9}, "python": "{"1." * (size // 4)}1"}}',
)  # fmt: skip
WITHIN = len(_REPEATED)


def bombs(size: int) -> Iterator[str]:
    """Every bomb, of about that many characters."""
    for piece in _REPEATED:
        yield repeated(piece, size)
    for made in _MADE:
        yield made(size)


def piece_of(number: int, size: int) -> str:
    """One of the repeated pieces, to be put into another text."""
    return repeated(_REPEATED[number % WITHIN], size)


COUNT = WITHIN + len(_MADE)


def bomb(number: int, size: int) -> str:
    """Bomb number 0 … COUNT-1."""
    return piece_of(number, size) if number < WITHIN else _MADE[number - WITHIN](size)
