"""Apply keeps a planted secret in: whichever part of the job it hides in, nothing is applied and the cloud is not asked."""

from __future__ import annotations

import base64
import gzip
from dataclasses import replace

import pytest

from planner.app import secrets_guard
from planner.app.apply import Order, apply
from planner.model.errors import InputError
from planner.spec.normal import workload_document
from tests.unit.app.world import World, fake_synth, planned

# made up for this test, in the shape of a real one
KEY = "AKIA" + "QX7ZP3LMNB5R2TVW"
TOKEN = "hf_" + "aBcD3fGh1jKlMn0pQrStUvWxYz2468AcEg"
PLACES = {
    "run": {"run": f"AWS_ACCESS_KEY_ID={KEY} python train.py"},
    "setup": {"setup": f"huggingface-cli login --token {TOKEN}"},
    "env": {"env": (("LOGIN", TOKEN),)},
    "tags": {"tags": (("note", KEY),)},
    "packed": {
        "setup": f"echo {base64.b64encode(gzip.compress(f'export TOKEN={TOKEN}'.encode())).decode()} | base64 -d"
    },
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("hidden_in", ["stacks", "plan"])
def test_a_planted_secret_is_kept_in_and_nothing_applied(world: World, place: str, hidden_in: str) -> None:
    plan, work = planned()
    bad = replace(work, **PLACES[place])
    order = Order(plan=plan, workload=bad, prepare=0)
    if hidden_in == "plan":
        order = Order(plan=replace(plan, job=workload_document(bad)), workload=work, prepare=0)
    with pytest.raises(InputError) as caught:
        world.live(lambda ports: apply(order, ports))
    assert {d.code for d in caught.value.diagnostics} == {"SKY-IAM-504"}
    assert not any(secret in str(caught.value) for secret in (KEY, TOKEN))
    assert not world.log
    assert not world.cloud.machines
    assert not world.record.runs("train")


def test_a_secret_that_only_the_written_stack_has_stops_before_that_stack(world: World) -> None:
    plan, work = planned()

    def leaking(given):
        return fake_synth(given) | ({"user_data": f"token={TOKEN}"} if given.name.startswith("acc-") else {})

    with pytest.raises(InputError):
        world.live(lambda ports: apply(Order(plan=plan, workload=work, prepare=0), replace(ports, synth=leaking)))
    assert world.log == ["apply net-aws-prod-us-east-1"]


def test_a_job_without_secrets_goes_through(world: World) -> None:
    done = world.apply()
    assert done is not None
    assert done.changed


def test_what_runs_already_is_left_alone(world: World) -> None:
    world.apply()
    plan, work = planned()
    again, _ = world.live(
        lambda ports: apply(Order(plan=plan, workload=replace(work, **PLACES["run"]), prepare=0), ports)
    )
    assert not again.changed


def test_the_refusal_names_the_place_and_what_to_do() -> None:
    plan, work = planned()
    with pytest.raises(InputError) as caught:
        secrets_guard.refuse_plan(replace(plan, job=workload_document(replace(work, **PLACES["run"]))))
    (told,) = caught.value.diagnostics
    assert "plan train job.run" in told.summary
    assert "secret://" in told.hint
