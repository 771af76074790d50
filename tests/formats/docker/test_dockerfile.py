"""Dockerfiles → listings: stages, variables, base images, install commands, files of the build context, workload."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compat.errors import InputError
from compat.formats.docker.dockerfile import read_dockerfile
from compat.formats.listing import Listing
from compat.formats.registry import PROGRAMS
from compat.model import Source
from tests.formats.listings import lines, pins


def read(text: str, path: str = "/nonexistent/Dockerfile", **options: object) -> Listing:
    (found,) = read_dockerfile(path, text, **options)  # type: ignore[arg-type]
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "app"\nversion = "1"\ndependencies = ["trl==0.17.0"]\n'
        '[project.optional-dependencies]\nserve = ["vllm==0.8.5"]\n'
    )
    (tmp_path / "requirements.txt").write_text("# pins\ntorch==2.6.0\naccelerate\n")
    (tmp_path / "pins.txt").write_text("accelerate==1.6.0\n")
    (tmp_path / "docker").mkdir()
    return tmp_path


def built(project: Path, text: str, name: str = "Dockerfile") -> Listing:
    return read(text, str(project / name))


def test_installs_with_the_line_they_stand_on() -> None:
    listing = read(
        "FROM ubuntu:22.04\n"
        "RUN apt-get update && \\\n"
        "    # a comment\n"
        "    pip install \\\n"
        "        torch==2.6.0 \\\n"
        "        'trl>=0.16' && \\\n"
        "    pip uninstall -y einops && pip install vllm==0.8.5\n"
    )
    assert pins(listing) == {"torch": "2.6.0", "trl": ">=0.16", "vllm": "0.8.5"}
    assert lines(listing) == {"torch": 5, "trl": 6, "vllm": 7}
    assert (listing.kind, listing.complete, listing.edges, listing.label) == ("dockerfile", False, None, None)


@pytest.mark.parametrize(
    "run",
    [
        'RUN ["pip", "install", "torch==2.6.0"]',
        'RUN ["/bin/bash", "-c", "pip install torch==2.6.0"]',
        "RUN bash -lc 'source /opt/env && pip install torch==2.6.0'",
        "RUN <<EOF\nset -e\npip install torch==2.6.0\nEOF",
        "RUN bash -ex <<'EOF'\nexport V=2.6.0\npip install torch==${V}\nEOF",
        "RUN --mount=type=cache,target=/root/.cache --network=default pip install torch==2.6.0",
        "RUN if [ -n \"$X\" ]; then pip install torch==2.6.0; fi",
        "RUN V=2.6.0 && pip install torch==$V",
        "RUN (cd /app; true) && sudo pip install torch==2.6.0 || exit 1",
    ],
)  # fmt: skip
def test_forms_of_run(run: str) -> None:
    assert pins(read(f"FROM ubuntu\n{run}\n")) == {"torch": "2.6.0"}


@pytest.mark.parametrize(
    "run", ["RUN cat <<EOF > install.txt\npip install torch\nEOF", "RUN <<EOF\n#!/usr/bin/env python3\npip = 'pip install a'\nEOF",
            "RUN echo 'pip install torch'", "# RUN pip install torch"],
)  # fmt: skip
def test_text_that_is_not_run(run: str) -> None:
    assert read(f"FROM ubuntu\n{run}\n").entries == ()


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("FROM a\nARG V=2.6.0\nRUN pip install torch==$V", "2.6.0"),
        ("ARG V=2.6.0\nFROM a\nRUN pip install torch==$V", None),
        ("ARG V=2.6.0\nFROM a\nARG V\nRUN pip install torch==${V}", "2.6.0"),
        ("ARG V=2.6.0\nFROM a\nARG V=2.5.1\nRUN pip install torch==${V}", "2.5.1"),
        ("FROM a\nARG V=2.5.1\nENV V=2.6.0\nRUN pip install torch==$V", "2.6.0"),
        ("FROM a\nENV M=2.6 V=${M:-1}.0\nRUN pip install torch==$V", "1.0"),  # an ENV does not see what it sets itself
        ("FROM a\nENV M=2.6\nENV V=${M}.0\nRUN pip install torch==$V", "2.6.0"),
        ("FROM a\nENV V 2.6.0\nRUN pip install torch==$V", "2.6.0"),
        ("FROM a\nRUN pip install torch==${V:-2.6.0}", "2.6.0"),
        ("FROM a\nARG V\nRUN pip install torch==$V", None),
        (
            "FROM a\nARG CUDA=12.4.1\nRUN pip install torch==2.6.0+cu$(echo) || pip install torch==2.6.0+cu${CUDA//./}",
            "2.6.0+cu1241",
        ),
    ],
)
def test_variables(text: str, version: str | None) -> None:
    assert pins(read(text + "\n")) == {"torch": version}


def test_build_arguments_and_target() -> None:
    text = "ARG V=1\nFROM a AS first\nARG V\nRUN pip install torch==$V\nFROM a AS second\nRUN pip install trl\n"
    assert pins(read(text, arguments={"V": "2.6.0"}, target="first")) == {"torch": "2.6.0"}
    with pytest.raises(InputError, match="third"):
        read(text, target="third")


def test_base_image_and_what_replaces_it() -> None:
    text = "ARG TAG=2.5.1-cuda12.4-cudnn9-devel\nFROM pytorch/pytorch:${TAG}\nRUN pip install trl\n"
    listing = read(text)
    assert pins(listing) == {"torch": "2.5.1", "torchvision": "0.20.1", "trl": None}
    image = listing.entries[0].distribution.source
    assert image == Source("image", {"image": "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-devel"})
    assert (listing.context.cuda_toolkit, listing.context.os, listing.entries[0].line) == ("12.4", "linux", 2)
    assert pins(read(text + "RUN pip install torch==2.6.0\n"))["torch"] == "2.6.0"


@pytest.mark.parametrize(
    ("command", "cuda"),
    [
        ("pip install torch==2.4.0 torchvision==0.19.0 torchaudio==2.4.0", "11.8"),
        (
            "pip install --index-url https://download.pytorch.org/whl/cu121 torch==2.4.0 torchvision==0.19.0 torchaudio==2.4.0",
            "11.8",
        ),
        ("pip install torch==2.4.1 torchvision==0.19.1 torchaudio==2.4.1", None),
        ("pip install torch==2.4.0+cu124 torchvision==0.19.0+cu124 torchaudio==2.4.0+cu124", None),
    ],
)
def test_a_pin_of_what_the_image_has_keeps_its_build(command: str, cuda: str | None) -> None:
    """An installer says that the requirement is satisfied, whatever index it is given."""
    listing = read(f"FROM pytorch/pytorch:2.4.0-cuda11.8-cudnn9-devel\nRUN {command}\n")
    copies = [entry.distribution for entry in listing.entries]
    assert {copy.name: copy.extra.get("cuda") for copy in copies} == dict.fromkeys(("torch", "torchvision", "torchaudio"), cuda)
    assert {copy.source.kind for copy in copies if copy.source is not None} == {"index"}
    assert {entry.line for entry in listing.entries} == {2}


def test_the_torchaudio_of_an_image_is_not_listed_but_kept() -> None:
    assert pins(read("FROM pytorch/pytorch:2.4.0-cuda11.8-cudnn9-devel\nRUN pip install torchaudio\n")) == {
        "torch": "2.4.0", "torchvision": "0.19.0",
    }  # fmt: skip


def test_stages_inherit_and_only_the_deployed_ones_are_listed() -> None:
    listings = read_dockerfile(
        "Dockerfile",
        "FROM python:3.11-slim-bookworm AS base\nENV HF_HOME=/data\nRUN pip install torch==2.6.0\n"
        "FROM base AS serve\nRUN pip install vllm==0.8.5\n"
        "FROM --platform=linux/arm64 base AS train\nRUN pip install trl==0.17.0\n",
    )
    assert [(each.label, pins(each)) for each in listings] == [
        ("serve", {"torch": "2.6.0", "vllm": "0.8.5"}),
        ("train", {"torch": "2.6.0", "trl": "0.17.0"}),
    ]
    assert [each.context.machine for each in listings] == [None, "aarch64"]
    assert listings[1].context.variables == {"HF_HOME": "/data"}
    assert (listings[1].context.python, listings[1].context.glibc) == ("3.11", "2.36")


def test_an_environment_copied_from_a_builder() -> None:
    text = "FROM a AS build\nRUN pip install torch==2.6.0\nFROM a\nCOPY --from=build {} /x\n"
    assert pins(read(text.format("/opt/venv"))) == {"torch": "2.6.0"}
    assert pins(read(text.format("/app/dist"))) == {}


def test_triggers_run_in_the_stage_that_is_made_from_it() -> None:
    listing = read("FROM a AS base\nONBUILD RUN pip install torch==2.6.0\nFROM base\nRUN pip install trl\n")
    assert pins(listing) == {"torch": "2.6.0", "trl": None}


def test_requirements_of_the_build_context(project: Path) -> None:
    listing = built(project, "FROM a\nWORKDIR /app\nCOPY . .\nRUN pip install -r requirements.txt -c pins.txt trl\n")
    assert pins(listing) == {"torch": "2.6.0", "accelerate": "1.6.0", "trl": None}
    torch = listing.entries[0]
    assert (torch.file, torch.line) == (str(project / "requirements.txt"), 2)
    assert (listing.entries[2].file, listing.entries[2].line) == (None, 4)
    assert listing.unread == ()


@pytest.mark.parametrize(
    "run",
    [
        'RUN echo "trl==0.17.0" >> requirements.txt',
        'RUN if [ "$V" = alt ]; then echo "trl==0.17.0" >> requirements.txt; fi',
        'RUN echo "peft" >> requirements.txt\nRUN echo "trl==0.17.0" >> requirements.txt',
        "RUN echo trl==0.17.0 | tee -a requirements.txt",
    ],
)
def test_what_is_appended_to_a_file_is_only_its_end(project: Path, run: str) -> None:
    listing = built(project, f"FROM python:3.11\nCOPY requirements.txt .\n{run}\nRUN pip install -r requirements.txt\n")
    found = {entry.distribution.name: (entry.file is None, entry.line) for entry in listing.entries}
    assert found["torch"] == (False, 2)
    assert found["trl"] == (True, 3 + ("peft" in run))
    assert ("peft" in found) == ("peft" in run)


def test_what_is_written_to_a_file_replaces_it(project: Path) -> None:
    for run in ("echo trl > requirements.txt", "echo a > requirements.txt && echo trl >> requirements.txt"):
        listing = built(project, f"FROM python:3.11\nCOPY requirements.txt .\nRUN {run}\nRUN pip install -r requirements.txt\n")
        assert "torch" not in pins(listing)


@pytest.mark.parametrize(
    "lines",
    [
        "COPY requirements.txt /tmp/\nRUN pip install -r /tmp/requirements.txt",
        "COPY requirements.txt /tmp/r.txt\nRUN cd /tmp && pip install -r r.txt",
        "COPY require*.txt pins.txt /tmp/\nRUN pip install -r /tmp/requirements.txt",
        "COPY ../requirements.txt ./\nRUN pip install -r requirements.txt",
        "ADD ./ /src\nWORKDIR /src/docker\nRUN pip install -r ../requirements.txt",
        "RUN --mount=type=bind,source=requirements.txt,target=/r.txt pip install -r /r.txt",
        "COPY <<EOF /r.txt\ntorch==2.6.0\naccelerate\nEOF\nRUN pip install -r /r.txt",
    ],
)
def test_ways_into_the_image(project: Path, lines: str) -> None:
    listing = built(project, f"FROM a\n{lines}\n", "docker/Dockerfile")
    assert (pins(listing), listing.unread) == ({"torch": "2.6.0", "accelerate": None}, ())


def test_files_passed_on_by_another_stage(project: Path) -> None:
    text = "FROM a AS files\nCOPY . /src\nFROM a\nCOPY --from=files /src/requirements.txt ./\nRUN pip install -r requirements.txt\n"
    assert "torch" in pins(built(project, text))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("COPY . .\nRUN pip install -r $FILE", "only known at run time"),
        ("COPY . .\nRUN pip install -r https://host.example/r.txt", "it is a URL"),
        ("RUN pip install 'torch", "quotes"),
    ],
)
def test_what_could_not_be_read_is_said(project: Path, lines: str, reason: str) -> None:
    listing = built(project, f"FROM a\n{lines}\n")
    assert listing.entries == ()
    assert len(listing.unread) == 1
    assert re.search(reason, listing.unread[0])
    assert listing.elsewhere == ()


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("RUN pip install -r requirements.txt", "no COPY of the build context brings it"),
        ("COPY . .\nRUN pip install -r missing.txt", "not in the build context"),
        ("COPY ../../etc /etc\nRUN pip install -r /etc/hostname", "no COPY|not in the build context"),
        ("RUN uv sync --frozen", "no COPY of the build context brings it"),
        ("COPY . .\nRUN pip install ./sub", "not in the build context"),
    ],
)
def test_what_comes_from_elsewhere_is_a_note(project: Path, lines: str, reason: str) -> None:
    listing = built(project, f"FROM a\n{lines}\n")
    assert (listing.entries, listing.unread) == ((), ())
    assert re.search(reason, listing.elsewhere[0])
    assert listing.elsewhere[0] in listing.notes


def test_no_file_outside_of_the_project_is_opened(project: Path) -> None:
    outside = project.parent / "outside.txt"
    outside.write_text("torch==1.0.0\n")
    (project / "link.txt").symlink_to(outside)
    listing = built(project, "FROM a\nCOPY . .\nRUN pip install -r link.txt -r ../outside.txt\n")
    assert listing.entries == ()
    assert [len(listing.unread), len(listing.elsewhere)] == [1, 1]


def test_a_project_that_is_installed_from_source(project: Path) -> None:
    listing = built(project, "FROM a\nWORKDIR /app\nCOPY . .\nRUN pip install -e '.[serve]'\n")
    assert pins(listing) == {"trl": "0.17.0", "vllm": "0.8.5"}
    assert pins(built(project, "FROM a\nCOPY . .\nRUN pip install .\n")) == {"trl": "0.17.0"}
    assert pins(built(project, "FROM a\nCOPY . .\nRUN pip install --no-deps .\n")) == {}


LOCK = """version = 1
requires-python = ">=3.11"
[[package]]
name = "app"
source = { virtual = "." }
dependencies = [{ name = "torch" }]
[package.optional-dependencies]
serve = [{ name = "vllm" }]
[[package]]
name = "torch"
version = "2.6.0"
source = { registry = "https://index.example/simple" }
dependencies = [{ name = "triton" }]
[[package]]
name = "triton"
version = "3.2.0"
source = { registry = "https://index.example/simple" }
[[package]]
name = "vllm"
version = "0.8.5"
source = { registry = "https://index.example/simple" }
"""


def reached(listing: Listing) -> set[str]:
    """The names of what is installed without a choice."""
    assert listing.edges is not None
    seen = {-1}
    for _ in listing.edges:
        seen |= {child for parent, child, _, choice in listing.edges if parent in seen and choice is None}
    return {each.distribution.name for at, each in enumerate(listing.entries) if at in seen}


@pytest.mark.parametrize(
    ("commands", "expected", "torch"),
    [
        ("uv sync --frozen", {"app", "torch", "triton"}, "2.6.0"),
        ("uv sync --frozen --extra serve && uv pip install einops", {"app", "torch", "triton", "vllm", "einops"}, "2.6.0"),
        ("uv sync && uv pip install torch==2.5.1", {"app", "torch", "triton"}, "2.5.1"),
        ("pip install torch==2.5.1 && uv sync", {"app", "torch", "triton"}, "2.6.0"),
        ("uv sync && uv pip install torch", {"app", "torch", "triton"}, "2.6.0"),
        ("uv sync && uv pip uninstall triton", {"app", "torch"}, "2.6.0"),
        ("pip install torch==2.5.1 && uv sync --no-install-package torch", {"app", "torch", "triton"}, "2.5.1"),
        ("uv sync --extra serve && uv sync", {"app", "torch", "triton"}, "2.6.0"),
    ],
)
def test_a_lock_file_and_what_is_installed_around_it(project: Path, commands: str, expected: set[str], torch: str) -> None:
    (project / "uv.lock").write_text(LOCK)
    listing = built(project, f"FROM a\nCOPY uv.lock ./\nRUN {commands}\n")
    assert reached(listing) == expected
    assert pins(listing)["torch"] == torch
    assert listing.choices == ()


def test_python_and_toolkit_that_are_installed() -> None:
    text = "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nRUN apt-get install -y python3-pip {}\n"
    assert read(text.format("git")).context.python == "3.10"
    assert read(text.format("python3.12-dev")).context.python == "3.12"
    assert read(text.format("cuda-toolkit-12-6")).context.cuda_toolkit == "12.6"
    assert read("FROM a\nRUN conda create -n x python=3.11\n").context.python == "3.11"


def test_variables_of_the_container() -> None:
    listing = read("FROM a\nARG B=1\nENV HF_TOKEN=secret A=$B C=${PATH}:/x\nENV EMPTY=\n")
    assert listing.context.variables == {"A": "1"}


def test_workload(project: Path) -> None:
    (project / "train.py").write_text("from trl import GRPOTrainer\nGRPOTrainer(model='m').train()\n")
    text = "FROM a\nWORKDIR /app\nCOPY train.py .\nENTRYPOINT {}\nCMD {}\n"
    for entrypoint, command in (
        ('["accelerate", "launch", "--num_processes", "8"]', '["train.py"]'),
        ('["tini", "--"]', '["bash", "-c", "accelerate launch --num_processes 8 train.py"]'),
        ('["/usr/bin/env"]', '["accelerate", "launch", "--num_processes", "8", "/app/train.py"]'),
    ):
        found = built(project, text.format(entrypoint, command)).context.workload
        assert found is not None
        assert (found.launcher, found.processes, found.trainer) == ("accelerate", 8, "GRPOTrainer")


def test_a_script_of_the_image_is_not_looked_for_on_this_machine(project: Path) -> None:
    script = project / "train.py"
    script.write_text("from trl import GRPOTrainer\nGRPOTrainer(model='m').train()\n")
    listing = built(project, f"FROM a\nCMD torchrun --nproc_per_node 2 {script}\n")
    found = listing.context.workload
    assert found is not None
    assert (found.launcher, found.processes, found.trainer, found.script) == ("torchrun", 2, None, None)
    assert listing.notes == ()
    assert read("FROM a\nCMD bash\n").context.workload is None


def test_a_command_of_options_goes_to_the_server_of_the_base_image() -> None:
    options = 'CMD ["--model", "a/b", "--tool-call-parser", "hermes"]\n'
    workload = read(f"FROM vllm/vllm-openai:v0.9.1 AS base\nFROM base\n{options}").context.workload
    assert workload is not None
    assert (workload.task, workload.model) == ("serve", "a/b")
    assert [(option.name, option.value) for option in workload.options or ()][1:] == [("--tool-call-parser", "hermes")]
    assert read(f"FROM python:3.11\n{options}").context.workload is None
    for own in ('CMD ["python", "train.py"]\n', f'ENTRYPOINT ["sh"]\n{options}'):
        workload = read(f"FROM vllm/vllm-openai:v0.9.1\n{own}").context.workload
        assert workload is None or workload.task is None


def test_notes_tell_what_is_uncertain() -> None:
    listing = read("FROM ${BASE}\nRUN if [ $A ]; then pip install torch==2.5.1; else pip install torch==2.6.0; fi\n")
    assert pins(listing) == {"torch": "2.6.0"}
    assert "only known at build time" in listing.notes[0]
    assert "every branch was read" in listing.notes[1]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("ARG A=1\n", 1),
        ("RUN pip install torch\nFROM a\n", 1),
        ("FROM a\n\nINSTALL torch\n", 3),
        ("FROM\n", 1),
        ("FROM a\nRUN <<EOF\n", 2),
        ("FROM a\n>>>>>>> main\n", 2),
        ("FROM a\n" * 300, 201),
    ],
)
def test_what_is_no_dockerfile(text: str, line: int) -> None:
    with pytest.raises(InputError) as caught:
        read(text)
    assert caught.value.line == line


def test_another_frontend_may_have_other_instructions() -> None:
    listing = read("# syntax=host.example/frontend\nFROM a\nINCLUDE other\nRUN pip install torch\n")
    assert pins(listing) == {"torch": None}
    assert "INCLUDE" in listing.unread[0]


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_that_locks_a_project_is_read(program: str, tmp_path: Path) -> None:
    """A program is known by its row in FORMATS alone; a lock that the build context lacks is reported."""
    path = tmp_path / "Dockerfile"
    path.write_text(f"FROM python:3.11\nCOPY . .\nRUN {program} {'sync' if program == 'uv' else 'install'}\n")
    (listing,) = read_dockerfile(str(path), path.read_text())
    assert any(f"{PROGRAMS[program]}, which is installed, was not read" in each for each in (*listing.notes, *listing.unread))


@pytest.mark.parametrize(
    "command", ["bash /opt/setup.sh", "/opt/setup.sh", "cd /opt && . ./setup.sh", "bash -ex /opt/setup.sh"]
)
def test_a_script_of_the_build_context_is_read_at_the_line_that_runs_it(command: str, project: Path) -> None:
    (project / "setup.sh").write_text("#!/bin/bash\nset -e\npip install trl==$V\npip install -r /opt/requirements.txt\n")
    text = f"FROM python:3.11\nENV V=0.17.0\nCOPY setup.sh requirements.txt /opt/\nRUN {command}\n"
    listing = built(project, text)
    assert pins(listing) == {"trl": "0.17.0", "torch": "2.6.0", "accelerate": None}
    assert lines(listing)["trl"] == 4
    assert (listing.notes, listing.unread) == ((), ())


def test_a_script_in_a_here_document_has_its_own_lines() -> None:
    listing = read("FROM python:3.11\nCOPY <<EOF /x.sh\nset -e\npip install torch==2.6.0\nEOF\nRUN sh /x.sh\n")
    assert (pins(listing), lines(listing)) == ({"torch": "2.6.0"}, {"torch": 4})


def test_a_script_that_is_not_in_the_build_context_is_a_note_if_its_name_says_that_it_installs(project: Path) -> None:
    notes = {name: built(project, f"FROM python:3.11\nRUN bash /x/{name}\n").notes for name in ("install.sh", "train.sh")}
    assert [len(each) for each in notes.values()] == [1, 0]
    assert "what /x/install.sh installs was not read" in notes["install.sh"][0]


def test_what_eval_runs_is_read() -> None:
    assert pins(read('FROM python:3.11\nRUN eval "pip install torch==2.6.0"\n')) == {"torch": "2.6.0"}


@pytest.mark.parametrize("words", ["[]", "--mount=x", '[""]', "A=1", "$(", "eval", "''"])
def test_a_run_without_a_program(words: str) -> None:
    assert read(f"FROM a\nRUN {words}\nRUN pip install torch==2.6.0\n").entries


@pytest.mark.parametrize(
    "line", ["FROM rayproject/ray:2.0.0-py31٣", "FROM a\nRUN apt-get install python3.1٣", "FROM python:3.1٣"]
)
def test_digits_of_other_scripts_are_no_version(line: str) -> None:
    listing = read(f"{line}\nRUN pip install torch==2.6.0\n")
    assert listing.context.python is None
