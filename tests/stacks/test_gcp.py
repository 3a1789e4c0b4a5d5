"""What GCP's stacks must hold: nothing open, rights on data only, a fabric of the job's own, capacity really as bought, an end to billing.

Run against the provider's schema by the stub, never against live Google Cloud.
"""

from __future__ import annotations

import json
from dataclasses import replace
from ipaddress import ip_network
from itertools import combinations
from pathlib import Path

import pytest

from planner.iam import gcp as iam
from planner.model.offer import CapacityType, Fabric
from planner.model.project import OwnNetwork
from stacks.runner import Terraform, TerraformError
from stacks.wiring import access_variables, compute_variables
from tests.emulators import stub_provider
from tests.emulators import terraform as machine
from tests.stacks import gcp_inputs as inputs

GOLDEN = Path(__file__).with_name("golden") / "gcp"
FABRICS = [Fabric.TCPX, Fabric.TCPXO, Fabric.ROCE]
#: resource types of the Google provider that take labels, of those that are used
LABELLED = {"google_compute_instance"}
ACCOUNT = "${google_service_account.nodes.email}"


@pytest.fixture(scope="session")
def documents(render):
    return {given.name[:3]: render(given) for given in inputs.everything()}


def node(document):
    return document["resource"]["google_compute_instance"]["node"]


def resources(document):
    return [(kind, name, body) for kind, named in document.get("resource", {}).items() for name, body in named.items()]


@pytest.mark.parametrize("given", inputs.everything(), ids=lambda given: given.name)
def test_golden(render, given, request):
    from planner.model.digest import pretty

    made = pretty(render(given))
    golden = GOLDEN / f"{given.name}.tf.json"
    if request.config.getoption("--update-golden", default=False):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_bytes(made)
    assert made.decode() == golden.read_text(encoding="utf-8")


# ---- the network


def test_the_shared_network_opens_nothing_and_has_a_way_out(documents):
    made = documents["net"]["resource"]
    assert "google_compute_firewall" not in made
    assert made["google_compute_network"]["net"]["auto_create_subnetworks"] is False
    nat = made["google_compute_router_nat"]["net"]
    assert nat["source_subnetwork_ip_ranges_to_nat"] == "LIST_OF_SUBNETWORKS"
    zones = [f'${{google_compute_subnetwork.private["{zone}"].id}}' for zone, _ in inputs.ZONES]
    assert [subnet["name"] for subnet in nat["subnetwork"]] == zones
    assert nat["router"] == "${google_compute_router.net.name}"
    assert nat["enable_endpoint_independent_mapping"] is False, "the two cannot be had together"


def test_a_subnet_per_zone_with_private_google_access_and_flow_logs(documents):
    subnets = documents["net"]["resource"]["google_compute_subnetwork"]["private"]
    assert {zone: subnet["cidr"] for zone, subnet in subnets["for_each"].items()} == dict(inputs.ZONES)
    assert subnets["private_ip_google_access"] is True
    assert 0 < subnets["log_config"]["flow_sampling"] <= 1
    names = [subnet["name"] for subnet in subnets["for_each"].values()]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 63 for name in names)


def test_a_regional_subnet_has_a_name_too(render):
    made = render(inputs.network(zones=(("", "10.42.0.0/20"),)))
    (subnet,) = made["resource"]["google_compute_subnetwork"]["private"]["for_each"].values()
    assert subnet["name"].endswith("-region")


def test_the_users_own_network_is_handed_on_untouched(render):
    link = "projects/host/regions/us-central1/subnetworks/gpu"
    own = OwnNetwork(
        region="us-central1", vpc_id="projects/host/global/networks/gpu", subnets=(("us-central1-a", link),)
    )
    made = render(inputs.network(own=own))
    assert "resource" not in made
    assert made["output"]["network"]["value"] == "projects/host/global/networks/gpu"
    assert made["output"]["subnet_ids"]["value"] == {"us-central1-a": link}


# ---- access


def test_only_the_jobs_own_nodes_may_open_a_connection(documents):
    peers = documents["acc"]["resource"]["google_compute_firewall"]["peers"]
    assert peers["source_service_accounts"] == peers["target_service_accounts"] == [ACCOUNT]
    assert "source_ranges" not in peers
    assert peers["network"] == "${var.network}"


