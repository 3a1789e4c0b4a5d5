"""Access control as AWS has it, in place of moto's: every call is judged by what it really asks (`authorize`), and written down.

moto verifies the signature.  Then each authorization request is judged by the caller's own policies, its permissions boundary and its session policy;
an AssumeRole by the role's trust too.  Only with access control on (POST /moto-api/reset-auth).  The judge is `planner.iam.evaluate`, which the tests hold
against others (`tests/e2e/judges`); what a call asks is worked out here, without skyplan's own tables of operations.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from moto import settings
from moto.core.authorization import ActionAuthenticatorMixin
from moto.core.exceptions import AccessDeniedError, _RESTError
from moto.core.utils import utcnow
from moto.ec2.models import ec2_backends
from moto.iam import access_control
from moto.iam.access_control import AssumedRoleAccessKey
from moto.iam.models import Policy, iam_backends
from moto.s3.exceptions import S3AccessDeniedError
from moto.sts.models import sts_backends
from moto.utilities.utils import get_partition

from planner.iam import actions
from planner.iam.documents import policy_from
from planner.iam.evaluate import aws as evaluate
from planner.iam.evaluate.verdict import Decision
from planner.model.policy import AwsPolicy, PolicyKind

from .authorize import ec2, launch, others
from .authorize.asked import Asked, Caller

original_init = AssumedRoleAccessKey.__init__
original_authorize = ActionAuthenticatorMixin._authenticate_and_authorize_action

_INSTANCE = re.compile(r"i-[0-9a-f]{17}")

#: every judged call since the last clearing, and the policies that judged it, by digest
CALLS: list[dict[str, Any]] = []
POLICIES: dict[str, list[dict[str, Any]]] = {}


def _init(self: Any, account_id: str, partition: str, access_key_id: str, headers: dict[str, str]) -> None:
    original_init(self, account_id, partition, access_key_id, headers)
    for session in sts_backends[account_id][partition].assumed_roles:
        if session.access_key_id == access_key_id:
            self.session = session
            if utcnow() > session.expiration:
                raise access_control.CreateAccessKeyFailure(reason="InvalidToken")


@dataclass(frozen=True)
class Held:
    """One policy of a caller's: of which kind, its name, its document as JSON text."""

    kind: str
    name: str
    text: str


def _authorize(self: Any, iam_request_cls: type, resource: str = "*") -> None:
    """In place of moto's: verify, ask, judge, write down, refuse."""
    if ActionAuthenticatorMixin.request_count < settings.INITIAL_NO_AUTH_ACTION_COUNT:
        original_authorize(self, iam_request_cls, resource)
        return
    path = self.raw_path + ("?" + self.parsed_url.query if self.parsed_url.query else "")
    request = iam_request_cls(
        account_id=self.current_account,
        method=self.method,
        path=path,
        data=self.data,
        body=self.raw_body,
        headers=self.headers,
        action=self._get_action(),
    )
    request.check_signature()
    if request._action == "sts:GetCallerIdentity":
        return
    caller, held = _caller(request)
    judged = [_judged(caller, held, one) for one in _asked(self, request, caller, resource)]
    refused = next((one for one in judged if one["verdict"] != Decision.ALLOW), None)
    digest = hashlib.sha256(repr(held).encode()).hexdigest()[:16]
    POLICIES[digest] = [{"kind": h.kind, "name": h.name, "document": json.loads(h.text)} for h in held]
    CALLS.append(
        {
            "call": request._action,
            "principal": caller.arn,
            "session": request._access_key.arn,
            "policies": digest,
            "allowed": refused is None,
            "asked": judged,
        }
    )
    if refused is not None:
        _refuse(request, refused)


def _caller(request: Any) -> tuple[Caller, tuple[Held, ...]]:
    """Who calls, and all that bounds it."""
    key, account = request._access_key, request.account_id
    partition = get_partition(request._region)
    backend = iam_backends[account][partition]
    held = [Held("identity", *_document(policy)) for policy in key.collect_policies()]
    session = getattr(key, "session", None)
    if session is None:
        return Caller(key.arn, account, request._region, partition), tuple(held)
    role = backend.get_role(key._owner_role_name)
    tags = tuple(others._tags(role.tags).items())
    if role.permissions_boundary_arn:
        bound = backend.get_policy(role.permissions_boundary_arn)
        held.append(Held("boundary", *_document(bound)))
    if session.policy:
        held.append(Held("session", "session", session.policy))
    caller = Caller(role.arn, account, request._region, partition, tags)
    return replace(caller, machine=_machine(caller, role, session.session_name)), tuple(held)


def _machine(caller: Caller, role: Any, name: str) -> str:
    """ARN of the instance that a session was handed to, or "".

    No machine here fetches credentials.  So a session of a role that EC2 may become, under an instance's id as EC2 names it, stands for one that EC2
    began; in a real account whoever else takes that name gets no such key.
    """
    delivered = _INSTANCE.fullmatch(name) and "ec2.amazonaws.com" in role.assume_role_policy_document
    return caller.arn_of("ec2", f"instance/{name}") if delivered else ""


def _document(policy: Any) -> tuple[str, str]:
    """(name, JSON text) of a policy in any of the shapes that moto hands out."""
    if isinstance(policy, Policy):
        version = next(v for v in policy.versions if v.is_default)
        return policy.name, version.document
    if isinstance(policy, str):
        return "inline", policy
    return policy["policy_name"], policy["policy_document"]


