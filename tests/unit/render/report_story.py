"""Reports for tests: two jobs that are planned in the packaged market, a market of any size, and one whose every text is hostile."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from planner.app import report as reporting
from planner.model.diagnostic import Diagnostic, Severity
from planner.model.fleet import BudgetUse, FleetSummary, Kept, PoolUse, Waiting
from planner.model.grants import Grant
from planner.model.past import Past, Pasts
from planner.model.plan import Placement, PlacementPlan
from planner.model.report import GROUPS, JobReport, Report, Row
from tests.unit.migration.diffs import diff

NOW = datetime(2026, 11, 30, tzinfo=UTC)
TRAIN = """name: train
resources: {accelerators: "A100-80GB:8", capacity: [spot, on_demand]}
work: {hours: 24, on: "A100-80GB:8"}
run: python train.py
data: [{uri: "s3://acme-corpus/llama/", region: us-east-1, size: 500GB}]
checkpoint: {uri: "s3://acme-ckpt/llama/", region: us-east-1, size: 96GB, every: 30m}
"""
BATCH = """name: batch
resources: {accelerators: ["L4:1", "T4:1", "L40S:1"], capacity: [spot, on_demand]}
work: {hours: 11, on: "L4:1"}
run: python embed.py
checkpoint: {uri: "s3://acme-ckpt/embed/", size: 1GB, every: 30m}
"""
NOWHERE = TRAIN.replace("name: train", "name: nowhere") + "constraints: {max_usd_total: 1}\n"
PROJECT = """project: acme
targets:
  - {name: prod, cloud: aws, account: "123456789012", regions: ["us-*", "eu-*"]}
  - {name: research, cloud: gcp, project: acme-ml-research}
  - {name: research, cloud: azure, subscription: 00000000-0000-0000-0000-00000000abcd}
