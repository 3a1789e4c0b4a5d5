"""What a job file may say, and what it says back."""

from __future__ import annotations

import pytest

from planner.model.diagnostic import Severity
from planner.model.offer import CapacityType
from planner.model.workload import GpuOption, SecretRef, Store, Workload
from tests.unit.spec.spec_words import JOB, found, job_of, jobs_of, with_, without


def test_the_smallest_job_has_every_default() -> None:
    job = job_of(JOB)
    assert isinstance(job, Workload)
    assert job.resources.accelerators == (GpuOption(model="A100-80GB", count=8),)
    assert (job.resources.nodes, job.resources.min_ram_gib) == (1, 500.0)
    assert job.resources.capacity == (CapacityType.ON_DEMAND,)
    assert (job.work.hours, job.work.model, job.work.count, job.work.nodes) == (24.0, "A100-80GB", 8, 1)
    assert (job.image, job.data, job.checkpoint, job.env, job.priority) == (None, (), None, (), 0)


def test_the_key_on_is_no_boolean() -> None:
    assert job_of(JOB).work.model == "A100-80GB"


def test_work_counts_the_jobs_own_nodes_where_it_says_no_number() -> None:
    text = JOB.replace("  memory: 500GiB+", "  nodes: 4")
    assert job_of(text).work.nodes == 4
    assert job_of(text.replace("on: A100-80GB:8}", "on: A100-80GB:8, nodes: 2}")).work.nodes == 2


@pytest.mark.parametrize(
    ("written", "hours"), [("24", 24), ("24h", 24), ("1d12h", 36), ("90m", 1.5), ("0.5", 0.5), ('"24"', 24)]
)
def test_hours_of_work_may_be_a_number_or_a_duration(written: str, hours: float) -> None:
    assert job_of(JOB.replace("hours: 24", f"hours: {written}")).work.hours == pytest.approx(hours)


@pytest.mark.parametrize("written", [".inf", ".nan", "-1", "0", "1e400", "24 hours", "h", "", "[24]", "99999999"])
def test_hours_that_are_no_amount_of_work_are_refused_at_their_line(written: str) -> None:
    codes = found(JOB.replace("hours: 24", f"hours: {written}"))
    assert [line for _, line in codes] == [6]
    assert codes[0][0] in {"SKY-SPEC-103", "SKY-SPEC-104", "SKY-SPEC-105"}


@pytest.mark.parametrize("memory", ["500GiB+", "500GiB", "500 GiB", "500gib"])
def test_at_least_is_always_meant(memory: str) -> None:
    assert job_of(JOB.replace("500GiB+", memory)).resources.min_ram_gib == 500.0


def test_a_bare_number_for_a_size_is_refused_and_the_units_are_named() -> None:
    _, (only,) = jobs_of(JOB.replace("500GiB+", "500"))
    assert (only.code, str(only.location)) == ("SKY-SPEC-105", "job.yaml:4")
    assert "500GiB" in only.hint
    assert "500GB" in only.hint


def test_every_error_is_found_at_once() -> None:
    text = (
        JOB.replace("500GiB+", "500")
        .replace("hours: 24", "hours: -1")
        .replace("capacity: on_demand", "capacity: spott")
    )
    assert found(with_(text, "colour: red", "priority: high")) == [
        ("SKY-SPEC-105", 4),
        ("SKY-SPEC-105", 5),
        ("SKY-SPEC-105", 6),
        ("SKY-SPEC-102", 8),
        ("SKY-SPEC-105", 9),
    ]


@pytest.mark.parametrize(
    ("key", "hint"), [("name", "name the job"), ("resources", "accelerators"), ("work", "how long"), ("run", "command")]
)
def test_a_missing_required_field_gets_a_hint(key: str, hint: str) -> None:
    jobs, (only,) = jobs_of(without(JOB, key))
    assert jobs == ()
    assert only.code == "SKY-SPEC-103"
    assert only.location is not None
    assert only.location.line == 1
    assert hint in only.hint


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("imge: x", "image"),
        ("Run2: x", "run"),
        ("checkpoints: {}", "checkpoint"),
        ("secret: {}", "secrets"),
        ("prio: 1", "priority"),
    ],
)
def test_an_unknown_field_is_answered_with_the_one_meant(typo: str, meant: str) -> None:
    _, diagnostics = jobs_of(with_(JOB, typo))
    assert [(d.code, d.location and d.location.line) for d in diagnostics] == [("SKY-SPEC-102", 8)]
    assert meant in diagnostics[0].hint


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "Llama",
        "-a",
        "a-",
        "a_b",
        "1a",
        "a" * 41,
        "a b",
        "llama3/8b",
        "a\u00e9b",
        "llama\n",
        '"llama\\n"',
        "no",
        "yes-ok",
    ],
)
def test_names_fit_every_cloud(name: str) -> None:
    codes = found(JOB.replace("llama3-8b-sft", name))
    assert codes == ([] if name in {"no", "yes-ok", "llama\n"} else [("SKY-SPEC-105", 1)])


