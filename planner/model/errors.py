"""The whole exception tree.  Exceptions are for the shell; what can be expected is a Diagnostic.

SkyplanError
├── InputError            one or more Diagnostics about files the user wrote (job, project, plan, catalog)
├── NoFeasiblePlacement   every offer was rejected; carries the counts by reason
├── StalePlan             a plan that may not be applied (any more); carries Diagnostics
├── LeaseHeld             another process works on this job
├── StateConflict         a write of an older generation, or a lost compare-and-swap
├── Refused               what a node sent and the record does not take (planner.model.runtime)
├── MissingPart           an optional program or package is not installed
├── TerraformError        Terraform ended with an error; carries its diagnostics
├── ForgeError            GitHub or GitLab refused, or did not answer; mapped in planner.forges
└── CloudError            an answer of a cloud, mapped in planner.clouds
    ├── PermissionDenied
    └── Unavailable
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.diagnostic import Diagnostic


class SkyplanError(Exception):
    """Root of all errors that skyplan raises on purpose."""

    diagnostics: tuple[Diagnostic, ...] = ()


class _WithDiagnostics(SkyplanError):
    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("; ".join(d.summary for d in self.diagnostics))


class InputError(_WithDiagnostics):
    """Files that the user wrote are wrong; all problems at once."""


class NoFeasiblePlacement(_WithDiagnostics):
    """No offer is left; the diagnostics count the reasons."""


class StalePlan(_WithDiagnostics):
    """The plan may not be applied; the diagnostics say what changed."""


class LeaseHeld(_WithDiagnostics):
    """Somebody else works on this job."""


class StateConflict(_WithDiagnostics):
    """The record refused a write."""


class MissingPart(_WithDiagnostics):
    """Something optional is needed here and not installed."""


class TerraformError(_WithDiagnostics):
    """Terraform failed; `output` is what it printed, whole."""

    def __init__(self, diagnostics: Sequence[Diagnostic], output: str = "") -> None:
        super().__init__(diagnostics)
        self.output = output


class ForgeError(_WithDiagnostics):
    """What GitHub's or GitLab's API said to a comment, or that it said nothing."""


class CloudError(_WithDiagnostics):
    """A cloud's API answered with an error."""


class PermissionDenied(CloudError):
    """The identity may not do that."""


class Unavailable(CloudError):
    """The API cannot be reached or is overloaded."""
