"""What AWS documents of its actions: access level, resource types, condition keys.  Knows facts only; judges no policy.

An extract of the Service Authorization Reference (`data/aws_actions.json.gz`, made by `data/update.py`; its source and date stand in it, see
`source`).  Only the services that skyplan emits or that rules speak of are in it: `known` of another service's action is False, and `covers_service`
tells whether that means anything.  Loaded at the first question.
"""

from __future__ import annotations

import gzip
import json
import re
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final

from planner.iam.evaluate.patterns import glob

#: keys that the global list has, but that exist only where an action's own row names them
_BY_ACTION: Final = ("aws:requesttag/", "aws:resourcetag/", "aws:tagkeys")
#: AWS's own keys under a service's name: every request made with an instance profile's credentials carries them, to whatever service
_ACROSS_SERVICES: Final = frozenset({"ec2:sourceinstancearn", "ec2:roledelivery"})
#: EC2's table of resources names every key that any action knows of a type, not those of the action at hand
_ROWS_ARE_WHOLE: Final = frozenset({"ec2"})


@cache
def _document() -> dict[str, Any]:
    path = files("planner.iam").joinpath("data", "aws_actions.json.gz")
    return json.loads(gzip.decompress(path.read_bytes()))


@cache
def _names() -> dict[str, str]:
    """Every action as documented, by its name in lower case."""
    services: dict[str, Any] = _document()["services"]
    return {
        f"{service}:{name}".lower(): f"{service}:{name}"
        for service in services
        for name in services[service]["actions"]
    }


def source() -> str:
    """Where the extract is from, and its date."""
    return f"{_document()['source']}, {_document()['date']}"


def covers_service(service: str) -> bool:
    """Whether the extract has the service (`ec2`), so that an action of it that is not known does not exist."""
    return service.lower() in _document()["services"]


def known(action: str) -> bool:
    """Whether the action is documented, in any case of letters.  Takes no wildcard."""
    return action.lower() in _names()


def canonical(action: str) -> str:
    """The action as AWS writes it.  Raises KeyError for one that is not known."""
    return _names()[action.lower()]


@lru_cache(maxsize=16384)
def access_level(action: str) -> str:
    """`List`, `Read`, `Write`, `Tagging` or `Permissions management`.  Raises KeyError."""
    return str(_action(action)[0])


@lru_cache(maxsize=16384)
def resource_types(action: str) -> tuple[str, ...]:
    """Types of resource that the action is checked against, sorted; () where it takes only `*`.  Raises KeyError."""
    return tuple(sorted(kind for kind in _action(action)[1] if kind))


@lru_cache(maxsize=16384)
def required_resource_types(action: str) -> tuple[str, ...]:
    """Those of them without which a request is not complete.  Raises KeyError."""
    return tuple(sorted(kind for kind, row in _action(action)[1].items() if kind and row[0]))


def dependent_actions(action: str) -> tuple[str, ...]:
    """What the caller needs beside it, as documented.  Raises KeyError."""
    return tuple(_action(action)[2])


@lru_cache(maxsize=16384)
def condition_keys(action: str, resource_type: str | None = None) -> frozenset[str]:
    """Keys of the service that a request carries, as documented (`aws:ResourceTag/${TagKey}`); `resource_type` narrows them to one type.

    Keys that every request has are not in it (see `global_key`).  Raises KeyError for an action that is not known or that knows no such type.
    """
    rows: dict[str, Any] = _action(action)[1]
    if resource_type is not None and resource_type not in rows:
        raise KeyError(resource_type)
    service = action.partition(":")[0].lower()
    resources: dict[str, Any] = _document()["services"][service]["resources"]
    out: set[str] = set()
    for kind, row in rows.items():
        if kind and resource_type is not None and kind != resource_type:
            continue
        out.update(row[1])
        if service not in _ROWS_ARE_WHOLE and kind in resources:
            out.update(
                key for key in resources[kind][1] if not key.lower().startswith(("aws:requesttag", "aws:tagkeys"))
            )
    return frozenset(out)


@lru_cache(maxsize=16384)
def has_key(action: str, key: str, resource_type: str | None = None) -> bool:
    """Whether a request of that action can carry the condition key (`aws:ResourceTag/skyplan:project`).  Raises KeyError."""
    if global_key(key):
        return True
    return any(_key_form(form).fullmatch(key) for form in condition_keys(action, resource_type))


def global_key(key: str) -> bool:
    """Whether the key is one of AWS's own, of which most requests carry most; the tag keys are not: those exist where an action says so."""
    folded = key.lower()
    return folded in _ACROSS_SERVICES or (folded.startswith("aws:") and not folded.startswith(_BY_ACTION))


@lru_cache(maxsize=4096)
def _key_form(form: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\$\\\{[^}]*\\\}", ".+", re.escape(form)), re.IGNORECASE)


@lru_cache(maxsize=4096)
def expand(pattern: str) -> tuple[str, ...]:
    """Every known action that the pattern (`ec2:Describe*`, `*`) means, as AWS writes them, sorted."""
    if "*" not in pattern and "?" not in pattern:
        return (canonical(pattern),) if known(pattern) else ()
    form = re.compile(glob(pattern.lower()), re.DOTALL)
    return tuple(sorted(name for folded, name in _names().items() if form.fullmatch(folded)))


def arn_forms(service: str) -> dict[str, str]:
    """Form of the ARN of each resource type of a service: `{"instance": "arn:${Partition}:ec2:${Region}:…"}`.  Raises KeyError."""
    resources: dict[str, Any] = _document()["services"][service.lower()]["resources"]
    return {kind: str(row[0]) for kind, row in resources.items()}


def _action(action: str) -> list[Any]:
    service, _, name = canonical(action).partition(":")
    return _document()["services"][service]["actions"][name]