"""


def made(folder: Path, *jobs: str, **more: Any) -> Report:
    """Of those job files, as `skyplan report` gathers it."""
    paths: list[Path] = []
    for k, text in enumerate(jobs):
        paths.append(folder / f"job{k}.yaml")
        paths[-1].write_text(text)
    project = folder / "skyplan.yaml"
    project.write_text(PROJECT)
    request = reporting.Request(
        paths=tuple(paths), project_file=project, offline=True, plans_folder=folder / "plans", **more
    )
    return reporting.run(request, NOW)


@cache
def story() -> Report:
    """Two jobs: `train` with a move and a history of prices, `batch` with an unknown term in its totals."""
    with TemporaryDirectory() as name:
        report = made(Path(name), TRAIN, BATCH)
    batch, train = sorted(report.jobs, key=lambda job: job.plan.name)
    return replace(report, jobs=(replace(train, moves=(diff(),), past=past(train.plan), no_past=""), batch))


@cache
def nowhere() -> Report:
    """A job that no offer can run."""
    with TemporaryDirectory() as name:
        return made(Path(name), NOWHERE)


def past(plan: PlacementPlan) -> Pasts:
    """Two series over thirty days."""
    until = datetime(2026, 9, 25, tzinfo=UTC)
    since = until - timedelta(days=30)
    start = since.timestamp()
    found = [
        Past(
            series=p.offer_id.replace(":prod", ""),
            changes=tuple((start + 86_400 * day, Decimal(8 + day % 5 + k)) for day in range(0, 30, 3)),
            least=Decimal(8 + k),
            median=Decimal(10 + k),
            mean=Decimal(10 + k),
            most=Decimal(12 + k),
            volatility=0.1,
        )
        for k, p in enumerate(plan.ranked[:2])
    ]
    return Pasts(since=since, until=until, found=tuple(found), others=3)


def large(offers: int, jobs: int = 1) -> Report:
    """Markets of so many offers, spread as real ones are."""
    base = story()
    job = base.jobs[1]
    rows: list[Row] = []
    for k in range(offers):
        total = Decimal(f"{7 + (k * 37 % offers) * 0.5:.4f}")
        finish = Decimal(f"{4 + (k * 101 % offers) * 0.02:.4f}")
        groups = tuple(Decimal(f"{float(total) * share:.4f}") for share in (0.8, 0.1, 0.05, 0.05))
        rows.append(
            Row(
                position=k,
                offer_id=f"aws:prod/region-{k % 40}/zone-{k % 97}/type-{k % 23}.xlarge/spot",
                place=f"{('aws:prod', 'gcp:research', 'azure:research', 'nebius:research')[k % 4]} region-{k % 40} zone-{k % 97}",
                what=f"4 x type-{k % 23}.48xlarge",
                cloud=("aws", "gcp", "azure", "nebius")[k % 4],
                region=f"region-{k % 40}",
                capacity=("spot", "on_demand")[k % 2],
                gpu=("H100", "A100-80GB", "H200")[k % 3],
                gpus=32,
                usd_per_hour=Decimal(f"{1 + k % 300 * 0.37:.4f}"),
                total_usd=total,
                lower_bound=k % 50 == 7,
                finish_hours=finish,
                groups=tuple(
                    None if k % 50 == 7 and name == "egress" else g for name, g in zip(GROUPS, groups, strict=True)
                ),
            )
        )
    rows.sort(key=lambda r: (r.total_usd, r.finish_hours))
    least: Decimal | None = None
    for at, row in enumerate(rows):
        edge = least is None or row.finish_hours < least
        least = row.finish_hours if edge else least
        rows[at] = replace(row, position=at, edge=edge)
    many = replace(job, rows=tuple(rows), feasible=offers, splits=0)
    named = tuple(replace(many, plan=replace(many.plan, job=many.plan.job | {"name": f"job-{k}"})) for k in range(jobs))
    return replace(base, jobs=named, fleet=None)


def fleet(word: str = "vision") -> FleetSummary:
    """With every part in use."""
    usd = Decimal("12.5000")
    return FleetSummary(
        jobs=3,
        placed=2,
        method=f"solver {word}",
        total_usd=usd,
        one_by_one_usd=usd * 2,
        bound_usd=usd,
        waiting=(
            Waiting(
                job=f"waits {word}", priority=3, team=word, code="SKY-REJ-207", text=f"full {word}", behind=(word,)
            ),
        ),
        kept=(Kept(job=word, offer_id=word, better_offer_id=word, saving_usd=usd),),
        pools=(PoolUse(pool=word, held=1, planned=2, cap=None), PoolUse(pool=f"{word}2", held=1, planned=2, cap=4)),
        budgets=(BudgetUse(teams=(word,), kind="per_hour", held_usd=usd, planned_usd=usd, limit_usd=usd),),
    )


def painted(word: str) -> Report:
    """The story with that word in every text that a user, a cloud or a file could have given."""
    base = story()
    return replace(
        base,
        project=word,
        as_of=word,
        jobs=tuple(_job(job, word) for job in base.jobs),
        fleet=fleet(word),
        warnings=(Diagnostic(code="SKY-SPEC-114", summary=word, hint=word, severity=Severity.WARNING),),
    )


def _job(job: JobReport, word: str) -> JobReport:
    plan = job.plan
    hostile = replace(
        plan,
        job=plan.job | {"name": f"{word}{plan.name}"},
        inputs=plan.inputs | {"as_of": word, "job": {"file": word, "digest": word}, word: [word]},
        ranked=tuple(_placement(p, word) for p in plan.ranked),
        notes=(word,),
        grants={key: tuple(_grant(g, word) for g in found) for key, found in plan.grants.items()},
    )
    subjects = job.audited.subjects if job.audited else ()
    return replace(
        job,
        plan=hostile,
        file=word,
        rows=tuple(
            replace(
                r,
                offer_id=f"{word}{r.position}" if r.position else hostile.ranked[0].offer_id,
                place=word,
                what=word,
                cloud=word,
                region=word,
                gpu=word,
                capacity=word,
            )
            for r in job.rows[:60]
        ),
        reasons=tuple(replace(r, code=word, examples=(word,)) for r in job.reasons),
        regions=tuple(replace(r, cloud=word, region=f"{word}{r.region}", area=word) for r in job.regions[:20]),
        audited=replace(job.audited, subjects=tuple(replace(s, name=word) for s in subjects)) if job.audited else None,
        no_rights=word,
        no_past=word,
        past=replace(job.past, found=tuple(replace(p, series=word) for p in job.past.found)) if job.past else None,
        moves=tuple(
            replace(
                m,
                job=word,
                code=word,
                text=word,
                standing=replace(m.standing, offer_id=word),
                to=tuple(_placement(p, word) for p in m.to),
                terms=tuple(replace(t, name=word, detail=word) for t in m.terms),
                steps=tuple(replace(s, title=word) for s in m.steps),
            )
            for m in job.moves
        ),
    )


def _placement(p: Placement, word: str) -> Placement:
    return replace(
        p,
        offer_id=f"{word}{p.rank}",
        target=word,
        region=word,
        zone=f"{word}z",
        instance_type=word,
        capacity=word,
        gpu=word,
        placement_id=word,
        terms=tuple(replace(t, detail=word) for t in p.terms),
        caveats=tuple(replace(c, code=word, text=word) for c in p.caveats),
        differs=(word,),
    )


def _grant(g: Grant, word: str) -> Grant:
    return replace(g, resource=word, reason=word)
