"""What action.yml runs: ``compat check``, or the answer to an issue, with the action's inputs from the environment.

It runs in the checked-out repository, with the Python of the environment that compat is installed in.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile

_OPTIONS = {"INPUT_TARGET": "target", "INPUT_FAIL_ON": "fail-on", "INPUT_BASELINE": "baseline"}


def main() -> int:
    """Run the check, set the outputs ``exit-code`` and ``sarif``, and return the exit code of the check."""
    mode = os.environ.get("INPUT_MODE") or "check"
    if mode == "triage":
        from compat.integrations.triage import main as triage

        return _done(triage())
    if mode != "check":
        print("::error::compat: mode: expected check or triage")
        return _done(2)
    given = (line.rstrip("\r") for line in os.environ.get("INPUT_FILES", "").split("\n"))
    files = [line for line in given if line.strip()] or tracked_files()
    if not files:
        print("::error::compat: git tracks no file to check here; name some with the input 'files'")
        return _done(2)
    print(f"compat: {len(files)} file{'s' if len(files) != 1 else ''} to check", flush=True)
    # --option=value and ./-file, so that no input value is parsed as an option
    words = [f"--{option}={os.environ[name]}" for name, option in _OPTIONS.items() if os.environ.get(name)]
    words += [f"./{file}" if file.startswith("-") else file for file in files]
    form = os.environ.get("INPUT_FORMAT") or "github"
    if form != "sarif":
        return _done(_check(f"--format={form}", "--quiet", *words))
    handle, sarif = tempfile.mkstemp(".sarif", "compat-", os.environ.get("RUNNER_TEMP"))
    with os.fdopen(handle, "wb") as output:
        code = _check("--format=sarif", *words, output=output.fileno())
    _check("--quiet", *words)  # for the log
    return _done(code, sarif if os.path.getsize(sarif) else "")


def tracked_files() -> list[str]:
    """Return the git-tracked regular files below the current folder that match the pre-commit hook; none outside git."""
    import yaml

    if shutil.which("git") is None:
        return []
    manifest = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), ".pre-commit-hooks.yaml")
    with open(manifest, encoding="utf-8") as file:
        wanted = re.compile(next(hook["files"] for hook in yaml.safe_load(file) if hook["id"] == "compat-check"))
    listed = subprocess.run(["git", "ls-files", "--stage", "-z"], stdout=subprocess.PIPE, check=False).stdout
    entries = (entry.partition("\t") for entry in os.fsdecode(listed).split("\0") if entry)
    # mode 100644 or 100755: not a link or submodule
    return list(dict.fromkeys(name for mode, _, name in entries if mode.startswith("100") and wanted.search(name)))


def _check(*words: str, output: int | None = None) -> int:
    return subprocess.run([sys.executable, "-I", "-m", "compat", "check", *words], stdout=output, check=False).returncode


def _done(code: int, sarif: str = "") -> int:
    with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as file:
        file.write(f"exit-code={code}\nsarif={sarif}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
