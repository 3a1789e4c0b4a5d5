"""How the nodes of a placement reach each store of the job: by their own identity, by federation, or by the broker.

Decides which path is used and says what is still missing, for reviewers (the table is notes on paths 2.2, repeated in FEDERATED).  Pure: asks no
cloud, mints nothing, and knows no secret; settings are names from skyplan.yaml.  None of these paths was ever taken against a live cloud.
"""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from planner.model.offer import Cloud
from planner.model.plan import Caveat
from planner.model.stack import DataPath, Reach
from planner.model.workload import ObjectPrefix, Store

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.model.project import Federation, Project, Target
    from planner.model.workload import Workload

NO_BROKER: Final = "needs the broker (`control_plane.broker` in skyplan.yaml)"
IDENTITY: Final = {
    Cloud.AWS: "instance role",
    Cloud.GCP: "service account",
    Cloud.AZURE: "managed identity",
    Cloud.NEBIUS: "service account",
}
#: (where the node runs, store): the node's identity token is taken there in exchange for the setting named
FEDERATED: Final[dict[tuple[Cloud, Store], str]] = {
    (Cloud.GCP, Store.S3): "aws_role_arn",
    (Cloud.AZURE, Store.S3): "aws_role_arn",
    (Cloud.AWS, Store.GCS): "gcp_provider",
    (Cloud.AZURE, Store.GCS): "gcp_provider",
    (Cloud.AWS, Store.AZURE_BLOB): "azure_client_id",
    (Cloud.GCP, Store.AZURE_BLOB): "azure_client_id",
}
_NEEDED: Final = {
    Store.S3: "aws_role_arn: …",
    Store.GCS: "gcp_provider: …",
    Store.AZURE_BLOB: "azure_tenant_id: …, azure_client_id: …",
}


def data_paths(workload: Workload, project: Project, target: Target, cloud: Cloud) -> tuple[DataPath, ...]:
    """One path per URI of data, checkpoint and output, sorted by URI; one that is read and written is written."""
    writes: dict[str, bool] = {}
    places: dict[str, ObjectPrefix] = {}
    read = [d.at for d in workload.data]
    written = [part.at for part in (workload.checkpoint, workload.output) if part]
    for at, write in (*((at, False) for at in read), *((at, True) for at in written)):
        places.setdefault(at.uri, at)
        writes[at.uri] = writes.get(at.uri, False) or write
    found = _one_identity(_path(places[uri], writes[uri], project, target, cloud) for uri in sorted(places))
    return tuple(_second(path, places[path.uri], project, target) for path in found)


def _second(path: DataPath, at: ObjectPrefix, project: Project, target: Target) -> DataPath:
    """What federation cannot reach beside another store, the broker mints where there is one."""
    holder = identity_target(at, project, target) if path.out_of_reach else None
    return _minted(at, path.write, holder) if holder else path


def _one_identity(paths: Iterable[DataPath]) -> tuple[DataPath, ...]:
    """SDKs read one federated identity per cloud and process: the first path's.  Another entry's has to wait for the broker."""
    first: dict[str, DataPath] = {}
    out: list[DataPath] = []
    for path in paths:
        leader = first.setdefault(path.uri.partition("://")[0], path) if path.reach is Reach.FEDERATION else path
        if leader.settings == path.settings:
            out.append(path)
            continue
        detail = f"a second identity in one cloud {NO_BROKER}: nodes use that for {leader.uri}"
        out.append(replace(path, reach=Reach.BROKER, detail=detail, settings=()))
    return tuple(out)


def identity_target(at: ObjectPrefix, project: Project, target: Target) -> Target | None:
    """The target that holds the identity which the broker becomes for a store: the nodes' own where it is of the store's cloud, else the first that names a broker.

    None where nobody mints, or no target of that cloud says who does (`broker_role`).
    """
    if project.broker is None:
        return None
    mine = [one for one in (target, *project.targets) if one.cloud.value == at.store.cloud]
    return next((one for one in mine if one.broker_role and one.account), None)


def minted(at: ObjectPrefix, write: bool, project: Project, target: Target, cloud: Cloud) -> Target | None:
    """Where the broker mints credentials for it: all that is written, so that a generation's credential ends with it, and what nothing else reaches."""
    holder = identity_target(at, project, target)
    return holder if holder and (write or reach(at, project, cloud) is Reach.BROKER) else None


