"""Whatever is broken in a golden stack, the checker or the contract refuses it; the schema files are used as they are shipped.

By default one mutant of each shape (cloud, stack, type, argument) of the golden jobs, some two thousand; with `--full` every one of some forty
thousand.  A shape of which no mutant is refused would be a hole in the contract: the few arguments that may go are listed, with why.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from planner.model.offer import CapacityType, Cloud
from tests.stacks import cases, checker, golden_jobs, mutants, rules
from tests.stacks.cases import Rendered
from tests.stacks.mutants import Mutant, changed

Generator = Callable[[dict[str, Any]], Iterator[Mutant]]

#: each cloud's mutants stay in one worker: the golden jobs are planned once in it
CLOUDS = [
    pytest.param(cloud, marks=pytest.mark.xdist_group(f"golden-jobs-{cloud.value}"), id=cloud.value) for cloud in Cloud
]


def corpus(cloud: Cloud) -> list[Rendered]:
    return [golden_jobs.golden(str(job)) for job in golden_jobs.every() if job.cloud is cloud]


def refused(rendered: Rendered, stack: str, document: dict[str, Any]) -> list[str]:
    """Why a stack with this document instead is refused; the checker first, as it is what a provider would say."""
    return checker.problems(document) or rules.violations(replace(rendered, **{stack: document}))


def survivors(cloud: Cloud, generator: Generator, *, every: bool = False) -> tuple[set[str], int]:
    """Shapes of mutants that nothing refused, and how many were tried."""
    seen: set[tuple[str, str]] = set()
    alive: set[str] = set()
    tried = 0
    for rendered in corpus(cloud):
        for stack, document in rendered.documents.items():
            for mutant in generator(document):
                key = (stack, mutant.shape)
                if key in seen and not every:
                    continue
                seen.add(key)
                tried += 1
                if not refused(rendered, stack, mutant.document):
                    alive.add(f"{stack} {mutant.shape}")
    return alive, tried


KINDS: dict[str, tuple[Generator, int]] = {
    "renamed": (mutants.renames, 130),
    "required-dropped": (mutants.drops, 35),
    "type-changed": (mutants.retypes, 120),
    "unknown-type": (mutants.strangers, 10),
}


@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_mutant_survives(cloud, kind):
    generator, least = KINDS[kind]
    alive, tried = survivors(cloud, generator)
    assert alive == set()
    assert tried >= least, "a sample that has become empty proves nothing"


@pytest.mark.full
@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_mutant_of_any_golden_stack_survives(cloud, kind):
    alive, _ = survivors(cloud, KINDS[kind][0], every=True)
    assert alive == set()


# ---- arguments that no schema requires

#: what may go: words for people that the cloud does not need, and what is the cloud's own default
IDLE = re.compile(
    r"(?:\.description|\.display_name|\.sid)$"  # words
    r"|dropped google_compute_network\.routing_mode$"  # a fabric's network routes nothing
)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_an_optional_argument_that_goes_is_missed_too(cloud):
    """Stronger than the schemas: nearly every argument that stacks write is there for a promise, and its loss breaks one."""
    alive, tried = survivors(cloud, lambda document: mutants.drops(document, required=False))
    assert {shape for shape in alive if not IDLE.search(shape)} == set()
    assert tried >= 70


# ---- capacity


def spot_of(cloud: Cloud) -> Rendered:
    return next(r for r in corpus(cloud) if r.case.compute.capacity is CapacityType.SPOT)


@pytest.mark.parametrize(
    ("cloud", "field"),
    [pytest.param(Cloud(c), f, id=f"{c}-{'.'.join(f)}") for c, found in mutants.SPOT_FIELDS.items() for f in found],
)
def test_a_spot_node_without_one_of_its_fields_is_refused(cloud, field):
    rendered = spot_of(cloud)
    kind = rules.common.NODES[cloud][0]
    assert refused(rendered, "cmp", rendered.cmp) == []
    broken = changed(rendered.cmp, ("resource", kind, "node", *field), None)
    assert broken != rendered.cmp
    assert refused(rendered, "cmp", broken) != []


@pytest.mark.parametrize("cloud", Cloud)
def test_capacity_that_was_not_planned_is_refused_whichever_way(cloud):
    """The nodes of each way of buying, passed off as another."""
    mine = {
        kind: next(r for r in corpus(cloud) if r.case.compute.capacity is kind and r.case.compute.nodes == 1)
        for kind in CapacityType
    }
    for planned, given in mine.items():
        for bought in mine.values():
            other = replace(given, cmp=bought.cmp)
            assert (rules.broken("capacity", other) == []) == (bought is given), (planned, bought.case.name)


# ---- promises: edits that every schema allows

GROUP = "${aws_security_group.nodes.id}"
OPEN_AWS = {"security_group_id": GROUP, "cidr_ipv4": "0.0.0.0/0", "ip_protocol": "tcp", "from_port": 22, "to_port": 22}
OPEN_GCP = {
    "name": "skyplan-ssh",
    "description": "ssh",
    "network": "${var.network}",
    "direction": "INGRESS",
    "target_service_accounts": ["${google_service_account.nodes.email}"],
    "source_ranges": ["0.0.0.0/0"],
    "allow": [{"protocol": "all"}],
}
OPEN_AZURE = {
    "name": "ssh",
    "description": "ssh",
    "resource_group_name": "${var.resource_group}",
    "network_security_group_name": "${azurerm_network_security_group.nodes.name}",
    "direction": "Inbound",
    "priority": 200,
    "access": "Allow",
    "protocol": "Tcp",
    "source_port_range": "*",
    "source_address_prefix": "*",
    "destination_port_range": "22",
    "destination_address_prefix": "*",
}
OPEN_NEBIUS = {
    "name": "skyplan-ssh",
    "parent_id": "${nebius_vpc_v1_security_group.nodes.id}",
    "labels": {"skyplan-project": "acme", "skyplan-job": cases.JOB, "skyplan-managed": "true"},
    "access": "ALLOW",
    "type": "STATEFUL",
    "protocol": "TCP",
    "ingress": {"source_cidrs": ["0.0.0.0/0"], "destination_ports": [22]},
}
LT, NODE = "aws_launch_template", "node"
#: (stack, path below `resource` in which * is any key, what stands there then, the rule that must say so)
PROMISES: dict[Cloud, list[tuple[str, str, Any, str]]] = {
    Cloud.AWS: [
        ("cmp", "aws_instance.node.associate_public_ip_address", True, "public_address"),
        ("net", "aws_subnet.private.map_public_ip_on_launch", True, "public_address"),
        ("acc", "aws_eip", {"one": {"domain": "vpc"}}, "public_address"),
        ("acc", "aws_vpc_security_group_ingress_rule.ssh", OPEN_AWS, "ingress"),
        ("acc", "aws_security_group.nodes.ingress", [{"from_port": 0, "to_port": 0, "protocol": "-1"}], "ingress"),
        ("acc", "aws_vpc_security_group_ingress_rule.peers.cidr_ipv4", "10.0.0.0/8", "ingress"),
        ("acc", f"{LT}.*.metadata_options.http_tokens", "optional", "metadata"),
        ("acc", f"{LT}.*.metadata_options.http_put_response_hop_limit", 2, "metadata"),
        ("acc", f"{LT}.*.key_name", "mine", "metadata"),
        ("acc", f"{LT}.*.block_device_mappings.0.ebs.encrypted", "false", "disks"),
        ("acc", f"{LT}.*.instance_initiated_shutdown_behavior", "stop", "ending"),
        ("acc", f"{LT}.*.image_id", "ami-somebodys", "image"),
        (
            "acc",
            "aws_iam_role.node.managed_policy_arns",
            ["arn:aws:iam::aws:policy/AdministratorAccess"],
            "additive_only",
        ),
        ("acc", "data:aws_iam_policy_document.*.statement.0.actions", ["s3:*"], "rights"),
        ("acc", "data:aws_iam_policy_document.*.statement.0.resources", ["*"], "rights"),
        ("acc", "data:aws_iam_policy_document.trust.statement.0.principals.0.identifiers", ["*"], "rights"),
        ("cmp", "aws_instance.node.user_data", "export AWS=AKIAIOSFODNN7EXAMPLE", "no_secret"),
        ("cmp", "aws_instance.node.lifecycle", {}, "launched"),
        ("net", "aws_route.private.nat_gateway_id", "nat-1", "way_out"),
    ],
    Cloud.GCP: [
        ("cmp", "google_compute_instance.node.network_interface.0.access_config", [{}], "public_address"),
        ("acc", "google_compute_firewall.ssh", OPEN_GCP, "ingress"),
        ("net", "google_compute_firewall", {"all": OPEN_GCP}, "shared_by_nobody"),
        ("acc", "google_compute_firewall.peers.source_service_accounts", None, "ingress"),
        ("acc", "google_compute_firewall.peers.source_ranges", ["10.0.0.0/8"], "ingress"),
        ("acc", "google_compute_firewall.peers.target_service_accounts", None, "ingress"),
        ("acc", "google_compute_firewall.peers.priority", None, "ingress"),
        ("acc", "google_compute_firewall.peers.priority", 900, "ingress"),
        ("acc", "google_compute_firewall.peers.deny", [{"protocol": "all"}], "ingress"),
        ("acc", "google_compute_firewall.rest-inbound", None, "ingress"),
        ("acc", "google_compute_firewall.rest-inbound.deny", [{"protocol": "tcp"}], "ingress"),
        ("acc", "google_compute_firewall.rest-inbound.allow", [{"protocol": "all"}], "ingress"),
        ("acc", "google_compute_firewall.rest-inbound.priority", None, "ingress"),
        ("acc", "google_compute_firewall.rest-inbound.priority", 700, "ingress"),
        ("acc", "google_compute_firewall.rest-inbound.source_ranges", ["10.0.0.0/8"], "ingress"),
        ("acc", "google_compute_firewall.rest-inbound.target_service_accounts", None, "ingress"),
        ("acc", "google_compute_firewall.rest-inbound.network", "default", "ingress"),
        ("cmp", "google_compute_instance.node.metadata.enable-oslogin", "FALSE", "metadata"),
        ("cmp", "google_compute_instance.node.metadata.ssh-keys", "me:ssh-ed25519 A", "metadata"),
        ("cmp", "google_compute_instance.node.shielded_instance_config.enable_vtpm", False, "metadata"),
        ("acc", "google_storage_managed_folder_iam_member.*.role", "roles/storage.objectAdmin", "rights"),
        ("acc", "google_storage_managed_folder_iam_member.*.managed_folder", "", "rights"),
        ("acc", "google_storage_managed_folder_iam_member.*.member", "allUsers", "rights"),
        (
            "acc",
            "google_storage_bucket_iam_binding",
            {"b": {"bucket": "b", "role": "r", "members": []}},
            "additive_only",
        ),
        (
            "acc",
            "google_project_iam_member",
            {"p": {"project": "p", "role": "roles/editor", "member": "m"}},
            "additive_only",
        ),
        ("cmp", "google_compute_instance.node.service_account.email", "default", "ingress"),
        ("cmp", "google_compute_instance.node.boot_disk.auto_delete", False, "disks"),
        ("cmp", "google_compute_instance.node.can_ip_forward", True, "public_address"),
    ],
    Cloud.AZURE: [
        ("cmp", "azurerm_network_interface.node.ip_configuration.0.public_ip_address_id", "id", "public_address"),
        ("acc", "azurerm_network_security_rule.ssh", OPEN_AZURE, "ingress"),
        ("acc", "azurerm_network_security_rule.rest-inbound", None, "ingress"),
        ("acc", "azurerm_network_security_rule.rest-inbound.access", "Allow", "ingress"),
        ("cmp", "azurerm_network_interface_security_group_association", None, "ingress"),
        ("cmp", "azurerm_linux_virtual_machine.node.disable_password_authentication", False, "metadata"),
        ("cmp", "azurerm_linux_virtual_machine.node.admin_password", "x", "no_secret"),
        ("cmp", "azurerm_linux_virtual_machine.node.allow_extension_operations", True, "metadata"),
        ("cmp", "azurerm_linux_virtual_machine.node.encryption_at_host_enabled", False, "disks"),
        ("cmp", "azurerm_linux_virtual_machine.node.source_image_reference.version", "latest", "image"),
        ("acc", "azurerm_role_assignment.*.role_definition_name", "Owner", "rights"),
        ("acc", "azurerm_role_assignment.*.condition", None, "rights"),
        ("acc", "azurerm_role_assignment.*.scope", "/subscriptions/s", "rights"),
        ("acc", "azurerm_role_definition.*.permissions.0.actions", ["*"], "rights"),
        ("net", "azurerm_subnet.nodes.default_outbound_access_enabled", True, "way_out"),
    ],
    Cloud.NEBIUS: [
        ("cmp", "nebius_compute_v1_instance.node.network_interfaces.0.public_ip_address", {}, "public_address"),
        ("acc", "nebius_vpc_v1_security_rule.ssh", OPEN_NEBIUS, "ingress"),
        ("acc", "nebius_vpc_v1_security_rule.peers-in.ingress", {"source_cidrs": ["10.0.0.0/8"]}, "ingress"),
        ("acc", "nebius_vpc_v1_security_rule.peers-in.ingress", {}, "ingress"),
        ("cmp", "nebius_compute_v1_instance.node.network_interfaces.0.security_groups", None, "ingress"),
        ("cmp", "nebius_compute_v1_instance.node.boot_disk.managed_disk.spec.disk_encryption", None, "disks"),
        ("cmp", "nebius_compute_v1_instance.node.recovery_policy", "RECOVER", "ending"),
        (
            "acc",
            "nebius_iam_v1_access_permit",
            {"all": {"parent_id": "${nebius_iam_v1_group.node.id}", "resource_id": "tenant", "role": "admin"}},
            "rights",
        ),
        ("acc", "nebius_storage_v1_bucket", {"b": {"bucket_policy": {"rules": []}}}, "additive_only"),
        ("net", "nebius_vpc_v1_pool.net.visibility", "PUBLIC", "public_address"),
        ("net", "nebius_vpc_v1_security_rule", {"all": OPEN_NEBIUS}, "shared_by_nobody"),
    ],
}


def edited(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The document with one thing changed, added or taken away."""
    section, _, rest = path.rpartition(":")
    steps: list[str | int] = [section or "resource"]
    holder: Any = document[steps[0]]
    *parents, last = rest.split(".")
    for word in parents:
        step = next(iter(holder)) if word == "*" else int(word) if isinstance(holder, list) else word
        steps.append(step)
        holder = holder.get(step, {}) if isinstance(holder, dict) else holder[step]
    if isinstance(holder, list):
        return changed(document, (*steps, int(last)), value)
    new = {key: inner for key, inner in holder.items() if key != last} | ({} if value is None else {last: value})
    return changed(document, tuple(steps), new)


