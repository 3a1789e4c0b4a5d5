"""Recorded requests before the judges: skyplan's own evaluator, iam-simulate, and moto's policy engine where it can tell.

A judge is asked what it can judge.  moto's knows no conditions: it is asked only where every statement about the action is without one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from moto.iam.access_control import IAMPolicy, PermissionResult

from planner.iam import actions
from planner.iam.documents import policy_from
from planner.iam.evaluate import aws as evaluate
from planner.iam.foundation import aws as foundation
from planner.model.control import ControlScope
from planner.model.grants import Identity
from planner.model.policy import AwsPolicy, PolicyKind
from tests.e2e.judges import simulate
from tests.e2e.judges.record import Seen
from tests.emulators.aws import ACCOUNT

Policies = list[dict[str, Any]]


def held_by(scope: ControlScope, identity: Identity, passes: Mapping[str, Any] | None = None) -> Policies:
    """All that an identity holds, as the foundation writes it today, and what access stacks added."""
    (one,) = (each for each in foundation.identities(scope) if each.identity is identity)
    out = [{"kind": "identity", "name": policy.name, "document": policy.document} for policy in one.policies]
    if identity is Identity.ORCHESTRATOR:
        out += [{"kind": "identity", "name": name, "document": made} for name, made in sorted((passes or {}).items())]
    bounds = [bound for bound in foundation.boundaries(scope) if bound.name == one.boundary]
    return [*out, *({"kind": "boundary", "name": bound.name, "document": bound.document} for bound in bounds)]


@dataclass(frozen=True)
class Question:
    """One request under some policies."""

    policies: Policies
    seen: Seen


def local(questions: Sequence[Question]) -> list[bool]:
    """skyplan's own evaluator."""
    parsed = {
        held: _parsed(policies) for held, policies in {id(one.policies): one.policies for one in questions}.items()
    }
    return [bool(evaluate.judge(parsed[id(one.policies)], _request(one.seen))) for one in questions]


def simulated(questions: Sequence[Question]) -> list[bool | None]:
    """iam-simulate; None where it knows no such resource (a public parameter, whose ARN has no account)."""
    answers = simulate.simulate(
        [
            {
                "principal": one.seen.keys.get("aws:PrincipalArn", (f"arn:aws:iam::{ACCOUNT}:role/any",))[0],
                "action": one.seen.action,
                "resource": one.seen.resource,
                "context": {key: _value(values) for key, values in one.seen.context},
                "policies": one.policies,
            }
            for one in questions
        ],
        ACCOUNT,
    )
    return [None if one.error else one.allowed for one in answers]


def by_moto(questions: Sequence[Question]) -> list[bool | None]:
    """moto's own engine; None where it cannot tell."""
    return [_moto(one) for one in questions]


def _moto(one: Question) -> bool | None:
    about = [
        statement
        for policy in one.policies
        for statement in policy["document"]["Statement"]
        if one.seen.action in granted(statement)
    ]
    if any("Condition" in statement or "Resource" not in statement for statement in about):
        return None
    said = {"identity": [], "boundary": [], "session": []}
    for policy in one.policies:
        engine = IAMPolicy({"policy_document": json.dumps(policy["document"])})
        said[policy["kind"]].append(engine.is_action_permitted(one.seen.action, one.seen.resource))
    if any(PermissionResult.DENIED in results for results in said.values()):
        return False
    bounds = [result is PermissionResult.PERMITTED for result in (*said["boundary"], *said["session"])]
    return PermissionResult.PERMITTED in said["identity"] and all(bounds)


def _value(values: tuple[str, ...]) -> str | list[str]:
    return values[0] if len(values) == 1 else list(values)


@lru_cache(maxsize=4096)
def _policy(kind: str, name: str, text: str) -> AwsPolicy:
    return policy_from(text, kind=PolicyKind(kind), name=name)


def _parsed(policies: Policies) -> list[AwsPolicy]:
    return [_policy(one["kind"], one["name"], json.dumps(one["document"], sort_keys=True)) for one in policies]


def _request(seen: Seen) -> evaluate.Request:
    return evaluate.Request(action=seen.action, resource=seen.resource, context=seen.keys)


@dataclass(frozen=True)
class Without:
    """Policies of an identity without one statement."""

    identity: Identity
    policy: str
    sid: str
    effect: str
    granted: frozenset[str]
    policies: Policies

    def __str__(self) -> str:
        return f"{self.policy}: {self.sid}"


def without_each(identity: Identity, policies: Policies) -> Iterator[Without]:
    """Each statement away in turn."""
    for number, policy in enumerate(policies):
        for place, statement in enumerate(policy["document"]["Statement"]):
            left = deepcopy(policies)
            del left[number]["document"]["Statement"][place]
            if not left[number]["document"]["Statement"]:
                nothing = {"Sid": "Nothing", "Effect": "Deny", "Action": ["ec2:DescribeRegions"], "Resource": ["*"]}
                left[number]["document"]["Statement"] = [nothing]
            yield Without(identity, policy["name"], statement["Sid"], statement["Effect"], granted(statement), left)


def without_each_resource(identity: Identity, policies: Policies) -> Iterator[tuple[Without, str]]:
    """Each resource of each statement that has several away in turn."""
    for number, policy in enumerate(policies):
        for place, statement in enumerate(policy["document"]["Statement"]):
            named = statement.get("Resource", [])
            for resource in named if isinstance(named, list) and len(named) > 1 else ():
                left = deepcopy(policies)
                left[number]["document"]["Statement"][place]["Resource"] = [one for one in named if one != resource]
                what = (statement["Sid"], statement["Effect"], granted(statement), left)
                yield Without(identity, policy["name"], *what), resource


def granted(statement: Mapping[str, Any]) -> frozenset[str]:
    """The actions of a statement, by name."""
    named = statement["Action"]
    return frozenset(a for pattern in ([named] if isinstance(named, str) else named) for a in actions.expand(pattern))
