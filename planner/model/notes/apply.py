"""Notes on making a plan real, on the tools and credentials for it, and on comments."""

from __future__ import annotations

from planner.model.notes import Note

_APPLY = "apply, migrate, watch --apply"
_RUNNING = "apply, migrate, destroy, sync, reap"
_LAUNCH = _APPLY + "; status, as the reason of an attempt"
_COMMENT = "comment"
_DOCTOR = "doctor"

NOTES: dict[str, Note] = {
    "SKY-APPLY-301": Note(
        "every command that reads a plan file",
        "The file is no plan, of another major format, or its digest does not match: what was reviewed is not what would run.",
        "Write it anew with `skyplan plan --out plans` and review that; after a merge conflict too.",
        "plans/train.plan.json: the plan's digest does not match its content: it was edited or cut short",
    ),
    "SKY-APPLY-302": Note(
        _APPLY,
        "The job or settings are others than those the plan was made of, in a way that its stacks or rights depend on.",
        "Plan again and review the difference with `skyplan diff`.",
        "jobs/train.yaml changed since the plan",
    ),
    "SKY-APPLY-303": Note(
        "apply",
        "The record has a run of this very plan that has ended. A second one needs a word, so that a pipeline that runs twice starts nothing twice.",
        "`skyplan status` shows it; `--again` starts it once more.",
        "this plan was applied already, as train-g1 (ended)",
    ),
    "SKY-APPLY-304": Note(
        _APPLY,
        "The choice costs more now than `price_tolerance` of skyplan.yaml allows over what was reviewed.",
        "Plan again: another placement may be the best now.",
        "$55.04 per hour when planned, $63.20 now (+15 %, 5 % are tolerated)",
    ),
    "SKY-APPLY-305": Note(
        _RUNNING,
        "One process works on a job at a time, and another does. Its lease ends by itself when it dies.",
        "Wait, with --lease-timeout, or see who it is in the message.",
        "`train` is being worked on by ci-7f3a (last sign of life 2026-11-30T10:02:11Z)",
    ),
    "SKY-APPLY-306": Note(
        _APPLY,
        "The state would be a file in CI's working folder, lost at the end: what it launched would run on, known to nobody.",
        "Set `backend` in skyplan.yaml to s3, gcs or azurerm.",
        "CI is set, and the state would be a file in this working folder, lost with it",
    ),
    "SKY-APPLY-307": Note(
        _RUNNING + ", doctor",
        "Neither terraform nor tofu is on PATH, and what is to be made or ended is made by it.",
        "Install it, name it in SKYPLAN_TERRAFORM, or `pip install 'skyplan[terraform]'`.",
        "Terraform is missing: neither terraform nor tofu is on PATH",
    ),
    "SKY-APPLY-308": Note(
        _LAUNCH,
        "The cloud has none of these machines there now. It is remembered and weighs on later plans, halving with time.",
        "Nothing is to be done: the next ranked placement of the same plan is tried.",
        "InsufficientInstanceCapacity in use1-az1",
    ),
    "SKY-APPLY-309": Note(
        _LAUNCH + ", doctor",
        "The account's limit is reached in that region. Unlike capacity it does not come back by waiting.",
        "The next ranked placement is tried; ask the cloud to raise the quota, then write it into `quotas`.",
        "VcpuLimitExceeded: 384 vCPUs of P instances in us-east-1",
    ),
    "SKY-APPLY-310": Note(
        _LAUNCH,
        "Terraform failed with words that are of no kind known here. No other placement is tried: it may be the configuration.",
        "Read the provider's message below it; what was half made is ended by the next apply or destroy.",
        "cmp-train-g1: InvalidParameterCombination",
    ),
    "SKY-APPLY-311": Note(
        _APPLY,
        "Every placement of the reviewed set was tried and refused. Nothing is left running.",
        "Plan again: the failures are remembered, so the order is another now. Allow more regions, types or spot.",
        "none of the 20 ranked placements of `train` could be launched",
    ),
    "SKY-APPLY-312": Note(
        _APPLY,
        "A warning: the plan's prices are weeks old, so its order may not be today's.",
        "Plan again where the money matters.",
        "the plan's prices are of 2026-09-25, 66 days ago",
    ),
    "SKY-APPLY-313": Note(
        _APPLY,
        "The command under `policy` of skyplan.yaml was given the plan and said no.",
        "Its output stands below; ask whoever owns the policy.",
        "train: `opa eval …` exited 1",
    ),
    "SKY-APPLY-314": Note(
        _RUNNING,
        "An earlier process died, or still works, between Terraform and the record. What it left is found by its tags.",
        "Run the same command again: it goes on, or cleans up, first.",
        "train-g1 is half launched; `skyplan apply` goes on with it, `skyplan destroy train` ends it",
    ),
    "SKY-APPLY-315": Note(
        _RUNNING,
        "The part for that cloud is missing here or was missing when the stacks were written.",
        "Install the cloud's extra, or plan again with this version.",
        "machines on nebius cannot be listed",
    ),
    "SKY-APPLY-316": Note(
        "any command that needs an extra; doctor",
        "skyplan plans with few libraries; stacks, clouds' SDKs, PostgreSQL, drawings and the server are extras.",
        "Install the extra that the message names.",
        "writing stacks needs cdktf or cdktn, which is not installed",
    ),
    "SKY-APPLY-317": Note(
        _RUNNING + ", audit --live, prices refresh, doctor",
        "There are no credentials here, they have ended, or the cloud refused that operation to this identity.",
        "`skyplan doctor` says who is calling; the identity's rights come from `skyplan foundation`.",
        "not authorized to perform ec2:RunInstances",
    ),
    "SKY-APPLY-318": Note(
        "apply, sync, status",
        "A node of the run is gone and is not made again by itself: a gang that lacks one is placed as a whole.",
        "`skyplan replan` decides where to; a plan and apply of your own do it too, from the newest checkpoint.",
        "train-g1 has lost nodes (degraded); they are not made again by themselves",
    ),
    "SKY-APPLY-319": Note(
        "every command that reads the record",
        "The record's database does not answer, is of a newer skyplan, or is damaged.",
        "Check SKYPLAN_DATABASE_URL; `skyplan doctor` tells more; `skyplan state backup` copies can be put back.",
        "the record's file is no database: .skyplan/record.sqlite",
    ),
    "SKY-APPLY-320": Note(
        _RUNNING,
        "Another process has taken the job over meanwhile, so this one's word does not count any more.",
        "Nothing is lost: see `skyplan status`, and who goes on.",
        "move 4 of `train` was taken on by another process",
    ),
    "SKY-APPLY-321": Note(
        "apply, destroy, reap",
        "A machine carries a job's tags and no state knows it: Terraform was killed between the cloud's answer and its own file.",
        "It was ended, or is named with what to do.",
        "i-0abc (running) in aws:prod us-east-1 is tagged train-g1: no state has it",
    ),
    "SKY-APPLY-322": Note(
        "apply, migrate, destroy",
        "There is a change and no terminal on which to ask for it.",
        "Give a plan file that was reviewed, or --auto-approve.",
        "destroying train needs approval, and there is no terminal to ask on",
    ),
    "SKY-APPLY-323": Note(
        "status, logs, events, destroy, replan, sync, reap",
        "No apply of that job is in this project's record.",
        "`skyplan status` lists the jobs; check SKYPLAN_DATABASE_URL and the project's name.",
        "no job `trian` was ever applied",
    ),
    "SKY-APPLY-324": Note(
        "apply",
        "The job runs, and on another placement than the plan's choice. Applying never moves a job.",
        "`skyplan replan` and `migrate` move it with its checkpoint; `destroy` ends it.",
        "train-g1 runs on aws:prod/us-east-1/…; the plan's choice is gcp:ml/us-east4/…",
    ),
    "SKY-APPLY-325": Note(
        "destroy, reap, migrate",
        "Something could not be ended and may still cost money.",
        "Run it again; if it stays, end what is named in the cloud's console.",
        "`cmp-train-g1` could not be destroyed; what it holds may still cost money",
    ),
    "SKY-APPLY-326": Note(
        "reap, sync, prices refresh, audit --live, doctor",
        "The cloud's API failed or could not be reached; nothing was concluded from it.",
        "Try again; see the cloud's own status.",
        "ec2 DescribeInstances in us-east-1: 503",
    ),
    "SKY-APPLY-327": Note(
        "plan (as a note), synth, apply",
        "The job reads or writes a store of another cloud, and nothing gives nodes there credentials for it.",
        "Add `federation`, name a broker under `control_plane`, or restrict `clouds`; --own-credentials if the job brings its own.",
        "gcp:ml/us-east4/…: nodes there would have no credentials for s3://acme-corpus",
    ),
    "SKY-APPLY-330": Note(
        _COMMENT,
        "Neither the options nor the pipeline's variables say which pull request is meant.",
        "Run it in a pull request's pipeline, or give --forge, --repo and --number.",
        "this pipeline is of no pull request",
    ),
    "SKY-APPLY-331": Note(
        _COMMENT,
        "The variable with the token is empty, or the forge does not know the token.",
        "docs/ci.md says which variable and which token for each forge.",
        "set the environment variable GITHUB_TOKEN",
    ),
    "SKY-APPLY-332": Note(
        _COMMENT,
        "The token is right and may not write there: often a pull request from a fork, or a missing permission of the job.",
        "Give the job `pull-requests: write`; for forks see docs/ci.md.",
        "GitHub: Resource not accessible by integration",
    ),
    "SKY-APPLY-333": Note(
        _COMMENT,
        "The repository or the number does not exist, or is hidden from this token.",
        "Check --repo and --number; forges answer the same for what a token may not see.",
        "acme/ml has no pull request 4711",
    ),
    "SKY-APPLY-334": Note(
        _COMMENT,
        "The forge limits this token's calls and names a wait that is longer than a pipeline should sleep.",
        "Run it again later.",
        "too many requests; it asks to wait for 3,400 s",
    ),
    "SKY-APPLY-335": Note(
        _COMMENT,
        "The forge failed, was not reached, or something between answered in its place.",
        "Run it again; behind a proxy check --api.",
        "api.github.com answered 502",
    ),
    "SKY-APPLY-336": Note(
        _COMMENT,
        "The token would go over the network in the clear, or to another host than the forge's.",
        "Use https:// in --api.",
        "http://git.example.com is no address of an API that a token may be sent to",
    ),
    "SKY-APPLY-337": Note(
        _COMMENT,
        "The file is no text, is empty, or is longer than the forge takes.",
        "Give what `skyplan diff --format markdown` wrote; it is cut to fit.",
        "the file holds no text",
    ),
    "SKY-APPLY-345": Note(
        "init",
        "A file that would be written is a link to elsewhere, or a folder stands in its place. Nothing was written.",
        "Move it away, or copy the text that `skyplan init --dry-run` shows.",
        "skyplan.yaml is a symbolic link",
    ),
    "SKY-APPLY-346": Note(
        _DOCTOR,
        "A check waited for something that did not answer; the others ran.",
        "See what it waits for; --timeout waits longer.",
        "credentials for gcp: no answer within 30 s",
    ),
    "SKY-APPLY-347": Note(
        _DOCTOR,
        "Whoever is signed in here would act in another account than the one planned for.",
        "Change profile or project; or correct `account` of the target.",
        "signed in to 111111111111, the target `prod` is 123456789012",
    ),
    "SKY-APPLY-348": Note(
        _DOCTOR,
        "Clouds refuse signatures that are minutes off, and leases end at the wrong time.",
        "Switch NTP on: `timedatectl set-ntp true`.",
        "this clock is 7 min behind",
    ),
    "SKY-APPLY-349": Note(
        _DOCTOR,
        "The version is older or newer than those the stacks are tried with, or does not say what it is.",
        "Install one in the range that the message names.",
        "Terraform 1.3.9 is older than 1.5",
    ),
    "SKY-APPLY-360": Note(
        _APPLY,
        "The plan says that the job waits for room among the jobs it was planned with: it has no placement to launch.",
        "See why in the plan; plan it again with the others when one of them ends.",
        "`sweep-c` waits: 4 of 4 nodes of the pool are held by sweep-a",
    ),
}
