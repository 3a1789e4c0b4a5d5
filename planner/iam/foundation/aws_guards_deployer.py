"""The deployer's guards on AWS: what it makes carries the project's tag or lies in the project's path, what it changes does already.  Pure.

Roles of nodes are made and written only under the node boundary; onto the orchestrator's role it writes inline policies alone, under that role's own boundary.
Describing and keeping state are guarded as everybody's are (`aws_guards`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from planner.iam.foundation.aws_ground import MANAGED_TAG, PROJECT_TAG, Condition, Ground, merged
from planner.iam.foundation.aws_guard import Bounds, Guard
from planner.iam.foundation.aws_names import data_boundary, node_boundary, orchestrator_boundary, orchestrator_role
from planner.model.grants import Bound, Identity, Permission

_P = Permission
_CREATES: Final = {
    "ec2:AllocateAddress": "elastic-ip",
    "ec2:CreateInternetGateway": "internet-gateway",
    "ec2:CreateLaunchTemplate": "launch-template",
    "ec2:CreatePlacementGroup": "placement-group",
    "ec2:CreateRouteTable": "route-table",
    "ec2:CreateSecurityGroup": "security-group",
    "ec2:CreateSubnet": "subnet",
    "ec2:CreateVpc": "vpc",
}
#: what stands among others and names what it stands on; apart from the above, so that no statement lets one be made on a stranger's
_CREATES_BETWEEN: Final = {"ec2:CreateNatGateway": "natgateway", "ec2:CreateVpcEndpoint": "vpc-endpoint"}
_AUTHORIZES: Final = ("ec2:AuthorizeSecurityGroupEgress", "ec2:AuthorizeSecurityGroupIngress")
_KINDS: Final = tuple(sorted({*_CREATES.values(), *_CREATES_BETWEEN.values(), "security-group-rule"}))
_MANAGES: Final = (_P.MANAGE_NETWORK, _P.RESERVE_ADDRESS, _P.MANAGE_LAUNCH)


def _deploy(sid: str, *actions: str, bounds: Callable[[Ground], Bounds], rights: tuple[Permission, ...]) -> Guard:
    return Guard(sid=sid, identity=Identity.DEPLOYER, permissions=rights, actions=actions, bounds=bounds)


def _tagged_at_creation(g: Ground) -> Bounds:
    makers = (*_CREATES, *_CREATES_BETWEEN, *_AUTHORIZES)
    own: Condition = {"StringEquals": {"ec2:CreateAction": sorted(name.removeprefix("ec2:") for name in makers)}}
    return g.ec2(*_KINDS), merged(g.region, g.created, own)


def _retagged(g: Ground) -> Bounds:
    """Other tags may change, as far as they may be put on at creation; whose it is may not."""
    stays: Condition = {
        "StringEqualsIfExists": {f"aws:RequestTag/{PROJECT_TAG}": [g.project]},
        "Null": {"aws:TagKeys": ["false"]},
    }
    return g.ec2(*_KINDS), merged(g.region, g.owned, g.known_keys, stays)


def _untagged(g: Ground) -> Bounds:
    """Whose it is stays; a request that names no tag would take them all, so it must name some."""
    stays: Condition = {
        "ForAllValues:StringNotEquals": {"aws:TagKeys": [MANAGED_TAG, PROJECT_TAG]},
        "Null": {"aws:TagKeys": ["false"]},
    }
    return g.ec2(*_KINDS), merged(g.region, g.owned, stays)


def _bound_by(boundary: str) -> Condition:
    return {"StringEquals": {"iam:PermissionsBoundary": [boundary]}}


_EC2_DEPLOYER: Final = (
    _deploy(
        "CreateTagged",
        *_CREATES,
        bounds=lambda g: (g.ec2(*_CREATES.values()), merged(g.region, g.created)),
        rights=_MANAGES,
    ),
    _deploy(
        "CreateTaggedWays",
        *_CREATES_BETWEEN,
        bounds=lambda g: (g.ec2(*_CREATES_BETWEEN.values()), merged(g.region, g.created)),
        rights=_MANAGES,
    ),
    _deploy(
        "CreateTaggedRules",
        *_AUTHORIZES,
        bounds=lambda g: (g.ec2("security-group-rule"), merged(g.region, g.created)),
        rights=_MANAGES,
    ),
    _deploy(
        "CreateInOwnPlaces",
        "ec2:CreateNatGateway",
        "ec2:CreateRouteTable",
        "ec2:CreateSecurityGroup",
        "ec2:CreateSubnet",
        "ec2:CreateVpcEndpoint",
        *_AUTHORIZES,
        bounds=lambda g: (
            g.ec2("elastic-ip", "route-table", "security-group", "subnet", "vpc"),
            merged(g.region, g.owned),
        ),
        rights=_MANAGES,
    ),
    _deploy(
        "CreateInNamedNetworks",
        "ec2:CreateSecurityGroup",
        bounds=lambda g: (g.own("vpc"), g.region),
        rights=_MANAGES,
    ),
    _deploy("TagAtCreationOnly", "ec2:CreateTags", bounds=_tagged_at_creation, rights=_MANAGES),
    _deploy("RetagOwn", "ec2:CreateTags", bounds=_retagged, rights=_MANAGES),
    _deploy("UntagOwn", "ec2:DeleteTags", bounds=_untagged, rights=_MANAGES),
    _deploy(
        "ChangeOwn",
        *(
            f"ec2:{word}"
            for word in (
                "AssociateRouteTable",
                "AttachInternetGateway",
                "CreateLaunchTemplateVersion",
                "CreateRoute",
                "DeleteInternetGateway",
                "DeleteLaunchTemplate",
                "DeleteNatGateway",
                "DeletePlacementGroup",
                "DeleteRoute",
                "DeleteRouteTable",
                "DeleteSecurityGroup",
                "DeleteSubnet",
                "DeleteVpc",
                "DeleteVpcEndpoints",
                "DetachInternetGateway",
                "DisassociateAddress",
                "DisassociateRouteTable",
                "ModifyLaunchTemplate",
                "ModifySecurityGroupRules",
                "ModifyVpcAttribute",
                "ModifyVpcEndpoint",
                "ReleaseAddress",
                "ReplaceRoute",
                "ReplaceRouteTableAssociation",
                "RevokeSecurityGroupEgress",
                "RevokeSecurityGroupIngress",
            )
        ),
        bounds=lambda g: (g.ec2(*_KINDS), merged(g.region, g.owned)),
        rights=_MANAGES,
    ),
    _deploy(
        "FindImages",
        "ssm:GetParameter",
        bounds=lambda g: ([f"arn:{g.scope.partition}:ssm:*::parameter/aws/service/deeplearning/ami/*"], g.region),
        rights=(_P.MANAGE_LAUNCH,),
    ),
)
_IAM: Final = (_P.MANAGE_NODE_IDENTITY,)
_IAM_DEPLOYER: Final = (
    _deploy(
        "ReadNodeIdentities",
        "iam:GetInstanceProfile",
        "iam:GetRole",
        "iam:GetRolePolicy",
        "iam:ListAttachedRolePolicies",
        "iam:ListInstanceProfilesForRole",
        "iam:ListRolePolicies",
        bounds=lambda g: ([g.iam("instance-profile", f"{g.nodes}*"), g.iam("role", f"{g.nodes}*")], {}),
        rights=_IAM,
    ),
    _deploy(
        "MakeBoundNodeRoles",
        "iam:CreateRole",
        "iam:DeleteRolePolicy",
        "iam:PutRolePermissionsBoundary",
        "iam:PutRolePolicy",
        bounds=lambda g: ([g.iam("role", f"{g.nodes}*")], _bound_by(node_boundary(g.scope))),
        rights=_IAM,
    ),
    _deploy(
        # the same for what the broker becomes: another boundary, since no machine ever holds it, and a folder of its own
        "MakeBoundDataRoles",
        "iam:CreateRole",
        "iam:DeleteRolePolicy",
        "iam:PutRolePermissionsBoundary",
        "iam:PutRolePolicy",
        bounds=lambda g: ([g.iam("role", f"{g.data}*")], _bound_by(data_boundary(g.scope))),
        rights=_IAM,
    ),
    _deploy(
        # at creation too, which takes this right beside its own.  A tag of a role is a tag of whoever becomes it, and others' policies may look at any but
        # the known ones; whose it is, its path says
        "TagNodeIdentities",
        "iam:TagInstanceProfile",
        "iam:TagRole",
        bounds=lambda g: (
            [g.iam("instance-profile", f"{g.nodes}*"), g.iam("role", f"{g.nodes}*")],
            merged(g.known_keys, {"Null": {"aws:TagKeys": ["false"]}}),
        ),
        rights=_IAM,
    ),
    _deploy(
        "KeepNodeRoles",
        "iam:DeleteRole",
        "iam:UntagRole",
        bounds=lambda g: ([g.iam("role", f"{g.nodes}*")], {}),
        rights=_IAM,
    ),
    _deploy(
        "KeepNodeProfiles",
        "iam:AddRoleToInstanceProfile",
        "iam:CreateInstanceProfile",
        "iam:DeleteInstanceProfile",
        "iam:RemoveRoleFromInstanceProfile",
        "iam:UntagInstanceProfile",
        bounds=lambda g: ([g.iam("instance-profile", f"{g.nodes}*")], {}),
        rights=_IAM,
    ),
    _deploy(
        # into a profile only: the deployer launches nothing
        "PassNodeRolesIntoProfiles",
        "iam:PassRole",
        bounds=lambda g: (
            [g.iam("role", f"{g.nodes}*")],
            {"StringEquals": {"iam:PassedToService": g.bound(Bound.SERVICE)}},
        ),
        rights=_IAM,
    ),
    _deploy(
        # a job's access stack lets the orchestrator pass that job's role, and no other; its boundary holds whatever is written
        "LetOrchestratorPass",
        "iam:DeleteRolePolicy",
        "iam:PutRolePolicy",
        bounds=lambda g: ([orchestrator_role(g.scope)], _bound_by(orchestrator_boundary(g.scope))),
        rights=_IAM,
    ),
    _deploy(
        "ReadWhatOrchestratorMayPass",
        "iam:GetRolePolicy",
        bounds=lambda g: ([orchestrator_role(g.scope)], {}),
        rights=_IAM,
    ),
)

DEPLOYER: Final[tuple[Guard, ...]] = (*_EC2_DEPLOYER, *_IAM_DEPLOYER)
