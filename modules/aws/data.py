"""What the broker becomes for a job's nodes: a role of the job's own, cut to its prefixes, that nobody but the broker may take on.

Reviewed and applied by the deployer, behind the foundation's boundary of data identities.  A session says for which job it is, and no tag beside
skyplan's, as others' policies may look at any.  It lasts an hour, which is the most that a role gets as which another role comes.
Never run against a live account.
"""

# pyright: basic

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modules import cdk
from modules.aws.access import iam_tags
from modules.aws.policy import policy_document
from planner.model.control_names import DATA_SESSION_SECONDS, SESSION_TAGS, data_path
from planner.model.stack import DataIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class DataRoleProps:
    """`label` begins the Terraform names; `tags` are the stack's."""

    label: str
    project: str
    job: str
    identity: DataIdentity
    tags: tuple[tuple[str, str], ...]


class DataRole(cdk.Construct):
    """The role, in the account of the store."""

    def __init__(self, scope: cdk.Stack | cdk.Construct, props: DataRoleProps) -> None:
        super().__init__(scope, props.label)
        given = props.identity
        trusted = policy_document(
            self, f"{props.label}-trust", {"Statement": [trust(given.broker, props.project, props.job)]}
        )
        role = cdk.Resource(
            self,
            props.label,
            "aws_iam_role",
            {
                "name": given.name,
                "path": data_path(props.project),
                "description": "Data of one skyplan job, by the broker",
                "assume_role_policy": trusted.ref("json"),
                "permissions_boundary": given.boundary,
                "max_session_duration": DATA_SESSION_SECONDS,
                "tags": iam_tags(props.tags),
            },
        )
        for policy in given.policies:
            name = f"{props.label}-{policy.name}"
            rendered = policy_document(self, name, policy.document)
            cdk.Resource(
                self,
                name,
                "aws_iam_role_policy",
                {"name": policy.name, "role": role.ref("name"), "policy": rendered.ref("json")},
            )
        self.arn = role.ref("arn")


def trust(broker: str, project: str, job: str) -> dict[str, Any]:
    """The broker's role, for this job, with skyplan's tags and no others."""
    return {
        "Sid": "BrokerForThisJob",
        "Effect": "Allow",
        "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Principal": {"AWS": broker},
        "Condition": {
            "ForAllValues:StringEquals": {"aws:TagKeys": list(SESSION_TAGS)},
            "StringEquals": {"aws:RequestTag/skyplan:project": project, "aws:RequestTag/skyplan:job": job},
        },
    }
