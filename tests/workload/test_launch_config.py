"""accelerate's and DeepSpeed's configuration files, and YAML that means harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.errors import InputError
from compat.model import Workload
from compat.syntax.yaml import parse_yaml
from compat.workload.launch_config import LaunchConfig, built_in, read_accelerate, read_deepspeed


def accelerate(folder: Path, text: str, name: str = "config.yaml", kind: str | None = None) -> LaunchConfig:
    (folder / name).write_text(text)
    return read_accelerate(str(folder / name), kind)


def deepspeed(folder: Path, text: str) -> Workload:
    (folder / "ds.json").write_text(text)
    return read_deepspeed(str(folder / "ds.json"))


def test_deepspeed_through_accelerate(tmp_path: Path) -> None:
    config = accelerate(
        tmp_path,
        "compute_environment: LOCAL_MACHINE\ndeepspeed_config:\n  deepspeed_multinode_launcher: standard\n  offload_optimizer_device: none\n"
        "  zero3_init_flag: true\n  zero_stage: 3\n  gradient_accumulation_steps: 1\ndistributed_type: DEEPSPEED\nmixed_precision: 'bf16'\nnum_processes: 8\n",
    )
    found = config.draft.workload()
    assert (config.distributed, config.several, config.processes, found.precision) == ("DEEPSPEED", True, 8, "bf16")
    assert found.features == ("deepspeed", "zero-3")
    assert found.features_absent == ("zero-1", "zero-2", "optimizer-offload", "deepspeed-auto-buckets")
    assert found.origins["features.zero-3"] == f"{tmp_path / 'config.yaml'}:6"


@pytest.mark.parametrize(
    ("text", "on", "off"),
    [
        ("distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n", "ram-efficient-loading", None),
        ("distributed_type: FSDP\nfsdp_config:\n  fsdp_cpu_ram_efficient_loading: true\n", "ram-efficient-loading", None),
        ("distributed_type: FSDP\nfsdp_config:\n  fsdp_cpu_ram_efficient_loading: false\n", None, "ram-efficient-loading"),
        ("distributed_type: FSDP\nfsdp_config:\n  fsdp_state_dict_type: SHARDED_STATE_DICT\n", "sharded-state-dict", None),
        ("distributed_type: FSDP\nfsdp_config:\n  fsdp_state_dict_type: FULL_STATE_DICT\n", None, "sharded-state-dict"),
        ("parallelism_config:\n  parallelism_config_cp_size: 4\n", "context-parallel", None),
        ("parallelism_config:\n  parallelism_config_cp_size: 1\n", None, "context-parallel"),
    ],
)
def test_what_accelerate_launch_fills_in(tmp_path: Path, text: str, on: str | None, off: str | None) -> None:
    found = accelerate(tmp_path, text).draft.workload()
    assert on is None or on in (found.features or ())
    assert off is None or off in (found.features_absent or ())


@pytest.mark.parametrize(("text", "distributed", "several", "on"), [
    ("distributed_type: MULTI_GPU\n", "MULTI_GPU", True, None), ("distributed_type: NO\n", "NO", False, None),
    ("distributed_type: 'NO'\nmixed_precision: no\n", "NO", False, None), ("distributed_type: fsdp\n", "FSDP", True, ("fsdp", "ram-efficient-loading")),
    ("distributed_type: FSDP\nfsdp_config: {fsdp_version: 2}\n", "FSDP", True,
     ("fsdp", "fsdp2", "ram-efficient-loading")), ("num_machines: 1\n", None, False, None),
    ("distributed_type: MULTI_GPU\nfsdp_config: {fsdp_version: 2}\n", "MULTI_GPU", True, None),
    ("distributed_type: NO\ndynamo_config: {dynamo_backend: INDUCTOR}\n", "NO", False, ("torch-compile",)),
    ("distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 2, gradient_accumulation_steps: 4}\n", "DEEPSPEED", True,
     ("deepspeed", "zero-2", "gradient-accumulation")),
])  # fmt: skip
def test_kinds_of_distribution(
    text: str, distributed: str | None, several: bool, on: tuple[str, ...] | None, tmp_path: Path
) -> None:
    config = accelerate(tmp_path, text)
    assert (config.distributed, config.several, config.draft.workload().features) == (distributed, several, on)
    assert config.draft.workload().precision is None


def test_json_and_the_files_a_configuration_names(tmp_path: Path) -> None:
    config = accelerate(
        tmp_path,
        '{"distributed_type": "DEEPSPEED",\n "fp16": true, "deepspeed_config": {"deepspeed_config_file": "ds.json"}}',
        "config.json",
    )
    assert config.draft.configs == ["ds.json"]
    assert (config.draft.workload().precision, config.draft.workload().features) == ("fp16", ("deepspeed",))
    assert config.draft.workload().origins["precision"].endswith("config.json:2")


def test_another_kind_chosen_on_the_command_line(tmp_path: Path) -> None:
    config = accelerate(tmp_path, "distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 3}\n", kind="MULTI_GPU")
    assert (config.several, config.draft.workload().features) == (True, None)


def test_devices(tmp_path: Path) -> None:
    assert accelerate(tmp_path, "gpu_ids: 0,1\n").gpu_ids == "0,1"
    assert accelerate(tmp_path, "gpu_ids: [0]\n").gpu_ids is None


def test_unknown_names_are_not_shipped() -> None:
    assert built_in("zero4") is None
    zero3 = built_in("zero3")
    assert zero3 is not None
    assert zero3.draft.workload().features == ("deepspeed", "zero-3")


@pytest.mark.parametrize(("text", "message"), [
    ("", "config.yaml:1: expected an accelerate configuration with keys such as 'distributed_type'"), ("- 1\n", ":1: expected an accelerate configuration"),
    ("a: b\nc: [1\nd: 2\n", "config.yaml:3: is not YAML:"), ("a: 1\n\tb: 2\n", "config.yaml:2: is not YAML:"),
    ("num_processes: many\n", "config.yaml:1: num_processes: expected a whole number, not 'many'"),
    ("debug: false\nnum_processes: true\n", "config.yaml:2: num_processes: expected a whole number, not True"),
    ("distributed_type: 3\n", "distributed_type: expected a word such as MULTI_GPU, not 3"), ("mixed_precision: [bf16]\n", "mixed_precision: expected no, fp16"),
    ("deepspeed_config: 3\n", "config.yaml:1: deepspeed_config: expected a table, not 3"),
    ("deepspeed_config:\n  zero_stage: 7\n", "config.yaml:2: deepspeed_config.zero_stage: expected 0, 1, 2 or 3, not 7"),
    ("fsdp_config:\n  fsdp_version: x\n", "config.yaml:2: fsdp_config.fsdp_version: expected 1 or 2, not 'x'"),
    ("a: !!python/object/apply:os.system [ls]\n", "config.yaml:1: has a value of the unsupported type tag:yaml.org,2002:python"),
    ("a: !!python/name:os.system x\n", "config.yaml:1: is not YAML: could not determine a constructor"), ("? [a]\n: b\n", "has a key that is not a scalar"),
    ("--- 1\n--- 2\n", "is not YAML: expected a single document"), ("a: \x01\n", "config.yaml:1: is not YAML: control characters are not allowed"),
])  # fmt: skip
def test_bad_accelerate_configurations(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as problem:
        accelerate(tmp_path, text)
    assert message in str(problem.value)
    assert "\n" not in str(problem.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: \xe9\n")
    (tmp_path / "large.yaml").write_bytes(b"#" * (1024 * 1024 + 1))
    for name, message in (
        ("none.yaml", "No such file"),
        ("latin.yaml", ":2: is not UTF-8"),
        ("large.yaml", "larger than 1 MiB"),
        (".", "not a regular file"),
    ):
        with pytest.raises(InputError, match=message):
            read_accelerate(str(tmp_path / name))


@pytest.mark.parametrize("text", [
    "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    "a: &a {x: 1}\n" + "".join(f"{b}: &{b}\n  <<: [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    "a: &a [*a]\n", "a: &a\n  <<: *a\n", "[" * 20000, "{a: " * 5000,
])  # fmt: skip
def test_yaml_that_unfolds_without_end_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"expands to more than|nested too deeply|found undefined"):
        parse_yaml(text, "bomb.yaml")


def test_yaml_values_and_lines() -> None:
    value, lines = parse_yaml("base: &b {x: 1, y: 2}\nown:\n  <<: *b\n  y: 3\n  when: 2024-99-99\nlist:\n  - k: v\n", "f")
    assert value == {"base": {"x": 1, "y": 2}, "own": {"x": 1, "y": 3, "when": "2024-99-99"}, "list": [{"k": "v"}]}
    assert lines["own", "y"] == 4
    assert lines["list", "0", "k"] == 7


# --- DeepSpeed -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "on", "off", "precision"), [
    ('{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}, "bf16": {"enabled": true}}',
     {"deepspeed", "zero-3", "optimizer-offload"}, {"zero-1", "zero-2", "deepspeed-auto-buckets"}, "bf16"),
    ('{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "none"}}, "fp16": {"enabled": true}}',
     {"deepspeed", "zero-2"}, {"zero-1", "zero-3", "optimizer-offload"}, "fp16"),
    ('{"zero_optimization": {"stage": 1, "cpu_offload": true}, "bf16": {"enabled": "auto"}, "fp16": {"enabled": false}}',
     {"deepspeed", "zero-1", "optimizer-offload"}, {"zero-2", "zero-3"}, None),
    ('{"zero_optimization": {"stage": "auto"}}', {"deepspeed"}, set(), None), ("{}", {"deepspeed"}, set(), None),
    ('{"gradient_accumulation_steps": "auto", "train_micro_batch_size_per_gpu": "auto"}', {"deepspeed"}, set(), None),
])  # fmt: skip
def test_deepspeed(text: str, on: set[str], off: set[str], precision: str | None, tmp_path: Path) -> None:
    found = deepspeed(tmp_path, text)
    assert (set(found.features or ()), set(found.features_absent or ()), found.precision, found.batch_size) == (
        on,
        off,
        precision,
        None,
    )


@pytest.mark.parametrize(
    ("scheduler", "automatic"),
    [
        ('{"type": "WarmupLR", "params": {"warmup_num_steps": "auto"}}', True),
        ('{"type": "WarmupLR", "params": {"warmup_num_steps": 100}}', False),
        ('{"type": "OneCycle"}', False),
        ('"auto"', False),
    ],
)
def test_a_deepspeed_schedule_whose_warmup_is_left_to_the_trainer(scheduler: str, automatic: bool, tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    file.write_text(f'{{"scheduler": {scheduler}}}')
    assert ("deepspeed-auto-warmup" in (read_deepspeed(str(file)).features or ())) is automatic


@pytest.mark.parametrize(
    ("table", "offload"),
    [
        ("fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP", None),
        ("fsdp_offload_params: true", True),
        ("fsdp_offload_params: false", False),
    ],
)
def test_what_fsdp_offloads(table: str, offload: bool | None, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"distributed_type: FSDP\nfsdp_config: {{{table}}}\n")
    work = read_accelerate(str(file)).draft.workload()
    on, off = work.features or (), work.features_absent or ()
    assert (True if "fsdp-offload" in on else False if "fsdp-offload" in off else None) is offload


@pytest.mark.parametrize(
    ("settings", "on", "off"),
    [
        ('{"zero_optimization": {"overlap_comm": true}}', ("deepspeed", "overlap-comm"), None),
        ('{"zero_optimization": {"overlap_comm": false}}', ("deepspeed",), ("overlap-comm",)),
        (
            '{"zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": "auto"}}',
            ("deepspeed", "zero-3", "deepspeed-auto-buckets"),
            ("zero-1", "zero-2"),
        ),
        ('{"zero_optimization": {"stage": 3}}', ("deepspeed", "zero-3"), ("zero-1", "zero-2", "deepspeed-auto-buckets")),
        ('{"zero_optimization": {"zero_quantized_weights": true}}', ("deepspeed", "zero-quantized-weights"), None),
        ('{"bf16": {"enabled": true}, "communication_data_type": "fp32"}', ("deepspeed", "communication-type"), None),
        ('{"bf16": {"enabled": true}, "communication_data_type": "bf16"}', ("deepspeed",), ("communication-type",)),
        ('{"bf16": {"enabled": true}, "communication_data_type": null}', ("deepspeed",), None),
        ('{"bf16": {"enabled": "auto"}, "communication_data_type": "fp32"}', ("deepspeed",), None),
        ('{"data_types": {"grad_accum_dtype": "fp32"}}', ("deepspeed", "fp32-gradient-accumulation"), None),
        ('{"data_types": {"grad_accum_dtype": "bf16"}}', ("deepspeed",), ("fp32-gradient-accumulation",)),
        ('{"data_types": {"grad_accum_dtype": null}}', ("deepspeed",), None),
        ('{"data_types": "fp32"}', ("deepspeed",), None),
        ('{"amp": {"enabled": false}}', ("deepspeed", "deepspeed-keys-until-0.19.7"), None),
        ('{"zero_optimization": {"mics_shard_size": 4}}', ("deepspeed", "deepspeed-keys-until-0.19.6"), None),
        ('{"mics_shard_size": 4, "zero_optimization": {"amp": true}}', ("deepspeed",), None),
    ],
)
def test_deepspeed_switches(settings: str, on: tuple[str, ...], off: tuple[str, ...] | None, tmp_path: Path) -> None:
    found = deepspeed(tmp_path, settings)
    assert (found.features, found.features_absent) == (on, off)


def test_deepspeed_numbers(tmp_path: Path) -> None:
    found = deepspeed(tmp_path, '{\n"train_micro_batch_size_per_gpu": 4,\n"gradient_accumulation_steps": 8}')
    assert (found.batch_size, found.features) == (4, ("deepspeed", "gradient-accumulation"))
    assert found.origins["batch_size"].endswith("ds.json:2")


@pytest.mark.parametrize(("text", "message"), [
    ("{", "ds.json:1: is not JSON"), ("[]", "ds.json:1: is not a DeepSpeed configuration: expected a JSON object"),
    ('{\n"zero_optimization": 3}', "ds.json:2: zero_optimization: expected an object, not 3"),
    ('{"zero_optimization": {\n"stage": "three"}}', "ds.json:2: zero_optimization.stage: expected a whole number, not 'three'"),
    ('{"bf16": true}', "ds.json:1: bf16: expected an object, not True"), ("[" * 100000, "nested too deeply"), ('{"a": NaN}', "NaN is not JSON"),
])  # fmt: skip
def test_bad_deepspeed_configurations(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as problem:
        deepspeed(tmp_path, text)
    assert message in str(problem.value)


def test_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(InputError, match="is not UTF-8"):
        read_deepspeed(str(tmp_path / "ds.json"))
