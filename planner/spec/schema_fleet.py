"""The schema of `fleet` in `skyplan plan --json`: what there is to say of all jobs of a call together."""

from __future__ import annotations

from planner.spec.schema_output import count, decimal, items, one_of, or_null, word, words, written
from planner.spec.schema_words import Schema

_REASON = "^SKY-REJ-[0-9]{3}$"


def fleet_schema() -> Schema:
    """The summary."""
    return written(
        "All jobs of the call together.",
        jobs=count("Jobs of the call."),
        placed=count("Of them, those that have a place."),
        method=word("How places were given out: `one by one`, or the solver's name and version."),
        total_usd=decimal("Expected cost to finish of those that are placed."),
        usd_per_hour=decimal("Of those that are placed, while all run."),
        one_by_one_usd=or_null(
            decimal("The same jobs taken in order of priority and name; null where not all of them found a place so.")
        ),
        bound_usd=or_null(decimal("No assignment of the same jobs can cost less; null where it was not computed.")),
        waiting=items("Jobs that could have a place on an empty market, and have none now.", _waiting()),
        kept=items(
            "Jobs that stay where their earlier plan put them, as another place would save too little.", _kept()
        ),
        pools=items("Nodes in use, by pool.", _pool()),
        budgets=items("The budgets of skyplan.yaml, a limit each.", _budget()),
    )


def _waiting() -> Schema:
    return written(
        "A job that waits.",
        job=word("Its name."),
        priority={"type": "integer", "description": "Its priority."},
        team=word("Its team; empty where it has none."),
        code=word("What it lacks; `skyplan explain CODE` says more.", _REASON),
        text=word("In a sentence: what it needs, what there is, who holds it."),
        behind=words("Up to three jobs of those that hold it, by priority."),
    )


def _kept() -> Schema:
    return written(
        "A job that stays.",
        job=word("Its name."),
        offer_id=word("Where."),
        better_offer_id=word("Where it would be cheaper."),
        saving_usd=decimal("What that would save."),
    )


def _pool() -> Schema:
    return written(
        "A pool.",
        pool=word("Its name, as in `ranked`."),
        held=count("Nodes that others hold."),
        planned=count("Nodes that this plan takes."),
        cap=or_null(count("The most there may be; null without a cap.")),
    )


def _budget() -> Schema:
    return written(
        "A limit of a budget.",
        teams=words("Whose, as globs."),
        kind=one_of("Of the money per hour, or of the expected total.", "per_hour", "total"),
        held_usd=decimal("What others hold of it."),
        planned_usd=decimal("What this plan takes."),
        limit_usd=decimal("The limit."),
    )
