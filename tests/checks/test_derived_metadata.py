"""Declared requirements, extras, withdrawn releases and floors, by the shipped tables."""

from __future__ import annotations

from typing import Any

import pytest

from compat.checks import requirements as metadata
from compat.checks.installation import judge_releases
from compat.checks.questions import fold_questions
from compat.formats.requirements.requirement import parse_requirement
from compat.model import Distribution, Environment, Finding, Source
from compat.rules.facts import Facts
from compat.tables.declared import Declared
from compat.versions import contains, key_of, ranges_of


def found(*distributions: str, source: str | None = None, **keys: Any) -> dict[str, Finding]:
    copies = tuple(
        Distribution(name=name, version=version, source=None if source is None else Source(source))
        for name, _, version in (each.partition("==") for each in distributions)
    )
    facts, declared = Facts(Environment(distributions=copies, **keys)), Declared()
    return {finding.rule: finding for finding in (*metadata.judge(facts, declared), *judge_releases(facts, declared))}


def test_a_violated_requirement_is_a_warning_with_both_ways_out() -> None:
    finding = found("vllm==0.8.5", "torch==2.7.0")["requires-vllm-torch"]
    assert (finding.verdict, finding.severity) == ("hit", "warning")
    assert [(fix.kind, fix.package) for fix in finding.fixes] == [("downgrade", "torch"), ("upgrade", "vllm")]


@pytest.mark.parametrize(
    ("label", "required"), [("cpu", False), ("xpu", False), ("rocm6.3", False), ("cu126", True), ("", True)]
)
def test_only_builds_for_cuda_require_the_triton_of_the_tables(label: str, required: bool) -> None:
    source = Source("index", {"url": f"https://index.example/whl/{label}"} if label else {})
    copies = (Distribution("torch", "2.7.0", source=source), Distribution("triton", "3.2.0"))
    findings = metadata.judge(Facts(Environment(os="linux", distributions=copies)), Declared())
    assert ([each.rule for each in findings] == ["requires-torch-triton"]) is required


def test_a_requirement_that_the_project_overrides_is_a_remark() -> None:
    violated = found("vllm==0.8.5", "torch==2.7.0")["requires-vllm-torch"]
    for names in (("torch",), ("vllm",)):
        remark = metadata.as_override_remark(violated, names)
        assert (remark.severity, remark.why) == ("info", "vllm declares it in its metadata, and the project overrides it.")
        shown, notes = fold_questions([remark])
        assert shown == ()
        assert notes == ("1 remark on requirements that the project overrides (--all shows it)",)
    assert metadata.as_override_remark(violated, ("numpy",)) == violated
    refused = found("transformers==4.44.2", "tokenizers==0.15.2")["requires-transformers-tokenizers"]
    assert metadata.as_override_remark(refused, ("tokenizers",)) == refused, "transformers still fails to import"


def test_what_transformers_compares_when_it_is_imported_is_an_error() -> None:
    assert found("transformers==4.44.2", "tokenizers==0.15.2")["requires-transformers-tokenizers"].severity == "error"
    assert found("transformers==4.44.2", "tokenizers==0.19.1") == {}


WHEEL = "transformers-4.51.3-py3-none-any.whl"


@pytest.mark.parametrize(
    ("line", "holds"),
    [
        (f"transformers @ https://files.example/{WHEEL}", True), (f"https://files.example/{WHEEL}#sha256=0", True),
        (f"./wheels/{WHEEL}", True), (f"transformers @ file:///wheels/{WHEEL}", True),
        # another build may require something else
        ("transformers @ https://files.example/transformers-4.51.3+own-py3-none-any.whl", False),
        ("transformers @ https://files.example/transformers-4.51.3-cp312-cp312-linux_x86_64.whl", False),
        ("transformers @ git+https://git.example/transformers@v4.51.3", False),
    ],
)  # fmt: skip
def test_a_wheel_of_pure_python_is_its_release_at_any_address(line: str, holds: bool) -> None:
    copies = (parse_requirement(line), Distribution("huggingface-hub", "0.20.0"))
    findings = metadata.judge(Facts(Environment(distributions=copies)), Declared())
    assert ("requires-transformers-huggingface-hub" in {finding.rule for finding in findings}) is holds


def test_installers_compare_the_version_of_an_archive_at_any_address() -> None:
    copies = (
        Distribution("vllm", "0.8.5"),
        parse_requirement("https://files.example/torch-2.7.0-cp312-cp312-linux_x86_64.whl"),
    )
    findings = metadata.judge(Facts(Environment(distributions=copies)), Declared())
    assert "requires-vllm-torch" in {finding.rule for finding in findings}


@pytest.mark.parametrize(("extras", "holds"), [([], False), (["vllm"], True), (["peft"], False)])
def test_an_extra_counts_only_where_it_is_requested(extras: list[str], holds: bool) -> None:
    copies = (Distribution("trl", "1.16.0", extra={"extras": extras}), Distribution("vllm", "0.10.2"))
    findings = metadata.judge(Facts(Environment(distributions=copies)), Declared())
    assert ("requires-trl-vllm" in {finding.rule for finding in findings}) is holds


