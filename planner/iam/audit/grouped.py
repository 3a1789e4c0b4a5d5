"""Openings gathered to findings: one finding for each statement that answers, or for several questions that are dangerous together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from planner.iam.audit.find import of_statement, subjects
from planner.iam.audit.lines import without
from planner.iam.audit.witness import Opening, Question, opening, openings, shown
from planner.model.finding import Finding
from planner.model.offer import Cloud
from planner.model.policy import Audited, Statement, Subject

#: the lines to write instead of a statement that gives these actions
Fix = Callable[[Statement, list[str]], str]


def each(subject: Subject, asked: Sequence[Question]) -> Iterator[list[Opening]]:
    """Openings to the questions, those by one statement together."""
    by: dict[int, list[Opening]] = {}
    for question in asked:
        for found in openings(subject, question):
            by.setdefault(id(found.held[1]), []).append(found)
    yield from by.values()


def given(audited: Audited, asked: list[Question], message: str, fix: Fix) -> Iterator[Finding]:
    """Each statement by which any of the questions is answered, once."""
    for subject in subjects(audited, Cloud.AWS):
        for group in each(subject, asked):
            yield plain(subject, group, message, fix)


def plain(subject: Subject, found: list[Opening], message: str, fix: Fix) -> Finding:
    """A finding about openings by one statement, naming their actions."""
    statement = found[0].held[1]
    actions = list(dict.fromkeys(one.request.action for one in found))
    return of_statement(
        subject,
        found[0].held,
        f"{message}: {', '.join(actions)}",
        action=", ".join(actions),
        resource=", ".join(statement.resources) or "*",
        fix=fix(statement, actions),
    )


def dropped(statement: Statement, actions: list[str]) -> str:
    """A `Fix`: the statement without these actions."""
    return without(statement, actions)


def together(audited: Audited, asked: list[Question], message: str, drop: str) -> Iterator[Finding]:
    """One finding where the answer to all is yes, at the statement that gives `drop`, the action to go without."""
    for subject in subjects(audited, Cloud.AWS):
        found = [opening(subject, question) for question in asked]
        held = [one for one in found if one is not None]
        if len(held) == len(asked):
            first = next(one for one in held if one.request.action == drop)
            yield of_statement(
                subject,
                first.held,
                f"{message}: {', '.join(one.request.action for one in held)}",
                action=drop,
                resource=shown(first.request.resource),
                fix=without(first.held[1], [drop]),
                also=tuple(one.held for one in held),
            )
