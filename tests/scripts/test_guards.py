"""What modules refuse, read out of their source; how it is reached; and rows triggered in that source."""

from __future__ import annotations

import csv
from pathlib import Path
from textwrap import dedent

import pytest

from scripts.guards import tables, truth
from scripts.guards.reach import may_say, reach_of
from scripts.guards.refusals import asks, contents_of
from scripts.surface.store import Fetched, Store

SOURCE = dedent("""
    import importlib.util, importlib.metadata as importlib_metadata
    import packaging.version

    LEAST = "0.26.0"

    def is_accelerate_available(min_version: str = LEAST):
        return False

    def is_gptqmodel_available():
        if importlib.util.find_spec("gptqmodel") is None:
            return False
        least = packaging.version.parse("0.16.0")
        found = packaging.version.parse(importlib_metadata.version("gptqmodel"))
        if found < least:
            raise ImportError(f"Found an incompatible version of gptqmodel. Found version {found}, but only versions above {least}")
        return True

    def unknown(flag):
        if flag and found < least:
            raise ImportError("something about versions")

    def check_dependencies():
        require_version("trl>=0.8.6,<=0.9.6", "to fix: pip install trl")
        if not is_accelerate_available():
            raise ImportError("needs accelerate of some version")
""")
QUANTIZATION = dedent("""
    class AWQConfig:
        def get_name(self):
            return "awq"

        @classmethod
        def get_min_capability(cls):
            # the kernels are compiled for Turing and newer
            return 75
""")


def test_guards_are_whole_with_local_names_written_out() -> None:
    found = contents_of(SOURCE.encode())
    (gptqmodel,) = (each for each in found.refusals if each.function == "is_gptqmodel_available")
    assert gptqmodel.guards == (
        "packaging.version.parse(importlib_metadata.version('gptqmodel')) < packaging.version.parse('0.16.0')",
        "not (importlib.util.find_spec('gptqmodel') is None)",
    )
    assert found.least == (("accelerate", "0.26.0"),)


def test_requirements_that_are_checked_are_refusals() -> None:
    (trl,) = (each for each in contents_of(SOURCE.encode()).refusals if each.template.startswith("trl"))
    version = "importlib.metadata.version('trl')"
    assert trl.guards == (f"not ({version} <= '0.9.6' and {version} >= '0.8.6')",)
    assert asks("trl") == asks("trl==0.9.*") == asks("not a requirement!") == ""


def test_a_quantization_states_its_least_capability() -> None:
    (floor,) = contents_of(QUANTIZATION.encode()).refusals
    assert (floor.reach, floor.guards) == ("quantization=awq", ("torch.cuda.get_device_capability() < (7, 5)",))


def test_a_module_that_cannot_be_parsed_says_nothing() -> None:
    assert contents_of(b"version = (").refusals == ()
    assert contents_of(b"raise ValueError('no fact is asked for here')").refusals == ()


def test_what_an_earlier_refusal_asks_is_kept_apart() -> None:
    source = """
def check(args):
    if args.a and args.b:
        raise ValueError("not both at once")
    if args.c:
        return
    if version.parse(torch.__version__) < version.parse("2.4"):
        raise ImportError("torch 2.4 is needed")
"""
    (torch,) = (each for each in contents_of(source.encode()).refusals if each.name == "ImportError")
    assert torch.guards == ("version.parse(torch.__version__) < version.parse('2.4')", "not args.c")
    assert torch.earlier == ("not (args.a and args.b)",)


def test_requirements_of_a_table_without_any_other_word_are_read() -> None:
    assert contents_of(b'deps = {\n    "deepspeed": "deepspeed>=0.9.3",\n}\n').listed == (("deepspeed", "deepspeed>=0.9.3"),)


@pytest.mark.parametrize(
    ("handler", "names"),
    [
        ("except Exception:\n    x = None", set()),
        ("except:\n    x = None", set()),
        ("except (KeyError, ImportError):\n    x = None", set()),
        ("except KeyError:\n    x = None", {"ImportError"}),
        ("except Exception as error:\n    raise RuntimeError('again') from error", {"ImportError"}),
    ],
)
def test_an_error_that_the_code_around_it_catches_is_no_refusal(handler: str, names: set[str]) -> None:
    source = f"""
try:
    if version.parse(torch.__version__) < version.parse("2.4"):
        raise ImportError("torch 2.4 is needed")
{handler}
"""
    found = contents_of(source.encode()).refusals
    assert {each.name for each in found if each.template.startswith("torch")} == names


