"""One variable, one secret per cloud: the node reads its own cloud's."""

from __future__ import annotations

import pytest

from planner.iam.grants import grants_for
from planner.model.offer import Cloud
from planner.model.project import Target
from planner.model.workload import SecretRef
from planner.spec.normal import workload_document, workload_from_document
from tests import builders as b
from tests.unit.spec.spec_words import JOB, found, job_of

AWS, GCP = "aws-secretsmanager://acme/hf", "gcp-secretmanager://acme-ml/hf"


def text(value: str) -> str:
    return JOB + f"\nsecrets: {{HF_TOKEN: {value}}}\n"


def test_a_list_is_one_reference_per_store() -> None:
    job = job_of(text(f'["{AWS}", "{GCP}"]'))
    assert [s.store for s in job.secrets] == ["aws-secretsmanager", "gcp-secretmanager"]
    assert workload_from_document(workload_document(job)) == job


@pytest.mark.parametrize(
    ("value", "code"), [(f'["{AWS}", "{AWS}"]', "113"), ("[]", "111"), (f'["{AWS}", hunter2]', "111")]
)
def test_one_store_twice_none_or_a_value_is_refused(value: str, code: str) -> None:
    problems = found(text(value))
    assert f"SKY-SPEC-{code}" in str(problems)
    assert "hunter2" not in str(problems)


@pytest.mark.parametrize(("cloud", "wanted"), [("aws", AWS), ("gcp", GCP), ("azure", AWS)])
def test_a_node_reads_its_own_clouds(cloud: str, wanted: str) -> None:
    refs = (
        SecretRef(env="HF_TOKEN", store="aws-secretsmanager", path="acme/hf"),
        SecretRef(env="HF_TOKEN", store="gcp-secretmanager", path="acme-ml/hf"),
    )
    job = b.workload(secrets=refs)
    (found,) = job.secrets_in(cloud)
    assert f"{found.store}://{found.path}" == wanted
    granted = [g.resource for g in grants_for(job, Target(name="t", cloud=Cloud(cloud)), Cloud(cloud))]
    assert wanted in granted
    assert len([g for g in granted if "secret" in g]) == 1
