"""Nebius's control identities: groups, their roles on the project, and rules for the owner of the state's bucket.  Pure.

A document is one role of one group:
    {"role", "on": {"project": ID}, "reason", "limits": [what the cloud cannot say]}
or, for the state, `{"bucket", "paths", "roles", "reason", "limits"}`: a bucket's policy is one list, which its owner writes.
Nebius documents no role for compute alone, and `editor` also reaches what is stored in the project.  So a project of skyplan's holds compute and nothing
else, and buckets lie in another: what keeps orchestrator and data apart is the project and not a permission (SKY-IAM-108).  No condition, no name, no label
and no machine type bounds a role.  Never run against live Nebius.
"""

from __future__ import annotations

from typing import Any

from planner.iam.foundation.rights import actions, grants_of, reason
from planner.iam.operations.nebius import ADMIN, AUDITOR, EDITOR, OPERATIONS, VIEWER
from planner.model.control import ControlScope
from planner.model.control_names import control_name, state_prefixes
from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError
from planner.model.grants import CONTROL_IDENTITIES, Grant, Identity, Permission
from planner.model.stack import ControlIdentity, PolicyDocument

#: each takes in those before it
_RANKED = (AUDITOR, VIEWER, EDITOR)
#: what is not given here though an operation takes it, and why
WITHHELD = {
    ADMIN: (
        "groups, permits and keys take `admin`, and of the tenant, which is every right in it: whoever has that makes a job's group and its permits from the "
        "access stack's words, or leaves out `tenant`, and the job's nodes then have no rights; and whoever runs the broker there gives it `admin` himself, or no keys are made"
    )
}
_ISOLATION = (
    "no role is for compute alone: `editor` also reaches data in the project, so no bucket may be in it (SKY-IAM-108)"
)
_BOUNDS = "no condition, name, label or machine type bounds a role: it holds for all that is in the project"

Document = dict[str, Any]


def names(scope: ControlScope) -> dict[Identity, str]:
    """Names of the groups, and of the service accounts in them."""
    return {one: control_name(scope.project, one.value) for one in CONTROL_IDENTITIES}


def identities(scope: ControlScope) -> tuple[ControlIdentity, ...]:
    """The four, with their roles; who may become them is the caller's to add.  Raises InputError without a tenant: groups live under it."""
    if not scope.tenant:
        raise InputError(
            [
                Diagnostic(
                    code="SKY-SPEC-105",
                    summary=f"target {scope.target}: on Nebius rights go to groups, groups live under the tenant, and none is named",
                    hint="write `tenant` of the target",
                )
            ]
        )
    return tuple(
        ControlIdentity(identity=identity, name=name, policies=_policies(scope, identity))
        for identity, name in names(scope).items()
    )


def _policies(scope: ControlScope, identity: Identity) -> tuple[PolicyDocument, ...]:
    grants = grants_of(scope, identity)
    held = {grant.permission for grant in grants} - {Permission.KEEP_STATE}
    found = [role for role in _RANKED if role in actions(OPERATIONS, identity, held)]
    made = [_project(scope, identity, found[-1], grants, held)] if found else []
    return (*made, *_state(scope, identity, grants))


def _project(
    scope: ControlScope, identity: Identity, role: str, grants: tuple[Grant, ...], held: set[Permission]
) -> PolicyDocument:
    """The largest of the roles that the operations take: the others are in it."""
    serving = {one for one in held if not set(_RANKED).isdisjoint(actions(OPERATIONS, identity, (one,)))}
    return PolicyDocument(
        name=f"{identity.value}-{role}",
        document={
            "role": role,
            "on": {"project": scope.account},
            "reason": reason(grants, serving),
            "limits": [_ISOLATION, _BOUNDS] if role == EDITOR else [_BOUNDS],
        },
    )


def _state(scope: ControlScope, identity: Identity, grants: tuple[Grant, ...]) -> tuple[PolicyDocument, ...]:
    if not scope.state or Permission.KEEP_STATE not in {grant.permission for grant in grants}:
        return ()
    document: Document = {
        "bucket": scope.state,
        "paths": [f"{prefix}*" for prefix in state_prefixes(scope.project, identity)],
        "roles": list(actions(OPERATIONS, identity, {Permission.KEEP_STATE})),
        "reason": reason(grants, {Permission.KEEP_STATE}),
        "limits": ["a bucket's policy is one list: its owner adds the rule"],
    }
    return (PolicyDocument(name=f"{identity.value}-state", document=document),)
