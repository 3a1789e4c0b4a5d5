"""GCP, Azure and Nebius: who holds what, where, and which machines there are."""

from __future__ import annotations

import json

from planner.iam.read.terraform import read_terraform
from planner.model.grants import Identity

PROVIDER = {"google": {"project": "acme"}, "azurerm": [{"subscription_id": "sub-1"}]}


def read(resource=None, data=None, **more):
    document = {"resource": resource or {}, "data": data or {}, "provider": PROVIDER, **more}
    return read_terraform(document, file="main.tf.json")


def by_name(audited):
    return {subject.name: subject for subject in audited.subjects}


# GCP


def test_google_members_of_every_kind():
    audited = read(
        {
            "google_service_account": {
                "a": {"account_id": "job", "description": "skyplan-managed; project acme; job train; x"}
            },
            "google_project_iam_custom_role": {"r": {"role_id": "looks", "permissions": ["compute.instances.get"]}},
            "google_project_iam_member": {
                "one": {
                    "role": "${google_project_iam_custom_role.r.name}",
                    "member": "${google_service_account.a.member}",
                    "condition": {"title": "t", "expression": 'resource.name.startsWith("x")'},
                },
                "other": {"project": "p2", "role": "roles/owner", "member": "user:eve@acme.com"},
            },
            "google_project_iam_binding": {
                "b": {
                    "role": "roles/viewer",
                    "members": ["serviceAccount:${google_service_account.a.email}", "group:g@acme.com"],
                }
            },
            "google_storage_bucket": {"s": {"name": "data"}},
            "google_storage_bucket_iam_member": {
                "p": {
                    "bucket": "${google_storage_bucket.s.name}",
                    "role": "roles/storage.objectViewer",
                    "member": "allUsers",
                },
                "j": {
                    "bucket": "data",
                    "role": "roles/storage.objectViewer",
                    "member": "serviceAccount:job@acme.iam.gserviceaccount.com",
                },
            },
            "google_service_account_iam_member": {
                "w": {
                    "service_account_id": "${google_service_account.a.name}",
                    "role": "roles/iam.workloadIdentityUser",
                    "member": "principalSet://iam.googleapis.com/projects/1/x/*",
                }
            },
            "google_service_account_key": {"k": {"service_account_id": "${google_service_account.a.name}"}},
        }
    )
    found = by_name(audited)
    job = found["job"]
    assert (job.identity, job.job, job.keys) == (
        Identity.NODE_DATA,
        "train",
        ("service account key google_service_account_key.k",),
    )
    rights = {(b.role, b.on, b.permissions, b.condition) for b in job.bindings}
    assert rights == {
        ("projects/acme/roles/looks", "projects/acme", ("compute.instances.get",), 'resource.name.startsWith("x")'),
        ("roles/viewer", "projects/acme", (), ""),
        ("roles/storage.objectViewer", "projects/_/buckets/data", (), ""),
    }
    assert [b.on for b in found["user:eve@acme.com"].bindings] == ["projects/p2"]
    assert "group:g@acme.com" in found
    federated = found["principalSet://iam.googleapis.com/projects/1/x/*"]
    assert federated.bindings[0].on == "projects/acme/serviceAccounts/job@acme.iam.gserviceaccount.com"
    assert [(b.member, b.on) for b in audited.public] == [("allUsers", "projects/_/buckets/data")]


def test_google_whole_policies():
    text = json.dumps(
        {"bindings": [{"role": "roles/editor", "members": ["user:a@b"], "condition": {"expression": "false"}}]}
    )
    audited = read(
        {
            "google_project_iam_policy": {
                "d": {"project": "p", "policy_data": "${data.google_iam_policy.d.policy_data}"},
                "t": {"project": "p", "policy_data": text},
                "u": {"project": "p", "policy_data": '${file("x")}'},
            }
        },
        {"google_iam_policy": {"d": {"binding": [{"role": "roles/owner", "members": ["user:c@d"]}]}}},
    )
    found = by_name(audited)
    assert [(b.role, b.on) for b in found["user:c@d"].bindings] == [("roles/owner", "projects/p")]
    assert [(b.role, b.condition) for b in found["user:a@b"].bindings] == [("roles/editor", "false")]
    (unread,) = audited.unread
    assert "google_project_iam_policy.u" in unread