def test_a_key_written_twice_names_both_lines() -> None:
    _, (only,) = jobs_of(with_(JOB, "run: again"))
    assert (only.code, str(only.location)) == ("SKY-SPEC-110", "job.yaml:8")
    assert "line 7" in only.summary


def test_env_values_are_kept_as_they_are_written() -> None:
    job = job_of(with_(JOB, "env: {B: 1.10, A: true, C: no, D: 0x10, E: '', F: 012, G: \"a b\"}"))
    assert job.env == (("A", "true"), ("B", "1.10"), ("C", "no"), ("D", "0x10"), ("E", ""), ("F", "012"), ("G", "a b"))


def test_env_without_a_value_or_with_a_bad_name_is_refused() -> None:
    assert found(with_(JOB, "env:", "  A:", "  b-c: 1", "  D: [1]")) == [
        ("SKY-SPEC-104", 9),
        ("SKY-SPEC-105", 10),
        ("SKY-SPEC-104", 11),
    ]


@pytest.mark.parametrize("value", ["yes", "no", "True", "1", '"true"', "on"])
def test_booleans_are_true_or_false(value: str) -> None:
    assert found(JOB.replace("memory: 500GiB+", f"interconnect_sensitive: {value}")) == [("SKY-SPEC-104", 4)]


def test_a_boolean_is_read() -> None:
    assert job_of(JOB.replace("memory: 500GiB+", "interconnect_sensitive: true")).resources.interconnect_sensitive


@pytest.mark.parametrize(
    ("written", "ref", "digest"),
    [
        ("ghcr.io/acme/train:1.4", "ghcr.io/acme/train:1.4", None),
        (f"ghcr.io/acme/train@sha256:{'a' * 64}", f"ghcr.io/acme/train@sha256:{'a' * 64}", f"sha256:{'a' * 64}"),
    ],
)
def test_an_image_is_a_tag_or_a_digest(written: str, ref: str, digest: str | None) -> None:
    image = job_of(with_(JOB, f"image: {{ref: {written}, size: 18GB}}")).image
    assert image is not None
    assert (image.ref, image.digest, image.size_bytes) == (ref, digest, 18_000_000_000)
    assert job_of(with_(JOB, f"image: {written}")).image is not None


@pytest.mark.parametrize(
    "image", ["a b", "train@sha256:12", "'train:1; rm -rf /'", "$(id)", "''", "{size: 1GB}", "[a]"]
)
def test_what_is_no_image_is_refused(image: str) -> None:
    assert [line for _, line in found(with_(JOB, f"image: {image}"))] == [8]


def test_data_of_all_four_clouds() -> None:
    job = job_of(
        with_(
            JOB,
            "data:",
            "  - {uri: s3://acme-corpus/llama/, region: us-east-1, size: 500GB, reads: 3}",
            "  - {uri: gs://acme-corpus, region: us-central1, size: 1TiB}",
            "  - {uri: az://acmeml/corpus/a/b, region: eastus, size: 1.5MB}",
            "  - {uri: nebius://acme-corpus/x, region: eu-north1, size: 1B}",
        )
    )
    assert [(d.at.store, d.at.bucket, d.at.prefix) for d in job.data] == [
        (Store.S3, "acme-corpus", "llama/"),
        (Store.GCS, "acme-corpus", ""),
        (Store.AZURE_BLOB, "acmeml/corpus", "a/b"),
        (Store.NEBIUS, "acme-corpus", "x"),
    ]
    assert [(d.size_bytes, d.reads) for d in job.data] == [(500 * 10**9, 3.0), (2**40, 1.0), (1_500_000, 1.0), (1, 1.0)]


