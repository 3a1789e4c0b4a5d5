"""What skyplan's stacks and its own code call on AWS, by resource and step.

Facts only, no guard: within which bounds each action is allowed is `planner.iam.foundation.aws`'s.  Recorded from AWS provider 5.100.0 against an emulator
(2026-11: plan, apply, sync, destroy), filled in where an emulator has no such feature from the provider's source and the Service Authorization Reference.
Not run against a live account.

Refused calls that do no harm are no operations but `TOLERATED`.
"""

from __future__ import annotations

from typing import Final

from planner.iam.operations.rows import Table
from planner.model.control import Operation
from planner.model.grants import Identity, Permission

_UPDATE: Final = "a change of tags or settings of something that stands; the life of a job has none"
_NO_KEYS: Final = (
    "only where the target names a key of the user's own; AWS uses it on the caller's behalf, within RunInstances"
)
_GONE: Final = (
    "asked of an association that has gone with its NAT gateway or node: EC2 finds none to judge; "
    "where one still stands, it is of the project's own address"
)
_MINTED: Final = "of what the broker becomes only where a project has a broker; the jobs whose lives are run have none"
_WITHIN: Final = "no call of its own: AWS checks it within"

#: what the provider calls and nobody is granted, with what then happens
TOLERATED: Final = {
    "ec2:ModifyInstanceAttribute": "before it ends an instance the provider (5.x) lifts the protection against termination, which skyplan never sets; refused, "
    "it warns in its log and goes on. Who may modify attributes can change user data, and so run code as the node",
}


def _reads_describe(permission: Permission, action: str) -> Permission:
    return Permission.DESCRIBE if action.startswith("ec2:Describe") else permission


def _deployer(stack: str, permission: Permission) -> Table:
    return Table(stack=stack, identity=Identity.DEPLOYER, permission=permission, prefix="ec2", under=_reads_describe)


_NET: Final = _deployer("network", Permission.MANAGE_NETWORK)
_ADR: Final = _deployer("addresses", Permission.RESERVE_ADDRESS)
_ACC: Final = _deployer("access", Permission.MANAGE_LAUNCH)
_IAM: Final = Table(
    stack="access", identity=Identity.DEPLOYER, permission=Permission.MANAGE_NODE_IDENTITY, prefix="iam"
)
_TAGS: Final = "CreateTags DeleteTags"

