"""Redaction of credentials in everything the program prints: output, errors and notes are meant to be shared.

Redacted are: user and password before a host (with or without a scheme, even if the password contains a slash), conda's
``/t/TOKEN/``, the values of query keys, options, headers and variables with names of secrets, arguments of login commands, and
the tokens of well-known services. Time is linear in the text; ``re`` is only imported if the text may contain a credential.
"""

from __future__ import annotations

from compat.records import cached

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias, TypeVar

    _Value = TypeVar("_Value", str, "str | None")
    _Pattern: TypeAlias = tuple[str, str, int, str | Callable[[re.Match[str]], str]]
    """(lower-case text without which the pattern cannot match; the pattern; its flags; its replacement)"""


HIDDEN = "****"
_SIGNS = (
    "@", "/t/", "\\/t\\/", "bearer ", "bearer\\", "sessionid", "session_id",
    "authorization", "cookie", "hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-",
    "sk-", "akia", "login", "passw", "passphrase", "mysql", "curl ", "nvapi-", "gsk_", "xox", "aiza", "eyj", "private key-----",
    "/services/", "/webhooks/", "/bot", "pass=", "pass:", "sshpass", "api=", "npm_", "pypi-age",
    "dckr_", "ya29.", "sg.", "r8_", "sk_", "asia", "gldt-", "glrt-", "glptt-", "rk_", "whsec_", "hvs.", "shpat_", "dop_v1_",
    "lin_api_", "tgp_v1_", "xai-", "pplx-", "api_org_", "basic ", "basic%20", "connection_string", "connectionstring",
    "webhook", "%40", " -u ", " -a ", "redis-cli", "sqlcmd", "mongo", "lftp ", "smbclient", "twine ", "zip -p",
    "7z ", "anaconda -t", "http-basic.", "pwd=", "-api", " publish", "--from-literal", "/hook/", "secrets.", "rpa_",
    "wandb_v1_", "pcsk_", "fw_", "jina_", "sntrys_", "glc_", "phc_", "figd_", "sbp_", "vck_", "tvly-", "csk-", "pmak-",
    "tskey-", "lsv2_", "dapi", "hvb.", "atatt", "%3d", "cloudsmith.io/", "fury.io/", "packagecloud.io/",
    "keyring ", "secretstr(", "-creds", "response=",
)  # fmt: skip
"""In lower case; a text that contains none of them, nor one of ``_WORDS`` as the end of a word, needs no redaction."""
_WORDS = (
    "token", "key", "keys", "secret", "credential", "credentials", "_pat", "_pass", "auth", "pwd", "signature", "sig", "jwt",
)  # fmt: skip
_LARGE = 50_000
"""Characters of a text whose lines are looked at one by one: most lines of a long report occur many times in it."""
_AROUND = 3
"""Lines with text behind a suspicious one that belong to it: a value may stand on the next line."""
_LONGEST = 10_000
"""Characters of a text that are considered for an excerpt."""
_NAMES_OF_USERS = ("git", "hg", "svn", "")
"""User names that belong to the protocol and are not secret."""


def redacted(text: str) -> str:
    """The text without credentials."""
    return _redacted_by_lines(text) if len(text) > _LARGE and "\n" in text else _redacted(text)


def _redacted_by_lines(text: str) -> str:
    """Redact the suspicious lines of a text, each together with those around it."""
    lines = text.split("\n")
    known: dict[str, bool] = {}
    parts: list[str] = []
    done: dict[str, str] = {}
    at, last = 0, len(lines)
    while at < last:
        line = lines[at]
        suspicious = known.get(line)
        if suspicious is None:
            suspicious = known[line] = _suspicious(f"{line}\n".lower())
        if not suspicious:
            parts.append(line)
            at += 1
            continue
        end = _end_of_block(lines, at)
        block = "\n".join(lines[at:end])
        if block not in done:
            done[block] = _redacted(f"{block}\n")[:-1]
        parts.append(done[block])
        at = end
    return "\n".join(parts)


