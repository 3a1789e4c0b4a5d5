"""The file that says who must come."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.model.errors import InputError
from planner.server import peers_file

GOOD: dict[str, Any] = {
    "job": "train",
    "generation": 3,
    "members": [
        {"name": "r00", "tunnel_address": "10.251.0.1", "secret_sha256": "a" * 64, "endpoint": "203.0.113.7:51820"},
        {"name": "r01", "tunnel_address": "10.251.0.2", "secret_sha256": "b" * 64},
    ],
}


def write(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "peers.json"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_good_file(tmp_path: Path) -> None:
    expected = peers_file.read(write(tmp_path, json.dumps(GOOD)))
    assert (expected.job, expected.generation) == ("train", 3)
    assert [(m.name, m.tunnel_address, m.endpoint) for m in expected.members] == [
        ("r00", "10.251.0.1", "203.0.113.7:51820"),
        ("r01", "10.251.0.2", None),
    ]
    assert expected.members[0].key == b"\xaa" * 32


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(InputError) as refused:
        peers_file.read(write(tmp_path, json.dumps(GOOD), mode))
    assert "chmod 600" in refused.value.diagnostics[0].hint


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "\x00"])
def test_what_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        peers_file.read(write(tmp_path, text))


def test_a_missing_file_is_a_diagnostic(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        peers_file.read(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"job": "Train"}, "`job`"),
        ({"generation": 0}, "`generation`"),
        ({"generation": True}, "`generation`"),
        ({"members": GOOD["members"][:1]}, "`members`"),
        ({"members": None}, "`members`"),
        ({"more": 1}, "`more` is no field"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        peers_file.expected({**GOOD, **change}, Path("peers.json"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "R1"}, "`name`"),
        ({"name": "r00"}, "one `name`"),
        ({"tunnel_address": "10.251.0"}, "`tunnel_address`"),
        ({"tunnel_address": "10.251.0.1"}, "one `tunnel_address`"),
        ({"secret_sha256": "a" * 64}, "one `secret_sha256`"),
        ({"secret_sha256": "hunter2"}, "`secret_sha256`"),
        ({"endpoint": "node:1"}, "`endpoint`"),
        ({"endpoint": "203.0.113.7:51820"}, "one `endpoint`"),
        ({"secret": "x"}, "`secret` is no field"),
    ],
)
def test_a_wrong_member_is_named(change: dict[str, Any], words: str) -> None:
    document = {**GOOD, "members": [GOOD["members"][0], {**GOOD["members"][1], **change}]}
    with pytest.raises(InputError, match=words) as refused:
        peers_file.expected(document, Path("peers.json"))
    assert "hunter2" not in str(refused.value)


def test_all_problems_at_once() -> None:
    document = {"job": "", "generation": -1, "members": [{}, 7]}
    with pytest.raises(InputError) as refused:
        peers_file.expected(document, Path("peers.json"))
    assert len(refused.value.diagnostics) >= 6
