"""Files of jobs that are refused, with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.errors import InputError
from compat.formats.registry import read_listings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("on: push\njobs: [a]\n", "ci.yml:2: expected jobs to be a table, not a list"),
        ("on: push\njobs:\n  a:\n    steps: {b: c}\n", "ci.yml:4: expected steps to be a list, not a table"),
        ("on: push\njobs:\n  a: {steps: [3]}\n", "ci.yml:3: expected a step to be a table, not a string"),
        (
            "apiVersion: v1\nkind: Pod\nspec: {containers: [a]}\n",
            "job.yaml:3: expected a container to be a table, not a string",
        ),
        (
            "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n   - {env: 3}\n",
            "job.yaml:5: expected env to be a list, not a string",
        ),
        ("apiVersion: v1\nkind: Pod\nspec: {\n", "job.yaml:4: is not YAML"),
        (
            'apiVersion: ray.io/v1\nkind: RayJob\nspec:\n  runtimeEnvYAML: "[a"\n',
            "job.yaml:4: runtimeEnvYAML: is not YAML",
        ),
        ('{\n  "image": 3\n}', "devcontainer.json:2: expected image to be a string"),
        ('{\n"a": 1,\n"postCreateCommand": 3}', "devcontainer.json:3: expected postCreateCommand to be a string, a list"),
        ("[]", "devcontainer.json:1: expected a JSON object"),
        ('{"a": }', "devcontainer.json:1: is not JSON"),
        ("type: fleet\ncommands: [a]\n", "task.yaml:1: expected the type task, service or dev-environment, not 'fleet'"),
        ("resources: [a]\nrun: [b]\nenvs: 3\n", "task.yaml:3: expected envs to be a table, not a string"),
        ("type: task\ncommands: {a: b}\n", "task.yaml:2: expected commands to be a list, not a table"),
    ],
)
def test_bad_files_are_refused_with_their_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    name = message.partition(":")[0]
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as problem:
        read_listings(name)
    assert str(problem.value).startswith(message)
