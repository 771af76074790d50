"""Dockerfiles and shell scripts: the words of install commands change where they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.errors import InputError
from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import edits_for
from compat.formats.registry import read_listings
from compat.model import Source
from tests.formats.edit.conftest import COMMIT, VENDOR, Edited

TORCH = Change("torch", "2.5.1", "2.6.0")
CUDA = Change("torch", "2.5.1", "2.6.0+cu128", VENDOR)
VLLM = Change("vllm", "0.7.1", "0.8.0")
DOCKERFILE = """\
# syntax=docker/dockerfile:1
FROM python:3.11
RUN apt-get update && apt-get install -y git \\
    # a comment in between
    && pip install --no-cache-dir 'torch==2.5.1' "vllm>=0.7, <0.8" \\
       transformers[torch]==4.51.3 \\
       --index-url https://download.pytorch.org/whl/cu121 && rm -rf /tmp/*
CMD ["python", "train.py"]
"""


def test_words_of_a_run(edited: Edited) -> None:
    new = edited("Dockerfile", DOCKERFILE, TORCH, VLLM, Change("transformers", "4.51.3", "4.57.6"))
    expected = DOCKERFILE.replace("'torch==2.5.1'", "'torch==2.6.0'").replace('"vllm>=0.7, <0.8"', '"vllm==0.8.0"')
    assert new == expected.replace("transformers[torch]==4.51.3", '"transformers[torch]==4.57.6"')
    crlf = DOCKERFILE.replace("\n", "\r\n")
    assert edited("Dockerfile", crlf, TORCH) == crlf.replace("torch==2.5.1'", "torch==2.6.0'")


@pytest.mark.parametrize("program", ["ssh host", "docker run image", "echo"])
def test_a_script_for_another_machine_is_left_alone(program: str, edited: Edited) -> None:
    other = f"{program} bash -c 'pip install torch==2.5.1'\n"
    assert edited("setup.sh", f"pip install torch==2.5.1\n{other}", TORCH) == f"pip install torch==2.6.0\n{other}"


@pytest.mark.parametrize(
    ("name", "text", "added"),
    [
        ("a.sh", "pip install {} && python train.py\n", " --no-build-isolation"),
        ("Dockerfile", "FROM x\nRUN uv pip install --system {}\n", " --no-build-isolation"),
        ("Dockerfile", "FROM x\nRUN pip install --no-build-isolation {}\n", ""),
    ],
)
def test_a_release_that_is_compiled_in_place_of_a_wheel_sees_the_installed_torch(
    name: str, text: str, added: str, edited: Edited
) -> None:
    wheel = "https://host.example/v2.5.8/flash_attn-2.5.8+cu122torch2.3cxx11abiFALSE-cp310-cp310-linux_x86_64.whl"
    flash = Change("flash-attn", "2.5.8+cu122torch2.3cxx11abiFALSE", "2.8.3", before_source=Source("url", {"url": wheel}))
    assert edited(name, text.format(wheel), flash) == text.format(f"flash-attn==2.8.3{added}")


def test_constraints_that_a_command_writes_are_named_with_their_line(tmp_path: Path) -> None:
    """The file that a here-document becomes exists only in the image."""
    path = tmp_path / "Dockerfile"
    path.write_text("FROM x\nRUN cat > /c.txt <<EOF\nnumpy<2\ntorch==2.5.1\nEOF\nRUN pip install -c /c.txt torch vllm==0.7.1\n")
    (listing,) = read_listings(str(path))
    assert next(each.distribution.extra for each in listing.entries) == {"constraint": f"{path}:4"}
    with pytest.raises(InputError, match=r"Dockerfile:4: a command writes this constraint on torch to a file: change it here"):
        edits_for(str(path), [TORCH, VLLM])
    (edit,) = edits_for(str(path), [VLLM])
    assert edit.after.endswith(b"torch vllm==0.8.0\n")


def test_a_line_for_each_python_keeps_it(edited: Edited) -> None:
    wheel = "https://host.example/v{0}/flash_attn-{0}+cu12torch{1}cxx11abiTRUE-cp3{2}-cp3{2}-linux_x86_64.whl"
    lines = "".join(f'{wheel.format("{0}", "{1}", each)} ; python_version == "3.{each}"\n' for each in (11, 12))
    before = Source("url", {"url": wheel.format("2.8.2", "2.7", 12)})
    after = Source("url", {"url": wheel.format("2.8.3", "2.8", 12)})
    flash = Change(
        "flash-attn", "2.8.2+cu12torch2.7cxx11abiTRUE", "2.8.3+cu12torch2.8cxx11abiTRUE", after, before_source=before
    )
    assert edited("requirements.txt", lines.format("2.8.2", "2.7"), flash) == lines.format("2.8.3", "2.8")


def test_a_redirection_is_no_requirement(edited: Edited) -> None:
    text = "pip install torch==2.5.1 2>&1 | tee log\nuv pip uninstall xformers 2>/dev/null\n"
    assert edited("setup.sh", text, TORCH) == text.replace("2.5.1", "2.6.0")
    added = edited("setup.sh", text, Change("trl", None, "0.16.0"))
    assert added == text.replace("torch==2.5.1", 'torch==2.5.1 "trl==0.16.0"')


def test_a_requirement_is_added_where_what_needs_it_is_installed(edited: Edited) -> None:
    """On a line of its own among others, and not where one index alone is asked."""
    text = "FROM x\nRUN pip install torch==2.5.1 -i https://index.example/cu121\nRUN pip install \\\n    gradio==5.4.0 \\\n    av\n"
    text += "RUN pip install vllm==0.7.1\n"
    hub = Change(
        "huggingface-hub", "2.0.0", "0.36.2", why="gradio 5.4.0 imports huggingface_hub.HfFolder, which 2.0.0 does not have"
    )
    expected = text.replace("2.5.1", "2.6.0").replace("    av\n", '    av \\\n    "huggingface-hub==0.36.2"\n')
    assert edited("Dockerfile", text, TORCH, hub) == expected
    other = Change("numpy", None, "1.26.4", why="This torch cannot use numpy 2")
    assert edited("Dockerfile", text, TORCH, other).endswith('RUN pip install vllm==0.7.1 "numpy==1.26.4"\n')


def test_a_line_after_an_open_quote_is_edited(edited: Edited) -> None:
    text = "echo it's\npip install torch==2.5.1\n"
    assert edited("setup.sh", text, TORCH) == text.replace("2.5.1", "2.6.0")


def test_a_part_of_a_variable_becomes_literal(edited: Edited) -> None:
    text = "V=2.5.1+cu121\npip install torch==${V%+*}\n"
    assert edited("setup.sh", text, TORCH) == text.replace("${V%+*}", "2.6.0")
    nested = "pip install torch==${V:-${W:-2.5.1}}\n"
    assert edited("setup.sh", nested, TORCH) == "pip install torch==2.6.0\n"


def test_the_index_of_the_command(edited: Edited) -> None:
    new = edited("Dockerfile", DOCKERFILE, CUDA)
    assert new == DOCKERFILE.replace("torch==2.5.1", "torch==2.6.0+cu128").replace("whl/cu121", "whl/cu128")
    default = Change("torch", "2.5.1", "2.8.0", default_index="https://download.pytorch.org/whl/cu128")
    assert edited("Dockerfile", DOCKERFILE, default) == new.replace("2.6.0+cu128", "2.8.0")
    bare = "FROM x\nRUN pip install torch==2.5.1 -q\n"
    assert edited("Dockerfile", bare, default) == bare.replace("2.5.1", "2.8.0")
    option = "--extra-index-url https://download.pytorch.org/whl/cu128"
    assert edited("Dockerfile", bare, CUDA) == f"FROM x\nRUN pip install torch==2.6.0+cu128 {option} -q\n"
    backend = "FROM x\nRUN uv pip install torch==2.5.1 --torch-backend=cu121\n"
    assert edited("Dockerfile", backend, CUDA) == backend.replace("2.5.1", "2.6.0+cu128").replace("cu121", "cu128")


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("ARG V=2.5.1\nFROM x\nARG V\nRUN pip install torch==${V}\n", "V=2.5.1", "V=2.6.0"),
        ('FROM x\nENV A=1 V="2.5.1"\nRUN pip install "torch==$V"\n', 'V="2.5.1"', 'V="2.6.0"'),
        ("FROM x\nENV V 2.5.1\nRUN pip install torch==$V\n", "V 2.5.1", "V 2.6.0"),
        ("FROM x\nRUN pip install torch==${V:-2.5.1}\n", ":-2.5.1", ":-2.6.0"),
        ("FROM x\nRUN V=2.5.1 && pip install torch==$V\n", "V=2.5.1", "V=2.6.0"),
        ("FROM x\nARG V=2.5\nRUN pip install torch==$V.1\n", "$V.1", "2.6.0"),
        ("FROM x\nARG V=2.5.1\nRUN pip install torch==$V torchaudio==$V\n", "torch==$V ", "torch==2.6.0 "),
        ('FROM x\nRUN ["pip", "install", "torch==2.5.1", "b"]\n', "torch==2.5.1", "torch==2.6.0"),
        ("FROM x\nRUN <<EOF\nset -e\npip install torch==2.5.1\nEOF\n", "2.5.1", "2.6.0"),
        ("FROM x\nRUN <<-EOF bash\n\tpip install torch==2.5.1\n\tEOF\n", "2.5.1", "2.6.0"),
        ("FROM x\nRUN bash -lc 'pip install torch==2.5.1 && true'\n", "2.5.1", "2.6.0"),
        ("FROM x\nRUN bash -c \"pip install \\\n  torch==2.5.1\"\n", "2.5.1", "2.6.0"),
        ("FROM x\nRUN pip install torch==2.5.1 && python - <<'PY'\nimport torch\nPY\n", "2.5.1", "2.6.0"),
        ("FROM x\nRUN sh -c \"pip install torch[a]==2.5.1 b\"\n", "torch[a]==2.5.1", "'torch[a]==2.6.0'"),
        ("FROM a AS b\nRUN pip install torch==2.4\nFROM c\nRUN pip install torch==2.5.1\n", "2.5.1", "2.6.0"),
        ("# escape=`\nFROM x\nRUN pip install `\n  torch==2.5.1\n", "2.5.1", "2.6.0"),
        ("FROM x\nRUN pip install git+https://github.com/pytorch/torch@v2.5.1\n", "git+https://github.com/pytorch/torch@v2.5.1", "torch==2.6.0"),
        ("FROM x\nRUN pip install -e git+https://github.com/pytorch/torch@v2#egg=torch b\n", "-e git+https://github.com/pytorch/torch@v2#egg=torch", "torch==2.6.0"),
        ("FROM x\nRUN conda install -y pytorch=2.5.1 -c pytorch\n", "pytorch=2.5.1", "pytorch=2.6.0"),
        ("FROM x\nRUN poetry add torch@2.5.1\n", "2.5.1", "2.6.0"),
        ("FROM x\nRUN LOG=$(cd /app && pip install \\\n  torch==2.5.1 2>&1) && echo $LOG\n", "2.5.1", "2.6.0"),
        ("FROM x\nRUN echo \"$(pip install torch==2.5.1)\" '$(pip install torch==2.4.1)'\n", "2.5.1", "2.6.0"),
        ("FROM x\nRUN A=`pip install torch==2.5.1`\n", "2.5.1", "2.6.0"),
        ("FROM x\nRUN uv run --with torch==2.5.1 x.py\n", "2.5.1", "2.6.0"),
        ("FROM x\nRUN pip install --no-binary torch torch==2.5.1\n", "2.5.1", "2.6.0"),
    ],
)  # fmt: skip
def test_each_form(edited: Edited, text: str, old: str, new: str) -> None:
    assert text.count(old) == 1
    assert edited("Dockerfile", text, TORCH) == text.replace(old, new)


def test_a_variable_for_all_that_move_together(edited: Edited) -> None:
    text = "FROM x\nARG V=2.5.1\nRUN pip install torch==$V torchaudio==$V\n"
    assert edited("Dockerfile", text, TORCH, Change("torchaudio", "2.5.1", "2.6.0")) == text.replace("2.5.1", "2.6.0")


def test_what_a_base_image_brings(edited: Edited) -> None:
    text = "FROM pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime\nRUN pip install vllm==0.7.1\n"
    assert edited("Dockerfile", text, TORCH) == text.replace("vllm==0.7.1", 'vllm==0.7.1 "torch==2.6.0"')


def test_a_file_that_is_written_within_is_not_guessed_at(edited: Edited) -> None:
    text = "FROM x\nCOPY <<EOF /r.txt\ntorch==2.5.1\nEOF\nRUN pip install -r /r.txt && pip install b\n"
    with pytest.raises(InputError, match=r"Dockerfile:3: torch is installed here in a way"):
        edited("Dockerfile", text, TORCH)


def test_files_of_the_build_context(edited: Edited) -> None:
    text = "FROM x\nCOPY requirements.txt .\nRUN pip install -r requirements.txt && pip install vllm==0.7.1\n"
    files = {"requirements.txt": "torch==2.5.1\n"}
    assert edited("Dockerfile", text, TORCH, VLLM, **files) == text.replace("0.7.1", "0.8.0")
    assert edited("Dockerfile", text, TORCH, VLLM, of="requirements.txt", **files) == "torch==2.6.0\n"
    only = "FROM x\nCOPY requirements.txt .\nRUN pip install -r requirements.txt\n"
    new = edited("Dockerfile", only, Change("b", None, "1"), of="requirements.txt", **files)
    assert new == "torch==2.5.1\nb==1\n"


def test_what_is_not_named_and_what_goes(edited: Edited) -> None:
    text = 'FROM x\nRUN pip install \\\n    torch==2.5.1 \\\n    "vllm==0.7.1" \\\n    -q\n'
    assert (
        edited("Dockerfile", text, TORCH, Change("vllm", "0.7.1", None))
        == "FROM x\nRUN pip install \\\n    torch==2.6.0 \\\n    -q\n"
    )
    new = edited("Dockerfile", text, Change("trl", None, "0.13", COMMIT))
    assert f'"vllm==0.7.1" \\\n    "trl @ git+https://github.com/huggingface/trl@{"c" * 40}" \\\n' in new
    assert edited("Dockerfile", text, Change("trl", "1", "2", implied=True)) == text


SCRIPT = """\
#!/bin/bash
export TORCH="2.5.1"  # pinned
if [ -n "$CUDA" ]; then
  uv pip install "torch==${TORCH}+cu121" trl==0.12
