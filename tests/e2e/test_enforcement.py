"""That the foundation's rights are enough and no more: each step of a job's life holds only its own identity, and nothing granted can go.

The lives are run by `test_apply` and `test_gang`, under these identities; what they asked of access control is written down (`judges/life.jsonl`), and is
replayed here before the judges.  What was judged by whom stands in docs/iam-proof.md.  Nothing here was ever asked of a live account.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from planner.iam.foundation import aws_names
from planner.model.grants import Identity
from tests.e2e.identities import STATE, given
from tests.e2e.judges import proof, record, replay, simulate
from tests.e2e.judges.attempts import (
    OWN,
    Account,
    Attempt,
    Machines,
    Tried,
    of_deployer,
    on_machines,
    on_stores,
    pairs,
    tried,
)
from tests.e2e.judges.ministack import ACCOUNT as MINISTACK
from tests.e2e.judges.ministack import Ministack
from tests.emulators.aws import ACCOUNT, REGION, Aws

SCOPE = given(state=True)[0]
simulated = pytest.mark.skipif(simulate.missing() is not None, reason=simulate.missing() or "")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def ministack(socket_enabled: None, tmp_path: Path) -> Iterator[Ministack]:
    process = Ministack(tmp_path)
    yield process
    process.close()


# ---- enough


@simulated
def test_what_a_life_asks_is_allowed_by_every_judge() -> None:
    seen = sorted(record.load())
    assert {one.identity for one in seen} >= set(proof.JUDGED)
    held = {identity: replay.held_by(SCOPE, identity, proof.passes(seen)) for identity in proof.JUDGED}
    questions = [replay.Question(held[one.identity], one) for one in seen]
    answers = zip(seen, replay.local(questions), replay.simulated(questions), replay.by_moto(questions), strict=True)
    denied = [(one.action, one.resource, said) for one, *said in answers if not said[0] or False in said]
    assert denied == []


def test_state_is_where_the_foundation_lets_it_be() -> None:
    assert SCOPE.state == STATE


def test_an_endpoint_is_reserved_attached_and_let_go(aws: Aws, update: bool) -> None:
    """What the stacks of a tunnelled job do with its addresses.  By the identities' own calls: no other life has a tunnel, and Terraform would add a run."""
    aws.enforce_access()
    account = Account(aws.client, ACCOUNT)
    machines = Machines(account)
    deployer, orchestrator = account.of(Identity.DEPLOYER)("ec2"), account.of(Identity.ORCHESTRATOR)("ec2")
    aws.forget_judged()
    tags = [{"ResourceType": "elastic-ip", "Tags": pairs(OWN)}]
    address = deployer.allocate_address(Domain="vpc", TagSpecifications=tags)["AllocationId"]
    deployer.describe_addresses(AllocationIds=[address])
    deployer.describe_addresses_attribute(AllocationIds=[address], Attribute="domain-name")
    (node,) = machines.launch(orchestrator)()["Instances"]
    card = node["NetworkInterfaces"][0]["NetworkInterfaceId"]
    orchestrator.associate_address(AllocationId=address, NetworkInterfaceId=card)
    (held,) = orchestrator.describe_addresses(AllocationIds=[address])["Addresses"]
    orchestrator.disassociate_address(AssociationId=held["AssociationId"])
    deployer.release_address(AllocationId=address)
    record.held_to("an endpoint reserved, attached and let go (own calls)", aws.judged(), SCOPE, update=update)


def test_a_wrong_signature_and_a_strangers_key_are_refused(aws: Aws) -> None:
    """Signatures are moto's to judge."""
    aws.enforce_access()
    account = Account(aws.client, ACCOUNT)
    right = account.session(Identity.ORCHESTRATOR)
    assert "Reservations" in aws.client("ec2", **right).describe_instances()
    for wrong in ({"aws_secret_access_key": "x" * 40}, {"aws_access_key_id": "ASIASTRANGER00000000"}):
        with pytest.raises(ClientError, match="AuthFailure"):
            aws.client("ec2", **{**right, **wrong}).describe_instances()
    with pytest.raises(ClientError, match=r"InvalidToken|AuthFailure"):
        aws.client("ec2", **{**right, "aws_session_token": "another"}).describe_instances()


# ---- and no more


def test_every_granted_action_was_seen_or_says_why_not() -> None:
    unexplained = [
        f"{row.identity.value}: {row.action} ({', '.join(row.statements)})"
        for row in proof.rows(SCOPE, record.load(), engines=False)
        if not row.lives and not row.reasons
    ]
    assert unexplained == []


def test_no_statement_can_go() -> None:
    """Without any one of them something of a life is denied, by both engines, or its actions say why they go unseen."""
    seen = sorted(record.load())
    superfluous: list[str] = []
    denied: list[replay.Question] = []
    for without in _without_one(proof.passes(seen)):
        if without.effect == "Deny":
            continue
        found = proof.denied(without, seen)
        denied += found
        if not found and not proof.excused(without):
            superfluous.append(str(without))
    assert superfluous == []
    if simulate.missing() is None:
        allowed = zip(denied, replay.simulated(denied), strict=True)
        assert [one.seen.action for one, answer in allowed if answer] == []


#: what no life reaches, and why
UNSEEN = {"/adr-*": "the addresses of a tunnelled job, whose life with Terraform runs on stub providers (test_split)"}


