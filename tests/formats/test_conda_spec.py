"""What conda's match specifications ask for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.formats.conda_spec import MatchSpec, parse_match_spec
from compat.versions import ranges_of


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("numpy", MatchSpec("numpy")),
        ("numpy=1.26", MatchSpec("numpy", version="1.26", specifier="==1.26.*")),
        ("numpy=1.26.4", MatchSpec("numpy", version="1.26.4")),
        ("numpy==1.26", MatchSpec("numpy", version="1.26")),
        ("numpy 1.26", MatchSpec("numpy", version="1.26")),
        ("numpy 1.26.*", MatchSpec("numpy", specifier="==1.26.*")),
        ("numpy=1.26.*", MatchSpec("numpy", specifier="==1.26.*")),
        ("numpy=1.26.4.*", MatchSpec("numpy", specifier="==1.26.4.*")),
        ("pandas==2.*", MatchSpec("pandas", specifier="==2.*")),
        ("pandas 2*", MatchSpec("pandas", specifier="==2.*")),
        ("numpy>=1,<2", MatchSpec("numpy", specifier=">=1,<2")),
        ("numpy >= 1 , < 2", MatchSpec("numpy", specifier=">=1,<2")),
        ("numpy>=1.20.*,!=1.22.*", MatchSpec("numpy", specifier=">=1.20,!=1.22.*")),
        ("pexpect~=4.9", MatchSpec("pexpect", specifier="~=4.9")),
        ("numpy *", MatchSpec("numpy")),
        ("numpy=*=py3*", MatchSpec("numpy", build="py3*")),
        ("numpy 2.1|2.2", MatchSpec("numpy", unclear="2.1|2.2")),
        ("openssl=1.1.1w", MatchSpec("openssl", version="1.1.1w")),
        ("openssl>=1.1.1w", MatchSpec("openssl", unclear=">=1.1.1w")),
        ("jpeg=9e=h166bdaf_2", MatchSpec("jpeg", version="9e", build="h166bdaf_2")),
        ("libcurand=10.3.4.107=0", MatchSpec("libcurand", version="10.3.4.107", build="0")),
        ("pytorch-cuda=12.1=ha16c6d3_5", MatchSpec("pytorch-cuda", version="12.1", build="ha16c6d3_5")),
        ("pytorch=2.1.*=*cuda*", MatchSpec("pytorch", specifier="==2.1.*", build="*cuda*")),
        ("pytorch 2.1.2 py3.10_cuda12.1_0", MatchSpec("pytorch", version="2.1.2", build="py3.10_cuda12.1_0")),
        ("pytorch::pytorch>=2.0", MatchSpec("pytorch", "pytorch", specifier=">=2.0")),
        ("conda-forge/linux-64::x", MatchSpec("x", "conda-forge/linux-64")),
        ("_libgcc_mutex=0.1=main", MatchSpec("_libgcc_mutex", version="0.1", build="main")),
        ("pkg[version='>=1,<2', build=py3*]", MatchSpec("pkg", specifier=">=1,<2", build="py3*")),
        ('pkg[version="1.2",channel=nvidia]', MatchSpec("pkg", "nvidia", version="1.2")),
        ("numpy  # why", MatchSpec("numpy")),
        ("https://conda.example/linux-64/x-1.0-h1_0.conda", MatchSpec("x", version="1.0", build="h1_0")),
    ],
)
def test_a_specification_is_read_as_conda_does(text: str, spec: MatchSpec) -> None:
    assert parse_match_spec(text) == spec


@pytest.mark.parametrize("text", ["", " ", "==1.2", "-", "a b c d", "a/b", "a[b", "a[b]", "a[version]", "a@1", "x" * 5000])
def test_what_is_no_specification_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"[a-z]"):
        parse_match_spec(text)


@given(st.text("ab1.,|=<>!~*[]' :_-", max_size=30))
def test_any_text_is_a_specification_or_refused_and_every_range_is_pep_440(text: str) -> None:
    try:
        spec = parse_match_spec(f"pkg{text}")
    except ValueError:
        return
    assert None in (spec.version, spec.specifier) or spec.specifier == f"=={spec.version}.*"
    if spec.specifier is not None:
        ranges_of(spec.specifier)
