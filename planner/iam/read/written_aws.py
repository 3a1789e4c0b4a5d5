"""The blocks with rights in them that skyplan's AWS stacks are made of, from their inputs: `modules.aws` without a CDK."""

from __future__ import annotations

import json
import re
from typing import Any

from planner.iam.read.written import Blocks, add, boots, empty, fit, label, tags
from planner.model.offer import CapacityType
from planner.model.stack import (
    AccessInput,
    AnyStack,
    CiFederation,
    ComputeInput,
    ControlIdentity,
    FoundationInput,
    NodeTemplate,
    PolicyDocument,
)

_TRUST: dict[str, Any] = {
    "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}]
}
#: a shell by Session Manager
_SESSION: dict[str, Any] = {
    "Statement": [
        {
            "Sid": "SessionChannel",
            "Effect": "Allow",
            "Action": [
                f"ssmmessages:{one}"
                for one in ("CreateControlChannel", "CreateDataChannel", "OpenControlChannel", "OpenDataChannel")
            ],
            "Resource": "*",
        },
        {"Sid": "SessionReady", "Effect": "Allow", "Action": "ssm:UpdateInstanceInformation", "Resource": "*"},
    ]
}
#: `${…}` that is not a reference to something in the stack is a policy variable
_VARIABLE = re.compile(r"\$\{(?!(?:data\.)?aws_[a-z0-9_]+\.)")


def blocks(given: AnyStack) -> Blocks:
    """Of a stack of any kind."""
    out = empty()
    if isinstance(given, AccessInput):
        _access(out, given)
    elif isinstance(given, ComputeInput):
        _compute(out, given)
    elif isinstance(given, FoundationInput):
        _foundation(out, given)
    return out


def provider(given: AnyStack) -> dict[str, Any]:
    """Its arguments, as far as ARNs are made of them."""
    return {"aws": {"region": given.region, "allowed_account_ids": [given.account] if given.account else None}}


def _json(document: dict[str, Any]) -> str:
    return _VARIABLE.sub("$${", json.dumps({"Version": "2012-10-17", **document}))


def _access(out: Blocks, given: AccessInput) -> None:
    add(
        out,
        "aws_iam_role",
        "node",
        {
            "name": fit(f"skyplan-{given.project}-{given.name}", 64),
            "path": f"/skyplan/{given.project}/",
            "assume_role_policy": _json(_TRUST),
            "permissions_boundary": given.permissions_boundary,
            "tags": tags(given),
        },
    )
    policies = [(policy.name, policy.document) for policy in given.policies]
    if any(template.session for template in given.templates):
        policies.append(("session", _SESSION))
    for name, document in policies:
        values = {"name": fit(name, 128), "role": "${aws_iam_role.node.name}", "policy": _json(document)}
        add(out, "aws_iam_role_policy", name, values)
    if given.orchestrator:
        _pass(out, given, given.orchestrator)
    for template in given.templates:
        _template(out, given, template, label(template.key))
        if template.key in given.spot_templates:
            _template(out, given, template, f"{label(template.key)}-spot")


