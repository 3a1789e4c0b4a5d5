"""The PlacementPlan: the one value that planning writes and applying, diffing and auditing read.

It is a pure function of its inputs, which it names by digest.  `to_document` gives JSON with every key in place; `from_document` reads it back and
raises InputError for what is not a plan or was edited (`digest` covers everything else in it).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Any, Final

from planner.model.diagnostic import Diagnostic, Location
from planner.model.digest import digest
from planner.model.errors import InputError
from planner.model.grants import Grant, grant_from
from planner.model.reach import DataPath, path_from

FORMAT_VERSION = "1.1"
METHOD = 3
"""Raised when scoring changes, so that `diff` can tell "the market moved" from "skyplan changed"."""
MIN_PRICE_STEP = Decimal("0.0001")
WAITS = "waits: "
"""How the first note of a waiting job's plan begins: the rest of it says why, with its code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTerm:
    """One part of a total.  `usd` None is unknown: the total is then a lower bound.  `detail` shows the numbers."""

    name: str
    usd: Decimal | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Caveat:
    """Something the reader should know about a placement."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A job bound to an offer: one entry of the ranked set.

    node_usd_per_hour   price of one node when the plan was made
    usd_per_hour        all nodes
    total_usd           expected cost to finish: the sum of the terms' rounded amounts
    lower_bound         a term is unknown
    compute_hours       expected hours of work on this hardware, stretched by its links, without interruptions
    finish_hours        expected hours from launch to result
    differs             how this type differs from what the job names as its reference
    addresses           private address by rank, () where the cloud assigns them
    placement_id        `p` and 10 hex digits: digest of what the stacks are made of, and of nothing else
    parts               of a job split over clouds by a tunnel: one placement per cloud, the head's first, with its own offer, `nodes` and
                        `first_rank`; the whole's own `nodes`, money and hours are over all parts, its other fields the first part's.  () = not split
    first_rank          of a part: the rank of its first node
    tunnel_addresses    of a split job: every rank's address inside the tunnel
    """

    rank: int
    offer_id: str
    pool: str
    target: str
    cloud: str
    region: str
    zone: str
    instance_type: str
    capacity: str
    nodes: int
    gpu: str
    gpu_count: int
    gpu_memory_gib: Decimal
    topology: str
    node_usd_per_hour: Decimal
    usd_per_hour: Decimal
    total_usd: Decimal
    lower_bound: bool
    compute_hours: Decimal
    finish_hours: Decimal
    terms: tuple[ScoreTerm, ...]
    caveats: tuple[Caveat, ...]
    differs: tuple[str, ...]
    addresses: tuple[str, ...]
    placement_id: str
    grants_digest: str
    price_as_of: str
    price_source: str
    reservation: str = ""
    parts: tuple[Placement, ...] = ()
    first_rank: int = 0
    tunnel_addresses: tuple[str, ...] = ()

    @property
    def pieces(self) -> tuple[Placement, ...]:
        """What is launched together: the parts, or the placement itself."""
        return self.parts or (self,)


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedCount:
    """How many offers fell for one reason, with up to three of them spelled out."""

    code: str
    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StackRef:
    """A stack that the choice needs.  `digest` is of its input, with the generation left open."""

    kind: str
    name: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStatus:
    """complete: every job part is placed · applyable: `apply` may run it · errored: something went wrong while planning."""

    complete: bool
    applyable: bool
    errored: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementPlan:
    """One job's plan.

    job        the normalised Workload as JSON (`planner.spec.normal`)
    inputs     catalog digest and date, as_of, method, ledger and availability digests, job and project digests
    ranked     best first; the only placements an apply may use; () where nothing is feasible, and where the job waits
    notes      why the choice won, in sentences: data locality, spreading, runner-up; of a waiting job why it waits
    grants     grants by digest, as the ranked entries name them
    access     how nodes reach each store, by `CLOUD:TARGET`
    """

    job: dict[str, Any]
    inputs: dict[str, Any]
    ranked: tuple[Placement, ...]
    rejected: tuple[RejectedCount, ...]
    notes: tuple[str, ...]
    grants: dict[str, tuple[Grant, ...]]
    stacks: tuple[StackRef, ...]
    status: PlanStatus
    access: dict[str, tuple[DataPath, ...]] = field(default_factory=dict[str, tuple[DataPath, ...]])

    @property
    def name(self) -> str:
        """The job's name."""
        return str(self.job["name"])

    @property
    def choice(self) -> Placement:
        """The best.  Raises IndexError where nothing is feasible."""
        return self.ranked[0]

    @property
    def waits(self) -> str:
        """Why the job waits, with the code; "" where it does not."""
        first = self.notes[0] if self.notes and not self.ranked else ""
        return first.removeprefix(WAITS) if first.startswith(WAITS) else ""

    @property
    def digest(self) -> str:
        """Over the whole document less the digest itself."""
        return str(to_document(self)["digest"])


