"""The broker's decision: what a job's own node gets on each cloud, and what nobody else gets, whoever owns the record."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from planner.app.mint_rules import NotGranted
from planner.app.rights import grants_digest
from planner.model.errors import CloudError, PermissionDenied, Unavailable
from planner.model.offer import Cloud
from planner.model.plan import to_document
from planner.model.project import Project
from planner.model.runtime import Refusal, Refused, Seat
from planner.model.workload import Store
from tests.unit.server.broker.bed import (
    ACCOUNTS,
    KEY,
    KEY_ID,
    NOW,
    PROJECT,
    Bed,
    node,
    placement,
    plan,
    recorded,
    workload,
    write,
)

SEAT = Seat(job="train", generation=3, rank=0)
OTHER = "s3://all/secret/"


@pytest.fixture
def bed(tmp_path) -> Bed:
    made = Bed(tmp_path)
    made.join(SEAT)
    return made


def refused(word: Refusal, ask) -> str:
    with pytest.raises(Refused) as caught:
        ask()
    assert caught.value.word is word, caught.value.reason
    return caught.value.reason


@pytest.mark.parametrize("store", Store)
@pytest.mark.parametrize("cloud", Cloud)
def test_a_node_of_any_cloud_writes_its_own_generation_in_any_store(tmp_path, cloud, store):
    bed = Bed(tmp_path, cloud=cloud, store=store)
    bed.join(SEAT)
    lease = bed.ask(bed.uri("ckpt/"), "write")
    (order,) = bed.orders
    assert order.scope.writes == ("ckpt/g3/",)
    assert order.scope.reads == ("ckpt/",)
    assert lease.issue.uri == bed.uri("ckpt/g3/")
    assert bed.ledger.issues == [lease.issue]
    assert (lease.issue.seat, lease.issue.access, lease.issue.identity) == (SEAT, "write", order.identity)
    assert lease.issue.expires_at == "2026-11-30T13:00:00.000000Z"
    held = {
        Store.S3: f"arn:aws:iam::{ACCOUNTS[Cloud.AWS]}:role/skyplan/acme/data/skyplan-acme-dat-train--{cloud.value}-prod-",
        Store.GCS: "skyplan-",
        Store.AZURE_BLOB: "acct",
        Store.NEBIUS: "skyplan-acme-dat-train--",
    }
    assert order.identity.startswith(held[store])
    assert order.account == ACCOUNTS[Cloud(store.cloud)]
    assert order.kms_key == (KEY_ID if store is Store.S3 else "")
    assert dict(order.labels) == {
        "skyplan:project": "acme",
        "skyplan:job": "train",
        "skyplan:generation": "3",
        "skyplan:rank": "0",
    }


def test_data_of_another_cloud_is_read(tmp_path):
    bed = Bed(tmp_path, cloud=Cloud.GCP, store=Store.S3)
    bed.join(SEAT)
    bed.ask(bed.uri("corpus/"), "read")
    assert (bed.orders[0].scope.reads, bed.orders[0].scope.writes) == (("corpus/",), ())


def test_data_that_nodes_reach_by_themselves_is_not_minted(bed):
    with pytest.raises(NotGranted, match="own identity"):
        bed.ask(bed.uri("corpus/"), "read")


@pytest.mark.parametrize(
    ("uri", "access"),
    [
        (OTHER, "read"),
        (OTHER, "write"),
        ("s3://all/", "read"),
        ("s3://all/ckpt/g2/", "write"),
        ("s3://all/corpus/", "write"),
    ],
)
def test_what_the_plan_does_not_grant_is_not_minted(bed, uri, access):
    with pytest.raises(NotGranted):
        bed.ask(uri, access)
    assert bed.orders == []


@pytest.mark.parametrize("word", [Refusal.FENCED, Refusal.ENDED, Refusal.UNKNOWN])
def test_who_was_fenced_or_ended_gets_nothing(bed, word):
    bed.ledger.refusals["train-g3"] = word
    refused(word, lambda: bed.ask(bed.uri("ckpt/"), "write"))
    assert bed.orders == []


def test_a_fence_that_comes_while_the_cloud_is_asked_still_counts(bed):
    def fence(ledger):
        if ledger.checks == 1:
            ledger.refusals["train-g3"] = Refusal.FENCED

    bed.ledger.after_check = fence
    refused(Refusal.FENCED, lambda: bed.ask(bed.uri("ckpt/"), "write"))
    assert len(bed.orders) == 1, "minted, and neither logged nor answered"
    assert bed.ledger.issues == []


def test_no_lease_is_answered_that_is_not_logged(bed):
    bed.ledger.down = Unavailable([])
    with pytest.raises(Unavailable):
        bed.ask(bed.uri("ckpt/"), "write")


def test_a_cloud_that_says_no_is_told(bed):
    class No:
        def minter(self, store):
            return self

        def mint(self, order):
            raise PermissionDenied([])

    bed.broker = replace(bed.broker, minters=No())
    with pytest.raises(CloudError):
        bed.ask(bed.uri("ckpt/"), "write")
    assert bed.ledger.issues == []


# who asks


def test_another_jobs_node_gets_nothing_of_this_job(bed):
    bed.ledger.machines[SEAT] = ""
    assert "no node identity" in refused(
        Refusal.IDENTITY, lambda: bed.ask(bed.uri("ckpt/"), "write", who=node(Cloud.AWS, "other"))
    )


@pytest.mark.parametrize("cloud", [Cloud.AWS, Cloud.GCP, Cloud.AZURE, Cloud.NEBIUS])
def test_the_same_name_elsewhere_is_another_identity(tmp_path, cloud):
    bed = Bed(tmp_path, cloud=cloud)
    bed.join(SEAT)
    mine = node(cloud)
    bed.ask(bed.uri("ckpt/"), "write")
    for account in {*ACCOUNTS.values(), "999999999999", "evil", ""} - {ACCOUNTS[cloud]}:
        theirs = replace(mine, account=account, principal=mine.principal.replace(ACCOUNTS[cloud], account))
        if theirs.principal != mine.principal:
            refused(Refusal.IDENTITY, lambda theirs=theirs: bed.ask(bed.uri("ckpt/"), "write", who=theirs))
    for principal in ("", mine.principal + "x", mine.principal[:-1], "*"):
        refused(
            Refusal.IDENTITY,
            lambda p=principal: bed.ask(bed.uri("ckpt/"), "write", who=replace(mine, principal=p)),
        )
    for other in Cloud:
        if other is not cloud:
            refused(
                Refusal.IDENTITY,
                lambda o=other: bed.ask(bed.uri("ckpt/"), "write", who=replace(mine, cloud=o.value)),
            )


def test_an_azure_identity_of_that_name_in_another_group_is_another(tmp_path):
    bed = Bed(tmp_path, cloud=Cloud.AZURE)
    bed.join(SEAT)
    mine = node(Cloud.AZURE)
    parts = mine.principal.split("/")
    parts[4] = "my-own-group"
    refused(Refusal.IDENTITY, lambda: bed.ask(bed.uri("ckpt/"), "write", who=replace(mine, principal="/".join(parts))))
    shouted = replace(mine, principal=mine.principal.upper())
    bed.ask(bed.uri("ckpt/"), "write", who=shouted)  # Azure compares without case


def test_a_target_without_an_account_names_nobody(tmp_path):
    project = replace(PROJECT, targets=tuple(replace(t, account=None) for t in PROJECT.targets))
    bed = Bed(tmp_path)
    bed.join(SEAT)
    bed.broker = replace(bed.broker, nodes=replace(bed.broker.nodes, project=project))
    refused(Refusal.IDENTITY, lambda: bed.ask(bed.uri("ckpt/"), "write"))


@pytest.mark.parametrize("scheme", ["aws-iid", "one-time", "", "hmac"])
def test_proofs_for_nobody_in_particular_are_not_taken(bed, scheme):
    who = replace(node(Cloud.AWS), scheme=scheme)
    refused(Refusal.IDENTITY, lambda: bed.ask(bed.uri("ckpt/"), "write", who=who))


@pytest.mark.parametrize("cloud", [Cloud.AWS, Cloud.GCP, Cloud.AZURE])
def test_another_machine_of_the_job_has_another_seat(tmp_path, cloud):
    bed = Bed(tmp_path, cloud=cloud)
    bed.join(SEAT)
    refused(Refusal.IDENTITY, lambda: bed.ask(bed.uri("ckpt/"), "write", who=node(cloud, machine=1)))
    assert recorded(cloud, 0) != recorded(cloud, 1)


def test_a_gcp_machine_of_that_name_in_another_zone_is_another(tmp_path):
    bed = Bed(tmp_path, cloud=Cloud.GCP)
    bed.join(SEAT)
    refused(
        Refusal.IDENTITY,
        lambda: bed.ask(bed.uri("ckpt/"), "write", who=replace(node(Cloud.GCP), where="us-central1-b")),
    )


def test_who_has_not_joined_comes_early(bed):
    seat = replace(SEAT, rank=1)
    refused(Refusal.EARLY, lambda: bed.ask(bed.uri("ckpt/"), "write", seat=seat))
    bed.ledger.machines[seat] = recorded(Cloud.AWS, 1)
    refused(Refusal.EARLY, lambda: bed.ask(bed.uri("ckpt/"), "write", seat=seat))


def test_the_key_of_the_join_is_the_key_here(bed):
    refused(Refusal.KEY, lambda: bed.ask(bed.uri("ckpt/"), "write", key_sha256="thief"))


def test_a_record_that_is_overwritten_does_not_change_a_key_that_was_seen(bed):
    bed.ask(bed.uri("ckpt/"), "write")
    bed.ledger.keys[SEAT] = "thief"
    assert "came before" in refused(
        Refusal.KEY, lambda: bed.ask(bed.uri("ckpt/"), "write", key_sha256="thief", proof_sha256="new")
    )


def test_a_proof_belongs_to_the_key_it_came_with(bed):
    bed.ask(bed.uri("ckpt/"), "write", proof_sha256="one")
    bed.ask(bed.uri("ckpt/"), "read", proof_sha256="one")
    other = replace(SEAT, rank=1)
    bed.join(other, "other-key")
    refused(
        Refusal.REPLAYED,
        lambda: bed.ask(bed.uri("ckpt/"), "write", seat=other, key_sha256="other-key", proof_sha256="one"),
    )


# which plan


def test_a_plan_that_nobody_approved_grants_nothing(bed):
    bed.ledger.digest = "sha256:" + "0" * 64
    with pytest.raises(NotGranted, match="no approved plan"):
        bed.ask(bed.uri("ckpt/"), "write")


def test_the_plan_of_another_job_grants_nothing(bed):
    other = plan(Cloud.AWS, workload(Store.S3, "other"))
    write(bed.folder, other)
    bed.ledger.digest = other.digest
    with pytest.raises(NotGranted, match="another job"):
        bed.ask(bed.uri("ckpt/"), "write")


def test_a_plan_that_was_edited_is_none_and_says_so(bed):
    document = to_document(bed.plan)
    text = json.dumps(document).replace("s3://all/ckpt/", OTHER)
    (bed.folder / "train.plan.json").write_text(text)
    with pytest.raises(NotGranted, match="no approved plan"):
        bed.ask(OTHER, "write")
    assert any("train.plan.json" in line for line in bed.told)


def test_a_broken_file_does_not_stop_the_others(bed):
    (bed.folder / "broken.plan.json").write_text("{")
    bed.ask(bed.uri("ckpt/"), "write")
    bed.ask(bed.uri("ckpt/"), "write")
    assert len([line for line in bed.told if "broken" in line]) == 1, "told once, not at every request"


def test_a_plan_that_is_taken_away_is_approved_no_longer(bed):
    bed.ask(bed.uri("ckpt/"), "write")
    (bed.folder / "train.plan.json").unlink()
    with pytest.raises(NotGranted):
        bed.ask(bed.uri("ckpt/"), "write")


def test_a_plan_that_comes_while_the_broker_runs_counts(tmp_path):
    bed = Bed(tmp_path)
    bed.join(SEAT)
    (bed.folder / "train.plan.json").unlink()
    with pytest.raises(NotGranted):
        bed.ask(bed.uri("ckpt/"), "write")
    (bed.folder / "2026").mkdir()
    write(bed.folder / "2026", bed.plan)
    bed.ask(bed.uri("ckpt/"), "write")


def test_grants_are_those_of_the_place_where_the_node_is(tmp_path):
    """A plan ranks placements in several clouds; a node of one gets what that one's grants and paths say."""
    bed = Bed(tmp_path, cloud=Cloud.GCP, store=Store.GCS)
    aws = plan(Cloud.AWS, workload(Store.GCS))
    both = replace(
        bed.plan,
        ranked=(*bed.plan.ranked, replace(aws.ranked[0], rank=2)),
        grants={**bed.plan.grants, **aws.grants},
        access={**bed.plan.access, **aws.access},
    )
    write(bed.folder, both)
    bed.ledger.digest = both.digest
    bed.join(SEAT)
    with pytest.raises(NotGranted, match="own identity"):
        bed.ask(bed.uri("corpus/"), "read")
    bed.ledger.machines[SEAT] = recorded(Cloud.AWS)
    bed.ask(bed.uri("corpus/"), "read", who=node(Cloud.AWS), proof_sha256="2")


