"""One secret that all nodes read, and of it each node's own."""

from __future__ import annotations

import hashlib
import json

import pytest

from planner.model.errors import InputError
from planner.server.peers_file import derived, read, shared_secret

MEMBERS = [
    {"name": f"r0{k}", "tunnel_address": f"10.251.0.{k + 1}", "endpoint": f"203.0.113.{k}:51820"} for k in (1, 2)
]


def written(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return path


def test_every_member_gets_a_secret_of_its_own(tmp_path):
    file = written(tmp_path / "p.json", json.dumps({"job": "train", "generation": 3, "members": MEMBERS}))
    shared = shared_secret(written(tmp_path / "s", "0123456789abcdef0123\n"))
    found = read(file, shared)
    own = [derived(b"0123456789abcdef0123", "train", 3, m.name) for m in found.members]
    assert [m.key for m in found.members] == [hashlib.sha256(secret.encode()).digest() for secret in own]
    assert len({m.key for m in found.members}) == 2


def test_another_launch_has_other_secrets():
    assert derived(b"k" * 20, "train", 3, "r01") != derived(b"k" * 20, "train", 4, "r01")


def test_without_a_secret_the_file_must_say_what_proves_each(tmp_path):
    file = written(tmp_path / "p.json", json.dumps({"job": "train", "generation": 3, "members": MEMBERS}))
    with pytest.raises(InputError) as refused:
        read(file)
    assert "secret_sha256" in refused.value.diagnostics[0].summary


@pytest.mark.parametrize(("text", "mode", "code"), [("hunter2", 0o600, "105"), ("x" * 32, 0o644, "111")])
def test_a_weak_or_open_secret_is_refused(tmp_path, text, mode, code):
    with pytest.raises(InputError) as refused:
        shared_secret(written(tmp_path / "s", text, mode))
    assert refused.value.diagnostics[0].code == f"SKY-SPEC-{code}"
    assert text not in refused.value.diagnostics[0].summary


@pytest.mark.parametrize("wrong", [{"generation": "three"}, {"generation": [1]}, {"job": 7}, {"members": {}}])
def test_a_malformed_file_is_told_in_words_with_a_shared_secret_too(tmp_path, wrong):
    document = {"job": "train", "generation": 3, "members": MEMBERS} | wrong
    with pytest.raises(InputError):
        read(written(tmp_path / "p.json", json.dumps(document)), b"k" * 20)
