"""AWS on the loopback: moto with what it lacks for our stacks, on a free port.

    python strict_moto.py [--port-file FILE] [--port N]

Prints `listening on PORT` and writes PORT to FILE once it serves.  Ends with the process that started it.  Besides moto's own
`POST /moto-api/reset` there are `POST /strict/reclaim/REGION/INSTANCE`, EC2 takes a spot instance back, and
`POST /strict/launch/REGION`, what type, zone and market a RunInstances form amounts to, and `POST /strict/judged` and `/strict/judged/clear`, what access
control was asked and answered so far.
What is corrected stands in `moto_fixes/`, one file per subject.
"""

import argparse
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID
from moto.core.exceptions import ServiceException
from moto.ec2.models import ec2_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from moto_fixes import access, images, launch, market, network, placement
from werkzeug.serving import make_server

ONE_AT_A_TIME = threading.Lock()
Reply = tuple[str, list[tuple[str, str]], list[bytes]]


class Application(DomainDispatcherApplication):
    """moto's application, and the few things that happen to a cloud without anyone calling its API.  `replies` by invocation id."""

    def __init__(self, create_app: Any) -> None:
        super().__init__(create_app)
        self.replies: dict[str, Reply] = {}

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        question = strict(environ)
        if question is not None:
            return answer(start_response, *question)
        if (reply := market.answered(environ)) is not None:
            start_response(*reply[:2])
            return reply[2]
        # moto's backends are plain dicts: two requests at once can fail half done, and the provider's retry then meets its own first try
        with ONE_AT_A_TIME:
            status, headers, body = self._once(environ, super().__call__)
        start_response(status, headers)
        return body

    def _once(self, environ: dict[str, Any], call: Any) -> Reply:
        """A reply, the same one for a request that an SDK sends again under one invocation id.

        An SDK does that when a reply was lost on its way.  On a loopback that is the doing of this machine, seen once in some thousand calls under load; it
        must not make a resource twice.  What was refused is judged anew.
        """
        attempt = environ.get("HTTP_AMZ_SDK_INVOCATION_ID", "")
        if attempt in self.replies:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            return self.replies[attempt]
        said: list[Any] = []
        body = list(call(environ, lambda status, headers, exc_info=None: said.extend((status, headers))))
        reply = (said[0], said[1], body)
        if attempt and said[0].startswith("2"):
            self.replies[attempt] = reply
        return reply


def strict(environ: dict[str, Any]) -> tuple[Any, ...] | None:
    """What is asked of the emulator itself, and with what; None for a call of AWS' API."""

    def given() -> Any:
        return json.loads(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))

    match environ.get("PATH_INFO", "").split("/"):
        case ["", "strict", "reclaim", region, instance]:
            question = (launch.reclaim, ec2_backends[DEFAULT_ACCOUNT_ID][region], instance)
        case ["", "strict", "launch", region]:
            question = (launch.summary, ec2_backends[DEFAULT_ACCOUNT_ID][region], given())
        case ["", "strict", "judged"]:
            question = (access.records,)
        case ["", "strict", "judged", "clear"]:
            question = (access.clear,)
        case ["", "strict", "market"]:
            question = (market.sell, given())
        case ["", "strict", "market", "calls"]:
            question = (market.calls,)
        case _:
            question = None
    return question


def answer(start_response: Any, question: Any, *arguments: Any) -> list[bytes]:
    try:
        body = json.dumps(question(*arguments))
    except ServiceException as error:
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [str(error).encode()]
    start_response("200 OK", [("Content-Type", "application/json")])
    return [body.encode()]


def end_with_parent() -> None:
    """Leaves nothing running when the tests are killed."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", type=Path)
    arguments = parser.parse_args()
    for part in (placement, launch, access, images, network, market):
        part.install()
    server = make_server(
        "127.0.0.1", arguments.port, Application(create_backend_app), threaded=True, request_handler=MotoRequestHandler
    )
    os.environ["MOTO_PORT"] = str(server.server_port)
    threading.Thread(target=end_with_parent, daemon=True).start()
    if arguments.port_file:
        written = arguments.port_file.with_suffix(".new")
        written.write_text(str(server.server_port))
        written.rename(arguments.port_file)
    sys.stdout.write(f"listening on {server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
