from __future__ import annotations

import json
from pathlib import Path

import pytest

from compat.errors import InputError
from compat.formats.described import parse_described, read_described
from compat.model import Accelerator, Distribution, Environment, Source, Workload

FULL = {
    "schema": "compat/environment/1",
    "python": "3.11.9",
    "os": "linux",
    "machine": "x86_64",
    "platform": "wsl2",
    "glibc": "2.35",
    "distributions": [
        {"name": "vllm", "version": "0.7.1", "source": "index"},
        {"name": "unsloth", "version": "2025.3.1", "source": {"kind": "vcs", "url": "https://example.org/unsloth", "commit": "abc1234"}},
        {"name": "torch", "version": "2.6.0+cu124", "marker": "sys_platform == 'linux'"},
    ],
    "distributions_complete": True,
    "accelerators": [{"vendor": "nvidia", "name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0", "memory_mib": 81920}],
    "driver": "550.54.15",
    "cuda_toolkit": "12.4",
    "variables": {"LD_LIBRARY_PATH": "/opt/x", "CUDA_VISIBLE_DEVICES": None},
    "workload": {
        "task": "grpo", "trainer": "GRPOTrainer", "model": "mistral", "launcher": "accelerate", "processes": 2,
        "batch_size": 2, "precision": "bf16", "quantization": "4bit", "features": ["vllm", "zero-3", "peft"],
    },
}  # fmt: skip


def written(folder: Path, content: object) -> str:
    path = folder / "environment.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), encoding="utf-8")
    return str(path)


def test_a_full_description_is_read_and_written_back_unchanged(tmp_path: Path) -> None:
    environment, notes = read_described(written(tmp_path, FULL))
    assert notes == ()
    assert environment.distributions is not None
    assert environment.distributions[1].source == Source("vcs", {"url": "https://example.org/unsloth", "commit": "abc1234"})
    assert environment.accelerators == (Accelerator("nvidia", "NVIDIA A100-SXM4-80GB", "8.0", 81920),)
    assert environment.to_json() == FULL


@pytest.mark.parametrize(
    ("written", "kind", "build"),
    [
        ("source", "directory", {}),
        ("built from source (sdist)", "directory", {}),
        ("git main", "vcs", {}),
        ("ngc-container", "image", {}),
        ("conda-forge, mamba", "conda", {}),
        ("nightly pip index", "nightly", {}),
        ("pip (CPU wheel)", "index", {"cuda": "cpu"}),
        ("uv (--torch-backend=cu129)", "index", {"cuda": "12.9"}),
        ("pip, rocm6.4 index", "index", {"rocm": "6.4"}),
        ("pip", "index", {}),
    ],
)
def test_a_source_in_words(written: str, kind: str, build: dict[str, str]) -> None:
    (torch,) = parse_described({"distributions": [{"name": "torch", "source": written}]}, "x")[0].distributions or ()
    assert torch.source == Source(kind, {"written": written})
    assert torch.extra == build


def test_absent_is_unknown_and_empty_is_none(tmp_path: Path) -> None:
    nothing, _ = read_described(written(tmp_path, {"schema": "compat/environment/1"}))
    assert nothing == Environment()
    assert nothing.distributions is None
    assert nothing.accelerators is None
    none, _ = read_described(written(tmp_path, {"distributions": [], "accelerators": [], "variables": {}, "workload": {}}))
    assert none.distributions == ()
    assert none.accelerators == ()
    assert none.variables == {}
    assert none.workload == Workload()
    assert none.to_json() == {
        "schema": "compat/environment/1",
        "distributions": [],
        "accelerators": [],
        "variables": {},
        "workload": {},
    }


def test_null_counts_as_unknown(tmp_path: Path) -> None:
    environment, _ = read_described(written(tmp_path, {"driver": None, "workload": {"task": None}}))
    assert environment.driver is None
    assert environment.workload == Workload()


def test_names_are_normalised(tmp_path: Path) -> None:
    environment, _ = read_described(written(tmp_path, {"distributions": [{"name": "Flash_Attn"}, {"name": "ruamel..yaml"}]}))
    assert environment.distributions == (Distribution("flash-attn"), Distribution("ruamel-yaml"))


def test_unknown_keys_are_kept_with_a_note(tmp_path: Path) -> None:
    document = {"colour": 1, "distributions": [{"name": "x", "hash": "y"}], "workload": {"seed": 3}}
    environment, notes = read_described(written(tmp_path, document))
    assert [note.split(":")[0] for note in notes] == ["colour", "distributions[0].hash", "workload.seed"]
    assert environment.to_json() == {"schema": "compat/environment/1", **document}


def test_unknown_words_are_kept_with_a_note(tmp_path: Path) -> None:
    document = {"os": "beos", "distributions": [{"name": "x", "source": "wheel"}], "workload": {"launcher": "mpirun"}}
    environment, notes = read_described(written(tmp_path, document))
    assert len(notes) == 3
    assert environment.os == "beos"
    assert environment.to_json() == {"schema": "compat/environment/1", **document}


