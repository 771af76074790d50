"""Credentials in addresses: what stands before a host, wherever in a text the address begins."""

from __future__ import annotations

import pytest

from compat.redact import excerpt, redacted
from tests.growth import assert_linear


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("https://bob:pw@host/x", "https://****@host/x"),
        ("https://u:p/a@host/x", "https://****@host/x"),
        ("https://proxy.example/https://bob:pw@host", "https://proxy.example/https://****@host"),
        ("https://u:p@proxy.example/https://bob:pw@host", "https://****@proxy.example/https://****@host"),
        ("git+ssh://git@host/x.git", "git+ssh://git@host/x.git"),
        ("https://host:8080/simple", "https://host:8080/simple"),
        ("//bob:pw@host/x", "//****@host/x"),
        ("https:/bob:pw@host/x", "https:/****@host/x"),
    ],
)
def test_what_stands_before_a_host_is_hidden(text: str, wanted: str) -> None:
    assert redacted(text) == wanted
    assert redacted(f"see <{text}> for it") == f"see <{wanted}> for it"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"HF_TOKEN": "', '"}'), ('{\\"WANDB_API_KEY\\": \\"', '\\"}'), ("HF_TOKEN: ", ""), ('os.environ["HF_TOKEN"] = "', '"'),
        ("password: ", ""), ("OpenAI(api_key='", "')"), ("wandb login ", ""), ("wandb login --relogin ", " && python a.py"),
        ("curl -s -u bob:", " https://host/x"), ("https://host/x#access_token=", "&x=1"), ("x-api-key: ", ""),
        ("-----BEGIN PRIVATE KEY-----\\n", "\\n-----END PRIVATE KEY-----"), ("eyJhbGciOiJIUzI1NiJ9.eyJ", ".x"),
        ("ARG GIT_PAT=\"", "\""), ("env: {TOKEN: ", "}"), ("hub_token: ", ""), ("token: ", ""), ("apiKey: ", ""), ("client_secret = '", "'"),
        ("machine host login bob password ", ""), ("machine host password ", " login bob"), ("ENV HF_TOKEN ", ""), ("setx HF_TOKEN ", ""),
        ("os.environ.setdefault('HF_TOKEN', '", "')"), ("login('", "')"), ("login(token=\"", "\")"), ("Api(token='", "', x=1)"),
        ("{name: HF_TOKEN, value: ", "}"), ("- name: HF_TOKEN\n   value: ", ""), ("+- name: HF_TOKEN\n+  value: '", "'"),
        ("--hub_token ", ""), ("--push_to_hub_token=", ""), ("--apiKey ", ""), ("--NotebookApp.token='", "'"), ("--passphrase ", ""),
        ("--ngrok-authtoken ", ""), ("ngrok authtoken ", ""), ("--gradio-auth bob:", ""), ("docker login -u bob -p ", " host"),
        ("docker login -u bob -p", " host"), ("echo ", " | docker login --password-stdin"), ("printf '%s' '", "' | gh auth login --with-token"),
        ("sshpass -p ", " ssh host"), ("aws configure set aws_secret_access_key ", ""), ("vault login ", ""), ("PRIVATE-TOKEN: ", "'"),
        ("X-API-Key: ", ""), ("Authorization: token ", ""), ("authorization: ", ""), ("Cookie: session=", "'"), ("curl -u ", ": https://host"),
        ("AccountName=a;AccountKey=", ";EndpointSuffix=b"), ("https://hooks.slack.com/services/T0/B0/", ""), ("redis://:", "@host/0"),
        ("//host/:_authToken=", ""), ('{"username":"bob","key":"', '"}'),
    ],
)  # fmt: skip
def test_values_that_are_named_like_secrets_are_hidden(before: str, after: str) -> None:
    assert "S3CRETTOKEN" not in redacted(f"run: {before}S3CRETTOKEN{after} then")
    assert redacted(redacted(f"{before}S3CRETTOKEN{after}")) == redacted(f"{before}S3CRETTOKEN{after}")


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'lm_head.weight'", "pad_token: <pad>", "missing key: model.layers.0", "password: str", "api_key=None", "HF_TOKEN: ${HF_TOKEN}",
        "curl -LsSf https://host/install.sh", "docker run -u $(id -u):$(id -g) x", "unexpected token: 'a'", "wandb login", "HF_TOKEN=$HF_TOKEN",
        "docker://nvcr.io/nvidia/pytorch:24.05-py3", "Tokenizer class: LlamaTokenizer", "use_auth_token: true", "--max-num-tokens 100000ab",
        "tokenizer.pad_token = tokenizer.eos_token", "'token', 'revision'", "eos_token='<|end_of_text_128001|>'", "python login.py --port 8080",
        "-r /etc/passwd: torch2.6.0 was not read", "/run/secrets/token: transformers4.51.3", "--token is missing", "--password is required",
        "l.txt: it is outside (/etc/passwd)", "generate(token=tokens[0])", "key: str", "docker login registry.example", "echo 12.1 | tee cuda_version_a1b2c3d4e5", "num_key_value_heads: 8",
    ],
)  # fmt: skip
def test_what_is_no_secret_is_kept(text: str) -> None:
    assert redacted(text) == text


SECRET = "q7Zx91fLm3Wb"
"""Unlike ``S3CRETTOKEN``, it contains no word that makes a text suspicious."""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- name: WANDB_API_KEY\n  value: ", ""), ("- name: DB_PASS\n  value: ", ""), ("ENV DB_PASS ", ""), ("AWS_SECRET_ACCESS_KEY,", ""),
        ("HF_TOKEN := ", ""), ("HF_TOKEN += ", ""), ("HF_TOKEN ?= ", ""), ("'HF_TOKEN' => '", "'"), ("HF_TOKEN->", ""), ("| HF_TOKEN | ", " |"),
        ("WANDB_API_KEY: >-\n  ", ""), ("token: |\n  ", ""), ("SecretAccessKey: ", ""), ("<password>", "</password>"), ("HF_TOKEN\n", ""),
        ("npm_" + "a1" * 12, ""), ("pypi-AgEIcHlw", ""), ("dckr_pat_a1b2c3", ""), ("ya29.a0AfH6", ""), (f"SG.{'a' * 22}.", "abcdefgh"), ("r8_" + "a" * 12, ""),
        ("sk_live_", ""), ("https://bob:", "@host/x"), ("//bob:", "@host/x"), ("https://host/t/", "/x"), ("https://host/x?sig=", ""), ("--hub_token ", ""),
        ("HF_TOKEN=", ""), ("password: ", ""), ("Authorization: Bearer ", ""), ("machine h login bob password ", ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("around", ["", "  0123456789 torch==2.6.0, nothing else\n" * 3000], ids=["alone", "in a long text"])
def test_a_secret_is_hidden_whatever_it_looks_like(before: str, after: str, around: str) -> None:
    shown = redacted(f"{around}{before}{SECRET}{after}\n{around}")
    assert SECRET not in shown
    assert shown.startswith(around)
    assert shown.endswith(around)


def test_lines_that_are_repeated_are_redacted_once() -> None:
    line = '{"rule": "torch-key", "token": "a", "url": "https://index.example/x@1"},\n'
    assert_linear(lambda text: redacted(text), lambda length: line * (length // len(line)), 4_000_000)
    assert redacted(line * 2000) == redacted(line) * 2000


def test_a_text_is_cut_after_its_credentials_are_taken_out() -> None:
    assert excerpt(f"https://{'S3CRET' * 20}@host/x", 30) == "https://****@host/x"
    assert excerpt("torch==2.6.0", 5) == "torch"
