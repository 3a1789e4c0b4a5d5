"""Predefined roles: what skyplan gives is known and small, what is broad shows, and an unknown role is not taken for an empty one."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import pytest

from planner.iam import azure, gcp, nebius
from planner.iam.foundation.azure import GIVEN_TO_NODES
from planner.iam.foundation.gcp import GRANTABLE
from planner.iam.roles import PREDEFINED, known, permissions_of, role_of
from planner.model.offer import Cloud

GIVEN = [
    *((Cloud.GCP, role) for role in GRANTABLE),
    *((Cloud.AZURE, role) for role in (azure.READER, azure.SECRET_READER, *GIVEN_TO_NODES)),
    *((Cloud.NEBIUS, role) for role in (*nebius.WRITE, nebius.READ_SECRET)),
]


@pytest.mark.parametrize(("cloud", "role"), GIVEN)
def test_a_role_that_skyplan_gives_is_known_and_has_no_delete(cloud, role):
    assert known(cloud, role)
    assert permissions_of(cloud, role)
    assert not [one for one in permissions_of(cloud, role) if "delete" in one.lower() or one.endswith("*")]


@pytest.mark.parametrize("cloud", [Cloud.GCP, Cloud.AZURE, Cloud.NEBIUS])
def test_an_unknown_role_is_unknown_and_not_empty(cloud):
    assert not known(cloud, "roles/of.nobody")
    assert permissions_of(cloud, "roles/of.nobody") == frozenset()
    assert not known(Cloud.AWS, "roles/owner")


@pytest.mark.parametrize(
    ("cloud", "role", "permission"),
    [
        (Cloud.GCP, "roles/editor", "iam.serviceAccounts.actAs"),
        (Cloud.GCP, "roles/iam.serviceAccountTokenCreator", "iam.serviceAccounts.getAccessToken"),
        (Cloud.GCP, "roles/compute.admin", "compute.instances.setMetadata"),
        (Cloud.GCP, "roles/iam.securityAdmin", "resourcemanager.projects.setIamPolicy"),
        (Cloud.GCP, gcp.VIEWER, "storage.objects.list"),
        (Cloud.AZURE, "Virtual Machine Contributor", "Microsoft.Compute/virtualMachines/runCommand/action"),
        (Cloud.AZURE, "User Access Administrator", "Microsoft.Authorization/roleAssignments/write"),
        (
            Cloud.AZURE,
            "Storage Blob Data Contributor",
            "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/delete",
        ),
    ],
)
def test_what_matters_to_a_rule_is_in_the_role(cloud, role, permission):
    assert any(fnmatchcase(permission, pattern) for pattern in permissions_of(cloud, role))


@pytest.mark.parametrize(
    ("role", "permission"),
    [
        ("roles/editor", "resourcemanager.projects.setIamPolicy"),
        ("roles/editor", "iam.serviceAccounts.getAccessToken"),
        ("roles/viewer", "storage.objects.get"),
        ("roles/storage.objectCreator", "storage.objects.delete"),
        ("roles/iam.serviceAccountUser", "iam.serviceAccounts.getAccessToken"),
    ],
)
def test_what_a_role_famously_lacks_is_not_in_it(role, permission):
    assert not any(fnmatchcase(permission, pattern) for pattern in permissions_of(Cloud.GCP, role))


def test_contributor_takes_the_writing_of_rights_out_again():
    found = role_of(Cloud.AZURE, "contributor")
    assert found is not None
    assert "Microsoft.Authorization/*/Write" in found.not_actions
    assert found.data_actions == ()


def test_a_role_of_azure_is_found_by_its_id_and_by_the_path_to_it():
    by_name = permissions_of(Cloud.AZURE, "Storage Blob Data Reader")
    guid = "2A2B9908-6ea1-4ae2-8e65-a410df84e7d1"
    assert permissions_of(Cloud.AZURE, guid) == by_name
    path = f"/subscriptions/s/providers/Microsoft.Authorization/roleDefinitions/{guid}"
    assert permissions_of(Cloud.AZURE, path) == by_name


def test_every_role_has_a_source_with_its_date():
    for roles in PREDEFINED.values():
        for found in roles.values():
            assert re.search(r"as of 20\d\d", found.source)
            assert found.actions or found.data_actions
