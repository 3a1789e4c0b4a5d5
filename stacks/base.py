"""What every stack has: the backend's kind, the provider, the versions."""

# pyright: basic

from __future__ import annotations

from modules import cdk, schema
from planner.model.stack import StackBase

#: attempts per call.  The provider's default (25; 0 means the same) takes 10 min over a capacity error, 5 take 4 s and survive throttling
MAX_RETRIES = 5


class AwsStack(cdk.Stack):
    """A stack with the AWS provider.  No `default_tags`: a changed default would reach nodes that must not change."""

    def __init__(self, app: cdk.App, given: StackBase) -> None:
        super().__init__(app, given.name, schema=schema.load("aws", given.provider_version))
        self.add_override("terraform.required_version", ">= 1.5")
        cdk.Backend(self, given.backend.kind)
        cdk.Provider(
            self,
            "aws",
            source="hashicorp/aws",
            version=given.provider_version,
            attributes={
                "region": given.region,
                "max_retries": MAX_RETRIES,
                "allowed_account_ids": [given.account] if given.account else None,
                "assume_role": [{"role_arn": given.role_arn, "session_name": "skyplan"}] if given.role_arn else None,
            },
        )
