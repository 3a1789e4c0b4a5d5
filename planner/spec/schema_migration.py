"""The schema of a migration diff, the file that `skyplan replan --out` writes and `skyplan migrate` carries out."""

from __future__ import annotations

from planner.model.migration import REASON_CODES, MigrationReason
from planner.spec.schema_output import (
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
from planner.spec.schema_plan import definitions
from planner.spec.schema_words import DIALECT, Schema

_MOST_PLACES = 10


def migration_schema() -> Schema:
    """`NAME.diff.json`."""
    known = definitions()
    kept = {name: known[name] for name in ("placement", "part", "grant")}
    usd = or_null(decimal("USD; null where it is not known."))
    body = written(
        "One job's move. An edited diff is refused (SKY-MOVE-423). USD are text with four places.",
        format_version=version(),
        job=word("The job."),
        project=word("The project."),
        reason=one_of("Why it moves.", *(r.value for r in MigrationReason)),
        code=one_of("The same as a code.", *sorted(REASON_CODES.values())),
        text=word("Why, in a sentence with numbers."),
        standing=_standing(),
        to=items(
            "Placements of the plan that may be tried, first choice first.",
            ref("placement", "A placement."),
            minItems=1,
            maxItems=_MOST_PLACES,
        ),
        terms=items(
            "What decided, in order: the saving, each cost of the move negative, and the net.",
            written("A term.", name=word("Its name."), usd=usd, detail=word("The numbers behind it.")),
        ),
        numbers=mapping("Plain figures that the terms were made of, unit in the name.", usd),
        runner_up=word("The best place beside the first of `to`; empty where there is none."),
        stop_minutes=decimal("Expected minutes without progress."),
        steps=items("What is done.", _step()),
        plan_digest=digest("The plan whose placements `to` are."),
        reviewed=flag("Every place of `to` is in the plan that was reviewed."),
        prepared=flag("Their network and access stacks stand."),
        resources_added=words("Terraform resources that come, STACK: ADDRESS."),
        resources_removed=words("Terraform resources that go, STACK: ADDRESS."),
        grants_added=items("Rights the nodes get.", ref("grant", "A right.")),
        grants_removed=items("Rights the nodes lose.", ref("grant", "A right.")),
        inputs={"type": "object", "description": "Digests and moments of what the decision was made on."},
        digest=digest("Of all the rest, as canonical JSON."),
    )
    return {"$schema": DIALECT, "title": "skyplan migration diff", "$defs": kept} | body


def _step() -> Schema:
    return written(
        "A step.",
        key=word("Its name."),
        title=word("What is done."),
        after=words("Steps that must be done first."),
        minutes=or_null(decimal("Expected minutes; null where they are not known.")),
        stops=flag("The job makes no progress meanwhile."),
    )


def _standing() -> Schema:
    return written(
        "What runs, or ran last.",
        generation=count("Its generation.", 1),
        offer_id=word("What was bought."),
        pool=word("The capacity it draws on."),
        placement_id=word("What its stacks are made of."),
        region=word("The region."),
        topology=word("Its links."),
        status=word("The run's status."),
        checkpoint_uri=word("Its newest checkpoint; empty where there is none."),
        usd_per_hour=or_null(decimal("All nodes at the present price; null where it is not known.")),
        remaining_usd=or_null(decimal("Expected cost to finish where it is.")),
        remaining_hours=or_null(decimal("Expected hours to finish where it is.")),
        step=or_null(count("Of its newest progress; null where it told none.")),
        checkpoint_step=or_null(count("Of its newest checkpoint; null where there is none.")),
    )
