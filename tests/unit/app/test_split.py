"""Applying a job that lies in two clouds: what is made in which order, who learns what of whom, and all nodes or none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from planner.app.apply import Order, apply
from planner.app.sync import sync
from planner.model.errors import StalePlan, TerraformError
from planner.model.project import Quota
from planner.model.record import NodeStatus, Run, RunStatus
from planner.server import peers_file
from tests.unit.app.split import MEETING, PROJECT, SplitWorld, planned
from tests.unit.app.world import Killed

CAPACITY = ("capacity", "ZONE_RESOURCE_POOL_EXHAUSTED")
AWS, GCP, OTHER = "aws-prod-us-east-1", "gcp-prod-us-east4", "gcp-prod-us-central1"
IN_AWS = ("198.51.100.10", "198.51.100.11")
IN_GCP = ("203.0.113.12", "203.0.113.13")
RANKS = ("r00", "r01", "r02", "r03")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SplitWorld]:
    made = SplitWorld(tmp_path / "world")
    yield made
    made.close()


def machines(world: SplitWorld) -> dict[str, tuple[str, str]]:
    """Of everything that lives: id -> (region, rank)."""
    return {one: (region, i.rank) for one, (region, i) in world.cloud.machines.items()}


def variables(world: SplitWorld, name: str) -> dict[str, object]:
    stack = world.record.stack(name)
    assert stack is not None
    return stack.variables


def running(world: SplitWorld) -> Run:
    (run,) = [r for r in world.record.runs("train") if r.status is RunStatus.RUNNING]
    return run


def nothing_is_left(world: SplitWorld) -> None:
    assert not world.cloud.machines
    assert not world.states
    assert not world.record.stacks()
    assert not world.record.holdings()
    assert not world.record.unfinished("train")


def test_networks_then_endpoints_then_access_then_every_part(world: SplitWorld) -> None:
    world.apply()
    assert world.log == [
        f"apply net-{AWS}",
        f"apply net-{GCP}",
        f"apply adr-train--{AWS}",
        f"apply adr-train--{GCP}",
        f"apply acc-train--{AWS}",
        f"apply acc-train--{GCP}",
        "apply cmp-train-g1-aws",
        "apply cmp-train-g1-gcp",
    ]


def test_each_side_opens_to_every_endpoint_its_own_too(world: SplitWorld) -> None:
    """Two nodes of one part meet by their public endpoints as well (docs/decisions/0013)."""
    world.apply()
    assert variables(world, f"acc-train--{AWS}")["peer_endpoints"] == [*IN_AWS, *IN_GCP]
    assert variables(world, f"acc-train--{GCP}")["peer_endpoints"] == [*IN_AWS, *IN_GCP]


def test_nodes_get_the_addresses_that_were_reserved_for_them(world: SplitWorld) -> None:
    world.apply()
    assert variables(world, "cmp-train-g1-aws")["address_ids"] == {"r00": "aws-r00", "r01": "aws-r01"}
    assert variables(world, "cmp-train-g1-gcp")["address_ids"] == {"r02": "gcp-r02", "r03": "gcp-r03"}


def test_ranks_are_of_the_whole_job(world: SplitWorld) -> None:
    done = world.apply()
    assert done is not None
    assert (done.run.id, done.run.status, done.run.nodes, done.changed) == ("train-g1", RunStatus.RUNNING, 4, True)
    alive = machines(world)
    assert [(n.rank, *alive[n.instance_id]) for n in done.nodes] == [
        (0, "us-east-1", "r00"),
        (1, "us-east-1", "r01"),
        (2, "us-east4", "r02"),
        (3, "us-east4", "r03"),
    ]
    assert (done.run.gpus, done.run.vcpus) == (32, 4 * 96)


def test_the_peers_file_expects_every_member_where_it_will_be(world: SplitWorld, tmp_path: Path) -> None:
    world.apply()
    assert list(world.kept) == ["rendezvous/train-g1.json"]
    document = world.kept["rendezvous/train-g1.json"]
    assert document == {
        "job": "train",
        "generation": 1,
        "members": [
            {"name": rank, "tunnel_address": f"10.251.0.{i + 1}", "endpoint": f"{endpoint}:51820"}
            for i, (rank, endpoint) in enumerate(zip(RANKS, (*IN_AWS, *IN_GCP), strict=True))
        ],
    }
    assert tuple(m["tunnel_address"] for m in document["members"]) == planned()[0].choice.tunnel_addresses
    file = tmp_path / "peers.json"
    file.touch(mode=0o600)
    file.write_text(json.dumps(document), encoding="utf-8")
    expected = peers_file.read(file, b"a secret that all nodes can read")
    assert [m.name for m in expected.members] == list(RANKS)
    assert len({m.key for m in expected.members}) == 4
    assert any(f"{MEETING.url}: skyplan rendezvous --peers rendezvous/train-g1.json" in line for line in world.said)


def test_members_come_in_the_order_of_ranks_beyond_a_hundred(tmp_path: Path) -> None:
    quotas = (Quota(instance_types=("*",), max_nodes=60),)
    roomy = replace(PROJECT, targets=tuple(replace(t, quotas=quotas) for t in PROJECT.targets), pool_cap_nodes=100)

    class Large(SplitWorld):
        project = roomy
        planned = staticmethod(partial(planned, project=roomy))

    world = Large(tmp_path / "world")
    done = world.apply(nodes=102)
    world.close()
    assert done is not None
    assert [n.rank for n in done.nodes] == list(range(102))
    members = world.kept["rendezvous/train-g1.json"]["members"]
    assert [m["name"] for m in members] == [f"r{rank:02d}" for rank in range(102)]
    assert tuple(m["tunnel_address"] for m in members) == planned("train", 102, roomy)[0].choice.tunnel_addresses
    assert [m["endpoint"].partition(".")[0] for m in members] == ["198"] * 60 + ["203"] * 42


def test_every_launch_writes_its_own_peers_down(world: SplitWorld) -> None:
    world.refusals = {"us-east4-a": CAPACITY}
    world.apply()
    assert [(name, d["generation"]) for name, d in world.kept.items()] == [
        ("rendezvous/train-g1.json", 1),
        ("rendezvous/train-g2.json", 2),
    ]


@pytest.mark.parametrize("refuse_after", [0, 1])
def test_where_one_part_is_refused_the_other_is_torn_down_and_the_next_split_runs(
    world: SplitWorld, refuse_after: int
) -> None:
    world.refusals, world.refuse_after = {"us-east4-a": CAPACITY}, refuse_after
    done = world.apply()
    assert done is not None
    assert [r.status for r in world.record.runs("train")] == [RunStatus.FAILED, RunStatus.RUNNING]
    assert done.run.offer_id == planned()[0].ranked[1].offer_id
    assert sorted(machines(world).values()) == [
        ("us-central1", "r02"),
        ("us-central1", "r03"),
        ("us-east-1", "r00"),
        ("us-east-1", "r01"),
    ]
    assert {i.tags["skyplan:generation"] for _, i in world.cloud.machines.values()} == {"2"}
    assert world.log.index("destroy cmp-train-g1-aws") < world.log.index("apply cmp-train-g2-aws")
    assert "destroy cmp-train-g1-gcp" in world.log
    assert [f.scope for f in world.record.memory().failures] == [planned()[0].choice.parts[1].pool]
    assert [a.outcome for a in done.attempts] == ["done", "refused", "done", "done"]


def test_a_refused_first_part_begins_no_second(world: SplitWorld) -> None:
    world.refusals = {"us-east-1-a": CAPACITY}
    with pytest.raises(TerraformError) as caught:
        world.apply()
    assert [d.code for d in caught.value.diagnostics] == ["SKY-APPLY-311", *["SKY-APPLY-308"] * 2]
    assert not [line for line in world.log if line.startswith("apply cmp") and line.endswith("-gcp")]
    assert not world.cloud.machines
    world.destroy()
    nothing_is_left(world)


@pytest.mark.parametrize("kind", ["net", "adr-train-", "acc-train-"])
def test_a_place_that_cannot_be_prepared_is_passed_over_and_no_other(world: SplitWorld, kind: str) -> None:
    world.refusals = {f"{kind}-{GCP}": ("quota", "QUOTA_EXCEEDED")}
    done = world.apply()
    assert done is not None
    assert (done.run.generation, done.run.offer_id) == (1, planned()[0].ranked[1].offer_id)
    assert {region for region, _ in machines(world).values()} == {"us-east-1", "us-central1"}
    assert not world.record.memory().failures


@pytest.mark.parametrize("kind", ["net", "adr-train-", "acc-train-"])
def test_without_the_heads_place_nothing_is_launched(world: SplitWorld, kind: str) -> None:
    world.refusals = {f"{kind}-{AWS}": ("quota", "LimitExceeded")}
    with pytest.raises(TerraformError):
        world.apply()
    assert not world.cloud.machines
    assert world.log.count(f"apply {kind}-{AWS}") == 1
    assert not world.record.runs("train")
    world.destroy()
    nothing_is_left(world)


def test_endpoints_of_a_split_that_did_not_run_are_given_back(world: SplitWorld) -> None:
    """They cost money by the hour."""
    world.refusals = {"us-east4-a": CAPACITY}
    world.apply()
    assert sorted(s for s in world.states if s.startswith("adr-")) == [f"adr-train--{AWS}", f"adr-train--{OTHER}"]
    assert f"adr-train--{GCP}" not in {s.name for s in world.record.stacks()}


def test_when_no_split_is_left_no_endpoint_stays_reserved(world: SplitWorld) -> None:
    world.refusals = {"us-east-1-a": CAPACITY}
    with pytest.raises(TerraformError):
        world.apply()
    assert not [s for s in world.states if s.startswith("adr-")]


def test_applying_again_is_no_change(world: SplitWorld) -> None:
    world.apply()
    world.log.clear()
    done = world.apply()
    assert done is not None
    assert (done.changed, done.run.id, len(done.nodes)) == (False, "train-g1", 4)
    assert not world.log
    assert len(world.cloud.machines) == 4


def test_a_place_next_door_is_not_made_ready_by_undoing_a_part(world: SplitWorld) -> None:
    world.apply(prepare=2)
    assert variables(world, f"acc-train--{AWS}")["peer_endpoints"] == [*IN_AWS, *IN_GCP]
    assert world.log[-1] == "apply cmp-train-g1-gcp"


def test_destroy_leaves_nothing_and_is_done_once(world: SplitWorld) -> None:
    world.apply()
    world.log.clear()
    done = world.destroy()
    assert done is not None
    order = [*done.stacks]
    assert order[:2] == ["cmp-train-g1-aws", "cmp-train-g1-gcp"]
    assert set(order[2:4]) == {f"acc-train--{AWS}", f"acc-train--{GCP}"}
    assert set(order[4:6]) == {f"adr-train--{AWS}", f"adr-train--{GCP}"}
    assert set(order[6:]) == {f"net-{AWS}", f"net-{GCP}"}
    assert not done.leaks
    nothing_is_left(world)
    assert [n.status for n in world.record.nodes("train", 1)] == [NodeStatus.ENDED] * 4
    again = world.destroy()
    assert again is not None
    assert not again.stacks


def test_destroy_ends_machines_that_no_state_knows_in_every_cloud(world: SplitWorld) -> None:
    world.apply()
    world.destroy()
    tags = {"skyplan:project": "acme", "skyplan:job": "train", "skyplan:generation": "1"}
    stray = world.cloud.launch("us-east4", rank="r02", zone="z", instance_type="t", capacity="spot", tags=tags)
    done = world.destroy()
    assert done is not None
    assert done.leaks == (stray,)
    assert not world.cloud.machines


def test_sync_sees_nodes_lost_in_both_clouds(world: SplitWorld) -> None:
    done = world.apply()
    assert done is not None
    learnt, _ = world.live(lambda ports: sync("train", ports))
    assert not learnt.lost
    assert not learnt.strangers
    by_rank = {n.rank: n.instance_id for n in done.nodes}
    world.cloud.reclaim(by_rank[1])
    world.cloud.reclaim(by_rank[2])
    learnt, _ = world.live(lambda ports: sync("train", ports))
    assert learnt.lost == (("train-g1", 1), ("train-g1", 2))
    assert world.record.runs("train")[0].status is RunStatus.DEGRADED
    with pytest.raises(StalePlan) as caught:
        world.apply()
    assert caught.value.diagnostics[0].code == "SKY-APPLY-318"
    world.cloud.machines.clear()
    world.live(lambda ports: sync("train", ports))
    assert world.record.runs("train")[0].status is RunStatus.LOST


def test_sync_says_that_a_half_made_launch_is_begun_anew(world: SplitWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    launch = world.cloud.launch

    def dies_at_the_last(region: str, **given: Any) -> str:
        if given["rank"] == "r03":
            raise Killed
        return launch(region, **given)

    monkeypatch.setattr(world.cloud, "launch", dies_at_the_last)
    assert world.apply() is None
    monkeypatch.undo()
    before = dict(world.cloud.machines)
    assert len(before) == 3
    learnt, _ = world.live(lambda ports: sync("train", ports))
    assert ["begins it anew" in d.summary for d in learnt.warnings] == [True]
    assert world.cloud.machines == before
    assert not [line for line in world.log if line.startswith("import")]
    world.apply()
    assert running(world).id == "train-g2"
    assert len(world.cloud.machines) == 4


def test_no_endpoints_close_a_place_to_splits_alone(world: SplitWorld) -> None:
    """A quota of public addresses says nothing of nodes that need none."""
    plan, work = planned()
    single, _ = planned("train", 2)
    alone = replace(single.choice, rank=2)
    mixed = replace(plan, ranked=(plan.choice, alone))
    world.refusals = {f"adr-train--{AWS}": ("quota", "AddressLimitExceeded")}
    done, _ = world.live(lambda ports: apply(Order(plan=mixed, workload=work, prepare=0), ports))
    assert alone.region == "us-east-1"
    assert (done.run.offer_id, len(done.nodes)) == (alone.offer_id, 2)
    assert not [s for s in world.states if s.startswith("adr-")]


def test_without_a_rendezvous_the_operator_is_told_where_the_peers_are(tmp_path: Path) -> None:
    class Static(SplitWorld):
        project = replace(PROJECT, rendezvous=None)

    world = Static(tmp_path / "world")
    world.apply()
    assert any("by hand: the peers are in rendezvous/train-g1.json" in line for line in world.said)
    world.close()
