"""One AWS account's scope and its foundation, for tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.iam.documents import policy_from
from planner.iam.foundation import aws
from planner.model.control import ControlScope
from planner.model.grants import Identity
from planner.model.offer import Cloud
from planner.model.policy import AwsPolicy, PolicyKind

ACCOUNT = "123456789012"
SCOPE = ControlScope(
    cloud=Cloud.AWS,
    project="acme",
    target="prod",
    account=ACCOUNT,
    regions=("us-east-1", "us-west-2"),
    instance_types=("p5*", "g6e.*"),
    state="acme-tfstate",
    tag_keys=("team",),
    own=("us-east-1/vpc/vpc-0own", "us-east-1/subnet/subnet-0own", "us-east-1/capacity-reservation/cr-0own"),
)


def scope(**changes: Any) -> ControlScope:
    return replace(SCOPE, **changes)


def policies(identity: Identity, given: ControlScope = SCOPE, *, bounded: bool = True) -> list[AwsPolicy]:
    """What an identity may do: its managed policies, and its boundary."""
    one = next(found for found in aws.identities(given) if found.identity is identity)
    bounds = {found.name: found for found in aws.boundaries(given)}
    made = [policy_from(p.document, kind=PolicyKind.IDENTITY, name=p.name) for p in one.policies]
    if bounded and one.boundary:
        made.append(policy_from(bounds[one.boundary].document, kind=PolicyKind.BOUNDARY, name=one.boundary))
    return made
