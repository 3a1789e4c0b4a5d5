"""An attacker who owns the database and the control plane, and may have a node of one job: whatever he writes and asks, only that job's approved prefixes come out."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.app.mint import Asking
from planner.app.mint_rules import Wanted
from planner.model.offer import Cloud
from planner.model.runtime import NodeIdentity, Refused, Seat
from planner.model.workload import CheckpointPolicy, Dataset, Store
from tests.unit.server.broker.bed import ACCOUNTS, NOW, Bed, at, node, plan, recorded, workload, write

JOBS = ("train", "other")
CLOUDS = (Cloud.AWS, Cloud.GCP)
#: what each job's approved plans, old and new, let be minted: its data too where its nodes are in another cloud than the store
MINTED = {
    "train": {"ckpt/", "older/", "out/", "corpus/"},
    "other": {"theirs/", "out-theirs/", "corpus-theirs/"},
}
URIS = st.sampled_from(
    [f"s3://all/{prefix}" for prefix in (*MINTED["train"], *MINTED["other"], "secret/", "forged/", "", "ckpt/g1/")]
)


def plans():
    def job(name: str, ckpt: str, out: str, data: str):
        made = workload(Store.S3, name, data=(Dataset(at=at(Store.S3, data), size_bytes=1),))
        checkpoint = CheckpointPolicy(at=at(Store.S3, ckpt), size_bytes=1, every_hours=1.0)
        return replace(made, checkpoint=checkpoint, output=replace(made.output, at=at(Store.S3, out)))

    approved = [
        plan(cloud, one)
        for cloud in CLOUDS
        for one in (
            job("train", "ckpt/", "out/", "corpus/"),
            job("train", "older/", "out/", "corpus/"),
            job("other", "theirs/", "out-theirs/", "corpus-theirs/"),
        )
    ]
    forged = [plan(cloud, job(name, "forged/", "out/", "secret/")) for cloud in CLOUDS for name in JOBS]
    return approved, forged


APPROVED, FORGED = plans()
IDENTITIES = st.one_of(
    st.builds(node, st.sampled_from(CLOUDS), st.sampled_from(JOBS), st.integers(0, 1)),
    st.builds(
        replace,
        st.builds(node, st.sampled_from(CLOUDS), st.sampled_from(JOBS)),
        account=st.sampled_from([*ACCOUNTS.values(), "999999999999"]),
        principal=st.sampled_from(
            [
                "",
                "arn:aws:iam::123456789012:role/admin",
                "arn:aws:iam::999999999999:role/skyplan-acme-acc-train--aws-prod-us-east-1",
            ]
        ),
        scheme=st.sampled_from(["aws-sts", "gcp-jwt", "aws-iid", "one-time"]),
    ),
)


@st.composite
def attempts(draw: st.DrawFn) -> dict[str, Any]:
    """What an honest node of some job would ask, with lies in any of its parts."""
    made = draw(st.sampled_from(APPROVED))
    cloud, rank = Cloud(made.ranked[0].cloud), draw(st.integers(0, 1))
    honest: dict[str, Any] = {
        "digest": made.digest,
        "who": node(cloud, made.name, rank),
        "seat": Seat(job=made.name, generation=draw(st.integers(1, 5)), rank=rank),
        "machine": recorded(cloud, rank),
        "key": f"key-{cloud}-{made.name}-{rank}",
        "uri": f"s3://all/{draw(st.sampled_from(sorted(MINTED[made.name])))}",
        "access": draw(st.sampled_from(["read", "write"])),
    }
    lies: dict[str, st.SearchStrategy[Any]] = {
        "digest": st.sampled_from([p.digest for p in (*APPROVED, *FORGED)] + ["sha256:0", ""]),
        "who": IDENTITIES,
        "seat": st.builds(Seat, job=st.sampled_from(JOBS), generation=st.integers(1, 5), rank=st.integers(0, 1)),
        "machine": st.sampled_from(["", *(recorded(c, n) for c in CLOUDS for n in range(2))]),
        "key": st.sampled_from(["k1", "k2"]),
        "uri": URIS,
        "access": st.sampled_from(["read", "write"]),
    }
    return {**honest, **{name: draw(lies[name]) for name in draw(st.sets(st.sampled_from(sorted(lies)), max_size=4))}}


@given(attempts())
@settings(max_examples=300)
def test_only_the_askers_own_approved_prefixes(given_):
    digest, who, seat, machine, key, uri, access = given_.values()
    bed = shared()
    bed.orders.clear()
    bed.ledger.digest = digest
    bed.ledger.machines[seat], bed.ledger.keys[seat] = machine, key
    asking = Asking(
        wanted=Wanted(seat=seat, uri=uri, access=access), who=who, key_sha256=key, proof_sha256=f"{who}{key}"
    )
    with contextlib.suppress(Refused):
        lease = bed.broker.lease(asking, NOW)
    if not bed.orders:
        return
    job = job_of(who)
    assert job is not None, "no lease without the job's own node identity"
    assert seat.job == job
    (order,) = bed.orders
    (reads,) = order.scope.reads
    assert (order.scope.store, order.scope.bucket) == ("s3", "all")
    assert reads in MINTED[job]
    assert order.scope.writes == ((f"{reads}g{seat.generation}/",) if access == "write" else ())
    assert order.identity.startswith("arn:aws:iam::123456789012:role/skyplan/acme/data/skyplan-acme-dat-")
    assert f"-dat-{job}--{who.cloud}-prod-" in order.identity
    assert lease.issue.seat == seat


def job_of(who: NodeIdentity) -> str | None:
    return next((job for job in JOBS for cloud in CLOUDS if node(cloud, job).principal == who.principal), None)


def test_the_schedule_reaches_leases_at_all():
    """A test that only ever sees refusals would hold for a broker that is broken."""
    bed = shared()
    got = set()
    for made in APPROVED:
        cloud = Cloud(made.ranked[0].cloud)
        for prefix in MINTED[made.name]:
            seat = Seat(job=made.name, generation=2, rank=0)
            bed.ledger.digest = made.digest
            bed.ledger.machines[seat], bed.ledger.keys[seat] = recorded(cloud), "k"
            who = replace(node(cloud, made.name), instance_id="")
            asking = Asking(
                wanted=Wanted(seat=seat, uri=f"s3://all/{prefix}", access="write"),
                who=who,
                key_sha256="k",
                proof_sha256=f"{made.digest}{prefix}",
            )
            try:
                got.add((cloud, bed.broker.lease(asking, NOW).issue.uri))
            except Refused:
                continue
    assert len(got) == len(CLOUDS) * 5


_BEDS: list[Bed] = []
_FOLDER = tempfile.TemporaryDirectory()


def shared() -> Bed:
    """Files are read once; keys that were bound stay bound, as they would."""
    if not _BEDS:
        bed = Bed(Path(_FOLDER.name))
        for number, made in enumerate(APPROVED):
            write(bed.folder, made, f"plan-{number}")
        (bed.folder / "train.plan.json").unlink()
        _BEDS.append(bed)
    return _BEDS[0]
