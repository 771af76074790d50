"""One requirement: pins, ranges, addresses and paths."""

from __future__ import annotations

import subprocess
import sys

import pytest

from compat.formats.requirements.requirement import INDEX, Unnamed, name_at_start, parse_editable, parse_requirement
from compat.model import Distribution
from tests.conftest import ROOT

WHEEL = "https://host.example/w/flash_attn-2.7.4.post1+cu12torch2.6cxx11abifalse-cp311-cp311-linux_x86_64.whl"
COMMIT = "0B62b4378b4ce9367932c73540349da9a41bdea8"


@pytest.mark.parametrize(
    ("text", "version", "specifier"),
    [
        ("torch==2.6.0", "2.6.0", None),
        ("torch == 2.6.0+cu124", "2.6.0+cu124", None),
        ("torch===2.6.0", "2.6.0", None),
        ("torch (==2.6.0)", "2.6.0", None),
        ("torch", None, None),
        ("torch == 2.10.0.*", None, "==2.10.0.*"),
        ("torch >= 2.4 , <3", None, ">=2.4,<3"),
        ("torch~=2.4.1", None, "~=2.4.1"),
        ("torch==2.6.0,!=2.6.1", None, "==2.6.0,!=2.6.1"),
        ("torch==v2.6.0", "v2.6.0", None),
    ],
)
def test_a_pin_is_a_version_and_everything_else_a_range(text: str, version: str | None, specifier: str | None) -> None:
    assert parse_requirement(text) == Distribution("torch", version, INDEX, None, specifier)


def test_names_extras_and_markers_are_normalised() -> None:
    found = parse_requirement("Ray[Serve_Grpc, default]>=2.10 ; python_version < '3.12' and (os_name=='nt')")
    assert (found.name, found.specifier, dict(found.extra)) == ("ray", ">=2.10", {"extras": ["default", "serve-grpc"]})
    assert found.marker == 'python_version < "3.12" and os_name == "nt"'


def test_a_development_version_comes_from_no_release_index() -> None:
    found = parse_requirement("torch==2.8.0.dev20250601+cu128")
    assert found.source is not None
    assert found.source.kind == "nightly"


@pytest.mark.parametrize(
    "text", [f"Flash_Attn @ {WHEEL}", WHEEL, WHEEL.replace("+", "%2B"), WHEEL.replace("https://host.example", ".")]
)
def test_a_wheel_tells_name_and_version(text: str) -> None:
    found = parse_requirement(text)
    assert (found.name, found.version) == ("flash-attn", "2.7.4.post1+cu12torch2.6cxx11abifalse")
    assert found.source is not None
    assert found.source.kind == "url"


def test_a_wheel_of_another_name_tells_no_version() -> None:
    assert parse_requirement(f"torch @ {WHEEL}").version is None


@pytest.mark.parametrize("mark", [" ; ", "; "])
def test_a_marker_behind_an_address(mark: str) -> None:
    """pip takes a semicolon that touches the address; real projects rely on it."""
    found = parse_requirement(f"dion @ git+https://github.com/o/dion.git{mark}sys_platform == 'linux'")
    assert found.marker == 'sys_platform == "linux"'
    assert found.source is not None
    assert dict(found.source.details) == {"url": "https://github.com/o/dion.git"}


@pytest.mark.parametrize(
    ("text", "name", "details"),
    [
        (f"git+https://github.com/o/peft@{COMMIT}#egg=peft", "peft", {"url": "https://github.com/o/peft", "commit": COMMIT.lower()}),
        (
            "git+ssh://github.com/o/n.git@v1.2#egg=Some_Name[a]&subdirectory=python", "some-name",
            {"url": "ssh://github.com/o/n.git", "requested_revision": "v1.2", "subdirectory": "python"},
        ),
        ("git+https://user:secret@github.com/o/Transformers.git", "transformers", {"url": "https://github.com/o/Transformers.git"}),
        ("git+git@github.com:o/trl.git@main", "trl", {"url": "git@github.com:o/trl.git", "requested_revision": "main"}),
    ],
)  # fmt: skip
def test_repositories(text: str, name: str, details: dict[str, str]) -> None:
    found = parse_requirement(text)
    assert (found.name, found.version) == (name, None)
    assert found.source is not None
    assert (found.source.kind, {**found.source.details}) == ("vcs", details)