@pytest.mark.parametrize(
    ("uri", "hint"),
    [
        ("acme-corpus/llama", "s3://"),
        ("s3a://acme-corpus/", "s3://acme"),
        ("gcs://acme-corpus/", "gs://acme"),
        ("az://acmeml", "az://acmeml/corpus"),
        ("s3://", "s3://acme"),
        ("s3://UPPER/", "s3://acme"),
        ("s3://bucket/a/../b", "s3://acme"),
        ("s3://bucket//a", "s3://acme"),
        ("s3://bucket/*", "s3://acme"),
        ("http://x.example.com/", "s3://"),
    ],
)
def test_a_malformed_location_is_answered_with_a_good_one(uri: str, hint: str) -> None:
    _, (only,) = jobs_of(with_(JOB, "data:", f"  - {{uri: '{uri}', region: us-east-1, size: 1GB}}"))
    assert (only.code, only.location and only.location.line) == ("SKY-SPEC-108", 9)
    assert hint in only.hint


@pytest.mark.parametrize("uri", ["s3://AKIAQ:hunter2hunter2@bucket/", "az://acmeml/corpus/a?sig=hunter2hunter2hunter2"])
def test_a_location_with_a_credential_is_never_shown(uri: str) -> None:
    _, diagnostics = jobs_of(with_(JOB, "data:", f"  - {{uri: '{uri}', region: us-east-1, size: 1GB}}"))
    assert {d.code for d in diagnostics} <= {"SKY-SPEC-108", "SKY-SPEC-111"}
    assert diagnostics
    assert "hunter2" not in str(diagnostics)


@pytest.mark.parametrize(
    ("region", "hint"),
    [("us-esat-1", "us-east-1"), ("us-central1", "is a region of gcp"), ("EU", "member region"), ("no", "regions are")],
)
def test_a_region_must_be_one_of_the_stores_cloud(region: str, hint: str) -> None:
    _, (only,) = jobs_of(with_(JOB, "data:", f"  - {{uri: s3://acme-corpus/, size: 1GB, region: {region}}}"))
    assert (only.code, only.severity, only.location and only.location.line) == ("SKY-SPEC-105", Severity.ERROR, 9)
    assert hint in only.hint


def test_data_without_a_region_warns_that_egress_is_unknown() -> None:
    job, (only,) = jobs_of(with_(JOB, "data: [{uri: s3://acme-corpus/, size: 1GB}]"))
    assert (only.code, only.severity) == ("SKY-SPEC-114", Severity.WARNING)
    assert "region: us-east-1" in only.hint
    assert job[0].data[0].at.region is None


def test_spot_without_a_checkpoint_warns_and_with_one_does_not() -> None:
    spot = JOB.replace("capacity: on_demand", "capacity: [on_demand, spot]")
    _, (only,) = jobs_of(spot)
    assert (only.code, only.severity, str(only.location)) == ("SKY-SPEC-113", Severity.WARNING, "job.yaml:5")
    checkpoint = "checkpoint: {uri: s3://acme-ckpt/, region: us-east-1, size: 96GB, every: %s}"
    assert found(with_(spot, checkpoint % "30m")) == []
    assert found(with_(spot, checkpoint % "24h")) == [("SKY-SPEC-113", 8)]


def test_the_order_of_lists_that_mean_any_of_changes_nothing() -> None:
    one = with_(
        JOB.replace("A100-80GB:8\n", "[H100:8, A100-80GB:8]\n"),
        "constraints: {clouds: [gcp, aws], regions: ['us-*', 'eu-*']}",
    )
    other = with_(
        JOB.replace("A100-80GB:8\n", "[A100-80GB:8, H100:8]\n"),
        "constraints: {clouds: [aws, gcp], regions: ['eu-*', 'us-*']}",
    )
    assert job_of(one) == job_of(other)


def test_constraints_are_read() -> None:
    limits = job_of(
        with_(
            JOB,
            "constraints: {deadline: 2d, max_usd_per_hour: 60, max_usd_total: $2000.5, clouds: aws, instance_types: ['p5*']}",
        )
    ).constraints
    assert (limits.deadline_hours, limits.max_usd_per_hour, limits.max_usd_total) == (48.0, 60.0, 2000.5)
    assert (limits.clouds, limits.regions, limits.instance_types) == (("aws",), (), ("p5*",))


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("clouds: [amazon]", "aws"),
        ("clouds: [aws, gpc]", "gcp"),
        ("clouds: []", "leave it out"),
        ("regions: [us-esat-1]", "us-east-1"),
        ("regions: ['mars-*']", "names are such as"),
        ("regions: ['[a-z]*']", "glob"),
        ("instance_types: [p5.48xlarg]", "p5.48xlarge"),
        ("max_usd_total: 0", "above 0"),
        ("max_usd_total: .nan", "US dollars"),
        ("max_usd_per_hour: -5", "US dollars"),
        ("deadline: 48", "48h"),
        ("deadline: 48hours", "1d12h"),
        ("deadlin: 48h", "deadline"),
    ],
)
def test_a_wrong_constraint_gets_a_hint(written: str, hint: str) -> None:
    _, (only,) = jobs_of(with_(JOB, "constraints:", f"  {written}"))
    assert only.location is not None
    assert only.location.line == 9
    assert hint in only.hint


