"""A user's repository in a temporary folder, and the real command line run in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.e2e.identities import Identities
from tests.emulators.aws import Aws
from tests.emulators.terraform import Terraform

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "import sys; from planner.cli.entry import run; run()"
PROJECT = """\
project: acme
targets:
  - {name: prod, cloud: aws, regions: [us-east-1]}
"""
JOB = """\
name: train
resources: {accelerators: T4:1, nodes: 2, capacity: [spot]}
work: {hours: 2, on: T4:1, nodes: 2}
run: python train.py
constraints: {clouds: [aws], instance_types: [g4dn.xlarge]}
"""


class Workspace:
    """`skyplan.yaml`, `jobs/train.yaml`; the command line with the emulated AWS in its environment.

    With `identities`, the user may only become the foundation's identities, and every call from now on is judged.
    """

    def __init__(
        self,
        folder: Path,
        aws: Aws,
        terraform: Terraform,
        backend: str = "",
        *,
        job: str = JOB,
        identities: Identities | None = None,
    ) -> None:
        self.folder = folder
        self.aws = aws
        self.identities = identities
        self.environment: Mapping[str, str] = {**terraform.environment, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
        project = PROJECT
        if identities is not None:
            self.environment = {**self.environment, **identities.environment}
            project, backend = identities.project, ""
            aws.enforce_access()
        (folder / "jobs").mkdir(parents=True)
        (folder / "jobs" / "train.yaml").write_text(job, encoding="utf-8")
        (folder / "skyplan.yaml").write_text(project + backend, encoding="utf-8")

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """In a process group of its own, so that it can be killed whole."""
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments],
            cwd=self.folder,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=300)
        assert process.returncode == code, f"skyplan {' '.join(arguments)}: exit {process.returncode}\n{out}\n{err}"
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def json(self, *arguments: str, code: int = 0, **environment: str) -> Any:
        return json.loads(self.run(*arguments, "--json", code=code, **environment).stdout)

    def found(self, terraform: Terraform) -> None:
        """`skyplan foundation`, applied by an administrator, the only one who may."""
        self.run("foundation", "--cloud", "aws", "--out", "foundation")
        folder = self.folder / "foundation" / "fnd-aws-prod"
        for command in (("init",), ("apply", "-auto-approve"), ("plan", "-detailed-exitcode")):
            terraform.ok(folder, *command, **self.aws.administrator)
        self.aws.settle()

    def plan(self) -> dict[str, Any]:
        self.run("plan", "jobs/train.yaml", "--out", "plans")
        return json.loads((self.folder / "plans" / "train.plan.json").read_text(encoding="utf-8"))

    def apply(self, *more: str, **environment: str) -> Any:
        """The applied job's document."""
        return self.json("apply", "plans/train.plan.json", "--prepare", "0", *more, **environment)["jobs"][0]

    def nodes(self) -> set[str]:
        """Ids of the job's machines, by the emulator's own API."""
        return {i["InstanceId"] for i in self.aws.instances(skyplan_job="train")}


def terraform_pid(folder: Path) -> int:
    """Of the compute stack's Terraform at work."""
    return int((folder / ".skyplan" / "work" / "cmp-train-g1" / "terraform.pid").read_text(encoding="ascii"))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
