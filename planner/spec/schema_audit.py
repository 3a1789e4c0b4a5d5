"""The schema of what `skyplan audit --json` prints: findings, changes of rights, what could not be read."""

from __future__ import annotations

from planner.model.finding import Level
from planner.spec.schema_output import (
    count,
    diagnostics,
    digest,
    items,
    one_of,
    or_null,
    version,
    word,
    words,
    written,
)
from planner.spec.schema_words import DIALECT, Schema


def audit_schema() -> Schema:
    """An audit's report."""
    body = written(
        "What grants too much, and what a change widens.",
        format_version=version(),
        project=word("The project."),
        sources=words("What was read."),
        base=or_null(word("What it was compared with; null where with nothing.")),
        identities=items(
            "Whose rights were judged.", written("An identity.", cloud=word("The cloud."), name=word("Its name."))
        ),
        summary=written(
            "Counts.",
            open=written(
                "Findings nobody accepted, by level.", **{one.value: count(f"Of {one.value}.") for one in Level}
            ),
            accepted=count("Findings that a suppression accepts."),
            standing=count("Findings that the base has too."),
            failing=count("Findings for which --fail-on exits with 2."),
            unread=count("Documents that could not be read."),
            refused=count("Inputs that were refused."),
            fail_on=one_of("From which level on the exit code is 2.", *(one.value for one in Level), "none"),
        ),
        findings=items("Worst first.", _finding()),
        changes=items(
            "What is another right than the base's.",
            written(
                "A change.",
                cloud=word("The cloud."),
                identity=word("Whose right."),
                kind=one_of("How.", "added", "removed", "widened", "changed"),
                right=word("The right, in words."),
            ),
        ),
        diagnostics=diagnostics("What could not be read, and what is wrong with suppressions."),
    )
    return {"$schema": DIALECT, "title": "skyplan audit --json"} | body


def _finding() -> Schema:
    return written(
        "A finding.",
        rule=word("The rule; `skyplan explain RULE` says why it matters.", "^SKY-IAM-[0-9]{3}$"),
        level=one_of("How bad.", *(level.value for level in Level)),
        cloud=word("The cloud."),
        identity=word("Whose right."),
        origin=word("Where it was read."),
        grant=word("The statement or role it stands in."),
        action=word("What may be done."),
        resource=word("On what."),
        message=word("In a sentence."),
        evidence=word("A request that is allowed and should not be."),
        fix=word("What to do."),
        file=or_null(word("The file, where there is one.")),
        line=or_null(count("The line, from 1.", 1)),
        accepted=or_null(word("Why it is accepted; null where it is not.")),
        fingerprint=digest("The same for the same finding, wherever its line moves to."),
    )
