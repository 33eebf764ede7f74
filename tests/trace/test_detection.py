"""Credentials are found by their formats, and what is none is left alone."""

from __future__ import annotations

import base64
import json
import random
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from benchmarks.redaction import left_in, lines_of, made, ordinary_lines, surrounded
from playhead.trace import detection, parameters
from playhead.trace.detection import Found, compiled, find, keywords
from playhead.trace.redaction import Redactor, without_credentials
from tests.proving import bound, sample

AWS = "AKIAIOSFODNN7EXAMPLE"
GITHUB = "ghp_" + "a1B2c3D4e5F6" * 3
RULES = tomllib.loads(Path(detection.__file__).with_name("credentials.toml").read_text(encoding="utf-8"))["rules"]


def test_the_rules() -> None:
    """There are more than 100 formats; each has a public source, RE2 accepts each expression, and a keyword occurs in each find."""
    assert len({rule["name"] for rule in RULES}) > 150
    assert all(re.fullmatch("[a-z0-9-]+", rule["name"]) and rule["source"].startswith("https://") for rule in RULES)
    allowed = {
        "name",
        "keywords",
        "expression",
        "assigned",
        "names",
        "entropy",
        "length",
        "digits",
        "mixed",
        "open",
        "unless",
    }
    assert {field for rule in RULES for field in rule} == {*allowed, "not_named", "source"}
    assert compiled(detection._formats()["placeholder"])
    for rule in detection._rules():
        assert list(rule.spans(b"nothing to see")) == []
        for expression in filter(None, (rule._unless, rule._not_named)):
            assert compiled(expression)


def test_recall() -> None:
    """Of credentials made by the documented formats of 240 kinds at least 95 % are found, and so is every public example."""
    rng, missed, forms = random.Random(29), 0, lines_of("credential_formats.txt")
    for form in forms * sample(20, 1):
        value, parts = made(form, rng)
        text = surrounded(form, value, rng)
        assert keywords()(text.encode()) or not find(text)
        missed += left_in(text, parts)
    assert missed / (len(forms) * sample(20, 1)) < 0.05
    assert [
        line for line in lines_of("credential_vectors.txt") if not find(line.replace("\\n", "\n").partition("\t")[2])
    ] == []


def test_keywords_stand_in_the_json_of_whatever_is_redacted() -> None:
    """An event whose JSON has no keyword is written as it is: nothing in it would have been redacted leaf by leaf."""
    rng, redactor, changed = random.Random(31), Redactor(), 0
    for form in lines_of("credential_formats.txt"):
        value, _ = made(form, rng)
        name, _, assigned = value.partition("=") if re.match(r"[A-Za-z_]+=", form) else ("key", "", value)
        for each in (
            {name: assigned},
            {"name": name, "value": assigned},
            [{"a": {name.lower(): assigned}}],
            {value: 1},
            f"\n{value}",
        ):
            if redactor.redact(each) != each:
                assert redactor.concerns(to_json(each)), each
                changed += 1
    assert changed > 3.5 * len(lines_of("credential_formats.txt"))


def test_ordinary_lines_are_left_alone() -> None:
    """Of 2,500 lines with hashes, UUIDs, base64, counts and source code at most 1 % are changed."""
    lines = list(ordinary_lines())
    assert len(lines) > 1500
    assert sum(bool(find(line)) for line in lines) / len(lines) <= 0.01


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"x = {AWS}", (AWS, "aws-access-key-id")),
        (f"a\n{AWS}", (AWS, "aws-access-key-id")),
        (json.dumps(f"a\n{AWS}"), (AWS, "aws-access-key-id")),
        (json.dumps(json.dumps(f"\t{GITHUB}\n")), (GITHUB, "github-token")),
        (f"https://x/?key%3D{GITHUB}%26a", (GITHUB, "github-token")),
        (f"\x1b[31m{AWS}\x1b[0m", (AWS, "aws-access-key-id")),
        (f"é😀 {AWS} 😀", (AWS, "aws-access-key-id")),
        (f"\ud800{AWS}", (AWS, "aws-access-key-id")),
        (f"KEY_{AWS}", (AWS, "aws-access-key-id")),
        ("postgres://ann:hunter2x@db/shop", ("hunter2x", "url-password")),
        ('{\\"password\\": \\"Tr0ub4dor&3\\"}', ("Tr0ub4dor&3", "password")),
        ("the password for the shop is Tr0ub4dor&3", ("Tr0ub4dor&3", "password")),
        ("The password: password = hunter2x", ("hunter2x", "password")),
        ("DATADOG_API_KEY: '0123456789abcdef0123456789abcdef'", ("0123456789abcdef0123456789abcdef", "datadog-key")),
        (f"keys: {AWS}, wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "aws-secret-access-key")),
    ],
)  # fmt: skip
def test_where_it_stands(text: str, found: tuple[str, str]) -> None:
    """After an escape, in a URL, between colours, beside letters of any script: the credential is found, and it alone."""
    assert found in [(text[start:end], rule) for start, end, rule in find(text)]


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=1024, next_page_token: CAUQAA1b2C3d4E5f6", "token = tokenizer.encode_plus2(text)", "password: str = None",
        'api_key = os.environ["API_KEY"]', "Authorization: Bearer <your token>", "api_key: ${{ secrets.API_KEY }}", "sk-learn-0.24",
        "class Ed25519PrivateKey(X25519PrivateKey):", "-----BEGIN PRIVATE KEY-----", "drone built 3f786850e387550fdab836ed7e6dc881de23001b",
        "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQm9ndXMgY2VydGlmaWNhdGUgMTIzNDU2Nzg5MDEyMzQ=\n-----END CERTIFICATE-----",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9v0Yq8Q1h3H0oT4mKxW2y8zB6c5d7e9f1g3h5j7k9l ann@host", "secret: correct horse battery staple", "Buffer.from(password, 'base64')", "my $pwd = CPAN::anycwd2()",
        "sk-learn-contrib-project-0.24", "pa-2024-11-28-something-really-long-identifier-x1",
    ],
)  # fmt: skip
def test_what_is_none(text: str) -> None:
    """Names of variables, placeholders, public keys, hashes and words are no credentials."""
    assert find(text) == []


