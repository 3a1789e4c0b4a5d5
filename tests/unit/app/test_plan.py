"""Planning as the app does it: what stands, what runs and what failed bend a plan; cases of SkyPilot's issues on prices, names, regions, availability.

`skypilot_NN` is the number in the list of its issues that a test was made of (docs/decisions name the issues).
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest

from catalog.load import load_market
from planner.app import inputs
from planner.app.files import write_plans
from planner.app.plan import Planned, Request, run_on
from planner.model.errors import InputError
from planner.model.ledger import AvailabilityMemory, Failure, Ledger
from planner.model.market import Market
from planner.model.offer import CapacityType, Cloud
from planner.model.project import Project
from planner.model.record import RunStatus
from planner.model.workload import GpuOption, Store, Workload
from planner.placement.fleet import Placed, Policy
from planner.placement.fleet import plan as place
from planner.state.engine import sqlite_url
from tests import builders as b
from tests.unit.app.world import NOW, PROJECT, World, small_market

ROOT = Path(__file__).parents[3]
OD, SPOT = CapacityType.ON_DEMAND, CapacityType.SPOT
ANY = (SPOT, OD)
CAP = 4
"""Nodes per pool that all jobs together may hold, where skyplan.yaml says nothing."""


@cache
def packaged() -> Market:
    return load_market()


def planned(
    *jobs: Workload,
    market: Market | None = None,
    plans: Path | None = None,
    project: Project | None = None,
    offline: bool = True,
    as_of: str | None = None,
    now: datetime = NOW,
    top: int = 20,
) -> list[Planned]:
    read = inputs.Inputs(
        jobs=tuple(inputs.Job(workload=j, file=f"{j.name}.yaml") for j in jobs),
        project=project or b.project(),
        project_file=None,
        market=market or packaged(),
        warnings=(),
    )
    request = Request(job_files=(), plans_folder=plans, offline=offline, as_of=as_of, top=top)
    return list(run_on(read, request, now).planned)


def placed(job: Workload, market: Market | None = None, *, memory: tuple[Failure, ...] = (), top: int = 1000) -> Placed:
    market = market or packaged()
    policy = Policy(project=b.project(), memory=AvailabilityMemory(memory), as_of=market.as_of, top=top)
    return place([job], market, Ledger(), policy)[0]


def wanting(
    gpu: str, count: int = 8, *, name: str = "job", capacity: tuple[CapacityType, ...] = ANY, **more
) -> Workload:
    resources = {
        "accelerators": (GpuOption(model=gpu, count=count),),
        "capacity": capacity,
        **more.pop("resources", {}),
    }
    return b.workload(name, resources=resources, **more)


# what stands, what runs


def test_a_pool_that_standing_plans_fill_is_left_to_them(tmp_path: Path) -> None:
    market = small_market()
    for k in range(CAP):
        write_plans([p.plan for p in planned(b.workload(f"old-{k}"), market=market, plans=tmp_path)], tmp_path)
    (late,) = planned(b.workload("late"), market=market, plans=tmp_path)
    assert [p.zone for p in late.plan.ranked] == ["us-east-1-b", "us-west-2-a", "us-west-2-b"]
    assert {r.code: r.count for r in late.plan.rejected} == {"SKY-REJ-207": 1}
    assert any("pools that other jobs fill" in note for note in late.plan.notes)


def test_a_job_that_is_planned_again_does_not_flee_from_its_own_plan(tmp_path: Path) -> None:
    market = small_market()
    job = b.workload("big", resources={"nodes": CAP})
    write_plans([p.plan for p in planned(job, market=market, plans=tmp_path)], tmp_path)
    (again,) = planned(job, market=market, plans=tmp_path)
    assert (again.plan.choice.zone, again.changed) == ("us-east-1-a", False)


def test_a_plan_of_a_type_that_left_the_market_holds_nothing_and_breaks_nothing(tmp_path: Path) -> None:
    gone = b.market([(b.instance_type("p4de.gone", hardware="p4de"), b.region(), "us-east-1-a", OD, 5.0)])
    write_plans([p.plan for p in planned(b.workload("old"), market=gone)], tmp_path)
    assert planned(b.workload("new"), market=small_market(), plans=tmp_path)[0].plan.choice.zone == "us-east-1-a"


def test_a_broken_standing_plan_stops_planning_for_the_ledger_must_lose_nothing(tmp_path: Path) -> None:
    (tmp_path / "old.plan.json").write_text("{}")
    with pytest.raises(InputError) as error:
        planned(b.workload("new"), market=small_market(), plans=tmp_path)
    assert [d.code for d in error.value.diagnostics] == ["SKY-APPLY-301"]


def test_a_plan_names_its_ledger_and_memory_by_digest(tmp_path: Path) -> None:
    market = small_market()
    (alone,) = planned(b.workload("new"), market=market)
    write_plans([p.plan for p in planned(b.workload("old"), market=market)], tmp_path)
    (beside,) = planned(b.workload("new"), market=market, plans=tmp_path)
    assert alone.plan.inputs["ledger"] != beside.plan.inputs["ledger"]
    assert {k: v for k, v in alone.plan.inputs.items() if k != "ledger"} == {
        k: v for k, v in beside.plan.inputs.items() if k != "ledger"
    }


def test_what_runs_is_held_and_its_own_placement_is_no_change(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert world.apply(name="train", nodes=3) is not None
    monkeypatch.setenv("SKYPLAN_DATABASE_URL", sqlite_url(world.path))
    given = {"market": small_market(), "project": PROJECT, "offline": False}
    (same,) = planned(b.workload("train", resources={"nodes": 3}), **given)
    assert (same.changed, same.plan.choice.zone) == (False, "us-east-1-a")
    (other,) = planned(b.workload("other", resources={"nodes": 3}), **given)
    assert other.plan.choice.zone == "us-east-1-b"
    (blind,) = planned(b.workload("other", resources={"nodes": 3}), **(given | {"offline": True}))
    assert blind.plan.choice.zone == "us-east-1-a"


def test_a_plan_of_then_sees_the_runs_of_then(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it is the plan that was made, whatever was launched and ended since."""
    monkeypatch.setenv("SKYPLAN_DATABASE_URL", sqlite_url(world.path))
    given = {"market": small_market(), "project": PROJECT, "offline": False}
    job = b.workload("next", resources={"nodes": 3})
    assert world.apply(name="train", nodes=3) is not None
    (run_,) = world.record.runs("train")
    began = datetime.fromisoformat(run_.started_at)
    before, during = (began - timedelta(minutes=1)).isoformat(), (began + timedelta(minutes=1)).isoformat()
    beside = planned(job, as_of=during, **given)[0].plan
    alone = planned(job, as_of=before, **given)[0].plan
    assert (alone.choice.zone, beside.choice.zone) == ("us-east-1-a", "us-east-1-b")
    lease = world.record.take_lease(
        "train", "later", began + timedelta(hours=2), timedelta(minutes=1), gone=lambda _: True
    )
    world.record.writer(lease).seen(run_.generation, [], RunStatus.ENDED, began + timedelta(hours=2), "ended")
    assert planned(job, **given)[0].plan.choice.zone == "us-east-1-a"
    assert planned(job, as_of=during, **given)[0].plan.digest == beside.digest
    assert planned(job, as_of=before, **given)[0].plan.digest == alone.digest


