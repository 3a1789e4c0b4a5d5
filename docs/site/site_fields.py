"""The fields of job files and settings, and the formats that commands print, out of the published JSON Schemas.

Decides how a schema reads as a table.  The schemas themselves are served beside the pages, for editors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from site_markdown import cell, code, page, table

from planner.app.schemas import SUFFIX, published

Schema = dict[str, Any]

FILES = {
    "job": ("Job file", "jobs/*.yaml", "One document of a job file is one job."),
    "project": ("skyplan.yaml", "skyplan.yaml", "The project file: what the platform team decides for all jobs."),
    "server": ("server.yaml", "server.yaml", "The settings of `skyplan serve`."),
    "broker": ("broker.yaml", "broker.yaml", "The settings of `skyplan broker`."),
}
FORMATS = {
    "plan": "a plan file, `plans/NAME.plan.json`",
    "plans": "`skyplan plan --json`",
    "diff": "`skyplan diff --json`",
    "migration": "a migration diff, `migrations/NAME.diff.json`",
    "audit": "`skyplan audit --json`",
}


def pages() -> dict[str, str]:
    """Path under the docs folder -> text; the schemas as files among them."""
    schemas = published()
    made = {
        f"schemas/{name}{SUFFIX}": json.dumps(s, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        for name, s in schemas.items()
    }
    for name, (title, file, says) in FILES.items():
        made[f"reference/{name}.md"] = _fields_page(name, title, file, says, schemas[name])
    made["reference/formats.md"] = _formats_page(schemas)
    return made


def _fields_page(name: str, title: str, file: str, says: str, schema: Schema) -> str:
    lines = [
        says,
        "",
        f"Made from the published schema ([`{name}{SUFFIX}`](../schemas/{name}{SUFFIX}); `skyplan schema {name}` prints it).",
        "A schema says what has the right form; what exists and what contradicts what, the program says, at the line.",
        "",
        f"For completion in an editor, put this first in `{file}`, with the path of a copy:",
        "",
        "```yaml",
        f"# yaml-language-server: $schema=schemas/{name}{SUFFIX}",
        "```",
        "",
    ]
    rows = [(f"`{n}`", _kind(s), cell(_says(s, required=r)), _example(s)) for n, s, r in _fields(schema)]
    lines += table(("field", "type", "what it says", "example"), rows)
    for example in schema.get("examples", ()):
        lines += ["## Example", "", "```json", json.dumps(example, indent=2, ensure_ascii=False), "```", ""]
    return page(title, *lines, wide=True)


def _formats_page(schemas: dict[str, Schema]) -> str:
    rows = []
    for name, schema in schemas.items():
        what = FORMATS.get(name) or (f"`{FILES[name][1]}`" if name in FILES else code(schema.get("title", name)))
        rows.append((f"`{name}`", what, f"[{name}{SUFFIX}](../schemas/{name}{SUFFIX})"))
    lines = [
        "What `--json` prints and what is kept in files is versioned: `format_version`, `MAJOR.MINOR`. A new field raises MINOR; what a reader could stumble over raises MAJOR.",
        "",
        "`skyplan schema NAME` prints a schema, JSON Schema draft 2020-12.",
        "",
        *table(("name", "describes", "schema"), rows),
    ]
    for name, schema in schemas.items():
        if name in FILES:
            continue
        lines += [f"## {name}", "", cell(schema.get("description", "")), ""]
        shown = [(f"`{n}`", _kind(s), cell(_says(s, required=r))) for n, s, r in _fields(schema, depth=1)]
        lines += table(("field", "type", "what it says"), shown) if shown else []
    return page("JSON formats", *lines)


def _fields(
    schema: Schema, depth: int = 9, path: str = "", root: Schema | None = None
) -> Iterator[tuple[str, Schema, bool]]:
    """(dotted name, its schema, whether it must be there), in the schema's order; list items have `[]`."""
    root = root or schema
    for form, mark in _records(schema, root):
        for name, field in form.get("properties", {}).items():
            full = f"{path}{mark}.{name}".lstrip(".")
            yield full, _resolved(field, root), name in form.get("required", ())
            if depth > 1:
                yield from _fields(_resolved(field, root), depth - 1, full, root)


def _records(schema: Schema, root: Schema) -> Iterator[tuple[Schema, str]]:
    """The forms of a value that have fields: itself, one of several, or the items of a list that are written no other way."""
    seen: set[str] = set()
    for form in _forms(schema, root):
        inner = _resolved(form["items"], root) if form.get("type") == "array" and "items" in form else None
        found = [(form, "")] if "properties" in form else []
        found += [(f, "[]") for f in _forms(inner, root) if "properties" in f] if inner else []
        for one, mark in found:
            key = json.dumps(one["properties"], sort_keys=True)
            if key not in seen:
                seen.add(key)
                yield one, mark


def _forms(schema: Schema, root: Schema) -> list[Schema]:
    several = schema.get("anyOf") or schema.get("oneOf")
    if not several or "properties" in schema:
        return [schema]
    return [leaf for one in several for leaf in _forms(_resolved(one, root), root)]


def _resolved(schema: Schema, root: Schema) -> Schema:
    while "$ref" in schema:
        found: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = found | {k: v for k, v in schema.items() if k != "$ref"}
    return schema


def _kind(schema: Schema) -> str:
    """The type in words."""
    found: list[str] = []
    for form in _forms(schema, schema):
        if "enum" in form:
            found += [code(v) for v in form["enum"]]
        elif "const" in form:
            found.append(code(form["const"]))
        elif form.get("type") == "array":
            inner = form.get("items")
            found.append(f"list of {_kind(inner)}" if inner and "$ref" not in inner else "list")
        elif isinstance(form.get("type"), list):
            found += [t for t in form["type"] if t != "null"]
        elif form.get("type") != "null":
            found.append("fields" if "properties" in form else str(form.get("type", "any")))
    several = [f for f in found if f.startswith("list of ")]
    found = [f for f in found if f not in several]
    words = list(
        dict.fromkeys({"object": "mapping", "string": "text", "integer": "whole number"}.get(f, f) for f in found)
    )
    one = " or ".join(words)
    return " or ".join([one] * bool(one) + ["a list of them" if s == f"list of {one}" else s for s in several])


def _says(schema: Schema, *, required: bool) -> str:
    text = schema.get("description", "") or next(
        (f["description"] for f in _forms(schema, schema) if f.get("description")), ""
    )
    ends = [f for f in _forms(schema, schema) if "minimum" in f or "maximum" in f]
    if ends and {"minimum", "maximum"} <= ends[0].keys():
        text += f" {ends[0]['minimum']:,} to {ends[0]['maximum']:,}."
    return f"{text} Required." if required else text


def _example(schema: Schema) -> str:
    for form in [schema, *_forms(schema, schema)]:
        if form.get("examples"):
            return code(form["examples"][0])
    return ""
