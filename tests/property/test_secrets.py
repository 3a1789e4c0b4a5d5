"""A secret is found wherever in a plan or a stack it lies."""

from __future__ import annotations

import base64
import copy
import gzip
import json
import random
import string
from functools import cache
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.iam.secrets import scan_document

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    [*ROOT.glob("tests/golden/cases/*/plan.json"), *ROOT.glob("tests/stacks/golden/jobs/*/secrets.json")],
    key=str,
)[:12]
LETTERS = string.ascii_letters + string.digits


def of(alphabet, least, most=None):
    """Text as a generator of secrets makes it: random, which hypothesis' own, all zeros, is not."""

    def made(seed):
        chance = random.Random(seed)
        return "".join(chance.choices(alphabet, k=chance.randint(least, most or least)))

    return st.integers(0, 2**64).map(made)


def mixed(least, most):
    """Random text with all that a made secret has: capitals, small letters, digits."""
    return of(LETTERS, least, most).map(lambda text: f"q7{text}R4xZ")


SECRETS = st.one_of(
    of(string.ascii_uppercase + "234567", 16).map(lambda text: "AKIA" + text),
    of(LETTERS, 36).map(lambda text: "ghp_" + text),
    mixed(20, 30).map(lambda text: "glpat-" + text),
    of(LETTERS, 34).map(lambda text: "hf_" + text),
    mixed(24, 48).map(lambda text: "sk-proj-" + text),
    of(LETTERS + "-_", 35).map(lambda text: "AIza" + text),
    of(LETTERS, 32, 40).map(lambda text: f"https://a.blob.core.windows.net/c/b?sp=r&sig={text}aB3%2Fx9Yz1Q%3D"),
    mixed(12, 24).map(lambda text: f"postgres://skyplan:{text}@db/record"),
    mixed(16, 36).map(lambda text: f"AWS_SECRET_ACCESS_KEY={text}"),
    mixed(10, 20).map(lambda text: f"db:\n  password: '{text}'\n"),
    of(LETTERS + "+/", 60).map(lambda text: f"-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----"),
    of(LETTERS + "+/", 41).map(lambda text: f"PrivateKey = q{text}A="),
)
PACKED = {
    "as it is": lambda text: text,
    "base64": lambda text: base64.b64encode(f"#cloud-config\n# {text}\n".encode()).decode(),
    "gzip": lambda text: base64.b64encode(gzip.compress(f"#cloud-config\n{text}\n".encode(), mtime=0)).decode(),
    "in words": lambda text: f"see {text} for more",
}


@cache
def document(path):
    return json.loads(path.read_text(encoding="utf-8"))


def places(value, at=()):
    """Paths of all texts in a document."""
    if isinstance(value, str):
        yield at
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*at, key))


@cache
def all_places(path):
    return tuple(places(document(path)))


def planted(path, at, text):
    made = copy.deepcopy(document(path))
    holder = made
    for step in at[:-1]:
        holder = holder[step]
    holder[at[-1]] = text
    return made


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_planted_secret_is_found(data):
    path = data.draw(st.sampled_from(DOCUMENTS))
    at = data.draw(st.sampled_from(all_places(path)))
    secret, pack = data.draw(SECRETS), data.draw(st.sampled_from(sorted(PACKED)))
    leaks = scan_document(planted(path, at, PACKED[pack](secret)), origin="here")
    assert leaks
    assert all(leak.origin.startswith("here ") for leak in leaks)
    assert all(secret not in leak.shown for leak in leaks)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(["client_secret", "password", "HF_TOKEN", "apiKey", "private_key"]), value=mixed(10, 40))
def test_a_value_with_a_telling_name_is_found(name, value):
    assert scan_document({"a": [{name: value}]}, origin="here")


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_no_text_is_a_crash(text):
    assert all(leak.shown for leak in scan_document({"token": text, text: [text, text]}, origin="here"))
