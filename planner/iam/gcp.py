"""Grants as members of roles on Google's stores: exactly the prefixes, no wildcard, no delete.  Pure.

A document is `{"bindings": [{"kind", …place…, "role", "reason"}]}`, where the place is `bucket` and `managed_folder` (`prefix/`) for
`managed_folder`, `bucket` for `bucket` (the whole of it), `project` (None: that of the provider) and `secret_id` for `secret`.

A prefix is a managed folder, the one thing with a policy of its own that also bounds listing: a condition on object names leaves the right to
list on the whole bucket, or breaks it.  Whose folder it is, makes it: skyplan adds a member to it and never creates or deletes it.
Checkpoints are created and read; overwriting and deleting are one right in Cloud Storage (storage.objects.delete), and it is never given.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from planner.model.grants import Grant, Identity, Permission
from planner.model.stack import PolicyDocument

VIEWER = "roles/storage.objectViewer"
CREATOR = "roles/storage.objectCreator"
SECRET_ACCESSOR = "roles/secretmanager.secretAccessor"  # noqa: S105 -- a role
_ROLES = {Permission.READ_OBJECTS: (VIEWER,), Permission.WRITE_CHECKPOINTS: (CREATOR, VIEWER)}
_GS = "gs://"
_SECRET = "gcp-secretmanager://"  # noqa: S105 -- a scheme
_SECRET_PATH = re.compile(r"(?:(?:projects/)?(?P<project>[^/]+)/)?(?:secrets/)?(?P<name>[^/]+)")
_VERSION = re.compile(r"/versions/[^/]+$")
_KMS_KEY = re.compile(r"projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+")

Binding = dict[str, Any]


def policies(grants: Sequence[Grant], *, account: str | None, region: str) -> tuple[PolicyDocument, ...]:
    """One document per node identity that has a grant in Google's own stores; grants in other clouds' stores render to nothing.

    `account` is the target's project: a secret of another one is not skyplan's to open, and is left to `snippets`.  The order of the grants
    changes nothing.
    """
    del region  # buckets and secrets are named without one
    out: list[PolicyDocument] = []
    for identity in (Identity.NODE_DATA, Identity.NODE_CHECKPOINT):
        mine = sorted(grant for grant in set(grants) if grant.identity is identity)
        made = [binding for grant in mine for binding in _bindings(grant, account)]
        if made:
            out.append(PolicyDocument(name=identity.value, document={"bindings": _joined(made)}))
    return tuple(out)


def snippets(
    grants: Sequence[Grant], *, account: str | None, node_account: str | None = None, kms_key: str | None = None
) -> tuple[str, ...]:
    """What owners of stores have to run, as shell commands, sorted and each once.

    node_account  email of the nodes' service account; None leaves a word to replace with the access stack's output `node_identity`
    kms_key       the user's own key for disks
    """
    found = {text for grant in set(grants) for text in _asked(grant, account, node_account or "NODE_IDENTITY")}
    if kms_key:
        found.add(_key(kms_key, account))
    return tuple(sorted(found))


def _bindings(grant: Grant, account: str | None) -> list[Binding]:
    match grant.permission:
        case Permission.READ_SECRET if grant.resource.startswith(_SECRET):
            project, name = _secret(grant.resource)
            if _foreign(project, account):
                return []
            place: Binding = {"kind": "secret", "project": project or account, "secret_id": name}
            return [{**place, "role": SECRET_ACCESSOR, "reason": grant.reason}]
        case Permission.READ_OBJECTS | Permission.WRITE_CHECKPOINTS if grant.resource.startswith(_GS):
            return [
                {**_place(grant.resource), "role": role, "reason": grant.reason} for role in _ROLES[grant.permission]
            ]
        case _:
            return []


def _place(uri: str) -> Binding:
    """The managed folder of a prefix, or the bucket.  A folder's name ends with a slash, so that no sibling is covered."""
    bucket, _, prefix = uri.removeprefix(_GS).partition("/")
    folder = prefix.strip("/")
    if not folder:
        return {"kind": "bucket", "bucket": bucket}
    return {"kind": "managed_folder", "bucket": bucket, "managed_folder": f"{folder}/"}


def _secret(resource: str) -> tuple[str | None, str]:
    """Project and name of `NAME`, `PROJECT/NAME`, `projects/PROJECT/secrets/NAME` and `…/versions/V`.  Raises ValueError for another form."""
    path = _VERSION.sub("", resource.removeprefix(_SECRET))
    found = _SECRET_PATH.fullmatch(path)
    if found is None:
        raise ValueError(f"{path} names no secret of Secret Manager")
    return found["project"], found["name"]


def _foreign(project: str | None, account: str | None) -> bool:
    return project is not None and account is not None and project != account


def _joined(bindings: Iterable[Binding]) -> list[Binding]:
    """Each role on each place once, with all the reasons for it."""
    out: dict[tuple[tuple[str, str], ...], Binding] = {}
    for binding in bindings:
        key = tuple(sorted((name, str(value)) for name, value in binding.items() if name != "reason"))
        held = out.get(key)
        reasons = [*held["reason"].split("; "), binding["reason"]] if held else [binding["reason"]]
        out[key] = {**binding, "reason": "; ".join(dict.fromkeys(reasons))}
    return [out[key] for key in sorted(out)]


def _asked(grant: Grant, account: str | None, node_account: str) -> list[str]:
    match grant.permission:
        case Permission.READ_SECRET if grant.resource.startswith(_SECRET):
            project, name = _secret(grant.resource)
            if not _foreign(project, account):
                return []
            text = (
                f"# secret {name} of project {project}, for {_line(grant.reason)}\n"
                f"gcloud secrets add-iam-policy-binding {shlex.quote(name)} --project={shlex.quote(str(project))} "
                f"--member=serviceAccount:{shlex.quote(node_account)} --role={SECRET_ACCESSOR}"
            )
            return [text]
        case Permission.READ_OBJECTS | Permission.WRITE_CHECKPOINTS if grant.resource.startswith(_GS):
            return _folder(grant.resource)
        case _:
            return []


def _folder(uri: str) -> list[str]:
    """How a prefix becomes a managed folder: that is its owner's to do, once."""
    place = _place(uri)
    if place["kind"] == "bucket":
        return []
    bucket, prefix = f"{_GS}{place['bucket']}", f"{_GS}{place['bucket']}/{place['managed_folder']}"
    text = (
        f"# rights on {_line(prefix)} alone need a managed folder, and that uniform access; once, by the bucket's owner\n"
        f"gcloud storage buckets update {shlex.quote(bucket)} --uniform-bucket-level-access\n"
        f"gcloud storage managed-folders create {shlex.quote(prefix)}"
    )
    return [text]


def _line(text: str) -> str:
    """The text as a comment: on one line, whatever is in it."""
    return " ".join(text.split())


def _key(kms_key: str, account: str | None) -> str:
    """Disks are opened by Compute Engine's own agent, not by the node: the key's owner lets that agent use it."""
    found = _KMS_KEY.search(kms_key)
    key = shlex.quote(found[0] if found else kms_key)
    project = shlex.quote(account) if account else "PROJECT"
    return (
        f"# disks with the key {_line(found[0] if found else kms_key)}; once, by the key's owner\n"
        f"number=\"$(gcloud projects describe {project} --format='value(projectNumber)')\"\n"
        f"gcloud kms keys add-iam-policy-binding {key} "
        '--member="serviceAccount:service-$number@compute-system.iam.gserviceaccount.com" '
        "--role=roles/cloudkms.cryptoKeyEncrypterDecrypter"
    )