_NETWORK: Final = (
    *_NET.row(
        "aws_vpc",
        create="CreateVpc CreateTags ModifyVpcAttribute",
        read="DescribeVpcs DescribeVpcAttribute DescribeNetworkAcls DescribeRouteTables DescribeSecurityGroups",
        delete="DeleteVpc",
    ),
    *_NET.row("aws_vpc", update=_TAGS, unused=_UPDATE),
    *_NET.row(
        "aws_subnet",
        create="CreateSubnet CreateTags",
        read="DescribeSubnets",
        delete="DescribeNetworkInterfaces DeleteSubnet",
    ),
    *_NET.row("aws_subnet", update=_TAGS, unused=_UPDATE),
    *_NET.row(
        "aws_internet_gateway",
        create="CreateInternetGateway CreateTags AttachInternetGateway",
        read="DescribeInternetGateways",
        delete="DetachInternetGateway DeleteInternetGateway",
    ),
    *_NET.row("aws_internet_gateway", update=_TAGS, unused=_UPDATE),
    *_NET.row(
        "aws_eip",
        create="AllocateAddress CreateTags",
        read="DescribeAddresses DescribeAddressesAttribute",
        delete="ReleaseAddress",
    ),
    *_NET.row("aws_eip", delete="DisassociateAddress", unused=_GONE),
    *_NET.row("aws_eip", update=_TAGS, unused=_UPDATE),
    *_NET.row(
        "aws_nat_gateway",
        create="CreateNatGateway CreateTags",
        read="DescribeNatGateways",
        delete="DeleteNatGateway",
    ),
    *_NET.row("aws_nat_gateway", update=_TAGS, unused=_UPDATE),
    *_NET.row(
        "aws_route_table",
        create="CreateRouteTable CreateTags",
        read="DescribeRouteTables",
        delete="DeleteRouteTable",
    ),
    *_NET.row("aws_route_table", update=_TAGS, unused=_UPDATE),
    *_NET.row("aws_route", create="CreateRoute", read="DescribeRouteTables", delete="DeleteRoute"),
    *_NET.row("aws_route", update="ReplaceRoute", unused="only where the way out was made anew"),
    *_NET.row(
        "aws_route_table_association",
        create="AssociateRouteTable",
        read="DescribeRouteTables",
        delete="DisassociateRouteTable",
    ),
    *_NET.row(
        "aws_route_table_association",
        update="ReplaceRouteTableAssociation",
        unused="only where the route table was made anew",
    ),
    *_NET.row(
        "aws_vpc_endpoint",
        create="CreateVpcEndpoint CreateTags",
        read="DescribeVpcEndpoints DescribePrefixLists",
        delete="DeleteVpcEndpoints",
    ),
    *_NET.row(
        "aws_vpc_endpoint",
        update=f"ModifyVpcEndpoint {_TAGS}",
        unused="only where a route table was made anew, or tags changed",
    ),
)
_ADDRESSES: Final = (
    *_ADR.row(
        "aws_eip",
        create="AllocateAddress CreateTags",
        read="DescribeAddresses DescribeAddressesAttribute",
        delete="ReleaseAddress",
    ),
    *_ADR.row("aws_eip", delete="DisassociateAddress", unused=_GONE),
    *_ADR.row("aws_eip", update=_TAGS, unused=_UPDATE),
)
_RULES: Final = tuple(
    operation
    for direction, word in (("ingress", "Ingress"), ("egress", "Egress"))
    for rows in (
        _ACC.row(
            f"aws_vpc_security_group_{direction}_rule",
            create=f"AuthorizeSecurityGroup{word} CreateTags",
            read="DescribeSecurityGroupRules",
            delete=f"RevokeSecurityGroup{word}",
        ),
        _ACC.row(
            f"aws_vpc_security_group_{direction}_rule", update=f"ModifySecurityGroupRules {_TAGS}", unused=_UPDATE
        ),
    )
    for operation in rows
)
_ACCESS: Final = (
    *_ACC.row(
        "aws_security_group",
        # a new group lets everything out; the provider takes that rule away
        create="CreateSecurityGroup CreateTags RevokeSecurityGroupEgress",
        read="DescribeSecurityGroups",
        delete="DescribeNetworkInterfaces DeleteSecurityGroup",
    ),
    *_ACC.row("aws_security_group", update=_TAGS, unused=_UPDATE),
    *_RULES,
    *_ACC.row(
        "aws_launch_template",
        create="CreateLaunchTemplate CreateTags",
        read="DescribeLaunchTemplates DescribeLaunchTemplateVersions",
        delete="DeleteLaunchTemplate",
    ),
    *_ACC.row(
        "aws_launch_template",
        update=f"CreateLaunchTemplateVersion ModifyLaunchTemplate {_TAGS}",
        unused="only where a job is changed and placed again while its access stack stands",
    ),
    *_ACC.row(
        "aws_placement_group",
        create="CreatePlacementGroup CreateTags",
        read="DescribePlacementGroups",
        delete="DeletePlacementGroup",
    ),
    *_ACC.row("aws_placement_group", update=_TAGS, unused=_UPDATE),
    *_ACC.row("data.aws_ssm_parameter", read="ssm:GetParameter"),
    *_ACC.row("data.aws_iam_policy_document", read="", unused="renders a document, calls nothing"),
    *_IAM.row(
        "aws_iam_role",
        create="CreateRole",
        read="GetRole ListRolePolicies ListAttachedRolePolicies GetRolePolicy",
        delete="ListInstanceProfilesForRole DeleteRole",
    ),
    *_IAM.row("aws_iam_role", create="TagRole", unused=f"{_WITHIN} CreateRole, which brings the tags"),
    *_IAM.row("aws_iam_role", update="TagRole UntagRole PutRolePermissionsBoundary", unused=_UPDATE),
    *_IAM.row(
        "aws_iam_role_policy",
        create="PutRolePolicy",
        read="GetRolePolicy",
        update="PutRolePolicy",
        delete="DeleteRolePolicy",
    ),
    # what the broker becomes: in a folder of its own, behind a boundary of its own, so that these are rights of their own
    *_IAM.row("aws_iam_role", create="CreateRole", update="PutRolePermissionsBoundary", unused=_MINTED),
    *_IAM.row("aws_iam_role_policy", create="PutRolePolicy", delete="DeleteRolePolicy", unused=_MINTED),
    *_IAM.row(
        "aws_iam_instance_profile",
        create="CreateInstanceProfile AddRoleToInstanceProfile",
        read="GetInstanceProfile GetRole",
        delete="RemoveRoleFromInstanceProfile DeleteInstanceProfile",
    ),
    *_IAM.row(
        "aws_iam_instance_profile",
        create="TagInstanceProfile PassRole",
        unused=f"{_WITHIN} CreateInstanceProfile and AddRoleToInstanceProfile",
    ),
    *_IAM.row("aws_iam_instance_profile", update="TagInstanceProfile UntagInstanceProfile", unused=_UPDATE),
)


