"""Asking the people's identity provider: JSON objects over the same bounded way out that proofs are judged with.  Decides nothing about what they mean."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

from planner.model.errors import Unavailable
from planner.server.identity import Asked, Fetch

_OK = 200


class Unanswered(Exception):
    """No usable answer.  Its words hold neither what was sent nor what came back."""


class Outbound:
    """JSON over `fetch`."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def get(self, url: str) -> dict[str, Any]:
        """A JSON object.  Raises Unanswered."""
        return self._ask(Asked(url=url, headers={"Accept": "application/json"}))

    def post(self, url: str, form: Mapping[str, str]) -> dict[str, Any]:
        """Send a form, get a JSON object.  Raises Unanswered."""
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        return self._ask(Asked(url=url, method="POST", headers=headers, body=urlencode(form).encode()))

    def _ask(self, asked: Asked) -> dict[str, Any]:
        host = urlsplit(asked.url).hostname
        try:
            answer = self._fetch(asked)
        except Unavailable:
            raise Unanswered(f"{host} does not answer") from None
        if answer.status != _OK:
            raise Unanswered(f"{host} answered {answer.status}")
        try:
            found = json.loads(answer.body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise Unanswered(f"{host} answered no JSON object")
        return cast("dict[str, Any]", found)