def _pass(out: Blocks, given: AccessInput, orchestrator: str) -> None:
    statement = {
        "Sid": "PassJobRole",
        "Effect": "Allow",
        "Action": "iam:PassRole",
        "Resource": "${aws_iam_role.node.arn}",
        "Condition": {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
    }
    values = {
        "name": fit(f"skyplan-pass-{given.name}", 128),
        "role": orchestrator.rsplit("/", 1)[-1],
        "policy": _json({"Statement": [statement]}),
    }
    add(out, "aws_iam_role_policy", "pass", values)


def _template(out: Blocks, given: AccessInput, template: NodeTemplate, name: str) -> None:
    values = {
        "metadata_options": {"http_tokens": "required", "http_put_response_hop_limit": 1},
        "iam_instance_profile": {"arn": "${aws_iam_instance_profile.node.arn}"},
        "user_data": boots(given.workload, template),
        "tags": tags(given),
    }
    head = template.addresses[0] if template.addresses else given.head_address
    if template.tunnel is not None:
        head = template.tunnel.members[0][1]
    add(out, "aws_launch_template", name, values)
    if template.efa_interfaces > 0 and head:
        add(out, "aws_launch_template", f"{name}-head", values)


def _compute(out: Blocks, given: ComputeInput) -> None:
    market = {"instance_market_options": {"market_type": "spot"}} if given.capacity is CapacityType.SPOT else {}
    values = {"launch_template": {"id": "${var.launch_template_id}"}, **market, "tags": tags(given)}
    add(out, "aws_instance", "node", values)


def _foundation(out: Blocks, given: FoundationInput) -> None:
    path = f"/skyplan-foundation/{given.project}/"
    for policy in given.boundaries:
        _policy(out, policy.name, policy.document, path)
    if given.ci is not None and not given.ci.provider:
        values = {"url": given.ci.issuer, "client_id_list": [given.ci.audience]}
        add(out, "aws_iam_openid_connect_provider", "ci", values)
    if given.entry is not None and given.ci is not None:
        entry = given.entry
        trust = [_token(given.ci, "Ci", "StringEquals", list(entry.subjects))]
        _role(out, given, ("ci", entry.name, ""), trust, entry.policies)
    for one in given.identities:
        trust = _trust(given, one)
        if trust:
            _role(out, given, (one.identity.value, one.name, one.boundary), trust, one.policies)


def _policy(out: Blocks, name: str, document: dict[str, Any], path: str) -> None:
    add(out, "aws_iam_policy", name, {"name": fit(name, 128), "path": path, "policy": _json(document)})


def _role(
    out: Blocks,
    given: FoundationInput,
    named: tuple[str, str, str],
    trust: list[dict[str, Any]],
    policies: tuple[PolicyDocument, ...],
) -> None:
    """`named`: the role's word among the resources, its name, its boundary's."""
    word, name, boundary = named
    path = f"/skyplan-foundation/{given.project}/"
    add(
        out,
        "aws_iam_role",
        word,
        {
            "name": fit(name, 64),
            "path": path,
            "assume_role_policy": _json({"Statement": trust}),
            "permissions_boundary": f"${{aws_iam_policy.{boundary}.arn}}" if boundary else None,
            "tags": tags(given),
        },
    )
    for number, policy in enumerate(policies, start=1):
        _policy(out, policy.name, policy.document, path)
        values = {"role": f"${{aws_iam_role.{word}.name}}", "policy_arn": f"${{aws_iam_policy.{policy.name}.arn}}"}
        add(out, "aws_iam_role_policy_attachment", f"{word}-{number}", values)


def _trust(given: FoundationInput, one: ControlIdentity) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    opened = given.ci is not None and given.entry is not None and one.identity in given.entry.opens
    through = ["${aws_iam_role.ci.arn}"] if opened else []
    for sid, who in (("Named", list(one.trusted)), ("ThroughCi", through)):
        if who:
            out.append({"Sid": sid, "Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": who}})
    if given.ci is not None:
        exact = [subject for subject in one.subjects if "*" not in subject]
        some = [subject for subject in one.subjects if "*" in subject]
        for sid, operator, subjects in (("Ci", "StringEquals", exact), ("CiOfAnyBranch", "StringLike", some)):
            if subjects:
                out.append(_token(given.ci, sid, operator, subjects))
    return out


def _token(ci: CiFederation, sid: str, operator: str, subjects: list[str]) -> dict[str, Any]:
    issuer = ci.issuer.removeprefix("https://").rstrip("/")
    condition: dict[str, dict[str, Any]] = {"StringEquals": {f"{issuer}:aud": ci.audience}}
    condition.setdefault(operator, {})[f"{issuer}:sub"] = subjects
    return {
        "Sid": sid,
        "Effect": "Allow",
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Principal": {"Federated": ci.provider or "${aws_iam_openid_connect_provider.ci.arn}"},
        "Condition": condition,
    }
