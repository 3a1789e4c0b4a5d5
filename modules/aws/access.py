"""What a job's nodes are: their role with its policies, their launch templates, their placement group.  Reviewed and applied by the deployer.

Hardened without a choice: IMDSv2 only, reachable from the machine itself only; encrypted disks; no public address; shutdown terminates.
"""

# pyright: basic

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from modules import cdk
from modules.aws.network import named
from modules.aws.policy import policy_document
from modules.text import fit, literal_tags

Tags = tuple[tuple[str, str], ...]
_NOT_FOR_IAM = re.compile(r"[^\w \u00a0\u2000-\u200a\u202f\u3000.:/=+@-]")
_ASSUME = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}

#: what a launch makes and tags; and what EC2 refuses to tag in a launch that is not spot (aws/karpenter-provider-aws#5850)
_TAGGED = ("instance", "volume", "network-interface")
_SPOT_REQUEST = "spot-instances-request"

#: what the SSM agent needs to hold a session's channel open, which it dials itself: no port is opened.  Who may start a session is the account's IAM.
#: `*`: these actions know no resource.  Not AmazonSSMManagedInstanceCore, which also reads every parameter of the account
_SESSION: dict[str, Any] = {
    "Statement": [
        {
            "Sid": "SessionChannel",
            "Effect": "Allow",
            "Action": [
                "ssmmessages:CreateControlChannel",
                "ssmmessages:CreateDataChannel",
                "ssmmessages:OpenControlChannel",
                "ssmmessages:OpenDataChannel",
            ],
            "Resource": "*",
        },
        {"Sid": "SessionReady", "Effect": "Allow", "Action": "ssm:UpdateInstanceInformation", "Resource": "*"},
    ],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleProps:
    """`policies`: (name, IAM document).  `path` starts and ends with `/`.  `session`: people may open a shell by Session Manager."""

    name: str
    path: str
    policies: tuple[tuple[str, dict[str, Any]], ...]
    permissions_boundary: str | None
    tags: Tags
    session: bool = False


class NodeRole(cdk.Construct):
    """The role of the nodes and its instance profile.  Only EC2 may assume it."""

    def __init__(self, scope: cdk.Stack, props: RoleProps) -> None:
        super().__init__(scope, "role")
        trust = policy_document(self, "trust", {"Statement": [_ASSUME]})
        role = cdk.Resource(
            self,
            "node",
            "aws_iam_role",
            {
                "name": fit(props.name, 64),
                "path": props.path,
                "description": "Nodes of one skyplan job",
                "assume_role_policy": trust.ref("json"),
                "permissions_boundary": props.permissions_boundary,
                "tags": iam_tags(props.tags),
            },
        )
        for name, document in (*props.policies, *([("session", _SESSION)] if props.session else [])):
            rendered = policy_document(self, name, document)
            cdk.Resource(
                self,
                name,
                "aws_iam_role_policy",
                {"name": fit(name, 128), "role": role.ref("name"), "policy": rendered.ref("json")},
            )
        self.role_arn = role.ref("arn")
        self._role = role
        self.profile = cdk.Resource(
            self,
            "node",
            "aws_iam_instance_profile",
            {
                "name": fit(props.name, 128),
                "path": props.path,
                "role": role.ref("name"),
                "tags": iam_tags(props.tags),
            },
        )

    def passed_by(self, orchestrator: str, name: str) -> None:
        """Lets the orchestrator (an ARN) hand this role to machines: exactly this one, so the right ends with the job."""
        statement = {
            "Sid": "PassJobRole",
            "Effect": "Allow",
            "Action": "iam:PassRole",
            "Resource": self._role.ref("arn"),
            "Condition": {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
        }
        rendered = policy_document(self, "pass", {"Statement": [statement]})
        cdk.Resource(
            self,
            "pass",
            "aws_iam_role_policy",
            {"name": name, "role": orchestrator.rsplit("/", 1)[-1], "policy": rendered.ref("json")},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateProps:
    """One launch template.

    label         Terraform name; `name` is the cloud's
    user_data     base64
    machine_image AMI id, or an SSM parameter path (starts with `/`)
    efa           number of EFA interfaces; 0 = the launch says subnet, address and groups
    head_address  first address of rank 0, given in its template where `efa` > 0, as the launch cannot give it then
    spot          tags the spot request too, by which alone it can be told from a stranger's; such a template launches nothing but spot
    """

    label: str
    name: str
    instance_type: str
    machine_image: str
    user_data: str
    disk_gb: int
    efa: int
    subnet_id: str
    security_group_ids: str
    head_address: str | None
    profile_arn: str
    kms_key_arn: str | None
    tags: Tags
    spot: bool = False


class NodeTemplate(cdk.Construct):
    """A launch template; with EFA and a pinned head address a second one for rank 0."""

    def __init__(self, scope: cdk.Stack, props: TemplateProps) -> None:
        super().__init__(scope, f"template-{props.label}")
        self._props = props
        self._efa = props.efa > 0
        image, lifecycle = self._image()
        common = {
            "update_default_version": True,
            "image_id": image,
            "ebs_optimized": "true",
            "instance_initiated_shutdown_behavior": "terminate",
            "user_data": props.user_data,
            "iam_instance_profile": {"arn": props.profile_arn},
            "metadata_options": {
                "http_endpoint": "enabled",
                "http_tokens": "required",
                "http_put_response_hop_limit": 1,
                "instance_metadata_tags": "enabled" if _fit_for_metadata(props.tags) else "disabled",
            },
            "block_device_mappings": [{"device_name": "/dev/sda1", "ebs": self._disk()}],
            "tag_specifications": [
                {"resource_type": kind, "tags": literal_tags(props.tags)}
                for kind in (*_TAGGED, *((_SPOT_REQUEST,) if props.spot else ()))
            ],
            "tags": named(props.tags, props.name),
        }
        self.template = cdk.Resource(
            self,
            props.label,
            "aws_launch_template",
            {"name": fit(props.name, 128), **common, "network_interfaces": self._interfaces(None)},
            lifecycle=lifecycle,
        )
        self.head = self.template
        if self._efa and props.head_address:
            self.head = cdk.Resource(
                self,
                f"{props.label}-head",
                "aws_launch_template",
                {
                    "name": fit(f"{props.name}-head", 128),
                    **common,
                    "network_interfaces": self._interfaces(props.head_address),
                },
                lifecycle=lifecycle,
            )

    @property
    def described(self) -> dict[str, str]:
        """What a launch needs to know of it."""
        return {
            "id": self.template.ref(),
            "version": self.template.ref("latest_version"),
            "head_id": self.head.ref(),
            "head_version": self.head.ref("latest_version"),
            "subnet_id": "" if self._efa else self._props.subnet_id,
        }

    def _image(self) -> tuple[str, dict[str, Any] | None]:
        """The image, and, if a parameter names it, the rule that the id found first is kept."""
        props = self._props
        if not props.machine_image.startswith("/"):
            return props.machine_image, None
        found = cdk.DataSource(self, props.label, "aws_ssm_parameter", {"name": props.machine_image})
        return found.ref("value"), {"ignore_changes": ["image_id"]}

    def _disk(self) -> dict[str, Any]:
        return {
            "volume_type": "gp3",
            "volume_size": self._props.disk_gb,
            "encrypted": "true",
            "kms_key_id": self._props.kms_key_arn,
            "delete_on_termination": "true",
        }

    def _interfaces(self, address: str | None) -> list[dict[str, Any]] | None:
        """One EFA interface per network card; several interfaces never get a public address by themselves.

        The device indices (0 for the first card, 1 for the others) follow what is common in public modules; AWS's text has both forms.
        p6-b300's first card carries no EFA.
        """
        props = self._props
        if not self._efa:
            return None
        plain_first = props.instance_type.startswith("p6-b300.")
        return [
            {
                "device_index": 0 if card == 0 else 1,
                "network_card_index": card,
                "interface_type": None if plain_first and card == 0 else "efa",
                "associate_public_ip_address": "false" if props.efa == 1 and not plain_first else None,
                "subnet_id": props.subnet_id,
                "security_groups": props.security_group_ids,
                "private_ip_address": address if card == 0 else None,
                "delete_on_termination": "true",
            }
            for card in range(props.efa + plain_first)
        ]


def placement_group(scope: cdk.Stack, name: str, tags: Tags) -> cdk.Resource:
    """A group whose nodes AWS puts close together."""
    return cdk.Resource(
        scope,
        "nodes",
        "aws_placement_group",
        {"name": fit(name, 255), "strategy": "cluster", "tags": literal_tags(tags)},
    )


def iam_tags(tags: Tags) -> dict[str, str]:
    """Tags as IAM takes them, which is narrower than EC2: letters, digits, spaces and `_.:/=+-@`, and no two keys that differ in case only.

    What does not fit is a dash; of two such keys the first stays: skyplan's own stand first (IAM user guide, "Tags for IAM resources", 2026).
    """
    found: dict[str, str] = {}
    for key, value in tags:
        if key.lower() not in {held.lower() for held in found}:
            found[key] = _NOT_FOR_IAM.sub("-", value)
    return literal_tags(tuple(found.items()))


def _fit_for_metadata(tags: Tags) -> bool:
    """Whether EC2 would take these tag keys into instance metadata: with a space or `/` in one, the launch fails."""
    return not any(" " in key or "/" in key or key in {".", "..", "_index"} for key, _ in tags)
