"""SkyPilot tasks: a table over the documented fields, in every form the reference gives."""

from __future__ import annotations

import pytest

from planner.model.workload import Store
from tests.unit.spec.foreign.foreign_files import accelerators, became, error_of, one, result_of, unsaid, why

RUN = "\nrun: python train.py\n"


def task(resources: str, more: str = "") -> str:
    return f"name: t1\nresources:\n{resources}{RUN}{more}"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("A100:8", ["A100:8"]),
        ("A100", ["A100:1"]),
        ("A100-80GB:8", ["A100-80GB:8"]),
        ("a100-80gb-sxm:8", ["A100-80GB:8"]),
        ("{A100: 8}", ["A100:8"]),
        ("{A100: }", ["A100:1"]),
        ("{A100:8, H100:4}", ["A100:8", "H100:4"]),
        ("{'L4:1', 'H100:1'}", ["H100:1", "L4:1"]),
        ("[A100:8, 'V100-32GB:2']", ["A100:8", "V100-32GB:2"]),
        ("H100:8.0", ["H100:8"]),
        ("80GB+", [">=80GiB:1"]),
        ("80GB+:8", [">=80GiB:8"]),
        ("nvidia:24GB+:2", [">=24GiB:2"]),
        ("[RTX4090:1, L4:1]", ["L4:1"]),
        ("MI300X:8", ["MI300X:8"]),
    ],
)
def test_accelerators_in_every_form(written: str, meant: list[str]):
    assert accelerators(one(task(f"  accelerators: {written}"))) == meant


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("RTX4090:1", "`RTX4090` is sold by none of the clouds"),
        ("A100-8:8", "`A100-8` is sold by none of the clouds in the catalog (close: A100"),
        ("tpu-v5litepod-8", "is a TPU"),
        ("Trainium:16", "Neuron"),
        ("T4:0.5", "a part of a GPU"),
        ("hopper:8", "may mean H100, H200"),
        ("amd:80GB+", "GPUs of amd"),
        ("[K80:1, RTX4090]", "K80"),
        ("A100:0", "no accelerator and count"),
    ],
)
def test_what_no_cloud_sells_is_refused_at_its_line(written: str, says: str):
    line, text = error_of(task(f"  cpus: 4\n  accelerators: {written}"))
    assert line == 4
    assert says in text


@pytest.mark.parametrize("resources", ["  cpus: 8+", "  accelerators:", "  infra: aws"])
def test_a_task_without_gpus_is_no_job_here(resources: str):
    assert "asks for no GPU" in error_of(task(resources))[1]


def test_sizes_prices_and_labels():
    job = one(
        task(
            "  accelerators: L4:1\n  cpus: 8+\n  memory: 32\n  disk_size: 1TB\n  max_hourly_cost: 2.5\n"
            "  labels: {team: llm, aws:x: y}\n  priority: 7\n  image_id: docker:ghcr.io/acme/train:1.4",
            "num_nodes: 2\n",
        )
    )
    resources = job.workload.resources
    assert (resources.min_vcpus, resources.min_ram_gib, resources.disk_bytes) == (8, 32, 1024 << 30)
    assert resources.nodes == 2
    assert job.workload.constraints.max_usd_per_hour == 5
    assert job.workload.tags == (("team", "llm"),)
    assert job.workload.priority == 7
    assert job.workload.image is not None
    assert job.workload.image.ref == "ghcr.io/acme/train:1.4"
    assert became(job, "resources.memory")[0] == "changed"
    assert became(job, 'resources.labels["aws:x"]')[0] == "left"
    assert "2.5 times 2" in why(job, "resources.max_hourly_cost")