_SRT = ("sglang==0.4.8", "sgl-kernel==0.1.9", "flashinfer-python==0.2.6.post1")


def test_an_extra_of_which_two_pins_are_installed_raises_a_question() -> None:
    finding = found(*_SRT, "torch==2.7.0+cu126")["requires-sglang-torch"]
    assert (finding.verdict, finding.severity) == ("possible", "warning")
    assert finding.title == "sglang[srt] 0.4.8 requires torch==2.7.1, but 2.7.0+cu126 is installed"
    assert "flashinfer-python and sgl-kernel are installed in the versions it pins" in finding.why
    assert found(*_SRT, "torch==2.7.1") == {}
    assert found(*_SRT, "torch==2.7.0", distributions_complete=True) == {}


def test_one_installed_pin_shows_no_extra() -> None:
    assert found(*_SRT[:2], "torch==2.7.0") == {}
    assert found("accelerate==0.33.0", "deepspeed==0.15.0") == {}


def test_nothing_is_inferred_where_the_extras_are_stated() -> None:
    copies = [Distribution(*each.split("==")) for each in (*_SRT[1:], "torch==2.7.0")]
    sglang = Distribution("sglang", "0.4.8", extra={"extras": []})
    findings = metadata.judge(Facts(Environment(distributions=(sglang, *copies))), Declared())
    assert "requires-sglang-torch" not in {finding.rule for finding in findings}


def test_extras_for_developers_do_not() -> None:
    assert not [rule for rule in found("trl==1.16.0", "pytest==3.0", "parameterized==0.1") if "pytest" in rule]


@pytest.mark.parametrize("source", ["vcs", "directory", "image", "url"])
def test_what_was_built_otherwise_may_violate_a_pin(source: str) -> None:
    assert found("vllm==0.8.5", "torch==2.7.0", source=source) == {}


def test_a_build_between_releases_is_not_compared() -> None:
    assert found("trl==0.16.0", "transformers==4.46.0.dev0") == {}


def test_local_labels_and_container_builds_count_as_their_release() -> None:
    assert found("vllm==0.8.5", "torch==2.6.0+cu124") == {}


def test_a_build_of_torch_for_another_cuda_requires_other_libraries() -> None:
    linux = {"os": "linux", "machine": "x86_64"}
    assert found("torch==2.10.0+cu130", "cuda-bindings==13.0.3", **linux) == {}
    finding = found("torch==2.10.0", "cuda-bindings==13.0.3", **linux)["requires-torch-cuda-bindings"]
    assert (finding.verdict, finding.missing) == ("possible", ("build",))


@pytest.mark.parametrize("version", ["4.46.0", "4.52.0", "4.57.0"])
def test_a_withdrawn_release(version: str) -> None:
    finding = found(f"transformers=={version}", python="3.11")["yanked-transformers"]
    assert {fix.kind for fix in finding.fixes} == {"upgrade", "downgrade"}
    assert found("transformers==4.57.1") == {}


@pytest.mark.parametrize(("python", "holds"), [("3.9", True), ("3.9.18", True), ("3.10", False), ("3.11.7", False)])
def test_the_python_a_release_is_for(python: str, holds: bool) -> None:
    assert ("python-transformers" in found("transformers==5.0.0", python=python)) is holds


@pytest.mark.parametrize(("glibc", "holds"), [("2.31", True), ("2.35", False)])
def test_the_glibc_of_the_lowest_wheel(glibc: str, holds: bool) -> None:
    assert ("glibc-vllm" in found("vllm==0.20.0", glibc=glibc, os="linux")) is holds


def test_a_release_that_is_not_known_is_no_finding() -> None:
    assert found("vllm==99.0", "torch==99.0", python="3.6", glibc="2.5") == {}


# --- What is installed says itself what it requires.


def installed(requires: dict[str, tuple[str, ...]], **keys: Any) -> dict[str, Finding]:
    copies = tuple(
        Distribution(name, version, Source("index"), requires=lines)
        for (name, _, version), lines in ((each.partition("=="), lines) for each, lines in requires.items())
    )
    facts = Facts(Environment(distributions=copies, distributions_complete=True, os="linux", **keys))
    return {finding.rule: finding for finding in metadata.judge(facts, Declared())}


def test_a_requirement_that_is_not_installed_is_a_warning() -> None:
    finding = installed({"acme==1.0": ("widget[fast] (>=2.0,<3)",)})["requires-acme-widget"]
    assert (finding.severity, finding.packages) == ("warning", {"acme": "1.0", "widget": None})
    assert finding.fixes[0].command == 'pip install "widget>=2.0,<3"'


@pytest.mark.parametrize(
    "line",
    [
        "widget; extra == 'fast'",
        "widget; python_version < '3.8'",
        "widget; sys_platform == 'win32'",
        "gear>=1",
        "gear",
        "Gear>0.9",
    ],
)
def test_what_is_met_optional_or_for_another_place_is_none(line: str) -> None:
    assert installed({"acme==1.0": (line,), "gear==1.5": ()}, python="3.11.4") == {}


