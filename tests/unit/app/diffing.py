"""Plans for tests of placement diffs: small, with their numbers in sight."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from planner.app.diff import summed, with_migration
from planner.app.diff_change import change
from planner.app.diff_read import Held, held_new
from planner.model.change import PlacementDiff, ResourceChange, TerraformChanges
from planner.model.digest import pretty
from planner.model.finding import Finding, Level
from planner.model.grants import Grant, Identity, Permission
from planner.model.plan import Caveat, Placement, PlacementPlan, PlanStatus, RejectedCount, ScoreTerm, to_document
from tests.unit.migration.diffs import diff as migration_diff

READ = Grant(
    identity=Identity.NODE_DATA, permission=Permission.READ_OBJECTS, resource="s3://acme-data/web/", reason="its data"
)


def at(
    region: str = "us-east-1",
    *,
    usd: str = "10.0000",
    capacity: str = "spot",
    kind: str = "p4de.24xlarge",
    gpu: str = "A100-80GB",
    nodes: int = 1,
    egress: str | None = "0.0000",
    placed: str = "p0123456789",
    cloud: str = "aws",
) -> Placement:
    """Ten hours of work there; `egress` None is unknown."""
    hourly = Decimal(usd) * nodes
    sent = None if egress is None else Decimal(egress)
    zone = f"{region}-az1"
    return Placement(
        rank=0,
        offer_id=f"{cloud}:prod/{region}/{zone}/{kind}/{capacity}",
        pool=f"{cloud}:prod/{zone}/{kind.partition('.')[0]}/{capacity}",
        target="prod",
        cloud=cloud,
        region=region,
        zone=zone,
        instance_type=kind,
        capacity=capacity,
        nodes=nodes,
        gpu=gpu,
        gpu_count=8,
        gpu_memory_gib=Decimal("80.0"),
        topology="nvswitch",
        node_usd_per_hour=Decimal(usd),
        usd_per_hour=hourly,
        total_usd=hourly * 10 + (sent or 0),
        lower_bound=sent is None,
        compute_hours=Decimal("10.0000"),
        finish_hours=Decimal("10.5000"),
        terms=(
            ScoreTerm(name="compute", usd=hourly * 10, detail=f"10.00 h x ${hourly}/h"),
            ScoreTerm(name="data_egress", usd=sent, detail="2000 GB read"),
        ),
        caveats=(Caveat(code="SKY-CAT-113", text="the zone is not confirmed to offer the type"),),
        differs=(),
        addresses=(),
        placement_id=placed,
        grants_digest="sha256:g",
        price_as_of="2026-11-30",
        price_source="test",
    )


def plan(
    *ranked: Placement, name: str = "train", grants: tuple[Grant, ...] = (READ,), job: dict[str, Any] | None = None
) -> PlacementPlan:
    """`ranked`, best first; none = infeasible."""
    placed = tuple(replace(p, rank=k) for k, p in enumerate(ranked))
    return PlacementPlan(
        job={"name": name, "image": {"ref": "acme/train:1"}, **(job or {})},
        inputs={
            "method": 2,
            "as_of": "2026-11-30T12:00:00Z",
            "catalog": {"digest": "sha256:c", "as_of": "2026-11-30"},
            "job": {"file": f"jobs/{name}.yaml", "digest": f"sha256:{sorted((job or {}).items())}"},
            "project": {"file": "skyplan.yaml", "digest": "sha256:p"},
            "ledger": "sha256:l",
            "availability": "sha256:a",
        },
        ranked=placed,
        rejected=(RejectedCount(code="SKY-REJ-205", count=12, examples=()),),
        notes=(),
        grants={"sha256:g": grants},
        stacks=(),
        status=PlanStatus(complete=bool(ranked), applyable=bool(ranked), errored=False),
    )


def held(*ranked: Placement, **changes: Any) -> Held:
    """As read."""
    return replace(held_new(plan(*ranked, **changes)), whole=None)


def put(folder: Path, *plans: PlacementPlan) -> Path:
    """Plan files in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in plans:
        (folder / f"{one.name}.plan.json").write_bytes(pretty(to_document(one)))
    return folder


def resource(address: str, *actions: str, **more: Any) -> dict[str, Any]:
    """One entry of `resource_changes`."""
    change: dict[str, Any] = {"actions": list(actions), "before": {}, "after": {}, **more.pop("change", {})}
    return {"address": address, "change": change, **more}


