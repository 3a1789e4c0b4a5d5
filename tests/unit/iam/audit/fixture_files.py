"""Fixtures of the audit's rules: JSON files `SKY-IAM-nnn[.variant].{fail,pass}.json`, each cloud's rights in that cloud's own shape.

    {"subjects": [{"cloud", "name", "identity", "job", "keys",
                   "policies":    [{"kind", "name", "document": an IAM policy}],                                            AWS
                   "bindings":    [{"resource", "role", "members": [..], "includedPermissions", "condition": {"expression"}}],    Google
                   "assignments": [{"scope", "role", "condition", "permissions": [{"actions", "notActions", "dataActions", "notDataActions"}]}],  Azure
                   "permits":     [{"resource_id", "role", "paths", "anonymous"}]}],                                       Nebius
     "machines", "providers", "leases", "leaks": [fields of the model],
     "stores": [{"arn", "document"}], "public": [as bindings], "needs": {"orchestrator/aws": {action: why}}, "allowed": [[job, URI, write]],
     "base": {the same again, for what compares}}

Everything may be left out.
"""

from __future__ import annotations

import json
from pathlib import Path

from planner.iam.audit.registry import RULES
from planner.iam.audit.widening import widening
from planner.iam.documents import policy_from
from planner.model.diagnostic import Location
from planner.model.grants import Identity
from planner.model.offer import Cloud
from planner.model.policy import (
    Audited,
    Leak,
    LeasePath,
    Machine,
    Permit,
    PolicyKind,
    Provider,
    RoleAssignment,
    RoleBinding,
    Subject,
)

FOLDER = Path(__file__).parent / "fixtures"


def files(rule, outcome):
    """Fixtures of a rule; `outcome` is `fail` or `pass`.  The one without a variant first."""
    return sorted(FOLDER.glob(f"{rule}*.{outcome}.json"), key=lambda path: (path.name.count("."), path.name))


def load(path):
    return json.loads(path.read_text())


def judged(rule, document):
    """What the rule finds in a fixture."""
    audited = audited_from(document)
    if "base" in document:
        return widening(audited_from(document["base"]), audited)
    return tuple(RULES[rule].judge(audited))


def audited_from(document):
    return Audited(
        subjects=tuple(_subject(one) for one in document.get("subjects", ())),
        machines=tuple(_of(Machine, one) for one in document.get("machines", ())),
        stores=tuple(
            (one["arn"], policy_from(one["document"], kind=PolicyKind.RESOURCE, name=one["arn"]))
            for one in document.get("stores", ())
        ),
        public=tuple(made for one in document.get("public", ()) for made in _bindings(one)),
        providers=tuple(_of(Provider, one) for one in document.get("providers", ())),
        leases=tuple(_of(LeasePath, one) for one in document.get("leases", ())),
        leaks=tuple(_of(Leak, one) for one in document.get("leaks", ())),
        needs={_need(key): dict(value) for key, value in document.get("needs", {}).items()},
        allowed=tuple((job, uri, write) for job, uri, write in document.get("allowed", ())),
    )


def _need(key):
    identity, cloud = key.split("/")
    return Identity(identity), Cloud(cloud)


def _of(kind, fields):
    made = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
    if "cloud" in made:
        made["cloud"] = Cloud(made["cloud"])
    if "location" in made:
        made["location"] = Location(**made["location"])
    return kind(**made)


def _subject(one):
    return Subject(
        cloud=Cloud(one["cloud"]),
        name=one["name"],
        origin=one.get("origin", one["name"]),
        identity=Identity(one["identity"]) if one.get("identity") else None,
        job=one.get("job", ""),
        policies=tuple(
            policy_from(policy["document"], kind=PolicyKind(policy.get("kind", "identity")), name=policy["name"])
            for policy in one.get("policies", ())
        ),
        bindings=tuple(made for binding in one.get("bindings", ()) for made in _bindings(binding)),
        assignments=tuple(_assignment(assignment) for assignment in one.get("assignments", ())),
        permits=tuple(
            Permit(
                role=permit["role"],
                on=permit["resource_id"],
                paths=tuple(permit.get("paths", ())),
                anonymous=permit.get("anonymous", False),
            )
            for permit in one.get("permits", ())
        ),
        keys=tuple(one.get("keys", ())),
    )


def _bindings(one):
    return [
        RoleBinding(
            member=member,
            role=one["role"],
            on=one["resource"],
            permissions=tuple(one.get("includedPermissions", ())),
            condition=one.get("condition", {}).get("expression", ""),
        )
        for member in one["members"]
    ]


def _assignment(one):
    (rights,) = one.get("permissions", [{}])
    return RoleAssignment(
        role=one["role"],
        scope=one["scope"],
        actions=tuple(rights.get("actions", ())),
        not_actions=tuple(rights.get("notActions", ())),
        data_actions=tuple(rights.get("dataActions", ())),
        not_data_actions=tuple(rights.get("notDataActions", ())),
        condition=one.get("condition", ""),
    )
