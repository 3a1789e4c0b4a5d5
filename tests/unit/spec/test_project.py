"""skyplan.yaml: every field, every refusal."""

from __future__ import annotations

import pytest

from planner.model.diagnostic import Severity
from planner.model.offer import Cloud
from planner.model.project import (
    Backend,
    Budget,
    Federation,
    MarketSettings,
    MigrationSettings,
    OwnNetwork,
    PriceOverride,
    Project,
    Quota,
    Reservation,
    Suppression,
    Target,
    default_targets,
)
from planner.model.workload import Constraints
from tests.unit.spec.spec_words import project_of

PROVIDER = "//iam.googleapis.com/projects/12/locations/global/workloadIdentityPools/pool/providers/aws"
UUID = "00000000-0000-0000-0000-00000000000a"
FULL = (
    """\
project: acme-llm
targets:
  - name: prod
    cloud: aws
    account: 012345678901
    deployer_role: arn:aws:iam::012345678901:role/deploy
    orchestrator_role: arn:aws:iam::012345678901:role/launch
    permissions_boundary: arn:aws:iam::012345678901:policy/boundary
    regions: ["us-*"]
    opt_in_zones: [usw2-lax1-az1]
    kms_key: arn:aws:kms:us-east-1:012345678901:key/abc
    networks:
      - {region: us-east-1, vpc_id: vpc-1, subnets: {use1-az4: subnet-1}, security_groups: [sg-1]}
    quotas:
      - {instance_types: ["p5*"], regions: [us-east-1], capacity: spot, max_gpus: 64}
  - {name: prod, cloud: gcp, project: acme-ml-prod, network_quota: {"us-*": 5, us-central1: 0}}
  - {name: eu, cloud: azure, resource_group: rg-skyplan, tenant: UUID}
  - {name: eu, cloud: nebius, tenant: tenant-e00example}
data_prefixes: [s3://acme-corpus/]
clouds: [aws, gcp]
regions: ["us-*"]
instance_types: ["p*"]
max_usd_per_hour: 100
max_usd_total: 5000
deadline: 30d
stop_after: 31d
prices:
  - {clouds: [aws], instance_types: ["p5*"], discount: 0.12}
  - {instance_types: [p4de.24xlarge], capacity: on_demand, usd_per_hour: 20.5}
reserved:
  - {target: prod, region: us-east-1, zone: use1-az4, instance_type: p5.48xlarge, nodes: 2, id: cr-1, starts: 2026-09-01, expires: "2026-10-01T02:00:00+02:00", in_placement_group: true, kind: capacity_block}
iam:
  suppressions: [{rule: SKY-IAM-605, reason: reviewed in ML-12, expires: 2027-01-01}]
backend: {s3: {bucket: acme-tfstate, region: us-east-1, use_lockfile: true}}
providers: {aws: "5.100.0"}
policy: conftest test -
tags: {team: llm}
images: {"aws/*/p5*": ami-2, "aws/us-east-1/p5*": ami-1}
agent: {url: "https://skyplan.example.com/agent.pyz", sha256: %s}
pool_cap_nodes: 4
price_tolerance: 0.05
tunnels: false
migration: {threshold: 45m, horizon: 6h, cool_down: 2h, apply: reviewed}
market: {source: prices/market.json}
budgets:
  - {teams: [vision, "nlp-*"], max_usd_per_hour: 400, max_usd_total: 20000}
  - {max_usd_total: 50000}
federation:
  - {stores: ["s3://acme-*"], from: [gcp, azure], aws_role_arn: "arn:aws:iam::012345678901:role/data"}
  - {stores: "gs://acme-tokens", from: aws, gcp_provider: PROVIDER}
  - {stores: ["az://acct/*"], from: [gcp, aws], azure_tenant_id: UUID, azure_client_id: UUID}
""".replace("PROVIDER", PROVIDER).replace("UUID", UUID)
    % ("ab" * 32)
)


