"""What a node does from boot to its end, as cloud-init user data.  Renders `modules/templates`; holds no secret, only their names.

One text for all clouds; what differs is in `templates/clouds`.  Every value of the user's is quoted for the shell that reads it.  Of what is
rendered, only AWS's part is close to what was run (on an emulator, up to the boot); no cloud's was run on live machines.
"""

from __future__ import annotations

import base64
import gzip
import shlex
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from modules.fabric import gpudirect, links, topology_file
from modules.node_agent import PASSED, AgentSetup, agent_setup
from modules.stores import StoreSetup, store_setup
from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError, MissingPart
from planner.model.offer import Cloud, Fabric
from planner.model.stack import AccessInput, ComputeInput, DataPath, NodeAgent, NodeTemplate, StackBase, Tunnel
from planner.model.workload import SecretRef, Workload

if TYPE_CHECKING:
    from jinja2 import Environment

#: bytes of user data that a cloud takes, and who says so.  AWS: before base64 (EC2 user guide, 2026-09; gzip is read by cloud-init) · GCP: one
#: metadata value (Compute Engine docs, 2026-09) · Azure: customData (Microsoft Learn, 2026-09) · Nebius: no limit documented, a cautious figure
LIMITS = {Cloud.AWS: 16 * 1024, Cloud.GCP: 256 * 1024, Cloud.AZURE: 65_535, Cloud.NEBIUS: 32 * 1024}
LIMIT = LIMITS[Cloud.AWS]
#: clouds whose user data is base64 anyway, so that gzip may stand in it
_PACKED = frozenset({Cloud.AWS, Cloud.AZURE})

ENDINGS = {
    Cloud.AWS: "The launch template terminates an instance that shuts itself down: whatever happens here, billing stops.",
    Cloud.GCP: "A machine that shuts itself down is not billed for computing; its disk is, until it is deleted.",
    Cloud.AZURE: "A machine that shuts itself down is billed on until it is deallocated: the control plane does that.",
    Cloud.NEBIUS: "A machine that shuts itself down is not billed for computing; its disk is, until it is deleted.",
}

#: code points up to here have four hex digits
_LAST_SHORT = 0xFFFF
_SHORT = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_PLAIN = frozenset(map(chr, range(0x20, 0x7F))) | _SHORT.keys()

