"""What arguments are completed with: job files, plan files, job names, codes.  Imported only while a shell asks; reads names, no plan's content, and nothing heavy.

Whatever goes wrong here gives no completion and no word: a shell's line is no place for an error.  What is answered is put into that line as it stands, so a name
that a shell would read as more than a word is never answered: a repository's files may have any.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

import click
from click.shell_completion import CompletionItem

_MOST = 400
"""A folder of thousands of files is not listed whole at each key."""
_HEAD = 16_384
_SETTINGS = frozenset({"skyplan.yaml", "server.yaml", "broker.yaml"})
_PLAN, _DIFF = ".plan.json", ".diff.json"
_RECORD = Path(".skyplan/record.sqlite")

_WORD = re.compile(r"[\w./][\w./@+,-]*")
"""What every shell takes for one word, and for no option."""

Complete = Callable[[click.Context, str], list[CompletionItem]]


def job_files(ctx: click.Context, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001 - click's signature
    """YAML files that say `resources:`, here, in `jobs` and where the word points; else any file."""
    found = _files(incomplete, (".yaml", ".yml"), "jobs")
    return _or_files([path for path in found if path.name not in _SETTINGS and _is_job(path)], incomplete)


def plan_files(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Plan files, in --plans and where the word points; else any file."""
    return _or_files(_files(incomplete, (_PLAN,), str(_plans(ctx))), incomplete)


def diff_files(ctx: click.Context, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001 - click's signature
    """Migration diffs."""
    return _or_files(_files(incomplete, (_DIFF,), "migrations"), incomplete)


def either_files(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Jobs and plans."""
    both = [item for item in plan_files(ctx, incomplete) + job_files(ctx, incomplete) if item.type != "file"]
    return both or _or_files([], incomplete)


def job_names(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Of the record, where it is a file here, and of the plans."""
    names = {path.name.removesuffix(_PLAN) for path in _listed(_plans(ctx), (_PLAN,))} | _recorded()
    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete) and _WORD.fullmatch(name)]


def names_or_plans(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Job names, else plan files."""
    return job_names(ctx, incomplete) or plan_files(ctx, incomplete)


def subjects(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Codes by their beginning, in any case; else job files."""
    if incomplete and incomplete.upper().startswith("SKY-"[: len(incomplete)]):
        from planner.model.codes import CODES  # noqa: PLC0415 - of this argument alone

        wanted = incomplete.upper()
        return [CompletionItem(code.id, help=code.meaning) for code in CODES.values() if code.id.startswith(wanted)]
    return job_files(ctx, incomplete)


#: path of the command -> parameter -> what it is completed with
WHAT: dict[str, dict[str, Complete]] = {
    "plan": {"job_files": job_files},
    "report": {"paths": either_files},
    "diff": {"base_path": plan_files, "head_path": plan_files},
    "offers": {"job_file": job_files},
    "explain": {"subject": subjects},
    "synth": {"plan_files": plan_files},
    "apply": {"files": either_files},
    "migrate": {"file": diff_files, "job": job_names, "plan": plan_files},
    "sync": {"what": names_or_plans},
    "audit": {"paths": plan_files},
    **{key: {"jobs": job_names} for key in ("status", "reap", "destroy", "replan", "watch")},
    **{key: {"job": job_names} for key in ("logs", "events", "agent token")},
}


def attach(command: click.Command, path: str) -> None:
    """Give the command's parameters what they are completed with."""
    for param in command.params:
        complete = WHAT.get(path, {}).get(param.name or "")
        if complete is not None:
            vars(param)["shell_complete"] = complete


def _plans(ctx: click.Context) -> Path:
    return Path(ctx.params.get("plans_folder") or os.environ.get("SKYPLAN_PLANS") or "plans")


def _files(incomplete: str, suffixes: tuple[str, ...], usual: str) -> list[Path]:
    """In the folder that the word names, and, while it names none, in the usual one."""
    folder, _, start = incomplete.rpartition("/")
    here = Path(folder or ("/" if incomplete.startswith("/") else "."))
    found = [path for path in _listed(here, suffixes) if path.name.startswith(start)]
    if not folder:
        found += [path for path in _listed(Path(usual), suffixes) if str(path).startswith(incomplete)]
    return found


def _listed(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    try:
        return sorted(islice((p for p in folder.iterdir() if p.name.endswith(suffixes)), _MOST))
    except OSError:
        return []


def _is_job(path: Path) -> bool:
    try:
        if not path.is_file():  # a pipe would be waited for
            return False
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except (OSError, ValueError):
        return False
    return head.startswith(b"resources:") or b"\nresources:" in head


def _or_files(found: Iterable[Path], incomplete: str) -> list[CompletionItem]:
    """Where a name wants quotes, or nothing is found, the shell completes files itself."""
    names = [str(path) for path in found]
    if names and all(map(_WORD.fullmatch, names)):
        return [CompletionItem(name) for name in names]
    return [CompletionItem(incomplete if incomplete.isprintable() else "", type="file")]


def _recorded() -> set[str]:
    """A database elsewhere is not asked: that takes too long for a key."""
    if os.environ.get("SKYPLAN_DATABASE_URL") or not _RECORD.is_file():
        return set()
    import sqlite3  # noqa: PLC0415 - where there is a record
    from contextlib import closing  # noqa: PLC0415 - where there is a record

    try:
        with closing(sqlite3.connect(f"file:{_RECORD}?mode=ro", uri=True, timeout=0.2)) as database:
            return {str(row[0]) for row in database.execute("SELECT DISTINCT name FROM job LIMIT 500")}
    except sqlite3.Error:
        return set()
