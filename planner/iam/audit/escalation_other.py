"""Rules 213, 214 and 216: by what an identity of Google or Azure becomes another, and who is an administrator anywhere.

Roles here are judged one by one: no Deny of another takes anything back (Google's deny policies and Azure's deny assignments are not read).  Each right is
tied to how wide it is given: on the one account it is for, it is how the cloud works; on a project or a subscription it is an escalation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.iam.audit.find import of_right, subjects
from planner.iam.audit.grown import listed
from planner.iam.audit.lines import written
from planner.iam.audit.places import azure_builtin, azure_level, gcp_guarded, gcp_permits, gcp_wide, permits
from planner.iam.audit.registry import Rule
from planner.iam.audit.writing_aws import ADMINISTRATOR, administrators
from planner.iam.evaluate.cel import CelError, Scope, Value, holds
from planner.iam.roles import PREDEFINED, role_of
from planner.model.finding import Finding, Level
from planner.model.offer import Cloud
from planner.model.policy import Audited, Permit, RoleAssignment, RoleBinding, Subject


@dataclass(frozen=True, slots=True)
class Power:
    """One permission: what it does, and whether a narrow scope, or a condition, makes it harmless."""

    name: str
    does: str
    narrow: bool = True
    data: bool = False


_TOKENS = "makes credentials of any service account there"
GOOGLE = (
    Power("iam.serviceAccounts.actAs", "hands any service account there to a machine"),
    Power("iam.serviceAccounts.getAccessToken", _TOKENS),
    Power("iam.serviceAccounts.getOpenIdToken", _TOKENS),
    Power("iam.serviceAccounts.signBlob", _TOKENS),
    Power("iam.serviceAccounts.signJwt", _TOKENS),
    Power(
        "iam.serviceAccounts.implicitDelegation",
        "makes credentials of whatever those accounts may become",
        narrow=False,
    ),
    Power("iam.serviceAccountKeys.create", "makes a key that does not expire", narrow=False),
    Power("iam.serviceAccounts.setIamPolicy", "says who may become any service account there"),
    Power("iam.roles.update", "rewrites a role that one may hold", narrow=False),
    Power("resourcemanager.projects.setIamPolicy", "gives any role on the project", narrow=False),
    Power("resourcemanager.folders.setIamPolicy", "gives any role on the folder", narrow=False),
    Power("resourcemanager.organizations.setIamPolicy", "gives any role on everything", narrow=False),
    Power("compute.instances.setMetadata", "runs code, and lets keys in, on machines of others"),
    Power("compute.projects.setCommonInstanceMetadata", "lets keys in on every machine", narrow=False),
    Power("deploymentmanager.deployments.create", "acts as Google's own agent, an editor", narrow=False),
    Power("deploymentmanager.deployments.update", "acts as Google's own agent, an editor", narrow=False),
    Power("cloudbuild.builds.create", "runs code as the build's service account", narrow=False),
)
_VM = "Microsoft.Compute/virtualMachines"
_IDENTITY = "Microsoft.ManagedIdentity/userAssignedIdentities"
AZURE = (
    Power("Microsoft.Authorization/roleAssignments/write", "gives any role", narrow=False),
    Power("Microsoft.Authorization/roleDefinitions/write", "rewrites a role that one may hold", narrow=False),
    Power("Microsoft.Authorization/elevateAccess/action", "makes itself administrator of the tenant", narrow=False),
    Power(f"{_VM}/runCommand/action", "runs code on machines", narrow=False),
    Power(f"{_VM}/runCommands/write", "runs code on machines", narrow=False),
    Power(f"{_VM}/extensions/write", "runs code on machines", narrow=False),
    Power(f"{_VM}/login/action", "signs in to machines", data=True),
    Power(f"{_VM}/loginAsAdmin/action", "signs in to machines as administrator", data=True),
    Power(f"{_IDENTITY}/assign/action", "hands any identity there to a machine"),
    Power(
        "Microsoft.Storage/storageAccounts/listKeys/action",
        "reads keys that open a whole storage account",
        narrow=False,
    ),
)
_LIMITS_ROLES = "roledefinitionid"
_GOOGLE_LIMITS_ROLES = "modifiedgrantsbyrole"
_GRANTS = "iam.googleapis.com/modifiedGrantsByRole"
#: predefined roles that hold one of the powers above, and one that is the project's own and may hold anything
_BECOMES = tuple(
    sorted(
        role
        for role, held in PREDEFINED[Cloud.GCP].items()
        if any(gcp_permits(RoleBinding(member="", role=role, on="", permissions=held.actions), p.name) for p in GOOGLE)
    )
)
_UNKNOWN_ROLE = "projects/stranger/roles/stranger"
_ADMIN_GOOGLE = frozenset({"roles/owner", "roles/editor"})
_ADMIN_AZURE = ("Owner", "Contributor", "User Access Administrator", "Role Based Access Control Administrator")


def google(audited: Audited) -> Iterator[Finding]:
    """213."""
    for subject in subjects(audited, Cloud.GCP):
        for binding in subject.bindings:
            able = [power for power in GOOGLE if gcp_permits(binding, power.name) and _open_google(binding, power)]
            if able and binding.role not in _ADMIN_GOOGLE:
                yield of_right(
                    subject,
                    binding,
                    f"on {binding.on}: {_told(able)}{_given(binding, able)}",
                    action=", ".join(power.name for power in able),
                    fix=_google_fix(binding, able),
                )


def _open_google(binding: RoleBinding, power: Power) -> bool:
    """Wide, or dangerous anywhere, and no condition that bounds it."""
    if power.narrow and not gcp_wide(binding.on):
        return False
    if power.name.endswith("etIamPolicy") and _GOOGLE_LIMITS_ROLES in binding.condition.lower():
        return bool(_may_give(binding))
    return not power.narrow or not gcp_guarded(binding)


def _may_give(binding: RoleBinding) -> list[str]:
    """Roles by which one becomes somebody else and that the condition lets be given, on an account of a stranger's.

    Google's conditions know no name of a service account (iam.googleapis.com is not among the services with resource attributes, IAM: resource
    attributes for conditions, read 2026-11), so one that asks for it is judged as written.  What cannot be judged bounds nothing.
    """
    return [role for role in (*_BECOMES, _UNKNOWN_ROLE) if _lets(binding, role)]


def _lets(binding: RoleBinding, role: str) -> bool:
    names: dict[str, Value] = {
        "resource.name": f"{binding.on}/serviceAccounts/stranger@stranger.iam.gserviceaccount.com",
        "resource.type": "iam.googleapis.com/ServiceAccount",
        "resource.service": "iam.googleapis.com",
    }
    try:
        return holds(binding.condition, Scope(names=names, attributes={_GRANTS: (role,)}))
    except CelError:
        return True


def _given(binding: RoleBinding, able: list[Power]) -> str:
    """Which roles the condition lets through, where it limits them."""
    if _GOOGLE_LIMITS_ROLES not in binding.condition.lower() or not any(p.name.endswith("etIamPolicy") for p in able):
        return ""
    roles = _may_give(binding)
    return (
        f"; its condition lets {listed(roles)} be given"
        if len(roles) <= len(_BECOMES)
        else "; its condition bounds no role"
    )


def _google_fix(binding: RoleBinding, able: list[Power]) -> str:
    if roles := [role for role in _BECOMES if role in binding.condition and _lets(binding, role)]:
        return (
            f"take {', '.join(roles)} out of the roles that the condition lets be given, or bind {able[0].name} on the one account:\n"
            f"on = {binding.on}/serviceAccounts/EMAIL\nrole = {binding.role}\nmember = {binding.member}"
        )
    if all(power.narrow for power in able):
        account = any(power.name.startswith("iam.serviceAccounts.") for power in able)
        if account:
            where = f"{binding.on}/serviceAccounts/EMAIL"
            return f"bind the role on the one account:\non = {where}\nrole = {binding.role}\nmember = {binding.member}"
        return (
            "give the role under this condition:\n"
            'condition = resource.name.extract("/instances/{name}").startsWith("skyplan-PROJECT-")'
        )
    if binding.permissions:
        kept = [one for one in binding.permissions if one not in {power.name for power in able}]
        return "permissions = [\n" + "".join(f'  "{one}",\n' for one in kept) + "]"
    return f"remove the binding of {binding.role} to {binding.member} on {binding.on}"


def azure(audited: Audited) -> Iterator[Finding]:
    """214."""
    for subject in subjects(audited, Cloud.AZURE):
        for assignment in subject.assignments:
            able = [power for power in AZURE if _open_azure(assignment, power)]
            if able and not _administers(assignment):
                yield of_right(
                    subject,
                    assignment,
                    f"in {assignment.scope or '/'}: {_told(able)}",
                    action=", ".join(power.name for power in able),
                    fix=_azure_fix(assignment, able),
                )


def _open_azure(assignment: RoleAssignment, power: Power) -> bool:
    if not permits(assignment, power.name, data=power.data):
        return False
    if power.name.endswith("roleAssignments/write") and _LIMITS_ROLES in assignment.condition.lower():
        return False
    return not power.narrow or azure_level(assignment.scope) != "resource"


def _azure_fix(assignment: RoleAssignment, able: list[Power]) -> str:
    if all(power.narrow for power in able):
        kind = _IDENTITY if able[0].name.startswith(_IDENTITY) else _VM
        return f"assign the role on the one resource:\nscope = {assignment.scope.rstrip('/')}/providers/{kind}/NAME"
    names = {power.name for power in able}
    kept = [one for one in assignment.actions if one not in names]
    if kept != list(assignment.actions) and kept:
        return "actions = [\n" + "".join(f'  "{one}",\n' for one in kept) + "]"
    excluded = sorted({*assignment.not_actions, *(power.name for power in able if not power.data)})
    return (
        "name the actions that are needed; until then:\nnot_actions = [\n"
        + "".join(f'  "{one}",\n' for one in excluded)
        + "]"
    )


def _told(able: list[Power]) -> str:
    return "; ".join(dict.fromkeys(f"{power.does} ({power.name})" for power in able))


def everywhere(audited: Audited) -> Iterator[Finding]:
    """216."""
    yield from administrators(audited)
    for subject in subjects(audited, Cloud.GCP):
        for binding in subject.bindings:
            if binding.role in _ADMIN_GOOGLE:
                yield _administrator(subject, binding, binding.role, binding.on)
    for subject in subjects(audited, Cloud.AZURE):
        for assignment in subject.assignments:
            if _administers(assignment):
                yield _administrator(subject, assignment, assignment.role, assignment.scope or "/")
    for subject in subjects(audited, Cloud.NEBIUS):
        for permit in subject.permits:
            if permit.role == "admin":
                yield _administrator(subject, permit, permit.role, permit.on)


def _administers(assignment: RoleAssignment) -> bool:
    """A role over everything, on more than one resource."""
    if azure_level(assignment.scope) == "resource":
        return False
    known = role_of(Cloud.AZURE, assignment.role) if azure_builtin(assignment) else None
    name = next((one for one in _ADMIN_AZURE if known and role_of(Cloud.AZURE, one) == known), "")
    grants_only = name.endswith("Administrator") and _LIMITS_ROLES in assignment.condition.lower()
    return (bool(name) and not grants_only) or "*" in assignment.actions


def _administrator(subject: Subject, right: RoleBinding | RoleAssignment | Permit, role: str, place: str) -> Finding:
    return of_right(
        subject,
        right,
        f"{ADMINISTRATOR}: {role} on {place}",
        action=role,
        fix=f"remove this, and give a role with what is needed, on what it is needed for:\n{written(right)}",
    )


RULES: tuple[Rule, ...] = (
    Rule(
        id="SKY-IAM-213",
        level=Level.CRITICAL,
        why="On Google an identity becomes another by a single permission on it. Given on the project it works on every service account there: start a machine with the"
        " strongest one, or ask for its token. On the one account that it is for, and under a condition on names or on the roles that may be given, it is how the cloud works. A condition on roles is read: it guards nothing if one becomes another by a role"
        " that it lets be given.",
        fix="Bind it to the one service account, or under a condition; drop key making, role writing and setIamPolicy on projects.",
        maps=("CKV_GCP_41", "CKV_GCP_49", "TRV GCP-0007", "TRV GCP-0011", "Sonar S6408"),
        check=google,
        clouds="Google only. Predefined roles are known as far as they give one of these permissions. Always found: keys, delegation, roles.update, projects.setIamPolicy,"
        " project-wide metadata, Deployment Manager and Cloud Build. Found on a project or above without a condition: actAs, tokens, signatures, setMetadata.",
    ),
    Rule(
        id="SKY-IAM-214",
        level=Level.CRITICAL,
        why="On Azure roles are given by a permission like any other, and a machine's extensions run as root. Give oneself Owner, or run a command on the machine that"
        " has the strongest identity, and ask it for a token. A condition on the roles that may be given guards the first; one named resource guards assigning an identity and signing in.",
        fix="Name the machine actions without runCommand, extensions and login; assign `assign/action` on the one identity; bound roleAssignments/write by a condition.",
        maps=("CKV_AZURE_39", "TRV AZU-0030", "TRV AZU-0052"),
        check=azure,
        clouds="Azure only. Wildcards (`virtualMachines/*`) and notActions are followed; built-in roles are known as far as they give one of these actions.",
    ),
    Rule(
        id="SKY-IAM-216",
        level=Level.CRITICAL,
        why="An administrator needs no escalation: whatever gets hold of it has the account. On a node that is any process of the job and any package that it installs"
        " (Log2n-io/Typhon#971: every node had all of EC2 and S3). Everything but IAM counts too, as Google's editor and Azure's Contributor do.",
        fix="Name what is needed; `skyplan audit --explain IDENTITY` shows it.",
        maps=(
            "CKV_AWS_1",
            "CKV_AWS_62",
            "CKV_AWS_63",
            "CKV_AWS_274",
            "CKV_AWS_275",
            "CKV_GCP_42",
            "CKV_GCP_117",
            "CKV2_AWS_40",
            "CKV2_AWS_56",
        ),
        check=everywhere,
        whole=lambda one: one.message.startswith(ADMINISTRATOR),
        clouds="AWS: a statement that gives nearly all of eight services' gravest actions, after every Deny and boundary; AWS's own administrator policies; and of a node a whole"
        " service (`ec2:*`). Google: owner, editor. Azure: Owner, Contributor, User Access and RBAC Administrator or `*` on a resource group or above. Nebius: admin.",
    ),
)
