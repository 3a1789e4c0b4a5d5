"""Rules 3xx on AWS: how far rights on data reach.  The rules' rows are in `data`, the other clouds in `data_roles`.

Rights are judged as they are left by boundaries and denies.  What a job may read and write is what its spec names (`Audited.allowed`), where that is known;
else only whole buckets and more are found.  Looks at no object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache

from planner.iam import actions as reference
from planner.iam.audit.by_action import allowing
from planner.iam.audit.find import NODES, gives, of_statement, of_subject, statements, subjects
from planner.iam.audit.grown import blocked, listed
from planner.iam.audit.guards import (
    S3,
    bound,
    by,
    either,
    every_object,
    given,
    in_place,
    is_node,
    left,
    named_in,
    own_accounts,
    places,
    s3_parts,
    wild,
)
from planner.iam.audit.lines import compact, guarded, instead, only, without, written
from planner.iam.audit.patterns import meet, parts_meet, tokens
from planner.model.finding import Finding
from planner.model.offer import Cloud
from planner.model.policy import Audited, AwsPolicy, PolicyKind, Statement, Subject, Test

GET, PUT, LIST = "s3:GetObject", "s3:PutObject", "s3:ListBucket"
#: the same by another name: of a bucket without versions, `null` is the version of each object
GET_VERSION, LIST_VERSIONS = "s3:GetObjectVersion", "s3:ListBucketVersions"
_KEY_USES = (
    "kms:Decrypt",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:CreateGrant",
)
_NEVER_ON_A_NODE = (
    "s3:DeleteObject",
    "s3:DeleteObjectVersion",
    "s3:DeleteBucket",
    "s3:PutBucketPolicy",
    "s3:DeleteBucketPolicy",
    "s3:PutBucketAcl",
    "s3:PutObjectAcl",
    "s3:PutLifecycleConfiguration",
)
_CONTROL = (
    "autoscaling",
    "batch",
    "cloudformation",
    "codebuild",
    "ec2",
    "ecs",
    "iam",
    "lambda",
    "sagemaker",
    "ssm",
    "sts",
)
_CHANGES = ("Write", "Tagging", "Permissions management")
#: what an agent on a machine calls for itself: SSM's own channel, and a token of one's own identity
_HARMLESS = frozenset({"sts:getwebidentitytoken", "sts:getcalleridentity", "sts:tagsession", "sts:setsourceidentity"})
_OWNERS = by(
    "aws:ResourceAccount",
    "s3:ResourceAccount",
    "aws:ResourceOrgID",
    "aws:ResourceOrgPaths",
    "s3:DataAccessPointAccount",
)
#: keys that bind who asks
_WHO = by(
    "aws:PrincipalAccount",
    "aws:PrincipalArn",
    "aws:PrincipalOrgID",
    "aws:PrincipalOrgPaths",
    "aws:PrincipalTag/",
    "aws:SourceAccount",
    "aws:SourceArn",
    "aws:SourceOrgID",
    "aws:SourceVpc",
    "aws:SourceVpce",
    "aws:userid",
    "s3:DataAccessPointAccount",
    "kms:CallerAccount",
)
_MANY = 20
#: how a reader says that it knows one only in part: `FILE ADDRESS: …`
_DATA_SOURCE = re.compile(
    r"(.*?) \S*data\.aws_iam_policy_document\.[^:]*: it holds values that are known only after apply"
)


def read_too_far(audited: Audited) -> Iterator[Finding]:
    """301."""
    for subject in subjects(audited, Cloud.AWS):
        for action, (policy, statement, resources) in either(subject, GET, GET_VERSION):
            wide = tuple(one for one in resources if _beyond(audited, subject, one, write=False))
            if wide:
                allowed = places(audited, subject, "s3://")
                yield of_statement(
                    subject,
                    (policy, statement),
                    f"objects may be read on {listed(wide)}, beyond what the job names ({listed(allowed) or 'not known'})",
                    action=action,
                    resource=", ".join(wide),
                    fix=_prefixed(statement, action, allowed),
                )


def _beyond(audited: Audited, subject: Subject, resource: str, *, write: bool) -> bool:
    """Every bucket is always too far; of a bucket, what the spec does not name, where there is one."""
    parts = s3_parts(resource)
    if parts is None:
        return every_object(resource)
    bucket, key = parts
    if wild(bucket):
        return True
    if not key:
        return False  # the bucket itself: no object, see 303
    allowed = places(audited, subject, "s3://", write=write)
    if subject.identity in NODES and named_in(audited, subject):
        return not in_place(resource, allowed) and not resource.startswith("${")
    prefixes = [one for one in allowed if one.partition("/")[0] == bucket]
    whole = wild(key) and not key.rstrip("*?").rstrip("/")
    if not prefixes:
        return whole and write
    return whole and not in_place(resource, allowed)


def _prefixed(statement: Statement, action: str, allowed: tuple[str, ...]) -> str:
    resources = tuple(f"{S3}{place.rstrip('/')}/*" for place in allowed) or (f"{S3}BUCKET/PREFIX/*",)
    return instead(statement, [action], only(statement, [action], resources=resources))


def listed_whole(audited: Audited) -> Iterator[Finding]:
    """302."""
    prefix = by("s3:prefix")
    for subject in subjects(audited, Cloud.AWS):
        for action, (policy, statement, resources) in either(subject, LIST, LIST_VERSIONS):
            some = tuple(one for one in resources if _is_bucket(one) and not _named_whole(audited, subject, one))
            if some and not bound(statement, prefix):
                test = Test(operator="StringLike", key="s3:prefix", values=("PREFIX/", "PREFIX/*"))
                repaired = guarded(only(statement, [action]), test)
                yield of_statement(
                    subject,
                    (policy, statement),
                    f"all names in {listed(some)} may be listed",
                    action=action,
                    resource=", ".join(some),
                    fix=instead(statement, [action], repaired),
                )


def _is_bucket(resource: str) -> bool:
    parts = s3_parts(resource)
    return resource == "*" if parts is None else not parts[1] or wild(parts[0])


def _named_whole(audited: Audited, subject: Subject, resource: str) -> bool:
    """The spec names the bucket without a prefix."""
    parts = s3_parts(resource)
    return parts is not None and any(
        place.rstrip("/") == parts[0] for place in places(audited, subject, "s3://") if not wild(parts[0])
    )


def dead_resource(audited: Audited) -> Iterator[Finding]:
    """303."""
    for subject in subjects(audited, Cloud.AWS):
        for policy, statement in statements(subject):
            if statement.effect != "Allow" or not statement.resources:
                continue
            dead = [action for action in statement.actions if _never_meets(action, statement.resources)]
            if _half_read(audited, subject):
                dead = [action for action in dead if not _of_objects(action, statement.resources)]
            if dead:
                forms = list(dict.fromkeys(form for action in dead for form in _right_forms(action, statement)))
                yield of_statement(
                    subject,
                    (policy, statement),
                    f"{listed(dead)} never applies to {listed(statement.resources)}: it takes {listed(forms) or '`*`'}",
                    action=", ".join(dead),
                    resource=", ".join(statement.resources),
                    fix=instead(statement, dead, only(statement, dead, resources=forms or ["*"])),
                )


def _half_read(audited: Audited, subject: Subject) -> bool:
    """A data source of the same document is known by what it refers to alone: of `"${bucket.arn}/*"` a plan of HCL shows `bucket.arn`."""
    found = filter(None, map(_DATA_SOURCE.match, audited.unread))
    return any(subject.origin.startswith(f"{one[1]} ") for one in found)


def _of_objects(action: str, resources: tuple[str, ...]) -> bool:
    """Its objects would be meant if `/*` stood behind the bucket's ARN."""
    bare = [parts for one in resources if (parts := s3_parts(one)) and not parts[1]]
    return bool(bare) and "object" in reference.resource_types(action)


