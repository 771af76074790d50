"""Credentials in addresses: what stands before a host, wherever in a text the address begins."""

from __future__ import annotations

import pytest

from compat import redact
from compat.output.stream import to_json
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
        ("<token>", "</token>"), ("<accessToken>", "</accessToken>"), ("<Password type='x'>", "</Password>"), ("<apiKey>\n  ", "\n</apiKey>"),
        ('<add key="ClearTextPassword" value="', '" />'), ('<property name="password" value="', '"/>'), ("<entry key='secret'>", "</entry>"),
        ("http -a bob:", " host"), ("curl -ubob:", " host"), ("curl --proxy-user bob:", " host"), ("curl -b 'session=", "' host"), ("tool -u bob:", "9x"),
        ("redis-cli -h x -a ", ""), ("sqlcmd -U sa -P ", ""), ("mongosh -u bob -p ", ""), ("twine upload -u bob -p ", " dist/*"), ("uv publish -u me -p ", ""),
        ("lftp -u bob,", " host"), ("smbclient -U bob%", " //host"), ("unzip -P ", " a.zip"), ("7z x -p", " a.7z"), ("htpasswd -b file bob ", ""),
        ("poetry config http-basic.x bob ", ""), ("poetry config pypi-token.x ", ""), ("npm config set //h/:_authToken ", ""), ("anaconda -t ", " upload"),
        ("gh auth login --with-token ", "9x"), ("machine h login bob password ", ""), ("Authorization=Bearer%20", "9x"),
        ("b'GET / HTTP/1.1\\r\\nAuthorization: Token ", "9x\\r\\n'"), ("X-JFrog-Art-Api: ", ""), ("Ocp-Apim-Subscription-Key: ", ""),
        ("Server=h;User Id=sa;Pwd=", ";"), ("SLACK_WEBHOOK_URL=", ""), ("connection_string='", "'"), ("https%3A%2F%2Fbob%3A", "%40host"),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n", "\n"), ("Credential=a/b, SignedHeaders=host, Signature=0123456789abcdef", ""),
        ("huggingface_token = '", "'"), ('"identitytoken": "', '"'), ("ASIA", "ABCDE"), ("glrt-0123456789", ""), ("hvs.0123456789", ""),
        ("Your token abcdef0123", "x has been saved"), ("Incorrect API key 0123456789a", " provided"), ("https://x.webhook.example/webhookb2/", ""),
        ("//host/:_authToken=", ""), ('{"username":"bob","key":"', '"}'),
    ],
)  # fmt: skip
def test_values_that_are_named_like_secrets_are_hidden(before: str, after: str) -> None:
    assert "S3CRETTOKEN" not in redacted(f"run: {before}S3CRETTOKEN{after} then")
    assert redacted(redacted(f"{before}S3CRETTOKEN{after}")) == redacted(f"{before}S3CRETTOKEN{after}")


