"""Rules 4xx: who may become an identity, and whose tokens are believed.  What the identity may then do is other rules' matter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from planner.iam.audit.find import Held, of_right, of_statement, of_subject, statements, subjects
from planner.iam.audit.grown import blocked, listed
from planner.iam.audit.guards import bound, by, demands, own_accounts, wild
from planner.iam.audit.lines import guarded, written
from planner.iam.audit.patterns import ARN_PARTS
from planner.iam.audit.registry import Rule
from planner.iam.evaluate.cel import CelError, Scope, Value, holds
from planner.model.finding import Finding, Level
from planner.model.offer import Cloud
from planner.model.policy import Audited, PolicyKind, Provider, RoleBinding, Statement, Subject, Test

#: who it is, wherever from; a tag is only worth what the account is that gives it
_WHO = ("aws:principalarn", "aws:sourcearn", "aws:userid")
_TAGGED = by("aws:PrincipalTag/")
_WHOSE = by("aws:PrincipalAccount", "aws:PrincipalOrgID", "aws:PrincipalOrgPaths")
_SECOND_KEY = by(
    "sts:ExternalId",
    "aws:SourceAccount",
    "aws:SourceArn",
    "aws:SourceOrgID",
    "aws:SourceOrgPaths",
    "aws:PrincipalOrgID",
    "aws:PrincipalOrgPaths",
    "aws:PrincipalTag/",
)
#: services that take a role only for a resource of the account that the role is in, so that no other's can be slipped in
_OWN_MACHINES = (
    "ec2",
    "ecs-tasks",
    "lambda",
    "pods.eks",
    "eks",
    "spotfleet",
    "autoscaling",
)
_BECOMES = ("roles/iam.workloadIdentityUser", "roles/iam.serviceAccountTokenCreator", "roles/iam.serviceAccountUser")
#: of a subject, up to its first wildcard: what kind of thing it is, and whose, to the end of that name
_OWNED = re.compile(r"(?:system:serviceaccount:.*[A-Za-z0-9]|(?!system:serviceaccount:)[^:/]+[:/][^:/]+[:/])")
_ID = re.compile(r"A[A-Z]{3}[A-Z0-9]{12,}")
_COGNITO = "cognito-identity"
_DIGITS = 12
_REFS = ("refs/heads/main", "refs/heads/stranger")


def anybody(audited: Audited) -> Iterator[Finding]:
    """401."""
    for subject in subjects(audited, Cloud.AWS):
        for held in _trusting(subject):
            wide = [name for kind, name in held[1].principals if kind in {"AWS", "*"} and _everybody(name)]
            if held[1].not_principals or (wide and not _narrowed(subject, held[1], wide)):
                who = f"everybody but {held[1].not_principals[0][1]}" if held[1].not_principals else listed(wide)
                named = replace(held[1], principals=(("AWS", "arn:aws:iam::ACCOUNT:role/NAME"),), not_principals=())
                yield of_statement(
                    subject,
                    held,
                    f"{'anybody' if '*' in wide else 'whoever may act in ' + who} may become this identity",
                    action="sts:AssumeRole",
                    resource=who,
                    fix=f"name the principals:\n{written(named)}",
                )
    for subject in subjects(audited, Cloud.GCP):
        for binding in subject.bindings:
            if binding.member.startswith("principalSet://") and binding.member.endswith("/*") and _becomes(binding):
                yield _whole_pool(subject, binding)


def _trusting(subject: Subject) -> Iterator[Held]:
    denies = [s for policy in subject.of_kind(PolicyKind.TRUST) for s in policy.statements if s.effect == "Deny"]
    return (
        held
        for held in statements(subject, PolicyKind.TRUST)
        if held[1].effect == "Allow" and not blocked(held[1], denies)
    )


def _everybody(name: str) -> bool:
    return name == "*" or name.endswith(":root") or (len(name) == _DIGITS and name.isdigit())


def _narrowed(subject: Subject, statement: Statement, wide: list[str]) -> bool:
    """Its conditions name who, or, of one foreign account, a second key that only the one meant knows."""
    if any(_says_who(test) for test in statement.tests):
        return True
    if bound(statement, _TAGGED) and ("*" not in wide or bound(statement, _WHOSE)):
        return True
    own = own_accounts(subject)
    foreign = "*" not in wide and all(_account(name) not in own for name in wide)
    return foreign and bound(statement, by("sts:ExternalId"))


def _says_who(test: Test) -> bool:
    """It names somebody: an ARN of a known account, or the id of a role."""
    if test.key.lower() not in _WHO or not demands(test):
        return False
    exact = "like" not in test.operator.lower() and "arn" not in test.operator.lower()
    return all(exact or _tied(value) for value in test.values)


def _tied(value: str) -> bool:
    """Not a pattern that anybody's ARN or id fits."""
    parts = value.split(":", ARN_PARTS - 1)
    if parts[0] != "arn" or len(parts) < ARN_PARTS:
        return not wild(value) or _ID.match(value) is not None or value.startswith("${")
    # of a bucket, the name alone says whose it is
    return not wild(parts[4]) and bool(parts[4] or not wild(parts[5].partition("/")[0]))


