"""What `--help` says beyond click's own: options in groups where they are many, exit codes, environment, files, examples.

Imported only when help is shown.  Exit codes and variables are read off the options themselves, so that they cannot say anything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planner.cli.examples import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterable

MANY = 10
"""With more options than this they are grouped."""
_INPUTS = frozenset({"project_file", "catalog", "plans_folder", "offline", "as_of", "settings", "valid_at"})
_OUTPUTS = frozenset(
    {
        *("as_json", "out", "form", "output", "markdown", "stacks_folder", "explain", "runners_up", "top", "quiet"),
        *("detailed_exitcode", "fail_on", "graph", "svg", "png", "theme", "plots", "step_summary", "tag", "show"),
        *("limit", "lines", "write", "kept"),
    }
)
_FAILING_WITH_2 = frozenset({"audit", "catalog check"})
#: variables that are no option's -> (what, commands that read them)
_RECORD = (
    *("plan", "explain", "apply", "migrate", "status", "logs", "events", "sync", "reap", "destroy", "replan", "watch"),
    *("serve", "broker", "state", "state export", "state import", "state backup", "agent token", "prices", "doctor"),
    *("prices refresh", "prices import", "prices history", "prices chart", "prices snapshot", "prices compact"),
    "report",
)
_TERRAFORM = ("apply", "migrate", "sync", "reap", "destroy", "watch", "doctor")
VARIABLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "SKYPLAN_DATABASE_URL": ("The record: a PostgreSQL URL [default: .skyplan/record.sqlite].", _RECORD),
    "SKYPLAN_TERRAFORM": ("The Terraform to run [default: terraform or tofu on PATH].", _TERRAFORM),
    "SKYPLAN_CDK": ("cdktf or cdktn, where both are installed.", ("synth", "plan", "apply", "migrate", "foundation")),
    "SKYPLAN_COOKIE_KEY": ("Keeps people signed in over a restart.", ("serve",)),
    "SKYPLAN_OIDC_CLIENT_SECRET": ("For issuers that want one.", ("serve",)),
}
_ALWAYS = ("NO_COLOR", "No colours, whatever the terminal.")
#: commands -> files that they read or write beside those that are named
_FILES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("apply", "migrate", "watch"),
        ".skyplan/work/",
        "Terraform's folders, one a stack; under the backend `local` its states too.",
    ),
    (_RECORD, ".skyplan/record.sqlite", "The record, where no database is named."),
    (("plan", "diff", "synth", "explain", "apply"), "plans/NAME.plan.json", "Plans that stand; `skyplan schema plan`."),
    (("replan", "migrate"), "migrations/NAME.diff.json", "Moves to review; `skyplan schema migration`."),
    (("serve",), "server.yaml", "Its settings; `skyplan schema server`."),
    (("broker",), "broker.yaml", "Its settings; `skyplan schema broker`."),
)
Rows = list[tuple[str, str]]


def write_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """The options, in groups where they are many."""
    params = command.get_params(ctx)
    rows = [
        (p.name or "", record)
        for p in params
        if isinstance(p, click.Option) and (record := p.get_help_record(ctx)) is not None
    ]
    groups: dict[str, Rows] = {"Options": []}
    if len(rows) > MANY:
        groups |= {"Inputs": [], "Output": []}
    for name, record in rows:
        kind = "Inputs" if name in _INPUTS else "Output" if name in _OUTPUTS else "Options"
        groups.get(kind, groups["Options"]).append(record)
    for title, records in groups.items():
        if records:
            with formatter.section(title):
                formatter.write_dl(records)


def write_rest(command: click.Command, path: str, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Exit codes, environment, files, examples."""
    for title, rows in (
        ("Exit codes", exit_codes(command, path)),
        ("Environment", environment(command, path, ctx)),
        ("Files", files(command, path)),
    ):
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)
    if path in EXAMPLES:
        with formatter.section("Examples"):
            for number, example in enumerate(EXAMPLES[path]):
                indent = " " * formatter.current_indent
                formatter.write("\n" if number else "")
                formatter.write(f"{indent}# {example.what}\n{indent}skyplan {example.line}\n")


def exit_codes(command: click.Command, path: str) -> Rows:
    """What a caller may rely on."""
    if isinstance(command, click.Group) and path:
        return []
    names = {p.name for p in command.params}
    rows: Rows = [("0", "Done."), ("1", "An error: it is told on stderr, with --json on stdout too.")]
    if path == "agent run":
        return [("N", "The job's own."), rows[1]]
    if path == "comment":
        return rows
    if "detailed_exitcode" in names:
        rows.append(("2", "With --detailed-exitcode: something would change, or is gone."))
    if "fail_on" in names and path in _FAILING_WITH_2:
        rows.append(("2", "Something is as bad as --fail-on says, or worse."))
    return [*rows, ("130", "Interrupted.")]


def environment(command: click.Command, path: str, ctx: click.Context) -> Rows:
    """Variables that the command reads, options' own first."""
    rows: Rows = []
    for param in command.params:
        if isinstance(param, click.Option) and param.envvar:
            names = [param.envvar] if isinstance(param.envvar, str) else list(param.envvar)
            rows += [(name, f"As {param.opts[-1]}.") for name in names]
    rows += [(name, what) for name, (what, paths) in VARIABLES.items() if path in paths]
    if path and ctx.auto_envvar_prefix and _plain_options(command):
        rows.append((f"{ctx.auto_envvar_prefix}_…", "Any other option: its name in capitals, `_` for `-`."))
    return [*rows, _ALWAYS]


def files(command: click.Command, path: str) -> Rows:
    """What it reads and writes beside what is named."""
    settings = any(p.name == "project_file" for p in command.params)
    rows = [("skyplan.yaml", "The project's settings; `skyplan schema project`.")] if settings else []
    return rows + [(file, what) for paths, file, what in _FILES if path in paths]


def _plain_options(command: click.Command) -> Iterable[click.Option]:
    return [p for p in command.params if isinstance(p, click.Option) and not p.envvar and p.name != "help"]