@pytest.mark.parametrize(
    ("text", "name", "version"),
    [
        ("./dist/Some_Thing-1.0.tar.gz", "some-thing", "1.0"),
        ("https://github.com/o/trl/archive/refs/heads/main.zip", "trl", None),
        ("numpy @ file:///croot/numpy_1682520569166/work", "numpy", None),
    ],
)
def test_archives(text: str, name: str, version: str | None) -> None:
    found = parse_requirement(text)
    assert (found.name, found.version) == (name, version)


def test_what_conda_built_comes_from_conda() -> None:
    source = parse_requirement("numpy @ file:///croot/numpy_1682520569166/work").source
    assert source is not None
    assert source.kind == "conda"


@pytest.mark.parametrize(
    "text",
    [
        ".",
        ".[train]",
        "./project ; os_name == 'nt'",
        "/srv/project",
        "file:///srv/project",
        "git+https://h.example/o/n#subdirectory=p",
        "https://h.example/o_wave-nightly-py3-none-any.whl",
        "https://h.example/x",
    ],
)
def test_what_does_not_tell_its_name(text: str) -> None:
    with pytest.raises(Unnamed) as caught:
        parse_requirement(text)
    assert caught.value.source is not None
    assert caught.value.source.kind in ("directory", "vcs", "url")


@pytest.mark.parametrize(
    "text",
    [
        "", "-e .", "torch 2.6", "torch=2.6", "torch>=2.0.*", "torch==", "torch @", "torch ;", "torch ; nonsense", "torch[a", "torch[a b]", "<<<<<<< HEAD",
        "=======", ">>>>>>> origin/main", "a @ b c", "é", "torch==1.0\0", "torch ; " + "(" * 5000, "a" * 100_000, "x===not-a-version!", "\ud800",
    ],
)  # fmt: skip
def test_what_is_no_requirement_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S") as caught:
        parse_requirement(text)
    assert not isinstance(caught.value, Unnamed)
    assert len(str(caught.value)) < 200


def test_editable() -> None:
    found = parse_editable("git+https://github.com/o/trl@main#egg=trl")
    assert found.name == "trl"
    assert found.source is not None
    assert found.source.details["editable"] is True
    with pytest.raises(Unnamed) as caught:
        parse_editable(".[dev]")
    assert caught.value.source is not None
    assert caught.value.source.details == {"path": ".", "editable": True}
    for folder in ("project", "a project/with blanks", "./\x1b"):
        with pytest.raises(Unnamed):
            parse_editable(folder)
    with pytest.raises(ValueError, match="neither a directory nor a repository"):
        parse_editable("torch==2.6.0")


def test_name_at_start() -> None:
    assert name_at_start("Torch_Audio==${V}") == "torch-audio"
    assert name_at_start("${V}") is None


def test_the_usual_forms_are_read_without_packaging() -> None:
    lines = [
        "torch==2.6.0",
        "a>=1,<2",
        "ray[default]~=2.10",
        "b==1.*",
        f"c @ {WHEEL}",
        "git+https://github.com/o/n@main",
        "d==1.0rc1.post2+cu1",
    ]
    code = f"import sys\nfrom compat.formats.requirements.requirement import parse_requirement\nfor line in {lines!r}: parse_requirement(line)\n"
    code += "print([name for name in ('packaging', 'json', 'dataclasses') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_table_of_pip_list_has_an_option_of_its_own() -> None:
    with pytest.raises(ValueError, match="to check the output of 'pip list', pass the file with --pasted"):
        parse_requirement("Package    Version")
