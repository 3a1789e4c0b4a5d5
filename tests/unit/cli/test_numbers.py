"""What no option takes for a number, whatever command it belongs to."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from planner.cli.entry import COMMANDS, main
from planner.cli.numbers import Finite


def options_of(command: click.Command) -> Iterator[click.Parameter]:
    yield from command.params
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from options_of(found)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_that_is_a_number_has_an_end(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    loose = [p.name for p in options_of(command) if isinstance(p.type, click.FloatRange | type(click.FLOAT))]
    kept = [p.name for p in options_of(command) if isinstance(p.type, Finite)]
    assert sorted(map(str, loose)) == sorted(map(str, kept))


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400", "-1"])
def test_what_is_none_is_refused(value: str) -> None:
    @click.command
    @click.option("--hours", type=Finite(min=0))
    def hours(hours: float) -> None:
        click.echo(str(hours))

    found = CliRunner().invoke(hours, ["--hours", value])
    assert (found.exit_code, "Invalid value for '--hours'" in found.output) == (2, True)
    assert CliRunner().invoke(hours, ["--hours", "1.5"]).output == "1.5\n"
