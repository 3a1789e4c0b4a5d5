"""What moto's access control leaves out: session policies, expired sessions, and PassRole of the very role.

Only with access control on (POST /moto-api/reset-auth).  EC2 actions are still judged against the resource `*` and without
conditions, so a run that passes here is no proof of a tight policy.
"""

from typing import Any

from moto.core.exceptions import AccessDeniedError, _RESTError
from moto.core.utils import utcnow
from moto.ec2.models import ec2_backends
from moto.iam import access_control
from moto.iam.access_control import AssumedRoleAccessKey, IAMPolicy, IAMRequest, IAMRequestBase, PermissionResult
from moto.iam.models import iam_backends
from moto.sts.models import sts_backends
from moto.utilities.utils import get_partition

original_init = AssumedRoleAccessKey.__init__
original_denied = IAMRequest._raise_access_denied
original_check = IAMRequestBase.check_action_permitted


def _init(self: Any, account_id: str, partition: str, access_key_id: str, headers: dict[str, str]) -> None:
    original_init(self, account_id, partition, access_key_id, headers)
    for session in sts_backends[account_id][partition].assumed_roles:
        if session.access_key_id == access_key_id:
            self._session_policy = session.policy
            if utcnow() > session.expiration:
                raise access_control.CreateAccessKeyFailure(reason="InvalidToken")


def _permitted(policies: list[Any], action: str, resource: str) -> bool:
    results = [IAMPolicy(p).is_action_permitted(action, resource) for p in policies]
    return PermissionResult.PERMITTED in results and PermissionResult.DENIED not in results


def _check(self: Any, resource: str) -> None:
    original_check(self, resource)
    session = getattr(self._access_key, "_session_policy", None)
    if session and self._action != "sts:GetCallerIdentity" and not _permitted([session], self._action, resource):
        self._raise_access_denied()
    if self._action == "ec2:RunInstances":
        for role in _roles_passed(self):
            for layer in [self._access_key.collect_policies(), *([[session]] if session else [])]:
                if not _permitted(layer, "iam:PassRole", role):
                    self._raise_access_denied()


def _roles_passed(request: Any) -> list[str]:
    """ARNs of the roles that a RunInstances hands to its instances, by the request or by its launch template."""
    data = {k: v[0] if isinstance(v, list) else v for k, v in request._data.items()}
    profile = {"Name": data.get("IamInstanceProfile.Name"), "Arn": data.get("IamInstanceProfile.Arn")}
    if not any(profile.values()) and any(k.startswith("LaunchTemplate.") for k in data):
        named = {k.removeprefix("LaunchTemplate."): v for k, v in data.items() if k.startswith("LaunchTemplate.")}
        template = ec2_backends[request.account_id][request._region]._get_template_from_args(named)
        profile = template.data.get("IamInstanceProfile") or {}
    backend = iam_backends[request.account_id][get_partition(request._region)]
    wanted = (profile.get("Name"), profile.get("Arn"))
    return [
        role.arn
        for known in backend.instance_profiles.values()
        if known.name == wanted[0] or known.arn == wanted[1]
        for role in known.roles
    ]


def _denied(self: Any) -> None:
    if self._action.startswith("ec2:"):
        raise UnauthorizedOperation(self._access_key.arn, self._action)
    original_denied(self)


class UnauthorizedOperation(AccessDeniedError):
    """EC2's own word for it."""

    def __init__(self, user_arn: str, action: str):
        super().__init__(user_arn, action)
        words = (
            f"You are not authorized to perform this operation. User: {user_arn} is not authorized to perform: {action}"
        )
        _RESTError.__init__(self, "UnauthorizedOperation", words)


def install() -> None:
    AssumedRoleAccessKey.__init__ = _init
    IAMRequestBase.check_action_permitted = _check
    IAMRequest._raise_access_denied = _denied
