"""IAM policy documents as the model and back.  Says what is wrong with a document's form; whether its rights are wise it does not judge.

Takes what IAM takes: one value or a list of them everywhere, `Principal: "*"`, booleans and numbers as values of conditions.  An element that IAM
does not know is refused, because a right that is not understood may not be passed over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from planner.model.diagnostic import Location
from planner.model.policy import AwsPolicy, PolicyKind, Statement, Test

#: versions of the policy language; without one, IAM reads a document as the older
VERSIONS: Final = ("2008-10-17", "2012-10-17")
_DOCUMENT: Final = frozenset({"Version", "Id", "Statement"})
_STATEMENT: Final = frozenset(
    {
        "Sid",
        "Effect",
        "Principal",
        "NotPrincipal",
        "Action",
        "NotAction",
        "Resource",
        "NotResource",
        "Condition",
    }
)
#: kinds whose principal is whoever the policy is attached to
_ATTACHED: Final = (PolicyKind.IDENTITY, PolicyKind.BOUNDARY, PolicyKind.SESSION)


def policy_from(document: object, *, kind: PolicyKind, name: str, location: Location | None = None) -> AwsPolicy:
    """The policy of a document: JSON text or what it parses to.  Raises ValueError that says what is wrong, and where."""
    parsed = json.loads(document) if isinstance(document, str) else document
    body = _mapping(parsed, f"policy {name}")
    _only(body, _DOCUMENT, f"policy {name}")
    version = body.get("Version", "")
    if version not in {"", *VERSIONS}:
        raise ValueError(f"policy {name}: Version {version!r} is none of {', '.join(VERSIONS)}")
    if "Statement" not in body:
        raise ValueError(f"policy {name}: no Statement")
    given: object = body["Statement"]
    statements = cast("list[object]", given) if isinstance(given, list) else [given]
    made = tuple(_statement(one, f"policy {name}, statement {n}", kind) for n, one in enumerate(statements, start=1))
    return AwsPolicy(kind=kind, name=name, statements=made, version=version, location=location)


def document_of(policy: AwsPolicy) -> dict[str, Any]:
    """The document of a policy: JSON-ready, lists everywhere but for the public principal.  `policy_from` of it is the same policy."""
    head = {"Version": policy.version} if policy.version else {}
    return {**head, "Statement": [_document_of(statement) for statement in policy.statements]}


def _document_of(statement: Statement) -> dict[str, Any]:
    out: dict[str, Any] = {"Sid": statement.sid} if statement.sid else {}
    out["Effect"] = statement.effect
    for element, principals in (("Principal", statement.principals), ("NotPrincipal", statement.not_principals)):
        if principals:
            out[element] = _principals_of(principals)
    for element, values in (
        ("Action", statement.actions),
        ("NotAction", statement.not_actions),
        ("Resource", statement.resources),
        ("NotResource", statement.not_resources),
    ):
        if values:
            out[element] = list(values)
    conditions: dict[str, dict[str, list[str]]] = {}
    for test in statement.tests:
        conditions.setdefault(test.operator, {})[test.key] = list(test.values)
    return {**out, "Condition": conditions} if conditions else out


def _principals_of(principals: tuple[tuple[str, str], ...]) -> dict[str, list[str]] | str:
    if principals == (("AWS", "*"),):
        return "*"
    out: dict[str, list[str]] = {}
    for kind, name in principals:
        out.setdefault(kind, []).append(name)
    return out


def _statement(value: object, where: str, kind: PolicyKind) -> Statement:
    body = _mapping(value, where)
    _only(body, _STATEMENT, where)
    if body.get("Effect") not in {"Allow", "Deny"}:
        raise ValueError(f"{where}: Effect is {body.get('Effect')!r}, not Allow or Deny")
    _one_of(body, "Action", "NotAction", where, needed=True)
    _one_of(body, "Resource", "NotResource", where, needed=kind in _ATTACHED)
    _one_of(body, "Principal", "NotPrincipal", where, needed=kind not in _ATTACHED)
    if kind in _ATTACHED and ("Principal" in body or "NotPrincipal" in body):
        raise ValueError(f"{where}: a principal in a policy that is attached to one")
    if kind is PolicyKind.TRUST and ("Resource" in body or "NotResource" in body):
        raise ValueError(f"{where}: a resource in a trust policy, which is about its own role")
    return Statement(
        effect=body["Effect"],
        sid=_text(body.get("Sid", ""), f"{where}, Sid"),
        actions=_texts(body, "Action", where),
        not_actions=_texts(body, "NotAction", where),
        resources=_texts(body, "Resource", where),
        not_resources=_texts(body, "NotResource", where),
        principals=_principals(body, "Principal", where),
        not_principals=_principals(body, "NotPrincipal", where),
        tests=_tests(body, where),
    )


def _principals(body: Mapping[str, Any], element: str, where: str) -> tuple[tuple[str, str], ...]:
    if element not in body:
        return ()
    if body[element] == "*":
        return (("AWS", "*"),)
    by_kind = _mapping(body[element], f"{where}, {element}")
    return tuple((kind, name) for kind in by_kind for name in _texts(by_kind, kind, f"{where}, {element}"))


def _tests(body: Mapping[str, Any], where: str) -> tuple[Test, ...]:
    operators = _mapping(body.get("Condition", {}), f"{where}, Condition")
    out: list[Test] = []
    for operator in operators:
        keys = _mapping(operators[operator], f"{where}, Condition {operator}")
        out += [Test(operator=operator, key=key, values=_values(keys[key], f"{where}, {key}")) for key in keys]
    return tuple(out)


def _values(value: object, where: str) -> tuple[str, ...]:
    """Values of a condition; IAM takes `true` and `1` for `"true"` and `"1"`."""
    many = cast("list[object]", value) if isinstance(value, list) else [value]
    return tuple(_scalar(one, where) for one in many)


def _scalar(value: object, where: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return _text(value, where)


def _texts(body: Mapping[str, Any], element: str, where: str) -> tuple[str, ...]:
    if element not in body:
        return ()
    value: object = body[element]
    many = cast("list[object]", value) if isinstance(value, list) else [value]
    return tuple(_text(one, f"{where}, {element}") for one in many)


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{where}: {value!r} is no text")  # noqa: TRY004 - a document's form, whatever its types
    return value


def _mapping(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{where}: {value!r} is no object")  # noqa: TRY004 - as above
    return cast("dict[str, Any]", value)


def _only(body: Iterable[str], known: frozenset[str], where: str) -> None:
    unknown = sorted(set(body) - known)
    if unknown:
        raise ValueError(f"{where}: {', '.join(unknown)} is no element of it")


def _one_of(body: Mapping[str, Any], element: str, opposite: str, where: str, *, needed: bool) -> None:
    if element in body and opposite in body:
        raise ValueError(f"{where}: both {element} and {opposite}")
    if needed and element not in body and opposite not in body:
        raise ValueError(f"{where}: neither {element} nor {opposite}")
