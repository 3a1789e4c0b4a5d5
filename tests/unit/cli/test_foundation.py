"""`skyplan foundation`: writes one stack and says how to apply it; says everything that is missing at once; removes nothing."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from planner.app.foundation import ci_lines, ci_subjects, foundation_input, how_to_apply, left_out, scope_of
from planner.app.inputs import checked_project, load_market
from planner.cli.entry import call
from planner.model.errors import InputError
from planner.model.grants import Identity
from planner.model.offer import Cloud
from planner.model.project import CiSettings
from planner.model.words import words_of
from stacks.app import document

PROJECT = """\
project: acme
targets:
  - name: prod
    cloud: aws
    account: "123456789012"
    regions: [us-east-1, us-west-2]
    kms_key: arn:aws:kms:us-east-1:123456789012:key/k
    networks:
      - {region: us-east-1, vpc_id: vpc-1, subnets: {use1-az4: subnet-1}, security_groups: [sg-1]}
    foundation:
      trusted: {orchestrator: ["arn:aws:iam::123456789012:user/op"], broker: ["arn:aws:iam::123456789012:role/host"]}
      tag_keys: ["team*"]
instance_types: ["p5*", "a3*"]
reserved:
  - {target: prod, region: us-east-1, zone: use1-az4, instance_type: p5.48xlarge, nodes: 2, id: cr-1, starts: 2026-01-01, expires: 2027-01-01}
foundation:
  ci: {provider: github, repository: acme/infra, branch: main}
backend: {s3: {bucket: acme-tfstate, region: us-east-1}}
tags: {cost-center: llm}
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def call_it(text, *arguments):
        (tmp_path / "skyplan.yaml").write_text(text, encoding="utf-8")
        code = call(["foundation", *arguments])
        return code, *capsys.readouterr()

    return call_it


def project_of(tmp_path, text):
    file = tmp_path / "skyplan.yaml"
    file.write_text(text, encoding="utf-8")
    market = load_market()
    return checked_project(file, words_of(market)), market


def test_writes_the_stack_and_says_how_to_apply_it(run, tmp_path):
    code, out, err = run(PROJECT, "--cloud", "aws")
    path = tmp_path / "foundation" / "fnd-aws-prod" / "cdk.tf.json"
    assert (code, out) == (0, "foundation/fnd-aws-prod/cdk.tf.json\n")
    assert set(json.loads(path.read_text(encoding="utf-8"))["resource"]["aws_iam_role"]) == {
        "planner",
        "deployer",
        "orchestrator",
        "broker",
        "ci",
    }
    assert "as an administrator" in err
    assert "terraform -chdir=foundation/fnd-aws-prod init -backend-config=bucket=acme-tfstate" in err
    assert "-backend-config=key=skyplan/acme/fnd-aws-prod.tfstate" in err
    assert "terraform -chdir=foundation/fnd-aws-prod apply" in err
    assert "terraform -chdir=foundation/fnd-aws-prod output ci" in err
    path = "arn:aws:iam::123456789012:role/skyplan-foundation/acme/skyplan-acme"
    assert f"jobs of `main`: role-to-assume: {path}-ci\n" in err
    assert f"pull requests: role-to-assume: {path}-planner\n" in err


BROKER = ', broker: ["arn:aws:iam::123456789012:role/host"]'


def test_what_is_not_made_is_not_named_but_said_with_the_reason(run, tmp_path):
    code, _, err = run(PROJECT.replace(BROKER, ""), "--cloud", "aws")
    assert code == 0
    path = tmp_path / "foundation" / "fnd-aws-prod" / "cdk.tf.json"
    assert "broker" not in json.loads(path.read_text(encoding="utf-8"))["resource"]["aws_iam_role"]
    assert "fnd-aws-prod: planner, deployer, orchestrator of project acme in aws account 123456789012.\n" in err
    assert (
        "No broker is made: nobody may become it: name who may in `foundation.trusted.broker` of the target.\n" in err
    )
    assert "skyplan-acme-ci, by which CI of the protected branch comes in" in err
    _, out, _ = run(PROJECT.replace(BROKER, ""), "--cloud", "aws", "--json")
    said = json.loads(out)
    assert (list(said["left_out"]), sorted(said["identities"])) == (["broker"], ["deployer", "orchestrator", "planner"])
    _, _, err = run(PROJECT, "--cloud", "aws")
    assert "fnd-aws-prod: planner, deployer, orchestrator, broker of project" in err
    assert "is made:" not in err