def test_rules_of_fabrics_admit_only_their_own_subnet(documents):
    made = documents["acc"]["resource"]
    for name, rule in made["google_compute_firewall"].items():
        if name in {"peers", "rest-inbound"}:
            continue
        subnet = made["google_compute_subnetwork"][name]
        assert rule["source_ranges"] == [subnet["ip_cidr_range"]]
        assert rule["network"] == subnet["network"] == f"${{google_compute_network.{name}.id}}"
        assert rule["target_service_accounts"] == [ACCOUNT]


def test_whoever_no_rule_of_the_jobs_allows_is_refused_before_the_networks_other_rules(render):
    made = render(inputs.access(templates=(inputs.single(session=True),)))["resource"]["google_compute_firewall"]
    rest = made.pop("rest-inbound")
    assert (rest["direction"], rest["network"]) == ("INGRESS", "${var.network}")
    assert (rest["source_ranges"], rest["deny"]) == (["0.0.0.0/0"], [{"protocol": "all"}])
    assert rest["target_service_accounts"] == [ACCOUNT]
    assert rest["description"]
    assert {name: rule["priority"] for name, rule in made.items()} == {"peers": 800, "session": 800}
    # the smaller number wins; 1000 is a rule's that names none, 65534 that of Google's default-allow-ssh
    assert rest["priority"] == 900


def test_people_come_in_by_iap_where_the_job_says_so(render, documents):
    assert "session" not in documents["acc"]["resource"]["google_compute_firewall"]
    made = render(inputs.access(templates=(inputs.single(session=True),)))["resource"]["google_compute_firewall"]
    assert made["session"]["source_ranges"] == ["35.235.240.0/20"]
    assert made["session"]["allow"] == [{"protocol": "tcp", "ports": ["22"]}]
    assert made["session"]["target_service_accounts"] == [ACCOUNT]


def test_the_account_holds_data_rights_and_nothing_on_the_project(documents):
    made = documents["acc"]["resource"]
    grants = {kind: named for kind, named in made.items() if "_iam_" in kind}
    assert set(grants) == {"google_storage_managed_folder_iam_member", "google_secret_manager_secret_iam_member"}
    folders = {(g["bucket"], g["managed_folder"], g["role"]) for g in grants.popitem()[1].values() if "bucket" in g} | {
        (g["bucket"], g["managed_folder"], g["role"]) for g in made["google_storage_managed_folder_iam_member"].values()
    }
    assert folders == {
        ("acme-corpus", "llama/", "roles/storage.objectViewer"),
        ("acme-ckpt", "llama/", "roles/storage.objectViewer"),
        ("acme-ckpt", "llama/", "roles/storage.objectCreator"),
    }
    for named in (named for kind, named in made.items() if "_iam_" in kind):
        assert {g["member"] for g in named.values()} == {"${google_service_account.nodes.member}"}
    assert "google_service_account_key" not in made


def test_nothing_authoritative_is_made(documents):
    for document in documents.values():
        for kind, _, _ in resources(document):
            assert not kind.endswith(("_iam_policy", "_iam_binding", "_acl")), kind


def test_a_right_that_two_identities_need_is_made_once(render):
    (given,) = [g for g in inputs.GRANTS if g.resource == "gs://acme-ckpt/llama/"]
    both = (*inputs.GRANTS, replace(inputs.GRANTS[0], resource=given.resource))
    policies = iam.policies(both, account=inputs.ACCOUNT, region=inputs.REGION)
    made = render(inputs.access(policies=policies))["resource"]["google_storage_managed_folder_iam_member"]
    places = [(g["bucket"], g["managed_folder"], g["role"]) for g in made.values()]
    assert len(places) == len(set(places)) == 3


def test_users_words_are_words_to_terraform(render):
    grant = replace(inputs.GRANTS[0], resource="gs://acme-corpus/${a}%{b}/")
    policies = iam.policies((grant,), account=inputs.ACCOUNT, region=inputs.REGION)
    made = render(inputs.access(policies=policies))["resource"]["google_storage_managed_folder_iam_member"]
    assert [g["managed_folder"] for g in made.values()] == ["$${a}%%{b}/"]