URL, PASSWORD, HEX, LETTERS = (
    "https://shop.example/r?a=1",
    "Kettle-Harbor17",
    "0a1b2c3d4e5f6789" * 4,
    "aB3dE5gH7jK9mN2pQ4rS6tU8vW1xY" * 2,
)


@pytest.mark.parametrize(
    ("text", "secret", "rule"),
    [
        (f"{URL}&X-Amz-Signature={HEX}&x-id=GetObject", HEX, "signed-url"),
        (f"{URL}&X-Goog-Signature={HEX * 8}", HEX * 8, "signed-url"),
        (f"{URL}\\u0026sig={LETTERS[:40]}-_8", f"{LETTERS[:40]}-_8", "azure-sas-signature"),
        (f"https://open.feishu.cn/open-apis/bot/v2/hook/{HEX[:32]}", HEX[:32], "feishu-webhook"),
        (f"https://mainnet.infura.io/v3/{HEX[:32]}", HEX[:32], "infura-api-key"),
        (f"https://eth-mainnet.g.alchemy.com/v2/{LETTERS[:32]}", LETTERS[:32], "alchemy-api-key"),
        (f'{{\\"kty\\":\\"OKP\\",\\"d\\":\\"{LETTERS[:43]}\\",\\"x\\":\\"11\\"}}', LETTERS[:43], "json-web-key"),
        (f"wallet_wif=L{LETTERS[:51]}", f"L{LETTERS[:51]}", "bitcoin-private-key"),
        (f"machine shop.example\\n  login ann\\n  password {PASSWORD}", PASSWORD, "netrc-password"),
        (f"db.example:5432:shop:ann:{PASSWORD}", PASSWORD, "pgpass-password"),
        (f"kind: Secret\ndata:\n  dsn: {'S2V0dGxlLUhhcmJvcjE3'}", "S2V0dGxlLUhhcmJvcjE3", "kubernetes-secret"),
        (f"ALTER USER 'a'@'%' IDENTIFIED WITH mysql_native_password BY '{PASSWORD}';", PASSWORD, "sql-password"),
        (f"Driver=x;UID=ann;PWD={PASSWORD};", PASSWORD, "connection-password"),
        (f"jdbc:oracle:thin:ann/{PASSWORD}@//db:1521/shop", PASSWORD, "connection-password"),
        (f"sshpass -p '{PASSWORD}' ssh a@b", PASSWORD, "command-line-password"),
        (f"mysql -u root -p{PASSWORD} -h db shop", PASSWORD, "command-line-password"),
        (f"redis-cli -h db -a {PASSWORD} ping", PASSWORD, "command-line-password"),
        (f'"openssl rsa -passin pass:{PASSWORD}"', PASSWORD, "command-line-password"),
        (f"docker login -u ann -p {PASSWORD} shop.example", PASSWORD, "command-line-password"),
        (f"htpasswd -nb ann {PASSWORD}", PASSWORD, "command-line-password"),
        (f"htpasswd -b /etc/.htpasswd ann {PASSWORD}", PASSWORD, "command-line-password"),
        (f"shop --db-password {PASSWORD} --quiet", PASSWORD, "command-line-password"),
        (f"Set-Cookie: laravel_session={LETTERS}%3D; path=/", f"{LETTERS}%3D", "session-cookie"),
        (f'{{"name": "connect.sid", "value": "s%3A{LETTERS}"}}', f"s%3A{LETTERS}", "session-cookie"),
        (f".shop.example\tTRUE\t/\tTRUE\t1790000000\tid\t{LETTERS}", LETTERS, "session-cookie"),
        ("GMAIL_APP_PASSWORD='qwer tyui opas dfgh'", "qwer tyui opas dfgh", "google-app-password"),
        ("notarytool --password qwer-tyui-opas-dfgh", "qwer-tyui-opas-dfgh", "apple-app-password"),
        (f'gh secret set SHOP_TOKEN --body "{HEX[:40]}"', HEX[:40], "secret"),
        (f"I set `SHOP_API_KEY` to `{LETTERS[:40]}` in `.env`", LETTERS[:40], "secret"),
        (f"- **ADMIN_PASSWORD**: {PASSWORD}", PASSWORD, "password"),
        (f'<property name="password" value="{PASSWORD}"/>', PASSWORD, "password"),
    ],
)  # fmt: skip
def test_what_only_its_surroundings_give_away(text: str, secret: str, rule: str) -> None:
    """In a command, a file of a program, an address or a cookie, the credential is found, and it alone."""
    assert [(text[start:end], found) for start, end, found in find(text)] == [(secret, rule)]