WHO = '["arn:aws:iam::123456789012:user/op"]'
NO_CI = PROJECT.replace("foundation:\n  ci: {provider: github, repository: acme/infra, branch: main}\n", "")


@pytest.mark.parametrize(
    "text",
    [
        PROJECT,
        PROJECT.replace(BROKER, ""),
        NO_CI.replace("trusted: {", f"trusted: {{planner: {WHO}, deployer: {WHO}, "),
        NO_CI.replace(BROKER, "").replace("trusted: {", f"trusted: {{planner: {WHO}, deployer: {WHO}, "),
    ],
)
def test_what_is_said_to_be_left_out_is_what_the_stack_lacks(tmp_path, text):
    given = foundation_input(*project_of(tmp_path, text), Cloud.AWS, None)
    roles = set(document(given)["resource"]["aws_iam_role"]) - {"ci"}
    assert {identity.value for identity, _ in left_out(given)} == {
        one.identity.value for one in given.identities
    } - roles


@pytest.mark.parametrize("cloud", [Cloud.GCP, Cloud.AZURE, Cloud.NEBIUS])
def test_elsewhere_every_identity_is_made(tmp_path, cloud):
    given = foundation_input(*project_of(tmp_path, f"project: acme\ntargets: [{TARGETS[cloud]}]\n"), cloud, None)
    kind = {
        Cloud.GCP: "google_service_account",
        Cloud.AZURE: "azurerm_user_assigned_identity",
        Cloud.NEBIUS: "nebius_iam_v1_service_account",
    }
    # and on Google what the broker becomes
    made = set(document(given)["resource"][kind[cloud]]) - ({"data"} if cloud is Cloud.GCP else set())
    assert made == {one.identity.value for one in given.identities}
    assert left_out(given) == ()


def test_the_working_folder_holds_nothing_else(run, tmp_path):
    run(PROJECT, "--cloud", "aws")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["foundation", "skyplan.yaml"]


def test_a_cloud_without_a_target_is_told_with_what_to_write(run):
    code, _, err = run(PROJECT, "--cloud", "gcp")
    assert code == 1
    assert "skyplan.yaml has no target on gcp [SKY-SPEC-103]" in err
    assert "add a target with `cloud: gcp` and its `project`" in err


def test_json_says_the_same(run):
    code, out, err = run(PROJECT, "--cloud", "aws", "--target", "prod", "--json", "--out", "o")
    said = json.loads(out)
    assert (code, err) == (0, "")
    assert said["stack"] == "fnd-aws-prod"
    assert said["path"] == "o/fnd-aws-prod/cdk.tf.json"
    assert said["identities"]["deployer"] == "skyplan-acme-deployer"
    assert (said["left_out"], said["ci_role"]) == ({}, "skyplan-acme-ci")
    assert said["boundaries"] == [f"skyplan-acme-{one}-boundary" for one in ("node", "orchestrator", "data")]
    assert [line.rpartition(" ")[2] for line in said["apply"]][-3:] == ["apply", "skyplan_yaml", "ci"]
    assert [line.rpartition("/")[2] for line in said["ci"]] == ["skyplan-acme-ci", "skyplan-acme-planner"]