def terraform(path: Path, *resources: dict[str, Any], **more: Any) -> Path:
    """What `terraform show -json` prints of a plan."""
    document = {"format_version": "1.2", "planned_values": {}, "resource_changes": list(resources), **more}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def made(base: list[PlacementPlan], head: list[PlacementPlan], **more: Any) -> PlacementDiff:
    """As `planner.app.diff.run` puts one together, of plans that lie in no file."""
    old, new = ({p.name: replace(held_new(p), whole=None) for p in plans} for plans in (base, head))
    changes = tuple(change(name, old.get(name), new.get(name)) for name in sorted({*old, *new}))
    changes = tuple(with_migration(c, None, more["migration"]) if "migration" in more else c for c in changes)
    more.pop("migration", None)
    return PlacementDiff(
        base="base",
        head="head",
        project="acme",
        valid_at="2026-11-30T12:00:00Z",
        changes=changes,
        hourly=summed(c.hourly for c in changes),
        total=summed(c.total for c in changes),
        egress=summed(c.egress for c in changes),
        snapshots=("2026-11-30T12:00:00Z",),
        **more,
    )


WIDER = Finding(
    rule="SKY-IAM-605",
    level=Level.HIGH,
    cloud="aws",
    identity="node-data",
    origin="acc-train--aws-prod-us-east-1 aws_iam_role.node",
    message="s3:GetObject now reaches arn:aws:s3:::acme-data/*; the base stops at arn:aws:s3:::acme-data/web/*",
    grant="node-data/Read1",
    action="s3:GetObject",
    resource="arn:aws:s3:::acme-data/*",
)


def cases() -> dict[str, PlacementDiff]:
    """The kinds of change that a reviewer meets, one of each."""
    here = at()
    there = at("us-west-2", usd="8.0000", egress="40.0000", placed="p2222222222")
    split = replace(
        here,
        nodes=4,
        usd_per_hour=Decimal(40),
        placement_id="p5555555555",
        parts=(at(nodes=2), at("eu-west-1", nodes=2)),
    )
    gone = TerraformChanges(
        file="tfplan.json",
        resources=(
            ResourceChange(address="aws_iam_role.old", action="delete", because="delete_because_no_resource_config"),
            ResourceChange(address='aws_instance.node["r00"]', action="replace", paths=("user_data",)),
            ResourceChange(address="aws_security_group.peers", action="update", paths=("ingress",)),
        ),
        drifted=("aws_vpc.main",),
    )
    many = [f"job-{n:03}" for n in range(200)]
    return {
        "none": made([plan(here)], [plan(here)]),
        "output-only": made(
            [plan(here)],
            [plan(here)],
            terraform=(TerraformChanges(file="tfplan.json", outputs=(("node_ip", "update"),)),),
        ),
        "other-figures": made([plan(here)], [plan(at(usd="11.0000"))]),
        "jobs-200": made(
            [plan(here, name=n) for n in many],
            [plan(there if k % 2 else here, here, name=n) for k, n in enumerate(many)],
        ),
        "unknown-price": made([plan(here)], [plan(at("us-west-2", usd="4.0000", egress=None, placed="p2222222222"))]),
        "widening-only": made([plan(here)], [plan(here)], widenings=(WIDER,)),
        "deletion": made([plan(here)], [plan(here)], terraform=(gone,)),
        "create": made([], [plan(here, there)]),
        "retire": made([plan(here), plan(there, name="other")], [plan(there, name="other")]),
        "capacity": made([plan(here)], [plan(at(capacity="on_demand", usd="27.4471", placed="p3333333333"), here)]),
        "region": made([plan(here)], [plan(there, here)]),
        "gpu": made(
            [plan(here)], [plan(at(kind="p5.48xlarge", gpu="H100", usd="20.0000", placed="p4444444444"), here)]
        ),
        "nodes": made([plan(here)], [plan(at(nodes=3, placed="p6666666666"), job={"resources": {"nodes": 3}})]),
        "split": made([plan(here)], [plan(split)]),
        "lower-bound": made([plan(at(egress=None))], [plan(at(egress=None), name="new"), plan(at(egress=None))]),
        "migration": made([plan(here)], [plan(here)], migration=replace(migration_diff(), job="train")),
        "infeasible": made([plan(here)], [plan()]),
    }
