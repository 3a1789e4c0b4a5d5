"""On how much of a cloud a role is given, and whether it gives a permission: Google and Azure.  Reads names; judges nothing.

What predefined roles hold says `planner.iam.roles`; a role that is not known there gives nothing here.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from planner.iam.evaluate.cel import CelError, Scope, Value, holds
from planner.iam.roles import role_of
from planner.model.offer import Cloud
from planner.model.policy import RoleAssignment, RoleBinding

_GUARDS = ("resource.name", "resource.matchtag", "resource.hastagkey")
#: a condition that only ends, or only begins one day, guards nothing
_YEARS = (1971, 2026, 2999)
_WIDE = re.compile(r"(?:projects|folders|organizations)/[^/]+")
_SCOPES = (
    ("subscription", re.compile(r"/subscriptions/[^/]+/?", re.IGNORECASE)),
    ("resource group", re.compile(r"/subscriptions/[^/]+/resourceGroups/[^/]+/?", re.IGNORECASE)),
    ("management group", re.compile(r"/providers/Microsoft\.Management/managementGroups/[^/]+/?", re.IGNORECASE)),
    ("tenant", re.compile(r"/?")),
)


def gcp_wide(on: str) -> bool:
    """A whole project, folder or organisation."""
    return _WIDE.fullmatch(on) is not None


def gcp_guarded(binding: RoleBinding) -> bool:
    """Its condition looks at the resource's name or tags, and a stranger's instance does not pass it, today or ever."""
    if not any(word in binding.condition.lower() for word in _GUARDS):
        return False
    names: dict[str, Value] = {
        "resource.name": f"{binding.on}/zones/stranger/instances/stranger",
        "resource.type": "compute.googleapis.com/Instance",
        "resource.service": "compute.googleapis.com",
    }
    times = (datetime(year, 1, 1, tzinfo=UTC) for year in _YEARS)
    return not any(_passes(binding.condition, {**names, "request.time": time}) for time in times)


def _passes(condition: str, names: dict[str, Value]) -> bool:
    try:
        return holds(condition, Scope(names=names))
    except CelError:
        return False  # of tags, say: what it asks is not known here, and it asks for something


def gcp_permits(binding: RoleBinding, permission: str) -> bool:
    """The role gives the permission."""
    known = role_of(Cloud.GCP, binding.role)
    patterns = binding.permissions or (known.actions if known else ())
    return _any(patterns, permission)


def azure_level(scope: str) -> str:
    """`tenant`, `management group`, `subscription`, `resource group`, or `resource` for anything below."""
    return next((name for name, form in _SCOPES if form.fullmatch(scope)), "resource")


def azure_builtin(assignment: RoleAssignment) -> bool:
    """The role is one that Azure defines."""
    parts = (assignment.actions, assignment.not_actions, assignment.data_actions, assignment.not_data_actions)
    return not any(parts)


def permits(assignment: RoleAssignment, action: str, *, data: bool = False) -> bool:
    """The role gives the action, less what it excludes."""
    if not azure_builtin(assignment):
        given = assignment.data_actions if data else assignment.actions
        taken = assignment.not_data_actions if data else assignment.not_actions
        return _any(given, action) and not _any(taken, action)
    known = role_of(Cloud.AZURE, assignment.role)
    if known is None:
        return False
    return (
        _any(known.data_actions, action)
        if data
        else _any(known.actions, action) and not _any(known.not_actions, action)
    )


def _any(patterns: tuple[str, ...], action: str) -> bool:
    return any(_form(pattern).fullmatch(action) for pattern in patterns)


@lru_cache(maxsize=4096)
def _form(pattern: str) -> re.Pattern[str]:
    # Azure's own roles write `userAssignedIdentities/*/assign/action` for `userAssignedIdentities/assign/action`
    text = ".*".join(re.escape(part) for part in pattern.split("*")).replace("/.*/", "/(?:.*/)?")
    return re.compile(text, re.IGNORECASE)