@pytest.mark.parametrize(
    "text",
    [
        "GITHUB_TOKEN=ghp_" + "x" * 36, "NPM_TOKEN=npm_" + "X" * 36, "AWS_ACCESS_KEY_ID=AKIA" + "X" * 16, "SLACK_BOT_TOKEN=xoxb-your-token-here",
        "https://hooks.slack.com/services/T00000000/B00000000/" + "X" * 24, "password=%3Credacted%3E", "passwd=*****&user=anna",
        "password: !secret wifi_password", "arn:aws:secretsmanager:eu-west-1:621444153000:secret:shop/db-password-6sm85",
        "pk_live_51HabcDEFghiJKLmnoPQRstuVWXyz0123456789", "mysql -u root -p$MYSQL_ROOT_PASSWORD shop", "mysql -u root -p shop_db2",
        "sshpass -p '${PASSWORD}' ssh a@b", "docker login -u ann --password-stdin", "docker run -p 8080:80 shop", "machine a login b password <password>",
        "CREATE USER shop PASSWORD 'password'", "IDENTIFIED BY '%s'", "kind: Secret\nmetadata:\n  name: shop-db\n  namespace: checkout2024",
        "/dev/sda1:1234:5678:9a", "https://eth-mainnet.g.alchemy.com/v2/your-api-key", "UID=ann;PWD=<password>;", "some-that-with-this",
        "move the secret to projects/621444153000/secrets/shop-db2", "map each token to embedding-768-v2-128k",
    ],
)  # fmt: skip
def test_what_stands_for_one(text: str) -> None:
    """A placeholder, a variable, a name and a public key are no credentials, whatever surrounds them."""
    assert find(text) == []


STRONG = [
    "a,b9!cdefgh",
    "(Ab9)x!yz",
    "Tr0ub4dor(3)horse",
    "hunter2;x9!abc",
    "{Ab9}!xyzw",
    "$Ab9!xyzw",
    "/Ab9!xyzw",
    "Theodor2024!",
]
PLACEHOLDERS = ["<your-password>", "${DB_PASSWORD}", "{{ password }}", "{password}", "[hidden-1]", "$DB_PASSWORD", "********", "new_password_2",
                "process.env.PASSWORD_2", "/run/secrets/db-1", "C:\\Users\\ann1", "string", "sha256", "[redacted:SHOP_KEY]"]  # fmt: skip


@pytest.mark.parametrize("password", STRONG)
def test_a_password_with_signs_goes_as_a_whole(password: str) -> None:
    """In quotes, in JSON and under its key in an object, signs do not end a password."""
    (whole,) = Redactor().redact({"pass": password}).values()
    assert re.fullmatch(r"\[redacted:password:[0-9a-f]{8}\]", whole)
    for text in (
        f'password="{password}";',
        f"DB_PASSWORD = '{password}'",
        json.dumps(json.dumps({"password": password})),
    ):
        assert [text[start:end] for start, end, _ in find(text)] == [password]


