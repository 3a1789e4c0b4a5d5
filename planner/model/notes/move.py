"""Notes on moving: why a job stays, moves or waits, and what stopped a migration."""

from __future__ import annotations

from planner.model.notes import Note

_STAYS = "replan, watch, report --replan: a job that stays"
_MOVES = "replan, watch, migrate: the reason of a move, in its diff"
_UNDER_WAY = "migrate, watch --apply"
_REPLAY = "replay, prices import"

NOTES: dict[str, Note] = {
    "SKY-MOVE-401": Note(
        _STAYS,
        "There is a better place, and after all that the move costs (new nodes, lost work, egress) the gain is too small to be sure of.",
        "Nothing is to be done. `migration.threshold` in skyplan.yaml sets how much is asked.",
        "aws:prod/us-west-2/… would gain $1.20 net over 8.00 h, and $7.00 are asked",
    ),
    "SKY-MOVE-402": Note(
        _STAYS,
        "It moved a short while ago. Prices swing back, and a job that follows each swing only pays for moves.",
        "Wait; the cool-down does not hold back a move that has to be.",
        "it moved 0.50 h ago",
    ),
    "SKY-MOVE-403": Note(
        _STAYS,
        "The better place failed to launch or took nodes back lately, so it would probably do so again.",
        "Wait: the memory halves with time.",
        "aws:prod/us-east-1/use1-az1/…: its pool failed or took nodes back lately",
    ),
    "SKY-MOVE-404": Note(
        _STAYS,
        "Changing the links between GPUs in mid-run changes the speed, and often the result, of an interconnect-sensitive job.",
        "Nothing is to be done; a new run may choose freely.",
        "gcp:ml/us-east4/… is another topology than NVSwitch with EFA",
    ),
    "SKY-MOVE-405": Note(
        _STAYS,
        "A move on the way would leave so little time to the deadline that one interruption misses it.",
        "Nothing is to be done, or give the deadline more time.",
        "aws:prod/us-west-2/… would leave 1.10 h of slack: too little for spot",
    ),
    "SKY-MOVE-406": Note(
        _STAYS,
        "Of all places, with the cost of moving there, the present one is the best.",
        "Nothing is to be done.",
        "what runs is the best candidate",
    ),
    "SKY-MOVE-407": Note(
        "replan --reviewed-only, watch --apply, migrate",
        "Unattended, a job goes only where a reviewed plan allows. This place is in the new plan and not in that one.",
        "Review and merge the new plan file that `replan --out` wrote; then migrate.",
        "aws:prod/eu-north-1/… is not in plans/train.plan.json",
    ),
    "SKY-MOVE-408": Note(
        "replan, watch --apply, migrate",
        "The orchestrator may launch nodes and nothing else; networks and access there are to be made by who may.",
        "`skyplan apply plans/NAME.plan.json --prepare-only` in CI, as the deployer.",
        "acc-train--aws-prod-us-west-2 does not stand",
    ),
    "SKY-MOVE-409": Note(
        _STAYS,
        "A price that the comparison needs is not known, so a saving would be a guess.",
        "`skyplan prices refresh`, then replan.",
        "no price of what runs",
    ),
    "SKY-MOVE-410": Note(
        _STAYS,
        "The deadline cannot be met anywhere any more. The job goes on: the miss is told while there is time to act on it.",
        "Move the deadline, or give the job faster hardware in a new plan.",
        "needs 14.2 h more, 9.0 h are left",
    ),
    "SKY-MOVE-411": Note(
        _STAYS,
        "Its nodes are gone and the pool beside its data is expected back soon: waiting costs less than moving the data.",
        "Nothing is to be done while there is slack; it falls back to on-demand in time.",
        "waits for aws:prod/us-east-1/…: expected back in 1.50 h",
    ),
    "SKY-MOVE-412": Note(
        _STAYS,
        "The better place is full for us: a quota, a pool's cap or a budget is used up.",
        "See which in the numbers; raise it if the gain is worth it.",
        "4 of 4 nodes of the pool are held",
    ),
    "SKY-MOVE-413": Note(
        _MOVES,
        "The saving over the time that the target is expected to last pays for the whole move and the threshold.",
        "Review the terms and merge, or leave it: nothing moves without review, but under `migration.apply`.",
        "saves $38.10 net over 8.00 h",
    ),
    "SKY-MOVE-414": Note(
        _MOVES,
        "The cloud announced that it takes the nodes, so the question is where to, not whether.",
        "Carry it out at once; the job was asked for a checkpoint.",
        "use1-az1 takes its nodes back",
    ),
    "SKY-MOVE-415": Note(
        _MOVES,
        "On spot the deadline would be missed with too high a chance; on-demand ends in time.",
        "Carry it out; it costs more per hour, and the deadline is kept.",
        "2.1 h of slack are left; moves to on-demand",
    ),
    "SKY-MOVE-416": Note(
        _MOVES,
        "The quota that it runs on is lower now than what it uses: the next replacement of a node would fail.",
        "Carry it out, or have the quota restored.",
        "quota of us-east-1 went from 384 to 192 vCPUs",
    ),
    "SKY-MOVE-417": Note(
        _MOVES,
        "The reviewed plan's placement and the running one differ, so what was approved is not what runs.",
        "Review which is wanted.",
        "train-g2 runs p4d.24xlarge, the plan says p5.48xlarge",
    ),
    "SKY-MOVE-418": Note(
        _MOVES,
        "Nodes were lost; the job is placed anew as a whole and goes on from its newest checkpoint.",
        "Carry it out.",
        "1 of 4 nodes of train-g1 was lost",
    ),
    "SKY-MOVE-419": Note(
        "replan, watch, migrate",
        "A move of this job has begun; a second decision would race with it.",
        "`skyplan migrate --job NAME` goes on with it; `--revert` gives it up before the cut-over.",
        "move 4 of `train` is under way: saved",
    ),
    "SKY-MOVE-420": Note(
        _UNDER_WAY,
        "Something went wrong before the cut-over, so the old nodes run on and the new ones are gone.",
        "See the reason; replan when it is gone.",
        "train-g2 did not come up in 30 min: given up, train-g1 runs on",
    ),
    "SKY-MOVE-421": Note(
        _UNDER_WAY,
        "The new nodes began at another step than the checkpoint's. The old ones are kept, fenced and not ended.",
        "Look at how the job resumes: it must read SKYPLAN_RESUME_FROM.",
        "train-g2 began at step 0, the checkpoint is of step 5,000",
    ),
    "SKY-MOVE-422": Note(
        _UNDER_WAY,
        "Since the diff was made the job moved, ended, or its plan changed: what was reviewed does not fit any more.",
        "Replan and review.",
        "train-g3 runs, the diff is from train-g2",
    ),
    "SKY-MOVE-423": Note(
        "migrate, diff, report",
        "The file is no migration diff, of another major format, or was edited: its digest does not match.",
        "Replan; never edit a diff by hand.",
        "migrations/train.diff.json: the diff's digest does not match its content",
    ),
    "SKY-MOVE-424": Note(
        "replan, watch",
        "Little was observed of how long pools last, so the defaults of docs/replanning.md stand in for it.",
        "Nothing is to be done: `skyplan watch` and `prices refresh` gather it.",
        "nothing was observed of how long pools last: defaults stand",
    ),
    "SKY-MOVE-425": Note(
        _UNDER_WAY,
        "The old nodes were asked for a checkpoint and none was durable in time. Moving without it would lose work.",
        "See in the job's log whether it writes when asked (docs/job-protocol.md). A higher --timeout gives it longer.",
        "train-g1 was asked for a checkpoint at step 5,200, and none is durable in time",
    ),
    "SKY-MOVE-430": Note(
        _REPLAY,
        "The file is in none of the known forms of recorded markets, or is damaged.",
        "docs/replay.md has the forms; `--format` names one where it cannot be told.",
        "trace.json: neither a list of availability nor price events",
    ),
    "SKY-MOVE-431": Note(
        "replay",
        "A series of zeros and ones may mean `available` or `preempted`, and the file does not say which.",
        "Give --polarity.",
        "trace.json: what 1 means is not said",
    ),
}