def _right_forms(action: str, statement: Statement) -> list[str]:
    """What to name instead: of the very buckets where it is known which are meant, else the forms that the action takes."""
    if action.lower().startswith("s3:"):
        kinds = reference.resource_types(action)
        named = [
            f"{bucket}/*" if "object" in kinds else bucket
            for one in statement.resources
            if (parts := s3_parts(one)) and not wild(parts[0])
            for bucket in [one[: len(one) - len(parts[1])].rstrip("/")]
        ]
        if named and ("object" in kinds or "bucket" in kinds):
            return named
    return sorted(_forms(action), key=lambda form: (":accesspoint" in form, form))


def _never_meets(action: str, resources: tuple[str, ...]) -> bool:
    if not reference.known(action):
        return False
    kinds = reference.resource_types(action)
    if not kinds:
        return not any(one == "*" or one.startswith("${") for one in resources)
    return not any(_meets(action, kinds, resource) for resource in resources)


def _meets(action: str, kinds: tuple[str, ...], resource: str) -> bool:
    if resource == "*":
        return True
    parts = s3_parts(resource)
    if action.lower().startswith("s3:") and parts is not None and not wild(parts[0]):
        return ("object" if parts[1] else "bucket") in kinds
    return any(parts_meet(form, resource) for form in _forms(action))