def test_a_part_of_a_split_job_is_a_place_of_its_own(tmp_path):
    bed = Bed(tmp_path, cloud=Cloud.GCP, store=Store.GCS)
    aws = plan(Cloud.AWS, workload(Store.GCS))
    # as planning makes it: parts have no grants of their own, the whole has all of theirs
    rights = tuple(sorted({g for p in (bed.plan, aws) for grants in p.grants.values() for g in grants}))
    parts = tuple(replace(p.ranked[0], grants_digest="", first_rank=2 * n) for n, p in enumerate((bed.plan, aws)))
    whole = replace(bed.plan.ranked[0], parts=parts, grants_digest=grants_digest(rights))
    split = replace(
        bed.plan,
        ranked=(whole,),
        grants={whole.grants_digest: rights},
        access={**bed.plan.access, **aws.access},
    )
    write(bed.folder, split)
    bed.ledger.digest = split.digest
    bed.ledger.machines[SEAT], bed.ledger.keys[SEAT] = recorded(Cloud.AWS), KEY
    bed.ask(bed.uri("corpus/"), "read", who=node(Cloud.AWS))
    assert "--aws-prod-us-east-1" not in bed.orders[0].identity, "the identity is GCP's, for nodes on AWS"


# how long


def test_a_lease_ends_with_the_run(tmp_path):
    bed = Bed(tmp_path)
    bed.join(SEAT)
    began = NOW - timedelta(hours=1)
    lease = bed.ask(bed.uri("ckpt/"), "write", now=began + timedelta(hours=23, minutes=30))
    assert lease.issue.expires_at == "2026-12-01T11:15:00.000000Z"
    lease = bed.ask(bed.uri("ckpt/"), "write", now=began + timedelta(hours=24, minutes=10))
    assert bed.orders[-1].lifetime_seconds == 1800, "never below the floor"
    refused(Refusal.ENDED, lambda: bed.ask(bed.uri("ckpt/"), "write", now=began + timedelta(hours=24, minutes=16)))


def test_a_record_that_moves_the_start_gives_an_hour_at_most(bed):
    bed.ledger.started_at = "2030-01-01T00:00:00.000000Z"
    bed.ask(bed.uri("ckpt/"), "write")
    assert bed.orders[0].lifetime_seconds == 3600


def test_a_long_name_is_cut_as_the_stacks_cut_it(tmp_path):
    """A role's name that does not fit ends in a digest of the whole: another project's is another."""
    from planner.app.mint_nodes import NodeNames

    long = "a-job-with-a-rather-long-name-that-does-not-fit-into-a-role"
    made = plan(Cloud.AWS, workload(Store.S3, long))
    from modules.text import fit
    from planner.app.compose import access_name

    role = fit(f"skyplan-acme-{access_name(long, placement(Cloud.AWS))}", 64)
    who = replace(node(Cloud.AWS), principal=f"arn:aws:iam::{ACCOUNTS[Cloud.AWS]}:role/{role}")
    assert NodeNames(project=PROJECT).piece(made, who) is not None
    other = Project(name="acm", targets=PROJECT.targets, default_targets=False)
    assert NodeNames(project=other).piece(made, who) is None