def _end_of_block(lines: Sequence[str], at: int) -> int:
    """Return the index behind a suspicious line, those that may hold its value, and all further suspicious ones."""
    if "PRIVATE KEY" in lines[at]:
        return min(at + 200, len(lines))
    end, left = at + 1, _AROUND
    while end < len(lines) and left:
        left -= bool(lines[end].strip())
        end += 1
    return end


def _redacted(text: str) -> str:
    lower = text.lower()
    if not _suspicious(lower):
        return text
    for sign, pattern, flags, replaced in _patterns():
        if sign in lower:
            text = compiled(pattern, flags).sub(replaced, text)
    return text


def _suspicious(lower: str) -> bool:
    if "@@ -" in lower:
        lower = "\n".join(line for line in lower.split("\n") if not _is_hunk(line))
    for sign in _SIGNS:  # every line that is printed comes here: a generator would take twice as long
        if sign in lower:
            return True
    at = lower.find("?") if "://" in lower else -1
    while at >= 0:  # of a query, not of a question
        if not lower[at + 1 : at + 2].isspace() and "=" in lower[at + 1 : at + 400] and "://" in lower[max(0, at - 400) : at]:
            return True
        at = lower.find("?", at + 1)
    for word in _WORDS:
        at = lower.find(word)
        while at >= 0:
            at += len(word)
            if not lower[at : at + 1].isalnum():
                return True
            at = lower.find(word, at)
    return False


def _is_hunk(line: str) -> bool:
    """Whether a line is the header of a hunk of a diff: each plan has one, and its ``@`` is that of no host."""
    return line.startswith("@@ -") and line.endswith(" @@") and not line.strip("@ -+,0123456789")


def excerpt(text: str, most: int) -> str:
    """At most ``most`` characters of a text; redacted before it is cut, as a truncated credential would not be recognized."""
    return redacted(text[:_LONGEST])[:most]


def without_credentials(url: str) -> str:
    """The URL without user and password; tokens in its path or query are kept, as they are needed to fetch it."""
    scheme, mark, rest = url.partition("://")
    _, at, after = _split_user(rest) if mark else ("", False, "")
    return f"{scheme}{mark}{after}" if at else url


def _split_user(rest: str) -> tuple[str, bool, str]:
    """Split the text after ``://`` into (user and password, whether there are any, the rest)."""
    first = rest.partition("/")[0].partition("?")[0].partition("#")[0]
    if "@" in first:
        user, _, host = first.rpartition("@")
        return user, True, host + rest[len(first) :]
    _, colon, port = first.partition(":")
    if colon and not port.isdecimal() and not port.startswith("$") and "@" in rest:  # a password that contains a slash
        user, _, after = rest.rpartition("@")
        return user, True, after
    return "", False, rest


@cached
def compiled(pattern: str, flags: int) -> re.Pattern[str]:
    """A compiled pattern. Most are never needed: a plan with ``google-auth`` needs every third."""
    import re

    return re.compile(pattern, flags)