@lru_cache(maxsize=16384)
def _forms(action: str) -> tuple[str, ...]:
    """ARNs of what the action takes, with wildcards for what is not said; no type's form known: anything."""
    forms = forms_of(action)
    kinds = reference.resource_types(action)
    return tuple(forms[kind] for kind in kinds) if all(kind in forms for kind in kinds) else ("*",)


def forms_of(action: str) -> Mapping[str, str]:
    """The same by type of resource, of all the service's."""
    return _of_service(action.partition(":")[0].lower())


@cache
def _of_service(service: str) -> Mapping[str, str]:
    return {kind: _starred(form) for kind, form in reference.arn_forms(service).items()}


def _starred(form: str) -> str:
    out = ""
    for piece in form.replace("${", "\0${").split("\0"):
        out += f"*{piece.partition('}')[2]}" if piece.startswith("${") else piece
    return out


def node_controls(audited: Audited) -> Iterator[Finding]:
    """305."""
    for subject in subjects(audited, Cloud.AWS):
        if not is_node(subject) or (subject.identity is None and not any(given(subject, GET))):
            continue
        for policy, statement in statements(subject):
            if statement.effect != "Allow":
                continue
            found = [
                one for one in _control(statement) if any(left(subject, statement, one, r) for r in _on(statement))
            ]
            if found:
                yield of_statement(
                    subject,
                    (policy, statement),
                    f"whatever runs on the node may call {listed(found)}",
                    action=", ".join(found[:_MANY]),
                    resource=", ".join(statement.resources),
                    fix=without(statement, _patterns(statement, found)),
                )


def _still(subject: Subject, statement: Statement, action: str) -> bool:
    """The statement gives the action, and something of that is left."""
    return (
        statement.effect == "Allow"
        and gives(statement, action)
        and any(left(subject, statement, action, one) for one in _on(statement))
    )


def _on(statement: Statement) -> tuple[str, ...]:
    return ("*",) if statement.not_resources else statement.resources


def _control(statement: Statement) -> list[str]:
    """What changes something outside of data."""
    patterns = statement.actions or tuple(f"{service}:*" for service in _CONTROL)
    if "*" in patterns:
        patterns = tuple(f"{service}:*" for service in _CONTROL)
    names = dict.fromkeys(
        name
        for pattern in patterns
        if pattern.partition(":")[0].lower() in _CONTROL
        for name in reference.expand(pattern)
    )
    shut = tuple(tokens(pattern, fold=True) for pattern in statement.not_actions)
    return [
        name
        for name in names
        if reference.access_level(name) in _CHANGES
        and name.lower() not in _HARMLESS
        and not name.lower().startswith(("ssm:update", "ssm:putinventory", "ssm:putcompliance"))
        and not any(meet(pattern, tokens(name, fold=True)) for pattern in shut)
    ]


def _patterns(statement: Statement, names: list[str]) -> list[str]:
    """The statement's own words for these actions."""
    folded = [tokens(name, fold=True) for name in names]
    return [one for one in statement.actions if any(meet(tokens(one, fold=True), name) for name in folded)] or names[
        :_MANY
    ]