def reach(at: ObjectPrefix, project: Project, cloud: Cloud) -> Reach:
    """How a node in `cloud` reaches the store, if nobody mints."""
    if at.store is Store.NEBIUS:
        return Reach.BROKER
    if at.store.cloud == cloud.value:
        return Reach.PLATFORM
    return Reach.FEDERATION if federation(at, project, cloud) else Reach.BROKER


def federation(at: ObjectPrefix, project: Project, cloud: Cloud) -> Federation | None:
    """The first entry of skyplan.yaml that lets nodes in `cloud` reach the store."""
    if (cloud, at.store) not in FEDERATED:
        return None
    return next((f for f in project.federation if cloud in f.from_clouds and _matches(f.stores, at.uri)), None)


def _matches(stores: tuple[str, ...], uri: str) -> bool:
    """A glob over whole URIs; without a wildcard at its end it means what lies under it, on a boundary of `/`."""
    return any(fnmatchcase(uri, glob) or fnmatchcase(uri, f"{glob.rstrip('/')}/*") for glob in stores)


def _path(at: ObjectPrefix, write: bool, project: Project, target: Target, cloud: Cloud) -> DataPath:
    holder = minted(at, write, project, target, cloud)
    if holder is not None:
        return _minted(at, write, holder)
    way = reach(at, project, cloud)
    entry = federation(at, project, cloud)
    settings = entry.settings if way is Reach.FEDERATION and entry else ()
    if way is Reach.PLATFORM:
        detail = _by_identity(cloud, target, write)
    elif way is Reach.FEDERATION:
        detail = _by_federation(at.store, cloud, target, write, dict(settings))
    else:
        detail = _by_broker(at, cloud)
    return DataPath(uri=at.uri, write=write, reach=way, detail=detail, settings=settings)


def _minted(at: ObjectPrefix, write: bool, holder: Target) -> DataPath:
    detail = f"leases of an hour, renewed on the node; what they are a part of, in target `{holder.name}` of {holder.cloud.value}, {_does(write)} it"
    settings = (("identity_account", holder.account or ""), ("identity_target", holder.name))
    return DataPath(uri=at.uri, write=write, reach=Reach.BROKER, detail=detail, settings=settings)


def _does(write: bool) -> str:
    return "writes and reads" if write else "reads"


def _by_identity(cloud: Cloud, target: Target, write: bool) -> str:
    who = f"the nodes' own {IDENTITY[cloud]} in target `{target.name}` {_does(write)} it"
    match cloud:
        case Cloud.AWS:
            return f"{who}; a bucket of another account must allow that role too"
        case Cloud.GCP:
            return f"{who}; the prefix must be a managed folder, which the bucket's owner makes (`data_snippets`)"
        case _:
            return f"{who}; the stack assigns the role on its container"


def _by_federation(store: Store, cloud: Cloud, target: Target, write: bool, settings: dict[str, str]) -> str:
    who = f"the nodes' {IDENTITY[cloud]} in target `{target.name}` {_does(write)} it"
    if store is Store.S3:
        role = settings["aws_role_arn"]
        return f"{who} as {role}, which must trust that identity and hold the rights on the bucket"
    if store is Store.GCS:
        account = settings.get("gcp_service_account")
        holder = account or "the federated identity itself"
        return f"{who} through {settings['gcp_provider']}, and {holder} must hold the rights on the bucket"
    client = settings["azure_client_id"]
    return f"{who} as application {client}, which must trust that identity and hold the rights on the container"


def _by_broker(at: ObjectPrefix, cloud: Cloud) -> str:
    if at.store is Store.NEBIUS:
        return f"access {NO_BROKER}: keys of Nebius Object Storage are minted, on whichever cloud the nodes run"
    if cloud is Cloud.NEBIUS:
        return f"access {NO_BROKER}: nodes in nebius have no token that {at.store.cloud} takes"
    bucket = f"{at.store.value}://{at.bucket}"
    entry = f'federation: [{{stores: ["{bucket}"], from: [{cloud.value}], {_NEEDED[at.store]}}}]'
    return f"no credentials for it on nodes in {cloud.value}; `{entry}` in skyplan.yaml makes it federation"


def caveats(paths: Iterable[DataPath]) -> tuple[Caveat, ...]:
    """One per path that needs the broker, in order.  Why, and what would help, is the path's `detail`: one a place, not one a candidate."""
    return tuple(
        Caveat(
            code="SKY-RUN-502",
            text=f"{p.uri}: no broker mints credentials for it, so the job cannot reach it unless it brings its own",
        )
        for p in paths
        if p.out_of_reach
    )
