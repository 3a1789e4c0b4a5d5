"""The identities that a plan's choice needs, as an audit would read them: nodes, and the control identities where skyplan.yaml names them.

Composes stacks and reads rights off them; judges none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.app.audit_join import connected
from planner.app.audit_sources import Around, PlanSource, foundations, merged, stacks_of
from planner.iam.read.inputs import read_inputs
from planner.model.errors import InputError

if TYPE_CHECKING:
    from planner.model.market import Market
    from planner.model.plan import PlacementPlan
    from planner.model.policy import Audited
    from planner.model.project import Project
    from planner.model.stack import AnyStack


class Rights:
    """Of plans under one skyplan.yaml and one market."""

    def __init__(self, project: Project, market: Market) -> None:
        self._around = Around(project=project, market=lambda: market)

    def of(self, plan: PlacementPlan, file: str) -> tuple[Audited | None, str]:
        """What the choice's stacks give, or why that cannot be told."""
        if not plan.ranked:
            return None, "nothing is feasible, so no identity is made"
        try:
            source = PlanSource(plan=plan, file=file, stacks=stacks_of(plan, self._around))
            control, unread = foundations((source,), self._around)
        except InputError as error:
            return None, "; ".join(d.summary for d in error.diagnostics)
        except (KeyError, StopIteration, RuntimeError, TypeError, ValueError) as error:
            if isinstance(error, RuntimeError) and not isinstance(error.__cause__, StopIteration):
                raise  # of a generator's StopIteration Python makes one
            return None, "the plan names what is not in the catalog any more: plan again"
        stacks: list[AnyStack] = [*source.stacks, *control]
        return connected(merged([read_inputs(stacks)])), "; ".join(unread)
