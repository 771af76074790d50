"""Credentials in addresses: what stands before a host, wherever in a text the address begins."""

from __future__ import annotations

import pytest

from compat.redact import excerpt, redacted


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
        "generate(token=tokens[0])", "key: str", "docker login registry.example", "echo 12.1 | tee cuda_version_a1b2c3d4e5", "num_key_value_heads: 8",
    ],
)  # fmt: skip
def test_what_is_no_secret_is_kept(text: str) -> None:
    assert redacted(text) == text


def test_a_text_is_cut_after_its_credentials_are_taken_out() -> None:
    assert excerpt(f"https://{'S3CRET' * 20}@host/x", 30) == "https://****@host/x"
    assert excerpt("torch==2.6.0", 5) == "torch"
