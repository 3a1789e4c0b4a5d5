"""Nebius: the security contract of its stacks, what buys which capacity, golden bytes, and real Terraform over the provider's whole schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modules import schema
from modules.user_data import node_of, user_data
from planner.model.offer import CapacityType, Fabric
from planner.model.project import OwnNetwork
from planner.model.stack import rank_key
from stacks.wiring import access_variables, compute_variables
from tests.emulators import terraform as machine
from tests.emulators.stub_provider import alive
from tests.stacks import nebius_inputs as inputs

GOLDEN = Path(__file__).with_name("golden") / "nebius"
CASES = {
    "net": inputs.network(),
    "acc": inputs.access(),
    "cmp-spot": inputs.compute(),
    "cmp-on-demand": inputs.single(),
    "cmp-reserved": inputs.compute(capacity=CapacityType.RESERVED, reservation="capacityblockgroup-e00acme"),
    "cmp-multi-ethernet": inputs.compute(
        capacity=CapacityType.ON_DEMAND, node=inputs.template(fabric=Fabric.ETHERNET, fabric_name="", cluster=False)
    ),
}


@pytest.fixture(scope="session")
def documents(render):
    return {name: render(given) for name, given in CASES.items()}


def resources(document):
    return [(kind, name, body) for kind, named in document.get("resource", {}).items() for name, body in named.items()]


def node(document):
    return document["resource"]["nebius_compute_v1_instance"]["node"]


# ---- bytes and schema


@pytest.mark.parametrize("name", CASES)
def test_golden(documents, name, request):
    document = json.loads(json.dumps(documents[name]))
    if name.startswith("cmp"):
        node(document)["cloud_init_user_data"] = "(pinned in tests/unit/modules)"
    made = json.dumps(document, indent=2, sort_keys=True) + "\n"
    golden = GOLDEN / f"{name}.tf.json"
    if request.config.getoption("--update-golden", default=False):
        golden.write_text(made, encoding="utf-8")
    assert made == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_what_is_written_is_what_the_provider_takes(documents, name):
    known = schema.load("nebius", "0.6.32")
    meta = {"for_each", "lifecycle", "depends_on"}
    for kind, label, body in resources(documents[name]):
        known.check_resource(kind, {k: v for k, v in body.items() if k not in meta}, f"{kind}.{label}")


def test_an_expression_may_stand_for_a_nested_attribute_only_where_it_is_one():
    whole = {"network_interfaces": "${var.interfaces}"}
    nebius = {"parent_id": "p", "resources": {"platform": "c"}, "boot_disk": {"attach_mode": "READ_WRITE"}}
    schema.load("nebius").check_resource("nebius_compute_v1_instance", {**nebius, **whole}, "a")
    with pytest.raises(schema.SchemaMismatch, match="network_interfaces"):
        schema.load("nebius").check_resource(
            "nebius_compute_v1_instance", {**nebius, "network_interfaces": "eth0"}, "a"
        )
    with pytest.raises(schema.SchemaMismatch, match="launch_template"):
        schema.load("aws").check_resource("aws_instance", {"launch_template": "${var.template}"}, "a")


# ---- the network


def test_a_network_that_jobs_share_lets_no_job_reach_another(documents):
    assert not any("security" in kind for kind, _, _ in resources(documents["net"]))
    assert documents["net"]["output"]["security_group_ids"]["value"] == []


def test_the_way_out_exists_before_a_node_can_be_there(documents):
    made = documents["net"]["resource"]
    route, subnet = made["nebius_vpc_v1_route"]["out"], made["nebius_vpc_v1_subnet"]["private"]
    assert route["destination"] == {"cidr": "0.0.0.0/0"}
    assert route["next_hop"] == {"default_egress_gateway": True}
    assert route["parent_id"] == "${nebius_vpc_v1_route_table.out.id}" == subnet["route_table_id"]
    assert subnet["depends_on"] == ["nebius_vpc_v1_route.out"]


def test_the_regions_subnet_has_its_own_range_under_the_empty_key(documents):
    subnet = documents["net"]["resource"]["nebius_vpc_v1_subnet"]["private"]
    assert subnet["for_each"] == {"region": "10.128.0.0/20"}
    assert subnet["ipv4_private_pools"]["use_network_pools"] is False
    assert documents["net"]["output"]["subnet_ids"]["value"] == {"": '${nebius_vpc_v1_subnet.private["region"].id}'}


def test_the_users_own_network_is_handed_on_untouched(render):
    own = OwnNetwork(
        region="eu-north1", vpc_id="vpcnetwork-1", subnets=(("", "vpcsubnet-1"),), security_group_ids=("sg-1",)
    )
    made = render(inputs.network(own=own, account=None))
    assert "resource" not in made
    assert "data" not in made
    assert {name: value["value"] for name, value in made["output"].items()} == {
        "network_id": "vpcnetwork-1",
        "subnet_ids": {"": "vpcsubnet-1"},
        "security_group_ids": ["sg-1"],
    }


# ---- access


def test_nothing_but_the_jobs_own_nodes_may_open_a_connection(documents):
    rules = documents["acc"]["resource"]["nebius_vpc_v1_security_rule"]
    group = "${nebius_vpc_v1_security_group.nodes.id}"
    assert [r["ingress"] for r in rules.values() if "ingress" in r] == [{"source_security_group_id": group}]
    assert {r["parent_id"] for r in rules.values()} == {group}
    outside = [r["egress"] for r in rules.values() if "0.0.0.0/0" in r.get("egress", {}).get("destination_cidrs", [])]
    assert outside == [{"destination_cidrs": ["0.0.0.0/0"], "destination_ports": [80, 443]}]


def test_every_egress_rule_to_addresses_names_its_ports(documents):
    for rule in documents["acc"]["resource"]["nebius_vpc_v1_security_rule"].values():
        if "destination_cidrs" in rule.get("egress", {}):
            assert rule["egress"]["destination_ports"], "no ports means every port"
            assert len(rule["egress"]["destination_cidrs"]) <= 8


def test_the_node_has_one_group_and_that_may_read_one_secret(documents):
    made = documents["acc"]["resource"]
    assert made["nebius_iam_v1_group"]["node"]["parent_id"] == inputs.TENANT
    assert made["nebius_iam_v1_group_membership"]["node"]["member_id"] == "${nebius_iam_v1_service_account.node.id}"
    permits = [(p["resource_id"], p["role"]) for p in made["nebius_iam_v1_access_permit"].values()]
    assert permits == [("mbsec-e00acme", "mysterybox.payload-viewer")]


def test_buckets_are_their_owners_to_open(documents):
    assert not any("storage" in kind for kind, _, _ in resources(documents["acc"]))
    texts = documents["acc"]["output"]["data_snippets"]["value"]
    assert len(texts) == 2
    assert all(inputs.GROUP in text for text in texts)


def test_without_a_tenant_there_is_no_group_and_no_right(render):
    made = render(inputs.access(tenant=None))["resource"]
    assert "nebius_iam_v1_service_account" in made
    assert not {"nebius_iam_v1_group", "nebius_iam_v1_group_membership", "nebius_iam_v1_access_permit"} & set(made)


def test_a_gpu_cluster_stands_on_the_regions_fabric_for_infiniband_only(documents):
    (cluster,) = documents["acc"]["resource"]["nebius_compute_v1_gpu_cluster"].values()
    assert cluster["infiniband_fabric"] == "fabric-3"
    launch = documents["acc"]["output"]["launch"]["value"]
    assert launch[f"{inputs.INFINIBAND}/"]["gpu_cluster_id"].startswith("${nebius_compute_v1_gpu_cluster.")
    assert launch[f"{inputs.SINGLE}/"]["gpu_cluster_id"] == ""


@pytest.mark.parametrize("changes", [{"fabric_name": ""}, {"key": f"{inputs.SINGLE}/", "instance_type": inputs.SINGLE}])
def test_infiniband_without_a_fabric_or_with_a_small_preset_is_a_mistake(render, changes):
    with pytest.raises(ValueError, match="no GPU cluster"):
        render(inputs.access(templates=(inputs.template(**changes),)))


# ---- nodes


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("cmp")])
def test_nodes_are_hardened_whatever_the_capacity(documents, name):
    made = node(documents[name])
    (card,) = made["network_interfaces"]
    assert "public_ip_address" not in card
    assert card["security_groups"] == "${[for id in var.security_group_ids : { id = id }]}"
    disk = made["boot_disk"]["managed_disk"]["spec"]
    assert disk["disk_encryption"] == {"type": "DISK_ENCRYPTION_MANAGED"}
    assert (disk["type"], disk["size_gibibytes"]) == ("NETWORK_SSD_NON_REPLICATED", 279)
    assert made["recovery_policy"] == "FAIL", "by default a node that powers itself off is started again, and billed"
    assert made["lifecycle"] == {"ignore_changes": "all"}


def test_each_capacity_has_its_own_fields_and_no_others(documents):
    said = {
        name: {
            field: node(documents[name])[field]
            for field in ("preemptible", "reservation_policy")
            if field in node(documents[name])
        }
        for name in ("cmp-spot", "cmp-on-demand", "cmp-reserved")
    }
    assert said == {
        "cmp-spot": {"preemptible": {"on_preemption": "STOP"}},
        "cmp-on-demand": {"reservation_policy": {"policy": "FORBID"}},
        "cmp-reserved": {"reservation_policy": {"policy": "STRICT", "reservation_ids": ["capacityblockgroup-e00acme"]}},
    }


def test_only_nodes_on_infiniband_join_the_cluster(documents):
    joined = {name: node(documents[name]).get("gpu_cluster") for name in CASES if name.startswith("cmp")}
    cluster = {"id": "${var.gpu_cluster_id}"}
    assert joined == {
        "cmp-spot": cluster,
        "cmp-on-demand": None,
        "cmp-reserved": cluster,
        "cmp-multi-ethernet": None,
    }


@pytest.mark.parametrize(("asked", "made"), [(1, 93), (93, 93), (94, 186), (200, 279)])
def test_a_disk_is_as_large_as_asked_in_steps_of_93_gib(render, asked, made):
    document = render(inputs.single(node=inputs.plain_template(disk_gb=asked)))
    assert node(document)["boot_disk"]["managed_disk"]["spec"]["size_gibibytes"] == made


def test_planned_addresses_are_reserved_and_others_left_to_the_cloud(documents):
    reserved = documents["cmp-spot"]["resource"]["nebius_vpc_v1_allocation"]["node"]
    assert reserved["for_each"] == {"r00": "10.128.0.10", "r01": "10.128.0.11"}
    assert reserved["ipv4_private"] == {"cidr": "${each.value}/32", "subnet_id": "${var.subnet_id}"}
    (card,) = node(documents["cmp-spot"])["network_interfaces"]
    assert card["ip_address"] == {"allocation_id": "${nebius_vpc_v1_allocation.node[each.key].id}"}
    (card,) = node(documents["cmp-on-demand"])["network_interfaces"]
    assert card["ip_address"] == {}
    assert "nebius_vpc_v1_allocation" not in documents["cmp-on-demand"]["resource"]


def test_local_disks_are_asked_for_where_the_type_has_them(render, documents):
    assert "local_disks" not in node(documents["cmp-spot"])
    made = node(render(inputs.compute(node=inputs.template(nvme=True))))
    assert made["local_disks"] == {"passthrough_group": {"requested": True}}


def test_a_pinned_image_is_an_id_and_a_family_a_family(render, documents):
    spec = node(documents["cmp-spot"])["boot_disk"]["managed_disk"]["spec"]
    assert spec["source_image_family"] == {"image_family": "ubuntu24.04-cuda13.0"}
    pinned = node(render(inputs.single(node=inputs.plain_template(machine_image="computeimage-e00acme"))))
    spec = pinned["boot_disk"]["managed_disk"]["spec"]
    assert spec["source_image_id"] == "computeimage-e00acme"
    assert "source_image_family" not in spec


def test_64_nodes_are_one_resource(render):
    given = inputs.compute(nodes=64, addresses=tuple(f"10.128.1.{n}" for n in range(64)))
    made = render(given)["resource"]
    assert list(made["nebius_compute_v1_instance"]) == ["node"]
    assert len(node({"resource": made})["for_each"]) == 64


def test_a_stack_without_nodes_to_boot_is_a_mistake(render):
    with pytest.raises(ValueError, match="what the nodes are"):
        render(inputs.compute(node=None))


# ---- all of them


def test_every_resource_has_the_labels(documents):
    for stack, document in documents.items():
        for kind, name, body in resources(document):
            labels = body["labels"]
            assert (labels["skyplan-project"], labels["skyplan-managed"]) == ("acme", "true"), (stack, kind, name)
            assert (labels.get("skyplan-job") == "llama3-8b-sft") == (stack != "net")
            assert ("skyplan-generation" in labels) == stack.startswith("cmp")
    assert node(documents["cmp-spot"])["labels"]["skyplan-rank"] == "${each.key}"


def test_nothing_is_authoritative_and_nothing_is_public(documents):
    for document in documents.values():
        for kind, _, body in resources(document):
            assert kind not in {"nebius_storage_v1_bucket", "nebius_iam_v1_federation"}
            assert "public_ip_address" not in json.dumps(body)
            assert "ipv4_public" not in body


def test_credentials_are_the_callers(documents, render):
    (settings,) = documents["acc"]["provider"]["nebius"]
    assert settings == {"parent_id": inputs.PROJECT, "retries": 3, "timeout": "1m"}
    unknown = render(inputs.compute(account=None))
    assert unknown["provider"]["nebius"][0]["profile"] == {}
    assert node(unknown)["parent_id"] == "${data.nebius_parent_id.here.parent_id}"
    assert "p0123456789" not in json.dumps(unknown["resource"]), "the plan is an output, never a label"
    (settings,) = render(inputs.compute(role_arn="serviceaccount-e00acme"))["provider"]["nebius"]
    assert settings["impersonate_service_account_id"] == "serviceaccount-e00acme"


def test_how_billing_ends_is_said(documents):
    said = documents["cmp-spot"]["output"]["billing_end"]["value"]
    assert "powers itself off" in said
    assert "disk is billed until the instance is deleted" in said


# ---- Terraform's own opinion

CAPACITY = "NotEnoughResources: not enough resources to start gpu-h100-sxm"


@pytest.fixture
def cloud(tmp_path):
    """Terraform whose Nebius is the stub; the stub's log is the cloud."""
    if reason := machine.missing(aws=False):
        pytest.skip(reason)
    stub = {"nebius": machine.SCHEMAS / "nebius.json.gz"}
    return machine.prepare(tmp_path / "home", stubs=stub, STUB_LOG=str(tmp_path / "cloud.jsonl"))


