"""Calls to IAM, STS, SSM and S3.

IAM tells nobody the path of what does not exist: a call on a missing role is checked against `role/NAME`, which no right on a path covers, so that it
ends in AccessDenied and not in NoSuchEntity, as in a real account.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .asked import Asked, Caller, Context, carried, requested

#: IAM action with tags -> the right that tagging takes beside it
_TAGGING = {
    "CreateRole": "TagRole",
    "CreateInstanceProfile": "TagInstanceProfile",
    "CreatePolicy": "TagPolicy",
    "CreateUser": "TagUser",
    "CreateOpenIDConnectProvider": "TagOpenIDConnectProvider",
}


def iam(caller: Caller, backend: Any, action: str, params: Mapping[str, Any]) -> Iterator[Asked]:
    """`backend`: moto's of IAM."""
    common = {**caller.around(), "aws:RequestedRegion": ("us-east-1",)}
    tags = requested(params.get("Tags") or [])
    keys = {"aws:TagKeys": tuple(params["TagKeys"])} if params.get("TagKeys") else {}
    resource, held = _iam_resource(caller, backend, action, params)
    context = {**common, **held, **tags, **keys, **_iam_keys(action, params, held)}
    kind = resource.rpartition(":")[2].partition("/")[0]
    yield Asked(f"iam:{action}", resource, context, kind)
    if tags and action in _TAGGING:
        yield Asked(f"iam:{_TAGGING[action]}", resource, context, kind)
    if action == "AddRoleToInstanceProfile":
        role, _ = _role(caller, backend, str(params["RoleName"]))
        yield Asked("iam:PassRole", role, {**common, "iam:PassedToService": ("ec2.amazonaws.com",)}, "role")


def _iam_resource(caller: Caller, backend: Any, action: str, params: Mapping[str, Any]) -> tuple[str, Context]:
    def new(kind: str, name: str) -> tuple[str, Context]:
        return caller.arn_of("iam", f"{kind}{params.get('Path') or '/'}{name}", region=False), {}

    match action:
        case "CreateRole":
            return new("role", str(params["RoleName"]))
        case "CreateInstanceProfile":
            return new("instance-profile", str(params["InstanceProfileName"]))
        case "CreatePolicy":
            return new("policy", str(params["PolicyName"]))
        case "CreateUser":
            return new("user", str(params["UserName"]))
        case _:
            return _existing(caller, backend, params)


def _existing(caller: Caller, backend: Any, params: Mapping[str, Any]) -> tuple[str, Context]:
    if name := params.get("InstanceProfileName"):
        found = next((p for p in backend.instance_profiles.values() if p.name == name), None)
        if found is None:
            return caller.arn_of("iam", f"instance-profile/{name}", region=False), {}
        return found.arn, carried("iam", _tags(found.tags))
    if name := params.get("RoleName"):
        return _role(caller, backend, str(name))
    if name := params.get("UserName"):
        return caller.arn_of("iam", f"user/{name}", region=False), {}
    for field in ("PolicyArn", "OpenIDConnectProviderArn"):
        if field in params:
            return str(params[field]), {}
    return "*", {}


def _role(caller: Caller, backend: Any, name: str) -> tuple[str, Context]:
    role = next((r for r in backend.roles.values() if r.name == name), None)
    if role is None:
        return caller.arn_of("iam", f"role/{name}", region=False), {}
    context = carried("iam", _tags(role.tags))
    if role.permissions_boundary_arn:
        context["iam:PermissionsBoundary"] = (role.permissions_boundary_arn,)
    return role.arn, context


def _tags(tags: Any) -> dict[str, str]:
    """moto keeps tags of IAM in two shapes."""
    found = tags.values() if isinstance(tags, dict) else tags or ()
    return {str(t["Key"]): str(t["Value"]) for t in found if isinstance(t, Mapping)}


def _iam_keys(action: str, params: Mapping[str, Any], held: Context) -> Context:
    context: Context = {}
    if params.get("PermissionsBoundary"):
        context["iam:PermissionsBoundary"] = (str(params["PermissionsBoundary"]),)
    if params.get("PolicyArn") and action.startswith(("Attach", "Detach")):
        context["iam:PolicyARN"] = (str(params["PolicyArn"]),)
    return context


def sts(caller: Caller, backend: Any, action: str, params: Mapping[str, Any]) -> Iterator[Asked]:
    """`backend`: moto's of IAM."""
    common = caller.around()
    if action != "AssumeRole":
        yield Asked(f"sts:{action}", "*", common)
        return
    arn = str(params["RoleArn"])
    role = next((r for r in backend.roles.values() if r.arn == arn), None)
    context = {**common, **carried("iam", _tags(role.tags) if role else {})}
    context["sts:RoleSessionName"] = (str(params.get("RoleSessionName")),)
    if params.get("ExternalId"):
        context["sts:ExternalId"] = (str(params["ExternalId"]),)
    tags = requested(params.get("Tags") or [])
    yield Asked("sts:AssumeRole", arn, {**context, **tags}, "role")
    if tags:
        yield Asked("sts:TagSession", arn, {**context, **tags}, "role")


def ssm(caller: Caller, action: str, params: Mapping[str, Any]) -> Iterator[Asked]:
    """Public parameters belong to no account."""
    names = [str(params["Name"])] if params.get("Name") else [str(n) for n in params.get("Names") or ()]
    for name in names:
        own = not name.startswith("/aws/service/")
        resource = caller.arn_of("ssm", f"parameter/{name.lstrip('/')}", account=own)
        yield Asked(f"ssm:{action}", resource, caller.around(), "parameter")
    if not names:
        yield Asked(f"ssm:{action}", "*", caller.around())


def s3(caller: Caller, action: str, bucket: str, key: str, query: Mapping[str, str], *, there: bool) -> Iterator[Asked]:
    """`there`: whether the object exists.  Who may not list is not told that an object is missing."""
    common = caller.around()
    place = f"arn:{caller.partition}:s3:::{bucket}"
    if not bucket:
        yield Asked(f"s3:{action}", "*", common)
        return
    listing = {"s3:prefix": (query["prefix"],)} if "prefix" in query else {}
    if key:
        yield Asked(f"s3:{action}", f"{place}/{key}", common, "object")
    else:
        yield Asked(f"s3:{action}", place, {**common, **listing}, "bucket")
    if key and action in ("GetObject", "GetObjectVersion") and not there:
        # with the key as prefix: HashiCorp's own policy for state in S3 rests on it (S3 backend, "Permissions required")
        yield Asked("s3:ListBucket", place, {**common, "s3:prefix": (key,)}, "bucket")