def test_what_lies_in_the_folder_stays(run, tmp_path):
    other = tmp_path / "foundation" / "fnd-aws-other"
    other.mkdir(parents=True)
    for name in ("cdk.tf.json", "terraform.tfstate"):
        (other / name).write_text("{}", encoding="utf-8")
    assert run(PROJECT, "--cloud", "aws")[0] == 0
    assert sorted(file.name for file in other.iterdir()) == ["cdk.tf.json", "terraform.tfstate"]


def test_a_folder_that_cannot_be_written_is_told(run, tmp_path):
    (tmp_path / "taken").write_text("", encoding="utf-8")
    code, out, err = run(PROJECT, "--cloud", "aws", "--out", "taken/x")
    assert (code, out) == (1, "")
    assert "taken/x/fnd-aws-prod/cdk.tf.json: cannot be written" in err
    assert "SKY-SPEC-101" in err


def test_the_same_input_writes_the_same_bytes(run, tmp_path):
    path = tmp_path / "foundation" / "fnd-aws-prod" / "cdk.tf.json"
    run(PROJECT, "--cloud", "aws")
    first = path.read_bytes()
    run(PROJECT, "--cloud", "aws")
    assert path.read_bytes() == first


TARGETS = {
    Cloud.AWS: '{name: no, cloud: aws, account: "012345678901", regions: [us-east-1]}',
    Cloud.GCP: "{name: t-1, cloud: gcp, project: acme-ml-prod}",
    Cloud.AZURE: "{name: t, cloud: azure, subscription: 00000000-0000-0000-0000-00000000000a, resource_group: rg, tenant: 00000000-0000-0000-0000-00000000000b}",
    Cloud.NEBIUS: "{name: t, cloud: nebius, project: project-e00acme, tenant: tenant-e00acme}",
}
#: what Terraform fills in, by the end of the reference
FILLED = {
    Cloud.AWS: lambda ref: (
        f"arn:aws:iam::012345678901:{'policy' if '_policy.' in ref else 'role'}/skyplan-foundation/acme/{ref.split('.')[1]}"
    ),
    Cloud.GCP: lambda ref: f"skyplan-acme-{ref.split('.')[1]}@acme-ml-prod.iam.gserviceaccount.com",
    Cloud.AZURE: lambda _: "11111111-0000-4000-8000-000000000000",
    Cloud.NEBIUS: lambda _: "serviceaccount-e00acme",
}


@pytest.mark.parametrize("cloud", Cloud)
def test_the_lines_for_skyplan_yaml_are_a_project_file_that_names_the_same_target(tmp_path, cloud):
    """As an administrator pastes them: Terraform's output after an apply, below the project's name."""
    ci = "foundation: {ci: {provider: github, repository: acme/infra, branch: main}}\n"
    project, market = project_of(tmp_path, f"project: acme\ntargets: [{TARGETS[cloud]}]\n{ci}")
    made = document(foundation_input(project, market, cloud, None))
    text = re.sub(r"\$\{([^}]*)\}", lambda found: FILLED[cloud](found[1]), made["output"]["skyplan_yaml"]["value"])
    pasted, _ = project_of(tmp_path, f"project: acme\n{text}")
    (target,), (meant,) = pasted.targets, project.targets
    same = ("name", "cloud", "account", "resource_group", "tenant")
    assert [getattr(target, field) for field in same] == [getattr(meant, field) for field in same]
    roles = (target.deployer_role, target.orchestrator_role)
    assert all(roles) is (cloud is not Cloud.NEBIUS)
    assert bool(target.permissions_boundary) is (cloud is Cloud.AWS)
    if cloud in {Cloud.AWS, Cloud.GCP}:
        assert "deployer" in roles[0]
        assert "orchestrator" in roles[1]


