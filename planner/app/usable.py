"""What a job's nodes could not run on, whatever the price: no image with a driver, secrets out of reach, a target that lacks a setting.

These are facts of this version's stacks, not of the market: placement only obeys them (SKY-REJ-215).  Stores without credentials are another
matter: a job may bring its own, so they are caveats of a plan, and `apply` asks (SKY-APPLY-327).
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from planner.iam.grants import SECRET_STORES
from planner.iam.paths import data_paths
from planner.model.errors import InputError
from planner.model.offer import Cloud, Fabric, InstanceType
from planner.model.reach import Reach

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.model.market import Market
    from planner.model.plan import Placement
    from planner.model.project import Project, Target
    from planner.model.workload import Workload

#: (target, cloud, instance type, region or `*`) -> why
Reasons = dict[tuple[str, str, str, str], str]
#: clouds whose nodes can read their own cloud's secrets in this version
READ_SECRETS = frozenset({Cloud.AWS, Cloud.GCP, Cloud.AZURE})


def unusable(workload: Workload, project: Project, market: Market) -> Mapping[tuple[str, str, str, str], str]:
    """Every type of every target that the job could not run on, with the reason."""
    out: Reasons = {}
    for target in project.targets:
        # of targets that nobody wrote down the account is not known yet: they are planned for, and `apply` asks for it
        whole = _of_target(workload, target, project) or _of_stores(workload, project, target)
        for kind in market.types:
            if kind.cloud is not target.cloud:
                continue
            why = whole or _of_type(kind, project, market) or _too_small(workload, kind)
            if why:
                out[target.name, target.cloud.value, kind.name, "*"] = why
            elif kind.cloud is Cloud.NEBIUS and kind.fabric is Fabric.INFINIBAND and workload.resources.nodes > 1:
                for region in _without_fabric(kind, market):
                    why = f"no InfiniBand fabric for {kind.name} is known in {region}"
                    out[target.name, target.cloud.value, kind.name, region] = why
    return out


def _without_fabric(kind: InstanceType, market: Market) -> list[str]:
    """Nebius regions in which nodes of a type cannot be joined."""
    from modules.nebius.fabrics import fabric_name  # noqa: PLC0415 - only for several nodes there

    platform = kind.name.split("_", 1)[0]
    return [r.name for r in market.regions if r.cloud is Cloud.NEBIUS and fabric_name(platform, r.name) is None]


def _of_target(workload: Workload, target: Target, project: Project) -> str:
    cloud = target.cloud
    if cloud is Cloud.NEBIUS and not project.default_targets and target.account is None:
        return f"target `{target.name}` needs `project`, in which Nebius makes resources"
    for secret in (*workload.secrets_in(cloud.value), *([workload.registry_auth] if workload.registry_auth else [])):
        home = SECRET_STORES.get(secret.store)
        if home is not cloud or cloud not in READ_SECRETS:
            return f"nodes in {cloud.value} cannot read the secret {secret.store}://{secret.path} in this version"
    reader = "a tunnel's nodes" if workload.tunnel else "nodes under the agent" if project.control_plane else ""
    if reader and cloud is Cloud.AWS:
        odd = [key for key, _ in (*workload.tags, *project.tags) if " " in key or "/" in key]
        if odd:
            return f"{reader} on aws read their tags, and instance metadata takes no tag `{odd[0]}` (space or `/`)"
    if workload.session and (why := _no_session(cloud)):
        return why
    return ""


def _no_session(cloud: Cloud) -> str:
    """Why `access: session` cannot be had on a cloud; "" where it can."""
    match cloud:
        case Cloud.AWS | Cloud.GCP:
            return ""
        case Cloud.AZURE:
            from modules.azure.session import session_supported  # noqa: PLC0415 - only where it is asked for

            return session_supported()
        case Cloud.NEBIUS:
            return "Nebius has no session channel: a shell would need an open port"


def _of_stores(workload: Workload, project: Project, target: Target) -> str:
    """Data that skyplan itself has to bring to the node, and that it has no credentials for; what a job streams it may reach with its own."""
    brought = [d for d in workload.data if d.mount or d.copy_to]
    # not `reach` alone: a prefix that is also written goes by the broker, and so may a second identity of one cloud
    ways = {path.uri: path.reach for path in data_paths(workload, project, target, target.cloud)} if brought else {}
    for d in brought:
        if ways[d.at.uri] is Reach.BROKER:
            what = "mounted" if d.mount else "copied"
            return f"{d.at.uri} cannot be {what} on nodes in {target.cloud.value}: they have no credentials for it"
    return ""


def _too_small(workload: Workload, kind: InstanceType) -> str:
    """Why a type's local disks cannot hold what is copied to them."""
    needed = sum(d.size_bytes for d in workload.data if d.copy_to and d.copy_to.startswith("/scratch/")) / 10**9
    if needed > (kind.nvme_gb or 0):
        return f"{needed:g} GB are copied to /scratch, and {kind.name} has {kind.nvme_gb or 0} GB of local NVMe"
    return ""


def _of_type(kind: InstanceType, project: Project, market: Market) -> str:
    why = _no_image(kind)
    if why and any(
        fnmatchcase(f"{kind.cloud.value}/{region.name}/{kind.name}", pattern)
        for pattern, _ in project.images
        for region in market.regions
        if region.cloud is kind.cloud
    ):
        return ""
    return why


@cache
def _no_image(kind: InstanceType) -> str:
    """Why no packaged image boots a type; "" where one does."""
    try:
        import_module(f"modules.{kind.cloud.value}.images").machine_image(kind, "*")
    except InputError as error:
        return error.diagnostics[0].summary
    return ""


def no_tunnel(piece: Placement, project: Project) -> str:
    """Why the nodes of a part could not join their job's tunnel; "" where they can, and for what is no part."""
    if not piece.tunnel_addresses:
        return ""
    if not project.agent_url:
        return "a tunnel is brought up by the agent, and skyplan.yaml does not say where nodes fetch it (`agent`)"
    if project.rendezvous is None:
        return ""  # keys are exchanged by hand
    secret = project.rendezvous.secret(piece.cloud)
    if secret is None:
        return f"`rendezvous.secrets` in skyplan.yaml names no join secret for {piece.cloud}"
    home = SECRET_STORES.get(secret.store)
    if home is None or home.value != piece.cloud or home not in READ_SECRETS:
        return f"nodes in {piece.cloud} cannot read {secret.store}://{secret.path} in this version"
    return ""
