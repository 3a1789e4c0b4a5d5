"""Terraform JSON against the shipped provider schemas, without `modules.schema`: a second opinion, written from the files alone.

`problems(document)` is empty for a document that its provider would take: known types and arguments, right types, required arguments there,
meta arguments that exist, and every `${…}` pointing at something that stands in the same document and has that attribute.  What no schema says
(which rule opens what, which capacity is bought) is `tests.stacks.rules`'s.  The schema files are read as they are shipped; nothing is written.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.stacks.references import reference_problems

SCHEMAS = Path(__file__).parents[2] / "modules" / "schemas"
#: first word of a type -> schema file
PROVIDERS = {"aws": "aws", "google": "google", "azurerm": "azurerm", "nebius": "nebius"}
#: providers whose nested objects are attributes: a list must be a list, and one expression may stand for the whole
NESTED_ATTRIBUTES = {"nebius"}

#: settings of a provider's block that stacks use, as the providers document them (no schema file holds them)
SETTINGS: dict[str, dict[str, str]] = {
    "aws": {
        "region": "string!",
        "max_retries": "number!",
        "allowed_account_ids": "list(string)",
        "assume_role": "blocks",
    },
    "google": {
        "project": "string",
        "region": "string!",
        "impersonate_service_account": "string",
        "add_terraform_attribution_label": "bool!",
    },
    "azurerm": {
        "features": "block!",
        "subscription_id": "string",
        "tenant_id": "string",
        "storage_use_azuread": "bool!",
        "resource_provider_registrations": "string!",
    },
    "nebius": {
        "parent_id": "string",
        "profile": "block",
        "impersonate_service_account_id": "string",
        "retries": "number!",
        "timeout": "string!",
    },
}
_TOP = {"//", "terraform", "provider", "variable", "output", "resource", "data"}
_LIFECYCLE = {"ignore_changes", "create_before_destroy", "prevent_destroy"}
_VARIABLE_TYPES = {"string", "map(string)", "list(string)"}

Document = dict[str, Any]


@cache
def schema(provider: str) -> Document:
    """The shipped file of a provider."""
    return json.loads(gzip.decompress((SCHEMAS / f"{provider}.json.gz").read_bytes()))


def provider_of(kind: str) -> str:
    return PROVIDERS.get(kind.split("_", 1)[0], "")


def taggable(kind: str) -> str | None:
    """`tags` or `labels`, as the type's schema has it; None where the cloud takes neither."""
    body = schema(provider_of(kind))["resources"][kind]
    fields = body["attributes"]
    return next((name for name in ("tags", "labels") if fields.get(name, {}).get("type") == "map(string)"), None)


def resources(document: Document) -> list[tuple[str, str, Document]]:
    """(type, name, body) of every resource."""
    return [(kind, name, body) for kind, named in document.get("resource", {}).items() for name, body in named.items()]


def problems(document: Document) -> list[str]:
    """Everything that is wrong with one stack."""
    return [*_frame(document), *_things(document), *reference_problems(document, schema)]


def _things(document: Document) -> Iterator[str]:
    for section, group in (("resource", "resources"), ("data", "data")):
        for kind, named in document.get(section, {}).items():
            provider = provider_of(kind)
            body = schema(provider)[group].get(kind) if provider else None
            if body is None:
                yield f"{section} type {kind} is not known"
                continue
            if provider not in document.get("provider", {}):
                yield f"{kind}: provider {provider} is not configured"
            for name, given in named.items():
                at = f"{kind}.{name}"
                yield from _meta(given, at, data=section == "data")
                configured = document.get("provider", {}).get(provider, [])
                if str(given.get("provider", provider)) not in {
                    f"{provider}.{one['alias']}" if "alias" in one else provider for one in configured
                }:
                    yield f"{at}: no such provider {given.get('provider', provider)}"
                plain = {key: value for key, value in given.items() if key not in _META}
                yield from _block(body, plain, at, whole=provider in NESTED_ATTRIBUTES)


def _frame(document: Document) -> Iterator[str]:
    """What stands around resources: terraform, provider, variable, output."""
    yield from (f"unknown section {key}" for key in document.keys() - _TOP)
    terraform = document.get("terraform", {})
    kinds = {"backend": dict, "required_providers": dict}
    if terraform.keys() != kinds.keys() or not all(isinstance(terraform[key], kinds[key]) for key in kinds):
        yield f"terraform: {terraform}"
        return
    yield from _providers(document)
    for name, body in document.get("variable", {}).items():
        if (
            body.keys() - {"type", "description", "default", "sensitive"}
            or str(body.get("type")) not in _VARIABLE_TYPES
        ):
            yield f"variable {name}: {body}"
    for name, body in document.get("output", {}).items():
        if body.keys() - {"value", "description", "sensitive"} or "value" not in body:
            yield f"output {name}: {sorted(body)}"
    for section in ("variable", "output"):
        for name, body in document.get(section, {}).items():
            if not isinstance(body.get("description", ""), str):
                yield f"{section} {name}: description"


