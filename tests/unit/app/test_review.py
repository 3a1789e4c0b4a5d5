"""What makes a plan stale, what only warns, and what a pipeline of the user's own leaves for sync."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from planner.app import review as reviewing
from planner.app.revalidate import Today, age, changed_files, policy, price, prices_now
from planner.app.review import Setting, review
from planner.app.sync import Foreign, sync
from planner.model.errors import InputError, StalePlan
from planner.model.offer import CapacityType
from planner.model.plan import PlacementPlan
from planner.model.project import Backend, PriceOverride
from planner.model.reach import DataPath, Reach
from planner.model.record import RunStatus
from planner.model.workload import Constraints
from tests import builders as b
from tests.unit.app.world import EAST, NOW, P4DE, PROJECT, World, planned, small_market

PLAN, WORK = planned()
SETTING = Setting(market=small_market(), project=PROJECT)


def today(**changes: object) -> Today:
    values = {
        "job_digest": PLAN.inputs["job"]["digest"],
        "project_digest": PLAN.inputs["project"]["digest"],
        "project": PROJECT,
        "market": small_market(),
    }
    return Today(**{**values, **changes})  # pyright: ignore[reportArgumentType]


def codes(plan: PlacementPlan = PLAN, setting: Setting = SETTING, **more: object) -> list[str]:
    with pytest.raises(StalePlan) as caught:
        review(plan, setting, (), NOW, saved=True, **more)  # pyright: ignore[reportArgumentType]
    return [d.code for d in caught.value.diagnostics]


@pytest.fixture
def unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviewing, "_job_digest", lambda plan, setting: plan.inputs["job"]["digest"])


def test_a_plan_whose_files_and_prices_stand_may_be_applied(unchanged: None) -> None:
    found = review(PLAN, SETTING, (), NOW, saved=True)
    assert not found.order.barred
    assert not found.warnings
    assert not found.order.again


def test_a_job_file_that_is_gone_makes_it_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert codes() == ["SKY-APPLY-302"]


@pytest.mark.parametrize("change", [{"job_digest": None}, {"job_digest": "sha256:x"}, {"project_digest": "sha256:x"}])
def test_changed_files_are_named(change: dict[str, str | None]) -> None:
    assert [d.code for d in changed_files(PLAN, today(**change))] == ["SKY-APPLY-302"]
    assert not changed_files(PLAN, today())


def test_another_project_file_and_a_dearer_choice_are_both_told(unchanged: None) -> None:
    dearer = replace(PROJECT, prices=(PriceOverride(usd_per_hour=12.0),))
    assert codes(setting=replace(SETTING, project=dearer)) == ["SKY-APPLY-302", "SKY-APPLY-304"]


def test_a_runner_up_that_became_dear_is_barred_and_the_plan_stands(unchanged: None) -> None:
    rows = [
        (P4DE, EAST, "us-east-1-a", CapacityType.ON_DEMAND, 10.0),
        (P4DE, EAST, "us-east-1-b", CapacityType.ON_DEMAND, 20.0),
    ]
    found = review(PLAN, replace(SETTING, market=b.market(rows)), (), NOW, saved=True)
    assert sorted(found.order.barred) == sorted(p.offer_id for p in PLAN.ranked[1:])
    assert "+82 %" in found.order.barred[PLAN.ranked[1].offer_id]
    assert "not known any more" in found.order.barred[PLAN.ranked[2].offer_id]


@pytest.mark.parametrize(("usd", "stale"), [("9", False), ("11.0", False), ("11.01", True), (None, True)])
def test_prices_may_fall_and_rise_by_the_tolerance(usd: str | None, stale: bool) -> None:
    now = None if usd is None else Decimal(usd)
    assert bool(price(PLAN.choice, {PLAN.choice.offer_id: now}, WORK, PROJECT)) is stale


def test_a_rise_within_the_tolerance_but_over_a_cap_is_refused() -> None:
    capped = replace(WORK, constraints=Constraints(max_usd_per_hour=31.0, max_usd_total=1.0))
    found = price(PLAN.choice, {PLAN.choice.offer_id: Decimal("10.5")}, capped, PROJECT)
    assert ["per hour" in d.summary for d in found] == [True, False]
    assert {d.code for d in found} == {"SKY-APPLY-304"}


def test_free_reserved_capacity_stays_free() -> None:
    free = replace(PLAN.choice, node_usd_per_hour=Decimal(0))
    assert not price(free, {free.offer_id: Decimal(0)}, WORK, PROJECT)
    assert price(free, {free.offer_id: Decimal(1)}, WORK, PROJECT)


def test_prices_are_the_projects_own() -> None:
    discounted = replace(PROJECT, prices=(PriceOverride(discount=0.5),))
    assert prices_now([PLAN.choice], today(project=discounted), NOW) == {PLAN.choice.offer_id: Decimal(5)}


def test_mere_age_warns(unchanged: None) -> None:
    assert not age(PLAN, NOW)
    assert [d.code for d in age(PLAN, NOW + timedelta(days=9))] == ["SKY-APPLY-312"]
    assert [d.severity.value for d in review(PLAN, SETTING, (), NOW + timedelta(days=9), saved=True).warnings] == [
        "warning"
    ]


def test_the_policy_command_reads_the_plan_and_may_refuse_it(unchanged: None) -> None:
    look = f"{sys.executable} -c \"import json,sys; p=json.load(sys.stdin); print(p['job']['name']); sys.exit(3)\""
    (found,) = policy(PLAN, look)
    assert (found.code, "exited 3: train" in found.summary) == ("SKY-APPLY-313", True)
    assert not policy(PLAN, f"{sys.executable} -c 'import sys; sys.stdin.read()'")
    assert not policy(PLAN, None)


def test_ci_with_local_state_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    assert codes(replace(PLAN, ranked=())) == ["SKY-APPLY-301", "SKY-APPLY-306"]


def reached_by(reach: Reach) -> PlacementPlan:
    path = DataPath(uri="gs://b/p/", write=False, reach=reach, detail="")
    return replace(PLAN, access={f"{PLAN.choice.cloud}:{PLAN.choice.target}": (path,)})


def test_a_store_without_credentials_is_refused_unless_the_job_brings_its_own(unchanged: None) -> None:
    lacking = reached_by(Reach.BROKER)
    with pytest.raises(StalePlan) as refused:
        review(lacking, SETTING, (), NOW, saved=False)
    (found,) = refused.value.diagnostics
    assert (found.code, "gs://b/p/" in found.summary) == ("SKY-APPLY-327", True)
    assert review(lacking, SETTING, (), NOW, saved=False, own_credentials=True).order.plan is lacking
    assert review(reached_by(Reach.FEDERATION), SETTING, (), NOW, saved=False)


def test_a_runner_up_without_credentials_is_passed_over(unchanged: None) -> None:
    path = DataPath(uri="gs://b/p/", write=False, reach=Reach.BROKER, detail="")
    other = replace(PLAN.choice, rank=1, target="other", offer_id="aws:other/x")
    plan = replace(PLAN, ranked=(PLAN.choice, other), access={"aws:other": (path,)})
    assert list(review(plan, SETTING, (), NOW, saved=False).order.barred) == ["aws:other/x"]


def test_nebius_is_not_applied_without_the_project_to_make_things_in(unchanged: None) -> None:
    plan = replace(PLAN, ranked=(replace(PLAN.choice, cloud="nebius", target="nb"),))
    with pytest.raises(StalePlan) as refused:
        review(plan, SETTING, (), NOW, saved=False)
    assert "`project`" in refused.value.diagnostics[0].summary


def test_ci_with_shared_state_is_fine(monkeypatch: pytest.MonkeyPatch, unchanged: None) -> None:
    monkeypatch.setenv("CI", "true")
    shared = replace(PROJECT, backend=Backend(kind="s3", settings=(("bucket", "b"),)))
    assert codes(setting=replace(SETTING, project=shared)) == ["SKY-APPLY-302"]  # the project file did change


def test_what_is_under_way_is_not_judged_anew(world: World) -> None:
    world.apply()
    dearer = replace(PROJECT, prices=(PriceOverride(usd_per_hour=99.0),))
    found = review(PLAN, replace(SETTING, project=dearer), world.record.runs("train"), NOW, saved=True)
    assert found.order.plan is PLAN


def test_a_plan_made_a_moment_ago_is_not_held_against_files() -> None:
    assert review(PLAN, SETTING, (), NOW, saved=False).order.again


def test_sync_takes_in_what_the_users_own_pipeline_applied(world: World) -> None:
    elsewhere = World(world.path.parent / "ci")
    elsewhere.cloud, elsewhere.states = world.cloud, world.states
    elsewhere.apply()  # a pipeline with a record of its own stands for `terraform apply` by hand
    elsewhere.close()
    learnt, _ = world.live(lambda ports: sync("train", ports, foreign=Foreign(plan=PLAN, workload=WORK, generation=1)))
    assert learnt.taken_in == ("train-g1",)
    assert world.record.runs("train")[0].status is RunStatus.RUNNING
    assert len(world.record.nodes("train", 1)) == 3
    done = world.apply()
    assert done is not None
    assert not done.changed
    world.destroy()
    assert not world.cloud.machines
    assert not world.states


def test_sync_of_a_plan_nobody_applied_says_so(world: World) -> None:
    with pytest.raises(InputError) as caught:
        world.live(lambda ports: sync("train", ports, foreign=Foreign(plan=PLAN, workload=WORK, generation=1)))
    assert caught.value.diagnostics[0].code == "SKY-APPLY-323"