@pytest.mark.parametrize(("fabric", "networks"), [(Fabric.TCPX, 4), (Fabric.TCPXO, 8), (Fabric.ETHERNET, 0)])
def test_a_network_per_card_without_a_way_out(render, fabric, networks):
    made = render(inputs.access(templates=(inputs.template(fabric),)))["resource"]
    found = made.get("google_compute_network", {})
    assert len(found) == networks
    for network in found.values():
        assert network["delete_default_routes_on_create"] is True
        assert network["mtu"] == 8244
    assert "google_compute_router" not in made


def test_rdma_has_its_profiles_network_and_a_second_plain_one(render):
    made = render(inputs.access(templates=(inputs.template(Fabric.ROCE),)))["resource"]
    networks = made["google_compute_network"]
    assert set(networks) == {"fabric-host", "fabric-roce-us-central1-b"}
    roce = networks["fabric-roce-us-central1-b"]
    assert roce["network_profile"].endswith("/projects/acme-ml/global/networkProfiles/us-central1-b-vpc-roce")
    assert {network["mtu"] for network in networks.values()} == {8896}
    inside = [s for s in made["google_compute_subnetwork"].values() if "roce" in s["network"]]
    assert len(inside) == 8
    # VPC firewall rules are not supported in a RoCE network
    assert not any("roce" in rule["network"] for rule in made["google_compute_firewall"].values())


def test_a_project_that_is_not_named_is_asked_for(render):
    made = render(inputs.access(account=None, templates=(inputs.template(Fabric.ROCE),)))
    assert made["data"]["google_project"] == {"here": {}}
    roce = made["resource"]["google_compute_network"]["fabric-roce-us-central1-b"]
    assert "/projects/${data.google_project.here.project_id}/global/" in roce["network_profile"]


@pytest.mark.parametrize("fabric", FABRICS)
def test_interfaces_of_one_node_never_share_addresses(render, fabric):
    given = inputs.access(templates=(inputs.template(fabric),))
    made = render(given)
    ranges = [ip_network(s["ip_cidr_range"]) for s in made["resource"]["google_compute_subnetwork"].values()]
    ranges += [ip_network(cidr) for _, cidr in inputs.ZONES] + [ip_network("172.17.0.0/16")]
    assert not any(one.overlaps(other) for one, other in combinations(ranges, 2))


def test_the_launch_output_is_what_the_compute_stack_asks_for(documents):
    from stacks.gcp import VARIABLES

    launch = documents["acc"]["output"]["launch"]["value"]
    assert set(launch) == {template.key for template in inputs.access().templates}
    for values in launch.values():
        assert set(values) == set(VARIABLES) == set(documents["cmp"]["variable"])
    pinned = launch["g2-standard-24/us-central1-a"]
    assert pinned["image"] == "projects/acme-ml/global/images/train-v7"
    assert (pinned["placement_policy"], pinned["fabric_subnets"]) == ("", [])


def test_a_placement_policy_per_template_and_none_where_the_type_has_none(render):
    given = inputs.access(templates=(inputs.template(), inputs.template(Fabric.ETHERNET), inputs.single()))
    made = render(given)["resource"]["google_compute_resource_policy"]
    assert set(made) == {"a3-megagpu-8g-us-central1-a", "a2-ultragpu-8g-us-central1-a"}
    for policy in made.values():
        assert policy["group_placement_policy"] == {"collocation": "COLLOCATED"}


# ---- compute


def test_compute_holds_nodes_and_nothing_else(documents):
    assert list(documents["cmp"]["resource"]) == ["google_compute_instance"]
    assert "data" not in documents["cmp"]
    made = node(documents["cmp"])
    assert made["for_each"] == dict(zip(("r00", "r01"), inputs.ADDRESSES, strict=True))
    assert made["lifecycle"] == {"ignore_changes": "all"}
    assert made["name"] == "skyplan-acme-llama3-8b-sft-g3-${each.key}"
    assert "p0123456789" not in json.dumps(made), "the plan is an output, never a label"