@pytest.mark.parametrize("document", [{}, {"packages": {"torch": "2.6.0"}}])
def test_an_object_without_a_key_of_the_contract_is_refused(document: object, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a described environment"):
        read_described(written(tmp_path, document))


@pytest.mark.parametrize(
    ("document", "key", "message"),
    [
        ([], "the document", "expected an object, not a list"),
        ({"schema": "compat/environment/2"}, "schema", "expected 'compat/environment/1'"),
        ({"python": 3.11}, "python", "expected a string, not the number 3.11"),
        ({"glibc": "two"}, "glibc", "'two' is not a version"),
        ({"distributions": {}}, "distributions", "expected a list, not an object"),
        ({"distributions": [{"version": "1"}]}, "distributions[0].name", "a distribution needs a name"),
        (
            {"distributions": [{"name": "a"}, {"name": "b", "version": "1.x.y"}]},
            "distributions[1].version",
            "'1.x.y' is not a version",
        ),
        ({"distributions": [{"name": "a", "source": {"url": "u"}}]}, "distributions[0].source.kind", "expected a string"),
        ({"distributions": [{"name": "a", "source": 3}]}, "distributions[0].source", "expected an object, not the number 3"),
        ({"distributions_complete": "yes"}, "distributions_complete", "expected true or false, not the string 'yes'"),
        ({"accelerators": [{"compute_capability": "sm_90"}]}, "accelerators[0].compute_capability", "not a compute capability"),
        ({"accelerators": [{"memory_mib": "80GB"}]}, "accelerators[0].memory_mib", "expected a whole number"),
        ({"variables": {"A": 1}}, "variables.A", "expected a string, not the number 1"),
        ({"workload": {"processes": -1}}, "workload.processes", "expected a whole number, not -1"),
        ({"workload": {"processes": True}}, "workload.processes", "expected a whole number"),
        ({"workload": {"features": "vllm"}}, "workload.features", "expected a list"),
    ],
)
def test_what_the_contract_forbids_names_the_key(tmp_path: Path, document: object, key: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_described(written(tmp_path, document))
    assert str(caught.value).startswith(f"{tmp_path}/environment.json:")
    assert f"{key}: " in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_error_names_the_line(tmp_path: Path) -> None:
    text = '{\n "os": "linux",\n "distributions": [\n  {"name": "a"},\n  {"name": "b",\n   "version": "one"}\n ]\n}\n'
    with pytest.raises(InputError) as caught:
        read_described(written(tmp_path, text))
    assert caught.value.line == 6


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b'{"os": "linux",\n "x" 1}', 2, "is not JSON"),
        (b"", 1, "is not JSON"),
        (b'{"python": NaN}', None, "is not JSON"),
        (b'{"os":\n "\xff"}', 2, "is not UTF-8 text"),
        (b"[" * 100_000, None, "nested too deeply"),
    ],
)
def test_what_is_no_json_is_one_line(tmp_path: Path, content: bytes, line: int | None, message: str) -> None:
    path = tmp_path / "environment.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_described(str(path))
    assert message in str(caught.value)
    assert caught.value.line == line


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "environment.json"
    path.write_bytes(b'\xef\xbb\xbf{"os": "linux"}')
    assert read_described(str(path))[0].os == "linux"


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_described(str(tmp_path / "none.json"))


def test_macos_is_darwin() -> None:
    assert parse_described({"os": "macos"}, "x")[0].os == "darwin"


def test_a_workload_is_read_in_any_spelling(tmp_path: Path) -> None:
    workload = {
        "task": "SFT", "precision": "torch.bfloat16", "quantization": "4-bit",
        "features": ["device_map", "ZeRO3", "flash_attention_2"], "features_absent": ["torch_compile"],
    }  # fmt: skip
    environment, notes = read_described(written(tmp_path, {"workload": workload}))
    read = environment.workload
    assert read is not None
    assert (read.task, read.precision, read.quantization) == ("sft", "bf16", "4bit")
    assert (read.features, read.features_absent) == (("device-map", "zero-3", "flash-attention"), ("torch-compile",))
    assert notes == ()


def test_a_misspelt_word_of_a_workload_is_kept_with_a_note(tmp_path: Path) -> None:
    environment, notes = read_described(written(tmp_path, {"workload": {"features": ["vllm", "gradient-chekpointing"]}}))
    assert environment.workload is not None
    assert environment.workload.features == ("vllm", "gradient-chekpointing")
    assert notes == ("workload.features[1]: unknown value 'gradient-chekpointing'; did you mean gradient-checkpointing?",)


def test_words_of_own_rules_are_kept_without_a_note(tmp_path: Path) -> None:
    environment, notes = read_described(written(tmp_path, {"workload": {"features": ["xyz"]}}))
    assert environment.workload is not None
    assert (environment.workload.features, notes) == (("xyz",), ())
