"""The console script.  Kept free of every import that `--help` does not need.

Decides exit codes (0 done or no change, 1 error, 2 changes or findings where asked for, 130 interrupted) and how errors are shown.  Checks that the four
roots come from one folder: with PYTHONPATH=. a user's own `stacks/` would win over ours.
"""

from __future__ import annotations

import io
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from planner.model.errors import SkyplanError

HELP_NAMES = ("-h", "--help")

#: command -> (module, one-line help): the help is here so that listing commands imports none of them
COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("planner.cli.init_cmd", "Begin in an infrastructure repository"),
    "doctor": ("planner.cli.doctor_cmd", "Check programs, credentials, quotas, clock and record, and say what to do"),
    "plan": ("planner.cli.plan_cmd", "Rank every way of running the jobs and show the best"),
    "diff": ("planner.cli.diff_cmd", "Show what a change does to placements, money and rights"),
    "report": ("planner.cli.report_cmd", "Show plans and the market around them as one HTML file"),
    "comment": ("planner.cli.comment_cmd", "Post a diff or an audit on a pull request, or bring it up to date"),
    "offers": ("planner.cli.offers_cmd", "List the market for a request"),
    "explain": ("planner.cli.explain_cmd", "Say why this placement, why not that one, or what a code means"),
    "synth": ("planner.cli.synth_cmd", "Write a plan's stacks as Terraform, JSON or HCL"),
    "apply": ("planner.cli.apply_cmd", "Make a reviewed plan real through Terraform"),
    "migrate": ("planner.cli.migrate_cmd", "Move a job as a reviewed diff says"),
    "status": ("planner.cli.status_cmd", "Show what runs, where and at what price"),
    "logs": ("planner.cli.logs_cmd", "Show what a job printed"),
    "events": ("planner.cli.events_cmd", "Show what happened to a job"),
    "sync": ("planner.cli.sync_cmd", "Let the record learn what really runs"),
    "reap": ("planner.cli.reap_cmd", "End what should not be billed any more"),
    "destroy": ("planner.cli.destroy_cmd", "Stop a job and leave nothing behind"),
    "replan": ("planner.cli.replan_cmd", "Decide whether running jobs should move, and show each move as a diff"),
    "watch": ("planner.cli.watch_cmd", "Follow the markets: propose moves as they pay, or carry them out"),
    "replay": (
        "planner.cli.replay_cmd",
        "Replay recorded markets: what each policy would have cost, beside the least possible",
    ),
    "serve": ("planner.cli.serve_cmd", "Run the control plane that nodes report to"),
    "broker": ("planner.cli.broker_cmd", "Mint data credentials for the nodes of approved plans"),
    "rendezvous": ("planner.cli.rendezvous_cmd", "Let the nodes of a tunnel find each other"),
    "state": ("planner.cli.state_cmd", "Export, import and back up the record"),
    "agent": (
        "planner.cli.agent_cmd",
        "Run a job as a node would, here; pack the nodes' program; let a node in by hand",
    ),
    "audit": ("planner.cli.audit_cmd", "Find what grants too much, and show what a change widens"),
    "prices": ("planner.cli.prices_cmd", "Keep, import, show and draw what prices and capacity did"),
    "catalog": ("planner.cli.catalog_cmd", "Look at the packaged prices and check them"),
    "foundation": (
        "planner.cli.foundation_cmd",
        "Write the identities that plan, deploy, launch and mint in an account",
    ),
    "import": ("planner.cli.import_cmd", "Make job files of SkyPilot, dstack and Slurm files"),
    "schema": ("planner.cli.schema_cmd", "Print the JSON Schemas of what skyplan reads and writes"),
    "completion": ("planner.cli.completion_cmd", "Print the script by which a shell completes command lines"),
}


#: the variable by which a shell asks for completions
COMPLETE = "_SKYPLAN_COMPLETE"


class _ReaderGone(Exception):
    """Whoever read our output has enough (`| head`)."""