@cached
def _patterns() -> tuple[_Pattern, ...]:
    import re

    secret = r"(?:token|sig|signature|secret|passw(?:or)?d|passphrase|pass|pwd|credentials?|auth|key|[_-]api|jwt)"
    whose = (
        "hub|hf|auth|access|api|bearer|github|gitlab|secret|private|client|refresh|session|security|account|sharedaccess|license|deploy|bot|share"
        "|secretaccess|admin|jupyter|wandb|comet|neptune|openai|service|identity|registry|huggingface|subscription"
    )
    # with these words a value is a secret whatever it looks like; with the others, which also name tokens of texts and keys
    # of dictionaries, only if it looks random
    sure = rf"(?<![^\W_])(?<!/)(?:(?:{whose})[_-]?(?:token|keys?|secret)|passw(?:or)?d|passphrase|connection_?string)"
    variable = (
        r"(?:\b[A-Z][A-Z0-9_]{0,60}?_(?:TOKEN|SECRET|PASSWORD|PASSWD|PASS|PWD|KEY|PAT|CREDENTIALS?|WEBHOOK(?:_URL)?)"
        r"|\b(?:TOKEN|SECRET|PASSWORD))"
    )
    unsure = r"(?<![\w/-])(?:token|secret|key|pat|passwd|pass|pwd|jwt|_?auth|credentials?)"
    named = rf"[\w.:-]{{0,40}}?(?:token|passw(?:or)?d|passphrase|secret|(?:{whose})[_-]?key)"
    mixed = r"(?=[\w-]{0,40}\d)(?=[\w-]{0,40}[A-Z])(?=[\w-]{0,40}[a-z])[\w-]{20,400}"  # commit hashes have no capitals
    assigned = r"(?:\\?['\"])?\]?\s{0,3}(?:[:+?]?=>?|:|->)\s{0,3}(?:[|>][+-]?\s{1,20}|!{1,2}\w{1,20}\s{1,3})?"
    opened = rf"{assigned}(?:\\?['\"])?"
    gap = r"(?:=|(?:\s|\\\r?\n){1,40})"
    # "$NAME", "${NAME}", "$(command)", "{{ template }}", "{format}", "<placeholder>" and "[MASK]" are no values
    reference = (
        r"\$(?:[{(]|(?-i:[A-Z_][A-Z0-9_]*|[a-z_][a-z0-9_]*|\d)(?=\\?['\"]|[:/$.@-]))|\{\{|\{[\w.]{0,80}\}|%\(|%\w{1,80}%"
        r"|<[^<>'\"\n]{0,80}>|\[[^\]'\"\n]{0,80}\]|(?:None|null|[Tt]rue|[Ff]alse)(?=\\?['\"])"
    )
    about = r"(?!(?:is|was|are|must|not|has|needs|requires?|or|and|with|for|from|of|in)\s)"  # --token is missing
    code = r"(?!SecretStr\(|None\b|null\b|[Tt]rue\b|[Ff]alse\b|str\b|Optional\b|os\.|self\.|args\.)"
    value = rf"{code}(?![$'\"{{\[(<])[^\s'\"\\;&,{{}}]{{4,4000}}"
    jumbled = r"(?=\w{0,60}\d[A-Za-z]{1,20}\d)(?=\w{0,60}[A-Z])(?=\w{0,60}[a-z])[\w~+/=-]{12,4000}"  # Qwen2ForCausalLM is not
    random = r"(?=[A-Za-z_~+/=-]{0,80}\d)(?=[\d_~+/=-]{0,80}[A-Za-z])[\w~+/=-]{10,4000}(?![\w.(\[~+/=-])"
    ignored = re.IGNORECASE

    def after(sign: str, before: str, hidden: str, flags: int = 0) -> _Pattern:
        return sign, f"({before}){hidden}", flags, rf"\g<1>{HIDDEN}"

    def given(sign: str, before: str, bare: str, flags: int = 0) -> _Pattern:
        """A value in quotes up to the closing one, whatever it contains, or else a bare one."""
        quoted = r"(\\?)(['\"])(?:(?!\2\3)(?:\\.|[^\\\n])){4,4000}(?=\2\3)"
        return (
            sign,
            rf"({before}(?:\$(?=['\"]))?)(?!\\?['\"](?:{reference}))(?:{quoted}|(\\?['\"])?{bare})",
            flags,
            rf"\g<1>\g<2>\g<3>\g<4>{HIDDEN}",
        )

    return (
        # up to the next scheme: the URL of a proxy contains another one in its path
        ("@", r"(?:(?<=//)|(?<=\w\w:/)(?!/))(?:[^\s'\"<>`|:]|:(?!//)){1,4000}", 0, _without_user),
        # a password with quotes; "https://host:80" and 'x@y' beside each other is none
        (
            "@",
            r"(?<=//)[^\s'\"<>`|:/@]{1,80}:(?!\d{1,5}['`|])(?!\$)(?:\\\"|[^\s\"<>/@]){1,200}@(?=[\w\[])",
            0,
            f"{HIDDEN}@",
        ),
        # a password that begins like the next scheme does
        ("://", r"(?<=//)[^\s'\"<>`|:/@]{0,80}://[^\s'\"<>`|@]{1,400}@(?=[\w\[])", 0, f"{HIDDEN}@"),
        # bob:password@host, but not image:tag@sha256:…
        (
            "@",
            r"(?<![\w.%+@:-])(?!mailto:)[\w.%+-]{1,80}:(?![/\\])[^\s'\"<>`/@]{1,200}@(?!sha\d{1,3}:)(?=[\w\[])",
            0,
            f"{HIDDEN}@",
        ),
        after("/t", r"\w[\w-]{0,80}(?::\d{1,5})?(?:\\?/\w{1,40})?\\?/t\\?/", r"[^/\s'\"<>`\\]{1,400}"),
        # private indexes with a token in the path
        after("io/", r"\b(?:cloudsmith|fury|packagecloud)\.io/(?:priv/)?(?!basic/|public/)", r"[\w-]{10,400}(?=[:/])"),
        after("=", rf"[?&;#][\w. -]{{0,60}}?(?:{secret}|session_?id)=", r"[^&;#\s'\"<>`]{1,4000}", ignored),
        after("%3d", rf"%(?:3f|26)[\w.-]{{0,60}}?{secret}%3d", r"[^&;#%\s'\"<>`]{1,4000}", ignored),
        after("=", r"://[^\s'\"<>`?]{1,400}\?(?:[^\s'\"<>`?]{0,400}?[&;])??[\w.-]{1,60}=", jumbled),
        # assignments in shells, YAML, JSON and Python, whose quotes may be escaped; password: … and api_key="…"
        given(
            "=",
            r"\b[A-Z][A-Z0-9_]{0,60}?(?:TOKEN|SECRET|PASSWORD|PASSWD|KEY|CREDENTIALS?)=",
            r"(?![$'\"])[^\s'\"\\;&]{1,4000}",
        ),
        given("", rf"{variable}{assigned}", value),
        given("", rf"{sure}{assigned}", value, ignored),
        # NAME="${NAME:-value}", PASS=value
        after(":-", rf"(?:{variable}|(?i:{sure})){assigned}['\"]?\$\{{\w{{1,60}}:-", r"(?!\$)[^\s'\"{}]{4,400}"),
        given("pass=", r"\b(?:SSH|DB)?PASS=", r"(?![$'\"])(?=[\d_.:/+-]{0,60}[A-Za-z])[^\s'\"\\;&]{4,400}"),
        given("secretstr(", r"\bSecretStr\(\s{0,9}(?=['\"])", r"(?!)"),
        given("env", rf"(?i:\benv)\s{{1,9}}{variable}\s{{1,9}}", value),
        after("", rf"{unsure}{opened}", random),
        # ms_token: …, dbPassword=…, POETRY_PYPI_TOKEN_NAME=…, save_token("…")
        after(
            "", r"(?:token|secret|passw(?:or)?d|pass|pwd|credentials?|key)(?:_\w{1,40})?"
            rf"(?:{opened}|\(\s{{0,9}}['\"]|\s{{1,20}}['\"]?)", rf"(?-i:{jumbled})", ignored,
        ),
        # setenv("HF_TOKEN", "…"), ENV HF_TOKEN …, and netrc's password …
        after("", rf"(?:{variable}|{sure})(?:['\"],\s{{0,3}}['\"]|[\s|,>]{{1,20}}['\"]?)", random),
        after("", rf"\b_?(?:{sure}|authtoken)(?:['\"],\s{{0,3}}['\"]|\s{{1,20}}['\"]?)", random, ignored),
        # {name: HF_TOKEN, value: …}, also on two lines and in a diff
        given(
            "value",
            rf"\b(?i:name|key)['\"]?\s{{0,3}}:\s{{0,3}}['\"]?{variable}['\"]?\s{{0,3}},?[\s+-]{{0,60}}"
            rf"(?:(?:[E>|#]|\[\w{{1,20}}\]:)\s{{1,20}})?['\"]?(?i:value)['\"]?"
            r"\s{0,3}:\s{0,3}",
            value,
        ),
        given(
            "--",
            rf"--(?:[\w.-]{{0,40}}?[_.-])?(?:(?:{whose})[_-]?(?:token|keys?|secret)|password|passwd|passphrase|secret|(?<![\w-]--)(?<=\.)token"
            r"|(?<![\w-]..)(?<=--)(?:token|key))" + gap,
            rf"{about}(?![$'\"-])[^\s'\"\\;&]{{1,4000}}", ignored,
        ),
        after("--", r"--(?:[\w-]{0,40}[_-])?(?:auth|creds)(?:=|\s{1,40})['\"]?[^\s:'\"]{1,80}:", r"(?!\$)[^\s'\"]{1,400}"),
        after(
            "wandb login", r"\bwandb login\s{1,40}(?:--\w{1,20}(?:=\S{1,200})?\s{1,40}){0,3}", r"(?![$'\"-])[^\s'\"\\;&]{6,400}"
        ),
        after("login", r"\blogin(?:\(\s{0,9}|\s{1,40}(?:--?\w{1,20}\s{1,40}){0,3})['\"]?", random),
        given("password", r"\blogin\s{1,20}\S{1,100}\s{1,20}password\s{1,20}", r"[^\s'\"\\]{1,400}"),  # netrc
        # the password of "docker login -u me -p …"
        given(
            "-p",
            r"\b(?:login|sshpass|mysql\w{0,10}|twine\s{1,9}upload|uv\s{1,9}publish|mongo\w{0,10}|ncftp|7z)\b(?:[^\n|;&]{0,200}?)\s['\"]?-p(?:=|\s{1,9})?",
            r"(?![$'\"\s-])[^\s'\"]{4,400}",
        ),
        given("-p", r"\b(?:(?:un)?zip|sqlcmd)\b[^\n|;&]{0,200}?\s['\"]?-P\s{0,9}", r"(?![$'\"-])[^\s'\"]{4,400}"),
        given("redis-cli", r"\bredis-cli\b[^\n|;&]{0,200}?\s-a(?:\s{1,9})?", r"(?!\$)[^\s'\"]{4,400}"),
        after("anaconda", r"\banaconda\s{1,9}-t\s{1,9}", r"(?![$'\"-])\S{4,400}"),
        after("set", r"\b(?:token\s{1,9}set|keyring\s{1,9}set\s{1,9}\S{1,200}\s{1,9}\S{1,100})\s{1,9}", random),
        given("pwd=", r"(?<![\w-])pwd=", r"(?![/$'\"~.])[^\s;'\"]{4,400}", ignored),
        after("--with-token", r"--with-token\s{1,9}(?:<<<\s{0,9}['\"]?)?", random),
        given("publish", r"\bpublish\b[^\n|;&]{0,200}?\s-[at](?:=|\s{1,9})", r"(?![$'\"-])[^\s'\"]{4,400}"),
        given("--from-literal", r"--from-literal[=\s]['\"]?[\w.-]{1,60}=", r"(?![$'\"])[^\s'\"]{4,400}"),
        after("secret", r"\bsecrets?\.[\w.-]{1,60}=['\"]?", random),
        given("secret set", r"\bsecret set\b[^\n|;&]{0,200}?\s(?:-b|--body)[=\s]", r"(?![$'\"])[^\s'\"]{4,400}"),
        after(
            "config", r"\bconfig\s{1,9}(?:http-basic\.\S{1,60}\s{1,9}\S{1,60}|pypi-token\.\S{1,60})\s{1,9}",
            r"(?![$'\"-])\S{4,400}",
        ),
        after("htpasswd", r"\bhtpasswd\s{1,9}-\w{0,6}b\w{0,6}\s{1,9}\S{1,200}\s{1,9}\S{1,60}\s{1,9}", r"(?!\$)\S{1,200}"),
        after("-u", r"\b(?:lftp|smbclient)\b[^\n|;&]{0,100}?\s-u\s{1,9}[^\s,%]{1,80}[,%]", r"(?!\$)\S{1,200}", ignored),
        (
            "|",
            rf"(\b(?:echo|printf)\s(?:[^\n|]{{0,40}}?\s)?['\"]?){random}(?=['\"]?\s{{0,9}}\|[^\n|]{{0,200}}?(?:login|--password-stdin|--with-token))",
            0,
            rf"\g<1>{HIDDEN}",
        ),
        after(
            "curl",
            r"\bcurl(?:\s[^\n]{0,300}?)??\s(?:-\w{0,9}?[uU]|--(?:proxy-)?user[=\s])\s{0,9}['\"]?",
            r"(?!\$)[^\s:'\"]{1,80}:[^\s'\"]{0,400}",
        ),
        after(
            " -a ", r"\b(?:https?|httpie|xh)\s[^\n|;&]{0,200}?(?<=\s)-a\s{1,9}['\"]?",
            r"(?!\$)[^\s:'\"]{1,80}:[^\s'\"]{1,400}",
        ),
        after(" -u", r"\s-u\s{0,9}['\"]?[^\s:'\"$/]{1,80}:", random),
        # <password>…</password>, <add key="password" value="…">
        after("</", rf"<{named}(?:\s[^<>]{{0,200}})?>\s{{0,60}}", r"[^<>\s]{1,4000}(?=\s{0,60}</)", ignored),
        after(
            "value", rf"['\"]{named}['\"]\s{{1,20}}value\s{{0,3}}=\s{{0,3}}['\"]", r"[^'\"<>]{1,4000}", ignored,
        ),
        after("</", rf"=\s{{0,3}}['\"]{named}['\"]\s{{0,3}}>\s{{0,20}}", r"[^<>\s]{1,4000}(?=</)", ignored),
        # headers
        ("basic", r"\bbasic(?: auth)?:?(?:\s{1,9}|%20)[A-Za-z0-9+/]{8,2000}={0,2}", ignored, _without_basic),
        after("bearer", r"\bbearer(?:\s{1,40}|\\ |%20|\+)", r"(?=[^\s\d]{0,60}\d)[\w.~+/=-]{6,4000}", ignored),
        after(
            "authorization",
            r"(?:\b|(?<=\\[nrt]))authorization['\"]?\s{0,3}:\s{0,9}['\"]?(?:(?:basic|token|apikey|digest)\s{1,9})?",
            r"(?=[^\s\d]{0,60}\d)[\w.~+/=-]{6,4000}", ignored,
        ),
        # auth=("user", "password"), HTTPBasicAuth("user", "password")
        given(
            "auth", r"auth(?:['\"]?\s{0,3}[=:]\s{0,3})?\(\s{0,9}['\"][^'\"\n]{1,100}['\"]\s{0,3},\s{0,9}(?=\\?['\"])", r"(?!)",
            ignored,
        ),
        after("response=", r"\bdigest\s[^\n]{1,400}?\bresponse=['\"]?", r"[0-9a-f]{16,128}", ignored),
        after("signature", r"(?:\b|access)signature=", r"[\w/+=%-]{16,400}", ignored),
        after("curl", r"\bcurl(?:\s[^\n]{0,300}?)?\s(?:-b|--cookie)\s{1,9}['\"]?[\w.-]{1,60}=", r"[^\s'\"]{4,400}"),
        after("cookie", r"(?:\b|(?<=\\[nrt]))cookie['\"]?\s{0,3}:\s{0,9}['\"]?(?=[\w.-]{1,60}=)", r"[^'\"\n]{6,4000}", ignored),
        given(
            "-",
            r"\b(?:private|(?:x|ocp)-[\w-]{0,40})-(?:token|key|secret|api)['\"]?\s{0,3}:\s{0,3}",
            r"(?![$'\"{\[(<])[^\s'\"\\]{4,4000}",
            ignored,
        ),
        # tokens of well-known services
        (
            "_",
            r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{20}|(?:rpa|lsv2_[ps]t|wandb_v1|pcsk|fw|jina|sntrys|glc|phc|figd|sbp|vck)_(?=\w{0,40}\d)[A-Za-z0-9]{20}|gh[pousr]_[A-Za-z0-9]{20}|github_pat_\w{20}|gsk_\w{20}|npm_\w{30}|dckr_pat_[\w-]{15}|r8_\w{20}|[sr]k_(?:live|test)_\w{10}|whsec_\w{16}|shpat_\w{16}|dop_v1_\w{20}|lin_api_\w{16}|tgp_v1_[\w-]{20}|hf_oauth_\w{10}|api_org_\w{20})\w{0,400}",
            0,
            HIDDEN,
        ),
        (
            "-",
            r"\b(?:glpat-[\w-]{15}|sk-[\w-]{20}|nvapi-[\w-]{20}|xox[a-z]-[\w-]{10}|gl(?:dt|rt|ptt|ft|agent|soat)-[\w-]{15}|xai-\w{30}|(?:tvly|csk|PMAK)-(?=[\w-]{0,40}\d)[\w-]{20}|tskey-[a-z]{1,20}-\w{12}|pplx-\w{20}|pypi-AgE[\w-]{10})[\w-]{0,400}",
            0,
            HIDDEN,
        ),
        ("a", r"\b(?:(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{35}|dapi[0-9a-f]{32}|ATATT3[\w-]{20,400})(?!\w)", 0, HIDDEN),
        (".", r"\b(?:ya29\.[\w-]{10}|hv[sb]\.[\w-]{16}|SG\.[\w-]{16,60}\.[\w-]{16})[\w.-]{0,400}", 0, HIDDEN),
        ("eyj", r"(?<![A-Za-z0-9])eyJ[\w-]{10,200}\.[\w.-]{10,4000}", 0, HIDDEN),
        after("private key", r"PRIVATE KEY(?: BLOCK)?-----", r"[^-]{1,8000}"),
        # "Your token … has been saved", "API key … rejected"
        *(
            after(sign, rf"\b(?:[\w]{{1,40}}_)?{name}(?:\s(?:is|was))?\s{{1,3}}['\"`]?", rf"(?-i:{mixed})", ignored)
            for sign, name in (("token ", "token"), (" key ", "api.key"), ("password ", "password"))
        ),
        after("password for", r"\bpassword for [^\s:]{1,80}:\s", random, ignored),
        # the address as a value of a query
        after("%40", r"%2f%2f[^\s%'\"]{1,80}%3a", r"[^\s'\"&]{1,400}?(?=%40)", ignored),
        after(
            "/", r"\bslack\.com/services/|\bdiscord(?:app)?\.com/api/webhooks/\d{1,30}/|\bwebhookb2/|/hook/|/bot\d{6,12}:",
            r"[\w/-]{6,200}",
        ),
    )  # fmt: skip


