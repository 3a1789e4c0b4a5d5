"""One root module that instantiates a job's network, access and compute stacks as child modules, wired as `skyplan apply` wires them.

For who wants one state and one run per job.  The root alone has the backend and the providers; each child keeps its own identity by an alias, so that
launching stays the orchestrator's.  Takes documents of `stacks.app`; decides nothing about clouds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.model.offer import CapacityType
from planner.model.stack import ComputeInput, spot_key
from stacks.hcl import HEADER, Body, block, files
from stacks.hcl_text import Line, Raw, attributes, expression

CHILDREN: tuple[str, ...] = ("network", "access", "compute")


def root_files(documents: Mapping[str, Mapping[str, Any]], compute: ComputeInput) -> dict[str, str]:
    """`network`, `access` and `compute` with their documents -> file below the root module's folder -> text."""
    out: dict[str, str] = {}
    for child in CHILDREN:
        for name, text in files(_as_child(documents[child])).items():
            out[f"{child}/{name}"] = text
    modules = [_module(child, documents[child], _given(child, documents, compute)) for child in CHILDREN]
    return out | files(_root(documents)) | {"main.tf": HEADER + "".join(f"\n{one}\n" for one in modules)}


def _as_child(document: Mapping[str, Any]) -> Body:
    """Without backend and providers; names the aliases that it is handed."""
    required: Body = {name: dict(rule) for name, rule in document["terraform"]["required_providers"].items()}
    for name, settings in document["provider"].items():
        aliases = [f"{name}.{one['alias']}" for one in settings if "alias" in one]
        if aliases:
            required[name]["configuration_aliases"] = aliases
    return {**{k: v for k, v in document.items() if k != "provider"}, "terraform": {"required_providers": required}}


def _root(documents: Mapping[str, Mapping[str, Any]]) -> Body:
    required: Body = {}
    providers: dict[str, list[Body]] = {}
    for child in CHILDREN:
        required |= documents[child]["terraform"]["required_providers"]
        for name, settings in documents[child]["provider"].items():
            providers.setdefault(name, []).extend({**one, "alias": _alias(child, one)} for one in settings)
    backend: Body = {kind: {} for kind in documents["compute"]["terraform"]["backend"]}
    outputs = {
        name: {"description": declared["description"], "value": f"${{module.compute.{name}}}"}
        for name, declared in documents["compute"]["output"].items()
    }
    return {
        "terraform": {"required_providers": required, "backend": backend},
        "provider": providers,
        "output": outputs,
    }


def _alias(child: str, settings: Mapping[str, Any]) -> str:
    return f"{child}-{settings['alias']}" if "alias" in settings else child


def _given(child: str, documents: Mapping[str, Mapping[str, Any]], compute: ComputeInput) -> dict[str, str]:
    """The child's variables: what `stacks.wiring` hands on while applying, as references."""
    wanted = documents[child].get("variable", {})
    if child == "access":
        return {name: f"module.network.{name}" for name in wanted}
    launch = documents["access"]["output"]["launch"]["value"]
    spot = spot_key(compute.template_key)
    key = spot if compute.capacity is CapacityType.SPOT and spot in launch else compute.template_key
    return {name: f"module.access.launch[{expression(key)}].{name}" for name in wanted}


def _module(child: str, document: Mapping[str, Any], given: Mapping[str, str]) -> str:
    handed = [
        Line(f"{name}.{one['alias']}" if "alias" in one else name, f"{name}.{_alias(child, one)}")
        for name, settings in sorted(document["provider"].items())
        for one in settings
    ]
    lines = attributes([Line("source", f'"./{child}"')])
    lines += block("providers =", attributes(handed)).split("\n")
    if given:
        lines += ["", *attributes(Line(name, expression(Raw(value))) for name, value in sorted(given.items()))]
    return block(f'module "{child}"', lines)