def _providers(document: Document) -> Iterator[str]:
    """Each with its source; several configurations of one are told apart by their aliases."""
    terraform = document["terraform"]
    for name, configured in document.get("provider", {}).items():
        source = terraform["required_providers"].get(name, {})
        if not all(isinstance(source.get(key), str) for key in ("source", "version")):
            yield f"provider {name}: no source and version are required"
        if name not in SETTINGS or not isinstance(configured, list) or not configured:
            yield f"provider {name}: unknown, or no configuration"
            continue
        aliases = [one.get("alias") for one in configured]
        if len(set(aliases)) != len(aliases):
            yield f"provider {name}: two configurations of one name"
        for one in configured:
            known = SETTINGS[name] | ({"alias": "string"} | _BESIDE.get(name, {}) if "alias" in one else {})
            yield from _settings(known, one, f"provider {name}")


def _settings(known: dict[str, str], given: Any, at: str) -> Iterator[str]:
    if not isinstance(given, dict):
        yield f"{at}: no block"
        return
    for key, value in given.items():
        kind = known.get(key, "").rstrip("!")
        fits = {"block": isinstance(value, dict), "blocks": isinstance(value, list), "": False}.get(kind)
        if not (_fits(value, kind) if fits is None else fits):
            yield f"{at}: {key} is unknown or not {kind}"
    yield from (f"{at}: {key} is missing" for key, kind in known.items() if kind.endswith("!") and key not in given)


_META = ("for_each", "lifecycle", "depends_on", "provider")
#: what a provider beside the stack's own may leave out: it makes nothing in a region
_BESIDE = {"google": {"region": "string"}}


def _meta(given: Document, at: str, *, data: bool) -> Iterator[str]:
    for_each = given.get("for_each", {})
    if not (isinstance(for_each, dict) or _is_expression(for_each)):
        yield f"{at}: for_each is no map"
    after = given.get("depends_on", [])
    if not (isinstance(after, list) and all(isinstance(item, str) for item in after)):
        yield f"{at}: depends_on is no list of addresses"
    rules = given.get("lifecycle", {})
    if not isinstance(rules, dict) or rules.keys() - _LIFECYCLE or (data and rules):
        yield f"{at}: lifecycle {rules}"
        return
    ignored = rules.get("ignore_changes", [])
    if ignored != "all" and not (isinstance(ignored, list) and all(isinstance(item, str) for item in ignored)):
        yield f"{at}: ignore_changes {ignored}"
    elif ignored != "all":
        yield from (f"{at}: ignores {item}, which is not there" for item in ignored if item not in given)


def _block(body: Document, given: Document, at: str, *, whole: bool) -> Iterator[str]:
    """One resource, or one block in it."""
    for name, value in given.items():
        here = f"{at}.{name}"
        if name in body["attributes"]:
            kind = body["attributes"][name]["type"]
            if not _fits(value, kind):
                yield f"{here} is no {kind}"
        elif name in body["blocks"]:
            if not (whole and _is_expression(value)):
                yield from _blocks(body["blocks"][name], value, here, whole=whole)
        else:
            yield f"{here} is no argument"
    for name, rule in (*body["attributes"].items(), *body["blocks"].items()):
        if rule.get("required") and given.get(name) is None:
            yield f"{at}.{name} is required"


def _blocks(rule: Document, value: Any, at: str, *, whole: bool) -> Iterator[str]:
    if rule["nesting"] == "single":
        items = [value]
    elif isinstance(value, list):
        items = value
    else:
        # Terraform reads one object as one block, but not as a list of one object
        items = [] if whole else [value]
        if whole:
            yield f"{at} is no list"
    if rule.get("required") and not items:
        yield f"{at} is required"
    for number, item in enumerate(items):
        if isinstance(item, dict):
            yield from _block(rule, item, f"{at}[{number}]", whole=whole)
        else:
            yield f"{at}[{number}] is no block"


def _fits(value: Any, kind: str) -> bool:
    if _is_expression(value):
        return True
    outer, _, inner = kind.partition("(")
    if outer in {"list", "map"}:
        items = value.values() if outer == "map" and isinstance(value, dict) else value
        return isinstance(value, {"list": list, "map": dict}[outer]) and all(_fits(item, inner[:-1]) for item in items)
    plain = {"string": (str,), "number": (int, float), "bool": (bool,)}.get(outer, ())
    return isinstance(value, plain) and isinstance(value, bool) == (outer == "bool")


def _is_expression(value: Any) -> bool:
    """One expression and nothing around it: it may become a value of any type."""
    return isinstance(value, str) and value.startswith("${") and value.endswith("}")
