"""The schemas of `skyplan offers --json` and `skyplan status --json`."""

from __future__ import annotations

from planner.model.offer import CapacityType, Cloud
from planner.model.record import NodeStatus, Outcome, RunStatus
from planner.spec.schema_output import (
    caveats,
    count,
    decimal,
    digest,
    flag,
    items,
    number,
    one_of,
    or_null,
    version,
    word,
    words,
    written,
)
from planner.spec.schema_words import DIALECT, Schema


def offers_schema() -> Schema:
    """The market for a request."""
    offer = written(
        "An offer.",
        offer_id=word("CLOUD:TARGET/REGION/ZONE/TYPE/CAPACITY."),
        cloud=one_of("The cloud.", *Cloud),
        region=word("The region."),
        zone=word("The zone; empty where the cloud chooses."),
        instance_type=word("The instance type."),
        capacity=one_of("How it is bought.", *CapacityType),
        gpu=word("The GPU model."),
        gpu_count=count("GPUs per node.", 1),
        nodes=count("Nodes.", 1),
        usd_per_hour=decimal("Of all nodes, USD per hour."),
        total_usd=decimal("Cost of the work asked about, USD."),
        lower_bound=flag("The total is at least this."),
        finish_hours=decimal("Hours the work takes."),
        differs=words("How the hardware differs from what was asked for."),
        caveats=caveats("What to know about it."),
        price_as_of=word("The price's date."),
        price_source=word("Where the price comes from."),
    )
    body = written(
        "What is for sale for a request, cheapest work first.",
        format_version=version(),
        as_of=word("The newest price's date."),
        feasible=count("Offers that are feasible; as many as --top are listed."),
        offers=items("Cheapest work first.", offer),
        rejected=items(
            "How many offers fell for which reason.",
            written(
                "A reason.",
                code=word("`skyplan explain CODE` says more.", "^SKY-REJ-[0-9]{3}$"),
                count=count("Offers.", 1),
            ),
        ),
    )
    return {"$schema": DIALECT, "title": "skyplan offers --json"} | body


def status_schema() -> Schema:
    """What runs."""
    job = written(
        "A job.",
        job=word("Its name."),
        first_applied_at=word("When; UTC."),
        unfinished=flag("An apply or destroy is at work, or died."),
        move=or_null(_move()),
        run=or_null(_run()),
        attempts=items("Launch attempts, oldest first.", _attempt()),
        told=_told(),
    )
    body = written(
        "What runs and how far it is, as the record has it; with --watch one such line each time.",
        format_version=version(),
        jobs=items("By name.", job),
    )
    return {"$schema": DIALECT, "title": "skyplan status --json"} | body


def _at_place(description: str, **more: Schema) -> Schema:
    return written(
        description,
        cloud=one_of("The cloud.", *Cloud),
        target=word("Account, project or tenant; empty without one."),
        region=word("The region."),
        zone=word("The zone."),
        instance_type=word("The instance type."),
        **more,
    )


def _run() -> Schema:
    node = _at_place(
        "A node.",
        rank=count("Its rank."),
        instance_id=word("As the cloud names it."),
        address=word("Its private address; empty where it is not known."),
        status=one_of("How it is.", *(s.value for s in NodeStatus)),
        at=word("Since when; UTC."),
    )
    return _at_place(
        "The run that matters.",
        id=word("NAME-gN."),
        generation=count("The launch attempt's number.", 1),
        plan_digest=digest("The plan it was launched from."),
        rank=count("Which of the plan's placements, from 0."),
        placement_id=word("What its stacks are made of."),
        offer_id=word("What was bought."),
        pool=word("The capacity it draws on."),
        capacity=one_of("How it is bought.", *CapacityType),
        started_at=word("UTC."),
        ended_at=or_null(word("UTC; null while it runs.")),
        status=one_of("How it is.", *(s.value for s in RunStatus)),
        usd_per_hour=decimal("Of all nodes, USD per hour."),
        nodes_wanted=count("Nodes it should have.", 1),
        nodes=items("Nodes it has.", node),
    )


def _attempt() -> Schema:
    return written(
        "A launch attempt.",
        stack=word("The compute stack."),
        generation=count("Its number.", 1),
        at=word("When; UTC."),
        outcome=or_null(one_of("How it ended; null while it is under way.", *(o.value for o in Outcome))),
        kind=word("What kind of failure; empty where there was none."),
        code=word("The same as a code, or as the cloud's own word."),
        scope=word("What the failure says something about."),
    )


def _move() -> Schema:
    return written(
        "A move that is under way.",
        id=count("Its number in the record."),
        reason=word("Why."),
        status=word("The last step that is done."),
        from_generation=count("From.", 1),
        to_generation=or_null(count("To; null before the launch.")),
        at=word("Since when; UTC."),
        doing=word("What is done now."),
        asked_at_step=or_null(count("The step at which a checkpoint was asked for.")),
        saved_step=or_null(count("The step of the checkpoint that was saved.")),
    )


def _told() -> Schema:
    return written(
        "How far it is, as its nodes told.",
        job=word("Its name."),
        run_id=or_null(word("The run.")),
        status=or_null(word("The run's status.")),
        offer_id=or_null(word("What was bought.")),
        nodes_running=count("Nodes that run."),
        nodes_wanted=count("Nodes it should have."),
        step=or_null(count("The newest step.")),
        loss=or_null({"type": "number", "description": "The newest loss."}),
        steps_per_second=or_null(number("Lately.")),
        told_at=or_null(word("When the newest step was told; UTC.")),
        heard_seconds=or_null(number("Seconds since the last sign of life.")),
        usd_per_hour=or_null(word("Of all nodes.")),
        usd_so_far=or_null(word("What it cost so far.")),
        unfinished=flag("An apply or destroy is at work, or died."),
    )
