"""Stands in for Terraform: notes how it was called, says what FAKE_SCRIPT (JSON) holds for the subcommand.

FAKE_SCRIPT: {SUBCOMMAND: {"out": [lines], "err": text, "code": int, "sleep": seconds, "on_interrupt": [lines]}}
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

script = json.loads(Path(os.environ["FAKE_SCRIPT"]).read_text())
words = [word for word in sys.argv[1:] if not word.startswith("-")]
said = script.get(" ".join(words[:2])) or script.get(words[0]) or {}
with Path("calls.jsonl").open("a") as calls:
    calls.write(
        json.dumps({"arguments": sys.argv[1:], "env": {k: v for k, v in os.environ.items() if "TF_" in k}}) + "\n"
    )


def say(lines):
    for line in lines:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def interrupted(*_):
    say(said.get("on_interrupt", []))
    sys.exit(said.get("interrupt_code", 1))


signal.signal(signal.SIGINT, interrupted if "on_interrupt" in said else signal.SIG_IGN)
say(said.get("out", []))
end = time.monotonic() + said.get("sleep", 0)
while time.monotonic() < end:
    time.sleep(0.02)
say(said.get("late", []))
sys.stderr.write(said.get("err", ""))
sys.exit(said.get("code", 0))
