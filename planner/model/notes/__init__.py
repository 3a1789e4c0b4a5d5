"""What `skyplan explain CODE` says beyond a code's meaning and hint, a module per family.  Texts only; loaded when they are asked for."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple


class Note(NamedTuple):
    """Of one code.

    where    commands, or what else, it appears in
    means    what is so, and why that is told
    do       what to do, most likely first
    example  a message of its kind, less its code: numbers and names are invented
    """

    where: str
    means: str
    do: str
    example: str


def note(code: str) -> Note | None:
    """Of a code; None where there is none (the rules of the audit have pages of their own).  Raises KeyError for what is no code's family."""
    family = FAMILIES[code.split("-")[1]]
    found: dict[str, Note] = import_module(f"planner.model.notes.{family}").NOTES
    return found.get(code)


FAMILIES = {
    "SPEC": "spec",
    "CAT": "cat",
    "REJ": "rej",
    "APPLY": "apply",
    "MOVE": "move",
    "RUN": "run",
    "IAM": "iam",
}
