"""The configuration of `agent run`: `agent.json`, all problems told at once (exit 78).  Holds no secret: a one-time token is a file of its own.

    {"project": "acme", "job": "train", "generation": 3, "rank": 0, "nodes": 2, "cloud": "aws", "region": "us-east-1", "account": "111122223333",
     "instance_id": "i-0abc", "control_plane": {"url": "https://plane.example", "ca_file": "/etc/skyplan/ca.pem"}, "broker": {"url": …},
     "checkpoint": {"uri": "s3://acme-ckpt/train/", "folder": "/scratch/checkpoints"},
     "stores": [{"uri": "s3://acme-data/", "access": "read", "reach": "platform"}],
     "stop_after_hours": 24, "end": ["shutdown", "-h", "+1"]}

`project` and `job` alone are required.  `generation`, `rank`, `nodes`, `instance_id` that are null or absent come from SKYPLAN_GENERATION, SKYPLAN_RANK,
SKYPLAN_NODES, SKYPLAN_INSTANCE_ID.  `checkpoint.uri` is the job's prefix, without `g<generation>/`.  Optional besides: control_plane.audience and broker.audience
(their url), token_file (a one-time token, for a node set up by hand), state_folder (/var/lib/skyplan/agent: must outlive a reboot), run_folder
(/run/skyplan/agent), environment_file (KEY=value lines for the job), interruption.grace_seconds (30: from SIGTERM to SIGKILL), spool_mib (64),
wait_seconds (300: for the last reports, at the end), heartbeat_seconds (10),
report_seconds (5: progress, output and heartbeats wait so long for one another; the rest is told at once), log (true: the job's output is reported too, the newest of it),
terminal (false: it is shown as well), stores[].region and stores[].endpoint, checkpoint.keep (none: local checkpoints are left alone).
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit

from .errors import CONFIG, AgentError
from .fields import JOB, Fields, is_absolute, is_url

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BYTES = 1 << 20
CLOUDS = ("aws", "gcp", "azure", "nebius")
MAX_NODES = 4096
_LAST_GENERATION = 999_999_999
_STORE = re.compile(r"(s3|gs|az|nebius)://[^\s\x00-\x1f]+/|file:///[^\x00-\x1f]*/", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z0-9._:/@-]{1,256}", re.ASCII)
_FIELDS = frozenset(
    {
        *(
            "project",
            "job",
            "generation",
            "rank",
            "nodes",
            "cloud",
            "region",
            "account",
            "instance_id",
            "control_plane",
        ),
        *(
            "broker",
            "checkpoint",
            "stores",
            "stop_after_hours",
            "state_folder",
            "run_folder",
            "end",
            "environment_file",
        ),
        *(
            "interruption",
            "spool_mib",
            "wait_seconds",
            "heartbeat_seconds",
            "report_seconds",
            "log",
            "terminal",
            "token_file",
        ),
    }
)
_SERVICE_FIELDS = frozenset({"url", "ca_file", "audience"})
_STORE_FIELDS = frozenset({"uri", "access", "reach", "region", "endpoint"})


class Seat(NamedTuple):
    """A node's place in a job: one rank of one generation."""

    project: str
    job: str
    generation: int
    rank: int
    nodes: int

    @property
    def run(self) -> str:
        """`train-g3`."""
        return f"{self.job}-g{self.generation}"


class Service(NamedTuple):
    """The control plane, or the broker.  `audience` is whom this node's proofs name."""

    url: str
    ca_file: str | None
    audience: str


class Store(NamedTuple):
    """A prefix that the job reads or writes.  `reach`: `platform` (the node's own identity), `federation`, or `broker` (leases)."""

    uri: str
    access: str
    reach: str
    region: str | None = None
    endpoint: str | None = None


class Checkpoints(NamedTuple):
    """Where checkpoints lie: the job's prefix in a store, and the folder on this node."""

    uri: str
    folder: str
    keep: int | None = None


class Settings(NamedTuple):
    """One node's part of a job."""

    seat: Seat
    cloud: str
    region: str
    account: str
    instance_id: str
    control_plane: Service | None
    broker: Service | None
    checkpoint: Checkpoints | None
    stores: tuple[Store, ...]
    stop_after_hours: float | None
    state_folder: str
    run_folder: str
    end: tuple[str, ...]
    environment_file: str | None
    grace_seconds: float
    spool_bytes: int
    wait_seconds: float
    heartbeat_seconds: float
    report_seconds: float
    log: bool
    terminal: bool
    token_file: str | None


