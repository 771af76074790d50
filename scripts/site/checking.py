"""The page that checks what is pasted into it."""

from __future__ import annotations

from compat.output.html.page import Html, element, joined, raw
from scripts.site.frame import CHECK_POLICY, Page

_NAMES = (
    "requirements.txt",
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "pylock.toml",
    "pixi.lock",
    "Pipfile.lock",
    "pyproject.toml",
    "environment.yml",
    "conda-lock.yml",
    "Dockerfile",
    "compose.yaml",
    "install.sh",
    "notebook.ipynb",
)
_TASKS = ("sft", "grpo", "dpo", "ppo", "orpo", "kto", "reward", "train", "inference", "serve")
_LAUNCHERS = ("python", "accelerate", "torchrun", "deepspeed", "ray", "slurm")
_GPUS = (
    "T4",
    "A10",
    "L4",
    "L40S",
    "RTX 3090",
    "RTX 4090",
    "RTX 5090",
    "A100:2",
    "H100:8",
    "H200:8",
    "B200:8",
    "MI300X:8",
    "none",
)


def check_page(worker: str) -> Page:
    """The page; ``worker`` is the script of its worker, which it holds as text."""
    area = element(
        "textarea", id="text", name="text", spellcheck="false", autocomplete="off", autocapitalize="off", required=True
    )
    suggestions = element("datalist", *(element("option", value=name) for name in _GPUS), id="gpus")
    fields = element(
        "div",
        _labelled("Read as", _choice("name", ("", "what it looks like"), _NAMES)),
        _labelled("GPU, and how many", element("input", name="gpu", list="gpus", placeholder="A100:2", autocomplete="off")),
        _labelled("Task", _choice("task", ("", "not stated"), _TASKS)),
        _labelled("Launcher", _choice("launcher", ("", "not stated"), _LAUNCHERS)),
        _labelled("Python", element("input", name="python-version", placeholder="3.11", autocomplete="off")),
        _labelled("Driver", element("input", name="driver", placeholder="550.54.15", autocomplete="off")),
        class_="fields",
    )
    buttons = element(
        "div",
        element("button", "Check", id="go", type="submit", class_="main", disabled=True),
        element("button", "Copy a link", id="link", type="button"),
        element("button", "Save the report", id="save", type="button", disabled=True),
        class_="buttons",
    )
    paste = "pip freeze, collect_env, a lock file, requirements, a Dockerfile, a traceback, or a whole issue"
    form = element("form", element("label", f"Paste {paste}:", area, class_="wide"), fields, suggestions, buttons, id="check")
    promise = (
        "Nothing you paste leaves this page. It runs compat itself in your browser (Python compiled to WebAssembly by Pyodide, "
        "MPL-2.0), and its Content-Security-Policy lets it make requests to nothing but the server it came from, for the files "
        "of that runtime."
    )
    without = element("noscript", element("p", "This page needs scripts; all others work without. Or run: compat check"))
    content = joined(
        (
            element("p", promise), without, form, element("p", id="status", role="status", class_="soft"),
            element("section", id="result", aria_label="Report"),
            element("script", raw(worker), type="text/plain", id="worker-source"),
        )
    )  # fmt: skip
    return Page("check.html", "Check an environment", content, ("check.js",), CHECK_POLICY)


def _labelled(text: str, field: Html) -> Html:
    return element("label", text, field)


def _choice(name: str, first: tuple[str, str], values: tuple[str, ...]) -> Html:
    value, text = first
    others = (element("option", each) for each in values)
    return element("select", element("option", text, value=value), *others, name=name)
