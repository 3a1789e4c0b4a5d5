"""What every cloud's foundation stack must hold, asked once per cloud."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from planner.model.digest import pretty
from planner.model.offer import Cloud
from tests.stacks import checker
from tests.stacks.control_inputs import foundation

GOLDEN = Path(__file__).with_name("golden") / "foundation"
#: a key, a password, or a way round single members
NEVER = ("_key", "_iam_binding", "_iam_policy", "access_key", "password", "client_secret")


def same_as_golden(cloud: Cloud, document: dict[str, Any], *, update: bool) -> None:
    """The stack's bytes are those of the golden file."""
    path, made = GOLDEN / f"fnd-{cloud.value}-prod.tf.json", pretty(document)
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made)
    assert made.decode() == path.read_text(encoding="utf-8")


def holds(cloud: Cloud, document: dict[str, Any]) -> None:
    """The provider would take it, it has the outputs of the contract, no secret is made, nobody's policy is replaced."""
    assert checker.problems(document) == []
    outputs = document["output"]
    assert set(outputs["identities"]["value"]) == {one.identity.value for one in foundation(cloud).identities}
    assert outputs["boundaries"]["value"] == {}
    assert f"cloud: {cloud.value}" in outputs["skyplan_yaml"]["value"]
    kinds = set(document["resource"])
    assert not [kind for kind in kinds if any(kind.endswith(word) for word in NEVER)]