@pytest.mark.parametrize(
    ("cloud", "stack", "path", "value", "rule"),
    [pytest.param(c, *p, id=f"{c.value}-{p[1]}-{n}") for c, found in PROMISES.items() for n, p in enumerate(found)],
)
def test_a_broken_promise_is_named_by_its_rule(cloud, stack, path, value, rule):
    rendered = next(r for r in corpus(cloud) if r.case.name == "on-demand")
    assert rules.broken(rule, rendered) == []
    broken = edited(rendered.documents[stack], path, value)
    assert broken != rendered.documents[stack]
    found = rules.broken(rule, replace(rendered, **{stack: broken}))
    assert found != []
    assert not any("cannot be read" in problem for problem in found), found


def test_every_rule_about_safety_is_broken_by_some_edit():
    for cloud, edits in PROMISES.items():
        named = {rule for *_, rule in edits}
        assert {"public_address", "ingress", "disks", "rights"} <= named, cloud
    assert {rule for edits in PROMISES.values() for *_, rule in edits} >= {
        "additive_only",
        "ending",
        "image",
        "launched",
        "metadata",
        "no_secret",
        "shared_by_nobody",
        "way_out",
    }


@pytest.mark.parametrize("cloud", Cloud)
def test_two_jobs_in_one_network_never_let_each_other_in(cloud):
    """What a job's rules name is made in its own stack and bears its name; a group or an account of another job's is refused."""
    mine = next(r for r in corpus(cloud) if r.case.name == "on-demand")
    other = replace(mine.case.access.workload, name="another-job")
    theirs = replace(mine, case=replace(mine.case, access=replace(mine.case.access, workload=other)))
    assert rules.broken("ingress", mine) == []
    assert any("own" in problem for problem in rules.broken("ingress", theirs))


def test_schema_files_are_used_unmodified():
    before = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in checker.SCHEMAS.glob("*.json.gz")}
    golden = golden_jobs.golden("gcp-spot")
    assert [refused(golden, "cmp", mutant.document) == [] for mutant in mutants.renames(golden.cmp)].count(True) == 0
    after = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in checker.SCHEMAS.glob("*.json.gz")}
    assert before == after
    assert len(after) == 4
