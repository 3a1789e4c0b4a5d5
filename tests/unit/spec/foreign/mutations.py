"""Files of other tools gone wrong in the ways that files do: lines lost, doubled, moved, indented, cut, values swapped; every seed is made up here."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

SKY: Final = (
    """\
# fine-tune
name: Tune_1
resources:
  accelerators: {A100:8, H100:8, K80:4}
  use_spot: true
  disk_size: 512
  cpus: 16+
  memory: 4x
  image_id: docker:ghcr.io/acme/train:1
  labels: {team: vision}
  any_of:
    - infra: aws/us-east-1
    - infra: gcp/us-central1/us-central1-a
      use_spot: false
    - infra: k8s
num_nodes: 2
workdir:
  url: https://example.com/a.git
envs:
  EPOCHS: 3
  BUCKET: acme-out
  HF_TOKEN:
secrets: {WANDB_API_KEY: null}
file_mounts:
  /data: s3://acme-corpus/x
  /out:
    name: ${BUCKET}
    store: s3
    mode: MOUNT_CACHED
  /conf: ./conf
volumes: {/mnt: a}
setup: |
  pip install -r requirements.txt
run: |
  MASTER=$(echo "$SKYPILOT_NODE_IPS" | head -n1)
  torchrun --node_rank $SKYPILOT_NODE_RANK train.py
config:
  kubernetes: {pod_config: {a: [1, {b: {}}]}}
""",
    """\
name: chain
---
name: prepare
resources:
  accelerators: [L4:1, T4]
  ports: [8080, 1-9]
  autostop: {idle_minutes: 10, down: true}
  job_recovery: {strategy: FAILOVER, max_restarts_on_errors: 2}
inputs: {s3://acme-corpus/x: 5}
run: python prepare.py
---
name: train
resources:
  ordered:
    - {accelerators: 80GB+, cloud: aws, region: us-west-2}
    - {instance_type: p5.48xlarge, max_hourly_cost: 90}
  network_tier: best
outputs: {gs://acme-models: 20}
run: |
  python train.py
""",
)
DSTACK: Final = (
    """\
type: task
name: tune
nodes: 2
image: nvcr.io/acme/torch:25.01
env:
  - HF_TOKEN
  - EPOCHS=3
  - KEY=${{ secrets.key }}
commands:
  - pip install .
  - |
    torchrun --nnodes=$DSTACK_NODES_NUM \\
      --node-rank=$DSTACK_NODE_RANK train.py
resources:
  gpu: {name: [A100, H100], memory: 80GB.., count: 1..8}
  cpu: x86:8..
  memory: 64GB..
  disk: {size: 200GB..}
  shm_size: 24GB
backends: [aws, runpod]
regions: [us-east-1]
spot_policy: auto
max_price: 4.5
max_duration: 2h
retry: {on_events: [interruption], duration: 1h}
volumes:
  - name: a
    path: /a
utilization_policy: {min_gpu_utilization: 10, time_window: 1h}
priority: 20
""",
    """\
type: fleet
name: pool
nodes: 0..4
placement: cluster
blocks: auto
resources:
  gpu: nvidia:24GB:1..2
idle_duration: 1h
""",
)
SLURM: Final = (
    """\
#!/bin/bash -l
#SBATCH --job-name=Sweep_1
#SBATCH -N 2 --ntasks-per-node=4
#SBATCH --gres=gpu:a100:4,tmp:1
#SBATCH --cpus-per-gpu=8
#SBATCH --mem-per-gpu=32G
# a word between
#SBATCH -t 1-12:00:00
#SBATCH --constraint="a100|h100"
#SBATCH --container-image="hub.example.org#acme/train:1"
#SBATCH --export=ALL,EPOCHS=3
##SBATCH --array=0-9

module load cuda
source venv/bin/activate
#SBATCH --qos=late
srun python train.py --node $SLURM_NODEID $1
""",
)
WORDS: Final = (
    *("null", "~", "[]", "{}", "[a, {b: c}]", "{a: 1, b: {c: null}}", "-1", "0", "1e9", "0.5", "yes", "*", "a/b/c/d/e"),
    *("${GONE}", "$BUCKET", "{{x}}", "'", '"', ":", "- -", "A100:8", "H100:0", "80GB+", "1..", "..", "s3://", "gs://x"),
    *("k8s/a", "aws/*/x", "docker:", "\u2028", "\0", "&a", "*a", "!!binary x", "<<: {a: 1}", "|", ">-", "#", "\t"),
    *("--gres=gpu:1g.10gb:1", "--nodes=2-4", "--time=1:2:3:4", "-c", "--mem=", "hetjob", ":", "--gpus=h100"),
)


@st.composite
def mutated(draw: st.DrawFn, seeds: tuple[str, ...]) -> str:
    """A seed after some accidents."""
    lines = draw(st.sampled_from(seeds)).split("\n")
    for _ in range(draw(st.integers(1, 5))):
        if not lines:
            break
        at = draw(st.integers(0, len(lines) - 1))
        kind = draw(st.sampled_from(["drop", "double", "move", "indent", "outdent", "cut", "value", "key", "insert"]))
        line = lines[at]
        if kind == "drop":
            del lines[at]
        elif kind == "double":
            lines.insert(at, line)
        elif kind == "move":
            lines.insert(draw(st.integers(0, len(lines))), lines.pop(at))
        elif kind == "indent":
            lines[at] = f"  {line}"
        elif kind == "outdent":
            lines[at] = line.removeprefix("  ")
        elif kind == "cut":
            lines[at] = line[: draw(st.integers(0, len(line)))]
        elif kind == "value":
            head, sign, _ = line.partition("=" if line.startswith("#SBATCH") else ": ")
            lines[at] = f"{head}{sign or ': '}{draw(st.sampled_from(WORDS))}"
        elif kind == "key":
            lines[at] = line.replace(draw(st.sampled_from(["name", "a", "gpu", "run", "resources"])), "x", 1)
        else:
            lines.insert(at, draw(st.sampled_from(WORDS)))
    return "\n".join(lines)
