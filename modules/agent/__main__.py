# ruff: noqa: PLC0415 - each part is imported when it is asked for
"""The node's program: `agent run`, `agent tunnel up|down|key`.  Exit codes of `errors`, or the job's own; log on stderr; a tunnel's result is one JSON line on stdout.

Imports a part only when it is asked for: the agent is there for as long as the job, and should weigh nothing.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from .errors import SYSTEM, USAGE, AgentError

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """With sysexits' code instead of argparse's 2."""
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; the exit code."""
    chosen = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        result: Any = chosen.run(chosen)
    except AgentError as error:
        sys.stderr.write(f"skyplan-agent: error: {error}\n")
        return error.code
    except OSError as error:
        sys.stderr.write(f"skyplan-agent: error: {error}\n")
        return SYSTEM
    except KeyboardInterrupt:
        sys.stderr.write("skyplan-agent: interrupted\n")
        return 130
    if isinstance(result, int) and not isinstance(result, bool):
        return result
    sys.stdout.write((result if isinstance(result, str) else json.dumps(result, sort_keys=True)) + "\n")
    return 0


def _interrupt(_number: int, _frame: Any) -> NoReturn:
    raise KeyboardInterrupt  # what was begun is taken down again on the way out


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="agent", description="The part of skyplan that runs on a node.")
    parts = parser.add_subparsers(metavar="PART", required=True, parser_class=_Parser)
    _run_parser(parts)
    about = "The WireGuard tunnel of a job that spans clouds."
    verbs = parts.add_parser("tunnel", help=about, description=about).add_subparsers(
        metavar="VERB", required=True, parser_class=_Parser
    )
    up = verbs.add_parser("up", help="Bring it up, prove it, write the environment for the job.")
    up.add_argument("--config", required=True, metavar="FILE")
    up.set_defaults(run=_up)
    down = verbs.add_parser("down", help="Take it down; nothing to do is no error.")
    down.add_argument("--config", required=True, metavar="FILE")
    down.add_argument("--forget-key", action="store_true", help="Remove the private key too.")
    down.set_defaults(run=_down)
    key = verbs.add_parser("key", help="Make the key, if there is none, and print its public half.")
    key.add_argument("--interface", default="wg0", metavar="NAME")
    key.add_argument("--run-folder", default="/run/skyplan", metavar="FOLDER")
    key.set_defaults(run=_key)
    return parser


def _run_parser(parts: Any) -> None:
    about = "Run a job: start it, report on it, ask it for checkpoints, end the node after it."
    run = parts.add_parser("run", help=about, description=about)
    how = run.add_mutually_exclusive_group(required=True)
    how.add_argument("--config", metavar="FILE", help="This node's agent.json.")
    how.add_argument("--local", action="store_true", help="On this machine, without control plane, root or cloud.")
    run.add_argument("--job", metavar="NAME", help="With --local: the job's name (this folder's).")
    run.add_argument("--folder", default=".skyplan/agent", metavar="FOLDER", help="With --local: where everything is.")
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="The job.")
    run.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    from . import thrift

    thrift.once_more()
    from . import run, settings

    command = chosen.command[1:] if chosen.command[:1] == ["--"] else chosen.command
    if not command:
        raise AgentError(USAGE, "no command is given: agent run … -- COMMAND")
    if chosen.local:
        from .local import local

        found = local(chosen.folder, chosen.job)
    elif chosen.job:
        raise AgentError(USAGE, "--job is for --local; a node's job is in its agent.json")
    else:
        found = settings.read(chosen.config)
    return run.Run(found, command, told=run.to_stderr).go()


def _up(chosen: argparse.Namespace) -> dict[str, Any]:
    from . import config, tunnel

    return tunnel.up(config.read(chosen.config))


def _down(chosen: argparse.Namespace) -> dict[str, bool]:
    from . import config, tunnel

    return {"removed": tunnel.down(config.read(chosen.config), forget_key=chosen.forget_key)}


def _key(chosen: argparse.Namespace) -> str:
    from . import config
    from .key import public_key

    if not config.is_interface(chosen.interface):
        raise AgentError(USAGE, f"`{chosen.interface}` is no name of an interface")
    return public_key(chosen.run_folder, chosen.interface)


if __name__ == "__main__":
    sys.exit(main())
