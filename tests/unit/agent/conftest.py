"""What the agent's tests share."""

from __future__ import annotations

from typing import Any

import pytest

from modules.agent import config
from modules.agent.config import TunnelConfig


@pytest.fixture
def document() -> dict[str, Any]:
    """A whole configuration with a rendezvous, as a node gets it."""
    return {
        "job": "train",
        "generation": 3,
        "name": "r01",
        "tunnel_address": "10.251.0.2",
        "endpoint": "203.0.113.9:51820",
        "rendezvous": {"url": "http://198.51.100.4:8443", "secret_file": "/run/skyplan/join.secret"},
    }


@pytest.fixture
def tunnel_config(document: dict[str, Any]) -> TunnelConfig:
    return config.parse(document)
