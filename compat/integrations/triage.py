"""Replies to a new GitHub issue if its error is certainly a known one: ``mode: triage`` of the action.

The issue text is data: it is read by ``compat diagnose`` and never reaches a shell. One comment per issue, edited when
the issue is; never on pull requests; nothing is posted unless ``dry-run`` is off.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from compat.errors import InputError, Undecided, printable
from compat.integrations.guard import hits
from compat.records import record, replace

if TYPE_CHECKING:
    import requests

    from compat.model import Report

MARK = "<!-- compat-triage -->"
"""What the one comment is found again by."""
_FOOTER = (
    "<sub>Written by [compat](https://github.com/{action}) from the text of this issue; no maintainer has checked it yet. If "
    "it does not help, please say so below.</sub>"
)
_GONE = "The text of this issue has changed: the earlier answer no longer applies."
_REPEATED = ("message",), ("symptom-stated-requirement",)
"""Origins and rules that repeat what a text says: of 93 issues that were tried, two had another cause than the one repeated."""
_LONGEST = 60_000
"""Characters of a comment; GitHub takes 65,536."""
_PAGES = 20
_TIMEOUT = 30


@record(frozen=True)
class Issue:
    """The issue of an event."""

    repository: str
    number: int
    text: str


def issue_of(event: Mapping[str, object], repository: str) -> Issue | None:
    """Return the issue of an event; ``None`` for a pull request, a locked or closed issue, and any other event."""
    found = event.get("issue")
    if not isinstance(found, dict) or "pull_request" in found or found.get("locked") or found.get("state") == "closed":
        return None
    if not repository or not isinstance(found.get("number"), int):
        raise InputError("expected GITHUB_REPOSITORY and an issue number: the workflow must run on issue events")
    return Issue(repository, found["number"], f"{found.get('title') or ''}\n\n{found.get('body') or ''}")


def reply(text: str, action: str) -> str | None:
    """Return the comment on an issue with this text; ``None`` without a certain finding."""
    from compat.api.public import diagnose
    from compat.output.markdown import markdown

    if not text.strip():
        return None
    report: Report = diagnose(text)
    origins, rules = _REPEATED
    certain = tuple(each for each in hits(report) if each.origin not in origins and each.rule not in rules)
    if not certain:
        return None
    body = markdown(replace(report, findings=certain, notes=()))
    if len(body) > _LONGEST:
        body = body[:_LONGEST].rpartition("\n")[0] + "\n\n…"
    return f"{MARK}\n{body}\n\n{_FOOTER.format(action=action)}"


class Comments:
    """The comments of one issue, through GitHub's REST API; every failure raises :class:`Undecided`."""

    def __init__(self, issue: Issue, address: str, token: str, author: str) -> None:
        import requests

        self._session: requests.Session = requests.Session()
        self._session.headers.update({"Accept": "application/vnd.github+json", "Authorization": f"Bearer {token}"})
        self._repository = f"{address}/repos/{issue.repository}"
        self._issue = f"{self._repository}/issues/{issue.number}"
        self._author = author

    def own(self) -> int | None:
        """Return the id of the earlier comment. The author is checked too, since others could copy the marker."""
        for comment in self._all():
            if MARK in (comment.get("body") or "") and (comment.get("user") or {}).get("login") == self._author:
                return int(comment["id"])
        return None

    def write(self, text: str, known: int | None) -> None:
        """Post a new comment, or edit the existing one."""
        if known is None:
            self._call("POST", f"{self._issue}/comments", {"body": text})
        else:
            self._call("PATCH", f"{self._repository}/issues/comments/{known}", {"body": text})

    def label(self, name: str) -> None:
        """Add a label to the issue."""
        self._call("POST", f"{self._issue}/labels", {"labels": [name]})

    def _all(self) -> Iterator[dict[str, Any]]:
        for page in range(1, _PAGES + 1):
            found = self._call("GET", f"{self._issue}/comments?per_page=100&page={page}")
            yield from found
            if len(found) < 100:
                return

    def _call(self, method: str, address: str, content: dict[str, Sequence[str]] | None = None) -> Any:
        import requests

        try:
            answer = self._session.request(method, address, json=content, timeout=_TIMEOUT, allow_redirects=False)
            if answer.status_code // 100 != 2:
                raise Undecided(f"GitHub answered {answer.status_code} to {method} of comments or labels")
            return answer.json()
        except (requests.RequestException, ValueError) as problem:
            raise Undecided(f"the request to GitHub failed ({type(problem).__name__})") from None


def main(variables: Mapping[str, str] = os.environ) -> int:
    """Run the action; returns 0 with or without a certain finding, 2 for invalid input, 3 if GitHub is unreachable."""
    try:
        return _triage(variables)
    except InputError as problem:
        print(f"::error::compat: {printable(str(problem))}")
        return 2
    except Undecided as problem:
        print(f"::error::compat: {printable(str(problem))}")
        return 3


def _triage(variables: Mapping[str, str]) -> int:
    dry = variables.get("INPUT_DRY_RUN", "true").strip().lower()
    if dry not in ("true", "false"):
        raise InputError(f"dry-run: expected true or false, not {dry!r}")
    path = variables.get("GITHUB_EVENT_PATH", "")
    try:
        with open(path, encoding="utf-8") as file:
            event = json.load(file)
    except (OSError, ValueError):
        raise InputError("the event could not be read (GITHUB_EVENT_PATH)") from None
    issue = issue_of(event if isinstance(event, dict) else {}, variables.get("GITHUB_REPOSITORY", ""))
    if issue is None:
        print("compat: not an open issue: nothing to do")
        return 0
    text = reply(issue.text, variables.get("GITHUB_ACTION_REPOSITORY") or "OWNER/compat")
    print(f"compat: issue {issue.number}: {'one certain answer' if text else 'no certain answer'}")
    if text:
        # untrusted text never starts a line of the log: the runner could take it for a command
        print("\n".join(f"| {line}" for line in text.split("\n")))
    if dry == "true":
        print("compat: dry run: nothing was written (dry-run: false writes the comment)")
        return 0
    token = variables.get("INPUT_TOKEN", "")
    if not token:
        raise InputError("token: needed to write a comment (permissions: issues: write)")
    address = variables.get("GITHUB_API_URL") or "https://api.github.com"
    comments = Comments(issue, address, token, variables.get("INPUT_AUTHOR") or "github-actions[bot]")
    known = comments.own()
    if text is None and known is None:
        return 0
    comments.write(text or f"{MARK}\n{_GONE}", known)
    if text and variables.get("INPUT_LABEL"):
        comments.label(variables["INPUT_LABEL"])
    print(f"compat: the comment was {'edited' if known else 'written'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
