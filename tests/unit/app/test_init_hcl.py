"""R22 (installable, ready-made tests): Terraform's own language as `init` reads it, held to python-hcl2 on what both can say."""

from __future__ import annotations

import io

import hcl2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.app.init_hcl import Block, Reference, Unreadable, blocks, json_blocks

STRANGERS = """
# a comment with "quotes" and { braces
terraform {
  required_version = ">= 1.5"   // and another
  required_providers {
    aws = { source = "hashicorp/aws", version = "~> 5.0" }
  }
  backend "s3" {
    bucket = "acme-tfstate"
    key    = "infra/prod.tfstate"
    region = "eu-west-1"
    encrypt = true
    /* over
       lines */
    max_retries = 3
  }
}
locals { a = "b" }
variable "region" {
  default = "eu-west-1"
}
provider "aws" {
  region              = var.region
  allowed_account_ids = [
    "123456789012", # the one
  ]
  assume_role {
    role_arn = "arn:aws:iam::123456789012:role/ci"
  }
  default_tags { tags = { a = "${var.x}-${lower("B}")}" } }
}
resource "aws_iam_policy" "p" {
  policy = <<-EOT
    provider "aws" { region = "no" }
  EOT
  name = a ? "b" : c["}"]
}
"""


def test_blocks_values_and_lines() -> None:
    terraform, local, variable, provider, resource = blocks(STRANGERS).blocks
    (backend,) = terraform.within("backend")
    assert (backend.labels, backend.line) == (("s3",), 8)
    assert backend.values == {
        "bucket": "acme-tfstate",
        "key": "infra/prod.tfstate",
        "region": "eu-west-1",
        "encrypt": "true",
        "max_retries": "3",
    }
    assert local.values == {"a": "b"}
    assert variable.values == {"default": "eu-west-1"}
    assert provider.values["region"] == Reference("var", "region")
    assert provider.values["allowed_account_ids"] == ("123456789012",)
    assert next(provider.within("assume_role")).values == {"role_arn": "arn:aws:iam::123456789012:role/ci"}
    assert resource.values == {"policy": None, "name": None}


def test_python_hcl2_reads_the_same_backend_and_provider() -> None:
    theirs = hcl2.load(io.StringIO(STRANGERS))
    (backend,) = next(b.within("backend") for b in blocks(STRANGERS).blocks if b.kind == "terraform")
    said = next(iter(theirs["terraform"][0]["backend"][0].values()))
    plain = {k: str(v).strip('"') for k, v in said.items() if not k.startswith("__")}
    assert {k: v.lower() if k == "encrypt" else v for k, v in plain.items()} == backend.values


@pytest.mark.parametrize(
    ("value", "means"),
    [
        ('"a"', "a"),
        ('"$${a}"', "${a}"),
        ('"%%{a}"', "%{a}"),
        (r'"a\"b\\"', 'a"b\\'),
        ('"${var.a}"', None),
        ('"%{ if a }x%{ endif }"', None),
        ("true", "true"),
        ("12", "12"),
        ("null", None),
        ("local.a", Reference("local", "a")),
        ("module.a.b", None),
        ("var.a.b", None),
        ("[]", ()),
        ('["a", "b"]', ("a", "b")),
        ('["a", var.b]', None),
        ('["a" "b"]', None),
        ('upper("a")', None),
        ("{ a = 1 }", None),
        ("1 + 2", None),
    ],
)
def test_what_is_a_literal_and_what_terraform_would_have_to_compute(value: str, means: object) -> None:
    assert blocks(f"x = {value}\ny = 1\n").values == {"x": means, "y": "1"}


def test_lines_are_counted_through_what_spans_several() -> None:
    found = blocks('a = <<E\none\ntwo\nE\n/* x\n\n*/ b {}\nc = [\n"x",\n]\n\td {}')
    assert [(b.kind, b.line) for b in found.blocks] == [("b", 7), ("d", 11)]
    assert found.values == {"a": None, "c": ("x",)}


@pytest.mark.parametrize(
    "text",
    ['a = "', "a {", "}", "a = [", "a = <<E\nx\n", "= 1", 'a "b" = 1', 'a = "${"', "§", "a {" * 200],
)
def test_what_is_no_terraform_is_said_with_its_line(text: str) -> None:
    with pytest.raises(Unreadable, match="line"):
        blocks(text)


def test_json_says_the_same() -> None:
    found = json_blocks(
        '{"terraform": {"backend": {"gcs": {"bucket": "b"}}}, "provider": {"google": [{"project": "${var.p}"}]},'
        ' "variable": {"p": {"default": "acme"}}, "locals": {"a": true}}'
    )
    by_kind = {b.kind: b for b in found.blocks}
    assert next(by_kind["terraform"].within("backend")).values == {"bucket": "b"}
    assert by_kind["provider"].values == {"project": Reference("var", "p")}
    assert by_kind["variable"].values == {"default": "acme"}
    assert by_kind["locals"].values == {"a": "true"}
    for text in ("[", "[]", "3"):
        with pytest.raises(Unreadable):
            json_blocks(text)


@given(st.text(alphabet='ab"{}[]=<-$%#/*\\\n .,1', max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = blocks(text)
    except (Unreadable, RecursionError):
        return
    assert isinstance(found, Block)


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00"), max_size=40))
def test_a_literal_survives_quoting(text: str) -> None:
    quoted = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("${", "$${").replace("%{", "%%{")
    )
    if "\r" in text or "$$" in text or "%%" in text:
        return
    assert blocks(f'x = "{quoted}"').values == {"x": text}
