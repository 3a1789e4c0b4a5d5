"""Every code skyplan can print: one table, from which docs and `skyplan explain CODE` are made.

A code is never re-used for another meaning.  This module names problems; it does not detect them.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.model.iam_codes import ROWS as _IAM_ROWS


@dataclass(frozen=True, slots=True)
class Code:
    """A stable name of a problem: `id`, what it means, what the reader may do about it."""

    id: str
    meaning: str
    hint: str


_ROWS: tuple[tuple[str, str, str], ...] = (
    # job and project files
    ("SKY-SPEC-101", "the file cannot be read or is not YAML", "check the path, the indentation and the quotes"),
    ("SKY-SPEC-102", "a field is not known", "see `skyplan schema` for the fields"),
    ("SKY-SPEC-103", "a required field is missing", "see `skyplan schema` for what a job needs"),
    ("SKY-SPEC-104", "a value has the wrong type", "see `skyplan schema`"),
    ("SKY-SPEC-105", "a value is out of range or malformed", "see the example in the message"),
    ("SKY-SPEC-106", "an accelerator name is not known", "run `skyplan offers` for the names"),
    ("SKY-SPEC-107", "an accelerator name is ambiguous", "write one of the named choices"),
    ("SKY-SPEC-108", "a data location is not allowed or malformed", "s3://, gs://, az://account/container, nebius://"),
    ("SKY-SPEC-109", "the job asks for more than the project file allows", "ask the owner of skyplan.yaml"),
    ("SKY-SPEC-110", "a key is written twice", "keep one of them"),
    ("SKY-SPEC-111", "a secret is given as a value", "give a reference; skyplan never holds secrets"),
    ("SKY-SPEC-112", "two jobs have one name", "names identify jobs; rename one"),
    ("SKY-SPEC-113", "two settings contradict each other", "see the message"),
    ("SKY-SPEC-114", "the region of a data location is not said", "add `region`: without it egress is unknown"),
    ("SKY-SPEC-115", "a skyplan.yaml further up is not read", "go to its folder, or name it with --project"),
    (
        "SKY-SPEC-130",
        "a file that may be of two tools is taken for one's",
        "say whose it is: `--from`, or `work` in a job file of skyplan",
    ),
    ("SKY-SPEC-131", "a value of another tool's file is not carried over", "see what it would need in the message"),
    ("SKY-SPEC-132", "a value of another tool's file does not mean quite the same here", "see the message"),
    ("SKY-SPEC-133", "something in another tool's file needs a look", "see the message"),
    (
        "SKY-SPEC-134",
        "another tool's file does not say what a job must say; it is assumed",
        "`skyplan import` writes a job file in which to say it",
    ),
    # the catalog
    ("SKY-CAT-101", "a catalog file cannot be read", "see the line named"),
    ("SKY-CAT-102", "a price is zero, negative or not a number", "the row counts as unknown"),
    (
        "SKY-CAT-103",
        "a price is implausible for its GPU class",
        "compare with another source; override in skyplan.yaml",
    ),
    ("SKY-CAT-104", "spot is not cheaper than on-demand", "no spot capacity is for sale at a discount there"),
    ("SKY-CAT-105", "one price is flat over continents", "the source probably took another product's price"),
    ("SKY-CAT-106", "name and GPU memory disagree", "correct the row"),
    ("SKY-CAT-107", "a row stands twice", "remove one"),
    ("SKY-CAT-108", "a zone needs opting in", "list it under `opt_in_zones` of the target"),
    ("SKY-CAT-109", "a price is older than its time to live", "refresh prices"),
    ("SKY-CAT-110", "a reference points at nothing", "add the missing row or correct the name"),
    ("SKY-CAT-111", "two sources disagree on a price", "the dearer one is used until settled"),
    ("SKY-CAT-112", "on-demand is listed but the type is not sold that way", "use spot or a reservation"),
    ("SKY-CAT-113", "the zone is not confirmed to offer the type", "the price is known for the region only"),
    ("SKY-CAT-114", "the figure is derived or unverified", "see its source"),
    ("SKY-CAT-115", "a feed failed for a region", "the others go on; see its message and refresh again"),
    ("SKY-CAT-116", "a feed's row makes no sense and was left out", "see the row named"),
    ("SKY-CAT-117", "an observation is from the future", "check this machine's clock"),
    ("SKY-CAT-118", "a row of an imported history cannot be read", "see the line named"),
    ("SKY-CAT-119", "a price is in a currency or unit that is not understood", "it was left out"),
    # why an offer was rejected
    ("SKY-REJ-201", "the GPU is not one that was asked for", "widen `accelerators`"),
    ("SKY-REJ-202", "GPU memory is below what was asked for", "GPU memory is never lowered"),
    ("SKY-REJ-203", "RAM or vCPUs are below what was asked for", "lower `memory` or `cpus`"),
    ("SKY-REJ-204", "not offered: capacity type, zone or region is out", "see the numbers"),
    ("SKY-REJ-205", "the quota is below the need", "raise the quota, then the target's `quotas`"),
    ("SKY-REJ-206", "capacity failed here recently", "it decays; see `until`"),
    ("SKY-REJ-207", "the pool is full", "other jobs hold it; see the ledger"),
    ("SKY-REJ-208", "over the price limit or budget", "raise the limit"),
    ("SKY-REJ-209", "would finish after the deadline or the hard end", "see the finish time"),
    ("SKY-REJ-210", "another topology than the job may use", "an interconnect-sensitive job stays on one topology"),
    ("SKY-REJ-211", "no fabric between the nodes", "multi-node jobs need one where they are interconnect-sensitive"),
    ("SKY-REJ-212", "no subnet or network quota there", "see the project's network settings"),
    ("SKY-REJ-213", "the price is unknown or implausible", "override it in skyplan.yaml if you know it"),
    ("SKY-REJ-214", "outside the project's or the job's limits", "see `constraints` and skyplan.yaml"),
    ("SKY-REJ-215", "nodes there could not run the job", "pin an image, or keep the job's secrets in that cloud"),
    ("SKY-REJ-216", "a job that this one must be apart from lies there", "see `anti_affinity` of both"),
    ("SKY-REJ-217", "too few jobs of its gang can be placed", "see the others of the gang; lower `gang.least`"),
    ("SKY-REJ-218", "the budget of the project or team is used up", "see `budgets` in skyplan.yaml"),
    (
        "SKY-REJ-219",
        "it waits: jobs before it take what there is",
        "see who holds it; raise `priority`, caps or quotas",
    ),
    # apply
    ("SKY-APPLY-301", "the plan is not valid or was edited", "plan again"),
    ("SKY-APPLY-302", "the job or project file changed since the plan", "plan again and review"),
    ("SKY-APPLY-303", "this plan was applied already", "see `skyplan status`"),
    ("SKY-APPLY-304", "the price moved too far since the plan", "plan again and review"),
    ("SKY-APPLY-305", "another apply holds the job's lease", "wait for it, or see `skyplan status`"),
    ("SKY-APPLY-306", "local state is not for CI", "set `backend` in skyplan.yaml"),
    (
        "SKY-APPLY-307",
        "Terraform is missing",
        "install it, set SKYPLAN_TERRAFORM, or install the extra `terraform`",
    ),
    ("SKY-APPLY-308", "the cloud has no capacity", "the next ranked candidate is tried"),
    ("SKY-APPLY-309", "a quota was hit", "the next ranked candidate is tried"),
    ("SKY-APPLY-310", "Terraform failed for a reason skyplan does not know", "read the provider's message"),
    ("SKY-APPLY-311", "no ranked candidate could be launched", "plan again: failures are remembered"),
    ("SKY-APPLY-312", "the plan is old", "prices may have moved; plan again"),
    ("SKY-APPLY-313", "the policy command refused the plan", "see its output"),
    ("SKY-APPLY-314", "an earlier apply did not finish", "it is being cleaned up first"),
    ("SKY-APPLY-315", "stacks for this cloud could not be written by an earlier version", "plan again with this one"),
    ("SKY-APPLY-316", "an optional part is not installed", "install it where `skyplan` itself is installed"),
    (
        "SKY-APPLY-317",
        "no credentials or provider here, or the cloud refused the permission",
        "see the provider's message",
    ),
    ("SKY-APPLY-318", "a node was lost", "plan again to place the job anew"),
    ("SKY-APPLY-319", "the record cannot be used", "see SKYPLAN_DATABASE_URL and .skyplan/record.sqlite"),
    ("SKY-APPLY-320", "the record refused a write", "another process took over this job; see `skyplan status`"),
    ("SKY-APPLY-321", "a machine that no state knew was found", "it was ended; nothing is left to do"),
    ("SKY-APPLY-322", "nobody approved the change", "give a saved plan file or --auto-approve"),
    ("SKY-APPLY-323", "the record does not know this job", "see `skyplan status` for the jobs it knows"),
    ("SKY-APPLY-324", "the job runs already, on another placement", "`skyplan destroy` it first"),
    ("SKY-APPLY-325", "something is left running", "run `skyplan destroy` again; see what is named"),
    ("SKY-APPLY-326", "the cloud answered with an error, or not at all", "see its message; try again"),
    (
        "SKY-APPLY-327",
        "nodes there would have no credentials for a store",
        "add `federation` in skyplan.yaml, restrict `clouds`, or --own-credentials if the job brings its own",
    ),
    # comments in pull requests
    (
        "SKY-APPLY-330",
        "no pull request or merge request is known to comment on",
        "give --forge, --repo and --number; see docs/ci.md",
    ),
    ("SKY-APPLY-331", "there is no token, or the forge does not take it", "see docs/ci.md for the token it needs"),
    ("SKY-APPLY-332", "the token may not comment there", "see docs/ci.md for the permissions, and for forks"),
    ("SKY-APPLY-333", "the forge knows no such pull request or merge request", "check --repo and --number"),
    ("SKY-APPLY-334", "the forge asks to wait longer than a pipeline can", "run it again later"),
    (
        "SKY-APPLY-335",
        "the forge answered with an error, not at all, or with what is none of its answers",
        "run it again; see its message",
    ),
    ("SKY-APPLY-336", "a token may not be sent to that address", "https://, or http:// to this machine alone"),
    ("SKY-APPLY-337", "the text cannot be posted as a comment", "see the message"),
    (
        "SKY-APPLY-345",
        "`skyplan init` would write through a symbolic link, or over what is no file",
        "nothing was written; move it away, and run it again",
    ),
    (
        "SKY-APPLY-346",
        "a check did not end in time",
        "see what it waits for; `skyplan doctor --timeout 60` waits longer",
    ),
    (
        "SKY-APPLY-347",
        "the credentials here are for another account than the target in skyplan.yaml",
        "change to that account's credentials, or correct the target",
    ),
    ("SKY-APPLY-348", "this machine's clock is wrong", "set it by NTP: clouds refuse what is signed minutes off"),
    ("SKY-APPLY-349", "this Terraform is not one that skyplan was tried with", "install a version in the range named"),
    (
        "SKY-APPLY-360",
        "the job waits: there is no room for it now",
        "see why in its plan; plan it again with the others when there is room",
    ),
    # why a job moves, or does not
    (
        "SKY-MOVE-401",
        "the gain, net of the whole move, is below the threshold",
        "see the terms; `migration` in skyplan.yaml",
    ),
    ("SKY-MOVE-402", "the job moved lately: it cools down", "see until when"),
    ("SKY-MOVE-403", "the pool failed or took nodes back lately", "it decays; see `until`"),
    (
        "SKY-MOVE-404",
        "another topology: an interconnect-sensitive job never changes it in mid-run",
        "see the topologies",
    ),
    ("SKY-MOVE-405", "the deadline leaves too little slack for a voluntary move", "see the hours"),
    ("SKY-MOVE-406", "nothing better: what runs is the best candidate", "nothing is to be done"),
    ("SKY-MOVE-407", "the reviewed plan does not list the place", "review the new plan file, then migrate"),
    (
        "SKY-MOVE-408",
        "the place is not prepared: network and access stacks do not stand there",
        "`skyplan apply plans/NAME.plan.json --prepare-only`, by who may deploy (CI), then migrate",
    ),
    ("SKY-MOVE-409", "a price that the decision needs is unknown", "refresh prices"),
    ("SKY-MOVE-410", "no place would finish before the deadline", "the miss is forecast; see the finish times"),
    ("SKY-MOVE-411", "it waits where its data is", "waiting costs less than moving while there is slack"),
    ("SKY-MOVE-412", "the place has no room: quota, pool, budget, or others of its group", "see the numbers"),
    ("SKY-MOVE-413", "moves: the saving pays for the whole move", "see the terms"),
    ("SKY-MOVE-414", "moves: the cloud takes the nodes back", "nothing needs to be saved by it"),
    ("SKY-MOVE-415", "moves: the deadline is at risk", "on-demand is the safety net"),
    ("SKY-MOVE-416", "moves: the quota it runs on was withdrawn", "see the quota"),
    ("SKY-MOVE-417", "moves: what runs is not what the reviewed plan says", "see both"),
    ("SKY-MOVE-418", "placed again: its nodes were lost", "see the place"),
    ("SKY-MOVE-419", "a migration of this job is under way", "`skyplan migrate` goes on with it"),
    ("SKY-MOVE-420", "the migration was given up before the cut-over; the old nodes run on", "see the reason"),
    ("SKY-MOVE-421", "the new nodes did not resume at the right step", "nothing was retired; see the steps"),
    ("SKY-MOVE-422", "the diff is stale: the record or the plan moved on since", "replan and review"),
    ("SKY-MOVE-423", "the diff is not valid or was edited", "replan"),
    ("SKY-MOVE-424", "little history: defaults stand for lifetimes", "they are replaced as the history grows"),
    ("SKY-MOVE-425", "the checkpoint was not durable in time", "nothing was cut over; see the job's checkpoints"),
    ("SKY-MOVE-430", "a trace cannot be read", "docs/replay.md has the forms, one of which --format can name"),
    ("SKY-MOVE-431", "a trace does not say what its numbers mean", "give --polarity available or --polarity preempted"),
    # runtime
    ("SKY-RUN-501", "no agent: nodes run the job bare", "configure `agent` in skyplan.yaml for progress and rotation"),
    (
        "SKY-RUN-502",
        "no credentials for a store yet: the job cannot reach it",
        "name a broker (`control_plane`) or `federation` in skyplan.yaml, use a store of the same cloud, or let the job bring its own",
    ),
    (
        "SKY-RUN-503",
        "the planned fabric was not found at boot: the node stops instead of running over TCP",
        "see the node's console; plan again to place the job anew",
    ),
    ("SKY-RUN-504", "no hard end: nothing but the job's own end stops its nodes", "add `constraints.stop_after`"),
    (
        "SKY-RUN-505",
        "rendezvous: peers are missing, or cannot meet",
        "see the message; `agent`, `rendezvous` in skyplan.yaml",
    ),
    ("SKY-RUN-506", "tunnel: an endpoint, a key or a proof was refused", "see the message; never re-use a proof"),
    ("SKY-RUN-507", "tunnel: packets of that size do not pass", "lower the tunnel's MTU"),
    (
        "SKY-RUN-508",
        "a machine that is off is billed on there",
        "run `skyplan reap`, or `skyplan destroy` once the job has ended",
    ),
    (
        "SKY-RUN-509",
        "an older generation was fenced: what it still sends does not count",
        "nothing is left to do: its nodes end",
    ),
    ("SKY-RUN-510", "the control plane does not answer", "nodes run on and keep their reports; see `/healthz`"),
    (
        "SKY-RUN-511",
        "a checkpoint was skipped: torn, foreign or not authentic",
        "see its reason; the newest valid one is used",
    ),
    (
        "SKY-RUN-512",
        "record and store disagree about the newest checkpoint",
        "the file's step won and the record was corrected",
    ),
    (
        "SKY-RUN-513",
        "a data credential could not be renewed for a while",
        "see the broker's log; the job is asked to checkpoint before the credential ends",
    ),
    (
        "SKY-RUN-514",
        "a data credential is about to end",
        "the job was asked to checkpoint; it goes on when the broker answers",
    ),
    (
        "SKY-RUN-515",
        "the broker refused a credential",
        "see its reason: it mints what an applied, approved plan grants and nothing else",
    ),
    (
        "SKY-RUN-516",
        "a node could not prove which machine it is",
        "see the reason; the proof must be the platform's own and of this job's machine",
    ),
    (
        "SKY-RUN-517",
        "the node's spool is full: the oldest progress was dropped",
        "free disk space, or bring the control plane back",
    ),
    ("SKY-RUN-518", "the cloud takes the node away", "the job was asked to checkpoint; plan again to place it anew"),
    ("SKY-RUN-519", "a machine was ended that nobody needed any more", "nothing is left to do"),
    ("SKY-RUN-520", "the server's settings are wrong", "see each line's hint"),
    ("SKY-RUN-521", "that is not allowed for this role or job", "ask who owns the server's settings"),
    ("SKY-RUN-522", "the job ended with an error", "see `skyplan logs`"),
    ("SKY-RUN-523", "a store refused or did not answer", "see its message; a listing that fails is no empty listing"),
    (
        "SKY-RUN-524",
        "an exported record cannot be used here",
        "nothing was written; export it anew from where it came (`skyplan state export FILE`), and import into an empty record",
    ),
    (
        "SKY-RUN-525",
        "a run is past its hard end in hours or USD",
        "its nodes are ended; apply again to go on from its checkpoint",
    ),
    ("SKY-RUN-526", "a request is not what the protocol says", "agent and server must fit; see docs/node-protocol.md"),
)

_ALL = (*_ROWS, *_IAM_ROWS)
CODES: dict[str, Code] = {row[0]: Code(*row) for row in _ALL}
if len(CODES) != len(_ALL):
    raise AssertionError("a code is listed twice")
