"""User data of nodes whose job runs under the agent: prepared by start.sh, handed over, run by launch.sh with the agent's word before all others."""

from __future__ import annotations

import configparser
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from modules.agent import errors, parting, settings
from modules.user_data import LIMIT, packed, user_data
from planner.model.offer import Cloud, Fabric
from planner.model.stack import DataPath, NodeAgent, Reach
from planner.model.workload import Resources
from tests.stacks import inputs
from tests.unit.modules.test_user_data import FABRICS, GOLDEN, NODE, TUNNEL, files, rendered, shell_is_fine

AGENT = NodeAgent(
    url="https://plane.example.com/agent.pyz",
    sha256="a" * 64,
    control_url="https://plane.example.com",
    ca_file="/etc/ssl/acme.pem",
    broker_url="https://broker.example.com",
)
MINTED = (("identity_account", "123456789012"), ("identity_target", "prod"))
START, LAUNCH = "/opt/skyplan/start.sh", "/opt/skyplan/launch.sh"


def made(cloud=Cloud.AWS, *, agent=AGENT, node_changes=None, minted=True, **changes):
    """Files of one node, whose checkpoints the broker mints for."""
    workload = inputs.workload(**({"secrets": (), "registry_auth": None} | changes))
    workload = replace(workload, resources=Resources(accelerators=(), nodes=2))
    paths = tuple(
        DataPath(
            uri=at.uri,
            write=write,
            reach=Reach.BROKER if write else Reach.PLATFORM,
            detail="",
            settings=MINTED if write and minted else (),
        )
        for at, write in [*((d.at, False) for d in workload.data), (workload.checkpoint.at, True)]
    )
    generation = None if cloud is Cloud.AWS else 3
    base = {"cloud": cloud, "efa": 0, "fabric": Fabric.ETHERNET, "account": "acme", "generation": generation}
    node = replace(NODE, **base, agent=agent, project="acme", data_paths=paths, **(node_changes or {}))
    return files(user_data(workload, node))


@pytest.mark.parametrize("cloud", list(Cloud))
def test_golden_under_the_agent(cloud, request):
    text = "".join(f"--- {path}\n{content}" for path, content in made(cloud).items())
    golden = GOLDEN / f"agent-{cloud.value}.txt"
    if request.config.getoption("--update-golden", default=False):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("image", [True, False])
@pytest.mark.parametrize(("cloud", "fabric", "kind"), FABRICS)
def test_every_script_is_valid_shell(cloud, fabric, kind, image):
    changes = {} if image else {"image": None, "registry_auth": None}
    under = {"agent": AGENT, "project": "acme", "generation": None if cloud is Cloud.AWS else 3}
    for path, content in files(rendered(cloud, fabric, kind, nvme=image, node_changes=under, **changes)).items():
        if path.endswith(".sh"):
            shell_is_fine(path, content)


@pytest.mark.parametrize("cloud", list(Cloud))
def test_the_agent_takes_its_configuration(cloud):
    here = {"SKYPLAN_GENERATION": "3", "SKYPLAN_RANK": "1", "SKYPLAN_INSTANCE_ID": "i-0abc"}
    found = settings.parse(
        json.loads(made(cloud, node_changes={"stop_after_hours": 36.5})["/opt/skyplan/agent.json"]), here
    )
    assert found.seat == ("acme", "llama3-8b-sft", 3, 1, 2)
    assert (found.instance_id, found.cloud, found.stop_after_hours) == ("i-0abc", cloud.value, 36.5)
    assert found.control_plane is not None
    assert found.broker is not None
    assert (found.control_plane.url, found.control_plane.ca_file) == (AGENT.control_url, AGENT.ca_file)
    assert found.broker.url == AGENT.broker_url
    assert found.checkpoint is not None
    assert (found.checkpoint.uri, found.checkpoint.folder) == ("s3://acme-ckpt/llama/", "/scratch/skyplan-checkpoints")
    assert {(s.uri, s.access, s.reach) for s in found.stores} == {
        ("s3://acme-corpus/llama/", "read", "platform"),
        ("s3://acme-ckpt/llama/", "write", "broker"),
    }
    assert found.end == ("/bin/systemctl", "poweroff"), (
        "a time would move with each start of an agent whose job has ended"
    )


def test_what_the_node_has_no_credentials_for_the_agent_leaves_to_the_job():
    left = made(minted=False)
    document = json.loads(left["/opt/skyplan/agent.json"])
    assert "checkpoint" not in document
    assert [s["reach"] for s in document["stores"]] == ["platform"]
    assert "SKYPLAN_CHECKPOINT_URI=s3://acme-ckpt/llama/" in left["/opt/skyplan/env.sh"]
    assert "SKYPLAN_CHECKPOINT_URI" not in made()["/opt/skyplan/env.sh"], (
        "the generation's own prefix is the agent's word"
    )


