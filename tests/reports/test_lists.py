"""pip's, uv's and conda's lists, and when one of them is whole."""

from __future__ import annotations

from compat.reports.pasted import read_pasted

ROWS = (
    "accelerate 1.6.0", "filelock 3.18.0", "jinja2 3.1.6", "numpy 2.2.5", "packaging 25.0", "pip 25.1", "PyYAML 6.0.2",
    "safetensors 0.5.3", "setuptools 80.3.1", "torch 2.7.0", "transformers 4.51.3", "typing_extensions 4.13.2",
)  # fmt: skip


def columns(*rows: str) -> str:
    return "Package           Version\n----------------- -------\n" + "".join(row.replace(" ", "   ") + "\n" for row in rows)


def names(text: str) -> list[str]:
    return [each.name for each in read_pasted(text, "x")[0].distributions or ()]


def is_complete(text: str) -> bool:
    return read_pasted(text, "x")[0].distributions_complete


class TestPipList:
    def test_columns(self):
        found, _ = read_pasted(f"$ pip list\n```\n{columns(*ROWS)}```\nthanks", "x")
        assert len(found.distributions or ()) == 12
        assert "typing-extensions" in names(columns(*ROWS))
        assert found.distributions_complete

    def test_a_cut_list_is_not_complete(self):
        assert is_complete(columns(*ROWS))
        assert not is_complete(columns(*ROWS[:8]))  # head
        assert not is_complete(columns(*(row for row in ROWS if not row.startswith("pip "))))  # uv's, or with rows taken out
        assert not is_complete(columns(*ROWS[:6], "...", *ROWS[6:]))
        assert not is_complete(columns(*ROWS) + "...\n")
        assert not is_complete("```\n" + columns(*ROWS))  # the block is never closed
        assert not is_complete(columns(*reversed(ROWS)))

    def test_another_source_contradicts_it(self):
        assert not is_complete(columns(*ROWS) + "\n- vLLM version: 0.8.4\n")

    def test_two_lists_of_two_environments(self):
        assert not is_complete(columns(*ROWS) + "\n" + columns(*ROWS, "vllm 0.8.4"))

    def test_editable_installations(self):
        text = (
            "Package      Version    Editable project location\n------------ ---------- -------------------------\n"
            "llamafactory 0.9.3.dev0 /home/me/LLaMA-Factory\ntorch        2.6.0\n"
        )
        factory, torch = read_pasted(text, "x")[0].distributions or ()
        assert factory.source is not None
        assert factory.source.to_json() == {"kind": "directory", "path": "/home/me/LLaMA-Factory", "editable": True}
        assert torch.source is None

    def test_json(self):
        text = (
            'output: [{"name": "torch", "version": "2.6.0"}, {"name": "Trl_X", "version": "0.17.0", '
            '"editable_project_location": "/src/trl"}, {"name": "vllm", "version"'
        )
        torch, trl = read_pasted(text, "x")[0].distributions or ()
        assert (torch.name, torch.version, torch.source) == ("torch", "2.6.0", None)
        assert trl.source is not None
        assert (trl.name, trl.source.details["path"]) == ("trl-x", "/src/trl")

    def test_a_whole_json_list(self):
        rows = ", ".join(f'{{"name": "{row.split()[0]}", "version": "{row.split()[1]}"}}' for row in ROWS)
        assert is_complete(f"[{rows}]")
        assert not is_complete(f"[{rows}, ")


class TestFreeze:
    def test_sources(self):
        text = (
            "$ pip freeze\n# Editable install with no version control (mine==0.2)\n-e /src/mine\n"
            "certifi @ file:///croot/certifi_1/work/certifi\n"
            "flash_attn @ https://github.com/o/r/releases/download/v2/flash_attn-2.7.4.post1-cp310-cp310-linux_x86_64.whl\n"
            "torch==2.6.0+cu124\n"
            "transformers @ git+https://github.com/huggingface/transformers@60d51ef5123d949fd8c59cd4d3254e711541d278\n"
            "-e git+https://github.com/huggingface/trl.git@60d51ef5123d949fd8c59cd4d3254e711541d278#egg=trl\n"
        )
        found = {each.name: each for each in read_pasted(text, "x")[0].distributions or ()}
        sources = {name: each.source.to_json() if each.source else None for name, each in found.items()}
        assert sources["mine"] == {"kind": "directory", "path": "/src/mine", "editable": True}
        assert found["mine"].version == "0.2"
        assert sources["certifi"] == "conda"
        assert found["flash-attn"].version == "2.7.4.post1"
        assert isinstance(sources["flash-attn"], dict)
        assert sources["flash-attn"]["kind"] == "url"
        assert (found["torch"].version, sources["torch"]) == ("2.6.0+cu124", None)
        commit = "60d51ef5123d949fd8c59cd4d3254e711541d278"
        assert sources["transformers"] == {
            "kind": "vcs",
            "url": "https://github.com/huggingface/transformers",
            "commit": commit,
        }
        assert isinstance(sources["trl"], dict)
        assert sources["trl"]["editable"] is True

    def test_complete_only_below_the_command(self):
        rows = "".join(row.replace(" ", "==") + "\n" for row in ROWS)
        assert is_complete(f"the output of `pip freeze`:\n\n```\n{rows}```\n")
        assert not is_complete(rows)
        assert not is_complete(f"$ pip freeze | head\n{rows}[...]\n")

    def test_pins_of_a_person_count_less_than_a_list(self):
        found, notes = read_pasted("[pip3] trl==0.17.0\n\nI tried this:\n\ntrl==0.15.0\n", "x")
        assert [each.version for each in found.distributions or ()] == ["0.17.0"]
        assert any("0.15.0" in note for note in notes)

    def test_cuda_is_no_distribution(self):
        found, _ = read_pasted("torch==2.6.0\ncuda==12.2\npython==3.10.4\n", "x")
        assert [each.name for each in found.distributions or ()] == ["torch"]
        assert (found.cuda_toolkit, found.python) == ("12.2", "3.10.4")


CONDA = """\
# packages in environment at /opt/conda:
#
# Name                    Version                   Build  Channel
_libgcc_mutex             0.1                        main
brotli-python             1.0.9           py310h6a678d5_8
ca-certificates           2025.2.25            h06a4308_0
jpeg                      9e                   h5eee18b_3
numpy                     1.26.4          py310h5f9d8c6_0
pip                       25.1               pyhc872135_0
python                    3.10.16              he870216_1
pytorch                   2.5.1           py3.10_cuda12.4_cudnn9.1.0_0    pytorch
setuptools                78.1.1          py310h06a4308_0
transformers              4.51.3                   pypi_0    pypi
zlib                      1.2.13               h5eee18b_1
"""


class TestConda:
    def test_rows(self):
        found, _ = read_pasted(CONDA, "x")
        by_name = {each.name: each for each in found.distributions or ()}
        assert found.python == "3.10.16"
        assert by_name["torch"].version == "2.5.1"
        assert dict(by_name["torch"].extra) == {"cuda": "12.4"}
        assert by_name["transformers"].source is None
        numpy = by_name["numpy"].source
        assert numpy is not None
        assert numpy.to_json() == {"kind": "conda", "name": "numpy", "build": "py310h5f9d8c6_0"}
        assert "python" not in by_name
        assert "jpeg" not in by_name  # 9e is no version

    def test_whole(self):
        assert is_complete(CONDA)
        assert not is_complete(CONDA.replace("python                    3.10.16              he870216_1\n", ""))
        assert not is_complete(CONDA.replace("pip  ", "....\npip  "))
