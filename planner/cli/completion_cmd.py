"""`skyplan completion`: the script that a shell sources; what it then asks is answered by `planner.cli.completing`."""

from __future__ import annotations

import click


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script by which SHELL completes skyplan's commands, options, files, jobs and codes.

    Where it goes: of bash into ~/.local/share/bash-completion/completions/skyplan, of zsh as _skyplan into a folder of fpath, of fish
    into ~/.config/fish/completions/skyplan.fish.
    """
    from click.shell_completion import get_completion_class

    from planner.cli.entry import COMPLETE, main

    made = get_completion_class(shell)
    assert made is not None  # noqa: S101 - click has these three
    click.echo(made(main, {}, "skyplan", COMPLETE).source())
