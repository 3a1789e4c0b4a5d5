"""Make the shipped schema files anew: `python -m modules.schemas.update FULL.json…`.

A full file is one JSON object: provider, version, resources and data, each {TYPE: {attributes, blocks, computed}}.  Kept are the types named in
`USED`; the bytes depend on the input only (sorted keys, no time in the gzip header), so a review shows a change where there is one.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

USED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "aws": (
        (
            "aws_eip",
            "aws_eip_association",
            "aws_iam_instance_profile",
            "aws_iam_openid_connect_provider",
            "aws_iam_policy",
            "aws_iam_role",
            "aws_iam_role_policy",
            "aws_iam_role_policy_attachment",
            "aws_instance",
            "aws_internet_gateway",
            "aws_launch_template",
            "aws_nat_gateway",
            "aws_placement_group",
            "aws_route",
            "aws_route_table",
            "aws_route_table_association",
            "aws_security_group",
            "aws_subnet",
            "aws_vpc",
            "aws_vpc_endpoint",
            "aws_vpc_security_group_egress_rule",
            "aws_vpc_security_group_ingress_rule",
        ),
        ("aws_iam_policy_document", "aws_partition", "aws_ssm_parameter"),
    ),
    "google": (
        (
            "google_compute_address",
            "google_compute_firewall",
            "google_compute_instance",
            "google_compute_network",
            "google_compute_resource_policy",
            "google_compute_router",
            "google_compute_router_nat",
            "google_compute_subnetwork",
            "google_iam_workload_identity_pool",
            "google_iam_workload_identity_pool_provider",
            "google_project_iam_custom_role",
            "google_project_iam_member",
            "google_secret_manager_secret_iam_member",
            "google_service_account",
            "google_service_account_iam_member",
            "google_storage_bucket_iam_member",
            "google_storage_managed_folder_iam_member",
        ),
        ("google_compute_image", "google_project"),
    ),
    "azurerm": (
        (
            "azurerm_application_security_group",
            "azurerm_federated_identity_credential",
            "azurerm_linux_virtual_machine",
            "azurerm_nat_gateway",
            "azurerm_nat_gateway_public_ip_association",
            "azurerm_network_interface",
            "azurerm_network_interface_application_security_group_association",
            "azurerm_network_interface_security_group_association",
            "azurerm_network_security_group",
            "azurerm_network_security_rule",
            "azurerm_orchestrated_virtual_machine_scale_set",
            "azurerm_proximity_placement_group",
            "azurerm_public_ip",
            "azurerm_resource_group",
            "azurerm_role_assignment",
            "azurerm_role_definition",
            "azurerm_subnet",
            "azurerm_subnet_nat_gateway_association",
            "azurerm_subnet_network_security_group_association",
            "azurerm_user_assigned_identity",
            "azurerm_virtual_network",
        ),
        (
            "azurerm_client_config",
            "azurerm_resource_group",
            "azurerm_resources",
            "azurerm_subscription",
            "azurerm_user_assigned_identity",
        ),
    ),
    "nebius": (
        (
            "nebius_compute_v1_disk",
            "nebius_compute_v1_gpu_cluster",
            "nebius_compute_v1_instance",
            "nebius_iam_v1_access_permit",
            "nebius_iam_v1_group",
            "nebius_iam_v1_group_membership",
            "nebius_iam_v1_service_account",
            "nebius_vpc_v1_allocation",
            "nebius_vpc_v1_network",
            "nebius_vpc_v1_pool",
            "nebius_vpc_v1_route",
            "nebius_vpc_v1_route_table",
            "nebius_vpc_v1_security_group",
            "nebius_vpc_v1_security_rule",
            "nebius_vpc_v1_subnet",
        ),
        ("nebius_compute_v1_image", "nebius_parent_id"),
    ),
}


def reduce(document: dict[str, Any]) -> dict[str, Any]:
    """The part of a full schema that `modules` uses.  Raises KeyError if the provider or one of the types is not there."""
    resources, data = USED[document["provider"]]
    return {
        "provider": document["provider"],
        "version": document["version"],
        "resources": {kind: document["resources"][kind] for kind in resources},
        "data": {kind: document["data"][kind] for kind in data},
    }


def pack(document: dict[str, Any]) -> bytes:
    """Deterministic gzip of canonical JSON."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return gzip.compress(text.encode(), mtime=0)


def main(arguments: list[str]) -> None:
    """Write one `PROVIDER.json.gz` beside this file for each full schema file named."""
    for name in arguments:
        document = reduce(json.loads(Path(name).read_text(encoding="utf-8")))
        path = Path(__file__).with_name(f"{document['provider']}.json.gz")
        path.write_bytes(pack(document))
        sys.stdout.write(f"{path.name}: {document['provider']} {document['version']}, {path.stat().st_size} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1:])
