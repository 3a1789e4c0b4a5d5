"""Terraform on one stack: a work folder, the commands skyplan needs, and their answers as values.  Imports no CDK; chooses nothing.

A folder belongs to one stack and holds `cdk.tf.json`, `skyplan.auto.tfvars.json` and what Terraform puts there; only with the local backend
does it hold the state, too.  Every failure is a TerraformError with Terraform's own words, whole.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from planner.model.diagnostic import Diagnostic, Severity
from planner.model.digest import digest, pretty
from planner.model.errors import TerraformError
from planner.model.project import Backend
from stacks import binary, process
from stacks.classify import CODES, classify_text
from stacks.events import Event, diagnostic, parse

LOCK_TIMEOUT = "60s"
STATE = "terraform.tfstate"
#: exit code of `plan -detailed-exitcode` where something would change
_CHANGES = 2
_LOCK = re.compile(r"^\s*(ID|Who|Created):\s*(.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateResource:
    """A managed resource in the state.  `key` is the for_each key, None without one."""

    type: str
    name: str
    key: str | None
    attributes: dict[str, Any]

    @property
    def address(self) -> str:
        """`aws_instance.node["r00"]`."""
        return f"{self.type}.{self.name}" + ("" if self.key is None else f'["{self.key}"]')


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """Who holds a state's lock, in Terraform's words."""

    id: str
    who: str
    created: str


class Terraform:
    """Terraform in one folder.  `cache`: where providers are kept for all folders; `command`: default as `stacks.binary` finds it."""

    def __init__(
        self,
        folder: Path,
        *,
        cache: Path | None = None,
        command: Sequence[str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder.resolve()
        self._cache = cache.resolve() if cache else None
        self._command = tuple(command) if command else None
        self._environment = dict(os.environ if environment is None else environment)

    # the work folder

    def write(self, document: Mapping[str, Any], variables: Mapping[str, Any]) -> None:
        """Put the stack and its variables into the folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "cdk.tf.json").write_bytes(pretty(document))
        (self.folder / "skyplan.auto.tfvars.json").write_bytes(pretty(variables))

    def init(self, backend: Backend, key: str, *, root: Path | None = None) -> None:
        """Initialise, backend included; nothing is done where the same was done before.  Raises TerraformError."""
        configured = backend_config(backend, key, root=root or self.folder)
        if dict(configured).get("path") == STATE:
            self._bring_back()
        document: Any = json.loads((self.folder / "cdk.tf.json").read_bytes())
        # a folder that was moved or copied points at the providers of the old one
        stamp = digest(
            [document.get("terraform"), list(configured), backend.kind, list(self.command), str(self.folder)]
        )
        mark = self.folder / ".terraform" / "skyplan.init"
        if mark.is_file() and mark.read_text(encoding="ascii") == stamp:
            return
        flags = [f"-backend-config={name}={value}" for name, value in configured]
        with self._cache_locked():
            self._run("init", "-input=false", "-no-color", "-reconfigure", *flags)
        mark.parent.mkdir(exist_ok=True)
        mark.write_text(stamp, encoding="ascii")

    def _bring_back(self) -> None:
        """The state, where it has no byte and its backup has.  Terraform itself leaves no such thing but where it was killed while it wrote.

        Until 2026-11-30 each `init` after the first emptied it (see `backend_config`): who applied then would have launched everything once more.
        """
        state, backup = self.folder / STATE, self.folder / f"{STATE}.backup"
        if state.is_file() and not state.stat().st_size and backup.is_file() and backup.stat().st_size:
            fresh = state.with_suffix(".new")
            shutil.copyfile(backup, fresh)
            fresh.replace(state)

    # changing things

    def plan(self, on_event: Callable[[Event], None] | None = None) -> bool:
        """Whether an apply would change anything.  Raises TerraformError."""
        done = self._events(
            "plan", "-detailed-exitcode", f"-lock-timeout={LOCK_TIMEOUT}", on_event=on_event, good=(0, _CHANGES)
        )
        return done.code == _CHANGES

    def apply(self, on_event: Callable[[Event], None] | None = None) -> None:
        """Make it real.  Raises TerraformError; what was made before the error is in the state."""
        self._events("apply", "-auto-approve", f"-lock-timeout={LOCK_TIMEOUT}", on_event=on_event)

    def refresh(self, on_event: Callable[[Event], None] | None = None) -> None:
        """Let the state learn what is there, changing nothing else.  Raises TerraformError."""
        self._events("apply", "-refresh-only", "-auto-approve", f"-lock-timeout={LOCK_TIMEOUT}", on_event=on_event)

    def destroy(self, on_event: Callable[[Event], None] | None = None) -> None:
        """End all that the state knows.  Raises TerraformError."""
        self._events("destroy", "-auto-approve", f"-lock-timeout={LOCK_TIMEOUT}", on_event=on_event)

    def import_resource(self, address: str, identity: str) -> None:
        """Take an existing thing into the state.  Raises TerraformError."""
        self._run("import", "-input=false", "-no-color", f"-lock-timeout={LOCK_TIMEOUT}", address, identity)

    def state_rm(self, address: str) -> None:
        """Let the state forget a thing, which stays.  Raises TerraformError."""
        self._run("state", "rm", f"-lock-timeout={LOCK_TIMEOUT}", address)

    # asking

    def validate(self) -> tuple[Diagnostic, ...]:
        """What Terraform finds wrong with the configuration, warnings included; needs `init`."""
        done = self._start("validate", "-json", "-no-color")
        found: Any = json.loads(done.out or "{}")
        return tuple(diagnostic(each) for each in found.get("diagnostics", []))

    def output(self) -> dict[str, Any]:
        """Output values; {} where nothing was applied yet.  Raises TerraformError."""
        found: Any = json.loads(self._run("output", "-json", "-no-color").out or "{}")
        return {name: each["value"] for name, each in found.items()}

    def show(self) -> tuple[StateResource, ...]:
        """The managed resources in the state, without starting a provider.  Raises TerraformError."""
        text = self._run("state", "pull").out.strip()
        state: Any = json.loads(text) if text else {}
        return tuple(
            StateResource(
                type=resource["type"],
                name=resource["name"],
                key=instance.get("index_key"),
                attributes=instance.get("attributes") or {},
            )
            for resource in cast("list[Any]", state.get("resources", []))
            if resource.get("mode") == "managed"
            for instance in resource.get("instances", [])
        )

    def state_list(self) -> tuple[str, ...]:
        """Addresses of the managed resources in the state.  Raises TerraformError."""
        return tuple(found.address for found in self.show())

    # after a crash

    def survivor(self) -> int | None:
        """Pid of a Terraform of this folder that outlived its parent."""
        return process.survivor(self.folder)

    def settle(self, *, patience: float = 600.0, grace: float = 60.0) -> bool:
        """Wait for a survivor, then interrupt it, then kill it.  True if there was one."""
        return process.settle(self.folder, patience=patience, grace=grace)

    def lock(self) -> Lock | None:
        """The lock on the state, if somebody holds it.  Asks by a plan that changes nothing."""
        done = self._start("plan", "-no-color", "-input=false", "-refresh=false", "-lock-timeout=0s")
        if done.code == 0 or "Error acquiring the state lock" not in done.err + done.out:
            return None
        words = dict(_LOCK.findall(done.err + done.out))
        return Lock(id=words.get("ID", ""), who=words.get("Who", ""), created=words.get("Created", ""))

    def force_unlock(self, lock_id: str) -> None:
        """Remove a lock; only where its holder is known to be dead.  Raises TerraformError."""
        self._run("force-unlock", "-force", lock_id)

    # the process

    @property
    def command(self) -> tuple[str, ...]:
        """The first words.  Raises MissingPart (SKY-APPLY-307)."""
        if self._command is None:
            self._command = binary.find(self._environment)
        return self._command

    def _start(self, *arguments: str, on_line: Callable[[str], None] | None = None) -> process.Finished:
        if pid := self.survivor():
            busy = f"a Terraform that an earlier skyplan started is still at work here (pid {pid})"
            raise TerraformError([Diagnostic(code="SKY-APPLY-314", summary=busy)])
        own = {
            "TF_IN_AUTOMATION": "1",
            "TF_INPUT": "0",
            "CHECKPOINT_DISABLE": "1",
            "TF_DATA_DIR": str(self.folder / ".terraform"),
        }
        if self._cache:
            self._cache.mkdir(parents=True, exist_ok=True)
            own["TF_PLUGIN_CACHE_DIR"] = self._environment.get("TF_PLUGIN_CACHE_DIR", str(self._cache))
            own["TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE"] = "1"
        # arguments from outside would change what the reviewed plan does
        inherited = {name: value for name, value in self._environment.items() if not name.startswith("TF_CLI_ARGS")}
        words = (*self.command, *arguments)
        return process.run(words, folder=self.folder, environment={**inherited, **own}, on_line=on_line)

    def _run(self, *arguments: str) -> process.Finished:
        """A command whose output is for people.  Raises TerraformError."""
        done = self._start(*arguments)
        if done.code != 0:
            output = (done.out + done.err).strip()
            code = CODES[classify_text(output)[0]]
            raise TerraformError([Diagnostic(code=code, summary=output or f"terraform {arguments[0]} failed")], output)
        return done

    def _events(
        self, *arguments: str, on_event: Callable[[Event], None] | None, good: tuple[int, ...] = (0,)
    ) -> process.Finished:
        """A command that reports as JSON lines.  Raises TerraformError with every diagnostic."""
        problems: list[Diagnostic] = []

        def take(line: str) -> None:
            found = parse(line)
            if isinstance(found, Diagnostic):
                problems.append(found)
            elif found is not None and on_event:
                on_event(found)

        first, *more = arguments
        done = self._start(first, "-json", "-input=false", "-no-color", *more, on_line=take)
        if done.code not in good:
            errors = [found for found in problems if found.severity is Severity.ERROR]
            output = _readable(done.out) + done.err
            last = output.strip() or f"terraform {first} ended with code {done.code}"
            raise TerraformError(errors or [Diagnostic(code=CODES[classify_text(last)[0]], summary=last)], output)
        return done

    @contextmanager
    def _cache_locked(self) -> Generator[None]:
        """Terraform's plugin cache is not safe for two at once."""
        if self._cache is None:
            yield
            return
        self._cache.mkdir(parents=True, exist_ok=True)
        with (self._cache / ".lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def backend_config(backend: Backend, key: str, *, root: Path) -> tuple[tuple[str, str], ...]:
    """What `init` is told of the backend.  `key` is the state's place in it; a `path`, `key` or `prefix` of the user's goes before it.

    The local backend keeps the state in the work folder, or under the user's `path`, relative to `root`.  In the work folder it is named as Terraform does
    by default: it takes the same file under any other name for another one, "migrates" it onto itself and empties it (1.11.4).
    """
    settings = dict(backend.settings)
    match backend.kind:
        case "local":
            base = settings.pop("path", "")
            settings["path"] = str(root / base / key) if base else STATE
        case "gcs":
            settings["prefix"] = _joined(settings.get("prefix", ""), key.removesuffix(".tfstate"))
        case "s3":
            settings["key"] = _joined(settings.get("key", ""), key)
            if "dynamodb_table" not in settings:
                settings.setdefault("use_lockfile", "true")
        case _:
            settings["key"] = _joined(settings.get("key", ""), key)
    return tuple(sorted(settings.items()))


def _joined(before: str, key: str) -> str:
    return f"{before.strip('/')}/{key}" if before.strip("/") else key


def _readable(lines: str) -> str:
    """Terraform's JSON lines as the text a person would have seen."""
    out: list[str] = []
    for line in lines.splitlines():
        try:
            said: Any = json.loads(line)
            out.append(str(said["@message"]))
        except (ValueError, KeyError, TypeError):
            out.append(line)
            continue
        if detail := said.get("diagnostic", {}).get("detail"):
            out.append(str(detail))
    return "".join(f"{line}\n" for line in out)