def test_what_its_name_gave_away_goes_elsewhere_too() -> None:
    """A password that was found behind its name is replaced where it stands alone, also encoded; a word is not, nor a format's own."""
    redactor = Redactor()
    marker = redactor.redact({"password": STRONG[2]})["password"]
    encoded = base64.b64encode(f"ann:{STRONG[2]}".encode()).decode()
    assert redactor.redact_text(f"I log in with {STRONG[2]}") == f"I log in with {marker}"
    assert marker in redactor.redact_text(encoded)
    assert redactor.concerns(json.dumps(STRONG[2]).encode())
    redactor.redact_text(f"postgres://postgres:postgres@db/shop {GITHUB}")
    assert redactor.redact_text("postgres is up") == "postgres is up"
    assert not any(secret in redactor.secrets for secret in ("postgres", GITHUB))


@pytest.mark.parametrize("placeholder", PLACEHOLDERS)
def test_a_placeholder_is_no_password(placeholder: str) -> None:
    """What stands for a password, or names where it is, is left alone."""
    assert Redactor().redact({"password": placeholder}) == {"password": placeholder}
    assert find(f'password = "{placeholder}"') == []


def test_specific_formats_win_and_spans_do_not_overlap() -> None:
    """What two rules find is one credential, named by the more specific one."""
    text = f"api_key = '{GITHUB}' and {AWS}"
    start = text.index(GITHUB)
    assert find(text) == [
        Found(start, start + len(GITHUB), "github-token"),
        Found(len(text) - len(AWS), len(text), "aws-access-key-id"),
    ]


class TestMarkers:
    """What stands in place of a credential."""

    def test_equal_ones_stay_equal(self) -> None:
        """The marker of a credential is the same everywhere, and of another it is another; it says nothing about either."""
        one, same, other = (without_credentials(f"it is {key}") for key in (GITHUB, GITHUB, GITHUB[:-1] + "x"))
        assert one == same != other
        assert re.fullmatch(r"it is \[redacted:github-token:[0-9a-f]{8}\]", one)
        assert one == without_credentials(one)

    def test_without_a_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where no key can be kept, credentials are redacted all the same, and cannot be told apart."""
        monkeypatch.setattr(parameters, "_key_in", lambda _: None)
        assert without_credentials(f"{GITHUB}, {AWS}") == "[redacted:github-token], [redacted:aws-access-key-id]"

    @pytest.mark.slow
    @given(st.lists(st.sampled_from(lines_of("credential_formats.txt")), min_size=1, max_size=4), st.integers())
    def test_redacting_twice_changes_nothing(self, forms: list[str], seed: int) -> None:
        """A marker holds no credential, whatever is around it: a replay of a redacted run is not redacted again."""
        rng = random.Random(seed)
        once = without_credentials(rng.choice(("\n", " ", ", ", "=", ": ")).join(made(form, rng)[0] for form in forms))
        assert without_credentials(once) == once

    def test_by_its_name_in_an_object(self) -> None:
        """In JSON a value is a credential by its key, and so is a key; what is around them stays."""
        redacted = Redactor().redact(
            {"password": "hunter2x", "user": "ann", "n": [{"Authorization": f"Bearer {GITHUB}"}], AWS: 1}
        )
        shown = json.dumps(redacted)
        assert not any(secret in shown for secret in ("hunter2x", GITHUB, AWS))
        assert [re.sub(r"[0-9a-f]{8}\]", "…", key) for key in redacted] == [
            "password",
            "user",
            "n",
            "[redacted:aws-access-key-id:…",
        ]
        assert redacted["user"] == "ann"
        assert redacted["n"][0]["Authorization"].startswith("Bearer [redacted:github-token:")


HOSTILE: dict[str, Any] = {
    "one letter": "A", "beginnings": "AKIA", "addresses": "://a:", "names": "datadog heroku vault token secret ", "passwords": "password: ", "words": "password=password", "tokens": "token:token-token-token-",
    "web tokens": "eyJaaaaaaaaaa.", "keys": "-----BEGIN PRIVATE KEY-----", "markers": "[redacted:github-token:00000000] " + GITHUB,
    "cookies": "cookie: a=b; ", "many": f"{AWS} ", "commands": "mysql -uroot -p' docker login a -p ", "statements": "create user a by ",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text(piece: str) -> None:
    """A hostile text takes time in proportion to its length: 1 MB less than two seconds."""
    text = piece * (sample(1_000_000, 60_000) // len(piece))
    find(piece)  # compiled by now
    started = time.process_time()
    find(text)
    without_credentials(text[:200_000])
    assert time.process_time() - started < bound(2)


@pytest.mark.slow
def test_a_daemon_thread_that_looks_for_keywords_does_not_abort_the_process():
    """re2 gives the interpreter's lock away; a thread that wants it back when Python has ended would abort the process."""
    program = """
import threading
from playhead.trace.detection import keywords
looked = threading.Event()
def look():
    while True:
        keywords()(b"word " * 2000)
        looked.set()
threading.Thread(target=look, daemon=True).start()
looked.wait()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
