"""What batch scripts of many clusters taught: each case says in words of its own a form that was read wrong, or not at all, and the value it has."""

from __future__ import annotations

import pytest

from tests.unit.spec.foreign.foreign_files import accelerators, became, error_of, one, unsaid, why


def script(*options: str, body: str = "python a.py\n", shebang: str = "#!/bin/bash") -> str:
    return f"{shebang}\n" + "".join(f"#SBATCH {option}\n" for option in options) + "\n" + body


def notes(text: str) -> list[tuple[int, str]]:
    return [
        (e.at.line, e.why) for e in one(text).entries if e.outcome.value == "note" and "submitted from" not in e.why
    ]


@pytest.mark.parametrize(
    ("options", "cpus"),
    [
        (["--cpus-per-gpu=12"], 24),
        (["--cpus-per-gpu 12", "--ntasks=4"], 24),
        (["-n 16"], 16),
        (["-n 16", "-N 2"], 8),
        (["--tasks-per-node=6"], 6),
        (["--tasks-per-node 2", "-c 8"], 16),
        (["--ntasks=1"], None),
        (["--cpus-per-gpu=1", "--mincpus=9"], 9),
    ],
)
def test_cpus_are_the_most_that_any_option_asks_for(options: list[str], cpus: int | None):
    job = one(script("--gpus-per-node=l4:2", *options))
    assert job.workload.resources.min_vcpus == cpus


def test_memory_per_cpu_counts_the_cpus_per_gpu():
    job = one(script("--gpus-per-node=l4:2", "--cpus-per-gpu=4", "--mem-per-cpu=3G"))
    assert job.workload.resources.min_ram_gib == 24


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a100-80:2", "A100-80GB:2"),
        ("a100_80gb:2", "A100-80GB:2"),
        ("nvidia_h100:8", "H100:8"),
        ("tesla-v100:1", "V100:1"),
        ("nvidia_h100_hbm3:1", "H100:1"),
    ],
)
def test_clusters_spell_a_gpu_in_their_own_ways(written: str, meant: str):
    assert accelerators(one(script(f"--gres=gpu:{written}"))) == [meant]


def test_a_memory_that_is_said_is_not_doubted():
    assert became(one(script("--gres=gpu:a100-80:1")), "gres") == ("carried", 2, "resources.accelerators")
    assert "may be" in why(one(script("--gres=gpu:a100:1")), "gres")


@pytest.mark.parametrize(
    ("feature", "meant"),
    [
        ("h100", ["H100:2"]),
        ('"h100|h200"', ["H100:2", "H200:2"]),
        ("gpu&l40s", ["L40S:2"]),
        ("[a100-80|ib]", ["A100-80GB:2"]),
    ],
)
def test_a_feature_that_names_a_gpu_says_which_is_meant(feature: str, meant: list[str]):
    job = one(script("--gpus-per-node=2", f"--constraint={feature}"))
    assert accelerators(job) == meant
    assert became(job, "constraint") == ("changed", 3, "resources.accelerators")


def test_a_feature_that_names_none_is_left_out():
    job = one(script("--gpus-per-node=2", "-C nvme"))
    assert accelerators(job) == [">=16GiB:2"]
    assert became(job, "constraint") == ("left", 3, "")


def test_what_stands_beside_the_gpus_in_gres_is_told():
    assert "`tmpdisk:100` is left out" in why(one(script("--gres=gpu:l4:1,tmpdisk:100")), "gres")


@pytest.mark.parametrize("slice_of", ["gpu:1g.10gb:1", "gpu:a100_3g.20gb:1"])
def test_a_slice_of_a_gpu_is_none(slice_of: str):
    assert "slice of a GPU" in error_of(script(f"--gres={slice_of}"))[1]


def test_no_gpus_is_no_gpu():
    assert "asks for no GPU" in error_of(script("--gres=gpu:0"))[1]


def test_gpus_of_a_job_without_nodes_are_told_to_lie_on_one():
    assert "all 4 on one node" in why(one(script("--gpus=l4:4")), "gpus")
    assert became(one(script("--gpus=l4:1")), "gpus") == ("carried", 2, "resources.accelerators")


@pytest.mark.parametrize(
    ("written", "image"),
    [
        ("=nvcr.io/acme/torch:24.11-py3", "nvcr.io/acme/torch:24.11-py3"),
        ('="hub.example.org:5005#team/tool:v1"', "hub.example.org:5005/team/tool:v1"),
        (" ghcr.io\\#team/tool", "ghcr.io/team/tool"),
        ("=docker://ubuntu:24.04", "ubuntu:24.04"),
        ("=/scratch/images/tool.sqsh", None),
        ("=tool.sif", None),
    ],
)
def test_a_containers_image_is_carried_where_a_registry_has_it(written: str, image: str | None):
    job = one(
        script("--gpus=l4:1", f"--container-image{written}", "--container-mounts=/a:/a", "--no-container-mount-home")
    )
    assert (job.workload.image.ref if job.workload.image else None) == image
    assert became(job, "container-image")[0] == ("carried" if image else "left")
    assert became(job, "container-mounts")[0] == "left"


