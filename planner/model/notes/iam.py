"""Notes on the audit itself; its rules, SKY-IAM-101 to 606, have a page each in docs/rules, and `skyplan explain` shows what is there."""

from __future__ import annotations

from planner.model.notes import Note

_AUDIT = "audit, and diff where rights are compared"

NOTES: dict[str, Note] = {
    "SKY-IAM-901": Note(
        _AUDIT,
        "An accepted finding is open again: its suppression had an end, and that has passed.",
        "Remedy the finding, or have the owner of skyplan.yaml renew the suppression with a new reason.",
        "the suppression of rule 301 (mirror, ML-12) expired on 2026-11-01",
    ),
    "SKY-IAM-902": Note(
        _AUDIT,
        "A document is in no form that is read, or holds what cannot be known before applying. No rule judged it, so no finding is no proof.",
        "Give `terraform show -json` of a plan instead of bare files, or review it by hand.",
        "iam.tf.json: a policy is made by a function whose result is not known",
    ),
    "SKY-IAM-903": Note(
        "audit --live",
        "The account grants something else than the plans and stacks say: somebody changed it by hand, or a plan was not applied.",
        "Apply the plan, or take the change into it.",
        "role/skyplan-acme-train has a policy that no stack has",
    ),
    "SKY-IAM-904": Note(
        _AUDIT,
        "A suppression accepts nothing any more. Left there it may accept something else later.",
        "Remove it.",
        "the suppression of rule 104 matches nothing",
    ),
    "SKY-IAM-905": Note(
        _AUDIT,
        "Without `grant` a suppression accepts its rule's findings anywhere, those of next year too.",
        "Add `grant`, as the finding's line `in:` shows it.",
        "the suppression of rule 302 names no grant",
    ),
    "SKY-IAM-906": Note(
        _AUDIT,
        "The plan was made of another job file than the one beside it, so its rights are not those that would be applied.",
        "Plan again, and audit again.",
        "plans/train.plan.json is not of what jobs/train.yaml asks for now",
    ),
    "SKY-IAM-907": Note(
        "audit --explain",
        "None of the documents that were read has an identity of that name.",
        "Take one of those that the message lists.",
        "no identity `deploy` was found",
    ),
}