def _without_basic(match: re.Match[str]) -> str:
    """Hide what follows "Basic" if it is a user and a password: the word is also used in prose."""
    import binascii

    word = match[0].rpartition(" ")[2].rpartition("%20")[2]
    try:
        plain = binascii.a2b_base64(word + "=" * (-len(word) % 4))
    except ValueError:
        return match[0]
    return f"{match[0][: -len(word)]}{HIDDEN}" if b":" in plain else match[0]


def _without_user(match: re.Match[str]) -> str:
    user, at, after = _split_user(match[0])
    return match[0] if not at or user in _NAMES_OF_USERS or user.startswith("$") else f"{HIDDEN}@{after}"


# --- Environment variables set by a file or on a machine.


_SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASS", "PWD", "CREDENTIAL", "CREDENTIALS", "AUTH", "COOKIE")


def without_secrets(variables: Mapping[str, _Value]) -> dict[str, _Value]:
    """The variables that are safe to show: neither name nor value looks like a secret."""
    return {name: value for name, value in variables.items() if not (is_secret(name) or (value and redacted(value) != value))}


def is_secret(name: str) -> bool:
    """Whether a variable of this name is likely to contain a secret."""
    return name not in ("PWD", "OLDPWD") and any(part.endswith(_SECRET) for part in name.upper().split("_"))
