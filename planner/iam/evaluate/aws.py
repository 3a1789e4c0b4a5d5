"""Whether AWS policies allow a request: an explicit deny wins, and then it takes an allow of the identity, within its boundary and its session.

    allowed = no statement denies, and
              (an identity policy allows, or a resource policy names the principal) and every boundary allows and, if there are any, a session policy

One request is one action on one resource: an action on several (RunInstances) is judged once for each of them.  Without `resource_policies` only the
identity's own side is judged.  With them, and principal and resource in different accounts by the context, both sides have to allow.

Simpler than AWS, and never wider: what a resource policy gives stays within boundary and session, also where it names the session itself; a resource
policy that names the whole account gives nothing in that account, it only lets identity policies speak.  Not here: organisation policies, the rule that
KMS keys must first let IAM speak, and S3's block of public access.
What cannot be judged (see `operators`) fails closed: an allow does not apply, a deny does.  `${…}` references of Terraform are literal text.
Never held against live AWS.  Held against moto 5.2 and @cloud-copilot/iam-simulate 0.1.173 (2026-11, 30,000 generated cases); that one differs where
    it keeps a `*` at the end of a part of a resource's ARN within that part                      here as the IAM user guide has it
    it takes `x${*}` in StringEquals for other than `x*`, and IPv6 for no match of an IPv4 NotIpAddress
    it lets no operator without a set operator hold for a key of several values (aws:TagKeys), also where there is one
    it lets no NotResource with a wildcard apply to an action whose resource is `*`
    it takes a condition that cannot be judged for one that does not hold, also in a deny          here closed
    it lets what a resource policy gives pass a boundary                                           here closed
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from planner.iam.evaluate.operators import Context, holds, lookup_in
from planner.iam.evaluate.patterns import Form, actions, matches
from planner.iam.evaluate.verdict import Decision, Verdict
from planner.model.policy import AwsPolicy, PolicyKind, Statement

#: the version of the policy language that has variables
_WITH_VARIABLES: Final = "2012-10-17"
_ASSUME: Final = {"Federated": "sts:AssumeRoleWithWebIdentity"}
_ACCOUNT_PART: Final = 4
_KINDS: Final = tuple(PolicyKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One action on one resource.  `context` by condition key, in any case; `aws:PrincipalArn` says who asks a resource policy."""

    action: str
    resource: str
    context: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


class _Found(NamedTuple):
    """What the statements of some policies say to a request, each by its name; `outright` of resource policies: not by naming the account."""

    allow: str = ""
    deny: str = ""
    outright: str = ""
    unjudged: tuple[str, ...] = ()


_NOTHING: Final = _Found()


def judge(
    policies: Sequence[AwsPolicy], request: Request, *, resource_policies: Sequence[AwsPolicy] | None = None
) -> Verdict:
    """The verdict of identity policies, boundaries and session policies, in any order; trust policies among them say nothing to it."""
    context = _folded(request.context)
    by_kind: dict[PolicyKind, list[AwsPolicy]] = {kind: [] for kind in _KINDS}
    for policy in policies:
        by_kind[policy.kind].append(policy)
    resource = [*by_kind[PolicyKind.RESOURCE], *(resource_policies or ())]
    found = {
        PolicyKind.IDENTITY: _search(by_kind[PolicyKind.IDENTITY], request, context),
        PolicyKind.SESSION: _search(by_kind[PolicyKind.SESSION], request, context),
        PolicyKind.RESOURCE: _search(resource, request, context),
    }
    bounds = [_search([policy], request, context) for policy in by_kind[PolicyKind.BOUNDARY]]
    everything = [*found.values(), *bounds]
    denies = next((one.deny for one in everything if one.deny), "")
    if denies:
        return Verdict(Decision.EXPLICIT_DENY, denies)
    sides = resource_policies is not None or bool(resource)
    allow, missing = _granted(found[PolicyKind.IDENTITY], found[PolicyKind.RESOURCE], context if sides else {})
    if allow:
        bounded = [(policy.name, one.allow) for policy, one in zip(by_kind[PolicyKind.BOUNDARY], bounds, strict=True)]
        if by_kind[PolicyKind.SESSION]:
            bounded.append(("session", found[PolicyKind.SESSION].allow))
        missing = next((f"{name} does not allow it" for name, allowed in bounded if not allowed), "")
    if allow and not missing:
        return Verdict(Decision.ALLOW, allow)
    unjudged = sorted({text for one in everything for text in one.unjudged})
    return Verdict(Decision.IMPLICIT_DENY, "; ".join([missing or "nothing allows it", *unjudged]))


