"""`acc-NAME-TARGET-REGION`: what a job's nodes are and may do.  Everything here is reviewed; nothing here runs."""

# pyright: basic

from __future__ import annotations

from modules import cdk
from modules.aws import access as aws
from modules.aws.user_data import Node, user_data
from planner.model.stack import AccessInput, NodeTemplate
from stacks.base import AwsStack
from stacks.naming import label


class AccessStack(AwsStack):
    """Variables: `subnet_ids`, `security_group_ids` (outputs of `net`).

    Outputs: `launch_templates` {key: {id, version, head_id, head_version, subnet_id}}, `placement_group` ("" for none), `node_role_arn`.
    """

    def __init__(self, app: cdk.App, given: AccessInput) -> None:
        super().__init__(app, given)
        self._given = given
        self._subnets = cdk.variable(self, "subnet_ids", "map(string)", "Zone id to subnet id").strip("${}")
        self._groups = cdk.variable(self, "security_group_ids", "list(string)", "Groups of every node")
        self._role = aws.NodeRole(
            self,
            aws.RoleProps(
                name=f"skyplan-{given.name}",
                path=f"/skyplan/{given.project}/",
                policies=tuple((policy.name, policy.document) for policy in given.policies),
                permissions_boundary=given.permissions_boundary,
                tags=given.tags,
            ),
        )
        described = {template.key: self._template(template).described for template in given.templates}
        group = ""
        if any(template.cluster for template in given.templates):
            group = aws.placement_group(self, f"skyplan-{given.name}", given.tags).ref("name")
        cdk.output(self, "launch_templates", described, "What a launch needs, by template key")
        cdk.output(self, "placement_group", group, "Name of the placement group")
        cdk.output(self, "node_role_arn", self._role.role_arn, "What the orchestrator passes to nodes")

    def _template(self, template: NodeTemplate) -> aws.NodeTemplate:
        given = self._given
        head = template.addresses[0] if template.addresses else given.head_address
        node = Node(
            region=given.region,
            gpus=template.gpu_count,
            nvme=template.nvme,
            efa=template.efa_interfaces > 0,
            addresses=template.addresses,
            head=head,
        )
        return aws.NodeTemplate(
            self,
            aws.TemplateProps(
                label=label(template.key),
                name=f"skyplan-{given.name}-{label(template.key)}",
                instance_type=template.instance_type,
                machine_image=template.machine_image,
                user_data=user_data(given.workload, node),
                disk_gb=template.disk_gb,
                efa=template.efa_interfaces,
                subnet_id=f'${{{self._subnets}["{template.zone}"]}}',
                security_group_ids=self._groups,
                head_address=head,
                profile_arn=self._role.profile.ref("arn"),
                kms_key_arn=given.kms_key_arn,
                tags=given.tags,
            ),
        )
