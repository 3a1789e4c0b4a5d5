"""The record's stacks through Terraform: work folders, nodes, locks of the dead and of the living."""

from __future__ import annotations

import json
import socket
from datetime import UTC, datetime, timedelta

import pytest

from planner.model.errors import TerraformError
from planner.model.project import Backend
from planner.model.record import Stack
from planner.model.stack import rank_key
from stacks.runner import Terraform
from stacks.tool import TerraformStacks
from stacks.wiring import access_variables, compute_variables
from tests.stacks import inputs


def stack(kind="s3"):
    return Stack(
        name="cmp-j-g1",
        kind="compute",
        job="j",
        cloud="aws",
        target="prod",
        region="us-east-1",
        generation=1,
        backend=Backend(kind=kind),
        document={"terraform": {"backend": {kind: {}}}},
        variables={"subnet_id": ""},
    )


@pytest.fixture
def tool(fake, tmp_path, monkeypatch):
    made = TerraformStacks(tmp_path, "acme", environment=fake.environment)
    fake.folder = tmp_path / ".skyplan" / "work" / "cmp-j-g1"
    terraform = Terraform(fake.folder, command=fake.command, environment=fake.environment)
    monkeypatch.setitem(made._known, "cmp-j-g1", terraform)
    return made


def lock(who, created):
    said = f"Error: Error acquiring the state lock\nLock Info:\n  ID:        L1\n  Who:       {who}\n  Created:   {created}\n"
    return {"err": said, "code": 1}


def stamp(age):
    return f"{datetime.now(UTC) - age:%Y-%m-%d %H:%M:%S}.123456 +0000 UTC"


def test_prepare_writes_and_initialises_with_the_states_key(tool, fake):
    tool.prepare(stack())
    assert json.loads((fake.folder / "skyplan.auto.tfvars.json").read_bytes()) == {"subnet_id": ""}
    assert "-backend-config=key=skyplan/acme/cmp-j-g1.tfstate" in fake.calls()[0]


def test_nodes_are_read_by_rank(tool, fake):
    tool.prepare(stack())
    instances = [{"index_key": rank_key(n), "attributes": {"id": f"i-{n}"}} for n in range(2)]
    state = {"resources": [{"mode": "managed", "type": "aws_instance", "name": "node", "instances": instances}]}
    fake.says(state_pull={"out": [json.dumps(state)]})
    assert tool.nodes(stack()) == {"r00": "i-0", "r01": "i-1"}


def test_adopting_imports_under_the_rank(tool, fake):
    tool.prepare(stack())
    tool.adopt(stack(), "r01", "i-9")
    tool.forget(stack(), "r01")
    assert fake.calls()[1][-2:] == ['aws_instance.node["r01"]', "i-9"]
    assert fake.calls()[2][-1] == 'aws_instance.node["r01"]'


@pytest.mark.parametrize(
    ("who", "age", "removed"),
    [
        (f"me@{socket.gethostname()}", timedelta(0), True),
        ("ci@elsewhere", timedelta(hours=2), True),
        ("ci@elsewhere", timedelta(minutes=1), False),
    ],
)
def test_only_a_dead_ones_lock_is_removed(tool, fake, who, age, removed):
    fake.says(plan=lock(who, stamp(age)))
    told = []
    if removed:
        tool.settle(stack(), lambda *words: told.append(words))
        assert ["force-unlock", "-force", "L1"] in fake.calls()
        assert who in told[-1][1]
        return
    with pytest.raises(TerraformError) as held:
        tool.settle(stack(), lambda *_: None)
    assert who in held.value.diagnostics[0].summary
    assert not any("force-unlock" in call for call in fake.calls())


def test_the_local_backend_has_no_lock_to_ask_for(tool, fake):
    tool.settle(stack("local"), lambda *_: None)
    assert not any("plan" in call for call in fake.calls())


def test_variables_are_made_of_other_stacks_outputs():
    network = {"vpc_id": "v", "subnet_ids": {"use1-az4": "s"}, "security_group_ids": ["g"], "security_group_id": "g"}
    launch = {"subnet_id": "", "launch_template_id": "lt-1"}
    access = {"launch": {"p4d.24xlarge/use1-az4": launch}, "node_identity": "arn"}
    wanted = {"vpc_id": "v", "subnet_ids": {"use1-az4": "s"}, "security_group_ids": ["g"]}
    assert access_variables(inputs.access(), network) == wanted
    assert compute_variables(inputs.compute(), access) == launch