def test_google_machines_and_federation():
    audited = read(
        {
            "google_compute_instance": {
                "m": {
                    "service_account": {"email": "${var.e}"},
                    "scheduling": {"provisioning_model": "SPOT"},
                    "metadata": {"user-data": "docker run x"},
                    "labels": {"skyplan-job": "train"},
                },
                "n": {},
            },
            "google_iam_workload_identity_pool_provider": {
                "p": {
                    "oidc": {"issuer_uri": "https://ci", "allowed_audiences": ["a"]},
                    "attribute_condition": "assertion.sub == 'x'",
                },
                "q": {"aws": [{"account_id": "123456789012"}]},
            },
        }
    )
    assert [(m.job, m.containers, m.has_identity, m.spot) for m in audited.machines] == [
        ("train", True, True, True),
        ("", False, False, False),
    ]
    assert [(p.issuer, p.audiences, p.condition) for p in audited.providers] == [
        ("https://ci", ("a",), "assertion.sub == 'x'"),
        ("aws:123456789012", (), ""),
    ]


# Azure


def test_azure_assignments():
    audited = read(
        {
            "azurerm_resource_group": {"g": {"name": "rg"}},
            "azurerm_user_assigned_identity": {
                "n": {
                    "name": "node",
                    "resource_group_name": "rg",
                    "tags": {"skyplan:job": "train", "skyplan:managed": "true"},
                }
            },
            "azurerm_role_definition": {
                "d": {
                    "name": "own",
                    "scope": "${azurerm_resource_group.g.id}",
                    "permissions": [{"actions": ["A/read"], "not_actions": ["A/b/read"], "data_actions": ["D/read"]}],
                }
            },
            "azurerm_role_assignment": {
                "a": {
                    "scope": "${azurerm_resource_group.g.id}",
                    "role_definition_id": "${azurerm_role_definition.d.role_definition_resource_id}",
                    "principal_id": "${azurerm_user_assigned_identity.n.principal_id}",
                    "condition": "(x)",
                },
                "b": {
                    "scope": "${data.azurerm_subscription.here.id}",
                    "role_definition_name": "Owner",
                    "principal_id": "0f1e2d3c-0000-4000-8000-000000000000",
                },
                "c": {
                    "scope": '${try(data.azurerm_resources.s.resources[0].id, "none")}/blobServices/default/containers/c',
                    "role_definition_name": "Storage Blob Data Reader",
                    "principal_id": "${azurerm_user_assigned_identity.n.principal_id}",
                },
            },
        },
        {
            "azurerm_subscription": {"here": {}},
            "azurerm_resources": {"s": {"type": "Microsoft.Storage/storageAccounts", "name": "acme"}},
        },
    )
    found = by_name(audited)
    node = found["node"]
    assert (node.identity, node.job) == (Identity.NODE_DATA, "train")
    own, reader = node.assignments
    assert (own.role, own.actions, own.not_actions, own.data_actions) == (
        "own",
        ("A/read",),
        ("A/b/read",),
        ("D/read",),
    )
    assert (own.scope, own.condition) == ("/subscriptions/sub-1/resourceGroups/rg", "(x)")
    assert reader.scope.startswith("/subscriptions/sub-1/resourceGroups/${data.azurerm_resources.s.")
    assert reader.scope.endswith("/providers/Microsoft.Storage/storageAccounts/acme/blobServices/default/containers/c")
    (owner,) = found["0f1e2d3c-0000-4000-8000-000000000000"].assignments
    assert (owner.role, owner.scope) == ("Owner", "/subscriptions/sub-1")


