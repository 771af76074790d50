"""Requirements and constraints files: one line changes, everything else stays as it is."""

from __future__ import annotations

import pytest

from compat.errors import InputError
from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import edits_for
from compat.model import Source
from tests.formats.edit.conftest import COMMIT, VENDOR, Edited

TORCH = Change("torch", "2.5.1", "2.6.0")
HASHES = ("sha256:" + "1" * 64, "sha256:" + "2" * 64)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("torch==2.5.1", "torch==2.6.0"), ("Torch == 2.5.1  # why", "Torch == 2.6.0  # why"), ("torch", "torch==2.6.0"),
        ("torch[opt]>=2.4, <2.6 ; python_version > '3'", "torch[opt]==2.6.0 ; python_version > '3'"), ("torch===2.5.1", "torch===2.6.0"),
        ("torch (>=2.0)", "torch (==2.6.0)"), ("torch; os_name=='posix'", "torch==2.6.0; os_name=='posix'"),
        ("torch @ https://example.org/torch-2.5.1-py3-none-any.whl ; os_name == 'nt'", "torch==2.6.0 ; os_name == 'nt'"),
        ("torch[opt]@https://example.org/torch-2.5.1-py3-none-any.whl ; os_name == 'nt'", "torch[opt]==2.6.0 ; os_name == 'nt'"),
        ("https://example.org/torch-2.5.1-py3-none-any.whl", "torch==2.6.0"), ("git+https://github.com/pytorch/torch@v2", "torch==2.6.0"),
        ("-e git+https://github.com/pytorch/pytorch@abc#egg=torch", "torch==2.6.0"), ("torch==2.5.1 \\\n  ; os_name=='posix' # x", "torch==2.6.0 \\\n  ; os_name=='posix' # x"),
        ("torch>=2.7", "torch==2.6.0"), ("torch==2.5.*", "torch==2.6.0"),
    ],
)  # fmt: skip
def test_one_requirement(edited: Edited, line: str, expected: str) -> None:
    around = "# head\n--pre\nnumpy<2 # a\n{}\n\n  scipy\n# tail"
    assert edited("requirements.txt", around.format(line), TORCH) == around.format(expected)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("trl==0.12", f"trl @ git+https://github.com/huggingface/trl@{'c' * 40}"),
        ("trl[peft]>=0.1; os_name=='nt' # x", f"trl[peft] @ git+https://github.com/huggingface/trl@{'c' * 40} ; os_name=='nt' # x"),
        ("trl @ git+https://github.com/huggingface/trl.git@v0.12", f"trl @ git+https://github.com/huggingface/trl.git@{'c' * 40}"),
        ("trl @ git+https://github.com/fork/trl", f"trl @ git+https://github.com/huggingface/trl@{'c' * 40}"),
        ("-e git+https://github.com/huggingface/trl@abc#egg=trl", f"-e git+https://github.com/huggingface/trl@{'c' * 40}#egg=trl"),
    ],
)  # fmt: skip
def test_a_commit(edited: Edited, line: str, expected: str) -> None:
    change = Change("trl", "0.12", "0.13.0.dev0", COMMIT)
    assert edited("requirements.txt", f"a==1\n{line}\n", change) == f"a==1\n{expected}\n"


def test_line_ends_a_mark_and_a_missing_last_line_end_stay(edited: Edited) -> None:
    assert edited("requirements.txt", "\ufeffa==1\r\ntorch==2.5.1\r\nb==2", TORCH) == "\ufeffa==1\r\ntorch==2.6.0\r\nb==2"
    added = Change("tokenizers", None, "0.21")
    assert edited("requirements.txt", "a==1\r\nb==2", added) == "a==1\r\nb==2\r\ntokenizers==0.21"
    assert edited("requirements.txt", "a==1\r\n", added) == "a==1\r\ntokenizers==0.21\r\n"


def test_other_encodings(edited: Edited) -> None:
    latin = "# -*- coding: latin-1 -*-\n# caf\u00e9\ntorch==2.5.1\n".encode("latin-1")
    with pytest.raises(UnicodeDecodeError):  # it is still latin-1
        edited("requirements.txt", latin, TORCH)
    (edit,) = edits_for("requirements.txt", [TORCH])
    assert edit.after == latin.replace(b"2.5.1", b"2.6.0")


HASHED = """\
a==1 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
    # via x
torch==2.5.1 ; os_name == 'posix' \\
    --hash=sha256:cc
    # via y
"""


