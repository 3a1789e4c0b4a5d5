"""Every command with its arguments, options, defaults and examples, out of the command line itself.

Decides the pages' form.  Says nothing of its own about a command: what is missing here is missing in its `--help`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
from site_markdown import cell, code, page, table

from planner.cli import help_text
from planner.cli.entry import COMMANDS, main
from planner.cli.examples import EXAMPLES

PREFIX = "SKYPLAN"


def commands() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All commands with the words that call them: (`state`, `backup`)."""

    def below(group: click.Group, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
        context = click.Context(group)
        for name in group.list_commands(context):
            found = group.get_command(context, name)
            if found is None:
                continue
            yield (*path, name), found
            if isinstance(found, click.Group):
                yield from below(found, (*path, name))

    return below(main, ())


def variables() -> dict[str, list[tuple[str, str]]]:
    """Environment variable -> the (command, option) that it sets."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path, command in commands():
        for option in command.params:
            if isinstance(option, click.Option):
                for name in _variables(path, option):
                    found.setdefault(name, []).append((" ".join(path), option.opts[-1]))
    return found


def pages() -> dict[str, str]:
    """Path under the docs folder -> text: one page a command, and the list of them."""
    tree: dict[str, list[tuple[tuple[str, ...], click.Command]]] = {}
    for path, command in commands():
        tree.setdefault(path[0], []).append((path, command))
    made = {f"reference/commands/{name}.md": _page(name, below) for name, below in tree.items()}
    rows = [(f"[`skyplan {name}`]({name}.md)", cell(COMMANDS[name][1])) for name in tree]
    made["reference/commands/index.md"] = page(
        "Commands",
        "Made from the program at build; `skyplan COMMAND --help` says the same. Data goes to stdout, everything else to stderr.",
        "",
        *table(("command", "what it does"), rows),
        "## Exit codes",
        "",
        "0 done, or nothing to review · 1 an error · 2 where asked for (`--detailed-exitcode`, `--fail-on`): there is something to review · 130 interrupted.",
        "What a command adds to this stands on its page.",
        "",
        "## Options by environment",
        "",
        "Every option can be set by a variable too: `SKYPLAN_` + the command + the option, as in `SKYPLAN_PLAN_TOP=5`. Options that several commands share have a shorter name as well: [Environment](../environment.md).",
    )
    return made


def _page(name: str, below: list[tuple[tuple[str, ...], click.Command]]) -> str:
    lines: list[str] = []
    for path, command in below:
        if len(path) > 1:
            lines += [f"## skyplan {' '.join(path)}", ""]
        lines += _command(path, command)
    return page(f"skyplan {name}", *lines)


def _command(path: tuple[str, ...], command: click.Command) -> list[str]:
    context = click.Context(command, info_name=" ".join(("skyplan", *path)))
    lines = ["```text", " ".join(command.get_usage(context).removeprefix("Usage: ").split()), "```", ""]
    lines += [*_prose(command.help or ""), ""]
    if isinstance(command, click.Group):
        rows = [
            (f"[`{n}`](#skyplan-{'-'.join((*path, n))})", cell(c.get_short_help_str(200)))
            for n in command.list_commands(context)
            if (c := command.get_command(context, n)) is not None
        ]
        return lines + table(("command", "what it does"), rows)
    options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
    if options:
        rows = [(_names(o), cell(_sentence(o)), code(_default(o, context))) for o in options]
        lines += table(("option", "what it does", "default"), rows)
    called = click.Context(command, info_name=path[-1], auto_envvar_prefix="_".join((PREFIX, *path)).upper())
    named = " ".join(path)
    for title, head, found in (
        ("Exit codes", "code", help_text.exit_codes(command, named)),
        ("Environment", "variable", help_text.environment(command, named, called)),
        ("Files", "file", help_text.files(command, named)),
    ):
        if found:
            lines += [f"**{title}**", "", *table((head, "what it says"), [(code(n), cell(says)) for n, says in found])]
    return lines + _examples(path)


def _examples(path: tuple[str, ...]) -> list[str]:
    found = EXAMPLES.get(" ".join(path), ())
    if not found:
        return []
    lines = ["**Examples**", "", "```sh"]
    for example in found:
        lines += [f"# {example.what}", f"skyplan {example.line}", ""]
    return [*lines[:-1], "```", ""]


def _prose(text: str) -> list[str]:
    """Help is plain text: paragraphs, and lists that were kept from being re-flowed."""
    lines = [line.strip() for line in text.replace("\f", "\n").splitlines()]
    shown: list[str] = []
    kept = False
    for line in lines:
        if line == "\b":
            kept = True
            shown.append("```text")
        elif kept and not line:
            kept = False
            shown += ["```", ""]
        else:
            shown.append(line if kept else re.sub(r"<(?=[A-Za-z])", "&lt;", line))
    return shown + ["```"] * kept


def _names(option: click.Option) -> str:
    named = ", ".join([*option.opts, *option.secondary_opts])
    if option.is_flag or option.count:
        return f"`{named}`"
    return code(f"{named} {option.make_metavar(click.Context(click.Command('skyplan')))}")


def _sentence(option: click.Option) -> str:
    parts = [option.help or ""]
    if option.multiple and not re.search("Repeatable|several times", option.help or ""):
        parts.append("May be given several times.")
    if option.required:
        parts.append("Required.")
    return " ".join(p for p in parts if p)


def _default(option: click.Option, context: click.Context) -> object:
    value = option.get_default(context, call=False)
    if option.is_flag or option.multiple or value is None or callable(value) or repr(value).startswith("Sentinel"):
        return None
    return value


def _variables(path: tuple[str, ...], option: click.Option) -> list[str]:
    own = option.envvar
    if own is None:
        named = "_".join((PREFIX, *path, option.name or "")).upper().replace("-", "_")
        return [named] if option.allow_from_autoenv else []
    return [own] if isinstance(own, str) else list(own)
