"""Within which bounds each AWS action of a control identity is granted: one guard, one statement.

A guard names the actions that it may carry; which of them a policy really holds, `planner.iam.operations.aws` says.  An action without a guard is granted
nowhere, and is refused here: nothing reaches a policy unbounded.  Pure.

What no condition key reaches: who launches from a template may give other user data in the launch.  It then runs under a job's own role, in the project's
networks, and can do no more than that job could; whoever holds the orchestrator is trusted with that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from planner.iam.foundation.aws_ground import MANAGED_TAG, Condition, Ground, merged
from planner.iam.foundation.aws_guard import Bounds, Guard
from planner.iam.foundation.aws_guards_deployer import DEPLOYER
from planner.model.grants import Bound, Identity, Permission

_P = Permission
#: describing these looks at one resource, so that the tag can be asked for; every other Describe knows no resource
_DESCRIBES_ONE: Final = ("ec2:DescribeInstanceAttribute", "ec2:DescribeVpcAttribute")
_DESCRIBES: Final = tuple(
    f"ec2:Describe{word}"
    for word in (
        "Addresses",
        "AddressesAttribute",
        "AvailabilityZones",
        "CapacityBlockOfferings",
        "InstanceTypeOfferings",
        "InstanceTypes",
        "Instances",
        "InternetGateways",
        "LaunchTemplateVersions",
        "LaunchTemplates",
        "NatGateways",
        "NetworkAcls",
        "NetworkInterfaces",
        "PlacementGroups",
        "PrefixLists",
        "Regions",
        "RouteTables",
        "SecurityGroupRules",
        "SecurityGroups",
        "SpotInstanceRequests",
        "SpotPriceHistory",
        "Subnets",
        "Tags",
        "Volumes",
        "VpcEndpoints",
        "Vpcs",
    )
)
_STATE: Final = {Identity.DEPLOYER: ("acc-", "adr-", "net-"), Identity.ORCHESTRATOR: ("cmp-",)}


def _describe(identity: Identity) -> tuple[Guard, ...]:
    return (
        Guard(
            sid="DescribeOnly",
            identity=identity,
            permissions=(_P.DESCRIBE,),
            actions=_DESCRIBES,
            bounds=lambda g: (["*"], g.region),
        ),
        Guard(
            sid="DescribeOwnAttributes",
            identity=identity,
            permissions=(_P.DESCRIBE,),
            actions=_DESCRIBES_ONE,
            bounds=lambda g: (
                g.ec2("instance" if identity is Identity.ORCHESTRATOR else "vpc"),
                merged(g.region, g.owned),
            ),
        ),
    )


def _state(identity: Identity) -> tuple[Guard, ...]:
    """Reading and writing the own stacks' state; deleting only the lock; only where the bucket is whose it should be.  The prefix `env:/` is asked for by Terraform's own list of workspaces."""

    def place(g: Ground) -> tuple[str, str]:
        return g.scope.state, f"skyplan/{g.project}/"

    def objects(g: Ground, suffix: str) -> list[str]:
        bucket, folder = place(g)
        return [f"arn:{g.scope.partition}:s3:::{bucket}/{folder}{kind}*{suffix}" for kind in _STATE[identity]]

    def listed(g: Ground) -> Bounds:
        bucket, folder = place(g)
        prefixes = sorted({"env:/", *(f"{folder}{kind}*" for kind in _STATE[identity])})
        return [f"arn:{g.scope.partition}:s3:::{bucket}"], {"StringLike": {"s3:prefix": prefixes}, **g.state_owner}

    def guard(sid: str, *actions: str, bounds: Callable[[Ground], Bounds]) -> Guard:
        return Guard(sid=sid, identity=identity, permissions=(_P.KEEP_STATE,), actions=actions, bounds=bounds)

    return (
        guard(
            "KeepState",
            "s3:GetObject",
            "s3:PutObject",
            bounds=lambda g: (objects(g, ".tfstate") + objects(g, ".tfstate.tflock"), g.state_owner),
        ),
        guard("ReleaseLock", "s3:DeleteObject", bounds=lambda g: (objects(g, ".tfstate.tflock"), g.state_owner)),
        guard("ListState", "s3:ListBucket", bounds=listed),
    )


def _market(g: Ground) -> Bounds:
    return ["*"], {"StringEquals": {"aws:RequestedRegion": sorted(g.scope.regions)}}


_PLANNER: Final = (
    Guard(
        sid="ReadCapacity",
        identity=Identity.PLANNER,
        permissions=(_P.READ_MARKET,),
        actions=(*_DESCRIBES, "ec2:GetSpotPlacementScores", "servicequotas:ListServiceQuotas"),
        bounds=_market,
    ),
    Guard(
        sid="ReadQuota",
        identity=Identity.PLANNER,
        permissions=(_P.READ_MARKET,),
        actions=("servicequotas:GetServiceQuota",),
        bounds=lambda g: ([f"arn:{g.scope.partition}:servicequotas:*:{g.scope.account}:ec2/*"], {}),
    ),
    Guard(
        # a service of two regions only, of which the target's need be none; it shows AWS's public price list
        sid="ReadPrices",
        identity=Identity.PLANNER,
        permissions=(_P.READ_MARKET,),
        actions=("pricing:GetProducts",),
        bounds=lambda _: (["*"], {}),
    ),
    *_describe(Identity.PLANNER),
)


def _launched(g: Ground) -> Bounds:
    types = g.bound(Bound.INSTANCE_TYPE)
    profile = g.iam("instance-profile", f"{g.nodes}*")
    own: Condition = {
        "StringEquals": {"ec2:MetadataHttpTokens": ["required"]},
        "NumericLessThanEquals": {"ec2:MetadataHttpPutResponseHopLimit": ["1"]},
        "ArnLike": {"ec2:InstanceProfile": [profile]},
        **({"StringLike": {"ec2:InstanceType": types}} if types else {}),
    }
    return g.ec2("instance"), merged(g.region, g.created, g.templated, own)


def _tagged_at_launch(g: Ground) -> Bounds:
    own: Condition = {"StringEquals": {"ec2:CreateAction": ["RunInstances"]}}
    kinds = ("instance", "network-interface", "spot-instances-request", "volume")
    return g.ec2(*kinds), merged(g.region, g.created, own)


def _ends(g: Ground) -> Condition:
    return merged(g.region, g.owned, {"StringEquals": {f"aws:ResourceTag/{MANAGED_TAG}": ["true"]}})


def _via_ec2(g: Ground) -> Condition:
    region = g.scope.kms_key.split(":")[3] if g.scope.kms_key else ""
    return {"StringEquals": {"kms:ViaService": [f"ec2.{region}.amazonaws.com"]}}


def _key(g: Ground) -> list[str]:
    return [g.scope.kms_key] if g.scope.kms_key else []


def _launch(sid: str, *actions: str, bounds: Callable[[Ground], Bounds], right: Permission = _P.LAUNCH) -> Guard:
    return Guard(sid=sid, identity=Identity.ORCHESTRATOR, permissions=(right,), actions=actions, bounds=bounds)


_ORCHESTRATOR: Final = (
    *_describe(Identity.ORCHESTRATOR),
    _launch("LaunchOwnInstances", "ec2:RunInstances", bounds=_launched),
    _launch(
        "LaunchOwnVolumes",
        "ec2:RunInstances",
        bounds=lambda g: (
            g.ec2("volume"),
            merged(g.region, g.created, g.templated, {"Bool": {"ec2:Encrypted": ["true"]}}),
        ),
    ),
    _launch(
        "LaunchOwnInterfaces",
        "ec2:RunInstances",
        bounds=lambda g: (g.ec2("network-interface"), merged(g.region, g.created, g.templated)),
    ),
    _launch(
        # the request of a launch bought as spot; without its tag nobody could tell it from a stranger's when it is cancelled
        "LaunchOwnSpotRequests",
        "ec2:RunInstances",
        bounds=lambda g: (g.ec2("spot-instances-request"), merged(g.region, g.created)),
    ),
    _launch(
        "LaunchIntoOwnPlaces",
        "ec2:RunInstances",
        bounds=lambda g: (
            g.ec2("launch-template", "placement-group", "security-group", "subnet"),
            merged(g.region, g.owned),
        ),
    ),
    _launch(
        "LaunchIntoNamedPlaces",
        "ec2:RunInstances",
        bounds=lambda g: (g.own("subnet", "security-group", "capacity-reservation"), merged(g.region, g.templated)),
    ),
    _launch(
        "LaunchFromKnownImages",
        "ec2:RunInstances",
        bounds=lambda g: (
            g.ec2("image", account=False),
            merged(g.region, g.templated, {"StringEquals": {"ec2:Owner": g.bound(Bound.IMAGE_OWNER)}}),
        ),
    ),
    _launch("TagAtLaunchOnly", "ec2:CreateTags", bounds=_tagged_at_launch),
    _launch(
        "UseDiskKey",
        "kms:Decrypt",
        "kms:DescribeKey",
        "kms:GenerateDataKeyWithoutPlaintext",
        bounds=lambda g: (_key(g), _via_ec2(g)),
    ),
    _launch(
        "LendDiskKey",
        "kms:CreateGrant",
        bounds=lambda g: (_key(g), merged(_via_ec2(g), {"Bool": {"kms:GrantIsForAWSResource": ["true"]}})),
    ),
    _launch(
        "TerminateOwn",
        "ec2:TerminateInstances",
        bounds=lambda g: (g.ec2("instance"), _ends(g)),
        right=_P.TERMINATE,
    ),
    _launch(
        "CancelOwnSpotRequests",
        "ec2:CancelSpotInstanceRequests",
        bounds=lambda g: (g.ec2("spot-instances-request"), _ends(g)),
        right=_P.TERMINATE,
    ),
    _launch(
        "AttachOwnAddress",
        "ec2:AssociateAddress",
        "ec2:DisassociateAddress",
        bounds=lambda g: (g.ec2("elastic-ip", "network-interface"), merged(g.region, g.owned)),
        right=_P.ATTACH_ADDRESS,
    ),
    *_state(Identity.ORCHESTRATOR),
)


_BROKER: Final = (
    Guard(
        sid="BecomeDataIdentity",
        identity=Identity.BROKER,
        permissions=(_P.MINT_CREDENTIALS,),
        actions=("sts:AssumeRole", "sts:TagSession"),
        bounds=lambda g: ([g.iam("role", f"{g.data}*")], {}),
    ),
)

GUARDS: Final[tuple[Guard, ...]] = (
    *_PLANNER,
    *_describe(Identity.DEPLOYER),
    *DEPLOYER,
    *_state(Identity.DEPLOYER),
    *_ORCHESTRATOR,
    *_BROKER,
)
