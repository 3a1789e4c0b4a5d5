"""The one right that federation needs on AWS, and only where it is used."""

from __future__ import annotations

import pytest

from planner.iam.aws import token_policy
from planner.model.reach import DataPath, Reach


def path(uri: str, reach: Reach) -> DataPath:
    return DataPath(uri=uri, write=False, reach=reach, detail="")


@pytest.mark.parametrize(
    ("uri", "reach"),
    [("s3://b/p/", Reach.PLATFORM), ("gs://b/p/", Reach.FEDERATION), ("az://a/c/p/", Reach.BROKER)],
)
def test_no_token_is_asked_for_where_none_is_exchanged(uri, reach):
    assert token_policy((path(uri, reach),)) == ()


def test_r04_the_token_is_good_for_one_audience_only():
    (document,) = token_policy((path("az://a/c/p/", Reach.FEDERATION), path("az://a/d/", Reach.FEDERATION)))
    (statement,) = document.document["Statement"]
    assert statement["Action"] == ["sts:GetWebIdentityToken"]
    assert statement["Condition"] == {
        "ForAllValues:StringEquals": {"sts:IdentityTokenAudience": ["api://AzureADTokenExchange"]},
        "Null": {"sts:IdentityTokenAudience": ["false"]},
    }
