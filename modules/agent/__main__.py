"""The node's program: `agent tunnel up|down|key`.  Result as one JSON line on stdout, log on stderr, exit codes of `errors`."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from . import config, tunnel
from .errors import USAGE, AgentError
from .key import public_key

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
    except KeyboardInterrupt:
        sys.stderr.write("skyplan-agent: interrupted\n")
        return 130
    sys.stdout.write((result if isinstance(result, str) else json.dumps(result, sort_keys=True)) + "\n")
    return 0


def _interrupt(_number: int, _frame: Any) -> NoReturn:
    raise KeyboardInterrupt  # what was begun is taken down again on the way out


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="agent", description="The part of skyplan that runs on a node.")
    parts = parser.add_subparsers(metavar="PART", required=True, parser_class=_Parser)
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


def _up(chosen: argparse.Namespace) -> dict[str, Any]:
    return tunnel.up(config.read(chosen.config))


def _down(chosen: argparse.Namespace) -> dict[str, bool]:
    return {"removed": tunnel.down(config.read(chosen.config), forget_key=chosen.forget_key)}


def _key(chosen: argparse.Namespace) -> str:
    if not config.is_interface(chosen.interface):
        raise AgentError(USAGE, f"`{chosen.interface}` is no name of an interface")
    return public_key(chosen.run_folder, chosen.interface)


if __name__ == "__main__":
    sys.exit(main())
