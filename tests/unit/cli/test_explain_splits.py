"""`skyplan explain` of a job that may lie in several clouds: its splits are placements too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.cli.entry import run

JOB = """\
name: wide
resources: {accelerators: "A100-80GB:8", nodes: 4}
work: {hours: 20, on: "A100-80GB:8"}
network: {across: tunnel, sync: {size: 2 GB, every: 60s}}
run: torchrun train.py
"""
PROJECT = """\
project: acme
targets:
  - {name: prod, cloud: aws, quotas: [{instance_types: ["*"], max_nodes: 2}]}
  - {name: prod, cloud: gcp, quotas: [{instance_types: ["*"], max_nodes: 2}]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "skyplan.yaml").write_text(PROJECT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answered(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> dict:
    monkeypatch.setattr("sys.argv", ["skyplan", "explain", "job.yaml", *words, "--offline", "--json"])
    with pytest.raises(SystemExit) as ended:
        run()
    assert not ended.value.code
    return json.loads(capsys.readouterr().out)["jobs"][0]


@pytest.mark.parametrize("words", [(), ("a2-ultra*",)])
def test_splits_are_explained_in_their_order(folder, capsys, monkeypatch, words):
    offers = answered(capsys, monkeypatch, *words)["offers"]
    splits = [o for o in offers if " + " in o["offer_id"]]
    assert splits
    assert [o["rank"] for o in splits] == sorted(o["rank"] for o in splits)
    assert all(not o["rejections"] for o in splits)
    if not words:
        assert offers[0]["rank"] == 0