@pytest.mark.parametrize(
    ("cloud", "words"),
    [(Cloud.GCP, "audience: skyplan"), (Cloud.AZURE, "ARM_USE_OIDC=true"), (Cloud.NEBIUS, None)],
)
def test_what_the_ci_names_is_told_where_a_ci_comes_in(tmp_path, cloud, words):
    ci = "foundation: {ci: {provider: github, repository: acme/infra, branch: main}}\n"
    head = f"project: acme\ntargets: [{TARGETS[cloud]}]\n"
    lines = ci_lines(foundation_input(*project_of(tmp_path, head + ci), cloud, None))
    assert words in " ".join(lines) if words else lines == ()
    without = foundation_input(*project_of(tmp_path, head), cloud, None)
    assert ci_lines(without) == ()
    assert len(how_to_apply(without, tmp_path / "x" / "cdk.tf.json")) == 3


def test_the_example_names_what_its_own_foundation_makes(tmp_path):
    text = Path(__file__).parents[3].joinpath("examples", "skyplan.yaml").read_text(encoding="utf-8")
    project, market = project_of(tmp_path, text)
    given, target = foundation_input(project, market, Cloud.AWS, None), project.targets[0]
    made = document(given)["resource"]
    roles = [made["aws_iam_role"][word] for word in ("deployer", "orchestrator")]
    boundary = made["aws_iam_policy"]["skyplan-acme-llm-node-boundary"]
    arns = [f"arn:aws:iam::{target.account}:role{one['path']}{one['name']}" for one in roles]
    assert [target.deployer_role, target.orchestrator_role] == arns
    assert target.permissions_boundary == f"arn:aws:iam::{target.account}:policy{boundary['path']}{boundary['name']}"


def test_the_guides_project_file_is_one_and_its_links_lead_somewhere(tmp_path):
    docs = Path(__file__).parents[3] / "docs"
    text = (docs / "iam.md").read_text(encoding="utf-8")
    first = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[0]
    given = foundation_input(*project_of(tmp_path, first), Cloud.AWS, None)
    assert {one.identity.value: one.trusted for one in given.identities if one.trusted} == {
        "orchestrator": ("arn:aws:iam::123456789012:role/on-call",)
    }
    assert given.entry
    links = re.findall(r"\]\(([^)#]+)", text)
    assert len(links) >= 5
    assert [link for link in links if not (docs / link).exists()] == []


