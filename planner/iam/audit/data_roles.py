"""Rules 3xx for roles of Google, Azure and Nebius: how far rights on data reach.  The counterpart of `data`, which has the rules' rows.

What predefined roles hold says `planner.iam.roles`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.iam.audit.find import NODES, of_right, of_subject, subjects
from planner.iam.audit.grown import listed
from planner.iam.audit.guards import named_in, places
from planner.iam.audit.lines import compact, written
from planner.iam.audit.patterns import includes, includes_action, tokens
from planner.iam.audit.places import azure_builtin, azure_level
from planner.iam.roles import permissions_of, role_of
from planner.model.finding import Finding
from planner.model.offer import Cloud
from planner.model.policy import Audited, Permit, RoleAssignment, RoleBinding, Subject

_BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
_PUBLIC = frozenset({"allUsers", "allAuthenticatedUsers"})
_CONTROL_ROLES = ("roles/compute.", "roles/iam.", "roles/resourcemanager.", "roles/editor", "roles/owner")
_CONTROL_PERMISSIONS = ("compute.", "iam.", "resourcemanager.", "deploymentmanager.")
_READS = (".get", ".list", ".getIamPolicy")
_AZURE_CONTROL = (
    "owner",
    "contributor",
    "user access administrator",
    "virtual machine contributor",
    "network contributor",
)
_NEBIUS_READS = frozenset(
    {"viewer", "editor", "admin", "storage.viewer", "storage.editor", "storage.object-viewer", "storage.object-editor"}
)
_NEBIUS_DELETES = frozenset({"editor", "admin", "storage.editor", "storage.object-editor"})
_BUCKET = "projects/_/buckets/"


def _permits(binding: RoleBinding, permission: str) -> bool:
    have = binding.permissions or permissions_of(Cloud.GCP, binding.role)
    return any(includes_action(one, permission) for one in have)


def read_too_far(audited: Audited) -> Iterator[Finding]:
    """301."""
    for subject in subjects(audited, Cloud.GCP):
        for binding in subject.bindings:
            if _permits(binding, "storage.objects.get") and _gcp_far(audited, subject, binding):
                fix = _folder_fix(audited, subject, binding)
                yield of_right(
                    subject,
                    binding,
                    f"objects may be read on all of {binding.on}",
                    action="storage.objects.get",
                    fix=fix,
                )
    for subject in subjects(audited, Cloud.AZURE):
        for assignment in subject.assignments:
            if _data(assignment, f"{_BLOBS}/read") and _azure_far(audited, subject, assignment):
                allowed = places(audited, subject, "az://")
                yield of_right(
                    subject,
                    assignment,
                    f"blobs may be read on all of {assignment.scope or '/'}",
                    action=f"{_BLOBS}/read",
                    fix=_azure_fix(assignment, allowed),
                )
    for subject in subjects(audited, Cloud.NEBIUS):
        for permit in subject.permits:
            if (
                permit.role in _NEBIUS_READS
                and permit.role.startswith("storage.")
                and _nebius_far(audited, subject, permit)
            ):
                allowed = tuple(
                    f"{one.partition('/')[2].rstrip('/')}/*" for one in places(audited, subject, "nebius://")
                )
                fix = f"write instead:\n{written(replace(permit, paths=allowed or ('PREFIX/*',)))}"
                yield of_right(
                    subject,
                    permit,
                    f"objects may be read on {listed(permit.paths) or 'all'} of {permit.on}",
                    action=permit.role,
                    fix=fix,
                )


def _gcp_far(audited: Audited, subject: Subject, binding: RoleBinding) -> bool:
    if "/objects/" in binding.condition or "/managedFolders/" in binding.on:
        return (
            subject.identity in NODES and "/managedFolders/" in binding.on and _folder_beyond(audited, subject, binding)
        )
    if not binding.on.startswith(_BUCKET):
        return binding.on.startswith(("projects/", "folders/", "organizations/")) and "/secrets/" not in binding.on
    bucket = binding.on.removeprefix(_BUCKET)
    named = [one for one in places(audited, subject, "gs://") if one.partition("/")[0] == bucket]
    if not named:
        return subject.identity in NODES and named_in(audited, subject)
    return all(one.partition("/")[2].strip("/") for one in named)


def _folder_beyond(audited: Audited, subject: Subject, binding: RoleBinding) -> bool:
    if not named_in(audited, subject):
        return False
    bucket, _, folder = binding.on.removeprefix(_BUCKET).partition("/managedFolders/")
    have = f"{bucket}/{folder.rstrip('/')}/"
    return not any(have.startswith(f"{one.rstrip('/')}/") for one in places(audited, subject, "gs://"))


def _folder_fix(audited: Audited, subject: Subject, binding: RoleBinding) -> str:
    made = [
        replace(binding, on=f"{_BUCKET}{bucket}/managedFolders/{prefix.strip('/')}/")
        for bucket, _, prefix in (one.partition("/") for one in places(audited, subject, "gs://"))
        if prefix.strip("/")
    ] or [replace(binding, on=f"{_BUCKET}BUCKET/managedFolders/PREFIX/")]
    return f"give the role on the managed folder:\n{written(*made)}"


def _data(assignment: RoleAssignment, action: str) -> bool:
    known = role_of(Cloud.AZURE, assignment.role) if azure_builtin(assignment) else None
    have = known.data_actions if known else assignment.data_actions
    return any(includes_action(one, action) for one in have) and not any(
        includes_action(one, action) for one in assignment.not_data_actions
    )


def _azure_far(audited: Audited, subject: Subject, assignment: RoleAssignment) -> bool:
    scope = assignment.scope.lower()
    by_path = "blobs:path]" in assignment.condition
    if "/containers/" not in scope:
        return not (by_path and "containers:name]" in assignment.condition) and "/vaults/" not in scope
    account = scope.partition("/storageaccounts/")[2].partition("/")[0]
    container = scope.partition("/containers/")[2].partition("/")[0]
    here = f"{account}/{container}"
    named = [one for one in places(audited, subject, "az://") if f"{one}/".lower().startswith(f"{here}/")]
    if not named:
        return subject.identity in NODES and named_in(audited, subject) and "$" not in scope
    return not by_path and all(one[len(here) :].strip("/") for one in named)


def _azure_fix(assignment: RoleAssignment, allowed: tuple[str, ...]) -> str:
    place = allowed[0] if allowed else "ACCOUNT/CONTAINER/PREFIX/"
    _, _, rest = place.partition("/")
    container, _, prefix = rest.partition("/")
    condition = (
        f"((!(ActionMatches{{'{_BLOBS}/read'}} AND NOT SubOperationMatches{{'Blob.List'}})) OR "
        f"(@Resource[{_BLOBS}:path] StringStartsWith '{prefix.rstrip('/')}/'))"
    )
    scope = assignment.scope
    if "/containers/" not in scope.lower():
        scope = f"/subscriptions/ID/resourceGroups/GROUP/providers/Microsoft.Storage/storageAccounts/{place.partition('/')[0]}/blobServices/default/containers/{container}"
    return f"write instead:\n{written(replace(assignment, scope=scope, condition=condition))}"


def _nebius_far(audited: Audited, subject: Subject, permit: Permit) -> bool:
    allowed = places(audited, subject, "nebius://")
    # what a permit is on may be an id, a path or a name: the bucket's name ends it
    here = [one for one in allowed if permit.on.rpartition("/")[2] == one.partition("/")[0]]
    prefixes = [one.partition("/")[2].strip("/") for one in here]
    if not here or not all(prefixes):
        return False
    paths = permit.paths or ("*",)
    return any(not any(includes(tokens(f"{one}/*"), tokens(path)) for one in prefixes) for path in paths)


def lists_under_names(audited: Audited) -> Iterator[Finding]:
    """304."""
    for subject in subjects(audited, Cloud.GCP):
        by_name = [one for one in subject.bindings if "/objects/" in one.condition]
        for binding in subject.bindings:
            lists = _permits(binding, "storage.objects.list") and "/managedFolders/" not in binding.on
            if not lists:
                continue
            if binding in by_name and "objectListPrefix" not in binding.condition:
                message = f"listing {binding.on} is checked on the bucket, which the condition on object names never fits: it fails"
            elif (
                "objectListPrefix" not in binding.condition
                and "/objects/" not in binding.condition
                and not _permits(binding, "storage.objects.get")
                and any(one.on == binding.on for one in by_name)
            ):
                message = f"all names in {binding.on} may be listed, though only some objects may be read"
            else:
                continue
            fix = _folder_fix(audited, subject, replace(binding, condition=""))
            yield of_right(subject, binding, message, action="storage.objects.list", fix=fix)


def node_controls(audited: Audited) -> Iterator[Finding]:
    """305."""
    for subject in audited.subjects:
        if subject.identity not in NODES:
            continue
        for binding in subject.bindings:
            found = [
                one for one in binding.permissions if one.startswith(_CONTROL_PERMISSIONS) and not one.endswith(_READS)
            ]
            if found or (not binding.permissions and binding.role.startswith(_CONTROL_ROLES)):
                fix = f"drop {binding.role} from the nodes' account"
                message = f"whatever runs on the node may call {listed(found) or binding.role} on {binding.on}"
                yield of_right(subject, binding, message, action=", ".join(found) or binding.role, fix=fix)
        for assignment in subject.assignments:
            found = [one for one in assignment.actions if not one.lower().endswith("/read")]
            if found or assignment.role.lower() in _AZURE_CONTROL:
                fix = f"drop the assignment of {assignment.role} at {assignment.scope}"
                message = f"whatever runs on the node may call {listed(found) or assignment.role} at {assignment.scope}"
                yield of_right(subject, assignment, message, action=", ".join(found) or assignment.role, fix=fix)
        for permit in subject.permits:
            if permit.role in {"editor", "admin"}:
                message = f"whatever runs on the node is `{permit.role}` on {permit.on}"
                yield of_right(
                    subject, permit, message, action=permit.role, fix="give the nodes' group roles on buckets only"
                )


def node_writes(audited: Audited) -> Iterator[Finding]:
    """306."""
    for subject in audited.subjects:
        if subject.identity not in NODES:
            continue
        for binding in subject.bindings:
            bad = [one for one in ("storage.objects.delete", "storage.buckets.setIamPolicy") if _permits(binding, one)]
            if bad:
                fix = f"write instead:\n{written(replace(binding, role='roles/storage.objectCreator', permissions=()))}"
                yield of_right(
                    subject, binding, f"a node may call {listed(bad)} on {binding.on}", action=", ".join(bad), fix=fix
                )
            elif _permits(binding, "storage.objects.create") and _gcp_far(audited, subject, binding):
                fix = _folder_fix(audited, subject, binding)
                yield of_right(
                    subject,
                    binding,
                    f"a node may write on all of {binding.on}",
                    action="storage.objects.create",
                    fix=fix,
                )
        for assignment in subject.assignments:
            delete = f"{_BLOBS}/delete"
            if _data(assignment, delete) and f"'{delete}'" not in assignment.condition:
                kept = replace(
                    assignment,
                    role="checkpoints",
                    data_actions=(f"{_BLOBS}/read", f"{_BLOBS}/write", f"{_BLOBS}/add/action"),
                )
                fix = f"define a role without delete:\n{written(kept)}"
                yield of_right(
                    subject, assignment, f"a node may delete blobs at {assignment.scope}", action=delete, fix=fix
                )
        for permit in subject.permits:
            if permit.role in _NEBIUS_DELETES:
                fix = f"write instead:\n{written(replace(permit, role='storage.uploader'))}"
                yield of_right(
                    subject, permit, f"a node may delete objects on {permit.on}", action=permit.role, fix=fix
                )


def keys(audited: Audited) -> Iterator[Finding]:
    """307."""
    for subject in subjects(audited, Cloud.GCP):
        for binding in subject.bindings:
            uses = binding.role.startswith("roles/cloudkms.crypto") or binding.role == "roles/cloudkms.admin"
            uses = uses or any(one.startswith("cloudkms.cryptoKeyVersions.useTo") for one in binding.permissions)
            if uses and "/cryptoKeys/" not in binding.on and not binding.condition:
                key = "projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY"
                fix = f"give the role on the one key:\n{written(replace(binding, on=key))}"
                yield of_right(subject, binding, f"every key of {binding.on} may be used", action=binding.role, fix=fix)
    for subject in subjects(audited, Cloud.AZURE):
        for assignment in subject.assignments:
            if assignment.role.lower().startswith("key vault crypto") and "/keys/" not in assignment.scope.lower():
                where = assignment.scope if azure_level(assignment.scope) == "resource" else "/…/vaults/VAULT"
                fix = f"assign the role on the one key:\n{written(replace(assignment, scope=f'{where}/keys/KEY'))}"
                yield of_right(
                    subject, assignment, f"every key at {assignment.scope} may be used", action=assignment.role, fix=fix
                )


def public(audited: Audited) -> Iterator[Finding]:
    """308."""
    for binding in audited.public:
        if binding.member in _PUBLIC:
            holder = Subject(cloud=Cloud.GCP, name=binding.member, origin=binding.on, location=binding.location)
            yield _public_binding(holder, binding)
    for subject in audited.subjects:
        for binding in subject.bindings:
            if binding.member in _PUBLIC:
                yield _public_binding(subject, binding)
        for permit in subject.permits:
            if permit.anonymous:
                fix = f"write instead, for a group:\n{written(replace(permit, anonymous=False))}"
                yield of_right(
                    subject, permit, f"anybody has `{permit.role}` on {permit.on}", action=permit.role, fix=fix
                )


def _public_binding(holder: Subject, binding: RoleBinding) -> Finding:
    named = replace(binding, member="serviceAccount:NAME@PROJECT.iam.gserviceaccount.com")
    return of_subject(
        holder,
        f"{binding.member} have {binding.role} on {binding.on}",
        grant=binding.role,
        action=binding.role,
        resource=binding.on,
        evidence=compact(binding),
        fix=f"name who:\n{written(named)}",
        location=binding.location,
    )
