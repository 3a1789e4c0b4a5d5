"""Whether one right takes in another, in each cloud's own shape.  Sound: a yes means that whatever `want` allows, `have` allows; a no may be for want
of a proof.  Judges two rights, no request (that is `planner.iam.evaluate`) and no subject (that is `widening`).
"""

from __future__ import annotations

import ipaddress
import operator
from collections.abc import Callable, Iterable
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Final

from planner.iam.audit import clauses
from planner.iam.audit.patterns import (
    ARN_PARTS,
    actions_meet,
    arns_meet,
    includes,
    includes_action,
    includes_arn,
    tokens,
)
from planner.model.policy import Permit, Provider, RoleAssignment, RoleBinding, Statement, Test

PermissionsOf = Callable[[str], frozenset[str]]

_SET: Final = ("forallvalues", "foranyvalue")
#: hold where the key is missing, with `IfExists` or without
_NEGATIVE: Final = frozenset(
    {
        "stringnotequals",
        "stringnotequalsignorecase",
        "stringnotlike",
        "numericnotequals",
        "datenotequals",
        "arnnotequals",
        "arnnotlike",
        "notipaddress",
    }
)
_SAME: Final = {"arnequals": "arnlike", "arnnotequals": "arnnotlike"}
_NOTHING: Final[frozenset[str]] = frozenset()
#: each basic role of Google's holds the ones after it
_BASIC: Final = ("roles/owner", "roles/editor", "roles/viewer")
#: each general role of Nebius holds the ones after it (docs.nebius.com/iam/authorization/roles, read 2026-10)
_GENERAL: Final = ("admin", "editor", "viewer", "auditor")


def covers(have: Statement, want: Statement) -> bool:
    """All that `want` allows, `have` allows.  A Deny allows nothing."""
    if want.effect != "Allow":
        return True
    return have.effect == "Allow" and spans(have, want)


def spans(have: Statement, want: Statement) -> bool:
    """Every request that `want` speaks of, `have` speaks of, whatever they say of it."""
    return (
        _actions(have, want)
        and _resources(have, want)
        and _principals(have, want)
        and conditions(have.tests, want.tests)
    )


def overlaps(one: Statement, other: Statement) -> bool:
    """Some request may be of both, by action and resource; errs towards yes."""
    return _meet_actions(one, other) and _meet_resources(one, other)


def same_ground(have: Statement, want: Statement) -> tuple[bool, bool, bool, bool]:
    """Where `have` takes `want` in: action, resource, principal, condition."""
    return (
        _actions(have, want),
        _resources(have, want),
        _principals(have, want),
        conditions(have.tests, want.tests),
    )


def _actions(have: Statement, want: Statement) -> bool:
    if want.not_actions:
        if have.not_actions:
            return all(any(includes_action(w, h) for w in want.not_actions) for h in have.not_actions)
        return "*" in have.actions
    if have.not_actions:
        return all(not actions_meet(w, h) for w in want.actions for h in have.not_actions)
    return all(any(includes_action(h, w) for h in have.actions) for w in want.actions)


def _resources(have: Statement, want: Statement) -> bool:
    if not (have.resources or have.not_resources):  # a trust policy: the role itself
        return not (want.resources or want.not_resources)
    if want.not_resources:
        if have.not_resources:
            return all(any(includes_arn(w, h) for w in want.not_resources) for h in have.not_resources)
        return "*" in have.resources
    if not want.resources:
        return False
    if have.not_resources:
        return all(not arns_meet(w, h) for w in want.resources for h in have.not_resources)
    return all(any(includes_arn(h, w) for h in have.resources) for w in want.resources)


def _principals(have: Statement, want: Statement) -> bool:
    if have.not_principals or want.not_principals:
        return set(have.not_principals) == set(want.not_principals) and set(have.principals) == set(want.principals)
    if not have.principals or not want.principals:
        return not have.principals and not want.principals
    trust = not (have.resources or have.not_resources)
    return all(any(_principal(h, w, trust=trust) for h in have.principals) for w in want.principals)


def _principal(have: tuple[str, str], want: tuple[str, str], *, trust: bool) -> bool:
    """`trust`: of who may assume a role, where an account that is named stands for all in it; in a bucket's policy it gives them nothing yet."""
    if have in {("*", "*"), ("AWS", "*")}:
        return True
    if have[0] != want[0]:
        return False
    return have[1] in {"*", want[1]} or (trust and have[0] == "AWS" and _names_account(have[1], want[1]))


def _names_account(name: str, principal: str) -> bool:
    parts = principal.split(":")
    account = parts[4] if len(parts) == ARN_PARTS else ""
    return account.isdigit() and (name == account or (name.startswith("arn:") and name.endswith(f"::{account}:root")))


def _meet_actions(one: Statement, other: Statement) -> bool:
    if one.not_actions and other.not_actions:
        return True
    if one.not_actions:
        return any(not any(includes_action(n, a) for n in one.not_actions) for a in other.actions)
    if other.not_actions:
        return _meet_actions(other, one)
    return any(actions_meet(a, b) for a in one.actions for b in other.actions)


