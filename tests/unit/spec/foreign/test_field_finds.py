"""What real SkyPilot tasks and dstack configurations taught: each case says in words of its own a form that was read wrong, or told badly, and what it means."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.unit.spec.foreign.foreign_files import accelerators, became, error_of, one, result_of, unsaid, why

GPU = "resources: {accelerators: L4:1}\n"
TASK = "type: task\ncommands: [a]\n"


def disk_gib(text: str) -> float:
    return (one(text).workload.resources.disk_bytes or 0) / 1024**3


@pytest.mark.parametrize(
    ("resources", "gib", "said"),
    [
        ("{accelerators: L4:1}", 256, False),
        ("{accelerators: L4:1, disk_size: 100}", 100, True),
        ("{accelerators: L4:1, disk_size: 1TB}", 1024, True),
        ("{any_of: [{accelerators: L4:1, disk_size: 100}, {accelerators: H100:1}]}", 256, False),
        ("{any_of: [{accelerators: L4:1, disk_size: 300}, {accelerators: H100:1, disk_size: 500}]}", 500, True),
    ],
)
def test_a_disk_that_is_not_said_is_as_large_as_skypilots(resources: str, gib: float, said: bool):
    text = f"resources: {resources}\nrun: a $SKYPILOT_TASK_ID\n"
    assert disk_gib(text) == gib
    assert ("resources.disk" in unsaid(one(text))) != said


def test_of_disks_that_differ_the_smaller_is_told():
    text = "resources:\n  any_of:\n    - {accelerators: L4:1, disk_size: 300}\n    - {accelerators: H100:1, disk_size: 500}\nrun: a\n"
    assert "the largest, 500, holds for all" in why(one(text), "resources.any_of[0].disk_size")
    assert became(one(text), "resources.any_of[1].disk_size")[0] == "carried"


@pytest.mark.parametrize(
    ("old", "sets"),
    [
        ("SKY_NODE_RANK", 'export SKY_NODE_RANK="${NODE_RANK:-0}"'),
        ("SKY_NODE_IPS", 'export SKY_NODE_IPS="${MASTER_ADDR:-127.0.0.1}"'),
        ("SKYPILOT_SPOT_RUN_ID", 'export SKYPILOT_SPOT_RUN_ID="${SKYPLAN_RUN:-task}"'),
    ],
)
def test_skypilots_old_variables_are_set_too(old: str, sets: str):
    assert one(f"{GPU}run: echo ${old}\n").workload.run.startswith(
        f"# set by skyplan import, as the other tool would have\n{sets}\n"
    )


def test_variables_that_only_look_like_skypilots_are_the_users():
    assert one(f"{GPU}num_nodes: 1\nrun: echo $SKY_COLOR\n").workload.run == "echo $SKY_COLOR"


def test_what_a_script_leaves_in_bashrc_is_told():
    text = f"{GPU}num_nodes: 1\nsetup: |\n  pip install a\n  echo export A=1 >> ~/.bashrc\nrun: a\n"
    found = [(e.at.line, e.why) for e in one(text).entries if e.outcome.value == "note"]
    assert found == [(5, "the script writes to ~/.bashrc, which SkyPilot's shells read and skyplan's do not")]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("resources:\n  candidates: [{accelerators: L4:1}]\nrun: a\n", 2, "an old name of `any_of`"),
        ("resources:\n  acelerators: L4:1\nrun: a\n", 2, "did you mean `accelerators`"),
        ("num_nodes: 1\nresources: {accelerators: L4}\nimage_id: docker:a/b\nrun: a\n", 3, "belongs under `resources`"),
        ("resources:\n  accelerators: L4\n  cloud: [aws, gcp]\nrun: a\n", 3, "an alternative for each under `any_of`"),
        (
            "resources:\n  accelerators: H100:1\n  instance_type: p4d.24xlarge\nrun: a\n",
            3,
            "p4d.24xlarge has A100:8, not H100:1",
        ),
    ],
)
def test_what_is_refused_says_what_to_do(text: str, line: int, says: str):
    found, told = error_of(text, "skypilot")
    assert found == line
    assert says in told


def test_a_machine_type_and_its_own_gpus_agree():
    text = "resources: {accelerators: A100:8, instance_type: p4d.24xlarge}\nrun: a\n"
    assert accelerators(one(text)) == ["A100:8"]


def test_groups_of_nodes_are_refused_in_one_sentence():
    text = "type: task\ngroups:\n  - {nodes: 1, commands: [a], resources: {gpu: L4}}\n  - {nodes: 2, commands: [b]}\n"
    line, says = error_of(text)
    assert line == 2
    assert "nodes of a job are alike" in says
    assert "one task per group" in says


@pytest.mark.parametrize(
    ("nodes", "meant", "says"),
    [("0..", 1, "none at first"), ("1..", 1, "a range"), ("0..4", 4, "a range"), ("2..", 2, "a range")],
)
def test_fleets_without_an_upper_end(nodes: str, meant: int, says: str):
    job = one(f"type: fleet\nnodes: {nodes}\nresources: {{gpu: L4}}\n")
    assert job.workload.resources.nodes == meant
    assert says in why(job, "nodes")


@pytest.mark.parametrize(
    ("gpu", "told"), [("L4", True), ("L4:1", False), ("{name: L4}", True), ("{name: L4, count: 2}", False)]
)
def test_a_count_that_is_not_said_is_told_to_be_one(gpu: str, told: bool):
    job = one(f"{TASK}resources: {{gpu: {gpu}}}\n")
    assert accelerators(job) == ["L4:2" if "2" in gpu else "L4:1"]
    assert any("no count is said" in e.why for e in job.entries) == told


def test_what_dstack_fills_in_at_launch_is_told_where_bash_would_trip():
    job = one("type: task\ncommands:\n  - a\n  - python b.py ${{ run.args }}\nresources: {gpu: 'L4:1'}\n")
    found = [(e.at.line, e.why) for e in job.entries if "at launch" in e.why]
    assert found == [(4, "dstack fills in ${{ run.args }} at launch; to bash it is an error")]


@pytest.mark.parametrize("field", ["dstack: true", "instances: [one]", "groups:"])
def test_newer_fields_are_left_out_with_a_reason(field: str):
    job = one(f"{TASK}resources: {{gpu: 'L4:1'}}\n{field}\n")
    outcome, line, _ = became(job, field.partition(":")[0] + ("[0]" if "[" in field else ""))
    assert (outcome, line) == ("left", 4)


def test_a_field_of_resources_that_stands_at_the_top_is_told_to_belong_there():
    result = result_of(f"{TASK}gpu: L4\n")
    assert [p.hint for p in result.problems if "`gpu`" in p.summary] == ["indent it: it belongs under `resources`"]


def test_a_secret_in_a_script_is_told_at_its_own_line():
    text = GPU + "num_nodes: 1\nrun: |\n  echo a\n  export X=" + "hf_" + "a" * 34 + "\n"
    assert error_of(text)[0] == 5


def test_a_place_of_one_alternative_is_left_out_where_another_may_be_anywhere():
    text = "resources:\n  any_of:\n    - {accelerators: L4, infra: aws/us-east-1}\n    - {accelerators: H100}\nrun: a\n"
    job = one(text)
    assert job.workload.constraints.clouds == ()
    assert became(job, "resources.any_of[0].infra")[0] == "left"
    assert "places are not limited" in why(job, "resources.any_of[0].infra")


def test_any_place_is_no_limit():
    job = one("resources: {accelerators: L4, infra: '*'}\nrun: a\n")
    assert job.workload.constraints.clouds == ()
    assert became(job, "resources.infra")[0] == "left"


def test_a_machine_type_of_one_alternative_stands_for_its_gpus_alone():
    text = "resources:\n  any_of:\n    - {instance_type: p5.48xlarge}\n    - {accelerators: L4}\nrun: a\n"
    job = one(text)
    assert accelerators(job) == ["H100:8", "L4:1"]
    assert job.workload.constraints.instance_types == ()
    assert became(job, "resources.any_of[0].instance_type")[2] == "resources.accelerators"


def test_a_secret_that_is_empty_is_given_at_launch_and_never_an_empty_variable():
    job = one('resources: {accelerators: L4}\nenvs:\n  HF_TOKEN: ""\n  NOTE: ""\nrun: a\n')
    assert dict(job.workload.env) == {"NOTE": ""}
    assert became(job, "envs.HF_TOKEN")[0] == "left"
    assert "given at launch" in why(job, "envs.HF_TOKEN")


def test_commands_that_end_in_a_comment_or_a_here_document_do_not_swallow_the_next():
    text = (
        "type: task\nresources: {gpu: 'L4:1'}\ncommands:\n"
        "  - |\n    echo one\n    # a word\n"
        "  - |\n    cat <<EOF\n    two\n    EOF\n"
        "  - false # no\n  - echo three\n"
    )
    bash = shutil.which("bash")
    assert bash is not None
    ran = subprocess.run([bash, "-c", one(text).workload.run], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, "one\ntwo\n")
