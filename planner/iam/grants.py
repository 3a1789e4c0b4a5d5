"""What the nodes of a placement may do with data, as grants.  Pure; decides which rights a job needs and why, not how a cloud writes them.

Reading: the job's data prefixes.  Writing: its checkpoint and output prefixes, never deleting.  Secrets: the references it names.
"""

from __future__ import annotations

from planner.model.grants import Grant, Identity, Permission
from planner.model.offer import Cloud
from planner.model.project import Target
from planner.model.workload import ObjectPrefix, SecretRef, Workload

SECRET_STORES = {
    "aws-secretsmanager": Cloud.AWS,
    "gcp-secretmanager": Cloud.GCP,
    "azure-keyvault": Cloud.AZURE,
    "nebius-mysterybox": Cloud.NEBIUS,
}


def grants_for(workload: Workload, target: Target, cloud: Cloud) -> tuple[Grant, ...]:
    """Every right that the job's nodes need, sorted.  `target` is where they run, in `cloud`.

    Rights in another cloud's store are listed too, so that a review sees them; no policy of this cloud can render them (credentials for them come with the
    runtime).
    """
    del target  # the grant is the same in every account; only its rendering differs
    out: set[Grant] = set()
    for d in workload.data:
        out.add(_grant(Identity.NODE_DATA, Permission.READ_OBJECTS, d.at, "training data", cloud))
    if workload.checkpoint:
        at = workload.checkpoint.at
        out.add(
            _grant(
                Identity.NODE_CHECKPOINT, Permission.WRITE_CHECKPOINTS, at, "checkpoints, written and read back", cloud
            )
        )
    if workload.output:
        at = workload.output.at
        out.add(_grant(Identity.NODE_CHECKPOINT, Permission.WRITE_CHECKPOINTS, at, "the result, written once", cloud))
    for secret in (*workload.secrets, *([workload.registry_auth] if workload.registry_auth else [])):
        out.add(_secret(secret, cloud))
    return tuple(sorted(out))


def _grant(identity: Identity, permission: Permission, at: ObjectPrefix, why: str, cloud: Cloud) -> Grant:
    away = "" if at.store.cloud == cloud.value else f" (in {at.store.cloud}: credentials come with the runtime)"
    return Grant(identity=identity, permission=permission, resource=at.uri, reason=why + away)


def _secret(secret: SecretRef, cloud: Cloud) -> Grant:
    home = SECRET_STORES.get(secret.store)
    away = "" if home is cloud else f" (in {home.value if home else secret.store}: credentials come with the runtime)"
    return Grant(
        identity=Identity.NODE_DATA,
        permission=Permission.READ_SECRET,
        resource=f"{secret.store}://{secret.path}",
        reason=f"environment variable {secret.env}{away}",
    )
