"""The published JSON Schemas of the job file and of skyplan.yaml (draft 2020-12), as `skyplan schema` prints them.

Decides what editors offer and refuse.  It admits everything the parser admits; what it admits the parser may still refuse, since names,
places and contradictions are no matter of form.  One document of a job file is one job.
"""

from __future__ import annotations

from typing import Final

from planner.spec.fleet import APART, MAX_GANG, WORD
from planner.spec.gpus import MAX_COUNT
from planner.spec.job import NAME
from planner.spec.mounts import FOLDER
from planner.spec.parts import ACCESS, ACROSS, MAX_NODES
from planner.spec.schema_project import project_properties
from planner.spec.schema_words import (
    DIALECT,
    DURATION,
    REFERENCE,
    SIZE,
    STRINGS,
    URI,
    Schema,
    limits,
    listed,
    optional,
    record,
    text,
    whole,
    word,
)

EXAMPLE: Final = {
    "name": "llama3-8b-sft",
    "resources": {"accelerators": "A100-80GB:8", "memory": "500GiB+", "capacity": ["spot", "on_demand"]},
    "work": {"hours": 24, "on": "A100-80GB:8"},
    "run": "torchrun --standalone --nproc-per-node=8 train.py",
    "data": [{"uri": "s3://acme-corpus/llama/", "region": "us-east-1", "size": "500GB", "reads": 3, "mount": "/data"}],
    "checkpoint": {"uri": "s3://acme-ckpt/llama/", "region": "us-east-1", "size": "96GB", "every": "30m"},
    "constraints": {"deadline": "48h", "stop_after": "60h", "max_usd_total": 2000},
}


def job_schema() -> Schema:
    """A job."""
    job = record(
        "One job: what to run, on what, how much of it.",
        ("name", "resources", "work", "run"),
        name=text("The job's name, its identity.", "llama3-8b-sft", pattern=f"^{NAME}$"),
        resources=_resources(),
        work=_work(),
        image=_image(),
        run=text("The command that starts the job on every node.", "torchrun --standalone --nproc-per-node=8 train.py"),
        setup=text("A command that runs once per node before it.", "pip install -r requirements.txt"),
        workdir=text("The folder the commands run in.", "/workspace"),
        registry_auth=REFERENCE | {"description": "A reference to `user:password` of the image's registry."},
        env=STRINGS | {"description": "Environment variables; no secrets.", "examples": [{"EPOCHS": "3"}]},
        secrets={
            "type": "object",
            "description": "Environment variables whose values the node fetches itself, from its own cloud's store.",
            "additionalProperties": listed(REFERENCE, "One reference, or one per cloud that nodes may run on."),
            "examples": [
                {"HF_TOKEN": "aws-secretsmanager://acme/hf"},
                {"HF_TOKEN": ["aws-secretsmanager://acme/hf", "gcp-secretmanager://acme-ml/hf"]},
            ],
        },
        data=listed(_data(), "What the job reads."),
        checkpoint=_placed(
            "Where checkpoints go, how large one is, how often one is written.", ("size", "every"), every=DURATION
        ),
        output=_placed("The result, written once at the end.", ("size",)),
        constraints=record("The job's limits; they narrow skyplan.yaml's, never widen them.", (), **limits()),
        tags=STRINGS | {"description": "Tags on every resource of the job.", "examples": [{"team": "llm"}]},
        network=record(
            "How nodes may be joined.",
            ("across", "sync"),
            across={
                "enum": list(ACROSS),
                "description": "Nodes may lie in several clouds, joined by a tunnel; without it they are all in one zone.",
            },
            sync=record(
                "What the nodes exchange, which sets what a tunnel costs.",
                ("size", "every"),
                size=SIZE | {"description": "Bytes reduced at each synchronisation.", "examples": ["2GB"]},
                every=DURATION
                | {"description": "Computing between two, on the hardware that `work` names.", "examples": ["30s"]},
            ),
        ),
        access={
            "enum": list(ACCESS),
            "description": "People may open a shell on the nodes by the cloud's session channel, without an open port.",
        },
        priority=whole("Where there is not enough for all, jobs of higher priority go first.", -1_000_000, 1_000_000),
        team=word(
            "Whose share of scarce capacity and whose budget the job counts to; no tag says it.",
            "vision",
            pattern=f"^{WORD}$",
        ),
        anti_affinity=listed(_anti_affinity(), "Groups of which no two jobs may lie together."),
        gang=record(
            "Jobs that are of use together only: with fewer than `least` of the group placed, none is.",
            ("group", "least"),
            group=word("The group's name.", "sweep", pattern=f"^{WORD}$"),
            least=whole("How many jobs of the group at least; every job of it says the same.", 1, MAX_GANG),
        ),
    )
    return _published("skyplan job", optional(job)) | {"examples": [EXAMPLE]}


