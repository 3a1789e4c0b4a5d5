"""The independent judge: npm's @cloud-copilot/iam-simulate, of the version and hash in `package-lock.json`, asked for many requests at once.

`make` installs it beside the virtual environment (`npm ci` into `judges`); where there is no Node or it is not installed, `missing()` says so.  Its licence is
the AGPL: it runs as a process of its own, for tests only, and nothing of it is in this repository.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIBRARY = Path(sys.prefix) / "judges" / "node_modules" / "@cloud-copilot" / "iam-simulate" / "dist" / "esm" / "index.js"
SCRIPT = Path(__file__).with_name("simulate.mjs")


@dataclass(frozen=True)
class Simulated:
    """`decision` is iam-simulate's own word; `ignored`: context keys that it says do not belong to such a request; `error` where it would not judge."""

    decision: str
    ignored: tuple[str, ...] = ()
    error: str = ""

    @property
    def allowed(self) -> bool:
        return self.decision == "Allowed"


def missing() -> str | None:
    """Why it cannot be asked here; None if it can."""
    if shutil.which("node") is None:
        return "no Node: iam-simulate needs one"
    if not LIBRARY.is_file():
        return "iam-simulate is not installed: `make test` does it where npm is there (`npm ci` of tests/e2e/judges)"
    return None


def simulate(asked: Sequence[Mapping[str, Any]], account: str) -> list[Simulated]:
    """One answer per request: {principal, action, resource, context, policies: [{kind, name, document}]}.

    A resource that is still to be made is asked for by a made-up id, as `*` in a request would mean any.
    """
    lines: list[str] = []
    earlier: dict[str, int] = {}
    for number, one in enumerate(asked):
        held = json.dumps(one["policies"], sort_keys=True)
        first = earlier.setdefault(held, number)
        fields = {key: one[key] for key in ("principal", "action", "context")}
        resource = one["resource"] if one["resource"] == "*" else one["resource"].replace("/*", "/made")
        policies = one["policies"] if first == number else first
        lines.append(json.dumps({**fields, "account": account, "resource": resource, "policies": policies}))
    done = subprocess.run(
        ["node", SCRIPT, LIBRARY],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(lines)
    return [
        Simulated(a.get("decision", ""), tuple(a.get("ignored", ())), json.dumps(a["error"]) if "error" in a else "")
        for a in answers
    ]
