"""The schema of `skyplan report --json`, the data that a report's page carries too.

The market of a job is columns: `words` holds each text once, sorted, and a text column holds positions in it; amounts and hours are whole ten-thousandths, so
that a reader rounds nothing; null is unknown.  All columns are of one length, by total, the cheapest first.
"""

from __future__ import annotations

from typing import Final

from planner.model.report import GROUPS
from planner.spec.schema_fleet import fleet_schema
from planner.spec.schema_output import (
    caveats,
    count,
    decimal,
    flag,
    items,
    number,
    one_of,
    or_null,
    ref,
    version,
    word,
    words,
    written,
)
from planner.spec.schema_words import DIALECT, Schema

_TEXTS: Final = {
    "place": "Cloud with target, region, zone.",
    "what": "Nodes and instance type.",
    "cloud": "The cloud; of a split all, joined by ` + `.",
    "region": "The region.",
    "capacity": "spot, on-demand, reserved.",
    "gpu": "GPUs over all nodes.",
}


def report_schema() -> Schema:
    """The document."""
    body = written(
        "Plans with the whole market around each choice. Account ids and secrets are cut out of every text.",
        format_version=version(),
        project=word("The project's name."),
        as_of=word("The newest moment of the plans' inputs."),
        fleet=or_null(fleet_schema()),
        jobs=items("In the order they were placed.", _job()),
        warnings=items("What should be known of the inputs.", _told()),
    )
    return body | {"$schema": DIALECT, "title": "skyplan report", "$defs": {"placement": _placement(), "term": _term()}}


def _told() -> Schema:
    return written("A warning.", code=word("`skyplan explain CODE` says more."), text=word("In a sentence."))


def _job() -> Schema:
    return written(
        "One job.",
        name=word("Its name."),
        file=word("The job file or plan file."),
        action=one_of(
            "What applying would do; empty of a plan file and where there is no place.", "", "create", "keep", "change"
        ),
        choice=or_null(ref("placement", "The plan's choice; null where there is none.")),
        choice_position=or_null(count("Of the choice in the columns.")),
        notes=words("Why it won."),
        market=_market(),
        ranked=items("The plan's ranked set.", ref("placement", "A placement.")),
        reasons=items(
            "Why other offers cannot run it.",
            written(
                "A reason.",
                code=word("`skyplan explain CODE` says more."),
                count=count("Offers that fell for it first.", 1),
                meaning=word("In a sentence."),
                hint=word("What may be done."),
                examples=words("The nearest, with numbers."),
            ),
        ),
        regions=items("Every region that the targets may use; empty of a plan file.", _region()),
        moves=items("Migration diffs of the job.", _move()),
        prices=or_null(_prices()),
        inputs={"type": "object", "description": "What the plan was made of, as the plan names it."},
    )


def _term() -> Schema:
    return written(
        "A part of a total.",
        name=word("Its name."),
        usd=or_null(decimal("Its amount; null is unknown.")),
        detail=word("Its numbers."),
    )


def _placement() -> Schema:
    return written(
        "A placement in short.",
        offer=word("The offer's id."),
        placement_id=word("`p` and 10 hex digits."),
        place=word("Cloud with target, region, zone."),
        usd_per_hour=decimal("All nodes."),
        total_usd=decimal("Expected cost to finish."),
        lower_bound=flag("A term is unknown, so the total is at least this."),
        finish_hours=decimal("Expected hours from launch to result."),
        terms=items("What the total is made of.", ref("term", "A term.")),
        caveats=caveats("What a reader should know."),
        differs=words("How the hardware differs from what the job names."),
    )


def _column(description: str, *, unknown: bool = False) -> Schema:
    return items(description, {"type": ["integer", "null"] if unknown else "integer"})


def _market() -> Schema:
    columns = {name: _column(f"Positions in `words.{name}`. {what}") for name, what in _TEXTS.items()}
    columns |= {
        "per_hour": _column("USD 0.0001 per hour, all nodes."),
        "total": _column("USD 0.0001 to finish."),
        "finish": _column("0.0001 h from launch to result."),
        "at_least": _column("1 where the total is a lower bound."),
        "edge": _column("1 where nothing costs less and finishes as early."),
    }
    columns |= {name: _column(f"USD 0.0001: {' + '.join(terms)}.", unknown=True) for name, terms in GROUPS.items()}
    return written(
        "The feasible ways to run it.",
        feasible=count("Feasible offers."),
        splits=count("Feasible splits over several clouds."),
        whole=flag("The whole market was ranked; false of a plan file, which holds its ranked set alone."),
        shown=count("Length of every column."),
        words=written("Each text once.", **{name: words(what) for name, what in _TEXTS.items()}),
        columns=written("By total, the cheapest first.", **columns),
    )


def _rate() -> Schema:
    return or_null(
        written(
            "Of one node.",
            uri=word("The slowest of the job's stores."),
            gbps=number("Gbit/s."),
            estimated=flag("Nothing was measured."),
        )
    )


def _region() -> Schema:
    return written(
        "A region.",
        cloud=word("The cloud."),
        region=word("The region."),
        area=word("Part of the world."),
        offers=count("Offers there."),
        feasible=count("Feasible ones."),
        cheapest=or_null(count("Position of the cheapest in the columns; null where none is feasible or in them.")),
        code=word("The main reason of most offers, where none is feasible."),
        read=_rate(),
        write=_rate(),
    )


def _move() -> Schema:
    return written(
        "A migration diff in short.",
        reason=word("Why it moves."),
        code=word("`skyplan explain CODE` says more."),
        text=word("In a sentence."),
        **{"from": word("What runs: an offer's id.")},
        to=words("Where to, first choice first."),
        stop_minutes=decimal("How long the job makes no progress."),
        terms=items("What decided.", ref("term", "A term.")),
        steps=items(
            "In order.",
            written(
                "A step.",
                key=word("Its name among the steps."),
                title=word("What is done."),
                after=words("Steps that must be done first."),
                minutes=or_null(decimal("Expected; null is unknown.")),
                stops=flag("The job makes no progress meanwhile."),
            ),
        ),
    )


def _prices() -> Schema:
    return written(
        "What the ranked offers cost over time, by the record.",
        since=word("ISO time."),
        until=word("ISO time."),
        series=items(
            "In the order of the ranked set.",
            written(
                "A series.",
                series=word("Its name."),
                least=decimal("USD per node-hour."),
                median=decimal("Weighted by how long each price held."),
                most=decimal("USD per node-hour."),
                changes=count("How many."),
            ),
        ),
        others=count("Offers without any price in that time."),
    )