def test_regions_that_leave_a_named_cloud_without_any_are_pointed_out() -> None:
    _, (only,) = jobs_of(with_(JOB, "constraints: {clouds: [aws, azure], regions: ['us-*']}"))
    assert (only.code, only.severity) == ("SKY-SPEC-113", Severity.WARNING)
    _, (only,) = jobs_of(with_(JOB, "constraints: {clouds: [azure], regions: ['us-*']}"))
    assert (only.code, only.severity) == ("SKY-SPEC-113", Severity.ERROR)


def test_secrets_are_references() -> None:
    job = job_of(
        with_(
            JOB, "secrets: {HF_TOKEN: aws-secretsmanager://acme/hf}", "registry_auth: gcp-secretmanager://acme-ml/ghcr"
        )
    )
    assert job.secrets == (SecretRef(env="HF_TOKEN", store="aws-secretsmanager", path="acme/hf"),)
    assert job.registry_auth == SecretRef(env="", store="gcp-secretmanager", path="acme-ml/ghcr")


def test_a_variable_stands_under_env_or_under_secrets() -> None:
    assert found(with_(JOB, "env: {HF: x}", "secrets:", "  HF: aws-secretsmanager://acme/hf")) == [("SKY-SPEC-113", 10)]


@pytest.mark.parametrize("tag", ["'skyplan:job': x", "'aws:thing': x", "'': x", f"a: {'x' * 257}", f"{'x' * 200}: a"])
def test_reserved_and_malformed_tags_are_refused(tag: str) -> None:
    assert [code for code, _ in found(with_(JOB, f"tags: {{{tag}}}"))] == ["SKY-SPEC-105"]


def test_several_documents_are_several_jobs() -> None:
    jobs, diagnostics = jobs_of(f"{JOB}---\n{JOB.replace('llama3-8b-sft', 'other')}---\n")
    assert [job.name for job in jobs] == ["llama3-8b-sft", "other"]
    assert diagnostics == ()


def test_two_jobs_of_one_name_are_an_error_at_the_second() -> None:
    jobs, (only,) = jobs_of(f"{JOB}---\n{JOB}")
    assert (len(jobs), only.code, str(only.location)) == (1, "SKY-SPEC-112", "job.yaml:9")


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "~\n"])
def test_a_file_without_a_job_says_so(text: str) -> None:
    assert [code for code, _ in found(text)] == ["SKY-SPEC-103"]


@pytest.mark.parametrize("text", ["just words", "- a\n- b\n", "3"])
def test_a_job_must_be_a_mapping(text: str) -> None:
    assert [code for code, _ in found(text)] == ["SKY-SPEC-104"]


def test_anchors_and_merges_are_followed() -> None:
    text = with_(JOB, "env: &e {A: 1, B: 2}", "tags: {<<: *e, B: 3}")
    assert job_of(text).tags == (("A", "1"), ("B", "3"))


MANY = JOB.replace("memory: 500GiB+", "nodes: 2")


def test_a_tunnel_and_a_session_are_asked_for_never_given() -> None:
    job = job_of(MANY)
    assert (job.tunnel, job.session) == (False, False)
    job = job_of(with_(MANY, "network: {across: tunnel, sync: {size: 2GB, every: 30s}}", "access: session"))
    assert (job.tunnel, job.session) == (True, True)
    assert (job.sync_bytes, job.sync_seconds) == (2_000_000_000, 30.0)