@pytest.mark.parametrize("fabric", [*FABRICS, Fabric.ETHERNET])
@pytest.mark.parametrize("bought", [inputs.on_demand, inputs.compute, inputs.reserved])
def test_nodes_are_hardened(render, fabric, bought):
    made = node(render(bought(inputs.template(fabric))))
    assert not any("access_config" in card or "ipv6_access_config" in card for card in made["network_interface"])
    assert made["can_ip_forward"] is False
    assert made["shielded_instance_config"] == {
        "enable_secure_boot": True,
        "enable_vtpm": True,
        "enable_integrity_monitoring": True,
    }
    assert {key: value for key, value in made["metadata"].items() if key != "user-data"} == {
        "enable-oslogin": "TRUE",
        "block-project-ssh-keys": "TRUE",
        "serial-port-enable": "FALSE",
        "disable-legacy-endpoints": "TRUE",
    }
    assert made["boot_disk"]["auto_delete"] is True
    assert made["service_account"] == {"email": "${var.node_account}", "scopes": ["cloud-platform"]}


def test_secure_boot_is_off_for_an_image_that_nobody_vouches_for(render):
    pinned = inputs.template(machine_image="projects/acme-ml/global/images/tcpxo-v7")
    shielded = node(render(inputs.compute(pinned)))["shielded_instance_config"]
    assert (shielded["enable_secure_boot"], shielded["enable_vtpm"]) == (False, True)


def test_disks_use_the_customers_key_where_one_is_given(render, documents):
    key = "projects/acme-keys/locations/us-central1/keyRings/r/cryptoKeys/disks"
    assert node(render(inputs.compute(kms_key_arn=key)))["boot_disk"]["kms_key_self_link"] == key
    assert "kms_key_self_link" not in node(documents["cmp"])["boot_disk"]


def test_spot_is_spot(render):
    made = node(render(inputs.compute()))
    assert made["scheduling"] == {
        "provisioning_model": "SPOT",
        "preemptible": True,
        "automatic_restart": False,
        "on_host_maintenance": "TERMINATE",
        "instance_termination_action": "DELETE",
    }
    assert "reservation_affinity" not in made


def test_on_demand_carries_no_field_of_spot_and_no_reservation(render):
    made = node(render(inputs.on_demand()))
    assert made["scheduling"] == {
        "provisioning_model": "STANDARD",
        "automatic_restart": False,
        "on_host_maintenance": "TERMINATE",
    }
    assert made["reservation_affinity"] == {"type": "NO_RESERVATION"}


def test_a_reservation_is_targeted_and_shares_the_policy_only_if_it_was_made_in_it(render):
    made = node(render(inputs.reserved()))
    assert made["reservation_affinity"] == {
        "type": "SPECIFIC_RESERVATION",
        "specific_reservation": {"key": "compute.googleapis.com/reservation-name", "values": ["acme-h100"]},
    }
    assert made["scheduling"]["provisioning_model"] == "STANDARD"
    assert "resource_policies" not in made
    assert node(render(inputs.reserved(in_group=True)))["resource_policies"] == ["${var.placement_policy}"]


def test_a_block_bought_for_a_time_ends_its_nodes(render):
    made = node(render(inputs.reserved(capacity_block=True)))["scheduling"]
    assert (made["provisioning_model"], made["instance_termination_action"]) == ("RESERVATION_BOUND", "DELETE")


@pytest.mark.parametrize("bought", [inputs.on_demand, inputs.compute, inputs.reserved])
def test_the_hard_end_is_the_clouds(render, bought):
    made = node(render(bought(inputs.template(stop_after_hours=1.5))))["scheduling"]
    assert made["max_run_duration"] == {"seconds": 5400}
    assert made["instance_termination_action"] == "DELETE"


@pytest.mark.parametrize(("hours", "seconds"), [(0.001, 60), (10_000.0, 120 * 86_400)])
def test_a_hard_end_stays_in_what_the_cloud_takes(render, hours, seconds):
    made = node(render(inputs.on_demand(inputs.single(stop_after_hours=hours))))["scheduling"]
    assert made["max_run_duration"] == {"seconds": seconds}