def _meet_resources(one: Statement, other: Statement) -> bool:
    if not (one.resources or one.not_resources) or not (other.resources or other.not_resources):
        return True
    if one.not_resources and other.not_resources:
        return True
    if one.not_resources:
        return any(not any(includes_arn(n, r) for n in one.not_resources) for r in other.resources)
    if other.not_resources:
        return _meet_resources(other, one)
    return any(arns_meet(a, b) for a in one.resources for b in other.resources)


def conditions(have: Iterable[Test], want: Iterable[Test]) -> bool:
    """Wherever all of `want` hold, all of `have` hold."""
    asked = tuple(want)
    return all(any(implies(w, h) for w in asked) for h in have)


@lru_cache(maxsize=16384)
def parse(name: str) -> tuple[str, str, bool]:
    """(`forallvalues` · `foranyvalue` · "", the operator itself, holds where the key is missing by `IfExists`), all in small letters."""
    text = name.lower()
    left, mark, right = text.partition(":")
    group, base = (left, right) if mark and left in _SET else ("", text)
    exists = base.endswith("ifexists") and base != "ifexists"
    base = base.removesuffix("ifexists") if exists else base
    return group, _SAME.get(base, base), exists


@lru_cache(maxsize=65536)
def implies(want: Test, have: Test) -> bool:
    """Wherever `want` holds, `have` holds: one test from one."""
    if want.key.lower() != have.key.lower():
        return False
    if (want.operator.lower(), set(want.values)) == (have.operator.lower(), set(have.values)):
        return True
    (w_group, w_base, w_exists), (h_group, h_base, h_exists) = parse(want.operator), parse(have.operator)
    if "null" in {w_base, h_base}:
        present = not w_group and not w_exists and w_base not in _NEGATIVE
        return h_base == "null" and (_folded(want) == _folded(have) if w_base == "null" else _present(have) and present)
    if w_group != h_group or (w_exists and not h_exists and not (w_base in _NEGATIVE and not w_group)):
        return False
    return _values(w_base, want.values, h_base, have.values)


def _folded(test: Test) -> set[str]:
    return {value.lower() for value in test.values}


def _present(test: Test) -> bool:
    return _folded(test) == {"false"}


def _values(want: str, wants: tuple[str, ...], have: str, haves: tuple[str, ...]) -> bool:
    if want in _NEGATIVE or have in _NEGATIVE:
        # the other way round: what `have` shuts out, `want` shuts out too
        positive = want.replace("not", "", 1), have.replace("not", "", 1)
        return want in _NEGATIVE and have in _NEGATIVE and _each(positive[1], haves, positive[0], wants)
    return _each(want, wants, have, haves)


def _each(want: str, wants: tuple[str, ...], have: str, haves: tuple[str, ...]) -> bool:
    """Every value that `want` takes is one that `have` takes."""
    return all(any(_value(want, w, have, h) for h in haves) for w in wants)


def _value(want: str, w: str, have: str, h: str) -> bool:
    match want, have:
        case ("stringequals" | "stringlike", "stringequals" | "stringlike"):
            out = includes(tokens(h, wild=have == "stringlike"), tokens(w, wild=want == "stringlike"))
        case ("stringequals" | "stringequalsignorecase", "stringequalsignorecase"):
            out = tokens(h, wild=False, fold=True) == tokens(w, wild=False, fold=True)
        case ("arnlike", "arnlike"):
            out = includes_arn(h, w)
        case ("bool", "bool"):
            out = h.lower() == w.lower()
        case ("ipaddress", "ipaddress"):
            out = _within(w, h)
        case _ if want.startswith("numeric") and have.startswith("numeric"):
            out = _number(want.removeprefix("numeric"), w, have.removeprefix("numeric"), h)
        case _:
            out = want == have and w == h
    return out


def _within(inner: str, outer: str) -> bool:
    with suppress(ValueError):
        one, other = ipaddress.ip_network(inner, strict=False), ipaddress.ip_network(outer, strict=False)
        if isinstance(one, ipaddress.IPv4Network) and isinstance(other, ipaddress.IPv4Network):
            return one.subnet_of(other)
        if isinstance(one, ipaddress.IPv6Network) and isinstance(other, ipaddress.IPv6Network):
            return one.subnet_of(other)
    return inner == outer


#: from which comparison each of the others follows, of two numbers want, have
_ORDER: Final[dict[tuple[str, str], Callable[[Decimal, Decimal], bool]]] = {
    ("equals", "equals"): operator.eq,
    ("equals", "lessthan"): operator.lt,
    ("equals", "lessthanequals"): operator.le,
    ("equals", "greaterthan"): operator.gt,
    ("equals", "greaterthanequals"): operator.ge,
    ("lessthan", "lessthan"): operator.le,
    ("lessthan", "lessthanequals"): operator.le,
    ("lessthanequals", "lessthan"): operator.lt,
    ("lessthanequals", "lessthanequals"): operator.le,
    ("greaterthan", "greaterthan"): operator.ge,
    ("greaterthan", "greaterthanequals"): operator.ge,
    ("greaterthanequals", "greaterthan"): operator.gt,
    ("greaterthanequals", "greaterthanequals"): operator.ge,
}


