"""The miner of messages of compiled code: what it reads in C++, CUDA and Rust, and how its tables are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.interfaces.messages import HOLE, NATIVE, Messages, is_native
from scripts.messages.native_source import messages_of
from scripts.messages.raised import Message
from scripts.messages.tables import table_of, write

CUDA = r"""
// TORCH_CHECK(false, "a comment says nothing here");
std::vector<at::Tensor> mha_fwd(at::Tensor &q, const int k) {
    TORCH_CHECK(is_sm90 || is_sm8x && !dprops->old, "FlashAttention only supports Ampere GPUs or newer.");
    TORCH_CHECK(q.size(1) == k, "Expected a head of ", q.size(1), " and not"
                " of ", k, "; see the (long) notes");
    if (k > 3) { throw std::invalid_argument("the number of splits, " + std::to_string(k) + ", is too large"); }
    C10_CUDA_CHECK(cudaGetLastError());
    TORCH_CHECK_NOT_IMPLEMENTED(false, "this path is not there yet: %d of \"it\"");
    XGRAMMAR_CHECK(shape.size() == 1) << "a tensor of " << shape.size() << " dimensions is no mask";
    TORCH_WARN_ONCE("the kernel falls back to a slow path");
    return {};
}

__global__ void kernel() {
    printf("This kernel only supports sm120.\n");
    printf("block %d done here\n", 1);
}
"""
RUST = r"""
pub fn load(path: &str) -> Result<()> {
    if x { return Err(exceptions::PyValueError::new_err(format!("the header of {} is no valid file", path))); }
    ensure!(n > 0, "expected at least {n} of the tokens");
    bail!("this model type is not supported")
}
#[derive(Error)]
pub enum BpeError {
    #[error("the merge of {0} is out of the vocabulary")]
    Merge(String),
}
#[cfg(test)]
mod tests { fn it() { panic!("a test that has failed here") } }
"""


def said(path: str, source: str) -> dict[str, Message]:
    return {each.template: each for each in messages_of(path, source)}


def test_checks_exceptions_streams_and_prints_of_cpp() -> None:
    found = said("csrc/api.cu", CUDA)
    assert {text: (each.kind, each.name, each.function) for text, each in found.items()} == {
        "FlashAttention only supports Ampere GPUs or newer.": ("raise", "RuntimeError", "mha_fwd"),
        f"Expected a head of {HOLE} and not of {HOLE}; see the (long) notes": ("raise", "RuntimeError", "mha_fwd"),
        f"the number of splits, {HOLE}, is too large": ("raise", "ValueError", "mha_fwd"),
        f'this path is not there yet: {HOLE} of "it"': ("raise", "NotImplementedError", "mha_fwd"),
        f"a tensor of {HOLE} dimensions is no mask": ("raise", "RuntimeError", "mha_fwd"),
        "the kernel falls back to a slow path": ("warn", "UserWarning", "mha_fwd"),
        "This kernel only supports sm120.": ("log", "error", "kernel"),
    }


def test_the_condition_is_written_as_python() -> None:
    first = next(iter(said("csrc/api.cu", CUDA).values()))
    assert first.guards == ("not (is_sm90 or is_sm8x and not dprops.old)",)


def test_errors_of_rust() -> None:
    found = said("src/lib.rs", RUST)
    assert {text: (each.name, each.guards) for text, each in found.items()} == {
        f"the header of {HOLE} is no valid file": ("ValueError", ()),
        f"expected at least {HOLE} of the tokens": ("", ("not (n > 0)",)),
        "this model type is not supported": ("", ()),
        f"the merge of {HOLE} is out of the vocabulary": ("", ()),
    }


@pytest.mark.parametrize(
    "source", ['TORCH_CHECK(a, "never closed', 'printf("', "throw std::runtime_error(", 'R"x(', "((((" * 5000]
)
def test_broken_source_says_nothing(source: str) -> None:
    assert messages_of("a.cpp", source) == []


def test_a_table_of_compiled_code_is_found_under_the_name_of_its_package(tmp_path: Path) -> None:
    found = {("csrc/api.cu", each): 0b10 for each in messages_of("csrc/api.cu", CUDA)}
    write(tmp_path, {f"flash-attn{NATIVE}": table_of("flash-attn", ["1.0", "2.0"], found)}, {f"flash-attn{NATIVE}"})
    messages = Messages(str(tmp_path))
    assert messages.packages == ()
    (match,) = messages.find("RuntimeError: FlashAttention only supports Ampere GPUs or newer.")
    assert (match.template.package, match.template.versions) == ("flash-attn", ("2.0",))
    (place,) = match.template.places
    assert is_native(place.module)
    assert not is_native("flash_attn.interface")
    assert all(near.module == "csrc/api.cu" for near in messages.near(match.template))
