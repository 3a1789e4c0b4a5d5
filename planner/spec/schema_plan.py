"""The schemas of a plan file and of `skyplan plan --json`, which holds several.

Decides their words for the reader.  A plan's digest is what `apply` trusts; that a file has this form says nothing of whether it was edited.
"""

from __future__ import annotations

from planner.model.grants import Bound, Identity, Permission
from planner.model.offer import CapacityType, Cloud
from planner.model.reach import Reach
from planner.spec.schema_fleet import fleet_schema
from planner.spec.schema_output import (
    caveats,
    count,
    decimal,
    digest,
    flag,
    items,
    mapping,
    one_of,
    or_null,
    ref,
    version,
    word,
    words,
    written,
)
from planner.spec.schema_words import DIALECT, Schema
from planner.spec.schema_workload import workload_schema


def plan_schema() -> Schema:
    """`NAME.plan.json`."""
    body = written(
        "One job's placement plan: a pure function of its inputs, which it names by digest. `skyplan apply` refuses one that was edited.",
        ("access",),
        format_version=version(),
        job=ref("job", "The job, normalised: sizes in bytes, durations in hours."),
        inputs=_inputs(),
        choice=or_null(
            written(
                "The best placement once more, in short; null where nothing is feasible.",
                offer_id=word("As in `ranked`."),
                placement_id=word("As in `ranked`."),
                total_usd=decimal("Expected cost to finish."),
                finish_hours=decimal("Expected hours from launch to result."),
            )
        ),
        ranked=items(
            "Placements, best first; `apply` uses no other. Empty where nothing is feasible.",
            ref("placement", "A placement."),
        ),
        rejected=items(
            "How many offers fell for which reason.",
            written(
                "A reason.",
                code=word("`skyplan explain CODE` says more.", "^SKY-REJ-[0-9]{3}$"),
                count=count("Offers that fell for it first.", 1),
                examples=words("Up to three of them, with numbers."),
            ),
        ),
        notes=words("Why the choice won, in sentences."),
        grants=mapping(
            "Rights of the nodes, by the digest that a placement's `grants_digest` names.",
            items("Rights of one set.", ref("grant", "A right.")),
        ),
        access=mapping("How nodes reach each store, by CLOUD:TARGET.", items("A path per store.", _path())),
        stacks=items(
            "Terraform stacks that the choice needs.",
            written(
                "A stack.",
                kind=one_of("What it holds.", "network", "access", "compute", "addresses"),
                name=word("Its name; `N` stands for the generation that is issued at launch."),
                digest=digest("Of what it is made of, the generation left open."),
            ),
        ),
        status=written(
            "What may be done with the plan.",
            complete=flag("Every part of the job is placed."),
            applyable=flag("`apply` takes the choice."),
            errored=flag("Something went wrong while planning."),
        ),
        digest=digest("Of all the rest, as canonical JSON: sorted keys, no spaces, UTF-8."),
    )
    return {"$schema": DIALECT, "title": "skyplan plan file", "$defs": definitions()} | body


def plans_schema() -> Schema:
    """`skyplan plan --json`."""
    one = plan_schema()
    plan = {key: value for key, value in one.items() if key not in {"$schema", "$defs"}}
    body = written(
        "What `skyplan plan --json` prints: a plan per job, as its file would have it.",
        format_version=version(),
        fleet=fleet_schema(),
        plans=items("In the order in which jobs were placed: by priority, then by name.", ref("plan", "A plan.")),
    )
    return {"$schema": DIALECT, "title": "skyplan plan --json", "$defs": one["$defs"] | {"plan": plan}} | body


def definitions() -> dict[str, Schema]:
    """What plans and migration diffs share: job, placement, grant."""
    whole = _placement()
    own = {
        "placement_id": word("Empty: the whole placement's counts."),
        "grants_digest": word("Empty: the whole placement's counts."),
    }
    part = whole | {"properties": whole["properties"] | own}
    return {"job": workload_schema(), "placement": whole, "part": part, "grant": grant_schema()}


