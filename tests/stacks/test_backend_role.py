"""As whom Terraform keeps the state of a stack of AWS in S3: the role that applies it, whose rights on its own states the foundation gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from planner.model.project import Backend
from tests.stacks import gcp_inputs, inputs

ROLE = "arn:aws:iam::123456789012:role/skyplan-foundation/acme/skyplan-acme-deployer"
S3 = Backend(kind="s3", settings=(("bucket", "acme-tfstate"), ("region", "us-east-1")))
Render = Callable[..., dict[str, Any]]


def test_the_role_that_applies_the_stack_keeps_its_state(render: Render) -> None:
    made = render(inputs.network(backend=S3, role_arn=ROLE))
    assert made["terraform"]["backend"] == {"s3": {"assume_role": {"role_arn": ROLE, "session_name": "skyplan"}}}


@pytest.mark.parametrize(
    "given",
    [
        inputs.network(backend=S3, role_arn=None),
        inputs.network(
            backend=Backend(kind="s3", settings=(*S3.settings, ("assume_role", "{role_arn = ROLE}"))), role_arn=ROLE
        ),
        gcp_inputs.network(backend=S3, role_arn=ROLE),
    ],
    ids=["without a role", "as the user says", "of another cloud"],
)
def test_otherwise_whoever_runs_terraform_does(render: Render, given: Any) -> None:
    assert render(given)["terraform"]["backend"] == {"s3": {}}