def read(path: str, environment: Mapping[str, str] | None = None) -> Settings:
    """The settings of a file.  Raises AgentError."""
    try:
        with Path(path).open("rb") as opened:
            document = json.loads(opened.read(MAX_BYTES))
    except (OSError, ValueError) as error:
        raise AgentError(CONFIG, f"the configuration cannot be read: {error}") from error
    return parse(document, os.environ if environment is None else environment)


def parse(document: Any, environment: Mapping[str, str]) -> Settings:
    """The settings of a document.  Raises AgentError with every problem."""
    if not isinstance(document, dict):
        raise AgentError(CONFIG, "the configuration must be a JSON object")
    filled = _filled(cast("dict[str, Any]", document), environment)
    fields = Fields(filled, "")
    fields.only(_FIELDS)
    plane, broker = _service(fields, "control_plane"), _service(fields, "broker")
    state = fields.text("state_folder", is_absolute, "an absolute path", "/var/lib/skyplan/agent")
    seat = Seat(
        project=fields.text("project", JOB.fullmatch, "the project's name"),
        job=fields.text("job", JOB.fullmatch, "the job's name"),
        generation=fields.whole("generation", 1, _LAST_GENERATION, None),
        rank=fields.whole("rank", 0, MAX_NODES - 1, 0),
        nodes=fields.whole("nodes", 1, MAX_NODES, 1),
    )
    if seat.rank >= seat.nodes:
        fields.wrong.append(f"`rank` is {seat.rank} of {seat.nodes} nodes")
    settings = Settings(
        seat=seat,
        cloud=fields.text("cloud", CLOUDS.__contains__, "one of " + ", ".join(CLOUDS), ""),
        region=fields.text("region", _PLAIN.fullmatch, "a region's name", ""),
        account=fields.text("account", _PLAIN.fullmatch, "an account's name", ""),
        instance_id=fields.text("instance_id", _PLAIN.fullmatch, "this machine's id", ""),
        control_plane=plane,
        broker=broker,
        checkpoint=_checkpoint(fields),
        stores=_stores(fields),
        stop_after_hours=_hours(fields),
        state_folder=state,
        run_folder=fields.text("run_folder", is_absolute, "an absolute path", "/run/skyplan/agent"),
        end=_words(fields, "end"),
        environment_file=fields.optional("environment_file", is_absolute, "an absolute path"),
        grace_seconds=_grace(fields),
        spool_bytes=fields.whole("spool_mib", 4, 1 << 20, 64) << 20,
        wait_seconds=fields.seconds("wait_seconds", 300),
        heartbeat_seconds=fields.seconds("heartbeat_seconds", 10),
        report_seconds=fields.seconds("report_seconds", 5),
        log=_flag(fields, "log", default=True),
        terminal=_flag(fields, "terminal", default=False),
        token_file=fields.optional("token_file", is_absolute, "an absolute path"),
    )
    if plane and not settings.cloud and not settings.token_file:
        fields.wrong.append("a node proves itself by its `cloud`, or by a one-time token in `token_file`: give one")
    if not plane and any(store.reach == "broker" for store in settings.stores) and not broker:
        fields.wrong.append("a store is reached by the broker, and `broker` is not given")
    if fields.wrong:
        raise AgentError(CONFIG, "the configuration is wrong: " + "; ".join(fields.wrong))
    return settings