#: names of these become parts of paths, of stacks' names and of addresses: from a stranger's plan too they are no more than names
_JOB: Final = re.compile(r"(?!.*--)[a-z][a-z0-9-]{0,38}[a-z0-9]", re.ASCII)
_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+ -]*", re.ASCII)
_WORDS: Final = ("target", "cloud", "region")
_STACK: Final = re.compile(r"[a-z][A-Za-z0-9.-]*", re.ASCII)
#: what JSON has for a field of a placement, by its annotation
_JSON: Final = {"int": int, "str": str, "bool": bool}
_PLAIN: Final = tuple((f.name, _JSON[str(f.type)]) for f in fields(Placement) if str(f.type) in _JSON)
_AMOUNTS: Final = tuple(f.name for f in fields(Placement) if f.type == "Decimal")


def _money(value: Decimal) -> str:
    return f"{value:.4f}"


def placement_document(p: Placement) -> dict[str, Any]:
    """JSON-ready, money and hours with four places."""
    out: dict[str, Any] = {name: getattr(p, name) for name in Placement.__slots__}
    for name in ("node_usd_per_hour", "usd_per_hour", "total_usd", "compute_hours", "finish_hours"):
        out[name] = _money(out[name])
    out["gpu_memory_gib"] = f"{p.gpu_memory_gib:f}"
    out["terms_usd"] = {t.name: None if t.usd is None else _money(t.usd) for t in p.terms}
    out["terms_detail"] = {t.name: t.detail for t in p.terms}
    out["caveats"] = [{"code": c.code, "text": c.text} for c in p.caveats]
    out["differs"], out["addresses"] = list(p.differs), list(p.addresses)
    out["tunnel_addresses"] = list(p.tunnel_addresses)
    # every part knows the same addresses; a plan says them once
    out["parts"] = [placement_document(replace(part, tunnel_addresses=())) for part in p.parts]
    for name in ("parts", "first_rank", "tunnel_addresses"):
        if not out[name]:
            del out[name]  # a plan that splits nothing says nothing of it
    del out["terms"]
    return out


def placement_from(d: dict[str, Any]) -> Placement:
    """The inverse of `placement_document`.  Raises KeyError, TypeError, ValueError, ArithmeticError on what is none."""
    values = dict(d)
    amounts, details = values.pop("terms_usd"), values.pop("terms_detail")
    for name, kind in _PLAIN:
        if name in values and type(values[name]) is not kind:
            raise TypeError(f"{name}: {values[name]!r}")
    for name in _WORDS:
        if not _WORD.fullmatch(values[name]):
            raise ValueError(f"{name}: {values[name]!r}")
    for name in _AMOUNTS:
        values[name] = _finite(values[name])
    values["terms"] = tuple(
        ScoreTerm(name=n, usd=None if v is None else _finite(v), detail=_text(details[n])) for n, v in amounts.items()
    )
    values["caveats"] = tuple(Caveat(code=_text(c["code"]), text=_text(c["text"])) for c in values["caveats"])
    for name in ("differs", "addresses", "tunnel_addresses"):
        values[name] = tuple(map(_text, values.get(name, ())))
    inside = values["tunnel_addresses"]
    values["parts"] = tuple(replace(placement_from(part), tunnel_addresses=inside) for part in values.get("parts", ()))
    return Placement(**values)