def test_billing_end_names_the_disk_that_is_billed_on(documents):
    text = documents["cmp"]["output"]["billing_end"]["value"]
    assert "disk" in text
    assert "until the node is deleted" in text


@pytest.mark.parametrize(
    ("fabric", "kinds"),
    [
        (Fabric.TCPX, ["GVNIC"] * 5),
        (Fabric.TCPXO, ["GVNIC"] * 9),
        (Fabric.ROCE, ["GVNIC"] * 2 + ["MRDMA"] * 8),
        (Fabric.ETHERNET, ["GVNIC"]),
    ],
)
def test_interfaces_and_their_subnets_are_as_many_as_the_fabric_has(render, fabric, kinds):
    template = inputs.template(fabric)
    cards = node(render(inputs.compute(template)))["network_interface"]
    assert [card["nic_type"] for card in cards] == kinds
    launch = render(inputs.access(templates=(template,)))["output"]["launch"]["value"][template.key]
    assert len(launch["fabric_subnets"]) == len(cards) - 1
    assert [card["subnetwork"] for card in cards[1:]] == [
        f"${{var.fabric_subnets[{n}]}}" for n in range(len(cards) - 1)
    ]
    assert cards[0]["network_ip"] == '${each.value == "" ? null : each.value}'


def test_addresses_left_to_the_cloud_are_not_asked_for(render):
    made = node(render(inputs.on_demand(inputs.single())))
    assert "network_ip" not in made["network_interface"][0]
    assert made["for_each"] == {"r00": ""}


def test_an_accelerator_is_attached_where_the_type_has_none(render):
    made = node(render(inputs.on_demand(inputs.single("n1-standard-16+t4x2", nvme=False))))
    assert made["machine_type"] == "n1-standard-16"
    assert made["guest_accelerator"] == [{"type": "nvidia-tesla-t4", "count": 2}]
    assert "scratch_disk" not in made
    assert "guest_accelerator" not in node(render(inputs.on_demand(inputs.single())))


def test_local_ssds_are_asked_for_where_the_type_does_not_bring_them(render):
    assert node(render(inputs.on_demand(inputs.single())))["scratch_disk"] == [{"interface": "NVME"}] * 2
    assert "scratch_disk" not in node(render(inputs.on_demand(inputs.single(nvme=False))))
    assert "scratch_disk" not in node(render(inputs.on_demand(inputs.template())))


def test_labels_are_on_all_that_takes_them(documents):
    for stack, document in documents.items():
        for kind, name, body in resources(document):
            assert ("labels" in body) == (kind in LABELLED), (stack, kind, name)
    made = node(documents["cmp"])
    for labels in (made["labels"], made["boot_disk"]["initialize_params"]["labels"]):
        assert (labels["skyplan-project"], labels["skyplan-job"], labels["skyplan-managed"]) == (
            "acme",
            "llama3-8b-sft",
            "true",
        )
        assert labels["skyplan-generation"] == "3"
    assert made["labels"]["skyplan-rank"] == "${each.key}"


def test_names_of_nodes_fit_with_the_longest_words(render):
    given = inputs.compute(project="p" * 63, job="j" * 63)
    name = node(render(given))["name"].replace("${each.key}", "r127")
    assert len(name) <= 63


def test_shell_variables_in_user_data_are_no_templates(documents):
    data = node(documents["cmp"])["metadata"]["user-data"]
    assert data.startswith("#cloud-config")
    assert "$${" in data
    assert "${" not in data.replace("$${", "")


def test_no_secret_is_in_any_stack(documents):
    text = json.dumps(documents)
    assert "hf-token" in text  # its name
    assert "google_secret_manager_secret_version" not in text


def test_a_compute_stack_without_its_node_is_a_mistake(render):
    with pytest.raises(ValueError, match="needs the node"):
        render(replace(inputs.compute(), node=None))


def test_the_provider_acts_as_the_account_in_the_project(render):
    (made,) = render(inputs.network(role_arn="deployer@acme-ml.iam.gserviceaccount.com"))["provider"]["google"]
    assert made == {
        "project": "acme-ml",
        "region": "us-central1",
        "impersonate_service_account": "deployer@acme-ml.iam.gserviceaccount.com",
        "add_terraform_attribution_label": False,
    }