def trusts(
    policy: AwsPolicy,
    principal_type: str,
    principal: str,
    context: Mapping[str, tuple[str, ...]],
    *,
    action: str = "",
) -> Verdict:
    """Whether a trust policy lets the principal in: an ARN (`AWS`), a service or an identity provider.

    `action` is sts:AssumeRole, of a provider sts:AssumeRoleWithWebIdentity, unless said.  An account that is trusted as a whole trusts each of its
    principals; whether that one's own policies let it ask is `judge`'s.
    """
    folded = _folded(context)
    asked = action or _ASSUME.get(principal_type, "sts:AssumeRole")
    found = _NOTHING
    for number, statement in enumerate(policy.statements, start=1):
        if not _names(statement, principal_type, principal, _account(principal)):
            continue
        answer = _applies(statement, asked, None, folded, policy.version)
        if answer is not False:
            found = _added(found, _name(policy, number, statement), statement, answer)
    if found.deny:
        return Verdict(Decision.EXPLICIT_DENY, found.deny)
    if found.allow:
        return Verdict(Decision.ALLOW, found.allow)
    return Verdict(Decision.IMPLICIT_DENY, "; ".join([f"{policy.name} does not trust it", *found.unjudged]))


def applies(statement: Statement, request: Request, *, version: str = _WITH_VARIABLES) -> bool:
    """Whether a statement has a say in the request, whatever its effect; one that cannot be judged has if it denies.  Principals are not looked at."""
    answer = _applies(statement, request.action, request.resource, _folded(request.context), version)
    return statement.effect == "Deny" if answer is None else answer


def _granted(identity: _Found, resource: _Found, context: Context) -> tuple[str, str]:
    """Who allows, before any bound; or what is missing."""
    here, there = context.get("aws:principalaccount", ()), context.get("aws:resourceaccount", ())
    if here and there and here != there:
        if not resource.allow:
            return "", "the other account's resource policy does not allow it"
        return identity.allow, "" if identity.allow else "the other account allows it, no policy here does"
    return identity.allow or resource.outright, ""


def _search(policies: Sequence[AwsPolicy], request: Request, context: Context) -> _Found:
    found = _NOTHING
    for policy in policies:
        for number, statement in enumerate(policy.statements, start=1):
            outright = True
            if policy.kind is PolicyKind.RESOURCE:
                principal = context.get("aws:principalarn", ("",))[0]
                account = context.get("aws:principalaccount", (_account(principal),))[0]
                if not _names(statement, "AWS", principal, account):
                    continue
                outright = _names(statement, "AWS", principal, "")
            answer = _applies(statement, request.action, request.resource, context, policy.version)
            if answer is not False:
                found = _added(found, _name(policy, number, statement), statement, answer, outright=outright)
    return found


def _added(found: _Found, name: str, statement: Statement, answer: bool | None, *, outright: bool = True) -> _Found:
    """With what one more statement says that applies, or may (None)."""
    if statement.effect == "Deny":
        text = name if answer else f"{name} (a condition cannot be judged: denied)"
        return found._replace(deny=found.deny or text)
    if answer is None:
        return found._replace(unjudged=(*found.unjudged, f"{name}: a condition cannot be judged, it allows nothing"))
    return found._replace(allow=found.allow or name, outright=found.outright or (name if outright else ""))


def _name(policy: AwsPolicy, number: int, statement: Statement) -> str:
    return f"{policy.name}: {statement.sid or f'statement {number}'}"


def _applies(statement: Statement, action: str, resource: str | None, context: Context, version: str) -> bool | None:
    """None where only a condition that cannot be judged is in the way."""
    variables = version == _WITH_VARIABLES
    if not _acts(statement, action) or (resource is not None and not _on(statement, resource, context, variables)):
        return False
    answer: bool | None = True
    for test in statement.tests:
        held = holds(test, context, variables=variables)
        if held is False:
            return False
        if held is None:
            answer = None
    return answer


def _acts(statement: Statement, action: str) -> bool:
    if statement.not_actions:
        return actions(statement.not_actions).fullmatch(action) is None
    return actions(statement.actions).fullmatch(action) is not None


def _on(statement: Statement, resource: str, context: Context, variables: bool) -> bool:
    lookup = lookup_in(context)
    patterns = statement.not_resources or statement.resources
    found = any(matches(pattern, resource, Form.RESOURCE, lookup, variables=variables) for pattern in patterns)
    return found is not bool(statement.not_resources)


def _names(statement: Statement, kind: str, principal: str, account: str) -> bool:
    """Whether the statement is about the principal.  Naming an account (`account` not "") names all in it; exempting one exempts no deny."""
    if statement.not_principals:
        wide = account if statement.effect == "Allow" else ""
        return not _listed(statement.not_principals, kind, principal, wide)
    return _listed(statement.principals, kind, principal, account)


def _listed(principals: tuple[tuple[str, str], ...], kind: str, principal: str, account: str) -> bool:
    return any(
        name == "*" or (kind == of and name == principal) or (kind == of == "AWS" and _is_account(name, account))
        for of, name in principals
        if name != "*" or of in {"AWS", kind}
    )


def _is_account(name: str, account: str) -> bool:
    return bool(account) and (name == account or (name.startswith("arn:") and name.endswith(f"::{account}:root")))


def _account(arn: str) -> str:
    parts = arn.split(":")
    return parts[_ACCOUNT_PART] if len(parts) > _ACCOUNT_PART else ""


def _folded(context: Mapping[str, tuple[str, ...]]) -> Context:
    return {key.lower(): values for key, values in context.items()}