@pytest.mark.parametrize(
    ("place", "clouds", "regions"),
    [
        ("  infra: aws", ("aws",), ()),
        ("  infra: aws/us-east-1", ("aws",), ("us-east-1",)),
        ("  infra: aws/us-east-1/us-east-1a", ("aws",), ("us-east-1",)),
        ("  infra: aws/*/us-west-2b", ("aws",), ("us-west-2",)),
        ("  infra: '*/us-central1'", (), ("us-central1",)),
        ("  infra: '*'", (), ()),
        ("  cloud: GCP\n  region: us-central1", ("gcp",), ("us-central1",)),
        ("  cloud: gcp\n  zone: us-central1-a", ("gcp",), ("us-central1",)),
        ("  zone: us-east-1a", ("aws",), ("us-east-1",)),
        ("  region: eastus", (), ("eastus",)),
    ],
)
def test_places(place: str, clouds: tuple[str, ...], regions: tuple[str, ...]):
    limits = one(task(f"{place}\n  accelerators: L4:1")).workload.constraints
    assert (limits.clouds, limits.regions) == (clouds, regions)


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("  infra: k8s/my-context", "Kubernetes is no cloud"),
        ("  infra: lambda/us-east-1", "cloud `lambda` is none"),
        ("  cloud: runpod", "cloud `runpod` is none"),
        ("  infra: aws/us-esat-1", "`us-esat-1` is no region of aws that the catalog knows | did you mean `us-east-1`"),
        ("  cloud: gcp\n  zone: us-east-1a", "zone `us-east-1a` is none"),
        ("  instance_type: m5.large", "no machine type with GPUs"),
        ("  cloud: gcp\n  instance_type: p5.48xlarge", "is a type of aws, not of gcp"),
    ],
)
def test_places_that_no_cloud_has(place: str, says: str):
    assert says in error_of(task(f"{place}\n  accelerators: L4:1"))[1]


def test_a_machine_type_brings_its_gpus():
    job = one(task("  instance_type: p5.48xlarge"))
    assert accelerators(job) == ["H100:8"]
    assert job.workload.constraints.instance_types == ("p5.48xlarge",)
    assert job.workload.work.model == "H100"


def test_any_of_becomes_one_request_with_what_falls_away_told():
    job = one(
        task(
            "  accelerators: A100:8\n  any_of:\n    - infra: aws/us-east-1\n      use_spot: true\n"
            "    - infra: aws/us-east-1\n      use_spot: false\n    - infra: lambda\n"
        )
    )
    assert job.workload.resources.capacity == ("on_demand", "spot")
    assert job.workload.constraints.clouds == ("aws",)
    assert became(job, "resources.any_of[2].infra") == ("left", 9, "")
    assert "also admits" not in why(job, "resources.any_of")


def test_any_of_that_combines_wider_says_so():
    job = one(
        task(
            "  any_of:\n    - {infra: aws/us-east-1, accelerators: 'H100:8', use_spot: true}\n"
            "    - {infra: gcp/us-central1, accelerators: 'A100:8'}\n"
        )
    )
    told = why(job, "resources.any_of")
    assert "also admits" in told
    assert "A100:8 on demand in aws/us-east-1" in told


def test_a_region_that_two_clouds_have_is_told():
    job = one(task("  accelerators: H100:8\n  any_of:\n    - infra: gcp/us-central1\n    - infra: nebius/eu-north1\n"))
    assert "nebius/us-central1" in why(job, "resources.any_of")


def test_a_cloud_beside_a_region_of_another_keeps_all_its_regions():
    job = one(task("  accelerators: H100:8\n  any_of:\n    - infra: aws\n    - infra: gcp/us-central1\n"))
    assert job.workload.constraints.regions == ("eu-west-1", "us-central1", "us-east-1", "us-west-2")
    assert "also admits" not in why(job, "resources.any_of")


def test_alternatives_of_different_size_take_the_largest():
    job = one(task("  any_of:\n    - {accelerators: L4:1, memory: 16+}\n    - {accelerators: T4:1, memory: 64+}\n"))
    assert job.workload.resources.min_ram_gib == 64
    assert became(job, "resources.any_of[0].memory")[0] == "changed"


