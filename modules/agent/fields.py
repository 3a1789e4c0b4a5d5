"""Fields of a configuration: taken out one by one, all problems kept, so that they are told at once."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

JOB = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)


def is_absolute(text: str) -> bool:
    """A path that does not depend on where one is."""
    return text.startswith("/") and "\n" not in text and "\0" not in text


def is_url(text: str) -> bool:
    """`https://host[:port]`, or `http://`: a service, with nothing after it."""
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        return False
    bare = not (url.username or url.password or url.query or url.fragment) and url.path in {"", "/"}
    return bare and url.scheme in {"http", "https"} and bool(url.hostname) and port != 0 and text.isprintable()


class Fields:
    """Takes fields out of a document and collects what is wrong with them."""

    def __init__(self, document: Any, where: str) -> None:
        self.document = document
        self.wrong: list[str] = []
        self._where = where

    def only(self, names: frozenset[str]) -> None:
        """Nothing else is there."""
        self.wrong += [f"`{self._where}{name}` is no field" for name in sorted(set(self.document) - names)]

    def text(self, name: str, good: Any, what: str, default: str | None = None) -> str:
        """A string that is `good`, or "" and a complaint."""
        value = self.document.get(name, default)
        if isinstance(value, str) and (good(value) or (value == default and name not in self.document)):
            return value
        self.wrong.append(f"`{self._where}{name}` must be {what}")
        return ""

    def optional(self, name: str, good: Any, what: str) -> str | None:
        """A string that is `good`, or None where it is absent or null."""
        if self.document.get(name) is None:
            return None
        return self.text(name, good, what)

    def whole(self, name: str, least: int, most: int, default: int | None) -> int:
        """An integer within bounds, or the least and a complaint."""
        value = self.document.get(name, default)
        if type(value) is int and least <= value <= most:
            return value
        self.wrong.append(f"`{self._where}{name}` must be a whole number from {least} to {most}")
        return least

    def seconds(self, name: str, default: float) -> float:
        """A positive number up to a day."""
        value = self.document.get(name, default)
        if type(value) in {int, float} and 0 < value <= 24 * 3600:
            return float(value)
        self.wrong.append(f"`{self._where}{name}` must be a number of seconds, at most a day")
        return default
