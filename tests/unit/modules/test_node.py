"""Which Node is taken, and what is said where there is none."""

from __future__ import annotations

import pytest

from modules import node
from planner.model.errors import MissingPart


@pytest.fixture(autouse=True)
def _no_choice(monkeypatch):
    for name in ("SKYPLAN_NODE", "JSII_NODE"):
        monkeypatch.delenv(name, raising=False)


def program(path, version):
    path.write_text(f"#!/bin/sh\necho {version}\n")
    path.chmod(0o755)
    return path


def test_the_users_choice_wins(monkeypatch):
    monkeypatch.setenv("SKYPLAN_NODE", "/mine")
    monkeypatch.setenv("JSII_NODE", "/other")
    assert node.find_node() == "/mine"


@pytest.mark.parametrize(
    ("version", "taken"), [("v24.1.0", True), ("v22.0.0", True), ("v20.20.2", False), ("?", False)]
)
def test_a_system_node_is_taken_if_it_is_new_enough(monkeypatch, tmp_path, version, taken):
    monkeypatch.setattr(node, "_packaged", lambda: None)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    found = program(tmp_path / "node", version)
    if taken:
        assert node.find_node() == str(found)
        return
    with pytest.raises(MissingPart) as missing:
        node.find_node()
    assert missing.value.diagnostics[0].code == "SKY-APPLY-316"
    assert ".[cdk,node]" in missing.value.diagnostics[0].hint


def test_none_at_all_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(node, "_packaged", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingPart, match="no `node` on PATH"):
        node.find_node()


def test_a_cache_that_cannot_be_written_is_done_without(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert node.cache_folder() is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert node.cache_folder() == tmp_path / "skyplan" / "jsii"