def test_an_order_is_not_kept_and_that_is_told():
    job = one(task("  ordered:\n    - accelerators: L4:1\n    - accelerators: T4:1\n"))
    assert accelerators(job) == ["L4:1", "T4:1"]
    assert "order is not kept" in why(job, "resources.ordered")
    assert job.workload.work.model == "L4"


def test_spot_and_a_fabric():
    job = one(task("  accelerators: H100:8\n  use_spot: true\n  network_tier: best", "num_nodes: 4\n"))
    assert job.workload.resources.capacity == ("spot",)
    assert job.workload.resources.interconnect_sensitive
    assert one(task("  accelerators: H100:8\n  network_tier: best")).workload.resources.interconnect_sensitive is False


def test_environment_secrets_and_what_is_given_at_launch():
    text = task(
        "  accelerators: L4:1",
        "envs:\n  EPOCHS: 3\n  EMPTY: ''\n  HF_TOKEN:\n  DATASET:\n  KEY: sk-abcdefghijklmnopqrstuvwx\nsecrets:\n  WANDB_API_KEY: hunter2\n",
    )
    job = one(text)
    assert dict(job.workload.env) == {"EPOCHS": "3", "EMPTY": ""}
    assert became(job, "envs.KEY")[0] == "left"
    assert "hunter2" not in job.written.text
    assert "sk-abc" not in job.written.text
    assert "secrets" in why(job, "envs.HF_TOKEN")
    assert "--env DATASET=" in why(job, "envs.DATASET")
    assert dict(one(text, env={"DATASET": "c4"}).workload.env)["DATASET"] == "c4"


MOUNTS = """\
envs: {BUCKET: acme-corpus, GONE: }
file_mounts:
  /data: s3://acme-corpus/x
  /gcs: {source: gs://acme-b, mode: COPY}
  /ckpt: {name: $BUCKET, store: s3, mode: MOUNT}
  /az: https://acmeml.blob.core.windows.net/corpus/x
  /code: ./code
  /r2: r2://acme
  /who: {name: acme-who}
  /gone: {name: "${GONE}", store: s3}
  ~/.cache: gs://acme-cache
  /etc: s3://acme-etc
"""


def test_buckets_become_data_and_local_files_are_told():
    job = one(task("  accelerators: L4:1", MOUNTS))
    found = {d.at.uri: (d.mount, d.copy_to) for d in job.workload.data}
    assert found == {
        "s3://acme-corpus/x": (None, "/data"),
        "gs://acme-b/": (None, "/gcs"),
        "s3://acme-corpus/": ("/ckpt", None),
        "az://acmeml/corpus/x": (None, "/az"),
        "gs://acme-cache/": (None, None),
        "s3://acme-etc/": (None, None),
    }
    assert {d.at.store for d in job.workload.data} == {Store.S3, Store.GCS, Store.AZURE_BLOB}
    assert "read-only here" in why(job, 'file_mounts["/ckpt"].name')
    assert {became(job, f'file_mounts["/{k}"]')[0] for k in ("code", "r2")} == {"left"}
    assert "store is not said" in why(job, 'file_mounts["/who"]')
    assert "given at launch" in why(job, 'file_mounts["/gone"]')
    assert {d.size_bytes for d in job.workload.data} == {100 * 10**9}
    assert "data[0].size" in unsaid(job)
    assert "data[0].region" in unsaid(job)
    assert {d.size_bytes for d in one(task("  accelerators: L4:1", MOUNTS), data_size="2TB").workload.data} == {
        2 * 10**12
    }


def test_inputs_say_a_size():
    job = one(
        task(
            "  accelerators: L4:1",
            "file_mounts: {/d: s3://acme-x}\ninputs: {s3://acme-x: 150}\noutputs: {gs://acme-o: 3}\n",
        )
    )
    assert [d.size_bytes for d in job.workload.data] == [150 * 10**9]
    assert job.workload.output is not None
    assert "data[0].size" not in unsaid(job)


