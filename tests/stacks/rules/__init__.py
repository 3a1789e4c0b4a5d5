"""The contract that the stacks of all four clouds keep: rules by name, `violations` of one rendered placement."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from planner.model.offer import Cloud
from tests.stacks.cases import Rendered
from tests.stacks.rules import aws, azure, common, gcp, minted, nebius

CLOUDS: dict[Cloud, ModuleType] = {Cloud.AWS: aws, Cloud.GCP: gcp, Cloud.AZURE: azure, Cloud.NEBIUS: nebius}
#: rules that every cloud has in its own words
OWN_WORDS = (
    "public_address",
    "ingress",
    "way_out",
    "image",
    "disks",
    "metadata",
    "capacity",
    "ending",
    "rights",
    "planned",
)
SAME_WORDS: dict[str, Callable[[Rendered], common.Found]] = {
    "tags": common.tags,
    "no_secret": common.no_secret,
    "additive_only": common.additive_only,
    "outputs": common.outputs,
    "launched": common.launched,
    "own_network": common.own_network,
    "shared_by_nobody": common.shared_by_nobody,
    "provider": common.provider,
    "minted": minted.minted,
}


def broken(rule: str, rendered: Rendered) -> list[str]:
    """What breaks one rule; a stack that a rule cannot read breaks it too."""
    check = SAME_WORDS.get(rule) or getattr(CLOUDS[rendered.case.cloud], rule)
    if rule == "rights":
        rendered = minted.nodes_alone(rendered)
    try:
        return list(check(rendered))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        return [f"cannot be read: {error!r}"]


def violations(rendered: Rendered) -> list[str]:
    """What breaks any rule."""
    return [f"{rule}: {found}" for rule in (*SAME_WORDS, *OWN_WORDS) for found in broken(rule, rendered)]