def in_folder(folder, document, variables):
    folder.mkdir()
    (folder / "cdk.tf.json").write_text(json.dumps(document), encoding="utf-8")
    (folder / "skyplan.auto.tfvars.json").write_text(json.dumps(variables), encoding="utf-8")
    return folder


def outputs(terraform, folder):
    return {name: value["value"] for name, value in json.loads(terraform.ok(folder, "output", "-json")).items()}


def exists(folder):
    return alive([json.loads(line) for line in (folder / "cloud.jsonl").read_text().splitlines()])


@pytest.mark.terraform
@pytest.mark.parametrize("name", ["cmp-on-demand", "cmp-reserved", "cmp-unknown-project"])
def test_terraform_finds_nothing_wrong(cloud, documents, render, tmp_path, name):
    document = documents.get(name) or render(inputs.compute(account=None, role_arn="serviceaccount-e00acme"))
    folder = in_folder(tmp_path / "stack", document, {})
    cloud.ok(folder, "init")
    cloud.ok(folder, "validate")


@pytest.mark.terraform
def test_a_job_comes_up_stays_as_it_is_and_leaves_nothing(cloud, documents, tmp_path):
    net = in_folder(tmp_path / "net", documents["net"], {})
    cloud.ok(net, "init")
    cloud.ok(net, "apply", "-auto-approve")
    acc = in_folder(tmp_path / "acc", documents["acc"], access_variables(inputs.access(), outputs(cloud, net)))
    cloud.ok(acc, "init")
    cloud.ok(acc, "apply", "-auto-approve")
    launch = compute_variables(inputs.compute(), outputs(cloud, acc))
    assert len(launch["security_group_ids"]) == 1
    cmp = in_folder(tmp_path / "cmp", documents["cmp-spot"], launch)
    cloud.ok(cmp, "init")

    no_room = "nebius_compute_v1_instance[resources.platform=gpu-h100-sxm,preemptible.on_preemption=STOP]:" + CAPACITY
    failed = cloud.run(cmp, "apply", "-auto-approve", STUB_FAIL=no_room)
    assert failed.returncode == 1
    assert "NotEnoughResources" in failed.stdout
    cloud.ok(cmp, "destroy", "-auto-approve")
    assert not any("instance" in kind or "allocation" in kind for kind, _ in exists(tmp_path))

    cloud.ok(cmp, "apply", "-auto-approve")
    machines = {key: state for key, state in exists(tmp_path).items() if key[0] == "nebius_compute_v1_instance"}
    assert sorted(state["name"] for state in machines.values()) == [
        "skyplan-acme-llama3-8b-sft-g3-r00",
        "skyplan-acme-llama3-8b-sft-g3-r01",
    ]
    text = user_data(inputs.workload(), node_of(inputs.template(), inputs.compute()))
    assert "${" in text
    for state in machines.values():
        assert state["network_interfaces"][0]["security_groups"] == [{"id": launch["security_group_ids"][0]}]
        assert state["cloud_init_user_data"] == text, "the shell's own signs arrive as they were"
    told = outputs(cloud, cmp)["nodes"]
    assert sorted(told) == [rank_key(0), rank_key(1)]
    assert {facts["instance_id"] for facts in told.values()} == {identity for _, identity in machines}
    assert all(facts["private_ip"] and facts["cloud"] == "nebius" for facts in told.values())
    for folder in (net, acc, cmp):
        cloud.ok(folder, "plan", "-detailed-exitcode")
    for folder in (cmp, acc, net):
        cloud.ok(folder, "destroy", "-auto-approve")
    assert exists(tmp_path) == {}