def test_every_field_is_read() -> None:
    project, diagnostics = project_of(FULL)
    assert diagnostics == ()
    role = "arn:aws:iam::012345678901:role/"
    assert project == Project(
        name="acme-llm",
        targets=(
            Target(
                name="prod",
                cloud=Cloud.AWS,
                account="012345678901",
                deployer_role=f"{role}deploy",
                orchestrator_role=f"{role}launch",
                permissions_boundary="arn:aws:iam::012345678901:policy/boundary",
                regions=("us-*",),
                opt_in_zones=("usw2-lax1-az1",),
                kms_key_arn="arn:aws:kms:us-east-1:012345678901:key/abc",
                networks=(
                    OwnNetwork(
                        region="us-east-1",
                        vpc_id="vpc-1",
                        subnets=(("use1-az4", "subnet-1"),),
                        security_group_ids=("sg-1",),
                    ),
                ),
                quotas=(Quota(instance_types=("p5*",), regions=("us-east-1",), capacity="spot", max_gpus=64),),
            ),
            Target(
                name="prod", cloud=Cloud.GCP, account="acme-ml-prod", network_quota=(("us-central1", 0), ("us-*", 5))
            ),
            Target(name="eu", cloud=Cloud.AZURE, resource_group="rg-skyplan", tenant=UUID),
            Target(name="eu", cloud=Cloud.NEBIUS, tenant="tenant-e00example"),
        ),
        default_targets=False,
        limits=Constraints(
            deadline_hours=720.0,
            max_usd_per_hour=100.0,
            max_usd_total=5000.0,
            clouds=("aws", "gcp"),
            regions=("us-*",),
            instance_types=("p*",),
            stop_after_hours=744.0,
        ),
        data_prefixes=("s3://acme-corpus/",),
        prices=(
            PriceOverride(clouds=("aws",), instance_types=("p5*",), discount=0.12),
            PriceOverride(instance_types=("p4de.24xlarge",), capacity="on_demand", usd_per_hour=20.5),
        ),
        reserved=(
            Reservation(
                target="prod",
                region="us-east-1",
                zone="use1-az4",
                instance_type="p5.48xlarge",
                nodes=2,
                id="cr-1",
                starts="2026-09-01",
                expires="2026-10-01",
                in_group=True,
                capacity_block=True,
            ),
        ),
        pool_cap_nodes=4,
        backend=Backend(
            kind="s3", settings=(("bucket", "acme-tfstate"), ("region", "us-east-1"), ("use_lockfile", "true"))
        ),
        provider_versions=(("aws", "5.100.0"),),
        policy="conftest test -",
        suppressions=(Suppression(rule="SKY-IAM-605", reason="reviewed in ML-12", expires="2027-01-01"),),
        tags=(("team", "llm"),),
        images=(("aws/us-east-1/p5*", "ami-1"), ("aws/*/p5*", "ami-2")),
        agent_url="https://skyplan.example.com/agent.pyz",
        agent_sha256="ab" * 32,
        price_tolerance=0.05,
        tunnels=False,
        market=MarketSettings(source="prices/market.json"),
        budgets=(
            Budget(teams=("nlp-*", "vision"), usd_per_hour=400.0, usd_total=20000.0),
            Budget(teams=("*",), usd_total=50000.0),
        ),
        migration=MigrationSettings(threshold_hours=0.75, horizon_hours=6.0, cool_down_hours=2.0, apply="reviewed"),
        federation=(
            Federation(
                stores=("s3://acme-*",),
                from_clouds=(Cloud.GCP, Cloud.AZURE),
                settings=(("aws_role_arn", "arn:aws:iam::012345678901:role/data"),),
            ),
            Federation(stores=("gs://acme-tokens",), from_clouds=(Cloud.AWS,), settings=(("gcp_provider", PROVIDER),)),
            Federation(
                stores=("az://acct/*",),
                from_clouds=(Cloud.AWS, Cloud.GCP),
                settings=(("azure_client_id", UUID), ("azure_tenant_id", UUID)),
            ),
        ),
    )


def test_without_targets_one_per_cloud_stands() -> None:
    project, diagnostics = project_of("project: acme\n")
    assert diagnostics == ()
    assert (project.targets, project.default_targets) == (default_targets(), True)