def test_a_tunnel_without_what_goes_through_it_is_one_mistake_and_so_is_a_wrong_word() -> None:
    assert found(with_(MANY, "network: {across: tunnel}")) == [("SKY-SPEC-103", 8)]
    assert found(with_(MANY, "network: {across: vpn}")) == [("SKY-SPEC-105", 8)]


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("network: {across: vpn}", "SKY-SPEC-105"),
        ("network: {across: tunnel}", "SKY-SPEC-103"),
        ("network: {across: tunnel, sync: {every: 30s}}", "SKY-SPEC-103"),
        ("network: {across: tunnel, sync: {size: 2GB}}", "SKY-SPEC-103"),
        ("network: {across: tunnel, sync: {size: 2GB, every: 30}}", "SKY-SPEC-105"),
        ("network: {across: tunnel, sync: {size: 2, every: 30s}}", "SKY-SPEC-105"),
        ("network: {across: tunnel, sync: 2GB}", "SKY-SPEC-104"),
        ("network: {across: tunnel, sync: {size: 2GB, every: 30s, how: ring}}", "SKY-SPEC-102"),
        ("network: {}", "SKY-SPEC-103"),
        ("network: {via: tunnel}", "SKY-SPEC-102"),
        ("network: tunnel", "SKY-SPEC-104"),
        ("access: ssh", "SKY-SPEC-105"),
        ("access: [session]", "SKY-SPEC-104"),
        ("constraints: {stop_after: 48}", "SKY-SPEC-105"),
    ],
)
def test_other_words_for_network_access_and_hard_end_are_refused(written: str, code: str) -> None:
    assert (code, 8) in found(with_(MANY, written))


def test_a_tunnel_contradicts_a_single_node_and_a_fast_fabric() -> None:
    assert found(with_(JOB, "network: {across: tunnel, sync: {size: 2GB, every: 30s}}")) == [("SKY-SPEC-113", 8)]
    sensitive = MANY.replace("nodes: 2", "nodes: 2\n  interconnect_sensitive: true")
    assert found(with_(sensitive, "network: {across: tunnel, sync: {size: 2GB, every: 30s}}")) == [("SKY-SPEC-113", 9)]


def data(*entries: str) -> str:
    lines = [f"  - {{uri: s3://acme-corpus/{i}/, region: us-east-1, size: 1GB, {e}}}" for i, e in enumerate(entries)]
    return with_(JOB, "data:", *lines)


def test_data_is_streamed_mounted_or_copied() -> None:
    job = job_of(data("reads: 2", "mount: /data/", "copy_to: /scratch/data"))
    assert [(d.mount, d.copy_to) for d in job.data] == [(None, None), ("/data", None), (None, "/scratch/data")]


@pytest.mark.parametrize(
    "folder",
    [
        *("data", "/", "/data/../etc", "/da ta", "//data", "~/data", "'/$(id)'", "/a:/b"),
        *("/run", "/proc/1", "/sys", "/dev/shm", "/etc/x", "/opt/skyplan", "/opt/skyplan/job", "/usr/local"),
        *("/opt", "/var", "/var/lib/docker"),
    ],
)
def test_folders_that_are_not_the_jobs_are_refused(folder: str) -> None:
    assert found(data(f"mount: {folder}")) == [("SKY-SPEC-105", 9)]
    assert found(data(f"copy_to: {folder}")) == [("SKY-SPEC-105", 9)]


@pytest.mark.parametrize(
    "folder", ["/opt/data", "/running", "/scratch/data", "/mnt/a.b_c-1", "/var/tmp/x", "/etcetera"]
)
def test_other_folders_are_the_jobs(folder: str) -> None:
    assert job_of(data(f"mount: {folder}")).data[0].mount == folder


@pytest.mark.parametrize(
    ("entries", "line"),
    [
        (("mount: /a, copy_to: /b",), 9),
        (("mount: /a", "mount: /a"), 10),
        (("mount: /a", "copy_to: /a/b"), 10),
        (("copy_to: /a/b", "mount: /a"), 10),
    ],
)
def test_two_datasets_never_share_a_folder(entries: tuple[str, ...], line: int) -> None:
    assert found(data(*entries)) == [("SKY-SPEC-113", line)]


@pytest.mark.parametrize("name", ["UID", "EUID", "PPID", "SHELLOPTS", "BASHOPTS", "IFS"])
def test_names_that_the_nodes_shell_keeps_are_refused(name: str) -> None:
    assert ("SKY-SPEC-105", 8) in found(JOB + f'\nenv: {{{name}: "1"}}\n') or ("SKY-SPEC-105", 9) in found(
        JOB + f'\nenv: {{{name}: "1"}}\n'
    )


def test_a_jobs_name_has_no_double_dash() -> None:
    """It parts the job from its place in a stack's name."""
    assert any(code == "SKY-SPEC-105" for code, _ in found(JOB.replace("llama3-8b-sft", "a--b")))
