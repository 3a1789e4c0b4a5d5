"""The CDK app: stack inputs in, Terraform JSON out, the same bytes for the same inputs, whichever CDK is installed.

Importing this module starts Node.  The CDK's own writer is not used: it leaves absolute paths and its version in the files.
"""

# pyright: basic

from __future__ import annotations

import shutil
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from modules import cdk
from planner.model.digest import digest_bytes, pretty
from planner.model.stack import AccessInput, AddressInput, AnyStack, ComputeInput, FoundationInput, NetworkInput

#: each cloud's module has these
_CLASSES = {
    NetworkInput: "NetworkStack",
    AddressInput: "AddressStack",
    AccessInput: "AccessStack",
    ComputeInput: "ComputeStack",
    FoundationInput: "FoundationStack",
}


class Written(NamedTuple):
    """One stack on disk: `digest` is `sha256:…` of the file's bytes."""

    name: str
    path: Path
    digest: str


def synth(inputs: Sequence[AnyStack], out_dir: Path) -> tuple[Written, ...]:
    """Write `OUT/stacks/STACK/cdk.tf.json` for each input, and `OUT/manifest.json`, as the stock CLI expects them.

    Stacks of an earlier synthesis that are not among the inputs are removed, but only such folders.  Raises MissingPart without a CDK or
    Node, InputError where a job's user data is too big.
    """
    documents = {given.name: document(given) for given in sorted(inputs, key=lambda given: given.name)}
    stacks = out_dir / "stacks"
    stacks.mkdir(parents=True, exist_ok=True)
    for old in stacks.iterdir():
        if old.name not in documents and (old / "cdk.tf.json").is_file():
            shutil.rmtree(old)
    written: list[Written] = []
    for name, made in documents.items():
        path = stacks / name / "cdk.tf.json"
        path.parent.mkdir(exist_ok=True)
        data = pretty(made)
        path.write_bytes(data)
        written.append(Written(name, path, digest_bytes(data)))
    (out_dir / "manifest.json").write_bytes(pretty(_manifest(list(documents))))
    return tuple(written)


def document(given: AnyStack) -> dict[str, Any]:
    """The Terraform JSON of one stack, without the CDK's remarks."""
    made = _without_remarks(_stack(cdk.App(), given).document())
    # what the stock CLI reads of a stack
    made["//"] = {"metadata": {"backend": given.backend.kind, "stackName": given.name}, "outputs": {}}
    return made


def _stack(app: cdk.App, given: AnyStack) -> cdk.Stack:
    """The stack of the input's kind in the module of its cloud."""
    made: cdk.Stack = getattr(import_module(f"stacks.{given.cloud.value}"), _CLASSES[type(given)])(app, given)
    return made


def _without_remarks(value: Any) -> Any:
    """The value without `//` keys, at any depth; whole numbers as integers."""
    if isinstance(value, dict):
        return {key: _without_remarks(inner) for key, inner in value.items() if key != "//"}
    if isinstance(value, list):
        return [_without_remarks(inner) for inner in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _manifest(names: list[str]) -> dict[str, Any]:
    """`manifest.json` of the CDK, without its version."""
    return {
        "version": "0",
        "stacks": {
            name: {
                "annotations": [],
                "constructPath": name,
                "dependencies": [],
                "name": name,
                "stackMetadataPath": f"stacks/{name}/metadata.json",
                "synthesizedStackPath": f"stacks/{name}/cdk.tf.json",
                "workingDirectory": f"stacks/{name}",
            }
            for name in names
        },
    }