def test_hashes_are_those_of_the_new_release(edited: Edited) -> None:
    new = edited("requirements.txt", HASHED, Change("torch", "2.5.1", "2.6.0", hashes=HASHES))
    listed = f"    --hash={HASHES[0]} \\\n    --hash={HASHES[1]}"
    assert new == HASHED.replace("2.5.1", "2.6.0").replace("    --hash=sha256:cc", listed)
    new = edited("requirements.txt", HASHED, Change("b", None, "3", hashes=HASHES))
    assert new == f"{HASHED}b==3 \\\n{listed}\n"
    assert edited("requirements.txt", HASHED, Change("torch", "2.5.1", None)) == HASHED[: HASHED.index("torch")]


@pytest.mark.parametrize("change", [TORCH, Change("torch", "2.5.1", "2.6.0", COMMIT, HASHES)])
def test_a_file_of_hashes_takes_nothing_without(edited: Edited, change: Change) -> None:
    with pytest.raises(InputError, match=r"requirements\.txt:5: every requirement in this file has hashes"):
        edited("requirements.txt", HASHED, change)


def test_a_name_that_depends_on_a_variable_may_be_the_changed_one(edited: Edited) -> None:
    assert edited("requirements.txt", "torch==2.5.1\n${EXTRA}\n", TORCH) == "torch==2.6.0\n${EXTRA}\n"
    with pytest.raises(InputError, match=r"cannot tell whether trl is listed: requirements\.txt:2: \$\{EXTRA\} was not read"):
        edited("requirements.txt", "torch==2.5.1\n${EXTRA}\n", Change("trl", None, "0.13", direct=True))


def test_a_frozen_editable_is_not_listed_twice(edited: Edited) -> None:
    text = "a==1\n# Editable install with no version control (trl==0.12)\n-e /src/trl\n"
    with pytest.raises(InputError, match=r"requirements\.txt:3: trl is installed from /src/trl, which is not replaced"):
        edited("requirements.txt", text, Change("trl", "0.12", "0.13"))


def test_the_line_changes_in_the_file_where_it_stands(edited: Edited) -> None:
    files = {"base/pins.txt": "torch==2.5.1\n", "limits.txt": "vllm<0.8\ntorch<2.6\n"}
    text = "-r base/pins.txt\n-c limits.txt\nvllm\n"
    changes = (TORCH, Change("vllm", "0.7.1", "0.8.0"))
    assert edited("requirements.txt", text, *changes, **files) == text.replace("vllm\n", "vllm==0.8.0\n")
    assert edited("requirements.txt", text, *changes, of="base/pins.txt", **files) == "torch==2.6.0\n"
    assert edited("requirements.txt", text, *changes, of="limits.txt", **files) == "vllm<=0.8.0\ntorch<=2.6.0\n"


def test_a_pin_in_the_constraints_moves_and_the_requirement_stays(edited: Edited) -> None:
    text = "torch>=2.4\n-c limits.txt\n"
    assert edited("requirements.txt", text, TORCH, **{"limits.txt": "torch==2.5.1\n"}) == text
    assert edited("requirements.txt", text, TORCH, of="limits.txt", **{"limits.txt": "torch==2.5.1\n"}) == "torch==2.6.0\n"


def test_only_the_pin_of_the_version_before_moves(edited: Edited) -> None:
    text = "torch==2.5.1+cpu ; sys_platform=='darwin'\ntorch==2.5.1+cu121 ; sys_platform=='linux'\n"
    new = edited("requirements.txt", text, Change("torch", "2.5.1+cu121", "2.6.0+cu128"))
    assert new == text.replace("2.5.1+cu121", "2.6.0+cu128")
    with pytest.raises(InputError, match=r"requirements\.txt:1: torch is pinned to 2\.5\.1\+cpu on line 1, 2\.5\.1\+cu121 on"):
        edited("requirements.txt", text, Change("torch", "2.3.0", "2.6.0"))
    with pytest.raises(InputError, match=r"requirements\.txt:1: torch is pinned to 2\.5\.1 on line 1, not to 2\.3\.0"):
        edited("requirements.txt", "torch==2.5.1\n", Change("torch", "2.3.0", "2.6.0"))


def test_a_range_for_another_python_stays(edited: Edited) -> None:
    text = "transformers<=4.50; python_version < '3.10'\ntransformers>=4.51; python_version >= '3.10'\n"
    new = edited("requirements.txt", text, Change("transformers", "4.53.3", "4.57.6"))
    assert new == text.replace(">=4.51", "==4.57.6")


