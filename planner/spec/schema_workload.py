"""The schema of a job in normal form, as plans hold it: fields as the model names them, units in the names, what is not said left out."""

from __future__ import annotations

from planner.model.offer import CapacityType
from planner.model.workload import Apart
from planner.spec.schema_output import count, flag, items, mapping, number, one_of, word, words, written
from planner.spec.schema_words import Schema


def workload_schema() -> Schema:
    """One job."""
    every = written(
        "A job, normalised: sizes in bytes, durations in hours; what is not said is not there.",
        name=word("The job's name, its identity."),
        resources=_resources(),
        work=written(
            "How much there is to do: the hours it takes on that hardware.",
            hours=number("Hours."),
            model=word("The GPU model."),
            count=count("GPUs per node.", 1),
            nodes=count("Nodes.", 1),
        ),
        run=word("The command that starts the job on every node."),
        image=written(
            "The container image.",
            ("size_bytes", "digest"),
            ref=word("By tag or digest."),
            size_bytes=count("Its size."),
            digest=word("Where the reference pins one.", "^sha256:"),
        ),
        setup=word("A command that runs once per node before it."),
        workdir=word("The folder the commands run in."),
        registry_auth=_secret("Where the registry's `user:password` is kept."),
        env=mapping("Environment variables.", {"type": "string"}),
        secrets=items("Variables whose values the node fetches itself.", _secret("One of them.")),
        data=items(
            "What the job reads.",
            _placed(
                "An input.",
                ("reads", "mount", "copy_to"),
                reads=number("How many times all of it is read over the network; 1 where it is not said."),
                mount=word("A folder under which it can be read as files."),
                copy_to=word("A folder into which it is copied first."),
            ),
        ),
        checkpoint=_placed("Where checkpoints go.", (), every_hours=number("Hours between two.")),
        output=_placed("The result, written once at the end.", ()),
        constraints=_constraints(),
        tags=mapping("Tags on every resource of the job.", {"type": "string"}),
        priority={
            "type": "integer",
            "description": "Jobs planned together are placed highest first; 0 where not said.",
        },
        tunnel=flag("Nodes may lie in several clouds, joined by a tunnel."),
        sync_bytes=count("Bytes that all nodes reduce at each synchronisation."),
        sync_seconds=number("Seconds of computing between two."),
        session=flag("People may open a shell by the cloud's session channel."),
        team=word("Whose share of scarce capacity and whose budget the job counts to."),
        anti_affinity=items(
            "Groups whose jobs lie apart.",
            written(
                "A group.",
                ("by",),
                group=word("Its name."),
                by=one_of("How far apart; `zone` where it is not said.", *Apart),
            ),
        ),
        gang=written(
            "Jobs that are of use together only.",
            group=word("The group's name."),
            least=count("Fewer placed means none is.", 1),
        ),
    )
    return every | {"required": ["name", "resources", "run", "work"]}


def _secret(description: str) -> Schema:
    return written(
        description,
        env=word("The variable."),
        store=word("The kind of store."),
        path=word("Its name there."),
    )


def _placed(description: str, optional: tuple[str, ...], **more: Schema) -> Schema:
    return written(
        description,
        ("region", *optional),
        uri=word("The prefix.", "://"),
        region=word("The bucket's region; without it egress is unknown."),
        size_bytes=count("Its size."),
        **more,
    )


def _resources() -> Schema:
    optional = ("nodes", "min_ram_gib", "min_vcpus", "disk_bytes", "capacity", "interconnect_sensitive")
    return written(
        "What one node needs, and how many nodes.",
        optional,
        accelerators=items(
            "Any of them, in no order.",
            written(
                "An accelerator.",
                ("model", "min_memory_gib"),
                count=count("GPUs per node.", 1),
                model=word("The model."),
                min_memory_gib=number("Or any with that much memory per GPU, GiB."),
            ),
            minItems=1,
        ),
        nodes=count("Nodes; 1 where it is not said.", 1),
        min_ram_gib=number("Least RAM per node, GiB."),
        min_vcpus=count("Least vCPUs per node."),
        disk_bytes=count("Disk per node."),
        capacity=items("How it may be bought.", one_of("A way.", *CapacityType)),
        interconnect_sensitive=flag("Needs fast links between GPUs and a fabric between nodes."),
    )


def _constraints() -> Schema:
    limits = {
        "deadline_hours": number("Finished so long after the first apply."),
        "max_usd_per_hour": number("Limit of the price of all nodes."),
        "max_usd_total": number("Limit of the expected cost."),
        "clouds": words("Clouds that may be used."),
        "regions": words("Regions that may be used, as globs."),
        "instance_types": words("Instance types that may be used, as globs."),
        "stop_after_hours": number("So long after its boot a node powers itself off."),
    }
    return written("The job's limits.", tuple(limits), **limits)