def _inputs() -> Schema:
    return written(
        "What the plan is a function of.",
        ("market",),
        method=count("Version of the scoring.", 1),
        as_of=word("The moment it was planned at, UTC.", "Z$"),
        catalog=written("The prices.", digest=digest("Of them."), as_of=word("The date of the newest.")),
        market={
            "type": "object",
            "description": "Recorded prices and quotas that went over the catalog's: where from, and as of when.",
        },
        job=written("The job file.", file=word("Its path."), digest=digest("Of the normalised job.")),
        project=written(
            "The project file.",
            file=or_null(word("Its path; null where there is none.")),
            digest=digest("Of the normalised settings."),
        ),
        ledger=digest("Of the capacity that others held."),
        availability=digest("Of the remembered capacity failures."),
    )


def _placement() -> Schema:
    return written(
        "A job bound to an offer.",
        ("parts", "first_rank", "tunnel_addresses"),
        rank=count("Its place in `ranked`, from 0."),
        offer_id=word("CLOUD:TARGET/REGION/ZONE/TYPE/CAPACITY; of a split job its parts joined by ` + `."),
        pool=word("The capacity it draws on, as failures and holdings are kept by."),
        target=word("Account, project or tenant, as skyplan.yaml names it; empty without one."),
        cloud=one_of("The cloud.", *Cloud),
        region=word("The region."),
        zone=word("The zone; empty where the cloud chooses."),
        instance_type=word("The instance type."),
        capacity=one_of("How it is bought.", *CapacityType),
        nodes=count("Nodes.", 1),
        gpu=word("The GPU model."),
        gpu_count=count("GPUs per node.", 1),
        gpu_memory_gib=word("Memory per GPU in GiB, a decimal as text.", r"^[0-9]+(\.[0-9]+)?$"),
        topology=word("Links between GPUs and between nodes."),
        node_usd_per_hour=decimal("Price of one node when the plan was made, USD per hour."),
        usd_per_hour=decimal("Of all nodes, USD per hour."),
        total_usd=decimal("Expected cost to finish, USD: the sum of `terms_usd`."),
        lower_bound=flag("A term is unknown: the total is at least this."),
        compute_hours=decimal("Expected hours of work on this hardware, without interruptions."),
        finish_hours=decimal("Expected hours from launch to result."),
        terms_usd=mapping(
            "The total's parts in USD; null is unknown.", or_null(decimal("USD, or null where it is not known."))
        ),
        terms_detail=mapping("The numbers behind each part.", {"type": "string"}),
        caveats=caveats("What to know about it."),
        differs=words("How the hardware differs from what the job names."),
        addresses=words("Private address by rank; empty where the cloud assigns them."),
        placement_id=word("What its stacks are made of, in short.", "^p[0-9a-f]{10}$"),
        grants_digest=digest("Which of the plan's `grants` its nodes hold."),
        price_as_of=word("The price's date."),
        price_source=word("Where the price comes from."),
        reservation=word("The reservation it uses; empty without one."),
        parts=items(
            "Of a job split over clouds: a placement per cloud, the head's first.",
            ref("part", "A part."),
            minItems=2,
        ),
        first_rank=count("Of a part: the rank of its first node.", 1),
        tunnel_addresses=words("Of a split job: every rank's address inside the tunnel."),
    )


def grant_schema() -> Schema:
    """A right of an identity."""
    return written(
        "A right, in no cloud's own words.",
        ("conditions",),
        identity=one_of("Who may.", *Identity),
        permission=one_of("May do what.", *Permission),
        resource=word("On what: a URI, or a word such as `instances`."),
        reason=word("Why."),
        conditions={
            "type": "object",
            "description": "By what it is kept small: any of the values of each bound.",
            "propertyNames": {"enum": list(Bound)},
            "additionalProperties": {"type": "array", "items": {"type": "string"}},
        },
    )


def _path() -> Schema:
    return written(
        "How the nodes reach one store.",
        uri=word("The prefix.", "://"),
        write=flag("Checkpoints and results go there."),
        reach=one_of("By which credentials.", *Reach),
        detail=word("In a sentence: which identity, which role, what is still missing."),
        settings=mapping("What the node needs for it, no secret.", {"type": "string"}),
    )
