"""AWS in every form that a Terraform document has."""

from __future__ import annotations

import json

import pytest

from planner.iam.read.terraform import read_terraform
from planner.model.grants import Identity
from planner.model.policy import PolicyKind, Test

READ = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::b/*"}
TRUST = {
    "Version": "2012-10-17",
    "Statement": {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}},
}


def policy(*statements):
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def read(resource=None, data=None, **more):
    return read_terraform({"resource": resource or {}, "data": data or {}, **more}, file="main.tf.json")


def only(audited):
    (subject,) = audited.subjects
    return subject


def actions(subject, kind=PolicyKind.IDENTITY):
    return {p.name: [s.actions for s in p.statements] for p in subject.of_kind(kind)}


def test_role_with_all_that_it_can_hold():
    subject = only(
        read(
            {
                "aws_iam_role": {
                    "x": {
                        "name": "job",
                        "assume_role_policy": json.dumps(TRUST),
                        "inline_policy": [{"name": "in", "policy": policy(READ)}],
                        "managed_policy_arns": ["arn:aws:iam::aws:policy/AdministratorAccess"],
                        "permissions_boundary": "${aws_iam_policy.bound.arn}",
                    }
                },
                "aws_iam_role_policy": {"p": {"name": "own", "role": "${aws_iam_role.x.id}", "policy": policy(READ)}},
                "aws_iam_role_policy_attachment": {
                    "a": {"role": "job", "policy_arn": "${aws_iam_policy.made.arn}"},
                },
                "aws_iam_policy": {
                    "bound": {"name": "bound", "policy": policy({**READ, "Action": "*"})},
                    "made": {"name": "made", "path": "/a/", "policy": policy({**READ, "Action": "s3:PutObject"})},
                },
            },
            provider={"aws": [{"region": "us-east-1", "allowed_account_ids": ["123456789012"]}]},
        )
    )
    assert actions(subject) == {
        "in": [("s3:GetObject",)],
        "own": [("s3:GetObject",)],
        "arn:aws:iam::aws:policy/AdministratorAccess": [],
        "arn:aws:iam::123456789012:policy/a/made": [("s3:PutObject",)],
    }
    assert actions(subject, PolicyKind.BOUNDARY) == {"arn:aws:iam::123456789012:policy/bound": [("*",)]}
    (trust,) = subject.of_kind(PolicyKind.TRUST)
    assert trust.statements[0].principals == (("Service", "ec2.amazonaws.com"),)


def test_data_source_merges_and_gives_variables_back():
    data = {
        "aws_iam_policy_document": {
            "base": {"statement": {"sid": "A", "actions": ["a:A"], "resources": ["*"]}},
            "over": {"statement": [{"sid": "B", "actions": ["b:Over"], "resources": ["*"]}]},
            "whole": {
                "source_policy_documents": ["${data.aws_iam_policy_document.base.json}"],
                "override_policy_documents": ["${data.aws_iam_policy_document.over.json}"],
                "statement": [
                    {"sid": "B", "actions": ["b:B"], "resources": ["*"]},
                    {
                        "sid": "C",
                        "effect": "Deny",
                        "not_actions": ["c:C"],
                        "resources": ["arn:aws:s3:::b/&{aws:username}/*"],
                        "condition": {"test": "StringLike", "variable": "s3:prefix", "values": ["&{aws:username}/"]},
                    },
                ],
            },
        }
    }
    audited = read(
        {"aws_iam_user_policy": {"p": {"user": "bob", "policy": "${data.aws_iam_policy_document.whole.json}"}}}, data
    )
    subject = only(audited)
    (found,) = subject.policies
    assert [(s.sid, s.actions) for s in found.statements] == [("A", ("a:A",)), ("B", ("b:Over",)), ("C", ())]
    last = found.statements[-1]
    assert (last.effect, last.not_actions) == ("Deny", ("c:C",))
    assert last.resources == ("arn:aws:s3:::b/${aws:username}/*",)
    assert last.tests == (Test(operator="StringLike", key="s3:prefix", values=("${aws:username}/",)),)
    assert audited.unread == ()


def test_both_spellings_are_equal():
    data = {
        "aws_iam_policy_document": {
            "d": {"statement": {"actions": ["s3:GetObject"], "resources": ["arn:aws:s3:::b/*"]}}
        }
    }
    one = only(read({"aws_iam_policy": {"p": {"name": "p", "policy": "${data.aws_iam_policy_document.d.json}"}}}, data))
    other = only(read({"aws_iam_policy": {"p": {"name": "p", "policy": policy(READ)}}}))
    assert [s.actions for s in one.policies[0].statements] == [s.actions for s in other.policies[0].statements]


def test_jsonencode_is_read_and_a_file_is_named_as_unread():
    audited = read(
        {
            "aws_iam_policy": {
                "a": {
                    "name": "a",
                    "policy": '${jsonencode({Version="2012-10-17", Statement=[{Effect="Allow", Action="*", Resource="*"}]})}',
                },
                "b": {"name": "b", "policy": '${file("b.json")}'},
                "c": {"name": "c", "policy": "{not json"},
            }
        }
    )
    assert actions(only(audited)) == {"a": [("*",)]}
    first, second = audited.unread
    assert "aws_iam_policy.b" in first
    assert 'file("b.json")' in first
    assert "aws_iam_policy.c" in second


def test_unused_document_counts_a_used_one_does_not_twice():
    document = {"statement": {"actions": ["ec2:*"], "resources": ["*"]}}
    loose = read(data={"aws_iam_policy_document": {"d": document}})
    assert actions(only(loose)) == {"d": [("ec2:*",)]}


def test_keys_stores_providers_and_machines():
    audited = read(
        {
            "aws_iam_user": {"u": {"name": "ci"}},
            "aws_iam_access_key": {"k": {"user": "${aws_iam_user.u.name}"}, "l": {"user": "else"}},
            "aws_s3_bucket": {"b": {"bucket": "acme"}},
            "aws_s3_bucket_policy": {
                "b": {
                    "bucket": "${aws_s3_bucket.b.id}",
                    "policy": policy({**READ, "Principal": "*"}),
                }
            },
            "aws_kms_key": {
                "k": {"policy": policy({**READ, "Action": "kms:*", "Resource": "*", "Principal": {"AWS": "*"}})}
            },
            "aws_iam_openid_connect_provider": {"g": {"url": "https://ci", "client_id_list": ["sts.amazonaws.com"]}},
            "aws_launch_template": {
                "t": {
                    "metadata_options": {"http_tokens": "required", "http_put_response_hop_limit": 2},
                    "iam_instance_profile": {"arn": "x"},
                    "user_data": "ZG9ja2VyIHJ1biBhbHBpbmUgICAgICAgICAgICAgIA==",
                    "tags": {"skyplan:job": "train"},
                }
            },
            "aws_instance": {
                "i": {
                    "launch_template": [{"id": "${aws_launch_template.t.id}"}],
                    "instance_market_options": {"market_type": "spot"},
                },
                "j": {"launch_template": [{"id": "${var.t}"}]},
            },
        }
    )
    assert {s.name: s.keys for s in audited.subjects} == {
        "ci": ("access key aws_iam_access_key.k",),
        "else": ("access key aws_iam_access_key.l",),
    }
    assert [(name, p.statements[0].principals) for name, p in audited.stores] == [
        ("arn:aws:s3:::acme", (("AWS", "*"),)),
        ("${aws_kms_key.k.arn}", (("AWS", "*"),)),
    ]
    assert [(p.issuer, p.audiences) for p in audited.providers] == [("https://ci", ("sts.amazonaws.com",))]
    template, merged, bare = audited.machines
    assert (template.hop_limit, template.tokens_required, template.containers) == (2, True, True)
    assert (template.has_identity, template.spot, template.job) == (True, None, "train")
    assert (merged.hop_limit, merged.containers, merged.has_identity, merged.spot) == (2, True, True, True)
    assert (bare.hop_limit, bare.tokens_required, bare.has_identity, bare.spot) == (None, None, None, False)


def test_identities_by_name_path_and_tags():
    roles = {
        "orchestrator": {"name": "skyplan-acme-orchestrator", "path": "/skyplan-foundation/acme/"},
        "node": {
            "name": "skyplan-acme-acc-orchestrator",
            "path": "/skyplan/acme/",
            "tags": {"skyplan:job": "orchestrator"},
        },
        "other": {"name": "skyplan-acme-orchestrator"},
    }
    audited = read({"aws_iam_role": roles})
    assert [(s.identity, s.job) for s in audited.subjects] == [
        (Identity.ORCHESTRATOR, ""),
        (Identity.NODE_DATA, "orchestrator"),
        (None, ""),
    ]


def test_variables_locals_and_modules():
    audited = read(
        {"aws_iam_role": {"x": {"name": "${var.name}", "permissions_boundary": "${local.bound}"}}},
        variable={"name": {"default": "job"}, "unset": {}},
        locals={"bound": "arn:aws:iam::1:policy/${var.name}"},
        module={"m": {"source": "./m"}},
    )
    subject = only(audited)
    assert subject.name == "job"
    assert subject.of_kind(PolicyKind.BOUNDARY)[0].name == "arn:aws:iam::1:policy/job"
    assert "module.m" in audited.unread[0]


def test_lines():
    text = '{"resource": {\n "aws_iam_role": {\n  "a": {"name": "a"},\n  "b": [{"name": "b"}]\n}}}'
    audited = read_terraform(json.loads(text), file="x.tf.json", text=text)
    assert [str(s.location) for s in audited.subjects] == ["x.tf.json:3", "x.tf.json:4"]
    assert [s.origin for s in audited.subjects] == ["x.tf.json aws_iam_role.a", "x.tf.json aws_iam_role.b"]


def test_lists_at_every_level():
    document = {"resource": [{"aws_iam_role": [{"a": {"name": "a"}}, {"b": [{"name": "b"}]}]}]}
    assert [s.name for s in read_terraform(document, file="x").subjects] == ["a", "b"]


def _resource(address, kind, name, values, mode="managed", **more):
    return {"address": address, "mode": mode, "type": kind, "name": name, "values": values, **more}


PLAN = {
    "format_version": "1.2",
    "variables": {"who": {"value": "job"}},
    "planned_values": {
        "root_module": {
            "resources": [
                _resource('aws_iam_role.r["a"]', "aws_iam_role", "r", {"name": "r-a"}, index="a"),
                _resource('aws_iam_role.r["b"]', "aws_iam_role", "r", {"name": "r-b"}, index="b"),
                _resource('aws_iam_role_policy.p["b"]', "aws_iam_role_policy", "p", {"name": "p"}, index="b"),
            ],
            "child_modules": [
                {
                    "address": "module.m",
                    "resources": [
                        _resource("module.m.aws_iam_role.x", "aws_iam_role", "x", {"name": "in-module"}),
                        _resource(
                            "module.m.aws_iam_role_policy.q",
                            "aws_iam_role_policy",
                            "q",
                            {"name": "q", "policy": policy(READ)},
                        ),
                    ],
                }
            ],
        }
    },
    "resource_changes": [
        {
            "address": 'aws_iam_role_policy.p["b"]',
            "change": {"after_unknown": {"role": True, "policy": True, "id": True}},
        },
        {"address": "module.m.aws_iam_role_policy.q", "change": {"after_unknown": {"role": True}}},
        {
            "address": "data.aws_iam_policy_document.d",
            "change": {"after_unknown": {"json": True, "statement": [{"resources": True}]}},
        },
    ],
    "prior_state": {
        "values": {
            "root_module": {
                "resources": [
                    _resource(
                        "data.aws_iam_policy_document.d",
                        "aws_iam_policy_document",
                        "d",
                        {"statement": [{"sid": "X", "effect": "Allow", "actions": ["s3:PutObject"]}]},
                        mode="data",
                    )
                ]
            }
        }
    },
    "configuration": {
        "root_module": {
            "resources": [
                {
                    "mode": "managed",
                    "type": "aws_iam_role_policy",
                    "name": "p",
                    "expressions": {
                        "role": {"references": ["aws_iam_role.r", "each.key"]},
                        "policy": {
                            "references": ["data.aws_iam_policy_document.d.json", "data.aws_iam_policy_document.d"]
                        },
                    },
                },
                {
                    "mode": "data",
                    "type": "aws_iam_policy_document",
                    "name": "d",
                    "expressions": {
                        "statement": [{"resources": {"references": ["aws_s3_bucket.b.arn", "aws_s3_bucket.b"]}}]
                    },
                },
            ],
            "module_calls": {
                "m": {
                    "expressions": {"role": {"references": ["aws_iam_role.r"]}},
                    "module": {
                        "resources": [
                            {
                                "mode": "managed",
                                "type": "aws_iam_role_policy",
                                "name": "q",
                                "expressions": {"role": {"references": ["aws_iam_role.x.id", "aws_iam_role.x"]}},
                            }
                        ]
                    },
                }
            },
        }
    },
}


def test_plan_with_modules_indices_and_what_is_not_known_yet():
    audited = read_terraform(PLAN, file="plan.json")
    found = {s.origin: s for s in audited.subjects}
    assert set(found) == {
        'plan.json aws_iam_role.r["a"]',
        'plan.json aws_iam_role.r["b"]',
        "plan.json module.m.aws_iam_role.x",
    }
    assert actions(found['plan.json aws_iam_role.r["a"]']) == {}
    (held,) = found['plan.json aws_iam_role.r["b"]'].policies
    (statement,) = held.statements
    assert (statement.actions, statement.resources) == (("s3:PutObject",), ("${aws_s3_bucket.b.arn}",))
    assert actions(found["plan.json module.m.aws_iam_role.x"]) == {"q": [("s3:GetObject",)]}
    (partly,) = audited.unread
    assert partly.startswith(
        "plan.json data.aws_iam_policy_document.d: it holds values that are known only after apply"
    )


@pytest.mark.parametrize("wrap", ["shown", "file"])
def test_state(wrap):
    role = {"name": "r", "arn": "arn:aws:iam::1:role/r", "assume_role_policy": json.dumps(TRUST)}
    attached = {"role": "r", "policy_arn": "arn:aws:iam::aws:policy/AmazonEC2FullAccess"}
    if wrap == "shown":
        resources = [
            _resource("aws_iam_role.r", "aws_iam_role", "r", role),
            _resource("aws_iam_role_policy_attachment.a[0]", "aws_iam_role_policy_attachment", "a", attached),
        ]
        document = {"format_version": "1.0", "values": {"root_module": {"resources": resources}}}
    else:
        resources = [
            {"mode": "managed", "type": kind, "name": name, "instances": [{"attributes": values}]}
            for kind, name, values in (("aws_iam_role", "r", role), ("aws_iam_role_policy_attachment", "a", attached))
        ]
        document = {"version": 4, "serial": 1, "resources": resources}
    subject = only(read_terraform(document, file="terraform.tfstate"))
    assert actions(subject) == {"arn:aws:iam::aws:policy/AmazonEC2FullAccess": []}
    assert subject.of_kind(PolicyKind.TRUST)


def test_text_of_a_state_is_no_template():
    names = {"name": "r", "description": "${aws_iam_role.other.arn}"}
    document = {
        "values": {
            "root_module": {
                "resources": [
                    _resource(
                        "aws_iam_policy.r",
                        "aws_iam_policy",
                        "r",
                        {**names, "policy": policy({**READ, "Resource": "arn:aws:s3:::b/${aws:username}"})},
                    )
                ]
            }
        }
    }
    (statement,) = only(read_terraform(document, file="s")).policies[0].statements
    assert statement.resources == ("arn:aws:s3:::b/${aws:username}",)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"resource": None},
        {"resource": {"aws_iam_role": "x"}},
        {"values": {}},
        {"resource": {"aws_iam_role": {"x": {"inline_policy": "?"}}}},
    ],
)
def test_odd_documents_are_no_crash(document):
    assert read_terraform(document, file="x").machines == ()


def test_secrets_in_outputs_and_state():
    value = "kV9xQ2mZ7nLw4RtY8pBc"
    audited = read(output={"password": {"value": value}})
    (leak,) = audited.leaks
    assert leak.origin == "main.tf.json output.password.value"
    assert value not in leak.shown
    assert str(leak.location) == "main.tf.json"
    assert read().leaks == ()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("aws_iam_role_policy_attachments_exclusive", {"role_name": "r", "policy_arns": ["arn:aws:iam::aws:policy/X"]}),
        ("aws_iam_user_policies_exclusive", {"user_name": "u", "policy_names": ["p"]}),
        ("aws_eks_access_policy_association", {"principal_arn": "x"}),
        ("aws_s3_bucket_acl", {"bucket": "b", "acl": "public-read"}),
        ("aws_iam_role_policy_attachment", {"role": "r", "policy_arn": "${each.value}"}),
        ("aws_iam_role", {"name": "r", "managed_policy_arns": ["${data.aws_iam_policy.admin.arn}"]}),
        ("aws_iam_role_policy", {"role": "r", "policy": policy({"Effect": "Allow", "Action": "${var.a}", "Resource": "*"})}),
    ],
)  # fmt: skip
def test_what_gives_rights_and_is_not_read_is_said(kind, values):
    (said,) = read({kind: {"x": values}}).unread
    assert f"{kind}.x" in said


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("aws_s3_bucket_acl", {"bucket": "b", "acl": "private"}),
        ("aws_iam_role_policy_attachment", {"role": "r", "policy_arn": "arn:aws:iam::aws:policy/X"}),
    ],
)
def test_nothing_is_said_of_what_is_read(kind, values):
    assert read({kind: {"x": values}}).unread == ()


@pytest.mark.parametrize(
    "membership",
    [
        {"aws_iam_user_group_membership": {"m": {"user": "u", "groups": ["${aws_iam_group.g.name}"]}}},
        {"aws_iam_group_membership": {"m": {"name": "m", "users": ["${aws_iam_user.u.name}"], "group": "g"}}},
        {},
    ],
)
def test_a_users_rights_are_its_groups_too(membership):
    found = read(
        {
            "aws_iam_user": {"u": {"name": "u"}, "other": {"name": "other"}},
            "aws_iam_group": {"g": {"name": "g"}},
            "aws_iam_group_policy_attachment": {"a": {"group": "g", "policy_arn": "arn:aws:iam::aws:policy/X"}},
            **membership,
        }
    )
    held = {one.name: [policy.name for policy in one.policies] for one in found.subjects}
    assert held == {
        "u": ["arn:aws:iam::aws:policy/X"] if membership else [],
        "other": [],
        "g": ["arn:aws:iam::aws:policy/X"],
    }
