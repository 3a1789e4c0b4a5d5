"""Every command and subcommand of the real command line, with its path."""

from __future__ import annotations

from collections.abc import Iterator

import click

from planner.cli.entry import main


def commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """(path, command, context); the path of `skyplan` itself is empty."""
    yield from _below(main, "", None)


def _below(
    command: click.Command, path: str, parent: click.Context | None
) -> Iterator[tuple[str, click.Command, click.Context]]:
    name = path.rpartition(" ")[2] or "skyplan"
    context = click.Context(
        command,
        info_name=name,
        parent=parent,
        auto_envvar_prefix=None if parent else "SKYPLAN",
        **({} if parent else command.context_settings),
    )
    yield path, command, context
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            yield from _below(found, f"{path} {inner}".strip(), context)