def test_without_nvme_checkpoints_lie_on_the_disk_and_the_container_sees_them():
    found = made(node_changes={"nvme": False})
    folder = json.loads(found["/opt/skyplan/agent.json"])["checkpoint"]["folder"]
    assert f"--volume {folder}:{folder}" in found[LAUNCH]
    assert f"mkdir -p /run/skyplan/agent {folder}" in found[START]


def test_nothing_but_the_pinned_agent_is_run(tmp_path):
    start = made()[START]
    part = start[start.index("fetched=") : start.index('instance="$(meta')].replace("/opt/skyplan", str(tmp_path))
    fake = 'curl() { echo "$@" > asked; echo forged > "${!#/*/agent.pyz}" 2>/dev/null || echo forged > "$fetched"; }\n'
    done = subprocess.run(
        ["bash", "-euc", f"{fake}{part}\necho ran"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "ran" not in done.stdout
    assert "--cacert /etc/ssl/acme.pem" in (tmp_path / "asked").read_text(), "fetched from the control plane itself"
    elsewhere = made(agent=replace(AGENT, url="https://cdn.example.com/agent.pyz"))[START]
    assert "--cacert" not in elsewhere


@pytest.mark.parametrize(
    ("cloud", "fakes", "said"),
    [
        (Cloud.AWS, 'meta() { case "$1" in instance-id) echo i-0abc ;; tags/*) echo 7 ;; esac; }', ("7", "i-0abc")),
        (Cloud.GCP, "meta() { echo skyplan-acme-x-g3-r01; }", ("3", "skyplan-acme-x-g3-r01")),
        (Cloud.AZURE, "meta() { echo skyplan-acme-x-g3-r01; }", ("3", "skyplan-acme-x-g3-r01")),
        (Cloud.NEBIUS, "cat() { echo computeinstance-e00; }", ("3", "computeinstance-e00")),
    ],
)
def test_the_node_tells_the_agent_what_it_alone_knows(tmp_path, cloud, fakes, said):
    start = made(cloud)[START]
    part = start[start.index("sha256sum --check --quiet\n") + 26 : start.index("exec sleep")]
    part = part.replace("/run/skyplan", str(tmp_path)).replace("/scratch", str(tmp_path))
    script = f'{fakes}\nsystemctl() {{ echo "$@" > started; }}\nSKYPLAN_RANK=1\n{part}'
    subprocess.run(["bash", "-euc", script], cwd=tmp_path, check=True)
    generation, instance = said
    assert (tmp_path / "agent.env").read_text() == (
        f"SKYPLAN_GENERATION={generation}\nSKYPLAN_RANK=1\nSKYPLAN_INSTANCE_ID={instance}\n"
    )
    assert (tmp_path / "started").read_text() == "restart skyplan-agent.service\n"
    assert start.rstrip().endswith("exec sleep infinity")


def test_the_jobs_own_words_come_last_and_the_agents_before_what_the_boot_found(tmp_path):
    job = made(image=None, setup=None, env=(("MINE", "it's"), ("PYTHONPATH", "/mine")))
    launch = job[LAUNCH].replace("/run/skyplan", str(tmp_path)).replace("/opt/skyplan", str(tmp_path))
    (tmp_path / "env.sh").write_text(job["/opt/skyplan/env.sh"])
    (tmp_path / "boot.sh").write_text('declare -x NCCL_DEBUG="INFO"\ndeclare -x SKYPLAN_PROGRESS="stale"\n')
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "run.sh").write_text("env -0\n")
    agents = {
        "PATH": "/usr/bin:/bin",
        "SKYPLAN_PROGRESS": "/run/p",
        "SKYPLAN_CHECKPOINT_URI": "s3://acme-ckpt/llama/g3/",
        "PYTHONPATH": "/agents",
        "ODD": "a\nb'\"$c",
    }
    launch = launch.replace("cd -- /work", "")
    done = subprocess.run(["bash", "-c", launch], env=agents, capture_output=True, text=True, check=True, cwd=tmp_path)
    got = dict(pair.split("=", 1) for pair in done.stdout.split("\0") if pair)
    assert got["NCCL_DEBUG"] == "INFO"
    assert {name: got[name] for name in ("SKYPLAN_PROGRESS", "SKYPLAN_CHECKPOINT_URI", "ODD")} == {
        name: agents[name] for name in ("SKYPLAN_PROGRESS", "SKYPLAN_CHECKPOINT_URI", "ODD")
    }
    assert got["MINE"] == "it's"
    assert got["PYTHONPATH"] == "/agents:/mine"
    assert not any(name.startswith("_skyplan") for name in got)


def test_a_container_gets_what_the_agent_says_of_credentials():
    launch = made()[LAUNCH]
    (names,) = [line for line in launch.splitlines() if "SKYPLAN_* |" in line]
    assert {"AWS_*", "GOOGLE_*", "AZURE_*", "SKYPLAN_*"} <= set(names.split(")")[0].replace(" ", "").split("|"))
    assert "--volume /run/skyplan/agent/job:/run/skyplan/agent/job" in launch
    assert "--pid host" in launch, "processes tell the agent their ids"
    assert "docker pull" not in launch


def test_the_unit_outlives_its_agent_and_ends_the_machine_where_none_can_run():
    unit = made()["/etc/systemd/system/skyplan-agent.service"]
    assert "KillMode=process" in unit
    assert "FailureAction=poweroff" in unit
    assert "Restart=" in unit
    assert "run --config /opt/skyplan/agent.json -- /bin/bash /opt/skyplan/launch.sh" in unit
    assert not [path for path in made(agent=None) if "agent" in path or path == LAUNCH]


def test_it_fits_with_a_tunnel():
    under = {"agent": AGENT, "project": "acme", "tunnel": TUNNEL, "addresses": (), "head": "10.251.0.1"}
    text = rendered(Cloud.AWS, Fabric.ETHERNET, "g5.xlarge", node_changes=under)
    assert len(packed(text, Cloud.AWS)) * 3 // 4 < LIMIT // 2


def test_the_agent_itself_runs_the_job_as_it_is_rendered(tmp_path):
    """Its own process, with what a node writes down; but for the services, which are not there."""
    job = made(Cloud.GCP, image=None, setup=None, env=(("MINE", "it's"),), node_changes={"nvme": False})
    document = json.loads(job["/opt/skyplan/agent.json"])
    for away in ("control_plane", "broker", "checkpoint"):
        del document[away]
    document |= {
        "stores": [],
        "run_folder": str(tmp_path / "run"),
        "state_folder": str(tmp_path / "state"),
        "end": ["touch", str(tmp_path / "ended")],
    }
    (tmp_path / "agent.json").write_text(json.dumps(document))
    (tmp_path / "job").mkdir()
    told = "import os, json, skyplan_job; skyplan_job.report(step=7); print(json.dumps(dict(os.environ)))"
    (tmp_path / "job" / "run.sh").write_text(f"python3 -c '{told}' > {tmp_path}/seen\n")
    (tmp_path / "env.sh").write_text(job["/opt/skyplan/env.sh"])
    (tmp_path / "boot.sh").write_text('declare -x MASTER_ADDR="10.7.16.10"\n')
    launch = job[LAUNCH].replace("/run/skyplan/boot", f"{tmp_path}/boot").replace("/opt/skyplan", str(tmp_path))
    (tmp_path / "launch.sh").write_text(launch.replace("cd -- /work", ""))
    done = subprocess.run(
        [sys.executable, "-m", "modules.agent", "run", "--config", "agent.json", "--", "/bin/bash", "launch.sh"],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(__file__).parents[3]),
            "SKYPLAN_GENERATION": "3",
            "SKYPLAN_RANK": "1",
            "SKYPLAN_INSTANCE_ID": "skyplan-acme-x-g3-r01",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "ended").exists(), "the machine's end is the agent's"
    seen = json.loads((tmp_path / "seen").read_text())
    assert (seen["SKYPLAN_RUN"], seen["SKYPLAN_RANK"], seen["MASTER_ADDR"]) == ("llama3-8b-sft-g3", "1", "10.7.16.10")
    assert seen["MINE"] == "it's"
    (progress,) = (tmp_path / "run" / "job").glob("*.progress")
    assert "7" in progress.read_text(), "the helper that the agent puts on the path was imported, and told its step"