def test_failures_count_at_the_moment_of_planning_or_at_as_of(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.refusals["us-east-1-a"] = ("capacity", "InsufficientInstanceCapacity")
    assert world.apply(nodes=1) is not None
    (failure,) = world.record.memory().failures
    monkeypatch.setenv("SKYPLAN_DATABASE_URL", sqlite_url(world.path))

    def choice(**when) -> str:
        job = b.workload("next")
        return planned(job, market=small_market(), project=PROJECT, offline=False, **when)[0].plan.choice.zone

    at = datetime.fromisoformat(failure.at)
    soon, later = at + timedelta(minutes=30), at + timedelta(hours=2)
    assert choice(now=soon) == "us-east-1-b"
    assert choice(now=later) == "us-east-1-a"
    assert choice(now=later, as_of=soon.isoformat()) == "us-east-1-b"
    assert choice(now=soon, as_of=later.isoformat()) == "us-east-1-a"
    # before it happened it was not known
    assert choice(now=soon, as_of=(at - timedelta(minutes=1)).isoformat()) == "us-east-1-a"


def test_with_failures_the_same_as_of_gives_the_same_plan(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.refusals["us-east-1-a"] = ("capacity", "InsufficientInstanceCapacity")
    world.apply(nodes=1)
    monkeypatch.setenv("SKYPLAN_DATABASE_URL", sqlite_url(world.path))
    given = {"market": small_market(), "project": PROJECT, "offline": False, "as_of": "2026-01-02T00:10:00Z"}
    one, other = (planned(b.workload("n"), now=now, **given)[0].plan for now in (NOW, NOW + timedelta(days=3)))
    assert one.digest == other.digest
    assert one.inputs["as_of"] == "2026-01-02T00:10:00Z"


# spreading


def cheapest_assignment(job: Workload, count: int) -> Decimal:
    """The lower bound: as many of the cheapest offers as pools may hold, each pool at its cheapest offer."""
    best: dict[str, Decimal] = {}
    for p in planned(job, top=1000)[0].plan.ranked:
        best.setdefault(p.pool, p.total_usd)
    return sum(sorted(usd for usd in best.values() for _ in range(CAP))[:count], Decimal(0))


def spot_job(k: int) -> Workload:
    return wanting(
        "H100",
        name=f"job-{k:02d}",
        capacity=(SPOT,),
        work=replace(b.workload().work, model="H100"),
        data=(b.dataset(200.0, region_name="us-east-1"),),
        checkpoint=b.checkpoints(40.0, region_name="us-east-1"),
    )


def test_r21_skypilot_21_twenty_identical_jobs_stay_near_the_cheapest_assignment_together_and_one_by_one(
    tmp_path: Path,
) -> None:
    jobs = [spot_job(k) for k in range(20)]
    together = [p.plan for p in planned(*jobs)]
    bound = cheapest_assignment(jobs[0], len(jobs))
    assert sum(p.choice.total_usd for p in together) <= Decimal("1.02") * bound
    assert max(Counter(p.choice.pool for p in together).values()) <= CAP
    assert len({p.choice.pool for p in together}) >= len(jobs) // CAP
    for job in jobs:
        write_plans([p.plan for p in planned(job, plans=tmp_path)], tmp_path)
    one_by_one = inputs.standing_plans(tmp_path)
    assert [one_by_one[p.name].choice.offer_id for p in together] == [p.choice.offer_id for p in together]


def test_r21_a_pool_cap_of_the_project_spreads_wider() -> None:
    plans = [p.plan for p in planned(*(spot_job(k) for k in range(8)), project=b.project(pool_cap_nodes=1))]
    assert len({p.choice.pool for p in plans}) == 8


def test_a_higher_priority_takes_the_better_pool() -> None:
    market = small_market()
    jobs = [b.workload(f"j{k}", resources={"nodes": CAP}, priority=k) for k in range(3)]
    got = {p.plan.name: p.plan.choice.zone for p in planned(*jobs, market=market)}
    assert got == {"j2": "us-east-1-a", "j1": "us-east-1-b", "j0": "us-west-2-a"}


# cases of SkyPilot's issues


def with_price(folder: Path, usd: str, **wanted: str) -> Market:
    """The packaged catalog with another price in the rows that match."""
    shutil.copytree(ROOT / "catalog" / "data", folder)
    path = folder / "prices.csv"
    head, *rows = path.read_text().splitlines()
    names = head.split(",")
    changed = 0
    for k, row in enumerate(rows):
        cells = dict(zip(names, row.split(","), strict=False))
        if all(cells[n] == v for n, v in wanted.items()):
            rows[k] = ",".join((cells | {"usd_per_hour": usd}).values())
            changed += 1
    assert changed
    path.write_text("\n".join([head, *rows]) + "\n")
    return load_market(folder)


@pytest.mark.parametrize("usd", ["0", "NaN", "-1", "0.0", "inf", ""])
def test_skypilot_02_a_preview_price_of_nothing_never_wins(tmp_path: Path, usd: str) -> None:
    market = with_price(tmp_path / "c", usd, instance_type="Standard_ND96isr_H100_v5")
    ranked = placed(wanting("H100"), market).ranked
    assert ranked
    assert not [p for p in ranked if p.instance_type == "Standard_ND96isr_H100_v5"]


def test_skypilot_04_a_b200_for_a_cent_is_rejected_with_its_reason(tmp_path: Path) -> None:
    market = with_price(tmp_path / "c", "0.01", instance_type="p6-b200.48xlarge", zone="use1-az6", capacity="on_demand")
    found = placed(wanting("B200", capacity=(OD,)), market)
    assert not [p for p in found.ranked if p.zone == "use1-az6"]
    assert any("$0.0100/h is not believed (SKY-CAT-103)" in e for r in found.rejected for e in r.examples)


@pytest.mark.parametrize(("name", "usd"), [("a2-highgpu-1g", 3.673385), ("a2-megagpu-16g", 55.739504)])
def test_skypilot_05_an_a2_costs_its_host_and_its_gpus_of_one_region(name: str, usd: float) -> None:
    count = 1 if name.endswith("1g") else 16
    ranked = placed(wanting("A100", count, capacity=(OD,))).ranked
    rates = {float(p.node_usd_per_hour) for p in ranked if (p.instance_type, p.region) == (name, "us-central1")}
    assert sorted(rates) == pytest.approx([usd], rel=0.002)


def test_skypilot_06_disk_way_out_and_egress_are_in_the_price_and_the_local_disk_in_the_type() -> None:
    job = wanting(
        "H100",
        capacity=(SPOT,),
        resources={"disk_bytes": 500 * 10**9},
        data=(b.dataset(500.0, region_name="us-central1", store=Store.GCS),),
        checkpoint=b.checkpoints(10.0, region_name="us-central1", store=Store.GCS),
    )
    a3 = next(p for p in placed(job).ranked if p.instance_type == "a3-highgpu-8g")
    usd = {t.name: t.usd for t in a3.terms}
    assert all(usd[name] for name in ("compute", "startup", "interruptions", "disk", "outbound", "data_egress"))
    assert sum(v for v in usd.values() if v is not None) == a3.total_usd
    assert "local NVMe 6000 GB" in a3.differs


def test_skypilot_07_spot_at_or_above_on_demand_leads_to_on_demand() -> None:
    p4de = b.instance_type()
    rows = [(p4de, b.region(), "", SPOT, 20.0), (p4de, b.region(), "", OD, 20.0)]
    from planner.model.market import Mark

    found = placed(wanting("A100-80GB"), b.market(rows, marks={0: Mark.SPOT_NOT_CHEAPER}))
    assert [p.capacity for p in found.ranked] == ["on_demand"]
    assert any("SKY-CAT-104" in e for r in found.rejected for e in r.examples)


def test_skypilot_08_each_price_has_its_date_and_an_old_one_says_so() -> None:
    job = wanting("H100", capacity=(SPOT,))
    newest, later = (planned(job, as_of=at)[0].plan for at in (packaged().as_of, "2027-06-01T00:00:00Z"))
    assert all(p.price_as_of and p.price_source for p in newest.ranked)
    assert all("SKY-CAT-109" in {c.code for c in p.caveats} for p in later.ranked)


def test_skypilot_12_a100_80gb_never_lands_on_40_gb() -> None:
    ranked = placed(wanting("A100-80GB")).ranked
    assert ranked
    assert all(p.gpu_memory_gib >= 80 for p in ranked)
    assert not {p.instance_type for p in ranked} & {"p4d.24xlarge", "a2-highgpu-8g", "Standard_ND96asr_v4"}


def test_skypilot_13_a_blocked_type_leaves_the_other_types_of_its_cloud() -> None:
    job = wanting("H100", 1, capacity=(SPOT,))
    ncc = [p for p in placed(job).ranked if p.instance_type == "Standard_NCC40ads_H100_v5"]
    assert ncc
    failed = tuple(
        Failure(scope=p.offer_id, code="SkuNotAvailable", kind="capacity", at=packaged().as_of + "T00:00:00Z")
        for p in ncc
    )
    left = {p.instance_type for p in placed(job, memory=tuple(sorted(failed))).ranked if p.cloud == "azure"}
    assert "Standard_NC40ads_H100_v5" in left
    assert "Standard_NCC40ads_H100_v5" not in left


def test_skypilot_15_any_of_ranks_by_the_price_of_the_work() -> None:
    options = tuple(GpuOption(model=m, count=8) for m in ("A100-80GB", "H100", "H200"))
    ranked = placed(b.workload(resources={"accelerators": options, "capacity": (SPOT,)})).ranked
    assert [p.total_usd for p in ranked] == sorted(p.total_usd for p in ranked)
    cheapest_hour = min(ranked, key=lambda p: p.usd_per_hour)
    assert cheapest_hour.usd_per_hour < ranked[0].usd_per_hour
    assert cheapest_hour.total_usd > ranked[0].total_usd


def test_skypilot_16_another_region_of_the_same_cloud_costs_and_is_thinner() -> None:
    job = wanting("A100-80GB", capacity=(OD,), data=(b.dataset(200_000.0, region_name="us-east-1"),))
    by_region = {p.region: p for p in placed(job).ranked if p.instance_type == "p4de.24xlarge"}
    home, away = by_region["us-east-1"], by_region["us-west-2"]
    egress = {p.region: next(t.usd for t in p.terms if t.name == "data_egress") for p in (home, away)}
    assert egress == {"us-east-1": Decimal("0.0000"), "us-west-2": Decimal("4000.0000")}
    assert away.compute_hours > home.compute_hours


def test_skypilot_18_local_zones_and_opt_in_regions_stay_out_until_listed() -> None:
    job = wanting("H100", capacity=(SPOT,))
    assert not [p for p in placed(job).ranked if "-atl" in p.zone or "-lax" in p.zone]
    target = replace(b.project().target("default"), cloud=Cloud.AWS, opt_in_zones=("use1-atl2-az1",))
    (opted,) = planned(job, project=b.project(target), top=1000)
    assert "use1-atl2-az1" in {p.zone for p in opted.plan.ranked}


def test_skypilot_20_nothing_feasible_ends_at_once_with_every_offer_counted() -> None:
    began = datetime.now(UTC)
    found = placed(wanting("H100", resources={"min_ram_gib": 90_000.0}))
    assert datetime.now(UTC) - began < timedelta(seconds=1)
    assert not found.ranked
    assert sum(r.count for r in found.rejected) == len(packaged())


def test_skypilot_23_caps_hold_by_the_hour_and_in_total_and_spot_requests_rank_by_spot_prices() -> None:
    job = wanting("H100", constraints=b.limits(max_usd_per_hour=30.0, max_usd_total=900.0))
    capped = placed(job).ranked
    assert capped
    assert all(p.usd_per_hour <= 30 and p.total_usd <= 900 for p in capped)
    spot = placed(wanting("H100", capacity=(SPOT,))).ranked
    assert {p.capacity for p in spot} == {"spot"}
    on_demand_first = placed(wanting("H100", capacity=(OD,))).ranked[0]
    assert spot[0].node_usd_per_hour < on_demand_first.node_usd_per_hour


# what a reader must be told


def test_traffic_out_that_no_price_list_names_is_told_as_unverified() -> None:
    """Checkpoints leave the compute region: it is that direction's tariff that is in the total, and may be unverified."""
    job = wanting("H100", capacity=(OD,), checkpoint=b.checkpoints(560.0, every_hours=2.0, region_name="us-east-2"))
    nebius = next(p for p in placed(job).ranked if p.cloud == "nebius")
    assert any(c.code == "SKY-CAT-114" and "checkpoint" in c.text and "tariff" in c.text for c in nebius.caveats)


def test_a_bucket_without_a_region_is_told_by_the_code_that_means_it() -> None:
    job = wanting("H100", data=(b.dataset(10.0, region_name=None),))
    codes = {c.code for p in placed(job).ranked for c in p.caveats if "region unknown" in c.text}
    assert codes == {"SKY-SPEC-114"}


def test_reservations_open_and_expire_by_the_clock_not_by_the_catalogs_date() -> None:
    """A plan made in November must not take capacity that expired in October because the newest price is of September."""
    from planner.app.inputs import Inputs, Known
    from planner.app.plan import _moment
    from planner.model.project import Reservation

    reserved = Reservation(
        target="default",
        region="us-east-1",
        zone="z",
        instance_type="t",
        nodes=1,
        id="cr",
        starts="2026-01-01",
        expires="2026-10-15",
    )
    now = datetime(2026, 11, 30, tzinfo=UTC)
    plain = Inputs(jobs=(), project=b.project(), project_file=None, market=packaged(), warnings=())
    assert _moment(plain, Known(), now) == packaged().as_of
    assert _moment(replace(plain, project=b.project(reserved=(reserved,))), Known(), now) == "2026-11-30T00:00:00Z"
