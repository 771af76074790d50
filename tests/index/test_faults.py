"""Everything that goes wrong on the way leaves a page or a file unknown, with one line that says why."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from compat.index import Index, Settings, Store
from compat.index.settings import THREADS, Source
from compat.index.transport import GIVES_UP_AFTER, LONGEST_PAUSE, Transport
from tests.index.server import IndexServer

PACKAGES: dict[str, Any] = {"a": {"1.0": {"requires": ["b"], "sdist": False}}, "b": {"1.0": {"wheel": False}}}
WHEEL, SDIST = "a-1.0-py3-none-any.whl", "b-1.0.tar.gz"


def reading(server: IndexServer, **settings: Any) -> Index:
    given = {"sources": (Source(server.url),), "retries": 0, "timeout": 2.0, **settings}
    return Index(Settings(**given), Store(":memory:"))


def page_problem(fault: str, **options: Any) -> str:
    settings = options.pop("settings", {})
    with IndexServer(PACKAGES, faults={"a": fault}, **options) as server:
        index = reading(server, **settings)
        assert index.files("a") is None
        index.close()
        return index.problems["a"].replace(server.url, "URL").replace(server.host, "HOST")


def file_problem(fault: str, filename: str = WHEEL, **options: Any) -> str | None:
    """Why a file is unknown, ``None`` where what it requires was found out all the same."""
    with IndexServer(PACKAGES, faults={filename: fault}, **options) as server:
        index = reading(server)
        (file,) = index.files(filename[0]) or ()
        found = index.metadata(file)
        index.close()
        assert index.unusable == {}
        assert (found is None) == (filename in index.problems)
        return index.problems.get(filename, "").replace(f"http://{server.host}", "HOST") or None


def test_a_server_error() -> None:
    assert page_problem("500") == "URL/a/ answers HTTP 500"


def test_a_server_error_is_tried_again() -> None:
    with IndexServer(PACKAGES, faults={"a": "once-500"}) as server:
        index = reading(server, retries=2)
        assert len(index.files("a") or ()) == 1
        assert server.requests == ["/simple/a/", "/simple/a/"]
        index.close()


def test_a_redirect_loop_ends() -> None:
    assert page_problem("redirect-loop") == "URL/a/ redirects more than 10 times"


def test_a_page_that_is_none() -> None:
    assert page_problem("not-a-page") == "URL/a/ is not a page of an index"


def test_a_page_that_breaks_off() -> None:
    assert page_problem("broken-off").startswith("URL/a/ was interrupted")


def test_a_slow_page() -> None:
    assert page_problem("slow", seconds=1.0, settings={"timeout": 0.2}) == "URL/a/ did not answer within 0.2 s"


def test_a_page_that_drips_does_not_last_for_ever() -> None:
    with IndexServer(PACKAGES, faults={"a": "drip"}) as server:
        index = reading(server, timeout=0.2)
        assert index.files("a") is None
        assert index.problems == {"a": f"{server.url}/a/ took longer than 0.8 s"}
        assert 1 < server.dripped < 500  # of 1,000, which take 50 s
        index.close()


def test_nothing_is_read_after_the_deadline() -> None:
    with IndexServer(PACKAGES, faults={"a": "drip"}) as server:
        index = reading(server, timeout=100.0, deadline=time.monotonic() + 0.5)
        assert index.files_many(["a", "b"])["a"] is None
        assert index.problems["a"] == f"{server.url}/a/ was not read within the time limit"
        assert index.files("late") is None
        assert index.problems["late"] == f"{server.url}/late/ was not read within the time limit"
        assert server.dripped < 500
        index.close()


def test_a_long_timeout_is_not_multiplied() -> None:
    with IndexServer(PACKAGES) as server:
        limits = [Transport(replace(reading(server).settings, timeout=each)).time_limit() for each in (0.2, 15.0, 40.0, 100.0)]
    assert limits == [0.8, 60.0, 60.0, 100.0]


def test_headers_that_drip_do_not_last_for_ever() -> None:
    problem = page_problem("slow-headers", settings={"timeout": 0.2, "retries": 3})
    assert problem == "URL/a/ took longer than 0.8 s"  # and is not tried again


@pytest.mark.parametrize("status", ["429", "503"])
def test_a_host_that_asks_for_time_gets_some_but_not_an_hour(status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("urllib3.util.retry.time", SimpleNamespace(sleep=pauses.append, time=time.time))
    with IndexServer(PACKAGES, faults={"a": status}) as server:
        index = reading(server, retries=2)
        assert index.files("a") is None
        assert index.problems == {"a": f"{server.url}/a/ answers HTTP {status}"}
        assert server.requests == ["/simple/a/"] * 3
        assert pauses == [LONGEST_PAUSE] * 2
        index.close()


def test_a_host_that_is_overloaded_is_given_up_soon() -> None:
    packages = {f"p{number}": {"1.0": {}} for number in range(100)}
    with IndexServer(packages, faults={"*": "429"}) as server:
        index = reading(server)
        assert set(index.files_many(packages).values()) == {None}
        assert len(server.requests) <= THREADS + GIVES_UP_AFTER
        index.close()


def test_a_page_that_unpacks_to_more_than_a_page_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compat.index.client.LARGEST_PAGE", 4 << 20)
    assert page_problem("bomb") == "URL/a/ is larger than 4 MB"


@pytest.mark.parametrize("coding", ["gzip, gzip", "GZIP,deflate", "br", "zstd", "gzip, br"])
def test_an_encoding_that_was_not_requested(coding: str) -> None:
    assert page_problem(f"encoded {coding}") == f"URL/a/ is encoded as {coding.lower()!r}, which was not requested"


def test_a_refusal_is_no_absence_but_for_an_index_that_lists_others() -> None:
    assert page_problem("403") == "URL/a/ answers HTTP 403"
    with IndexServer(PACKAGES, faults={"gone": "403"}) as server:
        index = reading(server)
        assert index.files("gone") == ()
        index.close()


def test_an_index_that_is_down_is_given_up_soon() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{free.getsockname()[1]}"
    index = Index(Settings(sources=(Source(f"http://{host}/simple"),), retries=1), Store(":memory:"))
    pages = index.files_many([f"p{number}" for number in range(200)])
    assert set(pages.values()) == {None}
    assert index.problems["p0"] in (
        f"http://{host}/simple/p0/ cannot be reached (Connection refused)",
        f"http://{host} did not answer",
    )
    assert index.problems["p199"] == f"http://{host} did not answer"
    tried = [name for name, problem in index.problems.items() if "cannot be reached" in problem]
    assert len(tried) <= THREADS + GIVES_UP_AFTER
    index.close()


def test_one_index_that_is_down_makes_unknown_what_it_may_have() -> None:
    with IndexServer(PACKAGES) as server:
        down = Source("http://127.0.0.1:9/simple")
        index = reading(server, sources=(Source(server.url), down))
        assert len(index.files("a") or ()) == 1  # the first index has it
        assert index.files("c") is None  # the second may have it
        index.close()
        index = reading(server, sources=(Source(server.url), down), strategy="unsafe-best-match")
        assert index.files("a") is None
        index.close()


def test_promised_metadata_that_is_not_there_is_read_from_the_wheel() -> None:
    assert file_problem("no-metadata") is None


def test_metadata_with_another_hash() -> None:
    assert file_problem("wrong-metadata") == f"{WHEEL}.metadata does not match the sha256 given by HOST/simple"


def test_a_whole_wheel_with_another_hash() -> None:
    assert file_problem("wrong-hash", metadata=False, ranges=False) == f"{WHEEL} does not match the sha256 given by HOST/simple"


def test_a_truncated_wheel() -> None:
    for options in ({"ranges": True}, {"ranges": False}, {"ranges": True, "json": False}):
        told = file_problem("truncated", metadata=False, **options)
        assert told is not None
        assert told.startswith((f"{WHEEL} is not a complete archive", f"HOST/files/{WHEEL}")), told


def test_ranges_that_were_not_asked_for() -> None:
    for fault in ("other-range", "cut-range"):
        told = file_problem(fault, metadata=False)
        assert told == f"HOST/files/{WHEEL}: the host sent an incomplete range" or (
            fault == "other-range" and told == f"HOST/files/{WHEEL}: the host sent another range than the one requested"
        ), (fault, told)


def test_a_truncated_sdist() -> None:
    told = file_problem("truncated", SDIST)
    assert told is not None
    assert told.startswith(f"{SDIST} is not a complete archive")


@pytest.mark.parametrize("fault", ["500", "403", "redirect-loop", "broken-off"])
@pytest.mark.parametrize("filename", [WHEEL, SDIST])
def test_a_file_that_cannot_be_read(fault: str, filename: str) -> None:
    told = file_problem(fault, filename, metadata=False)
    assert told is not None
    assert "HOST" in told or filename in told
    assert "\n" not in told


def test_another_release_in_the_wheel() -> None:
    with IndexServer(PACKAGES, metadata=False) as server:
        server.files[WHEEL] = server.files[WHEEL]._replace(version="1.1")
        index = reading(server)
        assert index.metadata((index.files("a") or ())[0]) is None
        assert index.problems == {WHEEL: f"{WHEEL}: its metadata belongs to a 1.1"}
        index.close()


def test_what_failed_is_not_kept() -> None:
    with IndexServer(PACKAGES, faults={"a": "500", SDIST: "truncated"}) as server:
        store = Store(":memory:")
        index = Index(Settings(sources=(Source(server.url),), retries=0), store)
        assert index.files("a") is None
        assert index.metadata((index.files("b") or ())[0]) is None
        server.faults.clear()
        later = Index(index.settings, store)
        assert len(later.files("a") or ()) == 1
        assert later.metadata((later.files("b") or ())[0]) is not None
        later.close()


def test_an_interruption_keeps_what_was_read(tmp_path: Path) -> None:
    packages = {f"p{number}": {"1.0": {}} for number in range(60)}

    def interrupt(_: str, done: int, __: int) -> None:
        if done >= 20:
            raise KeyboardInterrupt

    with IndexServer(packages, faults={"*": "held"}) as server:
        server.turns.release(20)
        index = Index(Settings(sources=(Source(server.url),)), Store(str(tmp_path / "c")), progress=interrupt)
        with pytest.raises(KeyboardInterrupt):
            index.files_many(packages)
        index.close()
        server.turns.release(1000)
        for thread in threading.enumerate():  # what was under way is asked for to the end, and nothing after it
            if thread.name.startswith("index"):
                thread.join()
        asked = len(server.requests)
        assert asked <= 20 + THREADS
        index = Index(index.settings, Store(str(tmp_path / "c")))
        assert all(index.files_many(packages).values())
        assert len(server.requests) - asked <= 40
        index.close()


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str]:
    """A certificate that nobody signed, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    paths = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-out", paths[0], "-keyout", paths[1]],
        check=True, capture_output=True,
    )  # fmt: skip
    return paths


def test_a_certificate_must_be_accepted_or_its_host_trusted(
    certificate: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(variable, raising=False)
    with IndexServer(PACKAGES, certificate=certificate) as server:
        for settings, trusted in (
            ({}, False), ({"certificates": certificate[0]}, True), ({"trusted": ("127.0.0.1",)}, True), ({"trusted": (server.host,)}, True),
            ({"trusted": ("other.example",)}, False),
        ):  # fmt: skip
            index = reading(server, **settings)
            assert (index.files("a") is not None) == trusted, settings
            if not trusted:
                assert index.problems["a"].startswith(f"{server.url}/a/: its certificate is not trusted (")
            index.close()


def test_https_is_not_left_by_a_redirect(certificate: tuple[str, str]) -> None:
    with (
        IndexServer(PACKAGES) as plain,
        IndexServer(PACKAGES, certificate=certificate, faults={"a": f"to {plain.url}/a/"}) as server,
    ):
        index = reading(server, certificates=certificate[0])
        assert index.files("a") is None
        assert index.problems["a"] == f"{server.url}/a/ redirects to http:, which is not followed"
        assert plain.requests == []
        index.close()