#: what names of clouds' own settings begin with
_CLOUD_NAMES = ("AWS_", "AZURE_", "CLOUDSDK_", "GOOGLE_")
#: names set on the node that its container gets too
_OWN = ("SKYPLAN_*", "MASTER_*", "NODE_RANK", "PET_*", "NCCL_*", "GLOO_*", "FI_*")
_OF_CLOUD = {
    Cloud.AWS: ("AWS_REGION", "AWS_DEFAULT_REGION"),
    Cloud.GCP: ("GOOGLE_CLOUD_PROJECT",),
    Cloud.AZURE: (),
    Cloud.NEBIUS: (),
}
_OF_FABRIC = {
    Fabric.TCPX: ("LD_LIBRARY_PATH",),
    Fabric.TCPXO: ("LD_LIBRARY_PATH",),
    Fabric.ROCE: ("LD_LIBRARY_PATH",),
    Fabric.INFINIBAND: ("UCX_*", "SHARP_*", "CUDA_DEVICE_ORDER"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Facts about the machine.

    account     of the target: GCP project, Azure subscription, Nebius project; None where unknown (AWS needs none)
    efa         number of EFA interfaces
    addresses   by rank, () if the cloud assigns them; `head` is rank 0's
    data_paths  how it reaches each store
    stop_after_hours  it powers itself off so long after its boot, whatever the job does
    tunnel      the job lies in several clouds; `generation` None: the launch's tag says it (AWS, whose templates outlive launches)
    agent       the job runs under it; None = bare.  `project`: skyplan's, whose job it is
    """

    cloud: Cloud
    region: str
    instance_type: str
    gpus: int
    nvme: bool
    fabric: Fabric = Fabric.ETHERNET
    efa: int = 0
    account: str | None = None
    addresses: tuple[str, ...] = ()
    head: str | None = None
    data_paths: tuple[DataPath, ...] = ()
    stop_after_hours: float | None = None
    tunnel: Tunnel | None = None
    first_rank: int = 0
    generation: int | None = None
    agent: NodeAgent | None = None
    project: str = ""


def node_of(
    template: NodeTemplate,
    stack: StackBase,
    data_paths: tuple[DataPath, ...] = (),
    *,
    head: str | None = None,
) -> Node:
    """The node that a template describes; `head` where the template itself fixes no addresses."""
    tunnel = template.tunnel
    if tunnel is not None:
        head = tunnel.members[0][1]
    return Node(
        cloud=stack.cloud,
        region=stack.region,
        instance_type=template.instance_type,
        gpus=template.gpu_count,
        nvme=template.nvme,
        fabric=template.fabric,
        efa=template.efa_interfaces,
        account=stack.account,
        addresses=template.addresses,
        head=template.addresses[0] if template.addresses else head,
        data_paths=data_paths,
        stop_after_hours=template.stop_after_hours,
        tunnel=tunnel,
        first_rank=template.first_rank,
        generation=stack.generation if isinstance(stack, ComputeInput) else None,
        agent=stack.agent if isinstance(stack, AccessInput | ComputeInput) else None,
        project=stack.project,
    )


def user_data(workload: Workload, node: Node) -> str:
    """`#cloud-config` text.

    Raises InputError if it is over the cloud's limit, MissingPart without Jinja2, ValueError for several nodes without a head.
    """
    if workload.resources.nodes > 1 and not node.head:
        raise ValueError(f"{workload.name}: several nodes need the address of rank 0")
    jinja = _jinja()
    stores = store_setup(workload, node.cloud, node.data_paths, nvme=node.nvme)
    nccl = jinja.get_template("nccl.env.j2").render(
        cloud=node.cloud.value,
        fabric=node.fabric.value,
        nodes=workload.resources.nodes,
        topology=topology_file(node.instance_type),
        tunnel=node.tunnel.interface if node.tunnel else "",
    )
    agent = _agent(workload, node)
    start = _start(workload, node, stores, agent)
    text = jinja.get_template("cloud-init.yaml.j2").render(
        job=workload.name,
        env_sh=_exports(workload, checkpoints=not (agent and agent.checkpoints)),
        nccl_sh=nccl,
        setup_sh=_script(workload.setup) if workload.setup else "",
        run_sh=_script(workload.run),
        start_sh=jinja.get_template("start.sh.j2").render(start),
        launch_sh=jinja.get_template("launch.sh.j2").render(start) if agent else "",
        agent_json=agent.configuration if agent else "",
        agent_unit=agent.unit if agent else "",
        files=stores.files,
    )
    _check_size(workload.name, node.cloud, text)
    return text


def packed(text: str, cloud: Cloud) -> str:
    """Base64 for the clouds that take it so, gzipped where the text alone is over the limit; always the same bytes for the same text."""
    data = text.encode()
    return base64.b64encode(data if len(data) <= LIMITS[cloud] else gzip.compress(data, mtime=0)).decode()


def _agent(workload: Workload, node: Node) -> AgentSetup | None:
    """Where the job runs under it."""
    if node.agent is None:
        return None
    return agent_setup(
        node.agent,
        workload,
        fetch=_fetch(node.agent.url, _own_authority(node.agent)),
        project=node.project,
        cloud=node.cloud,
        region=node.region,
        account=node.account,
        paths=node.data_paths,
        nvme=node.nvme,
        stop_after_hours=node.stop_after_hours,
    )


def _own_authority(agent: NodeAgent) -> str:
    """The user's own authority, where the agent is fetched from the control plane itself; "" for the system's."""
    host = agent.control_url.removeprefix("https://").split("/", 1)[0]
    return agent.ca_file if agent.ca_file and agent.url.startswith(f"https://{host}/") else ""


def _start(workload: Workload, node: Node, stores: StoreSetup, agent: AgentSetup | None) -> dict[str, Any]:
    """The variables of start.sh, and of launch.sh under the agent."""
    image = f"{workload.image.ref}" if workload.image else None
    if workload.image and workload.image.digest and "@" not in workload.image.ref:
        image = f"{workload.image.ref}@{workload.image.digest}"
    nodes = workload.resources.nodes
    names = [*(name for name, _ in workload.env), *(secret.env for secret in workload.secrets)]
    own = [*_OWN, *_OF_CLOUD[node.cloud], *_OF_FABRIC.get(node.fabric, ()), *(name for name, _ in stores.environment)]
    if agent:
        own = [*(name for name in own if not name.startswith(_CLOUD_NAMES)), *PASSED]
    found = links(node.fabric, node.instance_type, node.efa) if nodes > 1 else (0, False)
    direct = gpudirect(node.fabric) if nodes > 1 else None
    folders = [f"{folder}:{folder}" for folder in (*direct.folders, *direct.sockets)] if direct else []
    stop = node.stop_after_hours
    return {
        "account": node.account,
        "addresses": node.addresses,
        "agent": agent,
        "cloud": node.cloud.value,
        "copies": stores.copies,
        "ending": ENDINGS[node.cloud],
        "fabric": node.fabric.value,
        "federated": stores.tokens,
        "fetch": _fetch(node.tunnel.agent_url) if node.tunnel else "",
        "first_rank": node.first_rank,
        "generation": node.generation,
        "gpudirect": direct,
        "gpus": node.gpus,
        "head": node.head if nodes > 1 else None,
        "image": image,
        "job": workload.name,
        "join": _secret(node.tunnel.secret, node.region) if node.tunnel and node.tunnel.secret else None,
        "links": found[0],
        "mounts": stores.mounts,
        "nodes": nodes,
        "nvme": node.nvme,
        "passed": list(dict.fromkeys([*own, *names])),
        "rdma": found[1],
        "region": node.region,
        "registry": _secret(workload.registry_auth, node.region) if workload.registry_auth else None,
        "registry_host": _registry(image) if image else "",
        "secrets": [_secret(secret, node.region) for secret in workload.secrets_in(node.cloud.value)],
        "setup": bool(workload.setup),
        "stop_after_minutes": max(1, round(stop * 60)) if stop is not None else None,
        "store_environment": stores.environment,
        "tunnel": node.tunnel,
        "volumes": [*folders, *stores.volumes, *(agent.volumes if agent else ())],
        "workdir": workload.workdir,
    }


def _exports(workload: Workload, *, checkpoints: bool) -> str:
    """`env.sh`: the job's own environment and what skyplan tells it, quoted.  Without `checkpoints` the agent says where those go."""
    own = {
        "SKYPLAN_JOB": workload.name,
        "SKYPLAN_NODES": str(workload.resources.nodes),
        "SKYPLAN_DATA_URIS": " ".join(item.at.uri for item in workload.data),
        "SKYPLAN_CHECKPOINT_URI": workload.checkpoint.at.uri if workload.checkpoint and checkpoints else "",
        "SKYPLAN_OUTPUT_URI": workload.output.at.uri if workload.output else "",
    }
    pairs = [*workload.env, *((name, value) for name, value in own.items() if value)]
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in pairs)


def _secret(secret: SecretRef, region: str) -> dict[str, str]:
    """Where the node finds a secret: an ARN names its region, a name is in the node's own."""
    parts = secret.path.split(":")
    return {"env": secret.env, "path": secret.path, "region": parts[3] if parts[0] == "arn" else region}


def _fetch(url: str, authority: str = "") -> str:
    """Shell: the agent into `$fetched`, from where skyplan.yaml says; its digest is checked afterwards."""
    scheme, _, rest = url.partition("://")
    match scheme:
        case "https":
            trusting = f"--cacert {shlex.quote(authority)} " if authority else ""
            return f'curl -sfL --retry 5 {trusting}-o "$fetched" {shlex.quote(url)}'
        case "s3":
            return f'aws s3 cp --only-show-errors {shlex.quote(url)} "$fetched"'
        case "gs":
            return f'gcloud storage cp {shlex.quote(url)} "$fetched"'
        case "az":
            account, _, path = rest.partition("/")
            blob = shlex.quote(f"https://{account}.blob.core.windows.net/{path}")
            return f'AZCOPY_AUTO_LOGIN_TYPE=MSI azcopy copy {blob} "$fetched"'
        case _:
            return f"{{ echo {shlex.quote(f'skyplan: the agent cannot be fetched from {url!r}')} >&2; exit 69; }}"


def _script(commands: str) -> str:
    """The user's lines, ended by the first that fails."""
    return f"#!/bin/bash\nset -eo pipefail\n{commands.rstrip()}\n"


def _registry(image: str) -> str:
    """Host of an image reference; "" is Docker Hub."""
    first = image.split("/", 1)[0]
    return first if "/" in image and ("." in first or ":" in first or first == "localhost") else ""


def _check_size(job: str, cloud: Cloud, text: str) -> None:
    size, limit = len(text.encode()), LIMITS[cloud]
    if size > limit and cloud in _PACKED:
        size = len(gzip.compress(text.encode(), mtime=0))
    if size > limit:
        kind = "bytes of user data, packed" if cloud in _PACKED else "bytes of user data"
        raise InputError(
            [
                Diagnostic(
                    code="SKY-SPEC-105",
                    summary=f"{job}: `run`, `setup` and `env` make {size} {kind}; {cloud.value} takes {limit}",
                    hint="put scripts into the image or the bucket, and call them from `run`",
                )
            ]
        )


@cache
def _jinja() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 -- only where a stack is written
    except ModuleNotFoundError:
        raise MissingPart(
            [
                Diagnostic(
                    code="SKY-APPLY-316",
                    summary="writing stacks needs Jinja2, which is not installed",
                    hint="from your checkout of skyplan: pip install '.[cdk,node]'",
                )
            ]
        ) from None
    environment = Environment(
        loader=PackageLoader("modules", "templates"),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 -- shell and YAML, not HTML: `q` and `yaml` quote
        keep_trailing_newline=True,
        comment_start_string="{##",  # `{#` is a length in the shell: ${#disks[@]}
        comment_end_string="##}",
    )
    environment.filters["q"] = shlex.quote
    environment.filters["yaml"] = yaml_string
    return environment


def yaml_string(text: str) -> str:
    """A double-quoted YAML scalar in plain ASCII; JSON's would not do: YAML does not join surrogate pairs."""
    escaped = (
        character
        if character in _PLAIN
        else f"\\u{ord(character):04x}"
        if ord(character) <= _LAST_SHORT
        else f"\\U{ord(character):08x}"
        for character in text
    )
    return '"' + "".join(_SHORT.get(character, character) for character in escaped) + '"'
