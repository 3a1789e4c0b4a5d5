"""Plans for tests of placement diffs: small, with their numbers in sight."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from planner.app.diff_read import Held, held_new
from planner.model.digest import pretty
from planner.model.grants import Grant, Identity, Permission
from planner.model.plan import Caveat, Placement, PlacementPlan, PlanStatus, RejectedCount, ScoreTerm, to_document

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
