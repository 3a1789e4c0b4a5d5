"""agent.json is judged whole: every problem at once, and what it leaves out comes from the environment."""

from __future__ import annotations

from typing import Any

import pytest

from modules.agent import settings
from modules.agent.errors import CONFIG, AgentError

WHOLE: dict[str, Any] = {
    "project": "acme",
    "job": "train",
    "generation": 3,
    "rank": 1,
    "nodes": 2,
    "cloud": "aws",
    "region": "us-east-1",
    "account": "111122223333",
    "instance_id": "i-0abc",
    "control_plane": {"url": "https://plane.example", "ca_file": "/etc/skyplan/ca.pem"},
    "broker": {"url": "https://broker.example:8444/", "audience": "api://skyplan"},
    "checkpoint": {"uri": "s3://acme-ckpt/train/", "folder": "/scratch/checkpoints"},
    "stores": [{"uri": "gs://acme-data/", "access": "read", "reach": "broker"}],
    "stop_after_hours": 24,
    "end": ["shutdown", "-h", "+1"],
    "interruption": {"grace_seconds": 60},
}


def wrong(document: Any) -> str:
    with pytest.raises(AgentError) as refused:
        settings.parse(document, {})
    assert refused.value.code == CONFIG
    return str(refused.value)


def test_a_whole_one() -> None:
    read = settings.parse(WHOLE, {})
    assert read.seat == settings.Seat("acme", "train", 3, 1, 2)
    assert read.seat.run == "train-g3"
    assert read.control_plane == settings.Service(
        "https://plane.example", "/etc/skyplan/ca.pem", "https://plane.example"
    )
    assert read.broker == settings.Service("https://broker.example:8444", None, "api://skyplan")
    assert (read.grace_seconds, read.spool_bytes, read.end) == (60, 64 << 20, ("shutdown", "-h", "+1"))


def test_what_is_null_comes_from_the_environment() -> None:
    given = {
        "SKYPLAN_GENERATION": "7",
        "SKYPLAN_RANK": "1",
        "SKYPLAN_INSTANCE_ID": "vm-1",
        "SKYPLAN_NODES": "4",
    }
    read = settings.parse({**WHOLE, "generation": None, "rank": None, "nodes": None, "instance_id": None}, given)
    assert (read.seat.generation, read.seat.rank, read.seat.nodes, read.instance_id) == (7, 1, 4, "vm-1")
    assert settings.parse(WHOLE, given).seat.generation == 3, "the file wins"


def test_the_least() -> None:
    read = settings.parse({"project": "p", "job": "j", "generation": 1}, {})
    assert (read.control_plane, read.broker, read.checkpoint, read.stores, read.stop_after_hours) == (
        None,
        None,
        None,
        (),
        None,
    )


def test_all_problems_are_told_at_once() -> None:
    text = wrong(
        {
            **WHOLE,
            "job": "Train!",
            "generation": "x",
            "rank": 2,
            "cloud": "oracle",
            "colour": 1,
            "control_plane": {"url": "http://plane.example"},
            "broker": [],
            "checkpoint": {"uri": "s3://b", "folder": "rel", "x": 1},
            "stores": [{"uri": "ftp://x/", "access": "rw", "reach": "magic"}, 7],
            "stop_after_hours": -1,
            "end": "halt",
            "interruption": {"grace_seconds": 0},
            "spool_mib": 1,
            "log": "yes",
        }
    )
    for part in (
        "`colour`",
        "`job`",
        "`generation`",
        "`rank` is 2 of 2",
        "`cloud`",
        "`control_plane.url`",
        "`broker` must be an object",
        "`checkpoint.uri`",
        "`checkpoint.folder`",
        "`checkpoint.x`",
        "`stores[0].uri`",
        "`stores[0].access`",
        "`stores[0].reach`",
        "`stores[1]`",
        "`stop_after_hours`",
        "`end`",
        "`interruption.grace_seconds`",
        "`spool_mib`",
        "`log`",
    ):
        assert part in text, part


@pytest.mark.parametrize("document", [None, [], "x", 7])
def test_what_is_no_object_is_told(document: Any) -> None:
    assert "JSON object" in wrong(document)


def test_how_a_node_proves_itself_must_be_clear() -> None:
    assert "`token_file`" in wrong({**WHOLE, "cloud": None})
    by_hand = {**WHOLE, "cloud": None, "token_file": "/etc/skyplan/token"}
    assert settings.parse(by_hand, {}).token_file == "/etc/skyplan/token"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://localhost:8443", "http://[::1]:1", "https://h"])
def test_clear_text_stays_on_this_machine(url: str) -> None:
    assert settings.parse({**WHOLE, "control_plane": {"url": url}}, {}).control_plane is not None
    assert "control_plane.url" in wrong({**WHOLE, "control_plane": {"url": "http://127.0.0.1.example"}})


def test_a_broker_store_needs_a_broker() -> None:
    assert "broker" in wrong({**WHOLE, "control_plane": None, "broker": None})
