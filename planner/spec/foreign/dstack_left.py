"""The fields of a dstack configuration that are not carried over: why, and what each would need.  Decides nothing else."""

from __future__ import annotations

from typing import Final

_OWN_IMAGE: Final = "dstack's own image has it; without `image` a skyplan node runs the commands on its machine image"
_IDLE: Final = "nodes end when the job does: there is no pool of idle machines"
_VOLUME: Final = "a dstack volume or a folder of the instance: skyplan knows buckets, not volumes"
_FILES: Final = "files of your machine or your repository: skyplan sends none to nodes"
FILES_NEED: Final = "clone it in the commands, bake it into `image`, or put it in a bucket under `data`"
#: field -> why it is not carried over, and what it would need
LEFT: Final[dict[str, tuple[str, str]]] = {
    "user": ("the container runs as its image's user, its entry point replaced by bash", "bake it into `image`"),
    "privileged": ("containers run without privileges, with the GPUs and the fabric's devices", ""),
    "entrypoint": ("its entry point is replaced by bash, which runs the commands", "call it in the commands"),
    "home_dir": ("it has no effect in dstack either", ""),
    "registry_auth": (
        "skyplan never holds secrets",
        "give `registry_auth` a reference to user:password, such as aws-secretsmanager://acme/registry",
    ),
    "python": (_OWN_IMAGE, "give an `image` with that Python, or install it in the commands"),
    "nvcc": (_OWN_IMAGE, "give an `image` with the CUDA compiler"),
    "single_branch": ("repositories are not cloned by skyplan", ""),
    "docker": (
        "there is no Docker within the container",
        "run the commands without `image`, where the node has Docker",
    ),
    "volumes": (_VOLUME, "put the data in a bucket under `data`, checkpoints under `checkpoint`"),
    "repos": (_FILES, FILES_NEED),
    "files": (_FILES, FILES_NEED),
    "ports": ("nodes take no connection from outside", "use `access: session`"),
    "reservation": ("reservations are the project's to name", "write it under `reserved` in skyplan.yaml"),
    "retry": ("recovery is `skyplan replan` and `watch`", "give `checkpoint` so that a job resumes"),
    "retry_policy": ("recovery is `skyplan replan` and `watch`", "give `checkpoint` so that a job resumes"),
    "stop_duration": ("a job that is asked to stop gets SIGTERM and a deadline in its control file", ""),
    "creation_policy": (_IDLE, ""),
    "idle_duration": (_IDLE, ""),
    "termination_policy": (_IDLE, ""),
    "termination_idle_time": (_IDLE, ""),
    "pool_name": (_IDLE, ""),
    "instance_name": (_IDLE, ""),
    "fleets": ("dstack's fleets: skyplan makes the nodes a job needs", ""),
    "instances": ("dstack's instances: skyplan makes the nodes a job needs", ""),
    "dstack": (
        "access to dstack's own server from within the run: skyplan has no such server",
        "take out what calls `dstack`",
    ),
    "utilization_policy": ("nodes are not ended for low use", "give `constraints.stop_after` for a hard end"),
    "startup_order": ("all nodes start together", "let the script wait for its peers"),
    "stop_criteria": ("a job ends when its command has ended on every node", "let the script end the others"),
    "schedule": ("skyplan starts no job by the clock", "let CI's own schedule apply the plan"),
    "setup": ("it has no effect on tasks in dstack either", ""),
    "blocks": ("a machine is never shared", ""),
    "build": ("it has no effect in dstack any more", ""),
    "cache": ("it has no effect in dstack any more", ""),
    "backend_options": ("settings of one backend of dstack's", "see `targets` in skyplan.yaml"),
    "optimize": ("dstack's own choice of offers", ""),
}