def _account(name: str) -> str:
    parts = name.split(":")
    return parts[4] if len(parts) == ARN_PARTS else name if name.isdigit() and len(name) == _DIGITS else ""


def _becomes(binding: RoleBinding) -> bool:
    return binding.role in _BECOMES or any(one.startswith("iam.serviceAccounts.get") for one in binding.permissions)


def _whole_pool(subject: Subject, binding: RoleBinding) -> Finding:
    pool = binding.member.removeprefix("principalSet:").removesuffix("/*")
    named = replace(binding, member=f"principalSet:{pool}/attribute.repository/OWNER/REPOSITORY")
    return of_right(
        subject,
        binding,
        f"every identity of the pool {pool.rpartition('/')[2]} may become {binding.on}",
        action=binding.role,
        fix=f"name whose:\n{written(named)}",
    )


def web_identity(audited: Audited) -> Iterator[Finding]:
    """402."""
    for subject in subjects(audited, Cloud.AWS):
        for held in _trusting(subject):
            issuers = [
                name for kind, name in held[1].principals if kind == "Federated" and ":saml-provider/" not in name
            ]
            # a pool of Cognito's says whose it is in the audience; its subjects are made up
            asked = ("aud",) if all(_COGNITO in name for name in issuers) else ("aud", "sub")
            missing = [claim for claim in asked if not _claims(held[1], claim, issuers)] if issuers else []
            if missing:
                key = issuers[0].rpartition("oidc-provider/")[2]
                values = {"aud": "sts.amazonaws.com", "sub": "repo:OWNER/REPOSITORY:ref:refs/heads/main"}
                tests = [Test(operator="StringEquals", key=f"{key}:{one}", values=(values[one],)) for one in missing]
                yield of_statement(
                    subject,
                    held,
                    f"tokens of {listed(issuers)} are believed without {' and '.join(missing)}",
                    action="sts:AssumeRoleWithWebIdentity",
                    resource=", ".join(issuers),
                    fix=f"write instead:\n{written(guarded(held[1], *tests))}",
                )
    for provider in audited.providers:
        if provider.cloud in {Cloud.AZURE, Cloud.NEBIUS}:
            missing = [] if provider.condition else ["subject"]
            # Nebius's federated credentials have no audience of their own
            missing += ["audience"] if provider.cloud is Cloud.AZURE and not provider.audiences else []
            if missing:
                message = f"tokens of {provider.issuer} are believed without {' and '.join(missing)}"
                yield _of_provider(provider, message, "issuer, subject and audience: each one, exact")


def _claims(statement: Statement, claim: str, issuers: list[str]) -> bool:
    """The claim of one of these issuers is asked for, and with a value that says something.  Google calls its audience `aud` or `oaud`."""
    ends = (":aud", ":oaud") if claim == "aud" else (f":{claim}",)
    hosts = [name.rpartition("oidc-provider/")[2].lower() for name in issuers]
    known = not any("${" in host or host.startswith("arn:") for host in hosts)
    return any(
        test.key.lower().endswith(ends)
        and (not known or "${" in test.key or test.key.lower().rpartition(":")[0] in hosts)
        and bound(replace(statement, tests=(test,)), lambda _: True)
        and (claim == "aud" or "like" not in test.operator.lower() or all(_owned(value) for value in test.values))
        for test in statement.tests
    )


def _owned(subject: str) -> bool:
    """Whatever fits it is one owner's: `repo:acme/*`, and not `repo:acme*` or `*:ref:refs/heads/main`."""
    plain = re.sub(r"\$\{[^}]*\}", "x", subject)
    return not wild(plain) or _OWNED.match(re.split(r"[*?]", plain, maxsplit=1)[0]) is not None


def no_condition(audited: Audited) -> Iterator[Finding]:
    """403."""
    for provider in audited.providers:
        if provider.cloud is Cloud.GCP and (not provider.condition.strip() or _strangers_pass(provider)):
            message = f"every token of {provider.issuer} is believed: the provider has no condition"
            if provider.condition.strip():
                message = f"tokens of strangers pass the condition on {provider.issuer}: {provider.condition}"
            fix = "attribute_condition = \"assertion.repository_owner_id == 'OWNER_ID' && assertion.repository == 'OWNER/REPOSITORY'\""
            yield _of_provider(provider, message, fix)


def _strangers_pass(provider: Provider) -> bool:
    """A token of somebody else's repository, of whatever branch or event, gets through."""
    return any(_believes(provider, ref, event) for ref in _REFS for event in ("push", "pull_request"))