def node_writes(audited: Audited) -> Iterator[Finding]:
    """306."""
    for subject in subjects(audited, Cloud.AWS):
        if not is_node(subject):
            continue
        for action in _NEVER_ON_A_NODE:
            for policy, statement, resources in given(subject, action):
                yield of_statement(
                    subject,
                    (policy, statement),
                    f"a node may call {action} on {listed(resources)}",
                    action=action,
                    resource=", ".join(resources),
                    fix=without(statement, _patterns(statement, [action])),
                )
        for policy, statement, resources in given(subject, PUT):
            wide = tuple(one for one in resources if _beyond(audited, subject, one, write=True))
            if wide:
                allowed = places(audited, subject, "s3://", write=True)
                yield of_statement(
                    subject,
                    (policy, statement),
                    f"a node may write on {listed(wide)}, beyond its checkpoints ({listed(allowed) or 'not known'})",
                    action=PUT,
                    resource=", ".join(wide),
                    fix=_prefixed(statement, PUT, allowed),
                )


def keys(audited: Audited) -> Iterator[Finding]:
    """307."""
    service = by("kms:ViaService")
    for subject in subjects(audited, Cloud.AWS):
        for policy, statement in statements(subject) if allowing(subject, *_KEY_USES) else ():
            used = [use for use in _KEY_USES if _still(subject, statement, use)]
            if not used:
                continue
            wide = [one for one in _on(statement) if one == "*" or wild(one.rpartition(":")[2])]
            grant_only = used == ["kms:CreateGrant"] and bound(statement, by("kms:GrantIsForAWSResource"))
            if not wide and (bound(statement, service) or grant_only):
                continue
            what = f"any key of {listed(wide)} may be used" if wide else "the key may be used by way of any service"
            test = Test(operator="StringEquals", key="kms:ViaService", values=("s3.REGION.amazonaws.com",))
            resources = ("arn:aws:kms:REGION:ACCOUNT:key/ID",) if wide else ()
            part = only(statement, used, resources=resources)
            yield of_statement(
                subject,
                (policy, statement),
                f"{what}: {listed(used)}",
                action=", ".join(used),
                resource=", ".join(_on(statement)),
                fix=instead(statement, used, part if bound(part, service) else guarded(part, test)),
            )


def public(audited: Audited) -> Iterator[Finding]:
    """308."""
    for name, policy in audited.stores:
        holder = Subject(cloud=Cloud.AWS, name=name, origin=name, location=policy.location)
        yield from _public(holder, policy)
    for subject in subjects(audited, Cloud.AWS):
        for policy in subject.of_kind(PolicyKind.RESOURCE):
            yield from _public(subject, policy)


def _public(holder: Subject, policy: AwsPolicy) -> Iterator[Finding]:
    denies = [statement for statement in policy.statements if statement.effect == "Deny"]
    for statement in policy.statements:
        everybody = [one for one in statement.principals if one[1] == "*"] or statement.not_principals
        if statement.effect != "Allow" or not everybody or bound(statement, _WHO) or blocked(statement, denies):
            continue
        named = replace(statement, principals=(("AWS", "arn:aws:iam::ACCOUNT:role/NAME"),), not_principals=())
        yield of_subject(
            holder,
            f"anybody may call {listed(statement.actions or statement.not_actions)} on {listed(_on(statement))}",
            grant=f"{policy.name}/{statement.sid or 'statement'}",
            action=", ".join(statement.actions),
            resource=", ".join(_on(statement)),
            evidence=compact(statement),
            fix=f"name who:\n{written(named)}",
            location=statement.location or policy.location,
        )


def anybodys_bucket(audited: Audited) -> Iterator[Finding]:
    """309."""
    for subject in subjects(audited, Cloud.AWS):
        # that a key is in an account does not say that the node is
        own = own_accounts(subject, named=subject.identity is None)
        # a job's target that names no account leaves nothing to ask for: what it means by "its own" is not known here
        if subject.identity in NODES and not own:
            continue
        for policy, statement in statements(subject) if allowing(subject, GET, PUT, LIST) else ():
            used = [use for use in (GET, PUT, LIST) if _still(subject, statement, use)]
            buckets = [one for one in _on(statement) if s3_parts(one) and not one.startswith("${")]
            if used and buckets and not bound(statement, _OWNERS):
                test = Test(
                    operator="StringEquals", key="aws:ResourceAccount", values=(min(own) if own else "ACCOUNT",)
                )
                yield of_statement(
                    subject,
                    (policy, statement),
                    f"{listed(buckets)} is trusted in whichever account it is: names of buckets are the world's",
                    action=", ".join(used),
                    resource=", ".join(buckets),
                    fix=instead(statement, used, guarded(only(statement, used), test)),
                )
