"""A migration diff with every field in use, for tests of what reads and shows one."""

from __future__ import annotations

from decimal import Decimal

from planner.model.grants import Grant, Identity, Permission
from planner.model.migration import MigrationDiff, MigrationReason, MigrationStep, Standing
from planner.model.plan import Caveat, Placement, ScoreTerm


def placement(region: str = "us-west-2", zone: str = "usw2-az1", usd: str = "9.5000", rank: int = 0) -> Placement:
    """Eight A100s on spot."""
    hourly = Decimal(usd)
    return Placement(
        rank=rank,
        offer_id=f"aws:prod/{region}/{zone}/p4de.24xlarge/spot",
        pool=f"aws:prod/{zone}/p4de/spot",
        target="prod",
        cloud="aws",
        region=region,
        zone=zone,
        instance_type="p4de.24xlarge",
        capacity="spot",
        nodes=1,
        gpu="A100-80GB",
        gpu_count=8,
        gpu_memory_gib=Decimal("80.0"),
        topology="nvswitch",
        node_usd_per_hour=hourly,
        usd_per_hour=hourly,
        total_usd=hourly * 10,
        lower_bound=False,
        compute_hours=Decimal("10.0000"),
        finish_hours=Decimal("10.5000"),
        terms=(ScoreTerm(name="compute", usd=hourly * 10, detail="10.00 h"),),
        caveats=(Caveat(code="SKY-CAT-113", text="zone unconfirmed"),),
        differs=("RAM 1152 GiB",),
        addresses=(),
        placement_id="p0123456789",
        grants_digest=f"sha256:{'0' * 63}a",
        price_as_of="2026-11-30",
        price_source="test",
    )


def diff() -> MigrationDiff:
    """From us-east-1 to us-west-2, since it is cheaper there."""
    return MigrationDiff(
        job="train",
        project="acme",
        reason=MigrationReason.SAVING,
        code="SKY-MOVE-413",
        text="saves $31.20 net over 8.0 h, worth 2.2 h of what runs",
        standing=Standing(
            generation=3,
            offer_id="aws:prod/us-east-1/use1-az4/p4de.24xlarge/spot",
            pool="aws:prod/use1-az4/p4de/spot",
            placement_id="p9876543210",
            region="us-east-1",
            topology="nvswitch",
            status="running",
            usd_per_hour=Decimal("14.0000"),
            remaining_usd=Decimal("140.0000"),
            remaining_hours=Decimal("10.0000"),
            step=12000,
            checkpoint_step=11900,
            checkpoint_uri="s3://acme-ckpt/train/g3/step-000000011900",
        ),
        to=(placement(), placement("us-west-2", "usw2-az2", "9.9000", 1)),
        terms=(
            ScoreTerm(name="saving", usd=Decimal("36.0000"), detail="8.00 h x ($14.0000/h - $9.5000/h)"),
            ScoreTerm(name="acquisition", usd=Decimal("-0.3750"), detail="5.0 min until the nodes are there"),
            ScoreTerm(name="checkpoint_egress", usd=Decimal("-1.9200"), detail="96 GB out of us-east-1"),
            ScoreTerm(name="risk", usd=None, detail="nothing is known of the pool"),
            ScoreTerm(name="net", usd=Decimal("33.7050"), detail="worth 2.41 h of what runs; 0.5 h are asked"),
        ),
        numbers={"horizon_hours": Decimal("8.0000"), "threshold_usd": Decimal("7.0000")},
        runner_up="aws:prod us-west-2 usw2-az2 p4de.24xlarge spot, $29.10 net",
        stop_minutes=Decimal("6.5000"),
        steps=(
            MigrationStep(key="launch", title="launch the new nodes", minutes=Decimal(11)),
            MigrationStep(key="save", title="checkpoint", after=("launch",), minutes=Decimal(2), stops=True),
        ),
        plan_digest=f"sha256:{'0' * 63}b",
        reviewed=False,
        prepared=True,
        resources_added=("cmp-train-gN: aws_instance.node",),
        resources_removed=("cmp-train-g3: aws_instance.node",),
        grants_added=(
            Grant(
                identity=Identity.NODE_DATA,
                permission=Permission.READ_OBJECTS,
                resource="s3://acme-corpus/llama/",
                reason="input",
            ),
        ),
        inputs={
            "market": "sha256:m",
            "as_of": "2026-11-30T12:00:00Z",
            "counted_by": "steps",
            "work_left": "step 12,000 of 24,000",
        },
    )
