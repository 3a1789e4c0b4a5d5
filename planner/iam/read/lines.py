"""Where in a JSON text each thing stands.  Only places: what the text means is the JSON parser's to say."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\],:]|\n')
#: keys deeper than this are in no resource's head
_DEPTH = 8

Path = tuple[str | int, ...]


def line_index(text: str) -> Mapping[Path, int]:
    """Line, from 1, of every key and every element of a list, by its path; `("resource", "aws_iam_role", "node")`."""
    found: dict[Path, int] = {}
    line, stack = 1, _Stack()
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign == "\n":
            line += 1
        elif sign in "{[":
            stack.opened(found, line, is_list=sign == "[")
        elif sign in "}]":
            stack.closed()
        elif sign == ",":
            stack.following()
        elif sign != ":":
            stack.text(found, line, sign)
    return found


class _Stack:
    """The path at a place of the text."""

    def __init__(self) -> None:
        self._kinds: list[bool] = []
        self._path: list[str | int] = []
        self._wants_key = False

    def opened(self, found: dict[Path, int], line: int, *, is_list: bool) -> None:
        if self._kinds and self._kinds[-1]:
            self._note(found, line)
        self._kinds.append(is_list)
        self._path.append(0 if is_list else "")
        self._wants_key = not is_list

    def closed(self) -> None:
        if self._kinds:
            self._kinds.pop()
            self._path.pop()
        self._wants_key = False

    def following(self) -> None:
        if not self._kinds:
            return
        last = self._path[-1]
        if isinstance(last, int):
            self._path[-1] = last + 1
        else:
            self._wants_key = True

    def text(self, found: dict[Path, int], line: int, quoted: str) -> None:
        if self._wants_key and self._kinds:
            self._path[-1] = quoted[1:-1]
            self._wants_key = False
            self._note(found, line)

    def _note(self, found: dict[Path, int], line: int) -> None:
        if len(self._path) <= _DEPTH:
            found.setdefault(tuple(self._path), line)
