"""The words in which AWS bounds a right: ARNs of one account, regions, tags.  Takes its values from the scope and from a grant's bounds; grants nothing.

A tag is demanded in one of two ways, never in both: of what a request makes (`aws:RequestTag`), or of what it touches (`aws:ResourceTag`).  A statement over
both would never match (Service Authorization Reference, EC2, 2026-11).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from planner.iam.aws import literal
from planner.model.control import ControlScope
from planner.model.grants import Bound, Grant

PROJECT_TAG: Final = "skyplan:project"
MANAGED_TAG: Final = "skyplan:managed"
#: tag keys that skyplan itself writes
OUR_KEYS: Final = ("Name", "skyplan:*")
#: places that a lean statement names one by one
FEW: Final = 4

Condition = dict[str, dict[str, list[str]]]
Statement = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """One scope, and the grant that a statement is made of.

    lean   for a boundary, which has one policy's room: tag keys stay out, and the regions, which it names once, as a denial
    """

    scope: ControlScope
    grant: Grant
    lean: bool = False

    def bound(self, bound: Bound) -> list[str]:
        """The values of a bound of the grant; [] where it has none."""
        return [value for held in self.grant.conditions if held.bound is bound for value in held.values]

    @property
    def project(self) -> str:
        """The project as a pattern that matches nothing else."""
        return literal(self.scope.project)

    @property
    def region(self) -> Condition:
        """Only calls to the allowed regions."""
        if self.lean:
            return {}
        return {"StringEquals": {"aws:RequestedRegion": self.bound(Bound.REGION)}}

    @property
    def owned(self) -> Condition:
        """What is touched carries the project's tag."""
        return {"StringEquals": {f"aws:ResourceTag/{PROJECT_TAG}": [self.project]}}

    @property
    def created(self) -> Condition:
        """What is made gets the project's tag, and no tag that somebody else's policies may look at."""
        if self.lean:
            return {"StringEquals": {f"aws:RequestTag/{PROJECT_TAG}": [self.project]}}
        return {
            "StringEquals": {
                f"aws:RequestTag/{PROJECT_TAG}": [self.project],
                f"aws:RequestTag/{MANAGED_TAG}": ["true"],
            },
            **self.known_keys,
        }

    @property
    def known_keys(self) -> Condition:
        """No tag but skyplan's and those that the user named: others' policies may look at any other."""
        return {"ForAllValues:StringLike": {"aws:TagKeys": sorted({*OUR_KEYS, *self.scope.tag_keys})}}

    @property
    def templated(self) -> Condition:
        """Launched from a launch template of this account; which ones, their own tag decides."""
        return {"ArnLike": {"ec2:LaunchTemplate": self.ec2("launch-template")}}

    @property
    def state_owner(self) -> Condition:
        """The state's bucket is in the account that it should be in: names of buckets are the world's, and state tells of a whole network."""
        return {"StringEquals": {"aws:ResourceAccount": [self.scope.state_account or self.scope.account]}}

    def ec2(self, *kinds: str, account: bool = True) -> list[str]:
        """Every resource of these kinds, in this account.  With several regions the ARN leaves them to the condition."""
        regions = self.bound(Bound.REGION)
        region = regions[0] if len(regions) == 1 else "*"
        owner = self.scope.account if account else ""
        return [f"arn:{self.scope.partition}:ec2:{region}:{owner}:{kind}/*" for kind in sorted(kinds)]

    def iam(self, kind: str, path: str) -> str:
        """A role, profile or policy of this account."""
        return f"arn:{self.scope.partition}:iam::{self.scope.account}:{kind}{path}"

    def own(self, *kinds: str) -> list[str]:
        """The user's own places of these kinds, each by its id; lean, more than a few are all of their kind."""
        found = [place.split("/", 2) for place in self.scope.own]
        mine = [(region, kind, name) for region, kind, name in found if kind in kinds and region in self.scope.regions]
        if self.lean and len(mine) > FEW:
            return self.ec2(*{kind for _, kind, _ in mine})
        return sorted(
            f"arn:{self.scope.partition}:ec2:{region}:{self.scope.account}:{kind}/{literal(name)}"
            for region, kind, name in mine
        )

    @property
    def nodes(self) -> str:
        """Where the roles and profiles of nodes live."""
        return f"/skyplan/{self.project}/"

    @property
    def data(self) -> str:
        """Where what the broker becomes lives, among them."""
        return f"{self.nodes}data/"


def merged(*conditions: Condition) -> Condition:
    """All of them must hold.  Two that set one key differently are a mistake: ValueError."""
    out: Condition = {}
    for condition in conditions:
        for operator, keys in condition.items():
            held = out.setdefault(operator, {})
            if any(held.get(key, values) != values for key, values in keys.items()):
                raise ValueError(f"{operator} is asked twice of one key: {sorted(keys)}")
            held.update(keys)
    return out


def statement(
    sid: str, actions: Iterable[str], resources: Iterable[str], condition: Condition, *, effect: str = "Allow"
) -> Statement:
    """In IAM's own shape, lists sorted, so that equal rights are equal bytes."""
    made: Statement = {
        "Sid": sid,
        "Effect": effect,
        "Action": sorted(set(actions)),
        "Resource": sorted(set(resources)),
    }
    return {**made, "Condition": condition} if condition else made
