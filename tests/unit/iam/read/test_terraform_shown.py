"""What the real Terraform showed of `tests/e2e/terraform_root`: of its plan and, after apply, of its state.  Recorded with Terraform's AWS provider 5.100.

A root in `*.tf.json`, as CDKTF writes it too: its plan shows the text of every expression, where one of HCL shows references alone.
"""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from planner.iam.read.leak_places import addressed
from planner.iam.read.terraform import read_terraform
from planner.model.errors import InputError
from planner.model.policy import Audited

SHOWN = Path(__file__).parent / "shown"
ROOT = Path(__file__).parents[3] / "e2e" / "terraform_root" / "main.tf.json"
#: the one thing that a cloud makes up here, in all of its spellings
MADE = re.compile(r"arn:aws:s3:::acme-made-\d+|\$\{aws_s3_bucket\.made\.arn\}")
NOT_YET = "${known.after_apply}"


def load(name: str) -> dict[str, Any]:
    return json.loads((SHOWN / f"{name}.json").read_text(encoding="utf-8"))


def rights(audited: Audited) -> dict[str, set[tuple[str, str, tuple[str, ...], tuple[str, ...]]]]:
    """Identity -> (policy, Sid, actions, resources), with the bucket by one name."""
    return {
        subject.name: {
            (
                policy.name.rpartition("/")[2],
                statement.sid,
                tuple(sorted(statement.actions)),
                tuple(sorted(MADE.sub("MADE", one) for one in statement.resources)),
            )
            for policy in subject.policies
            for statement in policy.statements
        }
        for subject in audited.subjects
    }


def without_the_dynamic(found: dict[str, set[Any]]) -> dict[str, set[Any]]:
    """Their resources are all that a plan does not show."""
    return {who: {(*one[:3], ()) if one[1].startswith("Write") else one for one in held} for who, held in found.items()}


def test_a_plan_says_what_the_state_will() -> None:
    plan, state = rights(read_terraform(load("plan"), file="p")), rights(read_terraform(load("state"), file="s"))
    assert set(state) == {"counted-0", "counted-1", "each-one", "each-two", "node-blue", "node-green"}
    assert without_the_dynamic(plan) == without_the_dynamic(state)
    assert ("data", "All", ("s3:*",), ("MADE", "MADE/*")) in plan["node-blue"]
    assert {one[0] for one in plan["counted-0"]} == {"trust", "inline", "made"}
    assert {one[0] for one in plan["counted-1"]} == {"trust", "inline"}, "`count.index` is each one's own"


def test_what_a_dynamic_block_will_name_is_not_left_out_and_is_said() -> None:
    plan, state = read_terraform(load("plan"), file="p"), read_terraform(load("state"), file="s")
    (write,) = (one for one in rights(plan)["counted-0"] if one[1] == "Writea")
    assert write[3] == (NOT_YET, "arn:aws:s3:::acme-a/*")
    (partly,) = plan.unread
    assert partly.startswith("p data.aws_iam_policy_document.launch: ")
    assert state.unread == ()


def test_statements_that_are_not_known_at_all_are_said() -> None:
    document = load("plan")
    for change in document["resource_changes"]:
        if change["address"] == 'module.node["blue"].data.aws_iam_policy_document.data':
            change["change"]["after_unknown"]["statement"] = True
    assert any('module.node["blue"].data.' in one for one in read_terraform(document, file="p").unread)


def test_of_hcl_a_plan_shows_references_and_that_is_said() -> None:
    document = load("plan")
    (call,) = document["configuration"]["root_module"]["module_calls"].values()
    (held,) = (one for one in call["module"]["resources"] if one["type"] == "aws_iam_policy_document")
    held["expressions"]["statement"][0]["resources"] = {"references": ["var.bucket"]}
    audited = read_terraform(document, file="p")
    assert ("data", "All", ("s3:*",), ("MADE", "MADE")) in rights(audited)["node-blue"]
    assert {one.split(": ")[0] for one in audited.unread} == {
        "p data.aws_iam_policy_document.launch",
        'p module.node["blue"].data.aws_iam_policy_document.data',
        'p module.node["green"].data.aws_iam_policy_document.data',
    }


def test_what_is_written_says_what_only_a_plan_knows() -> None:
    audited = read_terraform(json.loads(ROOT.read_text(encoding="utf-8")), file="main.tf.json")
    assert [one.partition(":")[0] for one in audited.unread] == [
        "main.tf.json module.node",
        "main.tf.json data.aws_iam_policy_document.launch",
    ]
    assert {one[1] for one in rights(audited)["counted-${count.index}"]} == {"", "Read", "Launch", "Become"}


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("plan", {"format_version": "2.0"}, "format_version '2.0' is not known"),
        ("state", {"format_version": "9"}, "format_version '9' is not known"),
        ("plan", {"planned_values": []}, "`planned_values` is no object"),
        ("state", {"values": None}, "`values` is no object"),
    ],
)
def test_a_form_that_is_not_known_is_no_clean_one(name: str, change: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError) as caught:
        read_terraform(load(name) | change, file="x.json")
    assert [(d.code, d.summary, str(d.location)) for d in caught.value.diagnostics] == [("SKY-IAM-902", why, "x.json")]


def test_a_state_file_of_another_version_is_refused() -> None:
    with pytest.raises(InputError, match="version 3"):
        read_terraform({"version": 3, "resources": []}, file="terraform.tfstate")


def test_a_plan_that_broke_off_is_said() -> None:
    assert "ended in an error" in read_terraform(load("plan") | {"errored": True}, file="p").unread[0]


# --- where a secret stands

SECRET = "kV9xQ2mZ7nLw4RtY8pBc"


def test_a_secret_stands_at_the_resources_address_once() -> None:
    document = copy.deepcopy(load("plan"))
    resources = document["planned_values"]["root_module"]["resources"]
    (number,) = (n for n, one in enumerate(resources) if one["address"] == "aws_instance.box")
    resources[number]["values"]["user_data"] = f"export DB_PASSWORD={SECRET}"
    for change in document["resource_changes"]:
        if change["address"] == "aws_instance.box":
            change["change"]["after"]["user_data"] = f"export DB_PASSWORD={SECRET}"
    leaks = [one for one in read_terraform(document, file="p").leaks if "PASSWORD" in one.kind]
    assert [one.origin for one in leaks] == ["p aws_instance.box.user_data"]


@pytest.mark.parametrize(
    ("document", "path", "address"),
    [
        ({"output": {"x": {"value": "s"}}}, "output.x.value", "output.x.value"),
        (
            {"resources": [{"mode": "data", "type": "t", "name": "n", "module": "module.m", "instances": [{}, {"index_key": "k"}]}]},
            "resources[0].instances[1].attributes.a.b[0]",
            'module.m.data.t.n["k"].a.b[0]',
        ),
        ({"resources": [{"address": "t.n", "values": {"a": "s"}}]}, "resources[0].values.a", "t.n.a"),
        ({"resource_changes": [{"address": "t.n", "change": {}}]}, "resource_changes[0].change.before.a", "t.n.a"),
        ({"resources": "x"}, "resources[7].values.a", "resources[7].values.a"),
        ({"resources": []}, "resources[7].values.a", "resources[7].values.a"),
    ],
)  # fmt: skip
def test_addresses(document: dict[str, Any], path: str, address: str) -> None:
    assert addressed(document, path) == address
