"""Names of things in Terraform, from names of ours.  Pure."""

from __future__ import annotations

import re


def label(text: str) -> str:
    """A Terraform identifier: `p4d.24xlarge/use1-az4` -> `p4d-24xlarge-use1-az4`."""
    made = re.sub(r"[^A-Za-z0-9_-]", "-", text)
    return made if re.match(r"[A-Za-z_]", made) else f"x{made}"


def state_key(project: str, stack: str) -> str:
    """Where a stack's state lies in the backend: `skyplan/PROJECT/STACK.tfstate`."""
    return f"skyplan/{project}/{stack}.tfstate"