def _asked(response: Any, request: Any, caller: Caller, resource: str) -> Iterable[Asked]:
    """What the call asks; a service that is not known here is asked for `*`."""
    service, _, action = request._action.partition(":")
    params = response.params if isinstance(getattr(response, "params", None), Mapping) else {}
    iam = iam_backends[caller.account][caller.partition]
    asks: dict[str, Callable[[], Iterable[Asked]]] = {
        "ec2": lambda: _ec2(caller, action, params),
        "iam": lambda: others.iam(caller, iam, action, params),
        "sts": lambda: others.sts(caller, iam, action, params),
        "ssm": lambda: others.ssm(caller, action, json.loads(request._body or b"{}")),
        "s3": lambda: _s3(response, caller, action, resource),
    }
    return asks.get(service, lambda: [Asked(request._action, "*", caller.around())])()


def _ec2(caller: Caller, action: str, params: Mapping[str, Any]) -> Iterable[Asked]:
    backend = ec2_backends[caller.account][caller.region]
    if action == "RunInstances":
        return launch.asked(caller, backend, params)
    types = actions.resource_types(f"ec2:{action}") if actions.known(f"ec2:{action}") else ()
    return ec2.asked(caller, backend, action, params, frozenset(types))


def _s3(response: Any, caller: Caller, action: str, resource: str) -> Iterable[Asked]:
    bucket, _, key = resource.rpartition(":")[2].partition("/")
    found = response.backend.buckets.get(bucket)
    query = {name: values[0] for name, values in response.querystring.items() if values}
    there = found is None or found.keys.get(key) is not None
    return others.s3(caller, action, "" if bucket == "*" else bucket, key, query, there=there)


def _judged(caller: Caller, held: tuple[Held, ...], one: Asked) -> dict[str, Any]:
    context = documented(one)
    verdict, by = judge(caller, held, Asked(one.action, one.resource, context, one.kind))
    spoken = {key: list(values) for key, values in sorted(context.items())}
    return {
        "action": one.action,
        "resource": one.resource,
        "kind": one.kind,
        "context": spoken,
        "verdict": verdict,
        "by": by,
    }


def documented(one: Asked) -> dict[str, tuple[str, ...]]:
    """The keys that AWS gives with that action and that type of resource: a condition on another finds no value."""
    if not actions.known(one.action):
        return dict(one.context)
    kind = one.kind if one.kind in actions.resource_types(one.action) else None
    return {key: values for key, values in one.context.items() if actions.has_key(one.action, key, kind)}


def judge(caller: Caller, held: tuple[Held, ...], one: Asked) -> tuple[str, str]:
    """The decision, and the statement that made it or what was missing."""
    request = evaluate.Request(action=one.action, resource=one.resource, context=one.context)
    verdict = evaluate.judge([_parsed(h.kind, h.name, h.text) for h in held], request)
    if one.action == "sts:AssumeRole" and verdict.decision is not Decision.EXPLICIT_DENY:
        trusted, named = _trusted(caller, one)
        if not trusted:
            return Decision.IMPLICIT_DENY, "the role's trust policy"
        if named:
            return Decision.ALLOW, verdict.by if verdict else "the role's trust policy"
    return verdict.decision, verdict.by


def _trusted(caller: Caller, one: Asked) -> tuple[bool, bool]:
    """Whether the role trusts the caller, and whether by name, which inside one account is enough."""
    backend = iam_backends[caller.account][caller.partition]
    role = next((r for r in backend.roles.values() if r.arn == one.resource), None)
    if role is None:
        return False, False
    trust = policy_from(json.loads(role.assume_role_policy_document), kind=PolicyKind.TRUST, name="trust")
    named = any(("AWS", caller.arn) in statement.principals for statement in trust.statements)
    return bool(evaluate.trusts(trust, "AWS", caller.arn, one.context)), named


@lru_cache(maxsize=512)
def _parsed(kind: str, name: str, text: str) -> AwsPolicy:
    return policy_from(json.loads(text), kind=PolicyKind(kind), name=name)


_WHY = {
    Decision.EXPLICIT_DENY: "with an explicit deny in a policy",
    Decision.IMPLICIT_DENY: "because no policy in effect allows the {action} action",
}


def _refuse(request: Any, refused: Mapping[str, str]) -> None:
    """In the words of the service."""
    why = _WHY[Decision(refused["verdict"])].format(action=refused["action"])
    who = f"User: {request._access_key.arn} is not authorized to perform: {refused['action']}"
    words = f"{who} on resource: {refused['resource']} {why}"
    if request._service == "s3":
        raise S3AccessDeniedError
    if request._service == "ec2":
        raise Refusal("UnauthorizedOperation", f"You are not authorized to perform this operation. {words}")
    raise Refusal("AccessDenied", words)


class Refusal(AccessDeniedError):
    """AccessDenied, or EC2's own word for it."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__("", "")
        _RESTError.__init__(self, code, words)


def records() -> dict[str, Any]:
    """What was judged so far."""
    return {"calls": CALLS, "policies": POLICIES}


def clear() -> None:
    """Forget what was judged."""
    CALLS.clear()
    POLICIES.clear()


def install() -> None:
    AssumedRoleAccessKey.__init__ = _init
    ActionAuthenticatorMixin._authenticate_and_authorize_action = _authorize
