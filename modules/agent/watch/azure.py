"""Azure's Scheduled Events: `Preempt` at least 30 seconds before a spot machine is taken; `Terminate`, `Reboot` and `Redeploy` minutes before.

A `Freeze` keeps the memory and lasts seconds: no notice.  Events name the machines that they are about, others of the same set among them.  Nothing is
acknowledged: that would only bring the moment nearer.  The service begins with the first question, which may take two minutes (Microsoft: Scheduled Events
for Linux, 2026-11).  Never run on a live machine.
"""

from __future__ import annotations

import json
from typing import Any, cast

from ..proofs import metadata  # noqa: TID252 - packed, there is no `modules` above
from ..proofs.metadata import NoAnswer  # noqa: TID252
from .times import from_http

API = "2020-07-01"
SECONDS = 10.0
_WHAT = {"Preempt": "spot", "Terminate": "maintenance", "Reboot": "maintenance", "Redeploy": "maintenance"}
_OVER = frozenset({"Completed", "Canceled"})


class AzureWatcher:
    """Knows its machine's name from the first answer on; until then every event might be about it."""

    def __init__(self) -> None:
        self._name = ""

    def poll(self) -> dict[str, Any] | None:
        """See the package."""
        self._name = self._name or metadata.azure("instance/compute/name?api-version=2021-02-01&format=text").strip()
        text = metadata.azure(f"scheduledevents?api-version={API}", seconds=SECONDS)
        try:
            events = cast("list[dict[str, Any]]", json.loads(text)["Events"])
            notices = [_notice(event) for event in events if self._mine(event)]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise NoAnswer("scheduledevents") from None
        # a spot machine's end first, then what comes soonest; what has begun has no time any more
        return min(notices, key=lambda one: (one["what"] != "spot", one["deadline"] or ""), default=None)

    def _mine(self, event: dict[str, Any]) -> bool:
        named = [str(name).lower() for name in cast("list[Any]", event.get("Resources") or [])]
        about_me = not named or self._name.lower() in named
        return about_me and event.get("EventType") in _WHAT and event.get("EventStatus") not in _OVER


def _notice(event: dict[str, Any]) -> dict[str, Any]:
    return {"what": _WHAT[str(event["EventType"])], "deadline": from_http(str(event.get("NotBefore") or ""))}