def test_what_is_not_said_is_marked_and_listed():
    job = one(task("  accelerators: A100:8"))
    assert "work.hours" in unsaid(job)
    assert "hours: 24  # TODO" in job.written.text
    given = one(task("  accelerators: A100:8"), hours=36.0, work_model="H100:8")
    assert (given.workload.work.hours, given.workload.work.model) == (36, "H100")
    assert "work.hours" not in unsaid(given)


def test_scripts_are_carried_word_for_word_and_told_what_nodes_do_not_set():
    script = 'set -e\ncd ~/sky_workdir\nM=$(echo "$SKYPILOT_NODE_IPS" | head -n1)\nrun $SKYPILOT_NODE_RANK $SKYPILOT_INTERNAL\n'
    job = one(
        "num_nodes: 2\nresources: {accelerators: L4:2}\nrun: |\n"
        + "".join(f"  {line}\n" for line in script.splitlines())
    )
    assert job.workload.run.endswith(script)
    assert 'export SKYPILOT_NODE_RANK="${NODE_RANK:-0}"' in job.workload.run
    assert "SKYPILOT_NUM_NODES" not in job.workload.run
    told = {e.at.line: e.why for e in job.entries if e.path == "run" and e.outcome.value == "note"}
    assert "SKYPILOT_INTERNAL" in told[7]
    assert "sky_workdir" in told[5]


def test_all_addresses_are_not_known_to_a_node():
    text = "num_nodes: 2\nresources: {accelerators: L4:2}\nrun: |\n  for ip in $SKYPILOT_NODE_IPS; do echo $ip; done\n"
    job = one(text)
    assert "export SKYPILOT_NODE_IPS" not in job.workload.run
    assert "reads all of $SKYPILOT_NODE_IPS" in why(job, "run")
    assert "export SKYPILOT_NODE_IPS" in one(text.replace("num_nodes: 2\n", "")).workload.run


@pytest.mark.parametrize(
    ("more", "line", "says"),
    [
        ("service: {readiness_probe: /v1}\n", 5, "a service"),
        ("pool: {workers: 2}\n", 5, "a pool"),
        ("num_node: 2\n", 5, "`num_node` is no field of SkyPilot that is known | did you mean `num_nodes`?"),
        ("num_nodes: many\n", 5, "`num_nodes`: `many` is not a whole number"),
        ("name: t2\n", 5, "written twice"),
        ("file_mounts: {/x: {source: s3://acme, moed: COPY}}\n", 5, "moed"),
    ],
)
def test_what_cannot_be_a_job_is_refused_at_its_line(more: str, line: int, says: str):
    found_line, text = error_of(task("  accelerators: L4:1", more), "skypilot")
    assert found_line == line
    assert says in text


def test_a_task_that_runs_nothing():
    assert "no `run`" in error_of("resources: {accelerators: L4:1}\nsetup: pip install x\n")[1]


def test_a_secret_in_a_script_is_refused_and_not_shown():
    _, text = error_of("resources: {accelerators: L4:1}\nrun: login sk-abcdefghijklmnopqrstuvwx\n")
    assert "secret" in text
    assert "sk-abc" not in text


def test_a_pipeline_becomes_a_job_each():
    result = result_of(
        "name: pipe\n---\nname: prep\nresources: {accelerators: L4:1}\nrun: a\n---\nresources: {accelerators: H100:8}\nrun: b\n"
    )
    assert [job.name for job in result.jobs] == ["prep", "task-3"]
    assert "do not wait for each other" in why(result.jobs[1], "(document)")
    assert [e.path for e in result.others] == ["name"]


def test_a_pipeline_of_which_one_part_needs_no_gpu_is_refused_at_that_part():
    result = result_of(
        "name: prep\nresources: {cpus: 4}\nrun: a\n---\nname: train\nresources: {accelerators: H100:8}\nrun: b\n"
    )
    assert result.failed
    assert [(p.location.line, p.code) for p in result.problems if p.location] == [(2, "SKY-SPEC-103")]


