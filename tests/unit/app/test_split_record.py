"""What is known of a job in two clouds beside its launch: may it be applied, where are its nodes, what does it hold of which pool."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from planner.app import review as reviewing
from planner.app import wire
from planner.app.inputs import holdings_of as planned_holdings
from planner.app.recall import holdings_of, known
from planner.app.revalidate import Today, price, prices_now
from planner.app.review import Setting, review
from planner.app.standing_plans import whole
from planner.app.status import document, status
from planner.app.sync import Foreign, sync
from planner.model.errors import InputError, StalePlan
from planner.model.market import Market
from planner.model.offer import offer_name
from planner.model.plan import PlacementPlan
from planner.model.project import PriceOverride, Project, Rendezvous
from planner.model.record import RunStatus
from planner.model.workload import Constraints, SecretRef
from planner.render.runs_text import run_lines, status_lines
from planner.render.text import Paint
from planner.server import peers_file
from planner.state.engine import sqlite_url
from tests.unit.app.split import MEETING, PROJECT, SplitWorld, market, planned
from tests.unit.app.world import NOW

PLAN, WORK = planned()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SplitWorld]:
    made = SplitWorld(tmp_path / "world")
    yield made
    made.close()


@pytest.fixture
def unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviewing, "_job_digest", lambda plan, setting: plan.inputs["job"]["digest"])


def against(plan: PlacementPlan = PLAN, project: Project = PROJECT, *, saved: bool = False) -> list[tuple[str, str]]:
    with pytest.raises(StalePlan) as caught:
        review(plan, Setting(market=market(), project=project), (), NOW, saved=saved)
    return [(d.code, d.summary) for d in caught.value.diagnostics]


def test_a_split_plan_whose_files_and_prices_stand_may_be_applied(unchanged: None) -> None:
    found = review(PLAN, Setting(market=market(), project=PROJECT), (), NOW, saved=True)
    assert not found.order.barred


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({0: "10.9", 1: "12"}, []),
        ({1: "12.2"}, ["gcp:prod/us-east4/us-east4-a/a2-ultragpu-8g/on_demand: it costs $12.2000"]),
        ({0: "12"}, ["aws:prod/us-east-1/us-east-1-a/p4de.24xlarge/on_demand: it costs $12.0000"]),
    ],
)
def test_each_part_is_held_to_its_own_price(parts: dict[int, str], said: list[str]) -> None:
    now: dict[str, Decimal | None] = {p.offer_id: p.node_usd_per_hour for p in PLAN.choice.parts}
    now |= {PLAN.choice.parts[k].offer_id: Decimal(usd) for k, usd in parts.items()}
    found = price(PLAN.choice, now, WORK, PROJECT)
    assert [d.summary.partition(" per")[0] for d in found] == said


def test_caps_are_held_against_the_sum_of_the_parts() -> None:
    now: dict[str, Decimal | None] = {p.offer_id: p.node_usd_per_hour for p in PLAN.choice.parts}
    fits = replace(WORK, constraints=Constraints(max_usd_per_hour=42.0))
    assert not price(PLAN.choice, now, fits, PROJECT)
    (found,) = price(PLAN.choice, now, replace(WORK, constraints=Constraints(max_usd_per_hour=41.9)), PROJECT)
    assert "it would cost $42.00 per hour now" in found.summary


def test_a_part_that_is_not_offered_any_more_makes_it_stale() -> None:
    today = Today(
        job_digest=None, project_digest="", project=replace(PROJECT, targets=PROJECT.targets[:1]), market=market()
    )
    found = price(PLAN.choice, prices_now([PLAN.choice], today, NOW), WORK, PROJECT)
    assert [d.summary for d in found] == [f"{PLAN.choice.parts[1].offer_id}: its price is not known any more"]


def test_a_dearer_part_makes_a_saved_plan_stale(unchanged: None) -> None:
    dearer = replace(PROJECT, prices=(PriceOverride(instance_types=("a2-*",), usd_per_hour=99.0),))
    assert "SKY-APPLY-304" in [code for code, _ in against(project=dearer, saved=True)]


def test_without_an_agent_no_tunnel_comes_up() -> None:
    ((code, said),) = against(project=replace(PROJECT, agent_url=None))
    assert code == "SKY-RUN-505"
    assert "skyplan.yaml does not say where nodes fetch it" in said


@pytest.mark.parametrize(
    ("store", "words"),
    [
        (None, "names no join secret for gcp"),
        ("aws-secretsmanager", "nodes in gcp cannot read aws-secretsmanager://join"),
    ],
)
def test_every_cloud_needs_a_join_secret_that_its_nodes_can_read(store: str | None, words: str) -> None:
    theirs = (("gcp", SecretRef(env="JOIN", store=store, path="join")),) if store else ()
    meeting = Rendezvous(url=MEETING.url, secrets=(*MEETING.secrets[:1], *theirs))
    ((code, said),) = against(project=replace(PROJECT, rendezvous=meeting))
    assert code == "SKY-RUN-505"
    assert words in said


def test_keys_exchanged_by_hand_need_no_secret() -> None:
    found = review(PLAN, Setting(market=market(), project=replace(PROJECT, rendezvous=None)), (), NOW, saved=False)
    assert not found.order.barred


def test_a_part_on_nebius_needs_the_project_to_make_things_in() -> None:
    head, tail = PLAN.choice.parts
    there = replace(
        PLAN.choice, parts=(head, replace(tail, cloud="nebius", target="nb", offer_id="nebius:nb/r/-/t/spot"))
    )
    ((code, said),) = against(replace(PLAN, ranked=(there,)))
    assert (code, "target `nb` names no `project`" in said) == ("SKY-APPLY-302", True)


def test_a_runner_up_that_could_not_join_its_tunnel_is_passed_over() -> None:
    head, tail = PLAN.ranked[1].parts
    other = replace(PLAN.ranked[1], parts=(head, replace(tail, cloud="nebius", target="nb")))
    found = review(
        replace(PLAN, ranked=(PLAN.choice, other)), Setting(market=market(), project=PROJECT), (), NOW, saved=False
    )
    assert list(found.order.barred) == [other.offer_id]


def test_status_says_where_each_node_is(world: SplitWorld) -> None:
    world.apply()
    (found,) = status(world.record)
    nodes = document(found)["run"]["nodes"]
    assert [(n["rank"], n["cloud"], n["region"], n["zone"], n["instance_type"]) for n in nodes] == [
        (0, "aws", "us-east-1", "us-east-1-a", "p4de.24xlarge"),
        (1, "aws", "us-east-1", "us-east-1-a", "p4de.24xlarge"),
        (2, "gcp", "us-east4", "us-east4-a", "a2-ultragpu-8g"),
        (3, "gcp", "us-east4", "us-east4-a", "a2-ultragpu-8g"),
    ]
    assert found.run is not None
    head, *rows = run_lines(found.run, found.nodes, Paint(on=False))
    assert (
        "2 x p4de.24xlarge on-demand  aws:prod us-east-1 us-east-1-a  +  2 x a2-ultragpu-8g on-demand  gcp:prod us-east4"
        in head
    )
    assert [row.split()[:3] for row in rows] == [
        ["r00", "aws", "us-east-1"],
        ["r01", "aws", "us-east-1"],
        ["r02", "gcp", "us-east4"],
        ["r03", "gcp", "us-east4"],
    ]
    _, row = status_lines([(found.job, found.run, found.nodes, found.attempts)], Paint(on=False))
    assert "aws us-east-1-a + gcp us-east4-a" in row
    assert "4/4" in row


def test_a_run_holds_of_each_pool_what_its_part_takes(world: SplitWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    done = world.apply()
    assert done is not None
    held = holdings_of(done.run, market())
    assert [(h.pool, h.nodes, h.gpus, h.vcpus, h.region, h.target) for h in held] == [
        ("aws:prod/us-east-1-a/p4de/on_demand", 2, 16, 192, "us-east-1", "prod"),
        ("gcp:prod/us-east4-a/a2-ultragpu-8g/on_demand", 2, 16, 192, "us-east4", "prod"),
    ]
    planned = planned_holdings([PLAN], market())
    assert held == tuple(
        replace(h, usd_per_hour_ticks=0, usd_total_ticks=0) for h in planned
    )  # what it costs, plans say
    monkeypatch.setenv("SKYPLAN_DATABASE_URL", sqlite_url(world.path))
    assert known("acme", market(), plans={PLAN.name: whole(PLAN)}).holdings == tuple(sorted(planned)), (
        "as its plan says"
    )
    alone = known("acme", market()).holdings
    assert [(h.pool, h.nodes) for h in alone] == sorted((h.pool, h.nodes) for h in held)
    assert sum(h.usd_per_hour_ticks for h in alone) == int(done.run.usd_per_hour * 10_000), "its rate is known without"
    assert not any(h.usd_per_hour_ticks for h in known("other", market()).holdings), (
        "another project's money is its own"
    )
    world.destroy()
    assert not known("acme", market()).holdings


def test_a_part_of_a_type_that_the_catalog_lost_is_counted_with_the_first(world: SplitWorld) -> None:
    done = world.apply()
    assert done is not None
    every = market()
    lost: Market = replace(every, types=tuple(t for t in every.types if t.name != "a2-ultragpu-8g"))
    assert holdings_of(done.run, lost) == (done.run.holding,)
    assert done.run.holding.nodes == 4


def test_a_refused_split_holds_nothing(world: SplitWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.refusals = {"us-east4-a": ("capacity", "ZONE_RESOURCE_POOL_EXHAUSTED")}
    world.apply()
    assert world.record.runs("train")[0].status is RunStatus.FAILED
    monkeypatch.setenv("SKYPLAN_DATABASE_URL", sqlite_url(world.path))
    assert [h.pool for h in known("acme", market()).holdings] == [p.pool for p in PLAN.ranked[1].parts]


def test_what_is_kept_for_the_rendezvous_is_its_owners_alone(
    world: SplitWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.apply()
    monkeypatch.chdir(tmp_path)
    ports = wire.ports(PROJECT, market(), lambda stack, text: None)
    (given,) = world.kept.items()
    kept = Path(ports.keep(*given))
    ports.record.close()
    assert kept == Path(".skyplan/rendezvous/train-g1.json")
    assert kept.stat().st_mode & 0o077 == 0
    assert peers_file.read(kept, b"a secret that all nodes can read").job == "train"
    with pytest.raises(InputError):  # without the secret nobody could prove anything
        peers_file.read(kept)


def test_sync_takes_no_split_in_that_a_pipeline_applied(world: SplitWorld) -> None:
    foreign = Foreign(plan=PLAN, workload=WORK, generation=1)
    with pytest.raises(InputError) as caught:
        world.live(lambda ports: sync("train", ports, foreign=foreign))
    (found,) = caught.value.diagnostics
    assert (found.code, "only `skyplan apply` launches it" in found.summary) == ("SKY-APPLY-323", True)
    assert not world.record.runs("train")


@pytest.mark.parametrize("text", ["", "aws:prod/us-east-1/a/p4de", "prod/us-east-1/a/p4de/spot", "aws:p/r/-/t/spot x2"])
def test_what_is_no_offer_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no offer id"):
        offer_name(text)


def test_a_regional_offer_has_no_zone() -> None:
    assert offer_name("gcp:prod/us-east4/-/a2-ultragpu-8g/spot").zone == ""
