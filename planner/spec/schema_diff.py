"""The schema of what `skyplan diff --json` prints."""

from __future__ import annotations

from planner.model.change import GLYPHS, Action, Bound
from planner.model.finding import Level
from planner.spec.schema_output import (
    count,
    decimal,
    diagnostics,
    flag,
    items,
    one_of,
    or_null,
    ref,
    version,
    word,
    words,
    written,
)
from planner.spec.schema_plan import grant_schema
from planner.spec.schema_words import DIALECT, Schema


def diff_schema() -> Schema:
    """Two sets of plans, held against each other."""
    body = written(
        "What a change does to placements, money and rights: one change per job. A difference with an unknown in it has no number.",
        format_version=version(),
        base=word("The older side, as it was named."),
        head=word("The newer side, as it was named."),
        project=word("The project."),
        valid_at=word("The newest moment among the inputs, never the clock."),
        changed=flag("There is something to review."),
        counts=written("Changes by kind.", **{a.value: count(f"Jobs to {a.value}.") for a in Action}),
        widenings=items("What the head grants and the base does not.", _widening()),
        terraform=items("What given Terraform plans would do.", _terraform()),
        changes=items("Every job of either side, by name.", ref("change", "What becomes of a job.")),
        hourly_usd=ref("sides", "Of all jobs, USD per hour."),
        total_usd=ref("sides", "Of all jobs, expected USD to finish."),
        egress_usd=ref("sides", "Of all jobs, egress in USD."),
        price_snapshots=words("Moments of the prices; more than one mixes price changes in."),
        inputs={"type": "object", "description": "Digests and moments of what was compared."},
        warnings=diagnostics("What to know about the comparison."),
    )
    return {"$schema": DIALECT, "title": "skyplan diff --json", "$defs": _definitions()} | body


def _definitions() -> dict[str, Schema]:
    usd = or_null(decimal("USD; null where it is not known."))
    return {
        "difference": written(
            "What comes on top.", usd=usd, bound=one_of("How exact the number is.", *(b.value for b in Bound))
        ),
        "amount": written("An amount.", usd=usd, at_least=flag("It is a lower bound.")),
        "sides": written(
            "Before and after.",
            before=ref("amount", "Of the base."),
            after=ref("amount", "Of the head."),
            difference=ref("difference", "After less before."),
        ),
        "grant": _grant(),
        "placement": _placement(),
        "change": _change(),
    }


def _grant() -> Schema:
    made = grant_schema()
    return made | {"required": sorted(made["properties"])}


def _placement() -> Schema:
    return written(
        "A placement, in short.",
        offer_id=word("CLOUD:TARGET/REGION/ZONE/TYPE/CAPACITY."),
        placement_id=word("What its stacks are made of."),
        cloud=word("The cloud."),
        target=word("Account, project or tenant; empty without one."),
        region=word("The region."),
        zone=word("The zone; empty where the cloud chooses."),
        instance_type=word("The instance type."),
        capacity=word("How it is bought."),
        gpu=word("The GPU model."),
        nodes=count("Nodes."),
        gpu_count=count("GPUs per node."),
        usd_per_hour=decimal("Of all nodes, USD per hour."),
        total_usd=decimal("Expected cost to finish, USD."),
        lower_bound=flag("The total is at least this."),
        finish_hours=decimal("Expected hours from launch to result."),
        parts=words("Offers of a split job's parts."),
    )


def _change() -> Schema:
    usd = or_null(decimal("USD; null where it is not known."))
    placement = "A placement; null where there is none."
    return written(
        "What becomes of one job.",
        job=word("The job."),
        action=one_of("What.", *(a.value for a in Action)),
        glyph=one_of("The same as a sign.", *GLYPHS.values()),
        before=or_null(ref("placement", placement)),
        after=or_null(ref("placement", placement)),
        reason=word("Why, with numbers."),
        runner_up=or_null(ref("placement", "The second best of the new plan; null where there is none.")),
        terms_usd=items(
            "The totals' terms.",
            written(
                "A term.",
                name=word("Its name."),
                before=usd,
                after=usd,
                difference=ref("difference", "What comes on top."),
                detail=word("The numbers behind it."),
            ),
        ),
        hourly_usd=ref("sides", "USD per hour."),
        total_usd=ref("sides", "Expected USD to finish."),
        egress_usd=ref("sides", "Egress in USD."),
        altered=items(
            "Properties that are others now.",
            written("One.", name=word("Which."), before=word("Empty: was not."), after=word("Empty: is not any more.")),
        ),
        caveats_added=words("Caveats that are new."),
        grants_added=items("Rights the nodes get.", ref("grant", "A right.")),
        grants_removed=items("Rights the nodes lose.", ref("grant", "A right.")),
        inputs_changed=words("Which inputs are others."),
        causes=items(
            "Shares of the change.",
            written(
                "A cause.",
                what=word("market, skyplan, project, job or others."),
                moved=flag("It moves the job by itself."),
                total_usd=ref("difference", "Its share of the total."),
                text=word("In a sentence."),
            ),
        ),
        other_figures=flag("The placement is kept; its price, finish, runner-up or caveats are others."),
        replanned=words("Sides whose plan is no file but was made for this diff."),
        migration=or_null(_move()),
        file=word("The plan's file."),
    )


def _move() -> Schema:
    minutes = or_null(decimal("Minutes; null where they are not known."))
    return written(
        "A migration diff of the job, in short.",
        reason=word("Why it moves."),
        code=word("The same as a code.", "^SKY-MOVE-[0-9]{3}$"),
        text=word("In a sentence."),
        to=words("Offers to try, first choice first."),
        stop_minutes=decimal("Expected minutes without progress."),
        steps=items(
            "In order.",
            written(
                "A step.",
                key=word("Its name."),
                title=word("What is done."),
                minutes=minutes,
                stops=flag("The job makes no progress meanwhile."),
            ),
        ),
        reviewed=flag("The reviewed plan lists every place."),
        prepared=flag("Their network and access stacks stand."),
    )


def _widening() -> Schema:
    return written(
        "A right that is new.",
        rule=word("The rule."),
        level=one_of("How bad.", *(level.value for level in Level)),
        cloud=word("The cloud."),
        identity=word("Whose right."),
        origin=word("Where it was read."),
        grant=word("The statement or role it stands in."),
        action=word("What may be done."),
        resource=word("On what."),
        message=word("In a sentence."),
        fix=word("What to do."),
        accepted=word("Why it is accepted; empty where it is not."),
    )


def _terraform() -> Schema:
    return written(
        "A Terraform plan.",
        file=word("Its file."),
        errored=flag("It ended with an error."),
        resources=items(
            "Resources that change, without their values.",
            written(
                "A resource.",
                address=word("Its address."),
                action=word("create, update, replace, delete, forget, move, import."),
                because=word("Terraform's own reason; empty where it gives none."),
                previous_address=word("Where it is moved from."),
                paths=words("Attributes that change."),
            ),
        ),
        outputs=items("Outputs that change.", written("One.", name=word("Which."), action=word("How."))),
        drifted=words("Addresses that changed outside of Terraform."),
    )
