"""What a node is told of the agent under which its job runs: its configuration, its unit, what the job's container sees of it.  Pure text; no secret.

What only the node knows (generation on AWS, rank, instance id) the agent takes from its environment (`modules.agent.settings`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from planner.model.offer import Cloud
from planner.model.stack import DataPath, NodeAgent
from planner.model.workload import ObjectPrefix, Store, Workload

RUN_FOLDER = "/run/skyplan/agent"
#: where checkpoints are written first: local NVMe where there is one, else the node's disk
SCRATCH_CHECKPOINTS = "/scratch/skyplan-checkpoints"
DISK_CHECKPOINTS = "/var/lib/skyplan/checkpoints"
#: what the agent may set for the job, and a container has to get; of every cloud, since a store need not be in the node's own
PASSED = ("AWS_*", "AZURE_*", "CLOUDSDK_*", "GOOGLE_*")
#: what ends the machine, once the last report is delivered.  At once: an agent that is started again ends it again, and a time would move each time
END = ("/bin/systemctl", "poweroff")
#: what the job's container sees of the agent: progress, control, credentials, the helper for Python; readable for whoever the container runs as
JOB_FOLDER = f"{RUN_FOLDER}/job"
#: the agent's exits that another start mends not: wrong use, wrong configuration (`modules.agent.errors`)
_FINAL = "64 78"

#: what `systemctl stop` and a shutdown give the agent; more than it takes by itself (`modules.agent.parting`)
STOP_SECONDS = 120

_UNIT = f"""\
[Unit]
Description=skyplan agent: runs the job, tells of it, ends the machine
After=network-online.target docker.service
# where it cannot run, nothing would end the job or the bill
StartLimitIntervalSec=900
StartLimitBurst=60
StartLimitAction=poweroff
FailureAction=poweroff
SuccessAction=poweroff
[Service]
Type=exec
EnvironmentFile=/run/skyplan/agent.env
ExecStart=/usr/bin/python3 /opt/skyplan/agent.pyz run --config /opt/skyplan/agent.json -- /bin/bash /opt/skyplan/launch.sh
Restart=on-failure
RestartSec=2
RestartPreventExitStatus={_FINAL}
# the job outlives its agent, which finds it again; at the machine's end the agent gets the time for a last checkpoint and report
KillMode=process
TimeoutStopSec={STOP_SECONDS}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSetup:
    """`fetch`: shell that brings the program into `$fetched`; `checkpoints`: local folder, "" where the agent keeps none."""

    fetch: str
    sha256: str
    run_folder: str
    checkpoints: str
    volumes: tuple[str, ...]
    configuration: str
    unit: str


def agent_setup(
    agent: NodeAgent,
    workload: Workload,
    *,
    fetch: str,
    project: str,
    cloud: Cloud,
    region: str,
    account: str | None,
    paths: tuple[DataPath, ...],
    nvme: bool,
    stop_after_hours: float | None,
) -> AgentSetup:
    """Of one job's nodes."""
    folder = (SCRATCH_CHECKPOINTS if nvme else DISK_CHECKPOINTS) if keeps_checkpoints(workload, paths) else ""
    document: dict[str, Any] = {
        "project": project,
        "job": workload.name,
        "nodes": workload.resources.nodes,
        "cloud": cloud.value,
        "region": region,
        "account": account,
        "control_plane": _service(agent.control_url, agent.ca_file, agent.audience),
        "broker": _service(agent.broker_url, agent.ca_file, agent.broker_audience) if agent.broker_url else None,
        "checkpoint": {"uri": _prefix(workload.checkpoint.at), "folder": folder}
        if workload.checkpoint and folder
        else None,
        "stores": _stores(workload, paths),
        "stop_after_hours": stop_after_hours,
        "run_folder": RUN_FOLDER,
        "end": list(END),
    }
    kept = {name: value for name, value in document.items() if value is not None}
    return AgentSetup(
        fetch=fetch,
        sha256=agent.sha256,
        run_folder=RUN_FOLDER,
        checkpoints=folder,
        volumes=(f"{JOB_FOLDER}:{JOB_FOLDER}", *((f"{folder}:{folder}",) if folder == DISK_CHECKPOINTS else ())),
        configuration=json.dumps(kept, separators=(",", ":"), sort_keys=True),
        unit=_UNIT,
    )


def keeps_checkpoints(workload: Workload, paths: tuple[DataPath, ...]) -> bool:
    """Whether the agent brings checkpoints to their store: where nodes have credentials for it; elsewhere the job, which brings its own."""
    at = workload.checkpoint.at.uri if workload.checkpoint else None
    return any(path.uri == at and not path.out_of_reach for path in paths)


def _service(url: str, ca_file: str | None, audience: str | None) -> dict[str, str]:
    return {"url": url, **({"ca_file": ca_file} if ca_file else {}), **({"audience": audience} if audience else {})}


def _prefix(at: ObjectPrefix) -> str:
    return at.uri.rstrip("/") + "/"


def _stores(workload: Workload, paths: tuple[DataPath, ...]) -> list[dict[str, str]]:
    """What the nodes have credentials for.  A prefix that is written is read too."""
    parts = [d.at for d in workload.data] + [part.at for part in (workload.checkpoint, workload.output) if part]
    places = {at.uri: at for at in parts}
    out: list[dict[str, str]] = []
    for path in paths:
        if path.out_of_reach:
            continue
        at = places[path.uri]
        one = {"uri": _prefix(at), "access": "write" if path.write else "read", "reach": path.reach.value}
        if at.region:
            one["region"] = at.region
        if at.store is Store.NEBIUS and at.region:
            one["endpoint"] = f"https://storage.{at.region}.nebius.cloud"
        out.append(one)
    return out
