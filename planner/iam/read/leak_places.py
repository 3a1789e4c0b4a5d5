"""Where in a plan or a state something was found: by the resource's address, which stays when others come and go, not by its number in a list.

What a plan has twice, as it is and as it will be, is then one place.  Decides nothing about what was found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_SHOWN = re.compile(r"^\.(?:values|change\.(?:before|after))(?=\.|$)")
_STORED = re.compile(r"^\.instances\[(\d+)\](?:\.attributes)?(?=\.|$)")


def addressed(document: Mapping[str, Any], path: str) -> str:
    """`planned_values.root_module.resources[3].values.user_data` is `aws_instance.x.user_data`; any other path is itself."""
    at: Any = document
    for step in _STEP.finditer(path):
        if step[2] is None:
            at = cast("Mapping[str, Any]", at).get(step[1]) if isinstance(at, Mapping) else None
        else:
            held = cast("list[Any]", at) if isinstance(at, list) else []
            at = held[int(step[2])] if int(step[2]) < len(held) else None
        if isinstance(at, Mapping) and (address := _address(cast("Mapping[str, Any]", at), path[step.end() :])):
            return address
    return path


def _address(held: Mapping[str, Any], rest: str) -> str:
    """Of a resource, with what follows in it; "" where it is none."""
    if isinstance(held.get("address"), str) and ("values" in held or "change" in held):
        return held["address"] + _SHOWN.sub("", rest)
    stored = _STORED.match(rest)
    if stored is None or not isinstance(held.get("instances"), list):
        return ""
    instance: Any = held["instances"][int(stored[1])]
    index = cast("Mapping[str, Any]", instance).get("index_key") if isinstance(instance, Mapping) else None
    return stored_address(held, index) + rest[stored.end() :]


def stored_address(held: Mapping[str, Any], index: Any) -> str:
    """Of an instance in a state file, which writes addresses in parts."""
    mode, kind, name, module = (str(held.get(key) or "") for key in ("mode", "type", "name", "module"))
    at = "" if index is None else f'["{index}"]' if isinstance(index, str) else f"[{index}]"
    return f"{f'{module}.' if module else ''}{'data.' if mode == 'data' else ''}{kind}.{name}{at}"
