"""Where indexes and how to reach them are told: pip's files and variables, uv's, the command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from compat.errors import InputError
from compat.index.configuration import uv_binary
from compat.index.settings import Settings, Source, gather


@pytest.fixture
def given(tmp_path: Path) -> Any:
    """Gathers for a project in an empty folder, with a home and an environment that are empty but for what is given."""

    def call(
        files: dict[str, str] | None = None, environ: dict[str, str] | None = None, **options: Any
    ) -> Settings:  # fmt: skip
        for name, text in (files or {}).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for folder in ("home", "env", "project"):
            (tmp_path / folder).mkdir(exist_ok=True)
        base = {
            "HOME": str(tmp_path / "home"),
            "XDG_CONFIG_DIRS": str(tmp_path / "etc"),
            "PIP_CONFIG_FILE": str(tmp_path / "none"),
        }
        return gather(str(tmp_path / "project"), environ={**base, **(environ or {})}, prefix=str(tmp_path / "env"), **options)

    return call


@pytest.fixture(autouse=True)
def nothing_site_wide(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("compat.index.configuration._site_wide", lambda environ: [tmp_path / "etc" / "pip"])
    monkeypatch.setattr("compat.index.configuration._system", lambda environ: tmp_path / "etc" / "uv" / "uv.toml")


def urls(settings: Settings) -> list[str | None]:
    return [source.url for source in settings.sources]


def test_nothing_configured_is_uvs_default(given: Any) -> None:
    assert given() == Settings()
    assert given().sources == (Source(None),)


def test_pip_files_and_variables_beat_each_other_in_pips_order(given: Any, tmp_path: Path) -> None:
    files = {"etc/pip/pip.conf": "[global]\nindex-url = https://1.example/simple/\ntimeout = 7\nretries=1\n"}
    assert urls(given(files)) == ["https://1.example/simple"]
    files["home/.pip/pip.conf"] = "[global]\nindex_url = https://2.example/s\n"
    assert urls(given(files)) == ["https://2.example/s"]
    files["home/.config/pip/pip.conf"] = "[global]\nindex-url = https://3.example/s\n[install]\nindex-url=https://4.example/s\n"
    assert urls(given(files)) == ["https://4.example/s"]
    files["env/pip.conf"] = "[install]\nindex-url = https://5.example/s\n"
    assert urls(given(files)) == ["https://5.example/s"]
    files["named.conf"] = "[install]\nindex-url = https://6.example/s\n"
    named = {"PIP_CONFIG_FILE": str(tmp_path / "named.conf")}
    assert urls(given(files, named)) == ["https://6.example/s"]
    settings = given(files, {**named, "PIP_INDEX_URL": "https://7.example/s"})
    assert urls(settings) == ["https://7.example/s"]
    assert (settings.timeout, settings.retries) == (7.0, 1)
    assert given(files, {"PIP_CONFIG_FILE": "/dev/null"}) == Settings()


def test_pip_asks_every_index_and_uv_the_first(given: Any) -> None:
    pip = "[global]\nextra-index-url =\n    https://a.example/s\n    https://b.example/s\nfind-links = wheels https://f.example/page.html\n"
    settings = given({"env/pip.conf": pip})
    assert settings.strategy == "unsafe-best-match"
    assert urls(settings)[1:] == ["https://f.example/page.html", "https://a.example/s", "https://b.example/s", None]
    assert [source.flat for source in settings.sources] == [True, True, False, False, False]
    assert urls(settings)[0].startswith("file:///")
    assert urls(settings)[0].endswith("/project/wheels")
    mixed = given({"env/pip.conf": pip}, {"UV_INDEX": "mine=https://u.example/s https://v.example/s"})
    assert mixed.strategy == "first-index"
    assert urls(mixed)[2:] == ["https://u.example/s", "https://v.example/s", "https://a.example/s", "https://b.example/s", None]
    assert mixed.sources[2].name == "mine"
    assert given({}, {"UV_INDEX_STRATEGY": "unsafe-first-match"}).strategy == "unsafe-first-match"


def test_uv_variables(given: Any) -> None:
    settings = given({}, {
        "UV_DEFAULT_INDEX": "corp=https://d.example/s", "UV_INDEX_URL": "https://old.example/s", "UV_EXTRA_INDEX_URL": "https://e.example/s",
        "UV_FIND_LINKS": "/w,https://f.example/p", "UV_HTTP_TIMEOUT": "3", "UV_HTTP_RETRIES": "0", "UV_INSECURE_HOST": "D.example x:8",
        "PIP_INDEX_URL": "https://pip.example/s", "UV_KEYRING_PROVIDER": "disabled",
    })  # fmt: skip
    assert urls(settings) == ["file:///w", "https://f.example/p", "https://e.example/s", "https://d.example/s"]
    assert (settings.timeout, settings.retries, settings.trusted, settings.keyring) == (3.0, 0, ("d.example", "x:8"), False)


PROJECT = """
[tool.uv]
index-strategy = "unsafe-best-match"
find-links = ["vendor"]
[[tool.uv.index]]
name = "cu124"
url = "https://torch.example/whl/cu124/"
explicit = true
ignore-error-codes = [403]
[[tool.uv.index]]
name = "main"
url = "https://main.example/s"
default = true
[[tool.uv.index]]
name = "links"
url = "./links"
format = "flat"
[tool.uv.sources]
Torch_X = { index = "cu124" }
torch = [{ index = "cu124", marker = "sys_platform == 'linux'" }, { git = "https://g.example/x" }]
other = { path = "../other" }
"""


def test_a_projects_indexes(given: Any, tmp_path: Path) -> None:
    settings = given(
        {"project/pyproject.toml": PROJECT, "home/.config/uv/uv.toml": 'extra-index-url = ["https://user.example/s"]\n'}
    )
    vendor, torch, links, user, default = settings.sources
    assert torch == Source("https://torch.example/whl/cu124", "cu124", explicit=True, absent=(403,))
    assert links == Source((tmp_path / "project" / "links").as_uri(), "links", flat=True)
    assert (default.url, user.url, vendor.flat) == ("https://main.example/s", "https://user.example/s", True)
    assert settings.pinned == {"torch-x": ("cu124",), "torch": ("cu124",)}
    assert settings.strategy == "unsafe-best-match"
    assert torch in settings.sources_of("torch")
    assert default not in settings.sources_of("torch")
    assert torch not in settings.sources_of("numpy")
    assert given({}, {"UV_NO_CONFIG": "1"}).sources == (Source(None),)


def test_uv_toml_goes_before_pyproject_and_its_pip_table_before_the_rest(given: Any, tmp_path: Path) -> None:
    own = 'index-url = "https://1.example/s"\n[pip]\nindex-url = "https://2.example/s"\n'
    assert urls(given({"project/pyproject.toml": PROJECT.partition("[tool.uv.sources]")[0], "project/uv.toml": own})) == [
        "https://2.example/s"
    ]
    named = {"UV_CONFIG_FILE": str(tmp_path / "named.toml")}
    assert urls(given({"named.toml": 'index-url = "https://3.example/s"'}, named)) == ["https://3.example/s"]


def test_a_folder_below_the_project_has_its_settings(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.uv]\nindex-url = "https://1.example/s"\n')
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "pyproject.toml").write_text("[project]\n")
    settings = gather(str(tmp_path / "sub"), environ={"PIP_CONFIG_FILE": "/dev/null", "HOME": str(tmp_path)})
    assert urls(settings) == ["https://1.example/s"]


def test_the_command_line_goes_first(given: Any) -> None:
    configured = {"UV_DEFAULT_INDEX": "https://d.example/s", "UV_INDEX": "https://e.example/s"}
    settings = given(
        {},
        configured,
        index_url="https://c.example/s",
        extra_index_urls=["https://x.example/s"],
        find_links=["https://l.example/"],
    )
    assert urls(settings) == ["https://l.example/", "https://x.example/s", "https://e.example/s", "https://c.example/s"]


def test_an_index_that_is_named_twice_is_asked_once_and_first(given: Any) -> None:
    settings = given(
        {}, {"UV_INDEX": "https://a.example/s https://b.example/s https://a.example/s/", "PIP_INDEX_URL": "https://b.example/s"}
    )
    assert urls(settings) == ["https://a.example/s", "https://b.example/s"]


def test_no_index_leaves_the_links(given: Any) -> None:
    for files, environ in (
        ({}, {"PIP_NO_INDEX": "yes"}),
        ({}, {"UV_NO_INDEX": "1"}),
        ({"project/uv.toml": "no-index = true"}, {}),
    ):
        assert urls(given(files, environ, find_links=["https://l.example/"])) == ["https://l.example/"]
    (given({"project/uv.toml": ""}))
    assert urls(given({}, {"PIP_NO_INDEX": "0"})) == [None]


def test_credentials_are_taken_out_of_addresses(given: Any) -> None:
    settings = given({}, {
        "PIP_INDEX_URL": "https://me:p%40ss@a.example:8443/simple", "UV_INDEX": "corp-x=https://b.example/s",
        "UV_INDEX_CORP_X_USERNAME": "you", "UV_INDEX_CORP_X_PASSWORD": "pw", "PIP_FIND_LINKS": "https://token@c.example/l",
    })  # fmt: skip
    assert urls(settings) == ["https://c.example/l", "https://b.example/s", "https://a.example:8443/simple"]
    known = {host: (each.user, each.password) for host, each in settings.credentials.items()}
    assert known == {
        "https://a.example:8443": ("me", "p@ss"),
        "https://b.example": ("you", "pw"),
        "https://c.example": ("token", ""),
    }
    assert "p@ss" not in repr(settings)


def test_how_indexes_are_reached(given: Any) -> None:
    pip = "[global]\ncert = /pip.pem\nclient-cert = /me.pem\nproxy = http://proxy.example:3128\ntrusted-host = a.example\n  b.example:81\n"
    settings = given({"env/pip.conf": pip}, {"REQUESTS_CA_BUNDLE": "/r.pem"})
    assert (settings.certificates, settings.client_certificate, settings.proxy) == (
        "/pip.pem",
        "/me.pem",
        "http://proxy.example:3128",
    )
    assert settings.trusted == ("a.example", "b.example:81")
    assert given({"env/pip.conf": ""}, {"REQUESTS_CA_BUNDLE": "/r.pem", "SSL_CERT_FILE": "/s.pem"}).certificates == "/r.pem"
    assert given({}, {"SSL_CERT_FILE": "/s.pem"}).certificates == "/s.pem"
    assert given({}, {"SSL_CERT_FILE": "/s.pem", "PIP_CERT": "/p.pem"}).certificates == "/p.pem"
    assert given({}, {"PIP_DEFAULT_TIMEOUT": "60", "PIP_RETRIES": "9"}).timeout == 60.0


@pytest.mark.parametrize(
    ("files", "environ", "told"),
    [
        ({"env/pip.conf": "index-url = x"}, {}, "pip.conf:1: is not a pip configuration"),
        ({"env/pip.conf": "[global]\nsense\n"}, {}, "pip.conf:2: is not a pip configuration"),
        ({"env/pip.conf": "[global]\na=1\na=2\n"}, {}, "pip.conf:3: is not a pip configuration"),
        ({"project/uv.toml": "index-url = 3"}, {}, "uv.toml: index-url: expected a string"),
        ({"project/uv.toml": 'find-links = "x"'}, {}, "uv.toml: find-links: expected a list of strings"),
        ({"project/uv.toml": "no-index = 'no'"}, {}, "uv.toml: no-index: expected true or false"),
        ({"project/uv.toml": "index = 1"}, {}, "uv.toml: index: expected tables, each as [[index]]"),
        ({"project/uv.toml": "[[index]]\nname = 'x'"}, {}, "uv.toml: index: expected a url, and a name that is a string"),
        ({"project/uv.toml": "pip = 1"}, {}, "uv.toml: pip: expected a table"),
        ({"project/uv.toml": "index-url = ["}, {}, "uv.toml"),
        ({"project/pyproject.toml": "[tool]\nuv = 1"}, {}, "pyproject.toml: tool.uv: expected a table"),
        ({"project/pyproject.toml": "[tool.uv]\nsources = 1"}, {}, "pyproject.toml: tool.uv.sources: expected a table"),
        ({"project/pyproject.toml": "[tool.uv.sources]\na = {index = 'b'}"}, {}, "tool.uv.sources: a: there is no index named 'b'"),
        ({}, {"UV_INDEX_STRATEGY": "best"}, "index-strategy: expected one of first-index"),
        ({}, {"UV_DEFAULT_INDEX": "ftp://x.example"}, "UV_DEFAULT_INDEX: expected an address that begins with https:"),
        ({}, {"PIP_INDEX_URL": "https:///simple"}, "pip's index-url: expected the address of an index with a host"),
        ({}, {"PIP_INDEX_URL": "https://[::1/simple"}, "pip's index-url: expected the address of an index, got one"),
        ({}, {"PIP_INDEX_URL": "https://h:99999/simple"}, "pip's index-url: expected the address of an index, got one"),
        ({}, {"PIP_TIMEOUT": "soon"}, "timeout: expected a number of seconds or tries, got 'soon'"),
        ({}, {"PIP_RETRIES": "-1"}, "retries: expected a number"),
        ({}, {"PIP_RETRIES": "nan"}, "retries: expected a number"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_one_line(given: Any, files: dict[str, str], environ: dict[str, str], told: str) -> None:
    with pytest.raises(InputError) as caught:
        given(files, environ)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


# --- Which uv is started: never one that lies in what is inspected.


def _program(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "uv"
    program.write_text("#!/bin/sh\nexit 7\n", encoding="utf-8")
    program.chmod(0o755)
    return program


@pytest.fixture
def without_distribution(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setitem(sys.modules, "uv", None)
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    return project


@pytest.mark.parametrize("place", ["tools", ".venv/bin", "", "node_modules/.bin"])
def test_no_uv_of_the_current_folder_is_started(
    place: str, without_distribution: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(without_distribution / place)
    for folder in (str(without_distribution / place), place, ".", ""):
        monkeypatch.setenv("PATH", folder)
        assert uv_binary() is None


@pytest.mark.parametrize("mark", ["pyvenv.cfg", "conda-meta", "VIRTUAL_ENV", "CONDA_PREFIX"])
def test_no_uv_of_another_environment_is_started(
    mark: str, without_distribution: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment, system = tmp_path / "environment", tmp_path / "system" / "bin"
    _program(environment / "bin")
    if mark.isupper():
        monkeypatch.setenv(mark, str(environment))
    else:
        (environment / mark).mkdir()
    (tmp_path / "link").symlink_to(environment / "bin")
    monkeypatch.setenv("PATH", f"{environment / 'bin'}:{tmp_path / 'link'}")
    assert uv_binary() is None
    monkeypatch.setenv("PATH", f"{environment / 'bin'}:{tmp_path / 'link'}:{system}")
    assert uv_binary() is None
    wanted = _program(system)
    assert uv_binary() == str(wanted)
    monkeypatch.setattr(sys, "prefix", str(environment))
    assert uv_binary() == str(environment / "bin" / "uv")
