"""Nebius's control identities: the smallest role that is documented, on a project of compute alone.  Never run against live Nebius."""

from __future__ import annotations

import pytest

from planner.iam.foundation import nebius
from planner.iam.operations.nebius import ADMIN, OPERATIONS
from planner.model.errors import InputError
from planner.model.grants import Identity
from planner.model.offer import Cloud
from tests.stacks.control_inputs import scope
from tests.stacks.nebius_inputs import PROJECT


def made(**changes):
    return {one.identity: one for one in nebius.identities(scope(Cloud.NEBIUS, **changes))}


def roles(identity):
    return {p.document["role"] for p in made()[identity].policies if "role" in p.document}


def test_each_has_one_role_on_the_project():
    assert {one: roles(one) for one in made()} == {
        Identity.PLANNER: {"viewer"},
        Identity.DEPLOYER: {"editor"},
        Identity.ORCHESTRATOR: {"editor"},
        Identity.BROKER: set(),
    }
    places = [p.document["on"] for one in made().values() for p in one.policies if "on" in p.document]
    assert all(place == {"project": PROJECT} for place in places)


def test_nobody_is_an_administrator_and_it_says_why():
    assert any(ADMIN in row.actions for row in OPERATIONS)
    assert set(nebius.WITHHELD) == {ADMIN}
    assert not [one for one in made() if ADMIN in roles(one)]


def test_the_isolation_is_said_to_be_the_project():
    for identity in (Identity.ORCHESTRATOR, Identity.DEPLOYER):
        (limits,) = [p.document["limits"] for p in made()[identity].policies if "role" in p.document]
        assert any("SKY-IAM-108" in limit for limit in limits)


def test_state_is_kept_apart_by_paths():
    rules = {one.identity: p.document for one in made().values() for p in one.policies if "bucket" in p.document}
    assert {identity: rule["paths"] for identity, rule in rules.items()} == {
        Identity.DEPLOYER: ["skyplan/acme/acc-*", "skyplan/acme/adr-*", "skyplan/acme/net-*"],
        Identity.ORCHESTRATOR: ["skyplan/acme/cmp-*"],
    }
    assert all(path.count("*") == 1 and path.endswith("*") for rule in rules.values() for path in rule["paths"])
    assert not [p for one in made(state="").values() for p in one.policies if "bucket" in p.document]


def test_every_document_has_its_reason():
    assert all(policy.document["reason"] for one in made().values() for policy in one.policies)


def test_without_a_tenant_there_are_no_groups():
    with pytest.raises(InputError, match="tenant"):
        made(tenant="")