def test_the_guides_acceptance_for_gcp_takes_in_what_the_audit_finds_there(run, tmp_path, capsys):
    guide = (Path(__file__).parents[3] / "docs" / "iam.md").read_text(encoding="utf-8")
    (lines,) = (dedent(each) for each in re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL) if "SKY-IAM-213" in each)
    text = f"project: acme\ntargets: [{TARGETS[Cloud.GCP]}]\n"
    assert run(text, "--cloud", "gcp")[0] == 0
    assert call(["audit", "foundation"]) == 2
    (tmp_path / "skyplan.yaml").write_text(
        text + re.sub(r"expires: \S+", "expires: 2999-01-01", lines), encoding="utf-8"
    )
    capsys.readouterr()
    assert call(["audit", "foundation", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [(one["rule"], bool(one["accepted"])) for one in found] == [("SKY-IAM-213", True)]


def test_all_that_is_missing_is_said_at_once_and_nothing_written(run, tmp_path):
    code, out, err = run("project: acme\ntargets: [{name: prod, cloud: aws, regions: [nowhere-*]}]\n", "--cloud", "aws")
    assert (code, out) == (1, "")
    for words in (
        "`account` is missing",
        "no region is allowed",
        "nobody may become the planner",
        "nobody may become the deployer",
        "nobody may become the orchestrator",
    ):
        assert words in err
    assert not (tmp_path / "foundation").exists()


@pytest.mark.parametrize("cloud", ["gcp", "azure", "nebius"])
def test_every_cloud_asks_for_what_rights_are_bound_to(run, cloud):
    code, out, err = run(f"project: acme\ntargets: [{{name: prod, cloud: {cloud}}}]\n", "--cloud", cloud)
    assert (code, out) == (1, "")
    assert "is missing" in err
    assert "Traceback" not in err


def test_a_target_has_to_be_named_where_there_are_several(run):
    text = "project: acme\ntargets: [{name: a, cloud: aws}, {name: b, cloud: aws}]\n"
    code, _, err = run(text, "--cloud", "aws")
    assert code == 1
    assert "--target: a, b" in err
    code, _, err = run(text, "--cloud", "aws", "--target", "c")
    assert (code, "no target `c`" in err) == (1, True)


def test_a_second_target_of_the_same_account_is_told_before_its_names_clash(run, tmp_path):
    east = '  - {name: east, cloud: aws, account: "123456789012", regions: [us-east-1]}'
    clash = PROJECT.replace("instance_types: [", f"{east}\ninstance_types: [", 1)
    code, _, err = run(clash, "--cloud", "aws", "--target", "prod")
    assert code == 1
    assert "east is the same account" in err
    assert not (tmp_path / "foundation").exists()
    assert (
        run(
            clash.replace('"123456789012", regions: [us-east-1]}', '"123456789013", regions: [us-east-1]}'),
            "--cloud",
            "aws",
            "--target",
            "prod",
        )[0]
        == 0
    )


def test_too_many_types_are_said_with_a_way_out(tmp_path):
    project, market = project_of(tmp_path, PROJECT)
    names = tuple(one.name for one in market.types if one.cloud is Cloud.AWS)
    wide = replace(project, limits=replace(project.limits, instance_types=names * 20))
    with pytest.raises(InputError) as caught:
        foundation_input(wide, market, Cloud.AWS, None)
    (only,) = caught.value.diagnostics
    assert "too long for aws" in only.summary
    assert "globs" in only.hint


def test_the_scope_is_what_the_project_file_allows(tmp_path):
    project, market = project_of(tmp_path, PROJECT)
    scope = scope_of(project, project.targets[0], market)
    assert scope.regions == ("us-east-1", "us-west-2")
    assert scope.instance_types == ("p5*",)
    assert scope.state == "acme-tfstate"
    assert scope.kms_key == "arn:aws:kms:us-east-1:123456789012:key/k"
    assert scope.tag_keys == ("cost-center", "team*")
    assert scope.own == (
        "us-east-1/capacity-reservation/cr-1",
        "us-east-1/security-group/sg-1",
        "us-east-1/subnet/subnet-1",
        "us-east-1/vpc/vpc-1",
    )


def test_without_types_the_catalogs_families_are_allowed_and_no_other(tmp_path):
    project, market = project_of(tmp_path, PROJECT.replace('instance_types: ["p5*", "a3*"]\n', ""))
    types = scope_of(project, project.targets[0], market).instance_types
    assert "p5.*" in types
    assert all(one.endswith(".*") and one != ".*" for one in types)
    assert not [one for one in types if one.startswith(("m7i", "t3", "c7"))]


@pytest.mark.parametrize(("region", "partition"), [("us-gov-west-1", "aws-us-gov"), ("us-east-1", "aws")])
def test_the_partition_is_the_regions(tmp_path, region, partition):
    project, market = project_of(tmp_path, PROJECT)
    known = {one.name for one in market.regions if one.cloud is Cloud.AWS}
    if region not in known:
        pytest.skip(f"the catalog has no {region}")
    text = PROJECT.replace("us-east-1, us-west-2", region)
    project, market = project_of(tmp_path, text)
    assert scope_of(project, project.targets[0], market).partition == partition


GITHUB = CiSettings(provider="github", issuer="i", repository="acme/infra", branch="main")
GITLAB = CiSettings(provider="gitlab", issuer="i", repository="acme/infra", branch="main")
OTHER = CiSettings(provider="other", issuer="i", pull_request_subject="pr", branch_subject="main")
LAB = "project_path:acme/infra:ref_type:branch:ref:"


@pytest.mark.parametrize(
    ("ci", "cloud", "plans", "deploys"),
    [
        (GITHUB, Cloud.GCP, ("repo:acme/infra:pull_request", "repo:acme/infra:ref:refs/heads/main"), ("repo:acme/infra:ref:refs/heads/main",)),
        (GITHUB, Cloud.AWS, ("repo:acme/infra:pull_request",), ()),
        (GITLAB, Cloud.AWS, (f"{LAB}*",), ()),
        (GITLAB, Cloud.AZURE, (f"{LAB}main",), (f"{LAB}main",)),
        (OTHER, Cloud.AWS, ("pr",), ()),
        (OTHER, Cloud.GCP, ("pr", "main"), ("main",)),
    ],
)  # fmt: skip
def test_pull_requests_plan_and_the_protected_branch_deploys(ci, cloud, plans, deploys):
    assert ci_subjects(ci, Identity.PLANNER, cloud) == plans
    for identity in (Identity.DEPLOYER, Identity.ORCHESTRATOR):
        assert ci_subjects(ci, identity, cloud) == deploys
    assert ci_subjects(ci, Identity.BROKER, cloud) == ()


@pytest.mark.parametrize(
    ("ci", "branch"),
    [
        ("{provider: github, repository: acme/infra, branch: main}", "repo:acme/infra:ref:refs/heads/main"),
        ("{provider: gitlab, repository: acme/infra, branch: main}", f"{LAB}main"),
    ],
)
def test_on_aws_the_protected_branch_comes_in_by_one_role(tmp_path, ci, branch):
    text = PROJECT.replace("{provider: github, repository: acme/infra, branch: main}", ci)
    found = foundation_input(*project_of(tmp_path, text), Cloud.AWS, None)
    assert found.entry
    assert found.entry.subjects == (branch,)
    assert all(branch not in one.subjects for one in found.identities)


def test_without_ci_there_is_no_entry(tmp_path):
    text = PROJECT.replace("foundation:\n  ci: {provider: github, repository: acme/infra, branch: main}\n", "")
    who = '["arn:aws:iam::123456789012:user/op"]'
    text = text.replace("trusted: {", f"trusted: {{planner: {who}, deployer: {who}, ")
    assert foundation_input(*project_of(tmp_path, text), Cloud.AWS, None).entry is None


def test_whose_the_states_bucket_is(tmp_path):
    project, market = project_of(tmp_path, PROJECT)
    assert scope_of(project, project.targets[0], market).state_account == ""
    text = PROJECT.replace("      tag_keys:", '      state_account: "210987654321"\n      tag_keys:')
    project, market = project_of(tmp_path, text)
    assert scope_of(project, project.targets[0], market).state_account == "210987654321"


@pytest.mark.parametrize(
    ("target", "needs"),
    [
        ("{name: t, cloud: gcp, project: acme-ml-prod}", ""),
        ("{name: t, cloud: azure, subscription: 00000000-0000-0000-0000-00000000000a, resource_group: rg, tenant: 00000000-0000-0000-0000-00000000000b}", ""),
        ("{name: t, cloud: nebius, project: project-e00acme, tenant: tenant-e00acme}", ""),
        ("{name: t, cloud: azure, subscription: 00000000-0000-0000-0000-00000000000a}", "resource group"),
        ("{name: t, cloud: nebius, project: project-e00acme}", "tenant"),
    ],
)  # fmt: skip
def test_the_same_command_serves_every_cloud(tmp_path, target, needs):
    cloud = Cloud(target.split("cloud: ")[1].split(",")[0])
    ci = "foundation: {ci: {provider: github, repository: acme/infra, branch: main}}\n"
    project, market = project_of(tmp_path, f"project: acme\ntargets: [{target}]\n{ci}")
    if needs:
        with pytest.raises(InputError, match=needs):
            foundation_input(project, market, cloud, None)
        return
    found = foundation_input(project, market, cloud, None)
    assert found.name == f"fnd-{cloud.value}-t"
    assert [one.identity.value for one in found.identities] == ["planner", "deployer", "orchestrator", "broker"]
    assert found.ci
    assert found.ci.audience
