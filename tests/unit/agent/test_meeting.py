"""A tunnel's nodes meet by their sessions at the control plane: all or nobody, within a time, and only who was refused gives up at once."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from modules.agent import config as configs
from modules.agent import meeting
from modules.agent.errors import CONFIG, MISSING, REFUSED, UNAVAILABLE, AgentError
from tests.unit.agent.plane import Plane, refusal

MINE = base64.b64encode(b"\1" * 32).decode()
OTHER = base64.b64encode(b"\2" * 32).decode()
ROWS = [
    {"name": "r00", "public_key": OTHER, "endpoint": "203.0.113.7:51820", "tunnel_address": "10.251.0.1"},
    {"name": "r01", "public_key": MINE, "endpoint": "203.0.113.9:51820", "tunnel_address": "10.251.0.2"},
]


@pytest.fixture
def plane(socket_enabled: None) -> Iterator[Plane]:
    made = Plane()
    yield made
    made.close()


@pytest.fixture
def tunnel(document: dict[str, Any], tmp_path: Path, plane: Plane) -> configs.TunnelConfig:
    del document["rendezvous"]
    token = tmp_path / "token"
    token.write_text("once")
    token.chmod(0o600)
    agent = {
        "project": "acme",
        "job": "train",
        "nodes": 2,
        "control_plane": {"url": plane.url},
        "token_file": str(token),
        "state_folder": str(tmp_path / "state"),
        "run_folder": str(tmp_path / "run"),
    }
    path = tmp_path / "agent.json"
    path.write_text(json.dumps(agent))
    return configs.parse({**document, "control_plane": {"agent_config": str(path), "timeout_seconds": 5}})


def met(tunnel: configs.TunnelConfig) -> Any:
    assert tunnel.session is not None
    return meeting.by_session(tunnel, tunnel.session, MINE)


def ended(tunnel: configs.TunnelConfig) -> AgentError:
    with pytest.raises(AgentError) as refused:
        met(tunnel)
    return refused.value


def answers(*said: Any) -> Any:
    """For /v1/peers, one after the other, the last for good."""
    left = list(said)

    def fault(path: str, _body: dict[str, Any]) -> Any:
        if not path.startswith("/v1/peers"):
            return None
        return left.pop(0) if len(left) > 1 else left[0]

    return fault


def waiting(*names: str) -> Any:
    return 202, {"peers": [], "missing": list(names)}, {}


def test_all_come_and_each_learns_all(plane: Plane, tunnel: configs.TunnelConfig) -> None:
    plane.fault = answers(
        (200, {"peers": [], "missing": ["r00"]}, {}), waiting("r00"), (200, {"peers": ROWS, "missing": []}, {})
    )
    assert [p.name for p in met(tunnel)] == ["r00", "r01"]
    (join,) = plane.paths("/v1/join")
    assert (join["generation"], join["rank"]) == (3, 1)
    (said,) = plane.paths("/v1/peers")
    assert said == {"name": "r01", "public_key": MINE, "endpoint": "203.0.113.9:51820"}


def test_the_missing_are_named(plane: Plane, tunnel: configs.TunnelConfig) -> None:
    plane.fault = answers((200, {"peers": [], "missing": ["r00"]}, {}), waiting("r00"))
    short = replace(tunnel, session=replace(tunnel.session, timeout_seconds=1))
    error = ended(short)
    assert error.code == MISSING
    assert "missing: r00" in str(error)


def test_what_may_pass_is_tried_again(plane: Plane, tunnel: configs.TunnelConfig) -> None:
    plane.fault = answers(refusal(425, "early"), refusal(503, ""), (200, {"peers": ROWS, "missing": []}, {}))
    assert len(met(tunnel)) == 2


def test_a_refusal_ends_at_once(plane: Plane, tunnel: configs.TunnelConfig) -> None:
    plane.fault = answers(refusal(409, "key"))
    assert ended(tunnel).code == REFUSED
    assert len(plane.paths("/v1/peers")) == 1


def test_a_control_plane_that_is_away_is_said(plane: Plane, tunnel: configs.TunnelConfig) -> None:
    plane.fault = lambda *_: "away"
    short = replace(tunnel, session=replace(tunnel.session, timeout_seconds=1))
    assert ended(short).code == UNAVAILABLE


def test_a_set_without_this_node_is_refused(plane: Plane, tunnel: configs.TunnelConfig) -> None:
    plane.fault = answers((200, {"peers": [ROWS[0], {**ROWS[1], "public_key": OTHER[:-2] + "I="}], "missing": []}, {}))
    assert ended(tunnel).code == REFUSED


def test_the_agents_configuration_must_be_this_nodes(tunnel: configs.TunnelConfig) -> None:
    assert ended(replace(tunnel, job="other")).code == CONFIG