def test_lines_of_the_body_are_the_files_own_though_options_stand_between():
    text = "#!/bin/bash\n# why\n#SBATCH --gpus=l4:1\n\n#SBATCH -c 2\nmodule load a\necho $SLURM_SUBMIT_DIR\n"
    assert [line for line, _ in notes(text)] == [6, 7]


def test_a_secret_is_told_at_its_own_line():
    text = "#!/bin/bash\n# why\n#SBATCH --gpus=l4:1\n\necho a\nexport X=" + "hf_" + "a" * 34 + "\n"
    assert error_of(text)[0] == 6


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("conda activate x\n", "environment is the cluster's"),
        ('eval "$(conda shell.bash hook)"\n', "environment is the cluster's"),
        ("source venv/bin/activate\n", "lies on the cluster"),
        (". ./env.sh\n", "lies on the cluster"),
        ("singularity exec --nv a.sif python a.py\n", "container's image lies on the cluster"),
        ("python a.py --id $1 --n ${2:-3}\n", "an argument of sbatch"),
        ("python a.py $@\n", "an argument of sbatch"),
    ],
)
def test_what_only_the_cluster_has_is_told(body: str, says: str):
    assert [says in told for _, told in notes(script("--gpus=l4:1", body=body))] == [True]


@pytest.mark.parametrize(
    "body", ["awk '{print $1}' a\n", "run() {\n  echo $1\n}\nrun x\n", "# $1\necho a\n", "ml_train --x\n"]
)
def test_what_needs_no_cluster_is_not(body: str):
    assert not notes(script("--gpus=l4:1", body=body))


def test_another_shell_is_told():
    assert notes(script("--gpus=l4:1", shebang="#!/bin/zsh")) == [(1, "it was written for zsh; bash runs it here")]


def test_the_folder_it_starts_in_is_told():
    found = [e for e in one(script("--gpus=l4:1")).entries if "submitted from" in e.why]
    assert [(e.path, e.outcome.value) for e in found] == [("body", "note")]


def test_a_line_that_cannot_be_read_says_how_to_mend_it():
    line, says = error_of("#!/bin/bash\n#SBATCH --gpus=l4:1\n#SBATCH --comment=a \\\necho\n")
    assert line == 3
    assert "end no line with a backslash" in says


@pytest.mark.parametrize(
    ("export", "outcome"),
    [("ALL", "left"), ("NONE", "left"), ("ALL,UID=3", "left"), ("EPOCHS=3", "carried"), ("ALL,EPOCHS=3", "changed")],
)
def test_an_export_that_sets_no_variable_is_not_said_to_stand_in_the_job(export: str, outcome: str):
    job = one(script("--gpus=l4:1", f"--export={export}"))
    assert became(job, "export")[0] == outcome
    assert dict(job.workload.env) == ({"EPOCHS": "3"} if "EPOCHS" in export else {})


@pytest.mark.parametrize(("nodes", "outcome"), [("2-2", "carried"), ("2-4", "changed")])
def test_a_range_of_one_number_is_that_number(nodes: str, outcome: str):
    job = one(script("--gpus-per-node=l4:1", f"--nodes={nodes}"))
    assert job.workload.resources.nodes == 2
    assert became(job, "nodes")[0] == outcome


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ('export WANDB_API_KEY="' + "0a1b2c3d" * 5 + '"', True),
        ("WANDB_API_KEY=" + "0a1b2c3d" * 5 + "  # mine", True),
        ('export WANDB_API_KEY="$KEY"', False),
        ('export HF_TOKEN=""', False),
        ("export MAX_TOKENS=4096", False),
        ("export OUT=" + "0a1b2c3d" * 5, False),
    ],
)
def test_a_key_that_a_script_sets_by_name_is_a_secret(line: str, refused: bool):
    text = script("--gpus=l4:1", body=f"echo a\n{line}\npython a.py\n")
    if refused:
        assert error_of(text)[0] == 5
    else:
        assert line in one(text).workload.run


def test_nodes_that_may_need_a_fabric_are_told():
    assert "resources.interconnect_sensitive" in unsaid(one(script("--gpus-per-node=l4:1", "-N 2")))
    assert "resources.interconnect_sensitive" not in unsaid(one(script("--gpus-per-node=l4:1")))


def test_gpus_that_are_asked_for_below_the_first_command_are_told_there():
    line, says = error_of("#!/bin/bash\nset -e\n#SBATCH --gres=gpu:l4:1\npython a.py\n")
    assert line == 3
    assert "below the first command" in says


def test_a_mark_of_byte_order_is_no_command():
    assert accelerators(one("\ufeff" + script("--gres=gpu:l4:1"))) == ["L4:1"]
