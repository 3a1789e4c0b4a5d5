"""One apply for all clouds: the same code launches, fails over, recovers and destroys on the schemas of AWS, GCP, Azure and Nebius.

Real Terraform on stub providers, and what is there is asked of the stub's log.  It proves stacks, order, states and recovery; what the clouds themselves
would say it proves only as far as their words are known (`stacks.failures`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from planner.app.launch import ABOUT_THE_OFFER
from planner.app.recover import IMPORTED
from planner.model.errors import TerraformError
from planner.model.record import RunStatus
from planner.model.stack import rank_key
from tests.e2e.clouds_bed import Bed
from tests.e2e.refusals import DENIED, REFUSALS, Refusal, always, once_each
from tests.emulators import terraform as terraform_on_this_machine
from tests.emulators.stub_cloud import HELD, MACHINES

pytestmark = pytest.mark.terraform

CLOUDS = ("gcp", "azure", "nebius", "aws")
Make = Callable[..., Bed]


@pytest.fixture
def make(tmp_path: Path, terraform_home: Path) -> Iterator[Make]:
    """A bed; `make("gcp", nodes=2)`."""
    if reason := terraform_on_this_machine.missing(aws=False):
        pytest.skip(reason)
    made: list[Bed] = []

    def bed(cloud: str, **given: object) -> Bed:
        folder = tmp_path / cloud
        folder.mkdir()
        made.append(Bed(folder, terraform_home / f"stub-{cloud}", cloud, **given))
        return made[-1]

    yield bed
    for one in made:
        one.close()


def stacks_of(bed: Bed) -> dict[str, str]:
    """Kind -> name."""
    return {stack.kind: stack.name for stack in bed.record.stacks()}


def runs_exactly(bed: Bed, nodes: int) -> None:
    """As many machines as asked for, of one generation, and the record knows just these; nothing else hangs about."""
    (run,) = [r for r in bed.record.runs("train") if r.status is RunStatus.RUNNING]
    known = bed.record.nodes("train", run.generation)
    assert bed.machines() == {n.instance_id: str(run.generation) for n in known}
    assert len(known) == nodes
    assert set(bed.held().values()) <= {str(run.generation)}
    # Nebius reserves the addresses that a plan fixes, Azure has an interface for every machine
    hangs_on = bed.work.cloud == "azure" or (bed.work.cloud == "nebius" and nodes > 1)
    assert len(bed.held()) == (nodes if hangs_on else 0)
    assert not bed.record.unfinished("train")


def addresses(bed: Bed) -> list[str]:
    """By rank, as the record has them; on Nebius as they were reserved, for the stub does not hand a reserved address to the machine."""
    if bed.work.cloud == "nebius":
        reserved = bed.cloud.of(HELD["nebius"]).values()
        return [one["ipv4_private"]["cidr"].partition("/")[0] for one in sorted(reserved, key=lambda one: one["name"])]
    (run,) = [r for r in bed.record.runs("train") if r.status is RunStatus.RUNNING]
    return [n.address for n in bed.record.nodes("train", run.generation)]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_from_nothing_to_nodes_and_back_to_nothing(make: Make, cloud: str) -> None:
    bed = make(cloud)
    done = bed.apply()
    assert done.changed
    runs_exactly(bed, 2)
    assert addresses(bed) == list(bed.work.plan.choice.addresses)
    stacks = stacks_of(bed)
    assert sorted(stacks) == ["access", "compute", "network"]
    for name in stacks.values():
        assert bed.terraform(name).validate() == ()
        assert not bed.terraform(name).plan(), f"{name}: nothing is left to change"
    lines = len(bed.cloud.lines())
    again = bed.apply()
    assert (again.changed, again.run.id, again.attempts) == (False, "train-g1", ())
    assert len(bed.cloud.lines()) == lines
    gone = bed.destroy()
    assert gone.stacks == (stacks["compute"], stacks["access"], stacks["network"])
    assert not gone.leaks
    assert not bed.cloud.alive()


def failed_over(bed: Bed, refusals: tuple[Refusal, ...], nodes: int) -> None:
    """Each refusal of the last rank ends one candidate, in order; the next one runs, and the refusals are remembered."""
    cloud, ranked = bed.work.cloud, bed.ranked
    assert len(ranked) > len(refusals)
    done = bed.apply(STUB_FAIL=once_each(cloud, rank_key(nodes - 1), *(refusal.words for refusal in refusals)))
    assert (done.run.rank, done.run.offer_id) == (ranked[len(refusals)].rank, ranked[len(refusals)].offer_id)
    assert [(a.outcome, a.kind, a.code) for a in done.attempts] == [
        *(("refused", refusal.kind, refusal.code) for refusal in refusals),
        ("done", "", ""),
    ]
    assert {(f.scope, f.kind, f.code) for f in bed.record.memory().failures} == {
        (p.offer_id if r.kind == "unknown" or r.code in ABOUT_THE_OFFER else p.pool, r.kind, r.code)
        for p, r in zip(ranked, refusals, strict=False)
    }
    assert bed.cloud.created(MACHINES[cloud]) == (nodes - 1) * len(refusals) + nodes, "the others had been launched"
    runs_exactly(bed, nodes)
    assert set(bed.machines().values()) == {str(len(refusals) + 1)}
    bed.destroy()
    assert not bed.cloud.alive()


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_cluster_that_lacks_one_node_is_torn_down_and_the_next_candidate_runs(make: Make, cloud: str) -> None:
    failed_over(make(cloud, nodes=2), REFUSALS[cloud][:2], nodes=2)


@pytest.mark.full
@pytest.mark.parametrize("cloud", CLOUDS)
def test_every_refusal_is_told_apart_and_remembered(make: Make, cloud: str) -> None:
    bed = make(cloud, nodes=1, candidates=6)
    failed_over(bed, REFUSALS[cloud], nodes=1)
    unknown = next(r for r in REFUSALS[cloud] if r.kind == "unknown")
    assert any(unknown.words in said for said in bed.said), "what is not known is shown whole"


@pytest.mark.parametrize(
    "cloud", ["azure", *(pytest.param(c, marks=pytest.mark.full) for c in ("gcp", "nebius", "aws"))]
)
def test_where_none_is_left_or_nobody_may_launch_nothing_is_left_behind(make: Make, cloud: str) -> None:
    bed = make(cloud, candidates=2)
    capacity = REFUSALS[cloud][0]
    with pytest.raises(TerraformError) as none_left:
        bed.apply(STUB_FAIL=always(cloud, capacity.words, "r01"))
    assert [d.code for d in none_left.value.diagnostics] == ["SKY-APPLY-311", "SKY-APPLY-308", "SKY-APPLY-308"]
    assert bed.cloud.created(MACHINES[cloud]) == 2, "each time the other rank had been launched"
    assert (bed.machines(), bed.held()) == ({}, {})
    assert sorted(stacks_of(bed)) == ["access", "network"]

    with pytest.raises(TerraformError) as denied:
        bed.apply(STUB_FAIL=always(cloud, DENIED[cloud]))
    assert [d.code for d in denied.value.diagnostics] == ["SKY-APPLY-317"]
    tried = [(a.stack, a.outcome, a.code, a.detail[-400:]) for a in bed.record.attempts("train")]
    assert [r.generation for r in bed.record.runs("train")] == [1, 2, 3], f"no other candidate was tried: {tried}"
    assert {f.kind for f in bed.record.memory().failures} == {"capacity"}
    assert (bed.machines(), bed.held()) == ({}, {})


#: what is made, and its reply lost: machines, and what they hang on
HELD_UP = [(cloud, MACHINES[cloud]) for cloud in CLOUDS] + [(cloud, HELD[cloud]) for cloud in HELD]


@pytest.mark.parametrize(
    ("cloud", "kind"),
    # with AWS's own provider: test_apply.py
    [pytest.param(*one, marks=pytest.mark.full) if one[0] == "aws" else one for one in HELD_UP],
)
def test_a_launch_killed_before_its_replies_came_is_finished_by_the_next_apply(
    make: Make, cloud: str, kind: str
) -> None:
    bed = make(cloud)
    bed.killed_while_held(kind, 2)
    lost = set(bed.cloud.of(kind))
    assert len(lost) == 2
    done = bed.apply()
    assert (done.changed, done.run.id) == (True, "train-g1")
    runs_exactly(bed, 2)
    assert addresses(bed) == list(bed.work.plan.choice.addresses)
    kept = set(bed.cloud.of(kind))
    if cloud in IMPORTED:
        assert kept == lost, "what was launched is kept, not launched anew"
        assert bed.cloud.created(kind) == 2
    else:
        assert not kept & lost, "what no state knows is ended"
    assert not bed.terraform("cmp-train-g1").plan()
    bed.destroy()
    assert not bed.cloud.alive()


@pytest.mark.full
@pytest.mark.parametrize(("cloud", "kind"), HELD_UP)
def test_a_killed_launch_can_be_destroyed_at_once(make: Make, cloud: str, kind: str) -> None:
    bed = make(cloud)
    bed.killed_while_held(kind, 2)
    bed.destroy()
    assert not bed.cloud.alive()
    assert not bed.record.stacks()


#: something of the access stack
ACCESS = {
    "azure": "azurerm_user_assigned_identity",
    "gcp": "google_compute_firewall",
    "nebius": "nebius_iam_v1_service_account",
    "aws": "aws_iam_role",
}


@pytest.mark.parametrize(
    "cloud", ["azure", *(pytest.param(c, marks=pytest.mark.full) for c in ("gcp", "nebius", "aws"))]
)
def test_an_apply_killed_while_access_was_made_is_finished_by_the_next(make: Make, cloud: str) -> None:
    bed = make(cloud, nodes=1)
    many = 2 if cloud == "gcp" else 1  # rules: the peers', and the refusal of the rest
    bed.killed_while_held(ACCESS[cloud], many)
    assert not bed.machines()
    done = bed.apply()
    assert (done.changed, done.run.id) == (True, "train-g1")
    runs_exactly(bed, 1)
    left = bed.destroy().leaks
    assert not left
    if cloud in {"azure", "gcp"}:
        assert bed.cloud.created(ACCESS[cloud]) == many, "what was made is taken in by its name"
        assert not bed.cloud.alive()
    else:  # the stub's names are not unique there: nothing tells what was made already.  None of it costs anything by itself
        assert not bed.machines()
        assert ACCESS[cloud] in {kind for kind, _ in bed.cloud.alive()}
