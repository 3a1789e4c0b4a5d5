"""Every kind of secret is found, wherever it is packed; what only looks like one is not; and no report tells it.

The secrets here are made up, and put together from halves, so that no scanner of this repository takes them for real ones.
"""

from __future__ import annotations

import base64
import gzip
import json
import time
from pathlib import Path

import pytest

from planner.iam.secrets import scan_document, scan_text
from planner.model.diagnostic import Location

ROOT = Path(__file__).parents[3]
AWS_ID = "AKIA" + "Q3EGXMPLE7T2ZWYV"
AWS_SECRET = "kV9xQ2mZ7nLw4RtY8pBc" + "1sDf6GhJ3kX0aEuI5oT/"
B64 = "Zm9vYmFyQkFaMTIzNDU2Nzg5MGFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6QUJDREVGR0hJSktMTU5PUFFS"
JWT = ".".join(("eyJ" + "hbGciOiJIUzI1NiJ9", "eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0", "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"))
PEM = "-----BEGIN " + "RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA0Z3VS5JJcds3xfn\n-----END RSA PRIVATE KEY-----"

SECRETS = {
    "aws id": ("AWS access key id", AWS_ID),
    "aws session": ("AWS session token", "IQoJ" + "b3JpZ2luX2VjE" * 9),
    "pem": ("private key", PEM),
    "jwt": ("JWT", JWT),
    "google api": ("Google API key", "AIza" + "SyD4kXq9Lm2Np7Rt5Vw8Yz1Bc3Df6Gh0JkM"),
    "google token": ("Google access token", "ya29." + "a0AfH6SMBx7kQ9mZ2nLw4RtY8p"),
    "azure account": (
        "Azure shared access key",
        "DefaultEndpointsProtocol=https;AccountKey=" + "aB3" + B64[:83] + "==",
    ),
    "azure key": ("Azure storage key", "aB3" + B64[:83] + "=="),
    "azure sas": (
        "Azure SAS signature",
        "https://a.blob.core.windows.net/c?sv=2024&sig=" + "kV9xQ2mZ7nLw4RtY8pBc1sDf6GhJ3kX0aEuI5oT%2Fq7c%3D",
    ),
    "azure client": ("Azure client secret", "abc8Q~" + "kV9xQ2mZ7nLw4RtY8pBc1sDf6GhJ3kX0a"),
    "github": ("GitHub token", "ghp_" + "kV9xQ2mZ7nLw4RtY8pBc1sDf6GhJ3kX0aEuI"),
    "gitlab": ("GitLab token", "glpat-" + "kV9xQ2mZ7nLw4RtY8pBc"),
    "hugging face": ("Hugging Face token", "hf_" + "kVxQmZnLwRtYpBcsDfGhJkXaEuIoTqWeRt"),
    "openai": ("OpenAI or Anthropic key", "sk-" + "proj-kV9xQ2mZ7nLw4RtY8pBc1sDf6G"),
    "slack": ("Slack token", "xoxb-" + "123456789012-kV9xQ2mZ7nLw"),
    "wireguard": ("WireGuard key", "[Interface]\nPrivateKey = " + "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk="),
    "url": ("password in a URL", "postgres://skyplan:" + "hunter2@db.acme.com/record"),
    "header": ("authorization header", "Authorization: Bearer " + "kV9xQ2mZ7nLw4RtY8pBc"),
    "assignment": ("value of AWS_SECRET_ACCESS_KEY", "export AWS_SECRET_ACCESS_KEY=" + AWS_SECRET),
    "yaml": ("value of db_password", 'db_password: "' + 'Tr0ub4dor&3"'),
    "after a key": ("value of password", "env: password=" + "kV9xQ2mZ7nLw4RtY8pBc"),
    "wandb": ("value of WANDB_API_KEY", "WANDB_API_KEY=" + "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c"),
}