@pytest.mark.parametrize(
    "text",
    [
        "Basic usage: see the guide", "basic auth: configuration", "Basic dXNhZ2UgaXMgZWFzeQ==", "<token>", "<|token|>hello</s>", "python -u train.py:main",
        "pip install -U torch==2.6.0", "docker run -u 1000:1000 x", "PWD=/home/bob/project", "token 12345 of 67890", "the token embedding of LlamaForCausalLM",
        "password for the database: required", "git checkout token 3f2a9c0d1e4b5a69788796a5b4c3d2e1f0a9b8c7", "tar -a x:y1z2w3v4u5 z", "Asia/Tokyo", "unzip -p x.whl METADATA",
        "credentials: none", "auth: null", "sha256:3f2a9c0d1e4b5a69788796a5b4c3d2e1f0a9b8c73f2a9c0d1e4b5a69788796a5",
        "KeyError: 'lm_head.weight'", "pad_token: <pad>", "missing key: model.layers.0", "password: str", "api_key=None", "HF_TOKEN: ${HF_TOKEN}",
        "curl -LsSf https://host/install.sh", "docker run -u $(id -u):$(id -g) x", "unexpected token: 'a'", "wandb login", "HF_TOKEN=$HF_TOKEN",
        "docker://nvcr.io/nvidia/pytorch:24.05-py3", "Tokenizer class: LlamaTokenizer", "use_auth_token: true", "--max-num-tokens 100000ab",
        "tokenizer.pad_token = tokenizer.eos_token", "'token', 'revision'", "eos_token='<|end_of_text_128001|>'", "python login.py --port 8080",
        "-r /etc/passwd: torch2.6.0 was not read", "/run/secrets/token: transformers4.51.3", "--token is missing", "--password is required",
        "l.txt: it is outside (/etc/passwd)", "generate(token=tokens[0])", "key: str", "docker login registry.example", "echo 12.1 | tee cuda_version_a1b2c3d4e5", "num_key_value_heads: 8",
        "cls_key: Qwen2ForCausalLM", "sort_key = Qwen2_5_VLForConditionalGeneration", "pad_token: <|vision_pad|>", "https://host/x?rev=3f2a9c0d1e4b5a69",
        "https://github.com/a/b/issues/new?title=torch2.6.0", "bypass: torch==2.6.0+cu124", "KeyError: 'model.layers.0.mlp.W1a2b3'", "fw_bw_overlap_of_two_steps",
        "PASS=1234 FAIL=0", 'HF_TOKEN="${HF_TOKEN:-}"', "curl -fsSLo u:x https://host", "metadata: {name: x, value: y}",
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
        ("HF_TOKEN=", ""), ("password: ", ""), ("Authorization: Bearer ", ""), ("machine h login bob password ", ""), ("ms_token: ", ""), ("dbPassword = '", "'"), ("POETRY_PYPI_TOKEN_NAME=", ""), ("save_token('", "')"),
        ("conda config --set anaconda_token ", ""), ("password: !vault ", ""), ("PASS=", ""), ("--conda-token ", ""), ("https://host/x?a=b&st=", ""),
        ("https://host/x%3Fa%3Db%26token%3D", ""), ("wandb login --host=https://w.example ", ""), ("gh auth login --with-token <<< ", ""),
        ("uv publish -t ", ""), ("hatch publish -u bob -a ", ""), ("kubectl create secret generic a --from-literal b=c --from-literal d=", ""),
        ("helm install x --set-string secrets.hf=", ""), ("gh secret set X --body ", ""), ("https://bob:\\\"", "@host/x"), ("https://a.example/v2/hook/", ""),
        (f"rpa_{'a' * 12}", ""), (f"lsv2_pt_{'a' * 12}", ""), (f"token_hf_{'a' * 12}", ""), (f"tvly-{'a' * 12}", ""), (f"hvb.{'a' * 12}", ""),
        ("https:\\/\\/host\\/t\\/", "\\/x"), ("https://host.example/conda/t/", "/x"), ("https://dl.cloudsmith.io/", "/org/repo/python/simple/"),
        ("https://packagecloud.io/priv/", "/o/r/simple"), ("https://host/x;jsessionid=", ""), ("--header=Authorization:\\ Bearer\\ ", ""),
        ("keyring set host bob ", ""), ("requests.get(url, auth=('bob', '", "'))"), ('HTTPBasicAuth("bob", "', '")'), ("--password \\\n  ", ""),
        ("skopeo copy --src-creds bob:", " docker://x"), ("skopeo copy --creds=bob:", " x"), ("curl -sSLu bob:", " https://host"), ("HF_TOKEN=$'", "'"),
        ('HF_TOKEN="${HF_TOKEN:-', '}"'), ("password: ${X:-", "}"), ("SSHPASS=", " ssh"), ("api_key=SecretStr('", "')"), ("SecretStr(\"", "\")"),
        ('{"Name": "DB_PASSWORD", "Value": "', '"}'), ('{"key": "HF_TOKEN", "value": "', '"}'), ("E   - name: HF_TOKEN\nE     value: ", ""),
        ("[rank0]: - name: HF_TOKEN\n[rank0]:   value: ", ""), ("password: !!str ", ""),
        ("SharedAccessSignature=0123456789", ""), ("mysql -u root '-p", "'"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("around", ["", "  0123456789 torch==2.6.0, nothing else\n" * 3000], ids=["alone", "in a long text"])
def test_a_secret_is_hidden_whatever_it_looks_like(before: str, after: str, around: str) -> None:
    text = f"{around}{before}{SECRET}{after}\n{around}"
    shown = redacted(text)
    assert SECRET not in shown
    assert around or SECRET not in redacted(to_json({"title": [text]}))  # its quotes and line ends are escaped
    assert shown.startswith(around)
    assert shown.endswith(around)


@pytest.mark.parametrize(
    "place",
    [
        "HF_TOKEN=?", "export DB_PASSWORD=?", "HF_TOKEN: ?", "password: ?", '{"password": ?}', "api_key=?", "--password ?", "--hub_token=?", "ENV A=b HF_TOKEN=? C=d",
        "os.environ['HF_TOKEN'] = ?", "- name: DB_PASSWORD\n  value: ?", "docker login -u bob -p ? host", "sshpass -p ? ssh host", "machine h login bob password ?",
        "ARG DB_PASSWORD=?", "ENV DB_PASSWORD ?", "requests.get(url, auth=('bob', ?))", "X-Api-Key: ?", "unzip -P ? a.zip", "gh secret set X -b ?",
    ],
)  # fmt: skip
@pytest.mark.parametrize("quote", ["'", '"', "\\'", '\\"'])
@pytest.mark.parametrize(
    "sign",
    [*"$!#%&()*+,-./:;<=>@[]^_`{|}~? é", "\\\\", "None", "true-", "abcd efgh ", "abcd$", "abcd;", "abcd&", "abcd}"],
)
def test_a_value_in_quotes_is_hidden_up_to_the_closing_one(place: str, quote: str, sign: str) -> None:
    shown = redacted(place.replace("?", f"{quote}{sign}{SECRET}{quote}"))
    assert SECRET not in shown
    assert shown == redacted(shown)


@pytest.mark.parametrize(
    "value",
    ["$HF_TOKEN", "${HF_TOKEN}", "$(cat x)", "$1", "{{ secrets.X }}", "{token}", "<your token>", "<|pad|>", "[MASK]", "None"],
)
@pytest.mark.parametrize(
    "place", ['HF_TOKEN="?"', "password: '?'", '{"api_key": "?"}', '--hub_token "?"', "ENV HF_TOKEN='?'", "sshpass -p '?' x"]
)
def test_a_reference_in_quotes_is_kept(place: str, value: str) -> None:
    text = place.replace("?", value)
    assert redacted(text) == text


def test_lines_that_are_repeated_are_redacted_once() -> None:
    line = '{"rule": "torch-key", "token": "a", "url": "https://index.example/x@1"},\n'
    assert_linear(lambda text: redacted(text), lambda length: line * (length // len(line)), 4_000_000)
    assert redacted(line * 2000) == redacted(line) * 2000


def test_a_text_is_cut_after_its_credentials_are_taken_out() -> None:
    assert excerpt(f"https://{'S3CRET' * 20}@host/x", 30) == "https://****@host/x"
    assert excerpt("torch==2.6.0", 5) == "torch"


def test_the_header_of_a_hunk_is_no_reason_to_look_for_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    diff = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n-trl==0.17.0\n+trl==0.18.0\n"
    hidden = "@@ -1 +1 @@\n+-i https://****@host/simple\n"
    assert redacted(hidden.replace("****", "bob:pw")) == hidden
    assert redacted("@@ -https://bob:pw@host @@") == "@@ -https://****@host @@"
    monkeypatch.setattr(redact, "_patterns", lambda: pytest.fail("patterns were compiled"))
    assert redacted(diff) == diff
