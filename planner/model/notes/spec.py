"""Notes on what people write: job files, skyplan.yaml, other tools' files."""

from __future__ import annotations

from planner.model.notes import Note

_READING = "every command that reads a job file or settings: plan, explain, diff, apply, offers, audit, serve, broker"
_JOB = "plan, explain, diff, apply, report, offers --job"
_FOREIGN = "import, and plan on a SkyPilot, dstack or Slurm file"

NOTES: dict[str, Note] = {
    "SKY-SPEC-101": Note(
        _READING,
        "The file is not there, is no UTF-8 text, or is no YAML. Nothing of it was read; other files were, and their problems are told too.",
        "Check the path and who may read it; then the line named, most often its indentation, a tab, or a quote that does not close.",
        "jobs/train.yaml:7: found a tab where blanks must stand",
    ),
    "SKY-SPEC-102": Note(
        _READING,
        "A field has a name that nothing reads. It is refused and not passed over, since a mistyped limit would be no limit.",
        "Take the near miss that the message names; `skyplan schema job` and `skyplan schema project` list every field.",
        "jobs/train.yaml:4: `resources.acelerators` is not known (did you mean `accelerators`?)",
    ),
    "SKY-SPEC-103": Note(
        _READING,
        "Something that cannot be guessed is not said: a job needs `name`, `resources.accelerators`, `work` and `run`.",
        "Add the field; examples/jobs has whole files.",
        "jobs/train.yaml:1: `work` is missing",
    ),
    "SKY-SPEC-104": Note(
        _READING,
        "A value is text where a number, a list or a mapping is wanted, or the other way round.",
        "Write it as the message says; mind that YAML reads `yes` as true and `1e3` as text.",
        "jobs/train.yaml:9: `constraints` must be a mapping",
    ),
    "SKY-SPEC-105": Note(
        _READING,
        "The value has the right type and cannot be meant: a size without its unit, a duration below zero, a name with blanks.",
        "Write it like the example in the message: `500GiB`, `1d12h`.",
        "jobs/train.yaml:5: `resources.memory`: `500` has no unit",
    ),
    "SKY-SPEC-106": Note(
        _JOB,
        "No GPU of the catalog has that name or that much memory.",
        "Take the near miss; `skyplan offers` lists names. A catalog of your own (--catalog) may have more.",
        "jobs/train.yaml:3: `H10` is no accelerator (did you mean `H100`?)",
    ),
    "SKY-SPEC-107": Note(
        _JOB,
        "The name fits several GPUs of different memory. It is not guessed: a job of 80 GB must not land on 40.",
        "Write one of the names in the message.",
        "jobs/train.yaml:3: `A100` may mean A100-40GB, A100-80GB",
    ),
    "SKY-SPEC-108": Note(
        _JOB,
        "A place of data, checkpoints or output is of a kind that nodes cannot reach, or is malformed. It is not shown where it may hold a credential.",
        "Use s3://, gs://, az://ACCOUNT/CONTAINER or nebius://, without user, password or query.",
        "jobs/train.yaml:12: `data[0].uri`: `http://files/corpus` is no data location",
    ),
    "SKY-SPEC-109": Note(
        _JOB,
        "The job file is wider than skyplan.yaml allows: a job may narrow the platform team's limits, never widen them.",
        "Lower the job's limit, or let the owner of skyplan.yaml raise the project's.",
        "jobs/train.yaml:15: `constraints.max_usd_total` is $9,000, the project allows $5,000",
    ),
    "SKY-SPEC-110": Note(
        _READING,
        "YAML would silently take the later of the two.",
        "Remove one of the two lines named.",
        "skyplan.yaml:14: key `targets` is written twice, first in line 6",
    ),
    "SKY-SPEC-111": Note(
        _READING,
        "A password, key or token stands in a file that is committed and ends up in plans and user data. The value is not shown.",
        "Put it into a secret store and write the reference (`aws-secretsmanager://acme/hf`); then change the secret, since it was in a file.",
        "jobs/train.yaml:10: `secrets.HF_TOKEN` holds a value, not a reference",
    ),
    "SKY-SPEC-112": Note(
        _JOB,
        "A job's name is its identity: of its plan file, stacks, runs and checkpoints' fences. Two jobs of one name would take each other's.",
        "Rename one of them.",
        "jobs/b.yaml:1: job `train` stands in jobs/a.yaml:1 already",
    ),
    "SKY-SPEC-113": Note(
        _READING + ", synth",
        "Two things that are each right cannot both be so: `mount` and `copy_to` of one input, a tunnel and an interconnect-sensitive job.",
        "Drop one of the two that the message names.",
        "jobs/train.yaml:12: `data[0]` has both `mount` and `copy_to`",
    ),
    "SKY-SPEC-114": Note(
        _JOB,
        "A warning: without the bucket's region nobody can say what reading it from elsewhere costs. The total is then a lower bound, marked `>=`.",
        "Add `region` beside `uri`.",
        "jobs/train.yaml:12: `s3://acme-corpus`: region unknown, so its egress is not in the total",
    ),
    "SKY-SPEC-115": Note(
        "plan, explain, report, offers, replan",
        "A warning: skyplan.yaml is looked for in the folder you are in alone. There is none, and one stands further up in the repository: its targets, limits and prices do not hold here.",
        "Go to the folder of skyplan.yaml, where plans/ and the record are too, or give `--project`.",
        "../skyplan.yaml is not read: the settings that hold are those of the folder you are in, which has none",
    ),
    "SKY-SPEC-130": Note(
        _FOREIGN,
        "The file would be a valid one of two tools; one reading was taken, and the message says which.",
        "Say it: `--from skypilot`, `dstack`, `slurm` or `skyplan`.",
        "task.yaml: it is taken for a SkyPilot task: it has no `work`, which every job file of skyplan has",
    ),
    "SKY-SPEC-131": Note(
        _FOREIGN,
        "A value has no counterpart here, so the job runs without it.",
        "Read what the message says it would need; most often it is a field that skyplan decides itself, such as a region.",
        "task.yaml:6: `autostop` is not carried over: nodes end with the job",
    ),
    "SKY-SPEC-132": Note(
        _FOREIGN,
        "The value was carried over, and is read a little differently here.",
        "Compare the two meanings in the message and correct the new job file where it matters.",
        "task.yaml:4: `memory: 64` is taken as 64 GiB per node",
    ),
    "SKY-SPEC-133": Note(
        _FOREIGN,
        "Something was carried over that only you can judge: a script that names another tool's variables, a path of a shared file system.",
        "Look at the line named.",
        "job.sbatch:12: `srun` starts one process per task; nodes here start `run` once each",
    ),
    "SKY-SPEC-134": Note(
        _FOREIGN,
        "skyplan needs to know it (how long the work takes, how large data is) and the other tool never asked; an assumption stands in for it.",
        "`skyplan import --hours 36 --out jobs FILE` writes a job file that says it; correct the assumed values there.",
        "SkyPilot does not say `work`: one hour on the first accelerator is assumed",
    ),
}
