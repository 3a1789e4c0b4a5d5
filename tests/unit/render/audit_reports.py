"""Reports to render: one with everything in it, names of strangers that try to break out included."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.model.audit_report import AuditReport, Change, RuleText
from planner.model.diagnostic import Diagnostic, Location, Severity
from planner.model.finding import Finding, Level

HOSTILE = '</details>|`x` @org <img src=x> ]]> "q" \x1b[31m\x00'


def finding(**changes: Any) -> Finding:
    values: dict[str, Any] = {
        "rule": "SKY-IAM-301",
        "level": Level.HIGH,
        "cloud": "aws",
        "identity": "node-data",
        "origin": "acc-train--aws-prod-us-east-1 aws_iam_role.node",
        "message": "reads s3://acme-corpus/, the job names s3://acme-corpus/llama/",
        "grant": "ReadData",
        "action": "s3:GetObject",
        "resource": "arn:aws:s3:::acme-corpus/*",
        "evidence": 'Resource: "arn:aws:s3:::acme-corpus/*"',
        "fix": 'Resource: "arn:aws:s3:::acme-corpus/llama/*"',
        "location": Location("jobs/train.yaml", 7, 3),
    }
    return Finding(**(values | changes))


RULES = (
    RuleText(
        id="SKY-IAM-301",
        level=Level.HIGH,
        title="objects may be read beyond the prefix",
        why="because",
        maps=("CKV_AWS_1",),
    ),
    RuleText(id="SKY-IAM-216", level=Level.CRITICAL, title="administrator", fix="give what is needed"),
    RuleText(id="SKY-IAM-605", level=Level.HIGH, title="this change grants more than its base"),
    RuleText(id="SKY-IAM-606", level=Level.INFO, title="granted, but no planned operation needs it"),
)
FINDINGS = (
    finding(
        rule="SKY-IAM-605",
        level=Level.HIGH,
        identity="orchestrator",
        grant="TerminateOwn",
        action="ec2:TerminateInstances",
        resource="*",
        message="the condition aws:ResourceTag/skyplan:project was dropped",
        location=None,
    ),
    finding(
        rule="SKY-IAM-216",
        level=Level.CRITICAL,
        identity=HOSTILE,
        message=HOSTILE,
        grant=HOSTILE,
        origin=HOSTILE,
        evidence=HOSTILE,
        fix="",
        location=None,
    ),
    finding(),
    finding(rule="SKY-IAM-606", level=Level.INFO, location=Location("plans/my job.plan.json")),
    finding(grant="ReadOther", accepted="reviewed in ML-12"),
)
FULL = AuditReport(
    project="acme",
    sources=("plans/train.plan.json",),
    identities=(("aws", "node-data"), ("aws", "orchestrator")),
    rules=RULES,
    findings=FINDINGS,
    base="main",
    standing=2,
    changes=(
        Change(cloud="aws", identity="orchestrator", kind="added", right="Allow ec2:StopInstances on *"),
        Change(cloud="aws", identity="orchestrator", kind="removed", right=HOSTILE),
    ),
    diagnostics=(
        Diagnostic(
            code="SKY-IAM-901",
            summary="the suppression of SKY-IAM-216 expired on 2026-01-01",
            location=Location("skyplan.yaml", 4),
        ),
        Diagnostic(code="SKY-IAM-904", summary="matches nothing", severity=Severity.WARNING),
    ),
)
CLEAN = replace(FULL, findings=(), changes=(), diagnostics=(), base="", standing=0)
