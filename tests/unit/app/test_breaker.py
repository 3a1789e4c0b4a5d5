"""Ways to break an apply that somebody found once: each stays closed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.app import compose
from planner.app.apply import Order, apply
from planner.model.diagnostic import Diagnostic
from planner.model.errors import StalePlan, TerraformError
from tests.unit.app.split import SplitWorld
from tests.unit.app.world import FakeTerraform, World, planned


@pytest.mark.parametrize(("job", "target"), [("train", "aws-prod"), ("train-aws", "prod")])
def test_two_jobs_never_share_an_access_stack(job: str, target: str) -> None:
    names = {
        compose.access_name(j, replace(planned()[0].choice, target=t))
        for j, t in [("train", "aws-prod"), ("train-aws", "prod")]
    }
    assert len(names) == 2
    assert compose.access_name(job, replace(planned()[0].choice, target=target)) in names


def test_a_stale_plan_goes_on_with_nothing_new(world: World) -> None:
    """Its run is gone on the way: what is left is an order that launches, and that was not judged."""
    plan, work = planned()
    stale = (Diagnostic(code="SKY-APPLY-302", summary="the job file changed"),)
    with pytest.raises(StalePlan) as refused:
        world.live(lambda ports: apply(Order(plan=plan, workload=work, stale=stale), ports))
    assert refused.value.diagnostics[0].code == "SKY-APPLY-302"
    assert not world.cloud.machines


def test_machines_in_one_cloud_end_although_another_does_not_answer(tmp_path, monkeypatch) -> None:
    made = SplitWorld(tmp_path / "split")
    try:
        assert made.apply() is not None
        assert len(made.cloud.machines) == 4
        real = FakeTerraform.destroy

        def deaf(self, stack, tell):
            if stack.kind == "compute" and stack.cloud == "aws":
                raise TerraformError([Diagnostic(code="SKY-APPLY-310", summary="expired token")], "expired token")
            real(self, stack, tell)

        monkeypatch.setattr(FakeTerraform, "destroy", deaf)
        with pytest.raises(TerraformError):
            made.destroy()
        assert len(made.cloud.machines) == 2
    finally:
        made.close()