def test_64_nodes_are_one_resource(render):
    many = tuple(f"10.42.1.{number}" for number in range(64))
    made = render(inputs.compute(inputs.template(nodes=64, addresses=many)))
    assert len(resources(made)) == 1
    assert len(node(made)["for_each"]) == 64


# ---- Terraform itself, on the provider's schema


@pytest.fixture(scope="session")
def stub(tmp_path_factory):
    if reason := machine.missing(aws=False):
        pytest.skip(reason)
    return machine.prepare(tmp_path_factory.mktemp("gcp"), stubs={"google": machine.SCHEMAS / "google.json.gz"})


class Site:
    """The stacks of one placement in folders of their own, each applied with what the one before put out."""

    def __init__(self, render, stub, folder, **environment):
        self.log = folder / "cloud.jsonl"
        self._render, self._folder = render, folder
        self._environment = {**stub.environment, "STUB_LOG": str(self.log), **environment}

    def stack(self, given, variables):
        terraform = Terraform(self._folder / given.name, environment=self._environment)
        terraform.write(self._render(given), variables)
        terraform.init(given.backend, "k.tfstate")
        assert terraform.validate() == ()
        return terraform

    def alive(self):
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return stub_provider.alive([json.loads(line) for line in lines])


@pytest.mark.terraform
@pytest.mark.parametrize(
    ("template", "bought"),
    [
        pytest.param(inputs.single(), inputs.on_demand, id="single-on-demand", marks=pytest.mark.full),
        pytest.param(
            inputs.single(stop_after_hours=2.0), inputs.compute, id="single-spot-bounded", marks=pytest.mark.full
        ),
        pytest.param(inputs.template(Fabric.TCPX), inputs.compute, id="tcpx-spot", marks=pytest.mark.full),
        pytest.param(inputs.template(Fabric.TCPXO), inputs.on_demand, id="tcpxo-on-demand", marks=pytest.mark.full),
        pytest.param(inputs.template(Fabric.ROCE), inputs.reserved, id="roce-reserved"),
    ],
)
def test_terraform_applies_replans_and_destroys(render, stub, tmp_path, template, bought):
    site = Site(render, stub, tmp_path)
    launch = inputs.access(templates=(template,))
    net = site.stack(inputs.network(), {})
    net.apply()
    acc = site.stack(launch, access_variables(launch, net.output()))
    acc.apply()
    given = bought(template)
    cmp = site.stack(given, compute_variables(given, acc.output()))
    cmp.apply()
    assert not any(terraform.plan() for terraform in (net, acc, cmp)), "nothing is left to change"
    nodes = cmp.output()["nodes"]
    assert list(nodes) == [f"r{rank:02d}" for rank in range(template.nodes)]
    assert all(n["instance_id"] and n["private_ip"] and n["cloud"] == "gcp" for n in nodes.values())
    assert [n["private_ip"] for n in nodes.values()] == list(template.addresses) or not template.addresses
    assert {n["zone"] for n in nodes.values()} == {template.zone}
    for terraform in (cmp, acc, net):
        terraform.destroy()
    assert not site.alive()


@pytest.mark.terraform
def test_capacity_that_is_not_there_is_told_in_googles_words(render, stub, tmp_path):
    words = (
        "Error waiting for instance to create: The zone does not have enough resources: ZONE_RESOURCE_POOL_EXHAUSTED"
    )
    site = Site(render, stub, tmp_path, STUB_FAIL=f"google_compute_instance:{words}")
    given = inputs.compute(inputs.single(), capacity=CapacityType.SPOT)
    values = {"subnet": "s", "fabric_subnets": [], "image": "i", "node_account": "a@b", "placement_policy": ""}
    terraform = site.stack(given, values)
    with pytest.raises(TerraformError) as refused:
        terraform.apply()
    assert "ZONE_RESOURCE_POOL_EXHAUSTED" in str(refused.value)
    terraform.destroy()
    assert not site.alive()
