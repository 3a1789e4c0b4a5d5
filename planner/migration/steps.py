"""The steps of a move and their order, as a directed graph.

Decides which steps a reason needs and what must come before what.  Carries nothing out (`planner.app.migrate` does), and draws nothing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from planner.model.diagnostic import Diagnostic
from planner.model.errors import MissingPart
from planner.model.migration import MigrationReason, MigrationStep

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from decimal import Decimal

    import networkx as nx

    Graph = nx.DiGraph[str]

ASK, LAUNCH, SAVE, RELEASE, RESUME, RETIRE = KEYS = ("ask", "launch", "save", "release", "resume", "retire")


def steps_of(
    reason: MigrationReason, *, old: str, new: str, minutes: Mapping[str, Decimal] | None = None
) -> tuple[MigrationStep, ...]:
    """In the order in which they are done.  `old` and `new` name the run and the place in words; `minutes` by key, where they are expected.

    A recovery has nobody to ask for a checkpoint.  Where the cloud takes the nodes back, the checkpoint is asked for before anything is launched.
    """
    expected = minutes or {}
    saves, first = reason is not MigrationReason.RECOVERY, reason is MigrationReason.INTERRUPTION

    def step(key: str, title: str, *after: str, stops: bool = False) -> MigrationStep:
        return MigrationStep(key=key, title=title, after=after, minutes=expected.get(key), stops=stops)

    launch = step(LAUNCH, f"launch {new}; its nodes hold")
    ask = step(ASK, f"ask {old} for a checkpoint", *(() if first else (LAUNCH,)))
    save = step(SAVE, "the checkpoint is durable", ASK)
    rest = (
        step(RELEASE, f"the record moves on: {old} is fenced", LAUNCH, *([SAVE] if saves else []), stops=True),
        step(RESUME, "the new nodes go on from the newest checkpoint, and make progress", RELEASE, stops=True),
        step(RETIRE, f"destroy the compute stack of {old}", RESUME),
    )
    before = ((ask, launch) if first else (launch, ask)) if saves else (launch,)
    return in_order((*before, *([save] if saves else []), *rest))


def in_order(steps: Sequence[MigrationStep]) -> tuple[MigrationStep, ...]:
    """Each after all that it waits for, else as given.  Raises ValueError for a circle, a key that stands twice, or one that nobody has."""
    _networkx()
    if len({s.key for s in steps}) != len(steps):
        raise ValueError("a step's key stands twice")
    of_key = {s.key: s for s in steps}
    return tuple(of_key[key] for key in _ordered(tuple((s.key, s.after) for s in steps)))


@lru_cache(maxsize=64)
def _ordered(given: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[str, ...]:
    """Keys in order; a thousand moves have three orders among them."""
    nx = _networkx()
    place = {key: number for number, (key, _) in enumerate(given)}
    steps = [MigrationStep(key=key, title="", after=after) for key, after in given]
    try:
        return tuple(nx.lexicographical_topological_sort(graph(steps), key=place.__getitem__))
    except nx.NetworkXUnfeasible as error:
        raise ValueError("steps wait for each other in a circle") from error


def layers(steps: Sequence[MigrationStep]) -> tuple[tuple[str, ...], ...]:
    """Keys that may be done at the same time, one tuple after another.  Raises ValueError as `in_order`."""
    nx = _networkx()
    try:
        return tuple(tuple(sorted(layer)) for layer in nx.topological_generations(graph(steps)))
    except nx.NetworkXUnfeasible as error:
        raise ValueError("steps wait for each other in a circle") from error


def graph(steps: Sequence[MigrationStep]) -> Graph:
    """An edge from each step to those that wait for it.  Raises ValueError for a key that stands twice, or one that nobody has."""
    nx = _networkx()
    found: Graph = nx.DiGraph()
    found.add_nodes_from(s.key for s in steps)
    if len(found) != len(steps):
        raise ValueError("a step's key stands twice")
    for s in steps:
        if unknown := [key for key in s.after if key not in found]:
            raise ValueError(f"{s.key} waits for {', '.join(unknown)}, which is no step")
        found.add_edges_from((before, s.key) for before in s.after)
    return found


def _networkx() -> Any:
    """Raises MissingPart where it is not installed."""
    try:
        import networkx as nx  # noqa: PLC0415 - a fifth of a second
    except ImportError as error:
        summary = "networkx is not installed: the steps of a move are a graph"
        raise MissingPart(
            [
                Diagnostic(
                    code="SKY-APPLY-316",
                    summary=summary,
                    hint="install the extra `record` from your checkout of skyplan: pip install '.[record]'",
                )
            ]
        ) from error
    return nx
