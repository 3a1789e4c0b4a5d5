"""A Terraform that is a script."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from stacks.runner import Terraform

FAKE = Path(__file__).with_name("fake_terraform.py")


class Fake:
    """`terraform`, and what it was called with."""

    def __init__(self, folder: Path) -> None:
        self.script = folder / "script.json"
        self.script.write_text("{}")
        self.environment = {**os.environ, "FAKE_SCRIPT": str(self.script)}
        self.command = (sys.executable, str(FAKE))
        self.folder = folder / "work"
        self.terraform = Terraform(
            self.folder, cache=folder / "cache", command=self.command, environment=self.environment
        )
        self.terraform.write({"terraform": {"backend": {"local": {}}}}, {"a": 1})

    def says(self, **commands):
        self.script.write_text(json.dumps({name.replace("_", " "): said for name, said in commands.items()}))

    def calls(self):
        path = self.folder / "calls.jsonl"
        return [json.loads(line)["arguments"] for line in path.read_text().splitlines()] if path.exists() else []

    def environments(self):
        return [json.loads(line)["env"] for line in (self.folder / "calls.jsonl").read_text().splitlines()]


@pytest.fixture
def fake(tmp_path):
    return Fake(tmp_path)