def test_the_reach_of_functions() -> None:
    assert reach_of("optimum", "optimum.utils.import_utils", "is_gptqmodel_available", ("a",)) == (
        ("quantization=gptq",),
        ("a",),
    )
    ways, _ = reach_of("trl", "trl.trainer.grpo_trainer", "GRPOTrainer.__init__", ())
    assert ways == ("trainer=grpotrainer", "task=grpo")
    assert reach_of("peft", "peft.import_utils", "is_xpu_available", ("a",)) == ((), ("a",))
    assert may_say("transformers", "transformers.quantizers.quantizer_awq")
    assert not may_say("transformers", "transformers.models.llama.modeling_llama")


def test_a_guard_that_the_reach_implies_is_left_out() -> None:
    place = ("accelerate", "accelerate.accelerator", "Accelerator.__init__")
    version = "compare_versions('deepspeed', '<', '0.9.3')"
    ways, left = reach_of(*place, (version, "not is_mlu_available()", "deepspeed_plugin"))
    assert "feature=deepspeed" in ways
    assert "trainer=trainer" not in ways
    assert left == (version,)
    assert "trainer=trainer" in reach_of(*place, (version,))[0]


def test_code_that_a_feature_imports_is_reached_with_the_feature() -> None:
    ways, _ = reach_of("liger-kernel", "liger_kernel.transformers.monkey_patch", "", ())
    assert ways == ("feature=liger",)


def store_with(folder: Path, *releases: str) -> Store:
    store = Store(folder)
    for version in releases:
        members = {
            "optimum/__init__.py": b"",
            "optimum/utils/__init__.py": b"",
            "optimum/utils/import_utils.py": SOURCE.encode(),
        }
        store.keep(Fetched("optimum", version, f"optimum-{version}.whl", None, "2026-01-01", True, 0, 0.0, (), members))
    return store


def test_rows_are_written_with_the_releases_that_have_them(tmp_path: Path) -> None:
    store = store_with(tmp_path, "0.19.0", "0.19.1", "0.20.0")
    (row,) = tables.rows_of(store, "optimum")
    cells = dict(zip(tables.COLUMNS, row))
    assert (cells["releases"], cells["function"], cells["reach"]) == (
        "0.19.0..0.20.0",
        "is_gptqmodel_available",
        "quantization=gptq",
    )
    assert list(tables.rows_of(store, "optimum")) == [row], "records are kept in the store"


def test_a_row_is_triggered_in_the_released_code(tmp_path: Path) -> None:
    store = store_with(tmp_path, "0.19.0")
    (row,) = tables.rows_of(store, "optimum")
    cells = dict(zip(tables.COLUMNS, row))
    assert truth.answered(cells, "0.19.0", store) == (truth.CONFIRMED, "")
    wrong = {**cells, "condition": cells["condition"].replace("0.16.0", "0.3.0").replace("<", ">")}
    assert truth.answered(wrong, "0.19.0", store)[0] == truth.REFUTED
    assert truth.answered(cells, "0.18.0", store)[0] == truth.NOT_RUN


def test_an_undeclared_import_is_looked_up_in_the_released_code(tmp_path: Path) -> None:
    store = Store(tmp_path)
    source = b"import os\nfrom requests.adapters import HTTPAdapter\nif os.name:\n    import ray\n"
    store.keep(Fetched("trl", "1.0", "trl.whl", None, "2026-01-01", True, 0, 0.0, (), {"trl/client.py": source}))
    row = {"package": "trl", "module": "trl.client", "function": ""}
    told = {
        name: truth.answered({**row, "condition": f"(importlib.util.find_spec('{name}') is None)"}, "1.0", store)[0]
        for name in ("requests", "ray")
    }
    assert told == {"requests": truth.CONFIRMED, "ray": truth.REFUTED}


def test_the_shipped_rows_are_well_formed() -> None:
    for path in sorted(tables.FOLDER.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                assert row["package"] == path.stem
                assert all(each == "import" or "=" in each for each in row["reach"].split("|")), row
