"""Answers a new issue on GitHub where its error is certainly a known one: ``mode: triage`` of the action.

The text of the issue is data: it is read by ``compat diagnose`` and never reaches a shell. One comment an issue, edited when
the issue is; never on pull requests; nothing is written unless ``dry-run`` is switched off.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
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
    """The issue that an event is about."""

    repository: str
    number: int
    text: str


def issue_of(event: Mapping[str, Any], repository: str) -> Issue | None:
    """The issue of an event, ``None`` for a pull request, a locked or a closed issue, and any other event."""
    found = event.get("issue")
    if not isinstance(found, dict) or "pull_request" in found or found.get("locked") or found.get("state") == "closed":
        return None
    if not repository or not isinstance(found.get("number"), int):
        raise InputError("expected GITHUB_REPOSITORY and an issue number: the workflow must run on issue events")
    return Issue(repository, found["number"], f"{found.get('title') or ''}\n\n{found.get('body') or ''}")


def reply(text: str, action: str) -> str | None:
    """The comment on an issue with this text; ``None`` where nothing in it is certain."""
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
    """The comments of one issue, through GitHub's REST API; every failure is an :class:`Undecided`."""

    def __init__(self, issue: Issue, address: str, token: str, author: str) -> None:
        import requests

        self._session: requests.Session = requests.Session()
        self._session.headers.update({"Accept": "application/vnd.github+json", "Authorization": f"Bearer {token}"})
        self._repository = f"{address}/repos/{issue.repository}"
        self._issue = f"{self._repository}/issues/{issue.number}"
        self._author = author

    def own(self) -> int | None:
        """The id of the comment that was written before. Who copies the mark into a comment of theirs is not the author."""
        for comment in self._all():
            if MARK in (comment.get("body") or "") and (comment.get("user") or {}).get("login") == self._author:
                return int(comment["id"])
        return None

    def write(self, text: str, known: int | None) -> None:
        """A new comment, or the known one with another text."""
        if known is None:
            self._call("POST", f"{self._issue}/comments", {"body": text})
        else:
            self._call("PATCH", f"{self._repository}/issues/comments/{known}", {"body": text})

    def label(self, name: str) -> None:
        """Puts a label on the issue."""
        self._call("POST", f"{self._issue}/labels", {"labels": [name]})

    def _all(self) -> Iterator[dict[str, Any]]:
        for page in range(1, _PAGES + 1):
            found = self._call("GET", f"{self._issue}/comments?per_page=100&page={page}")
            yield from found
            if len(found) < 100:
                return

    def _call(self, method: str, address: str, content: Any = None) -> Any:
        import requests

        try:
            answer = self._session.request(method, address, json=content, timeout=_TIMEOUT, allow_redirects=False)
            if answer.status_code // 100 != 2:
                raise Undecided(f"GitHub answered {answer.status_code} to {method} of comments or labels")
            return answer.json()
        except (requests.RequestException, ValueError) as problem:
            raise Undecided(f"the request to GitHub failed ({type(problem).__name__})") from None


def main(variables: Mapping[str, str] = os.environ) -> int:
    """What the action runs: 0 whether or not something is certain, 2 for a wrong call, 3 where GitHub cannot be asked."""
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
        # a line of somebody else's text is never first on a line of the log: it could be a command to the runner
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
