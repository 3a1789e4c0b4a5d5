"""What the nodes of a placement may do with data, as grants.  Pure; decides which rights a job needs and why, not how a cloud writes them.

Reading: the job's data prefixes.  Writing: its checkpoint and output prefixes, never deleting.  Secrets: the references it names.
"""

from __future__ import annotations

from planner.iam.paths import data_paths
from planner.model.grants import Grant, Identity, Permission
from planner.model.offer import Cloud
from planner.model.project import Project, Target
from planner.model.stack import DataPath, Reach
from planner.model.workload import ObjectPrefix, SecretRef, Workload

NO_FEDERATION = Project()
NO_BROKER = "credentials need the broker"
ELSEWHERE = "nodes cannot read it"

SECRET_STORES = {
    "aws-secretsmanager": Cloud.AWS,
    "gcp-secretmanager": Cloud.GCP,
    "azure-keyvault": Cloud.AZURE,
    "nebius-mysterybox": Cloud.NEBIUS,
}


def grants_for(workload: Workload, target: Target, cloud: Cloud, project: Project = NO_FEDERATION) -> tuple[Grant, ...]:
    """Every right that the job's nodes need, sorted.  `target` is where they run, in `cloud`; `project` says which stores federate.

    Rights in another cloud's store are listed too, so that a review sees them; no policy of this cloud can render them, and the reason says where
    credentials for them come from.
    """
    ways = {path.uri: path for path in data_paths(workload, project, target, cloud)}
    out: set[Grant] = set()

    def add(identity: Identity, permission: Permission, at: ObjectPrefix, why: str) -> None:
        reason = why + _away(at, ways[at.uri])
        out.add(Grant(identity=identity, permission=permission, resource=at.uri, reason=reason))

    for d in workload.data:
        add(Identity.NODE_DATA, Permission.READ_OBJECTS, d.at, "training data")
    if workload.checkpoint:
        at, why = workload.checkpoint.at, "checkpoints, written and read back"
        add(Identity.NODE_CHECKPOINT, Permission.WRITE_CHECKPOINTS, at, why)
    if workload.output:
        add(Identity.NODE_CHECKPOINT, Permission.WRITE_CHECKPOINTS, workload.output.at, "the result, written once")
    for secret in (*workload.secrets_in(cloud.value), *([workload.registry_auth] if workload.registry_auth else [])):
        out.add(_secret(secret, cloud))
    return tuple(sorted(out))


def _away(at: ObjectPrefix, path: DataPath) -> str:
    """Where credentials come from, if not with the node."""
    if path.minted:
        return " (minted by the broker)"
    match path.reach:
        case Reach.PLATFORM:
            return ""
        case Reach.FEDERATION:
            return f" (in {at.store.cloud}: by federation)"
        case Reach.BROKER:
            return f" (in {at.store.cloud}: {NO_BROKER})"


def _secret(secret: SecretRef, cloud: Cloud) -> Grant:
    home = SECRET_STORES.get(secret.store)
    away = "" if home is cloud else f" (in {home.value if home else secret.store}: {ELSEWHERE})"
    return Grant(
        identity=Identity.NODE_DATA,
        permission=Permission.READ_SECRET,
        resource=f"{secret.store}://{secret.path}",
        reason=f"environment variable {secret.env}{away}",
    )
