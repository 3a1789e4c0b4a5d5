"""Whether bindings of Google's IAM allow a permission on a resource: one binding is enough, and a condition has to be true.

A binding reaches what lies under the resource it is on; a managed folder reaches the objects under its name.  Names of buckets do not say their project:
`ancestors` names what the resource is in (`projects/P`, `folders/1`).  A condition that is not understood lets nothing through, and neither does a
predefined role that is not known (`planner.iam.roles`).  Deny policies and
principal access boundaries are not here.  Never held against live Google Cloud.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import lru_cache

from planner.iam.evaluate.cel import CelError, Scope, Value, holds
from planner.iam.evaluate.patterns import glob
from planner.iam.evaluate.verdict import Decision, Verdict
from planner.iam.roles import role_of
from planner.model.offer import Cloud
from planner.model.policy import RoleBinding


def judge(
    bindings: Sequence[RoleBinding],
    permission: str,
    resource: str,
    *,
    resource_type: str = "",
    attributes: Mapping[str, Value] | None = None,
    ancestors: Collection[str] = (),
    now: datetime | None = None,
) -> Verdict:
    """The verdict for one member's bindings.

    resource       `projects/P/zones/Z/instances/N`, `projects/_/buckets/B/objects/O` …, with or without `//service/` before it
    resource_type  as conditions name it: `compute.googleapis.com/Instance`
    attributes     of `api.getAttribute`: {"storage.googleapis.com/objectListPrefix": "llm-a/"}
    now            `request.time`; without it a condition on time lets nothing through
    """
    name = plain(resource)
    names: dict[str, Value] = {
        "resource.name": name,
        "resource.type": resource_type,
        "resource.service": resource_type.partition("/")[0],
    }
    if now is not None:
        names["request.time"] = now
    scope = Scope(names=names, attributes=attributes or {})
    missing: list[str] = []
    for binding in bindings:
        if not reaches(binding.on, name, ancestors):
            continue
        title = f"{binding.role} on {binding.on}"
        predefined = None if binding.permissions else role_of(Cloud.GCP, binding.role)
        if not binding.permissions and predefined is None:
            missing.append(f"{title}: what the role holds is not known")
        if not includes(predefined.actions if predefined else binding.permissions, permission):
            continue
        try:
            if not binding.condition or holds(binding.condition, scope):
                return Verdict(Decision.ALLOW, title)
        except CelError as error:
            missing.append(f"{title}: the condition cannot be judged ({error})")
    return Verdict(Decision.IMPLICIT_DENY, "; ".join(["no binding allows it", *missing]))


def plain(resource: str) -> str:
    """The name as conditions see it."""
    return re.sub(r"^//[^/]+/", "", resource)


def reaches(on: str, resource: str, ancestors: Collection[str] = ()) -> bool:
    """Whether a binding on `on` is one on the resource too."""
    here = plain(on)
    if here in ancestors or here == resource:
        return True
    bucket, folder, prefix = here.partition("/managedFolders/")
    if folder:
        prefix = prefix.rstrip("/") + "/"
        return resource.startswith((f"{bucket}/objects/{prefix}", f"{bucket}/managedFolders/{prefix}"))
    return resource.startswith(here.rstrip("/") + "/")


def includes(permissions: tuple[str, ...], permission: str) -> bool:
    """Whether the permission is one of those, which may be patterns."""
    return _any_of(permissions).fullmatch(permission) is not None


@lru_cache(maxsize=1024)
def _any_of(permissions: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(glob(one) for one in permissions) or r"(?!)")
