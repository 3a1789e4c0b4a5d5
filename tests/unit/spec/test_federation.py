"""`federation` of skyplan.yaml: what each cloud's stores need, and that no secret gets in."""

from __future__ import annotations

import pytest

from planner.model.offer import Cloud
from tests.unit.spec.spec_words import project_of
from tests.unit.spec.test_project import PROVIDER, UUID

ROLE = "arn:aws:iam::012345678901:role/data"
S3 = f'stores: ["s3://acme-*"], from: [gcp], aws_role_arn: "{ROLE}"'
GCS = f'stores: ["gs://acme-*"], from: [aws], gcp_provider: "{PROVIDER}"'
BLOB = f'stores: ["az://acct/*"], from: [aws], azure_tenant_id: {UUID}, azure_client_id: {UUID}'


def entry(text: str):
    project, diagnostics = project_of(f"project: acme\nfederation:\n  - {{{text}}}\n")
    return project.federation, [(d.code, d.location.line if d.location else 0) for d in diagnostics], diagnostics


@pytest.mark.parametrize("text", [S3, S3 + ", aws_audience: api://skyplan", GCS, BLOB])
def test_a_whole_entry_is_read_without_a_word(text):
    (found,), codes, _ = entry(text)
    assert codes == []
    assert found.settings == tuple(sorted(found.settings))


def test_what_may_be_added_for_google_is_kept():
    more = ", gcp_service_account: skyplan-data@acme-ml.iam.gserviceaccount.com, gcp_audience: 'api://skyplan'"
    (found,), codes, _ = entry(GCS.replace("[aws]", "[azure, aws]") + more)
    assert codes == []
    assert (found.from_clouds, dict(found.settings)["gcp_audience"]) == ((Cloud.AWS, Cloud.AZURE), "api://skyplan")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (S3.replace('stores: ["s3://acme-*"], ', ""), "SKY-SPEC-103"),
        (S3.replace("from: [gcp], ", ""), "SKY-SPEC-103"),
        (S3.replace(f', aws_role_arn: "{ROLE}"', ""), "SKY-SPEC-103"),
        (BLOB.replace(f", azure_client_id: {UUID}", ""), "SKY-SPEC-103"),
        (S3.replace("s3://acme-*", "acme-*"), "SKY-SPEC-108"),
        (S3.replace("s3://acme-*", "nebius://acme"), "SKY-SPEC-105"),
        (S3.replace('"s3://acme-*"', '"s3://acme-*", "gs://acme"'), "SKY-SPEC-113"),
        (S3.replace("[gcp]", "[gcp, aws]"), "SKY-SPEC-113"),
        (S3.replace("[gcp]", "[nebius]"), "SKY-SPEC-105"),
        (S3.replace("[gcp]", "[google]"), "SKY-SPEC-105"),
        (S3.replace("role/data", "user/data"), "SKY-SPEC-105"),
        (GCS.replace("/providers/aws", ""), "SKY-SPEC-105"),
        (GCS + ", gcp_service_account: data", "SKY-SPEC-105"),
        (BLOB.replace(UUID, "acme"), "SKY-SPEC-105"),
        (S3 + f", azure_tenant_id: {UUID}", "SKY-SPEC-102"),
    ],
)
def test_what_is_wrong_is_named_at_its_line_and_left_out(text, code):
    found, codes, _ = entry(text)
    assert (code, 3) in codes
    assert found == () or code == "SKY-SPEC-102"


@pytest.mark.parametrize(
    "text",
    [
        S3.replace(ROLE, "AKIAIOSFODNN7EXAMPLE"),
        GCS + ", gcp_audience: AKIAIOSFODNN7EXAMPLE",
        S3.replace("s3://acme-*", "s3://AKIAIOSFODNN7EXAMPLE"),
    ],
)
def test_a_secret_is_refused_and_never_shown(text):
    found, codes, diagnostics = entry(text)
    assert ("SKY-SPEC-111", 3) in codes
    assert found == ()
    assert "AKIA" not in "".join(d.summary + d.hint for d in diagnostics)