def test_an_empty_file_warns_and_every_default_holds() -> None:
    project, (only,) = project_of("# nothing yet\n")
    assert (only.severity, project) == (Severity.WARNING, Project(targets=default_targets()))


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("targets: []", "SKY-SPEC-105", 2),
        ("targets: [{name: prod}]", "SKY-SPEC-103", 2),
        ("targets: [{cloud: aws}]", "SKY-SPEC-103", 2),
        ("targets: [{name: prod, cloud: amazon}]", "SKY-SPEC-105", 2),
        ("targets: [{name: Prod, cloud: aws}]", "SKY-SPEC-105", 2),
        ("targets:\n  - {name: a, cloud: aws}\n  - {name: a, cloud: aws}", "SKY-SPEC-112", 4),
        ("targets: [{name: a, cloud: aws, account: 12345}]", "SKY-SPEC-105", 2),
        ("targets: [{name: a, cloud: aws, project: acme-ml}]", "SKY-SPEC-102", 2),
        ("targets: [{name: a, cloud: gcp, account: acme-ml}]", "SKY-SPEC-102", 2),
        ("targets: [{name: a, cloud: nebius, kms_key: x}]", "SKY-SPEC-102", 2),
        ("targets: [{name: a, cloud: azure, subscription: acme}]", "SKY-SPEC-105", 2),
        ("targets: [{name: a, cloud: aws, deployer_role: deploy}]", "SKY-SPEC-105", 2),
        ("targets:\n  - name: a\n    cloud: aws\n    regions: [us-central1]", "SKY-SPEC-105", 5),
        ("targets: [{name: a, cloud: aws, quotas: [{instance_types: p5*}]}]", "SKY-SPEC-103", 2),
        ("targets: [{name: a, cloud: aws, quotas: [{max_nodes: 1}]}]", "SKY-SPEC-103", 2),
        ("targets: [{name: a, cloud: aws, quotas: [{instance_types: p5*, max_nodes: -1}]}]", "SKY-SPEC-105", 2),
        (
            "targets: [{name: a, cloud: aws, networks: [{region: us-east-9, vpc_id: v, subnets: {a: b}}]}]",
            "SKY-SPEC-105",
            2,
        ),
        ("targets: [{name: a, cloud: aws, networks: [{region: us-east-1, vpc_id: v}]}]", "SKY-SPEC-103", 2),
        ("data_prefixes: [acme-corpus]", "SKY-SPEC-108", 2),
        ("clouds: [aws, gpc]", "SKY-SPEC-105", 2),
        ("max_usd_total: free", "SKY-SPEC-105", 2),
        ("prices: [{instance_types: p5*}]", "SKY-SPEC-103", 2),
        ("prices: [{discount: 12}]", "SKY-SPEC-105", 2),
        ("prices: [{discount: 12%}]", "SKY-SPEC-105", 2),
        ("prices: [{usd_per_hour: 0}]", "SKY-SPEC-105", 2),
        ("prices: [{usd_per_hour: 1, discount: 0.1}]", "SKY-SPEC-113", 2),
        ("prices: [{discount: 0.1, capacity: reserved}]", "SKY-SPEC-105", 2),
        ("iam: {suppressions: [{rule: everything, reason: x}]}", "SKY-SPEC-105", 2),
        ("iam: {suppressions: [{rule: SKY-IAM-605}]}", "SKY-SPEC-103", 2),
        ("iam: {supressions: []}", "SKY-SPEC-102", 2),
        ("backend: s4", "SKY-SPEC-105", 2),
        ("backend: s3", "SKY-SPEC-103", 2),
        ("backend: {s3: {bucket: b}}", "SKY-SPEC-103", 2),
        ("backend: {gsc: {bucket: b}}", "SKY-SPEC-105", 2),
        ("backend: {s3: {bucket: b, region: r, key: k}}", "SKY-SPEC-105", 2),
        ("backend: {local: {}, gcs: {bucket: b}}", "SKY-SPEC-104", 2),
        ("providers: {google: 6.0.0}", "SKY-SPEC-102", 2),
        ("providers: {aws: latest}", "SKY-SPEC-105", 2),
        ("images: {p5.48xlarge: ami-1}", "SKY-SPEC-105", 2),
        ("agent: {url: 'https://skyplan.example.com/a'}", "SKY-SPEC-103", 2),
        ("agent: {url: 'http://skyplan.example.com/a', sha256: 12}", "SKY-SPEC-105", 2),
        ("pool_cap_nodes: 0", "SKY-SPEC-105", 2),
        ("price_tolerance: 10%", "SKY-SPEC-105", 2),
        ("polcy: x", "SKY-SPEC-102", 2),
        ("stop_after: 48", "SKY-SPEC-105", 2),
        ("tunnels: 'no'", "SKY-SPEC-104", 2),
        ("migration: {threshold: 30}", "SKY-SPEC-105", 2),
        ("migration: {apply: always}", "SKY-SPEC-105", 2),
        ("migration: {cooldown: 1h}", "SKY-SPEC-102", 2),
        ("market: {source: prices}", "SKY-SPEC-105", 2),
        ("market: {source: /root/market.json}", "SKY-SPEC-105", 2),
        ("market: {file: market.json}", "SKY-SPEC-102", 2),
        ("targets: [{name: a, cloud: aws, resource_group: rg}]", "SKY-SPEC-102", 2),
        ("targets: [{name: a, cloud: gcp, tenant: t}]", "SKY-SPEC-102", 2),
        ("targets: [{name: a, cloud: azure, resource_group: 'rg.'}]", "SKY-SPEC-105", 2),
        ("targets: [{name: a, cloud: azure, tenant: tenant-e00example}]", "SKY-SPEC-105", 2),
        ("targets: [{name: a, cloud: nebius, tenant: e00}]", "SKY-SPEC-105", 2),
        ("targets:\n  - name: a\n    cloud: aws\n    network_quota:\n      us-*: -1", "SKY-SPEC-105", 6),
        ("targets:\n  - name: a\n    cloud: aws\n    network_quota:\n      us east: 1", "SKY-SPEC-105", 6),
        ("targets:\n  - name: a\n    cloud: aws\n    network_quota:\n      us-east-9: 1", "SKY-SPEC-105", 6),
        ("targets: [{name: a, cloud: aws, network_quota: [5]}]", "SKY-SPEC-104", 2),
        ("--- \nproject: second", "SKY-SPEC-110", 3),
    ],
)
def test_what_is_wrong_is_named_at_its_line(text: str, code: str, line: int) -> None:
    _, diagnostics = project_of(f"project: acme\n{text}\n")
    assert (code, line) in [(d.code, d.location.line if d.location else 0) for d in diagnostics]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("target: prod", "target: prd"), "SKY-SPEC-105"),
        (("2026-09-01", "soon"), "SKY-SPEC-105"),
        (("2026-09-01", "2026-09-01T10:00"), "SKY-SPEC-105"),
        (("2026-09-01", "2026-12-01"), "SKY-SPEC-113"),
        (("2026-09-01", "0001-01-01T00:00:00+12:00"), "SKY-SPEC-105"),
        (("instance_type: p5.48xlarge", "instance_type: p5.48xlarg"), "SKY-SPEC-105"),
        (("nodes: 2", "nodes: 0"), "SKY-SPEC-105"),
        (("zone: use1-az4, ", ""), "SKY-SPEC-103"),
    ],
)
def test_a_wrong_reservation_is_named_at_its_line(change: tuple[str, str], code: str) -> None:
    project, diagnostics = project_of(FULL.replace(*change))
    assert [(d.code, d.location and d.location.line) for d in diagnostics] == [(code, 31)]
    assert project.reserved == ()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("kind: capacity_block", "kind: block"), "SKY-SPEC-105"),
        (("in_placement_group: true, kind: capacity_block", "in_placement_group: 1"), "SKY-SPEC-104"),
        (("target: prod, region: us-east-1, zone: use1-az4,", "target: eu, region: eu-north1,"), "SKY-SPEC-113"),
        (("target: prod, region: us-east-1", "target: prod, region: us-central1"), "SKY-SPEC-113"),
    ],
)
def test_how_a_reservation_was_made_is_checked_against_where_it_is(change: tuple[str, str], code: str) -> None:
    project, diagnostics = project_of(FULL.replace(*change))
    assert [(d.code, d.location and d.location.line) for d in diagnostics] == [(code, 31)]
    assert [r.capacity_block for r in project.reserved] == [False]


