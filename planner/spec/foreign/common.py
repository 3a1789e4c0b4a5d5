"""What the importers share: options, names, environment, capacity, accelerators that stand for work.

Decides how things that every tool says in its own way are written into the draft, and what is stated where a tool says nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from planner.model.diagnostic import Location
from planner.spec import units
from planner.spec.foreign.carried import Book, Part, Unsaid
from planner.spec.job import NAME
from planner.spec.parts import MAX_NODES
from planner.spec.secret import env_looks_secret, looks_secret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.spec.foreign.shelf import Shelf
    from planner.spec.foreign.writing import Draft

#: stated where nothing is said: a day of work, and data that fills a good part of an hour's transfer
HOURS: Final = 24.0
DATA_SIZE: Final = "100GB"
#: memory per GPU that is asked for where a script says only how many
LEAST_GB: Final = 16.0
MAX_HOURS: Final = units.MAX_HOURS
BY_REFERENCE: Final = "name it under `secrets` with a reference, such as HF_TOKEN: aws-secretsmanager://acme/hf"
_ENV: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
#: bash keeps these for itself
_SHELLS_OWN: Final = frozenset({"BASHOPTS", "BASH_VERSINFO", "EUID", "IFS", "PPID", "SHELLOPTS", "UID"})
_TAG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.:/=+@-]{0,127}", re.ASCII)
_RESERVED: Final = ("skyplan:", "aws:", "goog-", "azure", "microsoft", "windows")
_TAG_LENGTH: Final = 256
#: a name that ends like that holds a secret, whatever its value looks like
_SECRET: Final = re.compile(r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|PRIVATE_KEY)$", re.IGNORECASE)
#: a script's line that sets a variable to a word of its own
_SETS: Final = re.compile(r"""\s*(?:export\s+)?([A-Za-z_]\w*)=["']?([^\s"'$]+)["']?\s*(?:#.*)?$""", re.ASCII)
_SECRET_NAMES: Final = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|CREDENTIAL", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user adds to a file that does not say it.  `env` is what would be given at launch there."""

    hours: float | None = None
    work_model: str | None = None
    data_size: str | None = None
    gpu: str | None = None
    env: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Job:
    """A document being imported."""

    book: Book
    draft: Draft
    shelf: Shelf
    options: Options

    @property
    def nodes(self) -> int:
        """How many nodes the draft asks for."""
        return self.draft.value("resources.nodes") or 1

    def say(self, field_name: str, at: Location, stated: str, why: str) -> str:
        """Record that a field was not said, and return the TODO that stands beside it."""
        self.book.unsaid.append(Unsaid(field=field_name, at=at, stated=stated, why=why))
        return f"not said there: {field_name}; {why}"


def name(job: Job, part: Part | None, other: str, at: Location) -> None:
    """The job's name: theirs, made to fit; `other` where there is none."""
    text = part.scalar if part else None
    made = fitting(text or other)
    job.draft.put("name", made, part.at if part else at)
    if part is not None and text is None:
        part.leave("it is empty", f"the job is called {made} after its file")
    elif part is not None and made != text:
        part.change("name", f"made to fit a job's name: {made}")
    elif part is not None:
        part.carry("name")
    if text is None:
        job.say("name", at, made, "taken from the file's name")


def fitting(text: str) -> str:
    """A job name made of a text."""
    made = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    made = made if made[:1].isalpha() else f"job-{made}".rstrip("-")
    made = made[:40].rstrip("-")
    return made if re.fullmatch(NAME, made, re.ASCII) else f"job-{made}"[:40]


def nodes(job: Job, part: Part | None) -> None:
    """How many nodes."""
    if part is None:
        return
    try:
        count = units.integer((part.scalar or "").strip(), 1, MAX_NODES)
    except units.Malformed as problem:
        part.refuse(f"`{part.path}`: {part.shown} {problem}", problem.hint)
        return
    part.carry("resources.nodes")
    job.draft.put("resources.nodes", count, part.at)


def env_value(env: dict[str, str], part: Part, variable: str, text: str | None) -> None:
    """One variable of the environment into `env`, or a reason why not."""
    if not _ENV.fullmatch(variable):
        part.refuse(f"`{part.path}` is no name of a variable", "letters, digits and `_`, such as EPOCHS")
    elif variable in _SHELLS_OWN:
        part.leave(f"the node's shell keeps {variable} for itself", "choose another name in the script")
    elif not text and _SECRET_NAMES.search(variable):
        part.leave("its value is given at launch there, and it is a secret by its name", BY_REFERENCE)
    elif text is None:
        part.leave(
            "its value is given at launch there", f"write `{variable}` under `env`, or import with --env {variable}=…"
        )
    elif env_looks_secret(variable, text) or (_SECRET.search(variable) and text and not text.isdigit()):
        part.leave("it holds a secret, by its name or its form", BY_REFERENCE)
    elif "\0" in text:
        part.refuse(f"`{part.path}` holds a NUL character", "take it out")
    elif variable in env and env[variable] != text:
        part.refuse(f"`{part.path}` is set twice", "keep one of them")
    else:
        env[variable] = text
        part.carry(f"env.{variable}")


def plain_variable(variable: str, text: str) -> bool:
    """It may stand under `env`."""
    usable = _ENV.fullmatch(variable) is not None and variable not in _SHELLS_OWN
    secret = env_looks_secret(variable, text) or (_SECRET.search(variable) is not None and not text.isdigit())
    return usable and not (secret and text) and "\0" not in text


def tags(job: Job, part: Part) -> None:
    """Labels become tags."""
    found: dict[str, str] = {}
    for key, label in part.entries().items():
        text = label.scalar if label.scalar is not None else ""
        if key.lower().startswith(_RESERVED) or not _TAG.fullmatch(key):
            label.leave("a tag cannot have that name here", "choose another name under `tags`")
        elif label.scalar is None or len(text) > _TAG_LENGTH or not text.isprintable() or env_looks_secret(key, text):
            label.leave("a tag cannot have that value here", "write another value under `tags`")
        else:
            found[key] = text
            label.carry(f"tags.{key}")
    if found:
        job.draft.put("tags", found, part.at)
    if not part.entries():
        part.leave("it names no label")


def _gives_away(line: str) -> bool:
    """It holds a credential, by its form or because it sets a variable whose name says so to what has a token's."""
    sets = _SETS.match(line)
    return looks_secret(line) or (sets is not None and env_looks_secret(sets[1], sets[2]))


def script(part: Part, text: str | None, numbers: Sequence[int] = ()) -> str | None:
    """A script's text, None with an error where it is none.  `numbers` are the file's lines of its lines, where they do not follow its key's."""
    if text is None or not text.strip():
        return None
    lines = text.split("\n")
    found = next((at for at, line in enumerate(lines) if _gives_away(line)), None)
    if found is not None or looks_secret(text):
        below = len(lines) > 1 and found is not None
        line = (
            (numbers[found] if numbers else part.at.line + 1 + found) if below and found is not None else part.at.line
        )
        part.book.taken.update(part.leaves())
        why = f"`{part.path}` holds what looks like a secret"
        hint = f"skyplan never holds secrets: {BY_REFERENCE}"
        part.book.error(Location(part.at.file, line, 1), why, hint, "SKY-SPEC-111")
        return None
    if "\0" in text:
        part.refuse(f"`{part.path}` holds a NUL character", "take it out")
        return None
    return text


def work(job: Job, at: Location, on: str | None, limit_hours: float | None = None, *, of_many: bool = False) -> None:
    """`work`: the hours that were given, else a statement marked TODO; on the hardware that is asked for first, marked too where it is one `of_many`."""
    options, draft = job.options, job.draft
    if options.hours is not None:
        draft.put("work.hours", options.hours, at)
    else:
        half = limit_hours is not None and limit_hours / 2 < HOURS
        stated = round(limit_hours / 2, 4) if half and limit_hours is not None else HOURS
        why = "half of the time limit is stated" if half else f"{HOURS:g} hours are assumed"
        draft.put(
            "work.hours",
            stated,
            at,
            job.say("work.hours", at, f"{stated:g}", f"{why}: say how long it takes (--hours)"),
        )
    if options.work_model:
        draft.put("work.on", options.work_model, at)
    elif on is not None:
        why = f"hours are counted on {on}: name the GPU you know the time of (--work-model)"
        draft.put("work.on", on, at, job.say("work.on", at, on, why) if of_many else "")


def work_on_memory(job: Job, at: Location, least_gb: float, count: int) -> None:
    """`work.on` where the file names a memory and no model: a well-known model that has it."""
    if job.options.work_model:
        return
    model = job.shelf.usual(least_gb)
    if model is None:
        job.book.error(at, f"no GPU in the catalog has {least_gb:g} GB", "ask for less memory per GPU", "SKY-SPEC-106")
        return
    on = f"{model}:{count}"
    why = f"hours are counted on {on}: name the GPU you know the time of (--work-model)"
    job.draft.put("work.on", on, at, job.say("work.on", at, on, why))


def no_gpu(job: Job, at: Location) -> None:
    """The document asks for CPUs only."""
    hint = "skyplan's catalog holds GPU machines only: run this where it runs now, or name a GPU for it"
    job.book.error(at, f"this {job.book.tool} file asks for no GPU", hint, "SKY-SPEC-103")
