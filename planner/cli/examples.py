"""Examples that the `--help` of every command ends with: one table, held to the real command line by a test.

A new command needs a row.  Lines stay below 76 characters, so that they fit a terminal of 80.
"""

from __future__ import annotations

from typing import NamedTuple


class Example(NamedTuple):
    """What it is for, and the line, without `skyplan`.  `runs`: it succeeds in a folder with `jobs/train.yaml` and nothing else."""

    what: str
    line: str
    runs: bool = False


#: path of the command -> its examples
EXAMPLES: dict[str, tuple[Example, ...]] = {
    "": (
        Example("Begin in a repository", "init"),
        Example("The best place for a job, and why", "plan jobs/train.yaml", runs=True),
        Example("Write the plan, review it, and run it", "apply plans/train.plan.json"),
    ),
    "init": (
        Example("See what would be written", "init --dry-run", runs=True),
        Example("For Google's cloud alone, with state there", "init --cloud gcp --backend gcs:bucket=acme-states"),
    ),
    "doctor": (
        Example("Without asking any cloud", "doctor --offline"),
        Example("What to do, a line each", "doctor --fix-hints"),
    ),
    "plan": (
        Example("Rank places and show the best", "plan jobs/train.yaml", runs=True),
        Example("Write the plan to review and commit", "plan jobs/*.yaml --out plans"),
        Example("In CI: exit 2 where a placement changes", "plan jobs/train.yaml --detailed-exitcode"),
    ),
    "diff": (
        Example("What a pull request changes", "diff --base origin/main --format markdown"),
        Example("Two folders of plans", "diff old/plans plans --detailed-exitcode"),
    ),
    "report": (
        Example("One page of all standing plans", "report --out report.html"),
        Example("Of one job, planned now", "report jobs/train.yaml --out report.html", runs=True),
    ),
    "comment": (
        Example("Put a diff on the pull request", "comment diff.md --only-on-change"),
        Example("See what would be posted", "comment diff.md --dry-run"),
    ),
    "offers": (
        Example("The market for eight H100, cheapest work first", "offers H100:8", runs=True),
        Example("Spot in Europe for two nodes", "offers H100:8 A100-80GB:8 --nodes 2 --capacity spot --region 'eu*'"),
    ),
    "explain": (
        Example("What a code means and what to do", "explain SKY-REJ-205", runs=True),
        Example("All codes of a family", "explain SKY-MOVE", runs=True),
        Example("Why not that type", "explain jobs/train.yaml 'p5*'", runs=True),
    ),
    "synth": (
        Example("Terraform JSON of every plan", "synth"),
        Example("Native HCL, to commit and review", "synth --format hcl --out terraform"),
        Example("One root module per job", "synth plans/train.plan.json --format hcl --root"),
    ),
    "apply": (
        Example("Plan, show, ask, and run", "apply jobs/train.yaml"),
        Example("A reviewed plan, unattended", "apply plans/train.plan.json --json"),
        Example("Networks and access only, by who may deploy", "apply plans/train.plan.json --prepare-only"),
    ),
    "migrate": (
        Example("Move as a reviewed diff says", "migrate migrations/train.diff.json"),
        Example("Go on after a crash", "migrate --job train"),
    ),
    "status": (
        Example("What runs, where and at what price", "status"),
        Example("Follow one job", "status train --watch"),
    ),
    "logs": (
        Example("Follow what a job prints", "logs train --follow"),
        Example("The last lines of one node", "logs train --rank 0 --last 50"),
    ),
    "events": (Example("Follow what happens to a job", "events train --follow"),),
    "sync": (
        Example("Exit 2 where something is gone", "sync --detailed-exitcode"),
        Example("Take in what your own pipeline applied", "sync plans/train.plan.json"),
    ),
    "reap": (
        Example("Go on ending what is over", "reap"),
        Example("One pass, from cron", "reap --once --json"),
    ),
    "destroy": (
        Example("Stop a job and leave nothing", "destroy train"),
        Example("Keep the network for the next", "destroy train --keep-network --auto-approve"),
    ),
    "replan": (
        Example("Should what runs move", "replan --explain"),
        Example("Write the diffs for a pull request", "replan train --out . --detailed-exitcode"),
    ),
    "watch": (
        Example("Propose moves as they pay", "watch"),
        Example("Carry them out, as diffs to read later", "watch --apply --out migrations"),
    ),
    "replay": (
        Example("What each policy would have cost", "replay traces/*.csv"),
        Example("With large checkpoints, and drawn", "replay traces/*.csv --checkpoint-gb 500 --plots plots"),
    ),
    "serve": (Example("The control plane", "serve --settings server.yaml"),),
    "broker": (Example("Mint for the approved plans alone", "broker --plans plans"),),
    "rendezvous": (
        Example("Until all of peers.json are there", "rendezvous --listen 0.0.0.0:7443 --peers peers.json"),
    ),
    "state": (Example("The whole record, to keep or to move", "state export record.json"),),
    "state export": (Example("The whole record as one file", "state export record.json"),),
    "state import": (Example("Into an empty record", "state import record.json"),),
    "state backup": (Example("A copy of the database, while it is used", "state backup record.sqlite"),),
    "agent": (Example("The nodes' program as one file", "agent pack agent.pyz"),),
    "agent run": (Example("Run a job here as a node would", "agent run --local -- python train.py"),),
    "agent pack": (Example("The nodes' program as one file", "agent pack agent.pyz", runs=True),),
    "agent token": (Example("Let one machine take rank 0", "agent token train --rank 0 --out token"),),
    "audit": (
        Example("Rights of all standing plans", "audit --fail-on high"),
        Example("What a change widens", "audit plans --base origin/main"),
        Example("Your own Terraform, as SARIF", "audit --terraform plan.json --format sarif"),
    ),
    "prices": (Example("Observe prices and quotas now", "prices refresh --dry-run"),),
    "prices refresh": (
        Example("All that the settings name", "prices refresh"),
        Example("See what would be asked", "prices refresh --cloud aws --region us-east-1 --dry-run"),
    ),
    "prices chart": (
        Example("Spot prices of a month, as a file", "prices chart H100:8 --capacity spot --svg h100.svg"),
    ),
    "prices history": (Example("Changes since a day", "prices history H100:8 --since 2026-11-01"),),
    "prices import": (Example("A recorded history", "prices import spot.csv.zst --source spotlake"),),
    "prices snapshot": (Example("A catalog as of then", "prices snapshot market.csv --as-of 2026-11-01"),),
    "prices compact": (Example("See what would be thinned", "prices compact --keep-days 90 --dry-run"),),
    "catalog": (Example("All that is known of a type", "catalog show p5.48xlarge", runs=True),),
    "catalog check": (Example("Check your own catalog", "catalog check --fail-on finding"),),
    "catalog show": (Example("All that is known of a type", "catalog show p5.48xlarge", runs=True),),
    "foundation": (Example("Identities of an AWS account", "foundation --cloud aws --out foundation"),),
    "import": (
        Example("A SkyPilot task as a job file", "import task.yaml --hours 36 --out jobs"),
        Example("Slurm scripts, printed", "import *.sbatch --from slurm --hours 12"),
    ),
    "schema": (
        Example("Of job files", "schema job", runs=True),
        Example("All of them, for an editor", "schema --out .skyplan/schemas", runs=True),
    ),
    "completion": (
        Example("For this shell", "completion bash > ~/.local/share/bash-completion/completions/skyplan"),
        Example("For zsh, in a folder of fpath", "completion zsh", runs=True),
    ),
}