def _compute(permission: Permission) -> Table:
    return Table(
        stack="compute", identity=Identity.ORCHESTRATOR, permission=permission, prefix="ec2", under=_reads_describe
    )


_COMPUTE: Final = (
    *_compute(Permission.LAUNCH).row("aws_instance", create="RunInstances"),
    *_compute(Permission.LAUNCH).row(
        "aws_instance", create="CreateTags", unused=f"{_WITHIN} RunInstances, which brings the tags"
    ),
    *_compute(Permission.LAUNCH).row(
        "aws_instance",
        create="kms:CreateGrant kms:Decrypt kms:DescribeKey kms:GenerateDataKeyWithoutPlaintext",
        unused=_NO_KEYS,
    ),
    *_compute(Permission.PASS_IDENTITY).row(
        "aws_instance",
        create="iam:PassRole",
        unused=f"{_WITHIN} RunInstances; granted job by job, by the policy that the job's access stack adds",
    ),
    *_compute(Permission.TERMINATE).row(
        "aws_instance",
        read="DescribeInstances DescribeInstanceAttribute DescribeInstanceTypes DescribeLaunchTemplates "
        "DescribeLaunchTemplateVersions DescribeSpotInstanceRequests DescribeTags DescribeVolumes DescribeVpcs",
        delete="TerminateInstances CancelSpotInstanceRequests",
    ),
    *_compute(Permission.ATTACH_ADDRESS).row(
        "aws_eip_association",
        create="AssociateAddress",
        read="DescribeAddresses",
        delete="DisassociateAddress",
    ),
)
_LISTER: Final = "planner.clouds.aws.AwsLister"
_FEED: Final = "planner.clouds.feeds.aws.AwsFeed"
#: why reading a market goes unseen where the life of jobs is run
REFRESHED: Final = "asked where prices are refreshed (`skyplan prices refresh`), which is no step of a job's life"


def _own(identity: Identity, permission: Permission, prefix: str = "ec2") -> Table:
    return Table(stack="", identity=identity, permission=permission, prefix=prefix, under=_reads_describe)


_OWN: Final = (
    *_own(Identity.ORCHESTRATOR, Permission.TERMINATE).row(
        _LISTER, call="DescribeInstances DescribeAvailabilityZones TerminateInstances"
    ),
    *_own(Identity.PLANNER, Permission.DESCRIBE).row(_LISTER, call="DescribeInstances DescribeAvailabilityZones"),
    *_own(Identity.PLANNER, Permission.READ_MARKET).row(
        _FEED,
        call="DescribeAvailabilityZones DescribeInstanceTypeOfferings DescribeSpotPriceHistory GetSpotPlacementScores "
        "pricing:GetProducts servicequotas:ListServiceQuotas",
        unused=REFRESHED,
    ),
    *_own(Identity.PLANNER, Permission.READ_MARKET).row(
        "catalog",
        call="DescribeInstanceTypes DescribeRegions DescribeCapacityBlockOfferings servicequotas:GetServiceQuota",
        unused="nothing asks for these yet: types, regions and blocks are the packaged catalog's and the project file's",
    ),
    *_own(Identity.DEPLOYER, Permission.KEEP_STATE, "s3").row(
        "backend.s3", call="ListBucket GetObject PutObject DeleteObject"
    ),
    *_own(Identity.ORCHESTRATOR, Permission.KEEP_STATE, "s3").row(
        "backend.s3", call="ListBucket GetObject PutObject DeleteObject"
    ),
    *_own(Identity.BROKER, Permission.MINT_CREDENTIALS, "sts").row(
        "broker",
        call="AssumeRole TagSession",
        unused="only where a project has a broker; the enforcement run has none",
    ),
    *_own(Identity.DEPLOYER, Permission.DESCRIBE).row(
        "provider.aws", call="", unused="sts:GetCallerIdentity, which everybody may"
    ),
    *_own(Identity.ORCHESTRATOR, Permission.DESCRIBE).row(
        "provider.aws", call="", unused="sts:GetCallerIdentity, which everybody may"
    ),
)

OPERATIONS: Final[tuple[Operation, ...]] = (*_NETWORK, *_ADDRESSES, *_ACCESS, *_COMPUTE, *_OWN)