def test_azure_keys_machines_and_federation():
    audited = read(
        {
            "azurerm_linux_virtual_machine": {
                "m": {"priority": "Spot", "identity": [{"type": "UserAssigned"}]},
                "n": {},
            },
            "azurerm_orchestrated_virtual_machine_scale_set": {"s": {}},
            "azurerm_federated_identity_credential": {
                "f": {"issuer": "https://ci", "audience": ["a"], "subject": "repo:x"}
            },
            "azurerm_linux_function_app": {
                "f": {"storage_account_access_key": "${azurerm_storage_account.s.primary_access_key}"}
            },
            "azuread_application_password": {"p": {}},
        }
    )
    assert [(m.has_identity, m.spot) for m in audited.machines] == [(True, True), (False, False)]
    assert [(p.issuer, p.audiences, p.condition) for p in audited.providers] == [
        ("https://ci", ("a",), "sub == 'repo:x'")
    ]
    assert sorted(key for s in audited.subjects for key in s.keys) == [
        "client secret azuread_application_password.p",
        "storage account key of azurerm_storage_account.s",
    ]


# Nebius


def test_nebius_groups_permits_and_keys():
    audited = read(
        {
            "nebius_iam_v1_service_account": {
                "n": {"name": "nodes", "labels": {"skyplan-job": "train", "skyplan-managed": "true"}}
            },
            "nebius_iam_v1_group": {"g": {"name": "group"}, "h": {"name": "people"}},
            "nebius_iam_v1_group_membership": {
                "m": {"parent_id": "${nebius_iam_v1_group.g.id}", "member_id": "${nebius_iam_v1_service_account.n.id}"}
            },
            "nebius_iam_v1_access_permit": {
                "p": {
                    "parent_id": "${nebius_iam_v1_group.g.id}",
                    "resource_id": "mbsec-1",
                    "role": "mysterybox.payload-viewer",
                },
                "q": {"parent_id": "${nebius_iam_v1_group.h.id}", "resource_id": "tenant-1", "role": "admin"},
                "r": {"parent_id": "group-else", "resource_id": "project-1", "role": "editor"},
            },
            "nebius_storage_v1_bucket": {
                "b": {
                    "name": "data",
                    "bucket_policy": {
                        "rules": [
                            {
                                "group_id": "${nebius_iam_v1_group.g.id}",
                                "paths": ["a/*"],
                                "roles": ["storage.object-viewer"],
                            },
                            {"anonymous": {}, "roles": ["storage.viewer"]},
                        ]
                    },
                }
            },
            "nebius_iam_v2_access_key": {
                "k": {"account": {"service_account": {"id": "${nebius_iam_v1_service_account.n.id}"}}},
                "l": {
                    "account": {"service_account": {"id": "${nebius_iam_v1_service_account.n.id}"}},
                    "expires_at": "2027-01-01T00:00:00Z",
                },
            },
            "nebius_compute_v1_instance": {
                "i": {"service_account_id": "${var.s}", "preemptible": {"on_preemption": "STOP"}}
            },
        }
    )
    found = by_name(audited)
    nodes = found["nodes"]
    assert (nodes.identity, nodes.job) == (Identity.NODE_DATA, "train")
    assert [(p.role, p.on, p.paths) for p in nodes.permits] == [
        ("mysterybox.payload-viewer", "mbsec-1", ()),
        ("storage.object-viewer", "data", ("a/*",)),
    ]
    assert nodes.keys == ("key without expires_at nebius_iam_v2_access_key.k",)
    assert [(p.role, p.on) for p in found["people"].permits] == [("admin", "tenant-1")]
    assert [(p.role, p.on) for p in found["group-else"].permits] == [("editor", "project-1")]
    (public,) = found["anonymous"].permits
    assert (public.anonymous, public.on, public.role) == (True, "data", "storage.viewer")
    assert [(m.has_identity, m.spot) for m in audited.machines] == [(True, True)]
