"""What Azure's stacks must hold: nothing open, rights on data only, one partition per InfiniBand job, capacity really as bought, nobody signs in.

Run against the provider's schema by the stub, never against a live subscription.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from pathlib import Path

import pytest

from modules.azure.compute import NOBODY
from modules.azure.names import azure_tags, resource_name
from modules.azure.session import session_supported
from planner.iam.azure import policies
from planner.model.digest import pretty
from planner.model.errors import InputError
from planner.model.offer import CapacityType
from planner.model.project import OwnNetwork
from stacks.runner import Terraform, TerraformError
from stacks.wiring import access_variables, compute_variables
from tests.emulators import stub_provider
from tests.emulators import terraform as machine
from tests.stacks import azure_inputs as inputs

GOLDEN = Path(__file__).with_name("golden") / "azure"
UNTAGGABLE = {
    "azurerm_subnet",
    "azurerm_nat_gateway_public_ip_association",
    "azurerm_subnet_nat_gateway_association",
    "azurerm_network_security_rule",
    "azurerm_role_assignment",
    "azurerm_role_definition",
    "azurerm_network_interface_security_group_association",
    "azurerm_network_interface_application_security_group_association",
}
BOUGHT = [inputs.on_demand, inputs.compute, inputs.reserved]
TEMPLATES = [inputs.infiniband, inputs.ethernet, inputs.single]
SPOT_FIELDS = {"priority", "eviction_policy", "max_bid_price"}


@pytest.fixture(scope="session")
def documents(render):
    return {given.name[:3]: render(given) for given in inputs.everything()}


def node(document):
    return document["resource"]["azurerm_linux_virtual_machine"]["node"]


def card(document):
    return document["resource"]["azurerm_network_interface"]["node"]


def resources(document):
    return [(kind, name, body) for kind, named in document.get("resource", {}).items() for name, body in named.items()]


@pytest.mark.parametrize("given", inputs.everything(), ids=lambda given: given.name)
def test_golden(render, given, request):
    made = render(given)
    for name in made["resource"].get("azurerm_linux_virtual_machine", {}):
        # what a node boots has golden files of its own
        made["resource"]["azurerm_linux_virtual_machine"][name]["custom_data"] = "(user data)"
    golden = GOLDEN / f"{given.name}.tf.json"
    if request.config.getoption("--update-golden", default=False):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_bytes(pretty(made))
    assert pretty(made).decode() == golden.read_text(encoding="utf-8")


# ---- the network


def test_the_shared_network_says_nothing_about_who_reaches_whom_and_has_a_way_out(documents):
    made = documents["net"]["resource"]
    assert not [kind for kind in made if "security" in kind]
    assert made["azurerm_subnet"]["nodes"]["default_outbound_access_enabled"] is False
    assert made["azurerm_subnet_nat_gateway_association"]["nodes"] == {
        "for_each": "${azurerm_subnet.nodes}",
        "nat_gateway_id": "${azurerm_nat_gateway.net.id}",
        "subnet_id": "${each.value.id}",
    }
    assert made["azurerm_nat_gateway_public_ip_association"]["net"] == {
        "nat_gateway_id": "${azurerm_nat_gateway.net.id}",
        "public_ip_address_id": "${azurerm_public_ip.nat.id}",
    }
    address = made["azurerm_public_ip"]["nat"]
    assert (address["sku"], address["allocation_method"]) == ("Standard", "Static")


def test_a_subnet_for_each_zone_key(render):
    made = render(inputs.network(zones=(("1", "10.84.0.0/20"), ("2", "10.84.16.0/20"))))
    assert made["resource"]["azurerm_subnet"]["nodes"]["for_each"] == {"1": "10.84.0.0/20", "2": "10.84.16.0/20"}
    assert made["output"]["subnet_ids"]["value"]["2"] == '${azurerm_subnet.nodes["2"].id}'


def test_the_users_own_group_is_named_and_not_made(render):
    made = render(inputs.network(resource_group="acme-ml"))
    assert "azurerm_resource_group" not in made["resource"]
    assert made["output"]["resource_group"]["value"] == "acme-ml"
    assert made["resource"]["azurerm_virtual_network"]["net"]["resource_group_name"] == "acme-ml"


@pytest.mark.parametrize("group", [None, "acme-ml"])
def test_the_users_own_network_is_handed_on_untouched(render, group):
    subnet = "/subscriptions/s/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/n/subnets/gpu"
    own = OwnNetwork(region="eastus", vpc_id=subnet.rpartition("/subnets")[0], subnets=(("", subnet),))
    made = render(inputs.network(own=own, resource_group=group))
    # jobs need a group, and never get the network owner's
    assert set(made.get("resource", {})) == (set() if group else {"azurerm_resource_group"})
    assert made["output"]["subnet_ids"]["value"] == {"": subnet}


# ---- identity and rules


def test_every_right_is_at_a_container_or_a_secret_and_no_role_manages(documents):
    assignments = documents["acc"]["resource"]["azurerm_role_assignment"]
    assert len(assignments) == len(inputs.GRANTS)
    for body in assignments.values():
        assert body["principal_id"] == "${azurerm_user_assigned_identity.node.principal_id}"
        assert body["scope"].endswith(("/containers/corpus", "/containers/runs", "/secrets/hf-token"))
        assert body.get("role_definition_name") in {None, "Storage Blob Data Reader", "Key Vault Secrets User"}
        assert ("condition" in body) == ("/containers/" in body["scope"]) == (body.get("condition_version") == "2.0")
        assert body["description"]


def test_checkpoints_have_a_role_without_a_right_on_the_container(documents):
    (role,) = documents["acc"]["resource"]["azurerm_role_definition"].values()
    (permission,) = role["permissions"]
    assert permission["actions"] == []
    assert {action.rsplit("/blobs/", 1)[1] for action in permission["data_actions"]} == {"read", "write", "add/action"}
    assert "slice(split" in role["scope"], "in the account's resource group"


def test_an_existing_role_is_named(render):
    grants = policies(inputs.GRANTS, account=None, region="eastus", checkpoint_role="Checkpoint Writer")
    made = render(inputs.access(policies=grants))["resource"]
    assert "azurerm_role_definition" not in made
    roles = {body["role_definition_name"] for body in made["azurerm_role_assignment"].values()}
    assert "Checkpoint Writer" in roles


def test_no_storage_key_is_asked_for(documents):
    text = json.dumps(documents)
    assert "azurerm_storage_account" not in text
    assert "access_key" not in text
    for document in documents.values():
        (provider,) = document["provider"]["azurerm"]
        assert provider["storage_use_azuread"] is True
        assert provider["resource_provider_registrations"] == "none"
        assert (provider["subscription_id"], provider["tenant_id"]) == (inputs.ACCOUNT, inputs.TENANT)
        assert provider["features"] == {}


def test_nothing_but_the_jobs_own_nodes_may_open_a_connection(documents):
    rules = documents["acc"]["resource"]["azurerm_network_security_rule"].values()
    group = ["${azurerm_application_security_group.nodes.id}"]
    inbound = sorted((r for r in rules if r["direction"] == "Inbound"), key=lambda r: r["priority"])
    assert [(r["access"], r["priority"]) for r in inbound] == [("Allow", 100), ("Deny", 4096)]
    allow, deny = inbound
    assert allow["source_application_security_group_ids"] == group
    assert allow["destination_application_security_group_ids"] == group
    assert not {"source_address_prefix", "source_address_prefixes"} & set(allow)
    assert (deny["protocol"], deny["source_address_prefix"], deny["destination_port_range"]) == ("*", "*", "*")


def test_outbound_is_peers_web_and_names(documents):
    rules = documents["acc"]["resource"]["azurerm_network_security_rule"]
    assert rules["web-outbound"]["destination_port_ranges"] == ["80", "443"]
    assert rules["dns-outbound"]["destination_address_prefix"] == "VirtualNetwork"
    assert (rules["rest-outbound"]["access"], rules["rest-outbound"]["priority"]) == ("Deny", 4096)
    priorities = [(r["direction"], r["priority"]) for r in rules.values()]
    assert len(set(priorities)) == len(priorities)


def test_nodes_on_infiniband_share_one_placement_group_and_others_are_near(documents):
    launch = documents["acc"]["output"]["launch"]["value"]
    (scale_set,) = documents["acc"]["resource"]["azurerm_orchestrated_virtual_machine_scale_set"].values()
    assert (scale_set["platform_fault_domain_count"], scale_set["single_placement_group"]) == (1, True)
    assert not {"instances", "sku_name", "os_profile"} & set(scale_set)
    assert launch["Standard_ND96isr_H100_v5/"]["scale_set_id"]
    assert not launch["Standard_ND96isr_H100_v5/"]["proximity_group_id"]
    assert launch["Standard_NC96ads_A100_v4/2"]["proximity_group_id"]
    assert not launch["Standard_NC96ads_A100_v4/2"]["scale_set_id"]
    assert not launch["Standard_NC4as_T4_v3/"]["scale_set_id"] + launch["Standard_NC4as_T4_v3/"]["proximity_group_id"]


def test_a_launch_is_exactly_the_variables_of_compute(documents, render):
    from stacks.azure import VARIABLES

    for launch in documents["acc"]["output"]["launch"]["value"].values():
        assert set(launch) == set(VARIABLES)
    assert set(documents["cmp"]["variable"]) == set(VARIABLES)


def test_more_nodes_than_a_placement_group_holds_are_refused(render):
    with pytest.raises(InputError, match="holds 100"):
        render(inputs.access(templates=(inputs.infiniband(nodes=101),)))


def test_a_session_is_refused_with_the_reason(render):
    assert "port 22" in session_supported()
    with pytest.raises(InputError) as refused:
        render(inputs.access(templates=(inputs.single(session=True),)))
    assert [diagnostic.code for diagnostic in refused.value.diagnostics] == ["SKY-SPEC-113"]


# ---- the nodes


def test_compute_holds_nodes_and_what_is_inseparable_from_them(documents):
    assert set(documents["cmp"]["resource"]) == {
        "azurerm_linux_virtual_machine",
        "azurerm_network_interface",
        "azurerm_network_interface_security_group_association",
        "azurerm_network_interface_application_security_group_association",
    }
    assert "data" not in documents["cmp"]
    made = node(documents["cmp"])
    assert made["for_each"] == dict(zip(("r00", "r01"), inputs.ADDRESSES, strict=True))
    assert made["lifecycle"] == card(documents["cmp"])["lifecycle"] == {"ignore_changes": "all"}
    assert made["name"] == made["computer_name"] == "skyplan-acme-llama3-8b-sft-g3-${each.key}"
    assert "p0123456789" not in json.dumps(made), "the plan is an output, never a tag"


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("bought", BOUGHT)
def test_nodes_are_hardened(render, template, bought):
    document = render(bought(template()))
    made = node(document)
    (address,) = card(document)["ip_configuration"]
    assert "public_ip_address_id" not in address
    assert "ip_forwarding_enabled" not in card(document)
    assert made["encryption_at_host_enabled"] is True
    assert made["disable_password_authentication"] is True
    assert made["allow_extension_operations"] is False
    assert "admin_password" not in made
    assert made["admin_ssh_key"] == [{"username": "skyplan", "public_key": NOBODY}]
    assert made["identity"] == {"type": "UserAssigned", "identity_ids": ["${var.identity_id}"]}
    assert made["boot_diagnostics"] == {}
    assert made["timeouts"]["create"] == "20m"
    assert "p0123456789" not in json.dumps(made)


def test_no_node_is_up_before_its_rules_are(documents):
    assert set(node(documents["cmp"])["depends_on"]) == {
        "azurerm_network_interface_security_group_association.node",
        "azurerm_network_interface_application_security_group_association.node",
    }
    for kind, name, body in resources(documents["cmp"]):
        if kind.endswith("_association"):
            assert body["for_each"] == "${azurerm_network_interface.node}", name


def test_spot_is_spot_and_ends_with_its_disk(render):
    made = node(render(inputs.compute()))
    assert {key: made[key] for key in SPOT_FIELDS} == {
        "priority": "Spot",
        "eviction_policy": "Delete",
        "max_bid_price": -1,
    }
    assert "capacity_reservation_group_id" not in made


def test_on_demand_carries_no_field_of_spot_and_no_reservation(render):
    made = node(render(inputs.on_demand()))
    assert not SPOT_FIELDS & set(made)
    assert "capacity_reservation_group_id" not in made


def test_a_reservation_is_targeted_and_excludes_the_proximity_group(render):
    made = node(render(inputs.reserved(inputs.ethernet())))
    assert made["capacity_reservation_group_id"] == inputs.RESERVATION
    assert not (SPOT_FIELDS | {"proximity_placement_group_id", "availability_set_id"}) & set(made)
    near = node(render(inputs.on_demand(inputs.ethernet())))["proximity_placement_group_id"]
    assert near == '${var.proximity_group_id == "" ? null : var.proximity_group_id}'


def test_a_zone_is_asked_for_where_there_is_one(render):
    assert node(render(inputs.compute(inputs.ethernet())))["zone"] == "2"
    assert "zone" not in node(render(inputs.compute(inputs.single())))


def test_disks_use_the_customers_key_where_one_is_given(render, documents):
    key = f"/subscriptions/{inputs.ACCOUNT}/resourceGroups/k/providers/Microsoft.Compute/diskEncryptionSets/d"
    assert node(render(inputs.compute(kms_key_arn=key)))["os_disk"]["disk_encryption_set_id"] == key
    assert "disk_encryption_set_id" not in node(documents["cmp"])["os_disk"]


def test_an_image_is_a_marketplaces_or_an_id(render, documents):
    assert node(documents["cmp"])["source_image_reference"] == {
        "publisher": "microsoft-dsvm",
        "offer": "ubuntu-hpc",
        "sku": "2204",
        "version": "22.04.2026080501",
    }
    image = f"/subscriptions/{inputs.ACCOUNT}/resourceGroups/i/providers/Microsoft.Compute/images/train"
    made = node(render(inputs.compute(inputs.single(machine_image=image))))
    assert made["source_image_id"] == image
    assert "source_image_reference" not in made


def test_user_data_is_base64_of_cloud_init_and_holds_names_of_secrets_only(documents, render):
    data = base64.b64decode(node(documents["cmp"])["custom_data"])
    assert data.startswith(b"#cloud-config")
    assert b"acme-vault/hf-token" in data
    many = tuple((f"V{number}", "x" * 300) for number in range(150))
    whole = base64.b64decode(
        node(render(inputs.compute(inputs.single(), workload=inputs.workload(1, env=many))))["custom_data"]
    )
    assert len(whole) <= 64 * 1024
    assert b"V149" in (gzip.decompress(whole) if whole.startswith(b"\x1f\x8b") else whole)
    noise = hashlib.shake_256(b"noise").hexdigest(100_000)
    too_much = inputs.compute(inputs.single(), workload=inputs.workload(1, env=(("V", noise),)))
    with pytest.raises(InputError, match="user data"):
        render(too_much)


def test_billing_end_says_who_ends_it(documents):
    text = documents["cmp"]["output"]["billing_end"]["value"]
    assert "reaper" in text
    assert "skyplan destroy" in text


def test_a_compute_stack_without_its_node_is_a_mistake(render):
    with pytest.raises(ValueError, match="needs the node"):
        render(inputs.compute(workload=None))


def test_every_taggable_resource_has_the_tags(documents):
    for stack, document in documents.items():
        for kind, name, body in resources(document):
            if kind in UNTAGGABLE:
                assert "tags" not in body
                continue
            assert body["tags"]["skyplan:project"] == "acme", (stack, kind, name)
            assert body["tags"]["skyplan:managed"] == "true"
            assert body["tags"]["Team"] == "LLM research"
            assert ("skyplan:job" in body["tags"]) == (stack != "net")
            assert ("skyplan:generation" in body["tags"]) == (stack == "cmp")
    assert node(documents["cmp"])["tags"]["skyplan:rank"] == "${each.key}"


def test_a_part_of_a_job_counts_its_ranks_from_the_jobs(render):
    made = render(inputs.compute(first_rank=6))
    assert list(node(made)["for_each"]) == list(card(made)["for_each"]) == ["r06", "r07"]


def test_64_nodes_are_as_many_resources_as_one(render, documents):
    many = inputs.infiniband(nodes=64, addresses=tuple(f"10.84.1.{number}" for number in range(10, 74)))
    made = render(inputs.compute(many))
    assert len(resources(made)) == len(resources(documents["cmp"]))
    assert len(node(made)["for_each"]) == 64


# ---- names and tags


def test_names_fit_and_stay_apart():
    long = ["p" * 40, "j" * 40]
    one, other = (resource_name(*long, tail, limit=59) for tail in ("g1", "g2"))
    assert len(one) == len(other) == 59
    assert one != other
    assert len(f"{one}-r100") <= 64
    assert resource_name("a", "b_c", limit=80) != resource_name("a", "b-c", limit=80)


def test_tags_that_do_not_fit_are_shortened_and_stay_apart():
    made = azure_tags(
        (("skyplan:job", "a"), ("cost/center", "1"), ("cost-center", "2"), ("COST-center", "3"), ("Azure-x", "y" * 300))
    )
    assert made["skyplan:job"] == "a"
    assert made["cost-center"] == "2", "the first of two keys that differ in case only"
    assert len(made) == 4
    for key, value in made.items():
        assert not set(key) & set("<>%&\\?/")
        assert not key.lower().startswith(("azure", "microsoft", "windows"))
        assert len(value) <= 256


def test_a_users_template_signs_are_words():
    assert azure_tags((("note", "${x} %{y}"),), ("skyplan:rank", "${each.key}")) == {
        "note": "$${x} %%{y}",
        "skyplan:rank": "${each.key}",
    }


def test_more_tags_than_azure_takes_are_refused():
    fifty = tuple((f"k{number}", "v") for number in range(50))
    assert len(azure_tags(fifty)) == 50
    with pytest.raises(InputError, match="51 tags"):
        azure_tags(fifty, ("skyplan:rank", "${each.key}"))


# ---- Terraform itself, on the provider's schema


@pytest.fixture(scope="session")
def stub(tmp_path_factory):
    if reason := machine.missing(aws=False):
        pytest.skip(reason)
    return machine.prepare(tmp_path_factory.mktemp("azure"), stubs={"azurerm": machine.SCHEMAS / "azurerm.json.gz"})


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
        return stub_provider.alive([json.loads(line) for line in self.log.read_text().splitlines()])


#: every kind of template and every way of buying; the others are of the long sweep
LAUNCHES = [
    (inputs.single(), inputs.compute),
    (inputs.infiniband(), inputs.on_demand),
    (inputs.ethernet(), inputs.reserved),
]
OTHERS = [
    (inputs.single(), inputs.on_demand),
    (inputs.single(), inputs.reserved),
    (inputs.infiniband(), inputs.compute),
    (inputs.infiniband(), inputs.reserved),
    (inputs.ethernet(), inputs.on_demand),
]


@pytest.mark.terraform
@pytest.mark.parametrize("launches", [LAUNCHES, pytest.param(OTHERS, marks=pytest.mark.full)], ids=["each", "others"])
def test_terraform_applies_replans_and_destroys(render, stub, tmp_path, launches):
    site = Site(render, stub, tmp_path)
    launch = inputs.access()
    net = site.stack(inputs.network(), {})
    net.apply()
    acc = site.stack(launch, access_variables(launch, net.output()))
    acc.apply()
    standing = site.alive()
    for template, bought in launches:
        given = bought(template)
        cmp = site.stack(given, compute_variables(given, acc.output()))
        cmp.apply()
        assert not cmp.plan(), "nothing is left to change"
        nodes = cmp.output()["nodes"]
        assert list(nodes) == [f"r{rank:02d}" for rank in range(template.nodes)]
        assert all(n["instance_id"] and n["private_ip"] and n["cloud"] == "azure" for n in nodes.values())
        assert [n["private_ip"] for n in nodes.values()] == list(template.addresses) or not template.addresses
        made = [body for (kind, _), body in site.alive().items() if kind == "azurerm_linux_virtual_machine"]
        assert len({body["name"] for body in made}) == template.nodes
        assert all(bool(body["virtual_machine_scale_set_id"]) == (template.fabric == "infiniband") for body in made)
        cmp.destroy()
        assert site.alive() == standing
    assert not net.plan()
    assert not acc.plan()
    acc.destroy()
    net.destroy()
    assert not site.alive()


@pytest.mark.terraform
def test_capacity_that_is_not_there_is_told_in_azures_words(render, stub, tmp_path):
    from stacks.azure import VARIABLES

    words = "creating Linux Virtual Machine: AllocationFailed"
    site = Site(render, stub, tmp_path, STUB_FAIL=f"azurerm_linux_virtual_machine:{words}")
    terraform = site.stack(inputs.compute(inputs.single()), dict.fromkeys(VARIABLES, "x"))
    with pytest.raises(TerraformError) as refused:
        terraform.apply()
    assert "AllocationFailed" in str(refused.value)
    terraform.destroy()
    assert not site.alive(), "interfaces go too"


def test_capacity_types_are_all_covered():
    assert {made().capacity for made in BOUGHT} == set(CapacityType)
