"""As whom Terraform keeps the state of a stack in its own cloud: the role that applies it, whose rights on its own states the foundation gives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from planner.model.project import Backend
from tests.stacks import azure_inputs, gcp_inputs, inputs

ROLE = "arn:aws:iam::123456789012:role/skyplan-foundation/acme/skyplan-acme-deployer"
EMAIL = "skyplan-acme-deployer@acme-ml.iam.gserviceaccount.com"
CLIENT = "11111111-0000-4000-8000-000000000000"
S3 = Backend(kind="s3", settings=(("bucket", "acme-tfstate"), ("region", "us-east-1")))
GCS = Backend(kind="gcs", settings=(("bucket", "acme-tfstate"),))
BLOBS = Backend(kind="azurerm", settings=(("storage_account_name", "acmestate"), ("container_name", "tf")))
Render = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (
            inputs.network(backend=S3, role_arn=ROLE),
            {"s3": {"assume_role": {"role_arn": ROLE, "session_name": "skyplan"}}},
        ),
        (gcp_inputs.network(backend=GCS, role_arn=EMAIL), {"gcs": {"impersonate_service_account": EMAIL}}),
        (azure_inputs.network(backend=BLOBS, role_arn=CLIENT), {"azurerm": {"client_id": CLIENT}}),
    ],
    ids=["aws", "gcp", "azure"],
)
def test_the_role_that_applies_the_stack_keeps_its_state(render: Render, given: Any, wanted: dict[str, Any]) -> None:
    assert render(given)["terraform"]["backend"] == wanted


def _said(backend: Backend, name: str) -> Backend:
    return Backend(kind=backend.kind, settings=(*backend.settings, (name, "theirs")))


@pytest.mark.parametrize(
    "given",
    [
        inputs.network(backend=S3, role_arn=None),
        gcp_inputs.network(backend=GCS, role_arn=None),
        azure_inputs.network(backend=BLOBS, role_arn=None),
        inputs.network(backend=_said(S3, "assume_role"), role_arn=ROLE),
        gcp_inputs.network(backend=_said(GCS, "impersonate_service_account"), role_arn=EMAIL),
        azure_inputs.network(backend=_said(BLOBS, "client_id"), role_arn=CLIENT),
        gcp_inputs.network(backend=S3, role_arn=EMAIL),
        inputs.network(backend=GCS, role_arn=ROLE),
        inputs.network(backend=Backend(), role_arn=ROLE),
    ],
)
def test_otherwise_whoever_runs_terraform_does(render: Render, given: Any) -> None:
    assert list(render(given)["terraform"]["backend"].values()) == [{}]


def test_on_azure_the_provider_is_the_identity_that_the_target_names(render: Render) -> None:
    assert render(azure_inputs.network(role_arn=CLIENT))["provider"]["azurerm"][0]["client_id"] == CLIENT
    assert "client_id" not in render(azure_inputs.network(role_arn=None))["provider"]["azurerm"][0]