def _believes(provider: Provider, ref: str, event: str) -> bool:
    claims: dict[str, Value] = {
        "sub": f"repo:stranger/stranger:ref:{ref}",
        "repository": "stranger/stranger",
        "repository_id": "999999999",
        "repository_owner": "stranger",
        "repository_owner_id": "999999999",
        "project_path": "stranger/stranger",
        "project_id": "999999999",
        "namespace_path": "stranger",
        "namespace_id": "999999999",
        "actor": "stranger",
        "ref": ref,
        "event_name": event,
    }
    names = {f"{root}.{name}": value for root in ("assertion", "attribute") for name, value in claims.items()}
    names["google.subject"] = claims["sub"]
    try:
        return holds(provider.condition, Scope(names=names))
    except CelError:
        return False  # it asks for something that is not known here


def _of_provider(provider: Provider, message: str, fix: str) -> Finding:
    holder = Subject(cloud=provider.cloud, name=provider.issuer, origin=provider.origin, location=provider.location)
    evidence = f"issuer {provider.issuer}, audiences {listed(provider.audiences) or 'none'}, condition {provider.condition or 'none'}"
    return of_subject(holder, message, grant=provider.issuer, evidence=evidence, fix=fix, location=provider.location)


def no_second_key(audited: Audited) -> Iterator[Finding]:
    """404."""
    for subject in subjects(audited, Cloud.AWS):
        own = own_accounts(subject)
        for held in _trusting(subject):
            tied = [one for one in held[1].tests if one.key.lower() != "aws:sourcearn" or _says_who(one)]
            if bound(replace(held[1], tests=tuple(tied)), _SECOND_KEY):
                continue
            accounts = [
                name
                for kind, name in held[1].principals
                if kind == "AWS" and _account(name).isdigit() and _account(name) not in own
            ]
            services = [name for kind, name in held[1].principals if kind == "Service" and not _own_machines(name)]
            if accounts or services:
                mine = min(own) if own else "ACCOUNT"
                test = (
                    Test(operator="StringEquals", key="aws:SourceAccount", values=(mine,))
                    if services
                    else Test(operator="StringEquals", key="sts:ExternalId", values=("LONG_RANDOM_TEXT",))
                )
                yield of_statement(
                    subject,
                    held,
                    f"{listed([*accounts, *services])} is trusted without a second key: it may be talked into acting for somebody else",
                    action=", ".join(held[1].actions),
                    resource=", ".join([*accounts, *services]),
                    fix=f"write instead:\n{written(guarded(held[1], test))}",
                )


def _own_machines(service: str) -> bool:
    return any(service.startswith(f"{name}.amazonaws.com") for name in _OWN_MACHINES)


RULES: tuple[Rule, ...] = (
    Rule(
        id="SKY-IAM-401",
        level=Level.CRITICAL,
        why=(
            "A trust policy with `*` lets any AWS customer become the role; with an account's root, every identity in it that may assume anything, today's and "
            "tomorrow's. On Google a whole pool is every repository and every workload of the issuer. A condition on who it is counts, and for one foreign "
            "account an ExternalId."
        ),
        fix="Name the roles that may assume it; of a pool, the repository or workload.",
        maps=("CKV_AWS_60", "CKV_AWS_61", "cloudsplaining AssumableByAnyPrincipal"),
        check=anybody,
        clouds="AWS: trust policies. Google: `principalSet://…/*` with a role on service accounts. Azure and Nebius have no trust of that kind; see 402.",
    ),
    Rule(
        id="SKY-IAM-402",
        level=Level.CRITICAL,
        why=(
            "An issuer such as GitHub signs tokens for everybody. Without the subject, any repository in the world becomes the role; without the audience, a "
            "token that was meant for another service does. A subject that is a wildcard over all owners counts as none."
        ),
        fix="Require both `ISSUER:aud` and `ISSUER:sub`, with operators that fail where the claim is missing.",
        maps=("CKV_AWS_358",),
        check=web_identity,
        clouds="AWS: trust in OIDC providers. Azure and Nebius: federated credentials without a subject, on Azure also without an audience. Google: 403.",
    ),
    Rule(
        id="SKY-IAM-403",
        level=Level.HIGH,
        why=(
            "A provider without a condition lets every token of its issuer into the pool. One binding that is too wide then opens the project to strangers; "
            "the condition is what still holds when a binding is wrong."
        ),
        fix="Add attribute_condition with the owner's id.",
        maps=("CKV_GCP_118", "TRV GCP-0068"),
        check=no_condition,
        clouds="Google only.",
    ),
    Rule(
        id="SKY-IAM-404",
        level=Level.MEDIUM,
        why=(
            "Another account or service acts for many customers. Whoever else is its customer asks it to use this role, whose ARN is no secret: the confused "
            "deputy. Services that only take roles of their own account's machines (EC2, ECS, Lambda, EKS) are left out."
        ),
        fix="Require sts:ExternalId of accounts, aws:SourceAccount or aws:SourceArn of services.",
        maps=("prowler iam_role_cross_service_confused_deputy_prevention",),
        check=no_second_key,
        clouds="AWS only. Which account a role is in is read from its ARN or its policies; an account number that is in neither is a foreign one.",
    ),
)
