"""What a node does from boot to its end, as cloud-init user data.  Renders `modules/templates`; holds no secret, only their names.

EC2 takes 16 KiB before base64.  Every value of the user's is quoted for the shell that reads it.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError, MissingPart
from planner.model.offer import Cloud, Fabric
from planner.model.stack import DataPath, NodeTemplate, StackBase
from planner.model.workload import SecretRef, Workload

if TYPE_CHECKING:
    from jinja2 import Environment

#: EC2's limit, in bytes, before base64
LIMIT = 16 * 1024

#: code points up to here have four hex digits
_LAST_SHORT = 0xFFFF
_SHORT = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_PLAIN = frozenset(map(chr, range(0x20, 0x7F))) | _SHORT.keys()

#: names set on the node that its container gets too
_OWN = ("SKYPLAN_*", "MASTER_*", "NODE_RANK", "PET_*", "NCCL_*", "GLOO_*", "FI_*", "AWS_REGION", "AWS_DEFAULT_REGION")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Facts about the machine.

    account     of the target: GCP project, Azure subscription, Nebius project; None where unknown (AWS needs none)
    efa         number of EFA interfaces
    addresses   by rank, () if the cloud assigns them; `head` is rank 0's
    data_paths  how it reaches each store
    stop_after_hours  it powers itself off so long after its boot, whatever the job does
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


def node_of(
    template: NodeTemplate,
    stack: StackBase,
    data_paths: tuple[DataPath, ...] = (),
    *,
    head: str | None = None,
) -> Node:
    """The node that a template describes; `head` where the template itself fixes no addresses."""
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
    )


def user_data(workload: Workload, node: Node) -> str:
    """`#cloud-config` text.

    Raises InputError if it is over EC2's limit, MissingPart without Jinja2, ValueError for several nodes without a head.
    """
    if workload.resources.nodes > 1 and not node.head:
        raise ValueError(f"{workload.name}: several nodes need the address of rank 0")
    jinja = _jinja()
    image = f"{workload.image.ref}" if workload.image else None
    if workload.image and workload.image.digest and "@" not in workload.image.ref:
        image = f"{workload.image.ref}@{workload.image.digest}"
    nodes = workload.resources.nodes
    names = [*(name for name, _ in workload.env), *(secret.env for secret in workload.secrets)]
    start = jinja.get_template("start.sh.j2").render(
        addresses=node.addresses,
        gpus=node.gpus,
        head=node.head if nodes > 1 else None,
        image=image,
        nodes=nodes,
        nvme=node.nvme,
        passed=[*_OWN, *names],
        region=node.region,
        job=workload.name,
        registry=_secret(workload.registry_auth, node.region) if workload.registry_auth else None,
        registry_host=_registry(image) if image else "",
        secrets=[_secret(secret, node.region) for secret in workload.secrets],
        setup=bool(workload.setup),
        workdir=workload.workdir,
    )
    text = jinja.get_template("cloud-init.yaml.j2").render(
        job=workload.name,
        env_sh=_exports(workload),
        nccl_sh=jinja.get_template("nccl.env.j2").render(nodes=nodes, efa=node.efa > 0),
        setup_sh=_script(workload.setup) if workload.setup else "",
        run_sh=_script(workload.run),
        start_sh=start,
    )
    _check_size(workload.name, text)
    return text


def _exports(workload: Workload) -> str:
    """`env.sh`: the job's own environment and what skyplan tells it, quoted."""
    own = {
        "SKYPLAN_JOB": workload.name,
        "SKYPLAN_NODES": str(workload.resources.nodes),
        "SKYPLAN_DATA_URIS": " ".join(item.at.uri for item in workload.data),
        "SKYPLAN_CHECKPOINT_URI": workload.checkpoint.at.uri if workload.checkpoint else "",
        "SKYPLAN_OUTPUT_URI": workload.output.at.uri if workload.output else "",
    }
    pairs = [*workload.env, *((name, value) for name, value in own.items() if value)]
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in pairs)


def _secret(secret: SecretRef, region: str) -> dict[str, str]:
    """Where the node finds a secret: an ARN names its region, a name is in the node's own."""
    parts = secret.path.split(":")
    return {"env": secret.env, "path": secret.path, "region": parts[3] if parts[0] == "arn" else region}


def _script(commands: str) -> str:
    """The user's lines, ended by the first that fails."""
    return f"#!/bin/bash\nset -eo pipefail\n{commands.rstrip()}\n"


def _registry(image: str) -> str:
    """Host of an image reference; "" is Docker Hub."""
    first = image.split("/", 1)[0]
    return first if "/" in image and ("." in first or ":" in first or first == "localhost") else ""


def _check_size(job: str, text: str) -> None:
    size = len(text.encode())
    if size > LIMIT:
        raise InputError(
            [
                Diagnostic(
                    code="SKY-SPEC-105",
                    summary=f"{job}: `run`, `setup` and `env` make {size} bytes of user data; EC2 takes {LIMIT}",
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
                    hint="pip install 'skyplan[cdk,node]'",
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
