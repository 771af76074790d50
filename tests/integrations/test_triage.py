"""``mode: triage`` against a server that behaves as GitHub's REST API does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from compat.integrations.triage import MARK, main

KNOWN = "RuntimeError: Dataset scripts are no longer supported, but found superb.py\n\ndatasets==4.0.0\n"
UNKNOWN = "It does not work. @somebody please help\n"


class Hub(ThreadingHTTPServer):
    """Comments and labels of one repository's issues, with what was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.comments: list[dict[str, Any]] = []
        self.labels: list[str] = []
        self.calls: list[str] = []
        self.broken = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def _any(self) -> None:
        hub, length = self.server, int(self.headers.get("Content-Length") or 0)
        content = json.loads(self.rfile.read(length)) if length else None
        hub.calls.append(f"{self.command} {self.path}")
        if hub.broken:
            self._answer(hub.broken, {"message": "no"})
        elif self.headers["Authorization"] != "Bearer secret-token":
            self._answer(401, {"message": "Bad credentials"})
        elif self.path.startswith("/repos/o/r/issues/7/comments?"):
            page = int(self.path.rpartition("=")[2])
            self._answer(200, hub.comments[(page - 1) * 100 : page * 100])
        elif (self.command, self.path) == ("POST", "/repos/o/r/issues/7/comments"):
            hub.comments.append({"id": len(hub.comments) + 1, "user": {"login": "github-actions[bot]"}, **content})
            self._answer(201, hub.comments[-1])
        elif self.command == "PATCH" and self.path.startswith("/repos/o/r/issues/comments/"):
            comment = hub.comments[int(self.path.rpartition("/")[2]) - 1]
            comment.update(content)
            self._answer(200, comment)
        elif (self.command, self.path) == ("POST", "/repos/o/r/issues/7/labels"):
            hub.labels += content["labels"]
            self._answer(200, [])
        else:
            self._answer(404, {"message": "Not Found"})

    do_GET = do_POST = do_PATCH = _any  # noqa: N815

    def _answer(self, code: int, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[Hub]:
    server = Hub()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def triaged(hub: Hub, folder: Path, body: str, *, event: dict[str, Any] | None = None, **inputs: str) -> int:
    """One run of the action on an issue with this body."""
    path = folder / "event.json"
    issue = {"number": 7, "title": "load_dataset fails", "body": body, "state": "open", "locked": False}
    path.write_text(json.dumps(event if event is not None else {"action": "opened", "issue": issue}), encoding="utf-8")
    return main({
        "GITHUB_EVENT_PATH": str(path), "GITHUB_REPOSITORY": "o/r", "GITHUB_API_URL": hub.address,
        "INPUT_TOKEN": "secret-token", "INPUT_DRY_RUN": "false", **inputs,
    })  # fmt: skip


def test_one_comment_is_written_and_edited_afterwards(hub: Hub, tmp_path: Path) -> None:
    assert triaged(hub, tmp_path, KNOWN, INPUT_LABEL="known") == 0
    assert triaged(hub, tmp_path, KNOWN + "\nmore\n") == 0
    (comment,) = hub.comments
    assert comment["body"].startswith(MARK)
    assert "datasets" in comment["body"]
    assert hub.labels == ["known"]
    assert [call.split()[0] for call in hub.calls] == ["GET", "POST", "POST", "GET", "PATCH"]


def test_a_comment_that_no_longer_holds_is_taken_back(hub: Hub, tmp_path: Path) -> None:
    triaged(hub, tmp_path, KNOWN)
    assert triaged(hub, tmp_path, UNKNOWN) == 0
    (comment,) = hub.comments
    assert "has changed" in comment["body"]
    assert "datasets" not in comment["body"]


def test_what_is_not_certain_is_not_answered(hub: Hub, tmp_path: Path) -> None:
    assert triaged(hub, tmp_path, UNKNOWN) == 0
    assert hub.comments == []


def test_a_dry_run_asks_nothing_and_keeps_commands_out_of_the_log(
    hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert triaged(hub, tmp_path, KNOWN + "\n::stop-commands::x\n", INPUT_DRY_RUN="true") == 0
    assert hub.calls == []
    printed = capsys.readouterr().out
    assert "| **This is a known problem" in printed
    assert not [line for line in printed.splitlines() if line.startswith("::")]


def test_the_comment_of_somebody_who_copies_the_mark_is_left_alone(hub: Hub, tmp_path: Path) -> None:
    hub.comments += [{"id": 1, "user": {"login": "mallory"}, "body": MARK}]
    hub.comments += [{"id": number + 2, "user": {"login": "a"}, "body": "+1"} for number in range(150)]
    triaged(hub, tmp_path, KNOWN)
    assert hub.comments[0]["body"] == MARK
    assert len(hub.comments) == 152


@pytest.mark.parametrize("change", [{"pull_request": {}}, {"locked": True}, {"state": "closed"}])
def test_pull_requests_and_closed_issues_are_left_alone(hub: Hub, tmp_path: Path, change: dict[str, Any]) -> None:
    issue = {"number": 7, "title": "x", "body": KNOWN, "state": "open", "locked": False, **change}
    assert triaged(hub, tmp_path, "", event={"issue": issue}) == 0
    assert triaged(hub, tmp_path, "", event={"action": "created"}) == 0
    assert hub.calls == []


def test_failures_are_one_line_without_the_token(hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hub.broken = 403
    assert triaged(hub, tmp_path, KNOWN) == 3
    hub.shutdown()
    assert triaged(hub, tmp_path, KNOWN, GITHUB_API_URL="http://127.0.0.1:1") == 3
    assert triaged(hub, tmp_path, KNOWN, INPUT_TOKEN="") == 2
    assert triaged(hub, tmp_path, KNOWN, INPUT_DRY_RUN="maybe") == 2
    assert triaged(hub, tmp_path, KNOWN, GITHUB_EVENT_PATH=str(tmp_path / "none")) == 2
    printed = capsys.readouterr().out
    assert sum(line.startswith("::error::compat: ") for line in printed.splitlines()) == 5
    assert "secret-token" not in printed


def test_names_in_the_text_are_not_notified(hub: Hub, tmp_path: Path) -> None:
    triaged(hub, tmp_path, KNOWN.replace("superb.py", "@octocat/superb.py"))
    (comment,) = hub.comments
    assert "@octocat" not in comment["body"]


def test_what_only_repeats_the_text_is_no_answer(hub: Hub, tmp_path: Path) -> None:
    stated = "ERROR: pip's dependency resolver does not take all packages into account.\n"
    stated += "torchtext 0.17.0 requires torch==2.2.0, but you have torch 2.3.0 which is incompatible.\n"
    assert triaged(hub, tmp_path, stated) == 0
    assert hub.comments == []