def test_a_package_that_is_not_named(edited: Edited) -> None:
    change = Change("tokenizers", "0.20", "0.21", why="transformers 4.57\nneeds it")
    assert edited("requirements.txt", "a==1\nb==2\n", change) == "a==1\nb==2\ntokenizers==0.21\n"
    assert edited("requirements.txt", "a\nb==2\n", change) == "a\nb==2\ntokenizers==0.21  # transformers 4.57 needs it\n"
    implied = Change("tokenizers", "0.20", "0.21", implied=True)
    assert edited("requirements.txt", "a\n", implied) == "a\n"
    assert edited("requirements.txt", "a==1\n", implied) == "a==1\ntokenizers==0.21\n"
    assert edited("requirements.txt", "a\n", Change("tokenizers", "0.20", None)) == "a\n"
    assert edited("requirements.in", "a\n", change, **{"requirements.txt": "a==1\n"}) == "a\n"


def test_the_vendors_index(edited: Edited) -> None:
    change = Change("torch", "2.5.1", "2.6.0+cu128", VENDOR)
    option = "--extra-index-url https://download.pytorch.org/whl/"
    assert edited("requirements.txt", "# c\n\ntorch==2.5.1\n", change) == f"# c\n\n{option}cu128\ntorch==2.6.0+cu128\n"
    assert edited("requirements.txt", f"{option}cu121\ntorch==2.5.1\n", change) == f"{option}cu128\ntorch==2.6.0+cu128\n"
    text = f"{option}cu128/\ntorch==2.5.1\n"
    assert edited("requirements.txt", text, change) == text.replace("2.5.1", "2.6.0+cu128")
    kept = f"{option}cu121\ntorch==2.5.1\nxformers==1+cu121\n"
    new = edited("requirements.txt", kept, change)
    assert new == f"{option}cu128\n{kept.replace('2.5.1', '2.6.0+cu128')}"


def test_the_index_of_the_default_build_is_named_only_in_place_of_another_one_of_that_vendor(edited: Edited) -> None:
    vendor = "--extra-index-url https://download.pytorch.org/whl/"
    change = Change("torch", "2.5.1", "2.8.0", default_index="https://download.pytorch.org/whl/cu128")
    text = f"{vendor}cu121\ntorch==2.5.1\n"
    assert edited("requirements.txt", text, change) == f"{vendor}cu128\ntorch==2.8.0\n"
    for other in ("", f"{vendor}cu128\n", f"{vendor}cu121\nxformers==1+cu121\n", "--extra-index-url https://x.example/cu121\n"):
        assert edited("requirements.txt", f"{other}torch==2.5.1\n", change) == f"{other}torch==2.8.0\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\ntorch==${TORCH}\n", "requirements.txt:2: the version of torch depends on a variable"),
        ("torch @ ./torch-2.5.1.tar.gz\n", "requirements.txt:1: torch is installed from ./torch-2.5.1.tar.gz"),
        ("-r ../outside.txt\n", "requirements.txt: cannot tell whether torch is listed"),
        ("a = b\n", "requirements.txt:1: expected a requirement"),
    ],
)
def test_what_cannot_be_written_safely(edited: Edited, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        edited("requirements.txt", text, TORCH)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "change",
    [
        Change("torch", "1", "2; rm -rf"), Change("Torch", "1", "2"), Change("torch", "1", "2", hashes=("x y",)),
        Change("torch", "1", "2", Source("vcs", {"url": "https://x/`y`", "commit": "a"})), Change("torch", "1", "2", Source("directory")),
        Change("torch", "1", "2", Source("vcs", {"url": "https://x/y", "commit": "a b"})), Change("torch", "1", "2", Source("url")),
    ],
)  # fmt: skip
def test_what_an_index_says_is_not_trusted(edited: Edited, change: Change) -> None:
    with pytest.raises(InputError, match=r"orch: |normalised name"):
        edited("requirements.txt", "torch==1\n", change)


def test_no_change_is_no_edit(edited: Edited) -> None:
    text = "torch==2.5.1\nnumpy>=1\n"
    assert edited("requirements.txt", text, Change("torch", "2.5.1", "2.5.1")) == text
    assert edits_for("requirements.txt", []) == ()
    assert edits_for("requirements.txt", [Change("torch", "2.4", "2.5.1")]) == ()


def test_the_reason_of_an_addition_is_as_short_as_its_first_statement(edited: Edited) -> None:
    why = f"import pyarrow fails ({'a' * 60}); import datasets fails ({'b' * 60}); c"
    new = edited("requirements.txt", "torch\n", Change("pyarrow", None, "20.0.0", why=why))
    assert new == f"torch\npyarrow==20.0.0  # import pyarrow fails ({'a' * 60})\n"