@pytest.mark.parametrize(("kind", "text"), SECRETS.values(), ids=SECRETS)
def test_found(kind, text):
    (found,) = scan_text(f"# before\n{text}\n", origin="user data")
    assert found.kind == kind
    assert found.origin == "user data"


@pytest.mark.parametrize(("kind", "text"), SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize("pack", ["base64", "gzip", "twice", "json", "line"])
def test_found_where_it_is_packed(kind, text, pack):
    whole = f"#cloud-config\nwrite_files:\n  - content: |\n      {text}\n"
    match pack:
        case "base64":
            packed = base64.b64encode(whole.encode()).decode()
        case "gzip":
            packed = base64.b64encode(gzip.compress(whole.encode(), mtime=0)).decode()
        case "twice":
            inner = base64.b64encode(gzip.compress(whole.encode(), mtime=0)).decode()
            packed = base64.b64encode(f"encoding: gz+b64\ncontent: {inner}\n".encode()).decode()
        case "json":
            packed = base64.b64encode(json.dumps({"a": [whole]}).encode()).decode()
        case _:
            packed = f"echo {base64.b64encode(whole.encode()).decode()} | base64 -d"
    found = scan_document({"resource": {"aws_instance": {"x": {"user_data": packed}}}}, origin="stack")
    assert [leak.kind for leak in found] == [kind]
    assert found[0].origin.startswith("stack resource.aws_instance.x.user_data")


@pytest.mark.parametrize(("kind", "text"), SECRETS.values(), ids=SECRETS)
def test_not_shown(kind, text):
    (found,) = scan_text(text, origin="x")
    assert len(found.shown) < 40
    shown = found.shown.partition("…")[0]
    assert len(shown) <= 4 or found.kind == "private key"
    if found.kind == "private key":
        assert "MIIE" not in found.shown


def test_pair_of_aws():
    found = scan_text(f"{AWS_ID},{AWS_SECRET}", origin="credentials.csv")
    assert [leak.kind for leak in found] == ["AWS access key id", "AWS secret access key"]


def test_google_account_key_as_terraform_keeps_it():
    account = {
        "type": "service_account",
        "private_key_id": "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c",
        "private_key": PEM,
    }
    state = {"attributes": {"private_key": base64.b64encode(json.dumps(account).encode()).decode()}}
    assert [leak.kind for leak in scan_document(state, origin="state")] == ["private key"]


def test_names_of_keys_and_pairs():
    value = "kV9xQ2mZ7nLw4RtY8pBc"
    document = {
        "client_secret": value,
        "env": [{"name": "DB_PASSWORD", "value": value + "1"}, ["API_TOKEN", value + "2"]],
        "values": {"secret": value + "3"},
    }
    assert [leak.origin for leak in scan_document(document, origin="o")] == [
        "o client_secret",
        "o env[0].value",
        "o env[1][API_TOKEN]",
        "o values.secret",
    ]


def test_what_terraform_made_up():
    state = {"resources": [{"type": "random_password", "name": "p", "values": {"result": "correct-horse"}}]}
    (found,) = scan_document(state, origin="state")
    assert found.kind == "random_password"
    assert "horse" not in found.shown


def test_line():
    found = scan_text(f"a\nb {AWS_ID}\n", origin="f", location=Location("f", 10))
    assert [leak.location for leak in found] == [Location("f", 11)]


HARMLESS = {
    "digest": "image: ghcr.io/a/b@sha256:" + "0f1e2d3c" * 8,
    "token reference": "HF_TOKEN: aws-secretsmanager://acme/hf-token-v2Xy9",
    "reference of ours": "password: secret://vault/kv/a1B2c3D4e5F6",
    "terraform reference": 'api_key = "${var.api_key_from_elsewhere}"',
    "shell variable": 'password="$DB_PASSWORD_FROM_STORE"',
    "command": 'token="$(curl -sf http://169.254.169.254/latest/api/token)"',
    "arn": "secret_arn: arn:aws:secretsmanager:us-east-1:123456789012:secret:acme/hf-AbCdEf",
    "secret's arn": "secret: arn:aws:secretsmanager:us-east-1:123456789012:secret:acme/hf-AbCdEf",
    "uuid": "client_secret_id: 0f1e2d3c-0000-4000-8000-000000000000",
    "uuid of a token": "token: 0f1e2d3c-0000-4000-8000-000000000000",
    "public key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHqNvCK4QxSSwmVc5kB9W7afPUVNaWKJZ6MAIQBnT4zw",
    "wireguard public": "PublicKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=",
    "certificate": "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUaB\n-----END CERTIFICATE-----",
    "counts": "MAX_TOKENS=1048576 NUM_TOKENS=99999999 tokenizer=meta-llama/Llama-3.1-8B",
    "placement": "secret_placement: p0123456789",
    "name": "secret: acme-hf-token-v2",
    "url": "https://github.com/acme/train.git",
    "url with a variable": "https://user:${TOKEN}@github.com/acme/train.git",
    "git over ssh": "git@github.com:acme/train.git",
    "integrity": 'integrity: "sha512-' + "aB3" + B64[:83] + '=="',
    "role": 'role: "roles/secretmanager.secretAccessor"',
    "action": "secretsmanager:GetSecretValue",
    "metadata token": "X-aws-ec2-metadata-token-ttl-seconds: 21600",
    "header template": "Authorization: Bearer %s",
}


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_harmless(text):
    assert scan_text(text, origin="x") == ()
    assert scan_document({"a": [text]}, origin="x") == ()


def test_packed_user_data_of_ours_is_no_secret():
    text = "#cloud-config\n" + "runcmd: [echo, hello]\n" * 40
    for data in (text.encode(), gzip.compress(text.encode(), mtime=0)):
        assert scan_document({"user_data": base64.b64encode(data).decode()}, origin="x") == ()


def test_a_bomb_stays_small():
    packed = base64.b64encode(gzip.compress(b" " * 12_000_000, mtime=0)).decode()
    assert scan_text(packed, origin="x") == ()


@pytest.mark.parametrize(
    "path",
    sorted(
        p.relative_to(ROOT)
        for p in [*ROOT.glob("tests/golden/cases/*/*.json"), *ROOT.glob("tests/stacks/golden/**/*.json")]
    ),
    ids=str,
)
def test_no_leak_in_golden_files(path):
    assert scan_document(json.loads((ROOT / path).read_text(encoding="utf-8")), origin=str(path)) == ()


def test_no_leak_in_examples_and_templates():
    files = [
        *ROOT.glob("examples/**/*"),
        *ROOT.glob("modules/templates/**/*"),
        *ROOT.glob("tests/golden/cases/*/*.yaml"),
    ]
    contents = [(path, path.read_bytes()) for path in files if path.is_file()]
    texts = [(gzip.decompress(found) if path.suffix == ".gz" else found).decode() for path, found in contents]
    assert texts
    assert [leak for text in texts for leak in scan_text(text, origin="x")] == []


def test_what_terraform_made_is_found_in_a_state_file():
    held = {"attributes": {"result": "correct-horse"}}
    state = {"resources": [{"type": "random_password", "name": "p", "instances": [{}, held]}]}
    (leak,) = scan_document(state, origin="s")
    assert (leak.kind, leak.origin) == ("random_password", "s resources[0].instances[1].attributes.result")
    assert "correct-horse" not in leak.shown


def test_a_long_text_of_assignments_takes_no_time_squared():
    started = time.monotonic()
    found = scan_document({"x": "password=" * 20_000, "y": "password=kV9xQ2mZ7nLw4RtY8pBc " * 5_000}, origin="s")
    assert found
    assert time.monotonic() - started < 30, "a second or two by design; minutes where each `=` reads to the end"