def project_schema() -> Schema:
    """The project file."""
    project = record(
        "What the platform team decides for all jobs of a repository.", ("project",), **project_properties()
    )
    return _published("skyplan project (skyplan.yaml)", optional(project))


def _published(title: str, schema: Schema) -> Schema:
    return {"$schema": DIALECT, "title": title} | schema


_READS: Final[Schema] = {
    "type": "number",
    "exclusiveMinimum": 0,
    "description": "How many times all of it is read over the network; 1 where nothing is said.",
}


_FOLDER: Final = f"^{FOLDER}$"
_SAID: Final[Schema] = {"type": "string"}


def _placed(description: str, required: tuple[str, ...], **more: Schema) -> Schema:
    region = text("The bucket's region; without it egress is unknown.", "us-east-1")
    return record(description, ("uri", *required), uri=URI, region=region, size=SIZE, **more)


def _data() -> Schema:
    mount = text("A folder under which it can be read as files, instead of being streamed.", "/data", pattern=_FOLDER)
    copy_to = text("A folder into which it is copied before the job starts.", "/scratch/data", pattern=_FOLDER)
    made = _placed("Data the job reads.", ("size",), reads=_READS, mount=mount, copy_to=copy_to)
    both: Schema = {"required": ["mount", "copy_to"], "properties": {"mount": _SAID, "copy_to": _SAID}}
    return made | {"not": both}


def _anti_affinity() -> Schema:
    return record(
        "No two jobs of the group share a pool, zone, region or cloud.",
        ("group",),
        group=word("The group's name.", "eval", pattern=f"^{WORD}$"),
        by={"enum": list(APART), "description": "What they may not share; zone where nothing is said."},
    )


def _accelerator() -> Schema:
    count = whole("GPUs per node.", 1, MAX_COUNT)
    named = text("NAME:COUNT per node; without a count it is 1.", "A100-80GB:8", "H100:8")
    memory = SIZE | {"description": "Least memory per GPU.", "examples": ["80GiB+"]}
    fields = record(
        "A model, or any with at least that much memory per GPU.",
        ("count",),
        model=text("The GPU model.", "A100-80GB"),
        gpu_memory=memory,
        count=count,
    )
    counts = {
        "type": "object",
        "description": "Model names with counts: any of them.",
        "propertyNames": {"not": {"enum": ["model", "gpu_memory", "count"]}},
        "additionalProperties": count,
        "minProperties": 1,
    }
    return {"anyOf": [named, fields | {"anyOf": [{"required": ["model"]}, {"required": ["gpu_memory"]}]}, counts]}


def _resources() -> Schema:
    cpus: Schema = {
        "description": "Least vCPUs per node.",
        "anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": r"^\s*[0-9]+\s*\+?\s*$"}],
        "examples": ["32+"],
    }
    return record(
        "What one node needs, and how many nodes.",
        ("accelerators",),
        accelerators=listed(_accelerator(), "Acceptable accelerators per node; a list means any of them, in no order."),
        memory=SIZE | {"description": "Least RAM per node."},
        cpus=cpus,
        disk=SIZE | {"description": "Disk per node."},
        nodes=whole("Nodes, all in one zone unless `network` says otherwise.", 1, MAX_NODES),
        capacity=listed(
            {"enum": ["on_demand", "spot"]}, "How capacity may be bought; on_demand where nothing is said."
        ),
        interconnect_sensitive={
            "type": "boolean",
            "description": "Needs fast links between GPUs and a fabric between nodes.",
        },
    )


def _work() -> Schema:
    hours: Schema = {
        "description": "How long it takes there; a bare number counts hours.",
        "anyOf": [{"type": "number", "exclusiveMinimum": 0}, DURATION, {"type": "string", "pattern": r"^[0-9.]+$"}],
        "examples": [24, "1d12h"],
    }
    return record(
        "How much there is to do: how long the job takes on hardware that you know.",
        ("hours", "on"),
        hours=hours,
        on=_accelerator() | {"description": "That hardware, per node.", "examples": ["A100-80GB:8"]},
        nodes=whole("That many nodes of it; the job's own number where nothing is said.", 1, MAX_NODES),
    )


def _image() -> Schema:
    ref = text(
        "An image by tag or digest.",
        "ghcr.io/acme/train:1.4",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:-]*(@sha256:[0-9a-f]{64})?$",
    )
    return {
        "description": "The container image.",
        "anyOf": [
            ref,
            record(
                "An image with its size, which sets how long a node takes to pull it.", ("ref",), ref=ref, size=SIZE
            ),
        ],
    }