else
  pip install torch==2.4.0 && echo 'pip install torch==2.5.1+cu121'
fi
cat <<EOF
pip install torch==2.5.1+cu121
EOF
"""


def test_a_script(edited: Edited) -> None:
    new = edited("setup.sh", SCRIPT, Change("torch", "2.5.1+cu121", "2.6.0+cu121"), Change("trl", "0.12", "0.13"))
    assert new == SCRIPT.replace('TORCH="2.5.1"', 'TORCH="2.6.0"').replace("trl==0.12", "trl==0.13")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("V=$(cat version)\npip install torch==$V\n", "setup.sh:2: the version of torch is only known when the script runs"),
        ("pip install torch==`cat v`\n", "setup.sh:1: the version of torch is only known when the script runs"),
        ('P="torch==2.5.1 b"\npip install $P\n', "setup.sh:2: torch is installed here in a way"),
        ("echo hello\n", "setup.sh: torch is not listed here"),
        ("conda install pytorch=2.5.1\n", ""),
    ],
)
def test_what_cannot_be_written_safely(edited: Edited, text: str, message: str) -> None:
    change = TORCH if message else Change("torch", "2.5.1", "2.6.0", Source("vcs", {"url": "https://x.org/y", "commit": "a"}))
    with pytest.raises(InputError) as caught:
        edited("setup.sh", text, change)
    assert str(caught.value).startswith(message or "setup.sh:1: torch comes from conda, but")


def test_all_that_a_command_installs_is_not_taken_away(edited: Edited) -> None:
    with pytest.raises(InputError, match=r"Dockerfile:2: torch is all this command installs"):
        edited("Dockerfile", "FROM x\nRUN pip install torch==2.5.1\n", Change("torch", "2.5.1", None))


def test_a_kind_that_is_not_edited(edited: Edited) -> None:
    with pytest.raises(InputError, match="cannot be edited: change"):
        edited("compose.yml", "services: {}\n", TORCH)


def test_a_notebook_without_an_install_command(edited: Edited) -> None:
    with pytest.raises(InputError, match="torch is not listed here, and there is no pip install to add it to"):
        edited("a.ipynb", '{"cells": [], "nbformat": 4}', TORCH)


def test_a_range_in_a_file_that_is_installed_as_well_does_not_undo_a_pin(tmp_path: Path) -> None:
    """The pin in the Dockerfile satisfies the range today; installers would go back for it tomorrow."""
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("torch>=2.0,<=2.5.1  # tested\neinops\n")
    dockerfile = tmp_path / "Dockerfile"
    dockerfile.write_text(
        "FROM x\nARG TORCH=2.5.1\nRUN pip install torch==${TORCH}\nCOPY . .\nRUN pip install -r requirements.txt\n"
    )
    edits = {Path(each.path).name: each.after.decode() for each in edits_for(str(dockerfile), [TORCH])}
    assert edits == {
        "Dockerfile": dockerfile.read_text().replace("2.5.1", "2.6.0"),
        "requirements.txt": "torch==2.6.0  # tested\neinops\n",
    }