class LazyGroup(click.Group):
    """Imports a command's module only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """In the order of the table above."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import and return it."""
        if cmd_name not in COMMANDS:
            return None
        from importlib import import_module  # noqa: PLC0415 - only when a command runs

        command = import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)  # noqa: S101 - for the type checker
        return dressed(command, cmd_name)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """From the table, importing nothing."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only when a line is completed

        own = click.Command.shell_complete(self, ctx, incomplete)
        return own + [CompletionItem(n, help=text) for n, (_, text) in COMMANDS.items() if n.startswith(incomplete)]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Exit codes and examples."""
        from planner.cli.help_text import write_rest  # noqa: PLC0415 - only when help is shown

        write_rest(self, "", ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """With near misses for a mistyped command."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches  # noqa: PLC0415 - only on an error

            near = get_close_matches(args[0], COMMANDS, 3) if args else []
            hint = f" (did you mean {' or '.join(f'`{n}`' for n in near)}?)" if near else ""
            raise click.UsageError(f"no such command `{args[0] if args else ''}`{hint}", ctx) from error

    def invoke(self, ctx: click.Context) -> object:
        """Without click's own answer to a reader that went away, which is an error."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderGone from error

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """As all commands have them."""
        return help_names(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """From the table, importing nothing."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def help_names(_ctx: click.Context) -> list[str]:
    """Of every command."""
    return list(HELP_NAMES)


def dressed(command: click.Command, path: str) -> click.Command:
    """The command with all that its help says, and what its arguments are completed with; both are imported only when they are asked for."""
    if "format_epilog" in vars(command):
        return command

    def format_epilog(ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from planner.cli.help_text import write_rest  # noqa: PLC0415 - only when help is shown

        write_rest(command, path, ctx, formatter)

    def format_options(ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from planner.cli.help_text import write_options  # noqa: PLC0415 - only when help is shown

        write_options(command, ctx, formatter)

    # of itself, not of the context above it alone: click remembers the names that it was asked with first
    vars(command)["get_help_option_names"] = help_names
    # click has no hook for either; a base class of all commands would have to be named in every module
    vars(command)["format_epilog"] = format_epilog
    if isinstance(command, click.Group):
        inner = command.get_command

        def get_command(ctx: click.Context, name: str) -> click.Command | None:
            found = inner(ctx, name)
            return dressed(found, f"{path} {name}") if found else None

        vars(command)["get_command"] = get_command
    else:
        vars(command)["format_options"] = format_options
    if COMPLETE in os.environ:
        from planner.cli.completing import attach  # noqa: PLC0415 - only when a line is completed

        attach(command, path)
    return command


@click.group(cls=LazyGroup, context_settings={"max_content_width": 110})
@click.version_option(package_name="skyplan", prog_name="skyplan")
def main() -> None:
    """Plan GPU jobs over AWS, GCP, Azure and Nebius: ranked, explained, reviewed and applied as Terraform."""


def one_folder() -> str | None:
    """What is wrong with where our four roots would be imported from, or None."""
    folders: dict[str, Path] = {}
    for name in ("planner", "stacks", "modules", "catalog"):
        spec = find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            return f"the package `{name}` is missing from this installation"
        folders[name] = Path(next(iter(spec.submodule_search_locations))).resolve().parent
    strange = sorted(n for n, f in folders.items() if f != folders["planner"])
    if strange:
        return f"`{', '.join(strange)}` would be imported from another folder than skyplan's own; unset PYTHONPATH"
    return None


def run() -> None:
    """Run the command line and exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a sign shows `?`
    wrong = one_folder()
    if wrong:
        click.echo(f"error: {wrong}", err=True)
        sys.exit(1)
    sys.exit(call(sys.argv[1:]))


def call(args: list[str]) -> int:  # noqa: PLR0911 - one exit code per way out
    """Run with `args`; the exit code."""
    try:
        result = main.main(args=args, prog_name="skyplan", standalone_mode=False, auto_envvar_prefix="SKYPLAN")
    except click.exceptions.Exit as done:
        return int(done.exit_code)
    except click.Abort:
        click.echo("interrupted", err=True)
        return 130
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        return 130
    except click.ClickException as error:
        error.show()
        return 1
    except (BrokenPipeError, _ReaderGone):
        # the reader went away (`| head`); point stdout at nothing so that the interpreter's last flush is quiet
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # stdout cannot take it: a full disk
        click.echo(f"error: {error}", err=True)
        return 1
    except Exception as error:
        from planner.cli.extras import missing_part  # noqa: PLC0415 - only on an error
        from planner.model.errors import SkyplanError  # noqa: PLC0415

        shown = missing_part(error) if isinstance(error, ImportError) else error
        if not isinstance(shown, SkyplanError):
            raise
        show_error(shown, as_json="--json" in args)
        return 1
    return int(result) if isinstance(result, int) else 0


def show_error(error: SkyplanError, *, as_json: bool) -> None:
    """All diagnostics of an error: JSON on stdout where asked for, else text on stderr."""
    from planner.cli.view import paint_for  # noqa: PLC0415 - only on an error
    from planner.render import diagnostics  # noqa: PLC0415 - only on an error

    if as_json:
        import json  # noqa: PLC0415 - only on an error

        body = {"format_version": "1.0", "diagnostics": diagnostics.document(error.diagnostics)}
        click.echo(json.dumps(body, indent=2, sort_keys=True))
    paint = paint_for(sys.stderr)
    for line in diagnostics.lines(error.diagnostics, paint) or [f"{paint('error', 'bold', 'red')}: {error}"]:
        click.echo(line, err=True, color=paint.on)
    output = getattr(error, "output", "")
    if output:
        click.echo(output, err=True)