def test_a_violated_requirement_of_a_package_that_no_table_follows() -> None:
    finding = installed({"acme==1.0": ("gear!=1.5",), "gear==1.5": ()})["requires-acme-gear"]
    assert (finding.severity, finding.fixes[0].command) == ("warning", 'pip install "gear!=1.5"')


@pytest.mark.parametrize(
    ("release", "required", "severity", "effect"),
    [("0.21.0", "torch==2.6.0", "error", "crash"), ("0.29.2", "torch>=2.14.0", "warning", "install")],
)
def test_another_torch_than_the_one_an_extension_is_compiled_for_is_an_error(
    release: str, required: str, severity: str, effect: str
) -> None:
    pins = {f"torchvision=={release}": (required,), "torch==2.13.0": ()}
    finding = installed(pins)["requires-torchvision-torch"]
    assert (finding.severity, finding.effect) == (severity, effect)


def test_the_metadata_of_the_build_that_is_installed_counts_and_not_that_of_the_default_build() -> None:
    pins = {"torch==2.6.0+cu126": ("nvidia-cudnn-cu12==9.5.1.17",), "nvidia-cudnn-cu12==9.5.1.17": ()}
    assert installed(pins) == {}


def test_pins_of_another_build_are_no_finding_and_of_an_unknown_one_a_question() -> None:
    wrong = "nvidia-cudnn-cu12==9.5.1.17"
    assert found("torch==2.6.0+cu126", wrong, os="linux") == {}
    (finding,) = found("torch==2.6.0", wrong, os="linux").values()
    assert (finding.verdict, finding.unknown) == ("possible", ("build.torch",))


class TestWheels:
    """Neither a wheel for the Python and the system nor a source distribution."""

    @pytest.mark.parametrize(
        ("name", "version", "python", "system", "title", "fixes"),
        [
            ("triton", "3.0.0", "3.11", "windows", "triton 3.0.0 has no wheel for Windows", ["triton-windows", None]),
            ("torch", "2.3.0+cu121", "3.13.1", "windows", "torch 2.3.0 has no wheel for Python 3.13", ["torch", None]),
            ("torch", "2.3.0", "3.13", None, "torch 2.3.0 has no wheel for Python 3.13", ["torch", None]),
            ("triton", "3.0.0", None, "darwin", "triton 3.0.0 has no wheel for macOS", [None]),
            ("bitsandbytes", "0.44.0", None, "darwin", "bitsandbytes 0.44.0 has no wheel for macOS", ["bitsandbytes", None]),
        ],
    )
    def test_none_for_this_python_or_system(
        self, name: str, version: str, python: str | None, system: str | None, title: str, fixes: list[str | None]
    ) -> None:
        (finding,) = _of_wheels(Environment(python=python, os=system, distributions=(Distribution(name, version),)))
        assert (finding.verdict, finding.severity) == ("hit", "warning")
        assert finding.title.startswith(title)
        assert [fix.package for fix in finding.fixes] == fixes

    @pytest.mark.parametrize(
        ("name", "version", "python", "system"),
        [("triton", "3.0.0", "3.11", "linux"), ("triton", "3.0.0", "3.11", None), ("torch", "2.6.0", "3.13", "windows"),
         ("vllm", "0.8.0", "3.11", "windows"), ("trl", "0.15.2", "3.13", "windows"), ("sgl-kernel", "0.3.21", "3.14", "linux")],
    )  # fmt: skip
    def test_there_is_one_or_it_can_be_built(self, name: str, version: str, python: str, system: str | None) -> None:
        assert not _of_wheels(Environment(python=python, os=system, distributions=(Distribution(name, version),)))

    def test_what_is_installed_had_a_wheel(self) -> None:
        copies = (Distribution("triton", "3.1.0"),)
        assert not _of_wheels(Environment(python="3.11", os="windows", distributions=copies, distributions_complete=True))


def _of_wheels(environment: Environment) -> list[Finding]:
    return [each for each in judge_releases(Facts(environment), Declared()) if each.rule.startswith("wheels-")]


def test_a_release_for_another_python_is_an_error_where_an_installer_refuses_it() -> None:
    finding = found("torch==2.9.0", python="3.9")["python-torch"]
    assert finding.severity == "warning", "what is installed may work"
    assert metadata.refused_by_installers(finding).severity == "error"


@pytest.mark.parametrize("name", ["torch", "transformers", "vllm", "protobuf"])
@pytest.mark.parametrize("specifier", [">=2.1,<2.4", "<5,!=4.57.*", ">0.6.2,<=0.9.1", "==4.51.3", ">=4.0.0rc1", "<0", ">99"])
def test_releases_in_ranges_are_found_without_reading_all(name: str, specifier: str) -> None:
    package = Declared().package(name)
    assert package is not None
    ranges = ranges_of(specifier)
    assert package.within(ranges) == [each for each in package.versions if contains(ranges, key_of(each))]


def test_releases_are_recorded_oldest_first() -> None:
    for name in Declared().names:
        package = Declared().package(name)
        keys = [key_of(version) for version in package.versions] if package else []
        assert keys == sorted(keys), name
