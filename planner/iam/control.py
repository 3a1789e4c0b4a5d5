"""What the control identities of a project may do, in no cloud's own words: who, what, within which bounds, and why.

Decides how the work is divided; how a bound is said, and whether a cloud can say it, is that cloud's renderer's (`planner.iam.foundation`).
The division: whoever launches neither reads data nor changes rights, whoever makes identities launches nothing, whoever mints credentials does nothing else,
and whoever plans changes nothing.  Pure.
"""

from __future__ import annotations

from typing import Final

from planner.model.control import ControlScope
from planner.model.grants import Bound, Condition, Grant, Identity, Permission
from planner.model.offer import Cloud

#: who may publish images that nodes boot, beside the account itself
IMAGE_OWNER: Final = "amazon"
#: who may be handed a node's identity
NODE_SERVICE: Final = "ec2.amazonaws.com"
#: the boundary of nodes, by the word that a renderer makes a name of
NODE_BOUNDARY: Final = "node-boundary"
#: the boundary of what the broker becomes
DATA_BOUNDARY: Final = "data-boundary"
_PLAN, _DEPLOY, _LAUNCH, _MINT = Identity.PLANNER, Identity.DEPLOYER, Identity.ORCHESTRATOR, Identity.BROKER

#: (identity, permission, what is acted on, bounds, why)
_TABLE: Final[tuple[tuple[Identity, Permission, str, tuple[Bound, ...], str], ...]] = (
    (
        _PLAN,
        Permission.READ_MARKET,
        "market",
        (),
        "Prices, machine types, zones and quotas are public or the account's own figures; reading them changes nothing",
    ),
    (
        _PLAN,
        Permission.DESCRIBE,
        "instances",
        (Bound.REGION,),
        "A plan counts what runs already; it sees names and sizes, and no contents",
    ),
    (
        _DEPLOY,
        Permission.MANAGE_NETWORK,
        "network",
        (Bound.ACCOUNT, Bound.REGION, Bound.PROJECT),
        "Terraform makes the networks that jobs run in, and touches only those that carry the project's tag",
    ),
    (
        _DEPLOY,
        Permission.RESERVE_ADDRESS,
        "addresses",
        (Bound.ACCOUNT, Bound.REGION, Bound.PROJECT),
        "Nodes of a job in several clouds need a public address that is known before they start",
    ),
    (
        _DEPLOY,
        Permission.MANAGE_NODE_IDENTITY,
        "node-identities",
        (Bound.ACCOUNT, Bound.PROJECT, Bound.BOUNDARY, Bound.SERVICE),
        "Each job's nodes get an identity of their own, which can never do more than the boundary allows",
    ),
    (
        _DEPLOY,
        Permission.MANAGE_LAUNCH,
        "templates",
        (Bound.ACCOUNT, Bound.REGION, Bound.PROJECT),
        "What a node boots, and who reaches it, is written here and reviewed, not by whoever launches",
    ),
    (
        _DEPLOY,
        Permission.DESCRIBE,
        "network",
        (Bound.REGION,),
        "Terraform compares what stands with what is written before it changes anything",
    ),
    (
        _DEPLOY,
        Permission.KEEP_STATE,
        "state/net,adr,acc",
        (Bound.PROJECT,),
        "Terraform remembers its networks and identities in the project's own folder of the state's store",
    ),
    (
        _LAUNCH,
        Permission.LAUNCH,
        "instances",
        (
            Bound.ACCOUNT,
            Bound.REGION,
            Bound.PROJECT,
            Bound.INSTANCE_TYPE,
            Bound.IMAGE_OWNER,
            Bound.LAUNCH_TEMPLATE,
        ),
        "Starts nodes: of the allowed types, in the project's networks, from a template that the deployer wrote, with the project's tag on all they are made of",
    ),
    (
        _LAUNCH,
        Permission.TERMINATE,
        "instances",
        (Bound.ACCOUNT, Bound.REGION, Bound.PROJECT),
        "Ends nodes that carry the project's tag, and nobody else's",
    ),
    (
        _LAUNCH,
        Permission.DESCRIBE,
        "instances",
        (Bound.REGION,),
        "Sees whether a node runs, and what it stands on",
    ),
    (
        _LAUNCH,
        Permission.PASS_IDENTITY,
        "node-identities",
        (Bound.ACCOUNT, Bound.PROJECT, Bound.SERVICE),
        "Hands a node its identity: exactly the one that the job's access stack made, and to machines only",
    ),
    (
        _LAUNCH,
        Permission.ATTACH_ADDRESS,
        "addresses",
        (Bound.ACCOUNT, Bound.REGION, Bound.PROJECT),
        "Gives a node the public address that was reserved for it",
    ),
    (
        _LAUNCH,
        Permission.KEEP_STATE,
        "state/cmp",
        (Bound.PROJECT,),
        "Terraform remembers which nodes it started, and can write nothing else of the project's state",
    ),
    (
        _MINT,
        Permission.MINT_CREDENTIALS,
        "data-identities",
        (Bound.ACCOUNT, Bound.PROJECT),
        "Becomes a data identity for a short time, on behalf of a node elsewhere; it can do nothing itself",
    ),
)


def control_grants(scope: ControlScope) -> tuple[Grant, ...]:
    """The grants of the four control identities in one account, sorted.  A bound that the scope leaves open is left out."""
    values = _values(scope)
    return tuple(
        sorted(
            Grant(
                identity=identity,
                permission=permission,
                resource=resource,
                reason=reason,
                conditions=tuple(Condition(bound=bound, values=values[bound]) for bound in bounds if values[bound]),
            )
            for identity, permission, resource, bounds, reason in _TABLE
            if permission is not Permission.KEEP_STATE or scope.state
        )
    )


def _values(scope: ControlScope) -> dict[Bound, tuple[str, ...]]:
    """What each bound is in this scope; () where the cloud has no such bound."""
    aws = scope.cloud is Cloud.AWS
    return {
        Bound.ACCOUNT: (scope.account,),
        Bound.REGION: tuple(sorted(scope.regions)),
        Bound.PROJECT: (scope.project,),
        Bound.INSTANCE_TYPE: tuple(sorted(scope.instance_types)),
        Bound.IMAGE_OWNER: (IMAGE_OWNER, scope.account) if aws else (),
        Bound.LAUNCH_TEMPLATE: (scope.project,) if aws else (),
        Bound.BOUNDARY: (NODE_BOUNDARY,) if aws else (),
        Bound.SERVICE: (NODE_SERVICE,) if aws else (),
    }