def test_proofs_name_an_application_where_the_platform_makes_none_for_an_address():
    agent = replace(AGENT, audience="api://skyplan", broker_audience="api://skyplan-broker")
    here = {"SKYPLAN_GENERATION": "3", "SKYPLAN_RANK": "1", "SKYPLAN_INSTANCE_ID": "train-g3-r1"}
    found = settings.parse(json.loads(made(Cloud.AZURE, agent=agent)["/opt/skyplan/agent.json"]), here)
    assert found.control_plane is not None
    assert found.broker is not None
    assert (found.control_plane.audience, found.broker.audience) == ("api://skyplan", "api://skyplan-broker")


def test_no_end_of_the_agent_leaves_the_machine_on():
    """A failed job's agent ends with the job's code, is started again, and ends the machine again: not without end, should that fail."""
    unit = configparser.ConfigParser(strict=True, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment]  # systemd minds case
    unit.read_string(made()["/etc/systemd/system/skyplan-agent.service"])
    about, service = unit["Unit"], unit["Service"]
    assert [about[f"{end}Action"] for end in ("Success", "Failure", "StartLimit")] == ["poweroff"] * 3
    # one that dies at once reaches the limit, one that dies once a minute does not
    seconds, starts = int(about["StartLimitIntervalSec"]), int(about["StartLimitBurst"])
    assert int(service["RestartSec"]) * starts < seconds < 60 * starts
    assert service["Restart"] == "on-failure"
    assert set(service["RestartPreventExitStatus"].split()) == {str(errors.USAGE), str(errors.CONFIG)}
    assert int(service["TimeoutStopSec"]) > parting.MOST_SECONDS
