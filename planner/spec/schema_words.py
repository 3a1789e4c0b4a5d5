"""The words both published schemas are written in: sizes, durations, patterns, references.

Decides the form of each as JSON Schema (draft 2020-12).  A schema is for editors and for other programs; it says what has the right form.
What exists and what contradicts what, only the parser knows, and the parser never reads the schema.
"""

from __future__ import annotations

from typing import Any, Final

from planner.spec.secret import STORES

Schema = dict[str, Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
SIZE: Final[Schema] = {
    "type": "string",
    "description": "A size with its unit: GB is 10^9 bytes, GiB is 2^30. A trailing `+` (at least) may be written.",
    "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*([KkMmGgTtPp][Ii]?)?[Bb]\s*\+?\s*$",
    "examples": ["500GB", "500GiB+"],
}
DURATION: Final[Schema] = {
    "type": "string",
    "description": "A duration with its units: w, d, h, m, s.",
    "pattern": r"^\s*([0-9]+(\.[0-9]+)?\s*[wdhms]\s*)+$",
    "examples": ["30m", "48h", "1d12h"],
}
MONEY: Final[Schema] = {
    "description": "US dollars, above 0.",
    "anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": r"^\$?[0-9]+(\.[0-9]+)?$"}],
    "examples": [60, 2000],
}
CLOUD: Final[Schema] = {"enum": ["aws", "gcp", "azure", "nebius"], "description": "A cloud."}
PATTERN: Final[Schema] = {
    "type": "string",
    "description": "A name or a glob with `*` and `?`.",
    "pattern": r"^[A-Za-z0-9._*?/-]{1,64}$",
    "examples": ["us-*", "p5.48xlarge"],
}
URI: Final[Schema] = {
    "type": "string",
    "description": "A data location, without credentials: s3://, gs://, az://account/container, nebius://.",
    "pattern": r"^(s3|gs|nebius|az)://[^?]+$",
    "examples": ["s3://acme-corpus/llama/", "az://acmeml/corpus/llama/"],
}
REFERENCE: Final[Schema] = {
    "type": "string",
    "description": "A reference to a secret, never its value; the node fetches it.",
    "pattern": f"^({'|'.join(STORES)})://.+$",
    "examples": list(STORES.values()),
}
STRINGS: Final[Schema] = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number", "boolean"]},
}


def record(description: str, required: tuple[str, ...], **properties: Schema) -> Schema:
    """An object with these fields and no others."""
    made: Schema = {
        "type": "object",
        "description": description,
        "properties": properties,
        "additionalProperties": False,
    }
    return made | ({"required": list(required)} if required else {})


def listed(item: Schema, description: str) -> Schema:
    """A list that is not empty, or its one item."""
    return {"description": description, "anyOf": [item, {"type": "array", "items": item, "minItems": 1}]}


def text(description: str, *examples: str, pattern: str = "") -> Schema:
    """A text that is not empty."""
    made: Schema = {"type": "string", "description": description, "minLength": 1}
    return made | ({"examples": list(examples)} if examples else {}) | ({"pattern": pattern} if pattern else {})


def word(description: str, *examples: str, pattern: str) -> Schema:
    """A short name; one of digits alone YAML reads as a number."""
    return text(description, *examples, pattern=pattern) | {"type": ["string", "integer"]}


def whole(description: str, low: int, high: int) -> Schema:
    """A whole number."""
    return {"type": "integer", "description": description, "minimum": low, "maximum": high}


def nullable(schema: Schema) -> Schema:
    """`null` and an empty value mean "not said" in every field that may be absent."""
    return {"description": schema.get("description", ""), "anyOf": [schema, {"type": "null"}]}


def optional(schema: Schema) -> Schema:
    """The record with `null` admitted in every field that is not required, at every depth."""
    made = dict(schema)
    for key in ("anyOf", "oneOf"):
        if key in made:
            made[key] = [optional(one) for one in made[key]]
    if "items" in made:
        made["items"] = optional(made["items"])
    if "properties" in made:
        required = made.get("required", ())
        made["properties"] = {
            name: optional(one) if name in required else nullable(optional(one))
            for name, one in made["properties"].items()
        }
    return made


def limits() -> dict[str, Schema]:
    """The limits that jobs and projects share."""
    return {
        "deadline": DURATION | {"description": "Finished this long after the first apply."},
        "stop_after": DURATION
        | {"description": "The hard end: so long after its boot a node powers itself off.  The earlier one holds."},
        "max_usd_per_hour": MONEY | {"description": "The job's price per hour, all nodes, in US dollars."},
        "max_usd_total": MONEY | {"description": "The job's expected total cost in US dollars."},
        "clouds": listed(CLOUD, "Clouds that may be used; absent means all."),
        "regions": listed(PATTERN, "Regions that may be used, as globs; absent means all."),
        "instance_types": listed(PATTERN, "Instance types that may be used, as globs; absent means all."),
    }
