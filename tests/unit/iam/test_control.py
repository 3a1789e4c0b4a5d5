"""How the work is divided, and that every right has its bounds and its reason."""

from __future__ import annotations

import pytest

from planner.iam.control import control_grants
from planner.model.grants import CONTROL_IDENTITIES, Bound, Identity, Permission
from planner.model.offer import Cloud
from tests.unit.iam.aws_scope import scope

P = Permission
DIVISION = {
    Identity.PLANNER: {P.READ_MARKET, P.DESCRIBE},
    Identity.DEPLOYER: {
        P.MANAGE_NETWORK,
        P.MANAGE_NODE_IDENTITY,
        P.MANAGE_LAUNCH,
        P.RESERVE_ADDRESS,
        P.DESCRIBE,
        P.KEEP_STATE,
    },
    Identity.ORCHESTRATOR: {P.LAUNCH, P.TERMINATE, P.DESCRIBE, P.PASS_IDENTITY, P.ATTACH_ADDRESS, P.KEEP_STATE},
    Identity.BROKER: {P.MINT_CREDENTIALS},
}


def grants(**changes):
    return control_grants(scope(**changes))


@pytest.mark.parametrize("cloud", Cloud)
def test_each_identity_has_its_part_and_no_other(cloud):
    found = grants(cloud=cloud)
    assert {i: {g.permission for g in found if g.identity is i} for i in CONTROL_IDENTITIES} == DIVISION
    assert len(found) == sum(len(held) for held in DIVISION.values())
    assert list(found) == sorted(found)


def test_nobody_who_launches_makes_identities_and_nobody_reads_data():
    for identity in CONTROL_IDENTITIES:
        held = DIVISION[identity]
        assert not {P.LAUNCH, P.MANAGE_NODE_IDENTITY} <= held
        assert not held & {P.READ_OBJECTS, P.WRITE_CHECKPOINTS, P.READ_SECRET}


def test_every_right_is_bound_and_says_why():
    for grant in grants():
        assert len(grant.reason.split()) > 6, grant
        assert grant.conditions or grant.permission is P.READ_MARKET, grant


def test_a_launch_is_bound_in_every_way():
    (launch,) = (g for g in grants() if g.permission is P.LAUNCH)
    assert {c.bound: c.values for c in launch.conditions} == {
        Bound.ACCOUNT: ("123456789012",),
        Bound.REGION: ("us-east-1", "us-west-2"),
        Bound.PROJECT: ("acme",),
        Bound.INSTANCE_TYPE: ("g6e.*", "p5*"),
        Bound.IMAGE_OWNER: ("amazon", "123456789012"),
        Bound.LAUNCH_TEMPLATE: ("acme",),
    }


def test_state_elsewhere_gives_no_right_here():
    assert not [g for g in grants(state="") if g.permission is P.KEEP_STATE]


@pytest.mark.parametrize("cloud", [Cloud.GCP, Cloud.AZURE, Cloud.NEBIUS])
def test_bounds_that_only_aws_has_stay_there(cloud):
    bounds = {c.bound for g in grants(cloud=cloud) for c in g.conditions}
    assert not bounds & {Bound.IMAGE_OWNER, Bound.LAUNCH_TEMPLATE, Bound.BOUNDARY, Bound.SERVICE}
