"""The fields of skyplan.yaml as JSON Schema.  Decides their form and their words for the reader; see `schema` for what is published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from planner.spec.federation import FROM, REQUIRED, SETTINGS
from planner.spec.fleet import TEAMS
from planner.spec.foundation import CI_PROVIDERS, IDENTITIES
from planner.spec.migration import APPLY
from planner.spec.prices import KINDS
from planner.spec.schema_words import (
    CLOUD,
    DURATION,
    MONEY,
    PATTERN,
    STRINGS,
    URI,
    Schema,
    limits,
    listed,
    record,
    text,
    whole,
    word,
)
from planner.spec.targets import MAX_NETWORKS

if TYPE_CHECKING:
    from planner.model.workload import Store

_CAPACITY: Final[Schema] = {"enum": ["on_demand", "spot"], "description": "How capacity is bought; absent means both."}
_TYPES: Final = listed(PATTERN, "Instance types, as globs.")
_REGIONS: Final = listed(PATTERN, "Regions, as globs; absent means all.")
_MOMENT: Final = text("A date (UTC) or a time with its zone.", "2026-09-01", "2026-09-01T08:00:00Z")


def project_properties() -> dict[str, Schema]:
    """Field -> schema."""
    return {
        "project": text("The project's name.", "acme-llm", pattern="^[a-z][a-z0-9-]{0,38}[a-z0-9]$"),
        "targets": listed(_target(), "Where skyplan may act; absent means one target `default` per cloud."),
        **limits(),
        "data_prefixes": listed(URI, "Where jobs' data, checkpoints and results may lie; absent means anywhere."),
        "prices": listed(_price(), "Negotiated rates and discounts; the last that matches wins."),
        "reserved": listed(_reservation(), "Capacity already paid for: its marginal price is 0 while it is open."),
        "pool_cap_nodes": whole("At most so many nodes from one pool where nothing is known of it.", 1, 1_000_000),
        "budgets": listed(
            _budget(), "What all jobs together may cost, running and planned; a job counts to every one it matches."
        ),
        "backend": _backend(),
        "providers": STRINGS
        | {
            "description": "Terraform provider versions by cloud, where another than the tested range is wanted.",
            "examples": [{"aws": "5.100.0"}],
            "propertyNames": CLOUD,
        },
        "policy": text("A command that judges the plan's JSON on its standard input.", "conftest test -"),
        "iam": record(
            "Judgement of permissions.", (), suppressions=listed(_suppression(), "Findings that are accepted.")
        ),
        "tags": STRINGS | {"description": "Tags on every resource.", "examples": [{"team": "llm"}]},
        "images": STRINGS
        | {
            "description": "Machine images by CLOUD/REGION/INSTANCE_TYPE; the most specific pattern wins.",
            "examples": [{"aws/us-east-1/p5*": "ami-0123456789abcdef0"}],
            "propertyNames": {"pattern": "^[^/]+/[^/]+/[^/]+$"},
        },
        "agent": record(
            "The program on the nodes; without it they run the job bare.",
            ("url", "sha256"),
            url=text("Where nodes fetch it.", "https://skyplan.example.com/agent.pyz"),
            sha256=text("Its SHA-256.", pattern="^[0-9a-fA-F]{64}$"),
        ),
        "control_plane": record(
            "Where nodes report while a job runs (`skyplan serve`), and who mints their data credentials (`skyplan broker`); needs `agent`.",
            ("url",),
            url=text("As nodes reach it.", "https://skyplan.example.com", pattern="^https://"),
            ca_file=text(
                "On the nodes: certificates of your own authority, if its are not the system's.",
                "/etc/ssl/acme.pem",
                pattern="^/",
            ),
            broker=text("The broker, as nodes reach it.", "https://broker.example.com", pattern="^https://"),
            azure_audience=text(
                "With a target on Azure: the application that nodes there ask tokens for, as in `identity.azure` of server.yaml.",
                "api://skyplan",
            ),
            azure_broker_audience=text(
                "With a target on Azure and a broker: another application, as in `identity.azure` of broker.yaml.",
                "api://skyplan-broker",
            ),
        ),
        "rendezvous": record(
            "Where the nodes of a job in several clouds meet: see `skyplan rendezvous`.",
            ("url",),
            url=text("As nodes reach it.", "https://meet.example.com"),
            secrets=STRINGS
            | {
                "description": "By cloud, a reference to the join secret, which its nodes read with their own identity.",
                "examples": [{"aws": "aws-secretsmanager://acme/join", "gcp": "gcp-secretmanager://acme-ml/join"}],
                "propertyNames": CLOUD,
            },
        ),
        "foundation": record(
            "Of the identities that `skyplan foundation` writes for each account.",
            (),
            ci=_ci(),
        ),
        "market": record(
            "Where prices come from.",
            (),
            source=text(
                "`record`, if absent: its history of prices over the catalog's, where there is one; `catalog`; or a snapshot by `skyplan prices snapshot`, relative to this file.",
                "record",
                "market.json",
            ),
        ),
        "migration": record(
            "When jobs move, and what `skyplan watch --apply` may move by itself.",
            (),
            threshold=DURATION
            | {"description": "A move for money must gain this much compute, net of its whole cost; 30m if absent."},
            horizon=DURATION | {"description": "Over which a gain is counted at most; 8h if absent."},
            cool_down=DURATION | {"description": "No second move for money sooner; 1h if absent."},
            apply={
                "enum": list(APPLY),
                "description": "`reviewed`: to prepared places of the reviewed plan; `never`, if absent: it only proposes.",
            },
        ),
        "price_tolerance": {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": "How far a price may move between plan and apply; 0.10 where nothing is said.",
        },
        "tunnels": {
            "type": "boolean",
            "description": "Jobs may ask for nodes in several clouds, joined by a tunnel; true where nothing is said.",
        },
        "federation": listed(
            {"anyOf": [_federation(store) for store in FROM]},
            "Stores that nodes in other clouds reach with their own identity tokens; the first that matches wins.",
        ),
    }


def _target() -> Schema:
    return record(
        "An account (AWS), project (GCP, Nebius) or subscription (Azure) with the roles skyplan assumes there.",
        ("name", "cloud"),
        name=text("The target's name.", "prod"),
        cloud=CLOUD,
        account={"type": ["string", "integer"], "description": "AWS: 12 digits.", "examples": ["123456789012"]},
        project=text("GCP and Nebius: the project id.", "acme-ml-prod"),
        subscription=text("Azure: the subscription id."),
        deployer_role=text(
            "The role that the prepare step assumes.", "arn:aws:iam::123456789012:role/skyplan-deployer"
        ),
        orchestrator_role=text("The role that the launch step assumes."),
        broker_role=text(
            "Who mints data credentials here: a role's ARN on AWS, a service account's email on GCP, a principal's object id on Azure."
        ),
        permissions_boundary=text("AWS: the policy put as a boundary on every role skyplan makes."),
        kms_key=text(
            "The key that encrypts disks: an ARN on AWS, a Cloud KMS key on GCP, a disk encryption set on Azure."
        ),
        regions=_REGIONS,
        opt_in_zones=listed(text("A zone.", "usw2-lax1-az1"), "Zones that are not used unless named."),
        networks=listed(_network(), "The user's own networks, instead of new ones."),
        quotas=listed(_quota(), "What the cloud grants."),
        resource_group=text("Azure: the user's own resource group, instead of one that skyplan makes.", "rg-skyplan"),
        tenant=text("Azure and Nebius: the tenant's id.", "tenant-e00example"),
        network_quota={
            "type": "object",
            "description": "Region glob -> how many networks skyplan may keep there; the most specific pattern wins.",
            "propertyNames": PATTERN,
            "additionalProperties": whole("Networks.", 0, MAX_NETWORKS),
            "examples": [{"us-*": 5, "eu-west-1": 0}],
        },
        foundation=_foundation(),
    )


def _ci() -> Schema:
    return record(
        "Whose CI becomes planner and deployer by its own tokens, without a key: pull requests only plan, the protected branch deploys and launches.",
        ("provider",),
        provider={
            "enum": list(CI_PROVIDERS),
            "description": "Which CI; `other` says issuer, audience and both subjects.",
        },
        issuer=text("Who signs the tokens.", "https://gitlab.example.com", pattern="^https://"),
        repository=text("github, gitlab: the repository.", "acme/infra"),
        branch=text("github, gitlab: the protected branch.", "main"),
        audience=text(
            "The `aud` that the CI asks for; what is usual for the cloud where nothing is said.", "sts.amazonaws.com"
        ),
        pull_request_subject=text("other: the `sub` of a pull request's token."),
        branch_subject=text("other: the `sub` of the protected branch's token."),
    )


def _foundation() -> Schema:
    who = {
        identity: listed(text("A principal.", "arn:aws:iam::123456789012:role/ci"), f"Who may become the {identity}.")
        for identity in IDENTITIES
    }
    return record(
        "Who may become which of the account's control identities, beside the CI: see `skyplan foundation`.",
        (),
        trusted=record(
            "By identity, principals by the cloud's own names: role and user ARNs, members, object ids.",
            (),
            **who,
        ),
        ci_provider=text(
            "AWS: the account's OIDC provider for the CI's issuer, where one stands already.",
            "arn:aws:iam::123456789012:oidc-provider/token.actions.githubusercontent.com",
        ),
        tag_keys=listed(text("A tag key or a glob.", "team"), "AWS: tags that jobs may set beside the project's own."),
        state_account={
            "type": ["string", "integer"],
            "description": "AWS: the account of the bucket that keeps Terraform's state, where it is not the target's own: 12 digits.",
            "examples": ["210987654321"],
        },
    )


def _federation(store: Store) -> Schema:
    settings = {
        name: text(f"Write {example}.", pattern=f"^{form}$") for name, (form, example) in SETTINGS[store].items()
    }
    return record(
        f"Stores of {store.cloud}, with whom the token is exchanged for; no secrets.",
        ("stores", "from", *REQUIRED[store]),
        stores=listed(
            text("A location or a glob of them.", f"{store.value}://acme-*", pattern=f"^{store.value}://"),
            "Which stores.",
        ),
        **{"from": listed({"enum": [cloud.value for cloud in FROM[store]]}, "Where such nodes run.")},
        **settings,
    )


def _network() -> Schema:
    return record(
        "A network of the user's own in one region.",
        ("region", "vpc_id", "subnets"),
        region=text("Its region.", "us-east-1"),
        vpc_id=text("Its id.", "vpc-0abc"),
        subnets=STRINGS
        | {
            "description": "Zone -> subnet id; `-` for the zone on Azure and Nebius, whose subnets are regional.",
            "minProperties": 1,
            "examples": [{"use1-az4": "subnet-0abc"}],
        },
        cidrs=STRINGS
        | {
            "description": "Zone -> CIDR of its subnet; needed for jobs of several nodes.",
            "examples": [{"use1-az4": "10.20.0.0/20"}],
        },
        security_groups=listed(
            text("An id.", "sg-0abc"), "Security groups that the nodes get beside the job's own (AWS, Nebius)."
        ),
    )


def _quota() -> Schema:
    made = record(
        "At most this much in use at once of what the patterns match.",
        ("instance_types",),
        instance_types=_TYPES,
        regions=_REGIONS,
        capacity=_CAPACITY,
        max_nodes=whole("Nodes.", 0, 10**7),
        max_gpus=whole("GPUs.", 0, 10**7),
        max_vcpus=whole("vCPUs.", 0, 10**7),
    )
    return made | {"anyOf": [{"required": [key]} for key in ("max_nodes", "max_gpus", "max_vcpus")]}


def _budget() -> Schema:
    made = record(
        "A limit to what jobs of these teams cost together.",
        (),
        teams=listed(
            word("A team or a glob.", "vision", "nlp-*", pattern=f"^{TEAMS}$"), "Whose; absent means everybody's."
        ),
        max_usd_per_hour=MONEY | {"description": "All of them per hour, in US dollars."},
        max_usd_total=MONEY | {"description": "Expected total cost of all of them, in US dollars."},
    )
    return made | {"anyOf": [{"required": ["max_usd_per_hour"]}, {"required": ["max_usd_total"]}]}


def _price() -> Schema:
    made = record(
        "A negotiated rate or a discount for what the patterns match.",
        (),
        clouds=listed(CLOUD, "Clouds; absent means all."),
        instance_types=_TYPES,
        regions=_REGIONS,
        capacity=_CAPACITY,
        discount={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "description": "0.12 is 12 % off."},
        usd_per_hour=MONEY | {"description": "US dollars per node and hour."},
    )
    return made | {"oneOf": [{"required": ["discount"]}, {"required": ["usd_per_hour"]}]}


def _reservation() -> Schema:
    return record(
        "Capacity already paid for.",
        ("target", "region", "instance_type", "nodes", "id", "starts", "expires"),
        target=text("The target that holds it.", "prod"),
        region=text("Its region.", "us-east-1"),
        zone=text("Its zone; left out on Azure and Nebius, whose offers are regional.", "use1-az4"),
        instance_type=text("Its instance type.", "p5.48xlarge"),
        nodes=whole("How many nodes.", 1, 100_000),
        id=text("The cloud's id of it.", "cr-0abc"),
        in_placement_group={"type": "boolean", "description": "It was made inside a placement group."},
        kind={"enum": list(KINDS), "description": "AWS: a block of capacity bought for a time."},
        starts=_MOMENT,
        expires=_MOMENT,
    )


def _suppression() -> Schema:
    return record(
        "A finding that the platform team accepts.",
        ("rule", "reason", "expires"),
        rule=text("The rule's code.", "SKY-IAM-605", pattern="^SKY-IAM-([1-6][0-9]{2}|903)$"),
        reason=text("Why."),
        expires=_MOMENT,
        grant=text("Where it is accepted: a glob over the place a finding names; everywhere where nothing is said."),
    )


def _backend() -> Schema:
    kinds = {
        "local": (),
        "s3": ("bucket", "region"),
        "gcs": ("bucket",),
        "azurerm": ("storage_account_name", "container_name"),
    }
    settings = {kind: STRINGS | ({"required": list(needs)} if needs else {}) for kind, needs in kinds.items()}
    return {
        "description": "Where Terraform keeps its state; no credentials. local where nothing is said.",
        "anyOf": [
            {"enum": ["local"]},
            {
                "type": "object",
                "properties": settings,
                "additionalProperties": False,
                "minProperties": 1,
                "maxProperties": 1,
            },
        ],
        "examples": [{"s3": {"bucket": "acme-tfstate", "region": "us-east-1"}}],
    }