def test_the_most_specific_network_quota_comes_first() -> None:
    text = 'project: a1\ntargets: [{name: a, cloud: aws, network_quota: {"*": 9, "us-*": 5, eu-west-1: 0, "us-east-?": 2}}]\n'
    project, diagnostics = project_of(text)
    assert diagnostics == ()
    assert project.targets[0].network_quota == (("eu-west-1", 0), ("us-east-?", 2), ("us-*", 5), ("*", 9))


def test_a_limit_that_matches_nothing_known_only_warns() -> None:
    project, (only,) = project_of("project: acme\nregions: [us-esat-1]\n")
    assert (only.severity, project.limits.regions) == (Severity.WARNING, ("us-esat-1",))
    assert "us-east-1" in only.hint


def test_a_quota_of_none_means_none() -> None:
    project, _ = project_of(
        "project: a1\ntargets: [{name: a, cloud: aws, quotas: [{instance_types: p5*, max_nodes: 0}]}]\n"
    )
    assert project.targets[0].quotas[0].max_nodes == 0


def test_a_plain_word_is_a_backend_that_needs_no_settings() -> None:
    assert project_of("project: acme\nbackend: local\n") == (Project(name="acme", targets=default_targets()), ())
    assert project_of("project: acme\nbackend: {local: {}}\n")[1] == ()
