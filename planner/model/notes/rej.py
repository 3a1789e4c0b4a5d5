"""Notes on why an offer cannot run a job.  Each offer counts once, under the first reason that holds in this order of kinds."""

from __future__ import annotations

from planner.model.notes import Note

_WHERE = "plan, explain, offers, report: counted under `rejected`, with examples"
_FLEET = "plan, explain, report: of jobs that are planned together"

NOTES: dict[str, Note] = {
    "SKY-REJ-201": Note(
        _WHERE,
        "The offer has another GPU than `resources.accelerators` names.",
        "Add the model to the list, or ask for memory instead of a name: `{gpu_memory: 40GiB, count: 8}`.",
        "aws:prod/us-east-1/use1-az1/g6.xlarge/spot: L4, wanted A100-80GB",
    ),
    "SKY-REJ-202": Note(
        _WHERE,
        "Each GPU has less memory than asked for. That is never traded for a price: the job would not fit.",
        "Lower `gpu_memory` only if the job truly needs less.",
        "A100-40GB: 40 GiB, wanted 80 GiB",
    ),
    "SKY-REJ-203": Note(
        _WHERE,
        "The machine has too little RAM or too few vCPUs per node.",
        "Lower `memory` or `cpus`, if they were chosen generously.",
        "g5.12xlarge: 192 GiB, wanted 500 GiB",
    ),
    "SKY-REJ-204": Note(
        _WHERE,
        "The machine fits and is not for sale in the way that the job may buy it, or not there.",
        "Add `spot` or `on_demand` to `capacity`; see SKY-CAT-108 and SKY-CAT-112 for zones and types with conditions.",
        "p5.48xlarge spot: the job takes on_demand only",
    ),
    "SKY-REJ-205": Note(
        _WHERE,
        "The account may not run that many there: its quota, less what runs and stands in plans, is below the job's need.",
        "Ask the cloud to raise it, then write the new value into the target's `quotas` (or let `skyplan prices refresh` read it).",
        "needs 768 vCPUs of P instances, 192 of 384 are left",
    ),
    "SKY-REJ-206": Note(
        _WHERE,
        "Launches in this pool failed lately for want of capacity. The memory of it halves with time, and then it is tried again.",
        "Nothing is to be done; `until` in the message says when. Other pools are ranked meanwhile.",
        "no capacity 2 times, last 12 min ago; tried again after 10:40Z",
    ),
    "SKY-REJ-207": Note(
        _WHERE,
        "The pool's cap is reached by what runs and by the plans that stand: two jobs must not be planned onto one machine.",
        "Retire plans that nobody will apply, or raise the pool's cap in skyplan.yaml.",
        "4 of 4 nodes are held by early, nightly",
    ),
    "SKY-REJ-208": Note(
        _WHERE,
        "The price per hour, or the expected total, is over `max_usd_per_hour` or `max_usd_total`.",
        "Raise the limit, allow spot, or give more accelerators to choose from.",
        "$9,412 expected, the job allows $5,000",
    ),
    "SKY-REJ-209": Note(
        _WHERE,
        "With waiting, start-up, work and expected interruptions the job would end after its deadline, or its nodes would end first.",
        "Move the deadline or `stop_after`, or allow faster hardware or more nodes.",
        "would finish after 61 h, the deadline is 48 h",
    ),
    "SKY-REJ-210": Note(
        _WHERE,
        "An interconnect-sensitive job keeps the links it is measured on: the offer's GPUs or nodes are joined in another way.",
        "Set `interconnect_sensitive: false` if the job hardly talks between GPUs.",
        "PCIe, the job's reference has NVSwitch",
    ),
    "SKY-REJ-211": Note(
        _WHERE,
        "Several nodes and no fabric between them: an interconnect-sensitive job would wait for its network most of the time.",
        "Use one larger node, another type, or set `interconnect_sensitive: false`.",
        "g5.48xlarge has no EFA",
    ),
    "SKY-REJ-212": Note(
        _WHERE,
        "There is no subnet to stand in, no address left, or no more networks may be made in that region.",
        "See `networks` and `network_quota` of the target in skyplan.yaml.",
        "us-east-1: 5 of 5 networks are in use",
    ),
    "SKY-REJ-213": Note(
        _WHERE,
        "Without a price that can be believed nothing can be ranked: see SKY-CAT-102 and SKY-CAT-103.",
        "If you know it, put it into `prices` of skyplan.yaml.",
        "the price $0.00 counts as unknown",
    ),
    "SKY-REJ-214": Note(
        _WHERE,
        "The cloud, region or type is outside `constraints` of the job or of skyplan.yaml.",
        "Widen the list that the message names.",
        "ap-south-1 is not in us-*, eu-*",
    ),
    "SKY-REJ-215": Note(
        _WHERE,
        "Nodes there would boot and not be able to run the job: no machine image is known, or its secrets lie in another cloud's store.",
        "Pin an image under `images`, or keep a reference per cloud under the job's `secrets`.",
        "the secret HF_TOKEN is in aws-secretsmanager, which nodes in gcp cannot read",
    ),
    "SKY-REJ-216": Note(
        _FLEET,
        "A job of the same `anti_affinity` group is there, or was planned there in the same call.",
        "Widen `by` (zone instead of region), allow more places, or leave the group.",
        "eval-a of group eval is in us-east-1",
    ),
    "SKY-REJ-217": Note(
        _FLEET,
        "Fewer jobs of the gang than `least` would have a place, so none is placed: a part of it is of no use.",
        "See why the others have none; lower `gang.least`, or give the gang more places.",
        "6 of 8 jobs of sweep can be placed",
    ),
    "SKY-REJ-218": Note(
        _FLEET,
        "Together with what the team's jobs cost already it would go over a budget of skyplan.yaml.",
        "Wait until one ends, or raise the budget.",
        "vision holds $380 of $400 per hour, this needs $36",
    ),
    "SKY-REJ-219": Note(
        _FLEET,
        "There is room for it on an empty market, and jobs that were placed before it take that room.",
        "See who holds it; raise its `priority`, a cap or a quota, or plan again when they end.",
        "waits behind train-a, train-b",
    ),
}