def _filled(document: dict[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """With what the file leaves to the environment: a launch template is one text for all nodes and generations.  Null is absent."""
    filled = {name: value for name, value in document.items() if value is not None}
    for name in ("generation", "rank", "nodes"):
        said = environment.get("SKYPLAN_" + name.upper(), "")
        if name not in filled and said:
            filled[name] = int(said) if re.fullmatch(r"[0-9]{1,9}", said, re.ASCII) else said
    said = environment.get("SKYPLAN_INSTANCE_ID", "")
    if said and "instance_id" not in filled:
        filled["instance_id"] = said
    return filled


def _inner(fields: Fields, name: str, names: frozenset[str]) -> Fields | None:
    document = fields.document.get(name)
    if document is None:
        return None
    if not isinstance(document, dict):
        fields.wrong.append(f"`{name}` must be an object")
        return None
    inner = Fields({k: v for k, v in cast("dict[str, Any]", document).items() if v is not None}, name + ".")
    inner.only(names)
    return inner


def _service(fields: Fields, name: str) -> Service | None:
    inner = _inner(fields, name, _SERVICE_FIELDS)
    if inner is None:
        return None
    url = inner.text("url", _is_safe_url, "an https address (http on loopback only), such as https://plane.example")
    service = Service(
        url=url.rstrip("/"),
        ca_file=inner.optional("ca_file", is_absolute, "an absolute path"),
        audience=inner.text("audience", str.isprintable, "whom a proof names", url.rstrip("/")),
    )
    fields.wrong.extend(inner.wrong)
    return service


def _is_safe_url(text: str) -> bool:
    """Sessions and proofs go there: never in clear over a network."""
    return is_url(text) and (
        urlsplit(text).scheme == "https" or urlsplit(text).hostname in {"127.0.0.1", "::1", "localhost"}
    )


def _checkpoint(fields: Fields) -> Checkpoints | None:
    inner = _inner(fields, "checkpoint", frozenset({"uri", "folder", "keep"}))
    if inner is None:
        return None
    found = Checkpoints(
        uri=inner.text("uri", _STORE.fullmatch, "a prefix such as s3://bucket/train/, with a / at its end"),
        folder=inner.text("folder", is_absolute, "an absolute path"),
        keep=inner.whole("keep", 1, 1 << 20, None) if "keep" in inner.document else None,
    )
    fields.wrong.extend(inner.wrong)
    return found


def _stores(fields: Fields) -> tuple[Store, ...]:
    rows = fields.document.get("stores", [])
    if not isinstance(rows, list):
        fields.wrong.append("`stores` must be a list")
        return ()
    found: list[Store] = []
    for at, row in enumerate(cast("list[Any]", rows)):
        if not isinstance(row, dict):
            fields.wrong.append(f"`stores[{at}]` must be an object")
            continue
        inner = Fields({k: v for k, v in cast("dict[str, Any]", row).items() if v is not None}, f"stores[{at}].")
        inner.only(_STORE_FIELDS)
        found.append(
            Store(
                uri=inner.text("uri", _STORE.fullmatch, "a prefix such as s3://bucket/data/, with a / at its end"),
                access=inner.text("access", {"read", "write"}.__contains__, "`read` or `write`"),
                reach=inner.text(
                    "reach",
                    {"platform", "federation", "broker"}.__contains__,
                    "`platform`, `federation` or `broker`",
                    "platform",
                ),
                region=inner.optional("region", _PLAIN.fullmatch, "a region's name"),
                endpoint=inner.optional("endpoint", is_url, "an address"),
            )
        )
        fields.wrong.extend(inner.wrong)
    return tuple(found)


def _hours(fields: Fields) -> float | None:
    value = fields.document.get("stop_after_hours")
    if value is None:
        return None
    if type(value) in {int, float} and 0 < value <= 24 * 366:
        return float(value)
    fields.wrong.append("`stop_after_hours` must be a number of hours, at most a year")
    return None


def _grace(fields: Fields) -> float:
    inner = _inner(fields, "interruption", frozenset({"grace_seconds"}))
    if inner is None:
        return 30.0
    seconds = inner.seconds("grace_seconds", 30)
    fields.wrong.extend(inner.wrong)
    return seconds


def _flag(fields: Fields, name: str, *, default: bool) -> bool:
    value = fields.document.get(name, default)
    if not isinstance(value, bool):
        fields.wrong.append(f"`{name}` must be true or false")
    return value is True


def _words(fields: Fields, name: str) -> tuple[str, ...]:
    value = fields.document.get(name, [])
    if isinstance(value, list):
        words = cast("list[Any]", value)
        if all(isinstance(w, str) and "\0" not in w for w in words):
            return tuple(cast("list[str]", words))
    fields.wrong.append(f"`{name}` must be a command: a list of strings")
    return ()