def test_no_resource_of_a_statement_can_go() -> None:
    seen = sorted(record.load())
    superfluous = [
        f"{without}: {resource}"
        for identity in proof.JUDGED
        for without, resource in replay.without_each_resource(
            identity, replay.held_by(SCOPE, identity, proof.passes(seen))
        )
        if without.effect == "Allow"
        and not any(part in resource for part in UNSEEN)
        and not proof.denied(without, seen)
        and not proof.excused_on(without, resource)
    ]
    assert superfluous == []


def _without_one(passes: dict[str, Any]) -> Iterator[replay.Without]:
    for identity in proof.JUDGED:
        yield from replay.without_each(identity, replay.held_by(SCOPE, identity, passes))


GUARDS = [
    ("NeverUnbind", Identity.DEPLOYER, "iam:DeleteRolePermissionsBoundary", ":role/skyplan/acme/x"),
    (
        "NeverRewriteBoundaries",
        Identity.DEPLOYER,
        "iam:CreatePolicyVersion",
        f":policy{aws_names.path('acme')}skyplan-acme-node-boundary",
    ),
    ("NeverTrustOutside", Identity.DEPLOYER, "iam:UpdateAssumeRolePolicy", ":role/somebody"),
    ("NeverBecomeDataIdentity", Identity.DEPLOYER, "sts:AssumeRole", ":role/skyplan/acme/data/x"),
    ("NeverElsewhere", Identity.ORCHESTRATOR, "ec2:DescribeInstances", "*"),
]


@simulated
@pytest.mark.parametrize(("sid", "identity", "action", "resource"), GUARDS)
def test_a_guard_rail_holds_whatever_is_attached_later(
    sid: str, identity: Identity, action: str, resource: str
) -> None:
    everything = {"Sid": "All", "Effect": "Allow", "Action": ["*"], "Resource": ["*"]}
    extra = {"kind": "identity", "name": "later", "document": {"Version": "2012-10-17", "Statement": [everything]}}
    held = [*replay.held_by(SCOPE, identity), extra]
    (without,) = (one for one in replay.without_each(identity, held) if one.sid == sid)
    arn = resource if resource == "*" else f"arn:aws:iam::{ACCOUNT}{resource}"
    region = ("eu-west-1",) if sid == "NeverElsewhere" else (REGION,)
    one = record.Seen(identity, action, arn, (("aws:RequestedRegion", region),))
    questions = [replay.Question(held, one), replay.Question(without.policies, one)]
    assert replay.local(questions) == [False, True]
    assert replay.simulated(questions) == [False, True]


def test_every_guard_rail_is_tried() -> None:
    found = {one.sid for one in _without_one({}) if one.effect == "Deny"}
    assert found == {sid for sid, *_ in GUARDS}


# ---- what nobody may


@simulated
def test_what_nobody_may_is_refused_and_its_twin_is_not(aws: Aws, update: bool) -> None:
    aws.enforce_access()
    account = Account(aws.client, ACCOUNT)
    machines = Machines(account)
    found = [
        _asked(aws, one)
        for attempts in (on_stores(account), on_machines(machines), of_deployer(machines))
        for one in attempts
    ]
    assert [one.document() for one, *_ in found if not one.told] == []
    answers = iter(simulate.simulate([ask for _, first, twin in found for ask in (*first, *twin)], ACCOUNT))
    by_simulator: list[dict[str, Any]] = []
    for one, first, twin in found:
        attempt = [next(answers).allowed for _ in first]
        same = [next(answers).allowed for _ in twin]
        told = bool(attempt and same) and not all(attempt) and all(same)
        by_simulator.append({**one.document(), "told": told})
    _written(proof.EMULATOR, [one.document() for one, *_ in found], update=update)
    _written(proof.SIMULATE, by_simulator, update=update)


def _asked(aws: Aws, one: Attempt) -> tuple[Tried, list[dict[str, Any]], list[dict[str, Any]]]:
    """An attempt in the emulator; what the last call that it refused asked, and the last that it allowed."""
    aws.forget_judged()
    done = tried(one)
    judged = aws.judged()
    asked: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for call in judged.calls:
        held = {"principal": call["principal"], "policies": judged.policies[call["policies"]]}
        asked[call["allowed"]] = [{**ask, **held} for ask in call["asked"]]
    return done, asked[False], asked[True]


def test_another_engine_says_the_same_of_stores_and_bounds(ministack: Ministack, update: bool) -> None:
    found = [tried(one).document() for one in on_stores(Account(ministack.client, MINISTACK))]
    _written(proof.MINISTACK, found, update=update)


def _written(engine: str, found: list[dict[str, Any]], *, update: bool) -> None:
    """What an engine told apart is what is written down."""
    if update:
        proof.save_attempts(found, engine)
    held = {(one["who"], one["what"]) for one in proof.attempts() if engine in one["engines"]}
    assert held == {(one["who"], one["what"]) for one in found if one["told"]}


# ---- the page


@simulated
def test_the_page_is_current(update: bool) -> None:
    made = proof.page(proof.rows(SCOPE, record.load()))
    if update:
        proof.PAGE.write_text(made, encoding="utf-8")
    assert proof.PAGE.read_text(encoding="utf-8") == made
