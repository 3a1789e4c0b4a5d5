"""What providers say of a name that is taken, and the id that Terraform imports it by."""

from __future__ import annotations

import pytest

from planner.model.diagnostic import Diagnostic
from stacks.exists import existing

GROUP = (
    "/subscriptions/s/resourceGroups/skyplan-acme/providers/Microsoft.ManagedIdentity/userAssignedIdentities/skyplan-x"
)


def judged(*texts):
    return existing([Diagnostic(code="SKY-APPLY-310", summary=text) for text in texts])


@pytest.mark.parametrize(
    ("text", "address", "identity"),
    [
        (
            (
                f'azurerm_user_assigned_identity.node: A resource with the ID "{GROUP}" already exists - to be managed via Terraform this '
                'resource needs to be imported into the State. Please see the resource documentation for "azurerm_user_assigned_identity".'
            ),
            "azurerm_user_assigned_identity.node",
            GROUP,
        ),
        (
            (
                "google_compute_network.net: Error creating Network: googleapi: Error 409: The resource 'projects/acme/global/networks/skyplan' "
                "already exists, alreadyExists"
            ),
            "google_compute_network.net",
            "projects/acme/global/networks/skyplan",
        ),
        (
            (
                "google_service_account.node: Error creating service account: googleapi: Error 409: Service account skyplan-train-1 already exists "
                "within project projects/acme-ml., alreadyExists"
            ),
            "google_service_account.node",
            "projects/acme-ml/serviceAccounts/skyplan-train-1@acme-ml.iam.gserviceaccount.com",
        ),
        (
            (
                'aws_iam_role.node["a"]: creating IAM Role (skyplan-x): operation error IAM: CreateRole, https response error StatusCode: 409, '
                "RequestID: r, EntityAlreadyExists: Role with name skyplan-x already exists."
            ),
            'aws_iam_role.node["a"]',
            "skyplan-x",
        ),
        (
            (
                "aws_iam_instance_profile.node: creating IAM Instance Profile (skyplan-x): operation error IAM: CreateInstanceProfile, "
                "EntityAlreadyExists: Instance Profile skyplan-x already exists."
            ),
            "aws_iam_instance_profile.node",
            "skyplan-x",
        ),
    ],
)
def test_a_taken_name_says_what_to_import(text, address, identity):
    assert judged(text) == ((address, identity),)


def test_nothing_is_guessed():
    assert judged("azurerm_subnet.net: SkuNotAvailable: none", "already exists") == ()
    assert judged("nebius_iam_v1_service_account.node: rpc error: code = AlreadyExists desc = name is taken") == ()
    assert judged("The resource 'projects/acme/global/networks/x' already exists") == (), "whose it is, is not said"


def test_each_once():
    text = "google_compute_network.net: The resource 'projects/acme/global/networks/x' already exists"
    assert len(judged(text, text)) == 1
