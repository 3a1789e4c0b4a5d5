"""User data: valid cloud-init, quoted for every shell that reads it, within EC2's limit, without secrets."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from modules.user_data import LIMIT, Node, user_data, yaml_string
from planner.model.errors import InputError
from planner.model.offer import Cloud, Fabric
from planner.model.workload import Resources
from tests.stacks import inputs

NODE = Node(
    cloud=Cloud.AWS,
    region="us-east-1",
    instance_type="p4d.24xlarge",
    gpus=8,
    nvme=True,
    fabric=Fabric.EFA,
    efa=4,
    addresses=("10.7.16.10", "10.7.16.11"),
    head="10.7.16.10",
)
GOLDEN = Path(__file__).with_name("golden")
#: what can stand in an environment variable: any text without NUL (and without what YAML and UTF-8 cannot hold)
VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


def files(text):
    return {found["path"]: found["content"] for found in yaml.safe_load(text)["write_files"]}


def single(**changes):
    workload = inputs.workload(**changes)
    return replace(workload, resources=replace(workload.resources, nodes=1))


@pytest.mark.parametrize(
    ("name", "workload", "node"),
    [
        ("two-nodes-efa", inputs.workload(), NODE),
        (
            "one-node-bare",
            single(image=None, setup=None, secrets=(), registry_auth=None, workdir="/srv/it's"),
            replace(NODE, efa=0, fabric=Fabric.ETHERNET, nvme=False, addresses=(), head=None),
        ),
    ],
)
def test_golden(name, workload, node, request):
    made = user_data(workload, node)
    made = "".join(f"--- {path}\n{content}" for path, content in files(made).items())
    golden = GOLDEN / f"{name}.txt"
    if request.config.getoption("--update-golden", default=False):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(made, encoding="utf-8")
    assert made == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("image", [True, False])
@pytest.mark.parametrize("nvme", [True, False])
def test_every_script_is_valid_shell(nodes, image, nvme):
    workload = inputs.workload() if image else inputs.workload(image=None, registry_auth=None)
    workload = replace(workload, resources=Resources(accelerators=(), nodes=nodes))
    for path, content in files(user_data(workload, replace(NODE, nvme=nvme))).items():
        done = subprocess.run(["bash", "-n"], input=content, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{path}: {done.stderr}"


@given(value=VALUES)
def test_an_environment_value_arrives_as_it_was_written(value):
    made = files(user_data(inputs.workload(env=(("V", value),)), NODE))["/opt/skyplan/env.sh"]
    done = subprocess.run(
        ["bash", "-c", made + 'printf %s "$V"'], capture_output=True, check=True, env={"PATH": "/usr/bin:/bin"}
    )
    assert done.stdout.decode() == value


@given(value=VALUES)
def test_a_yaml_string_is_read_back_as_it_was(value):
    assert yaml.safe_load(yaml_string(value)) == value


@pytest.mark.parametrize("path", ["a b", "x'; rm -rf / #", "$(id)", '"', "`id`"])
def test_names_of_secrets_run_no_commands(path):
    workload = inputs.workload(secrets=(replace(inputs.workload().secrets[0], path=path),))
    start = files(user_data(workload, NODE))["/opt/skyplan/start.sh"]
    line = next(line for line in start.splitlines() if line.startswith('value="$(secret'))
    done = subprocess.run(
        ["bash", "-c", 'secret() { printf %s "$1"; }\n' + line + '\nprintf %s "$value"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == path


def test_secrets_live_in_memory_and_only_their_names_in_user_data():
    start = files(user_data(inputs.workload(), NODE))["/opt/skyplan/start.sh"]
    assert "secret acme/hf us-east-1" in start
    assert "/run/skyplan/secrets.sh" in start  # /run is memory-backed
    assert "umask 077" in start


@pytest.mark.parametrize(("address", "rank"), [("10.7.16.10", 0), ("10.7.16.11", 1)])
def test_the_rank_is_the_place_of_the_nodes_own_address(address, rank):
    start = files(user_data(inputs.workload(), NODE))["/opt/skyplan/start.sh"]
    found = start[start.index("SKYPLAN_RANK=-1") : start.index("MASTER_PORT")]
    script = f'SKYPLAN_ADDRESS={address}\nmeta() {{ return 1; }}\n{found}\necho "$SKYPLAN_RANK $MASTER_ADDR"'
    done = subprocess.run(["bash", "-eu", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(rank), "10.7.16.10"]


@pytest.mark.parametrize(("tag", "rank"), [("r00", "0"), ("r01", "1"), ("r09", "9"), ("r12", "12")])
def test_without_a_known_address_the_launchs_tag_says_the_rank(tag, rank):
    start = files(user_data(inputs.workload(), replace(NODE, addresses=())))["/opt/skyplan/start.sh"]
    found = start[start.index("SKYPLAN_RANK=-1") : start.index("MASTER_PORT")]
    script = f'SKYPLAN_ADDRESS=10.0.0.9\nmeta() {{ echo {tag}; }}\n{found}\necho "$SKYPLAN_RANK"'
    done = subprocess.run(["bash", "-eu", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [rank]


def test_several_nodes_without_a_head_are_refused():
    with pytest.raises(ValueError, match="rank 0"):
        user_data(inputs.workload(), replace(NODE, head=None))


def test_a_secret_named_by_arn_is_read_in_its_own_region():
    arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:hf-AbCdEf"
    workload = inputs.workload(secrets=(replace(inputs.workload().secrets[0], path=arn),))
    assert f"secret {arn} eu-west-1" in files(user_data(workload, NODE))["/opt/skyplan/start.sh"]


def test_the_jobs_environment_comes_after_all_that_skyplan_runs():
    start = files(user_data(inputs.workload(env=(("PATH", "/mine"),)), NODE))["/opt/skyplan/start.sh"]
    assert start.index("docker pull") < start.index(". /opt/skyplan/env.sh") < start.index("compgen")


def test_a_node_without_a_rank_stops_instead_of_guessing():
    start = files(user_data(inputs.workload(), NODE))["/opt/skyplan/start.sh"]
    found = start[start.index("SKYPLAN_RANK=-1") : start.index("MASTER_PORT")]
    script = f"SKYPLAN_ADDRESS=10.0.0.9\nmeta() {{ return 1; }}\n{found}"
    assert subprocess.run(["bash", "-eu", "-c", script], capture_output=True, check=False).returncode == 70


def test_r27_the_machine_ends_itself_whatever_happens():
    start = files(user_data(inputs.workload(), NODE))["/opt/skyplan/start.sh"]
    assert start.index("trap ") < start.index("secretsmanager")
    assert "shutdown -h" in start


def test_an_image_is_pinned_by_its_digest():
    start = files(user_data(inputs.workload(), NODE))["/opt/skyplan/start.sh"]
    assert "docker pull --quiet ghcr.io/acme/train:1.4@sha256:" in start
    assert "docker login" in start


def test_efa_gets_its_setting_and_one_node_no_interface_names():
    two = files(user_data(inputs.workload(), NODE))["/opt/skyplan/nccl.sh"]
    one = files(user_data(single(), replace(NODE, efa=0, fabric=Fabric.ETHERNET)))["/opt/skyplan/nccl.sh"]
    assert "FI_EFA_USE_HUGE_PAGE=0" in two
    assert "NCCL_SOCKET_IFNAME" in two
    assert "export" not in one


def test_too_long_is_said_with_both_numbers():
    with pytest.raises(InputError) as refused:
        user_data(inputs.workload(run="x" * LIMIT), NODE)
    assert str(LIMIT) in refused.value.diagnostics[0].summary
