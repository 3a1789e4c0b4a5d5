"""What the tests of the audit as a use case share: one plain rule, roles to find, a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from planner.app import audit
from planner.app.audit_sources import PlanSource
from planner.model.audit_report import AuditReport
from planner.model.finding import Finding, Level
from planner.model.policy import (
    Audited,
    AwsPolicy,
    PolicyKind,
    Statement,
)
from planner.model.project import Suppression
from tests.unit.app.world import planned, small_market

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def finding(**changes: Any) -> Finding:
    values: dict[str, Any] = {
        "rule": "SKY-IAM-109",
        "level": Level.HIGH,
        "cloud": "aws",
        "identity": "ci",
        "origin": "main aws_iam_role.ci",
        "message": "wide",
        "grant": "all/Everything",
    }
    return Finding(**(values | changes))


def suppression(**changes: Any) -> Suppression:
    return Suppression(**({"rule": "SKY-IAM-109", "reason": "ML-12", "expires": "2027-01-01"} | changes))


def wide_resources(audited: Audited) -> Iterator[Finding]:
    for subject in audited.subjects:
        for policy in subject.of_kind(PolicyKind.IDENTITY):
            for s in policy.statements:
                if "*" in s.resources and not s.tests:
                    yield finding(
                        identity=subject.name,
                        origin=subject.origin,
                        grant=f"{policy.name}/{s.sid}",
                        location=s.location,
                    )


def role(*statements: dict[str, Any], name: str = "ci") -> dict[str, Any]:
    trust = {
        "Statement": {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}
    }
    policy = {"Version": "2012-10-17", "Statement": list(statements)}
    return {
        "resource": {
            "aws_iam_role": {name: {"name": name, "assume_role_policy": json.dumps(trust)}},
            "aws_iam_role_policy": {
                name: {"name": "all", "role": f"${{aws_iam_role.{name}.name}}", "policy": json.dumps(policy)}
            },
        }
    }


def statement(sid: str, action: str, resource: str = "*", **condition: Any) -> dict[str, Any]:
    more = {"Condition": condition} if condition else {}
    return {"Sid": sid, "Effect": "Allow", "Action": action, "Resource": resource, **more}


OWN = {"StringEquals": {"aws:ResourceTag/skyplan:project": "acme"}}
WIDE = statement("Everything", "ec2:TerminateInstances")
NARROW = statement("Own", "ec2:TerminateInstances", **OWN)


def put(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def run(*paths: str, **request: Any) -> AuditReport:
    return audit.judge(audit.read(audit.Request(paths=tuple(map(Path, paths)), **request)), NOW)


def policy(*statements: Statement, kind: PolicyKind = PolicyKind.IDENTITY, name: str = "p") -> AwsPolicy:
    return AwsPolicy(kind=kind, name=name, statements=statements)


def source() -> PlanSource:
    from planner.app.audit_sources import Around, stacks_of
    from tests.unit.app.world import PROJECT

    plan, _ = planned()
    around = Around(project=PROJECT, market=small_market)
    return PlanSource(plan=plan, file="plans/train.plan.json", stacks=stacks_of(plan, around))


JOB = """# a comment
---
name: other
run: x
---
name: train
run: python train.py
data:
  - {uri: s3://acme-corpus/llama/, region: us-east-1, size: 1GB}
  - uri: s3://acme-corpus/llama/extra/
    region: us-east-1
    size: 1GB
checkpoint: {uri: s3://acme-ckpt/train/, region: us-east-1, size: 1GB, every: 30m}
secrets:
  HF_TOKEN: secret://aws-secretsmanager/acme/hf
"""