def _finite(given: Any) -> Decimal:
    found = Decimal(given)
    if not found.is_finite():
        raise ValueError(f"{given!r} is no amount")
    return found


def _text(given: Any) -> str:
    if type(given) is not str:
        raise TypeError(f"{given!r} is no text")
    return given


def _object(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise TypeError(f"{given!r} is no object")
    return dict(given)  # pyright: ignore[reportUnknownArgumentType]


def job_from(given: Any) -> dict[str, Any]:
    """A plan's job, as far as plans are told apart by it.  Raises KeyError, TypeError, ValueError on what is none."""
    job = _object(given)
    if not _JOB.fullmatch(_text(job["name"])):
        raise ValueError(f"`{job['name']}` is no job's name")
    return job


def inputs_from(given: Any) -> dict[str, Any]:
    """What a plan was made of.  Raises KeyError, TypeError on what is none."""
    made_of = _object(given)
    _text(_object(made_of["job"])["file"])
    _text(_object(made_of["job"])["digest"])
    return made_of


def stack_from(given: Any) -> StackRef:
    """Raises KeyError, TypeError, ValueError on what is none."""
    found = StackRef(**given)
    if not _STACK.fullmatch(_text(found.name)):
        raise ValueError(f"`{found.name}` is no stack's name")
    return found


def to_document(plan: PlacementPlan) -> dict[str, Any]:
    """JSON-ready, with `format_version` and `digest`.  `choice` repeats the first ranked entry's identity."""
    out: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "job": plan.job,
        "inputs": plan.inputs,
        "choice": None,
        "ranked": [placement_document(p) for p in plan.ranked],
        "rejected": [{"code": r.code, "count": r.count, "examples": list(r.examples)} for r in plan.rejected],
        "notes": list(plan.notes),
        "grants": {d: [g.document() for g in grants] for d, grants in plan.grants.items()},
        "access": {place: [path.document() for path in paths] for place, paths in plan.access.items()},
        "stacks": [{"kind": s.kind, "name": s.name, "digest": s.digest} for s in plan.stacks],
        "status": {f.name: getattr(plan.status, f.name) for f in fields(plan.status)},
    }
    if plan.ranked:
        best = plan.ranked[0]
        out["choice"] = {
            "offer_id": best.offer_id,
            "placement_id": best.placement_id,
            "total_usd": _money(best.total_usd),
            "finish_hours": _money(best.finish_hours),
        }
    out["digest"] = digest(out)
    return out


def from_document(document: Any, file: str) -> PlacementPlan:
    """Read a plan file's JSON.  Raises InputError (SKY-APPLY-301) when it is no plan, of another major version, or edited."""

    def refuse(why: str) -> InputError:
        return InputError([Diagnostic(code="SKY-APPLY-301", summary=why, location=Location(file))])

    if not isinstance(document, dict) or "format_version" not in document:
        raise refuse("this is not a skyplan plan file")
    body: dict[str, Any] = dict(document)  # pyright: ignore[reportUnknownArgumentType]
    if str(body["format_version"]).split(".")[0] != FORMAT_VERSION.split(".", maxsplit=1)[0]:
        raise refuse(f"plan format {body['format_version']} is not {FORMAT_VERSION.split('.', maxsplit=1)[0]}.x")
    stated = body.pop("digest", None)
    if stated != digest(body):
        raise refuse("the plan's digest does not match its content: it was edited or cut short")
    try:
        return PlacementPlan(
            job=job_from(body["job"]),
            inputs=inputs_from(body["inputs"]),
            ranked=tuple(placement_from(p) for p in body["ranked"]),
            rejected=tuple(
                RejectedCount(code=_text(r["code"]), count=int(r["count"]), examples=tuple(map(_text, r["examples"])))
                for r in body["rejected"]
            ),
            notes=tuple(map(_text, body["notes"])),
            grants={d: tuple(grant_from(g) for g in grants) for d, grants in body["grants"].items()},
            stacks=tuple(map(stack_from, body["stacks"])),
            status=PlanStatus(**body["status"]),
            access={place: tuple(map(path_from, paths)) for place, paths in body.get("access", {}).items()},
        )
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise refuse(f"the plan lacks or mistypes a field: {error}") from error