def _number(want: str, w: str, have: str, h: str) -> bool:
    """`NumericLessThan 5` from `NumericLessThanEquals 4`, and so on."""
    try:
        left, right = Decimal(w), Decimal(h)
    except InvalidOperation:
        return want == have and w == h
    rule = _ORDER.get((want, have))
    return rule is not None and left.is_finite() and right.is_finite() and rule(left, right)


# --- Google ---


def _no_permissions(role: str) -> frozenset[str]:
    del role
    return _NOTHING


def covers_binding(have: RoleBinding, want: RoleBinding, known: PermissionsOf = _no_permissions) -> bool:
    """All that `want` gives, `have` gives the same member.  `known` tells what a predefined role holds, nothing where it does not know."""
    return (
        have.member in {want.member, "allUsers"}
        and holds(have, want, known)
        and within(want.on, have.on)
        and clauses.follows(clauses.CEL, want.condition, have.condition)
    )


def holds(have: RoleBinding, want: RoleBinding, known: PermissionsOf = _no_permissions) -> bool:
    """The permissions of `want`'s role are among those of `have`'s."""
    if have.role == want.role and have.permissions == want.permissions:
        return True
    if have.role in _BASIC and want.role in _BASIC:
        return _BASIC.index(have.role) <= _BASIC.index(want.role)
    left = have.permissions or known(have.role)
    # of the basic roles no list is whole, so that none of them is covered by one
    right = want.permissions or (_NOTHING if want.role in _BASIC else known(want.role))
    return bool(right) and all(any(includes_action(h, w) for h in left) for w in right)


def within(inner: str, outer: str) -> bool:
    """A resource of Google's is the other or lies in it.  Which project a bucket is in, its name does not tell."""
    return inner == outer or (outer != "projects/_" and inner.startswith(f"{outer.rstrip('/')}/"))


# --- Azure ---


def covers_assignment(have: RoleAssignment, want: RoleAssignment) -> bool:
    """All that `want` gives, `have` gives."""
    return (
        holds_actions(have, want)
        and in_scope(want.scope, have.scope)
        and clauses.follows(clauses.ABAC, want.condition, have.condition)
    )


def holds_actions(have: RoleAssignment, want: RoleAssignment) -> bool:
    """The actions of `want`'s role are among those of `have`'s; of built-in roles, only each other's."""
    lists = [(a.actions, a.not_actions, a.data_actions, a.not_data_actions) for a in (have, want)]
    if not any(lists[0]) or not any(lists[1]):
        return have.role.lower() == want.role.lower() and lists[0] == lists[1]
    return _remain(have.actions, have.not_actions, want.actions, want.not_actions) and _remain(
        have.data_actions, have.not_data_actions, want.data_actions, want.not_data_actions
    )


def _remain(have: tuple[str, ...], have_not: tuple[str, ...], want: tuple[str, ...], want_not: tuple[str, ...]) -> bool:
    for w in want:
        if any(includes_action(n, w) for n in want_not):
            continue  # nothing of it is left
        if not any(includes_action(h, w) for h in have):
            return False
        cut = [n for n in have_not if actions_meet(n, w)]
        if not all(any(includes_action(n, c) for n in want_not) for c in cut):
            return False
    return True


def in_scope(inner: str, outer: str) -> bool:
    """An Azure scope is the other or lies below it; in any case."""
    left, right = inner.lower().rstrip("/"), outer.lower().rstrip("/")
    return left == right or left.startswith(f"{right}/")


# --- Nebius ---


def covers_permit(have: Permit, want: Permit) -> bool:
    """All that `want` gives, `have` gives.  What lies in a tenant or project, ids do not tell: the same resource only."""
    return (
        _role(have.role, want.role)
        and have.on == want.on
        and (have.anonymous or not want.anonymous)
        and _paths(have.paths, want.paths)
    )


def _role(have: str, want: str) -> bool:
    if have in _GENERAL and want in _GENERAL:
        return _GENERAL.index(have) <= _GENERAL.index(want)
    return have == want


def _paths(have: tuple[str, ...], want: tuple[str, ...]) -> bool:
    if not have or "*" in have:
        return True
    return bool(want) and all(any(includes(tokens(h), tokens(w)) for h in have) for w in want)


# --- federation ---


def covers_provider(have: Provider, want: Provider) -> bool:
    """Every token that `want` believes, `have` believes."""
    return (
        have.issuer == want.issuer
        and (not have.audiences or (bool(want.audiences) and set(want.audiences) <= set(have.audiences)))
        and clauses.follows(clauses.CEL, want.condition, have.condition)
    )