def test_an_alias_bomb_is_refused():
    text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)
    )
    assert "too many values" in error_of(text, "skypilot")[1]


def test_values_shared_by_an_alias_are_accounted_for_at_each_place():
    job = one("resources: {accelerators: L4:1}\nenvs: &e {A: '1'}\nsecrets: *e\nrun: a\n")
    assert [became(job, path)[0] for path in ("envs.A", "secrets.A")] == ["carried", "left"]


@pytest.mark.parametrize("written", ["[{T4: 1}, 'V100:2', {A100: 1}]", "[{A100: }, T4, 'V100:2']"])
def test_a_list_may_hold_mappings(written: str):
    assert accelerators(one(task(f"  accelerators: {written}"))) == ["A100:1", "T4:1", "V100:2"]


def test_variables_that_a_program_within_the_script_reads_are_seen():
    text = "num_nodes: 2\nresources: {accelerators: L4:2}\nrun: |\n  # SKYPILOT_NODE_IPS in a comment\n  python -c \"import os; os.environ['SKYPILOT_NODE_IPS']\"\n  echo $SKYPILOT_NODE_RANK\n"
    job = one(text)
    assert "reads all of $SKYPILOT_NODE_IPS" in why(job, "run")
    assert 'export SKYPILOT_NODE_RANK="${NODE_RANK:-0}"' in job.workload.run
    assert "export SKYPILOT_NODE_IPS" not in job.workload.run


def test_what_needs_ssh_between_nodes_is_told():
    text = "num_nodes: 2\nresources: {accelerators: L4:2}\nrun: |\n  # mpirun later\n  echo a\n  mpirun -np 4 python a.py\n"
    (line,) = [e.at.line for e in one(text).entries if "needs SSH between the nodes" in e.why]
    assert line == 6
    assert "SSH" not in why(one(text.replace("num_nodes: 2\n", "")), "run")


def test_an_image_of_a_registry_needs_no_word_before_it():
    job = one(task("  accelerators: L4:1\n  image_id: ghcr.io/acme/train:1.4"))
    assert job.workload.image is not None
    assert became(job, "resources.image_id")[0] == "changed"
    assert (
        became(one(task("  accelerators: L4:1\n  image_id: ami-0868a20f5a3bf9702")), "resources.image_id")[0] == "left"
    )


def test_a_name_that_says_secret_is_not_carried_and_one_that_does_not_is():
    job = one(
        task(
            "  accelerators: L4:1",
            "envs: {WANDB_API_KEY: hunter2, TOKENIZERS_PARALLELISM: 'false', MAX_TOKEN: 100, HF_TOKEN: ''}\n",
        )
    )
    assert dict(job.workload.env) == {"MAX_TOKEN": "100", "TOKENIZERS_PARALLELISM": "false"}
    assert "hunter2" not in job.written.text


def test_a_registry_login_is_told_not_carried():
    job = one(task("  accelerators: L4:1", "envs: {SKYPILOT_DOCKER_USERNAME: u, SKYPILOT_DOCKER_SERVER: ghcr.io}\n"))
    assert not job.workload.env
    assert "registry_auth" in why(job, "envs.SKYPILOT_DOCKER_USERNAME")


@pytest.mark.parametrize("envs", ["[A, B]", "x"])
def test_an_environment_that_is_no_mapping(envs: str):
    assert error_of(task("  accelerators: L4:1", f"envs: {envs}\n"))[1].startswith("`envs` must be a mapping")


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("a/My_Task.yaml", "my-task"),
        ("train.sky.yaml", "train"),
        ("llm/tune/.dstack.yml", "tune"),
        (".dstack.yml", "job"),
        ("9.yml", "job-9"),
    ],
)
def test_a_job_without_a_name_is_called_after_its_file(file: str, name: str):
    assert one("resources: {accelerators: L4:1}\nrun: a\n", file=file).name == name
