"""Names on Nebius, and what the name of an instance type is made of.  Pure.

A node's name is its host name too: lower case, digits and hyphens, at most 63 (the API's own pattern, `nebius.compute.v1.InstanceSpec.hostname`).
skyplan's projects and jobs have no other characters, so only the length needs care.  Names are unique within a project (managed disks say so of
theirs, the rest is not verified), so a second create fails instead of doubling.
"""

from __future__ import annotations

from modules.text import fit

LONGEST = 63
#: `-r00` and `-r00-boot` come after the stem of a node
_STEM = LONGEST - len("-r00-boot")


def resource_name(stack: str, project: str, suffix: str = "") -> str:
    """Name of something that a stack holds once: `skyplan-acme-net-prod-eu-north1`."""
    return fit(f"skyplan-{project}-{stack}{suffix}", LONGEST)


def node_stem(project: str, job: str, generation: int) -> str:
    """What the names of a launch attempt's nodes begin with; `-r00` follows."""
    return fit(f"skyplan-{project}-{job}-g{generation}", _STEM)


def platform_and_preset(instance_type: str) -> tuple[str, str]:
    """`gpu-h100-sxm_8gpu-128vcpu-1600gb` -> its platform and its preset.  Raises ValueError."""
    platform, between, preset = instance_type.partition("_")
    if not (platform and between and preset):
        raise ValueError(f"{instance_type}: not PLATFORM_PRESET")
    return platform, preset
