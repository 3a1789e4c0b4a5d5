"""Environment variables: those of options out of the command line, the others from the table here.

A test (tests/unit/test_docs_examples.py) holds the table complete against the names that the code reads.
"""

from __future__ import annotations

from site_commands import variables
from site_markdown import cell, page, table

from planner.cli.help_text import VARIABLES

READ: dict[str, str] = {
    "SKYPLAN_NODE": "The Node that the CDK starts. Then `JSII_NODE`, the extra `node`, a `node` on PATH.",
    "SKYPLAN_JOIN_SECRET": "The secret that seals the rendezvous of nodes in several clouds.",
    "NO_COLOR": "Set to anything: no colours.",
    "FORCE_COLOR": "Set to anything: colours where stdout is no terminal, too.",
    "GITHUB_STEP_SUMMARY": "`skyplan diff --step-summary` appends to the file that it names.",
}
"""What programs of ours read that is no option of a command, beside what `--help` tells (`planner.cli.help_text.VARIABLES`)."""

CI: dict[str, str] = {
    "SKYPLAN_SOURCE": "GitLab: from what pip installs skyplan.",
    "SKYPLAN_REPOSITORY": "GitHub: where skyplan is hosted for you, `OWNER/NAME`.",
    "SKYPLAN_COMMIT": "GitHub: which revision of it.",
    "GITHUB_TOKEN": "`skyplan comment` on GitHub; or `GH_TOKEN`.",
    "GITLAB_TOKEN": "`skyplan comment` on GitLab: a project access token with the scope `api`.",
}
"""Variables of the pipelines that `skyplan init` writes and `ci/` holds."""

NODES: dict[str, str] = {
    "SKYPLAN_DATA_URIS": "For the job: the places of its `data`, with blanks between.",
    "SKYPLAN_OUTPUT_URI": "For the job: where its result goes.",
    "SKYPLAN_TUNNEL_ADDRESS": "For a job in several clouds: this node's address in the tunnel.",
    "SKYPLAN_TUNNEL_INTERFACE": "The tunnel's network interface.",
    "SKYPLAN_INSTANCE_ID": "For the agent: the machine's id in its cloud.",
    "SKYPLAN_NEBIUS_TOKEN_FILE": "The agent: where a Nebius machine's token lies.",
    "SKYPLAN_AGENT_THRIFT": "Set by the agent for itself.",
}
"""On nodes, beside what docs/job-protocol.md and docs/node-credentials.md list."""


def pages() -> dict[str, str]:
    """Path under the docs folder -> text."""
    options = variables()
    short = {name: calls for name, calls in options.items() if len(calls) > 1 or not _derived(name, calls[0])}
    rows = [
        (f"`{name}`", f"`{calls[0][1]}`", ", ".join(f"[{c}](commands/{c.split()[0]}.md)" for c, _ in calls))
        for name, calls in sorted(short.items())
    ]
    told = {name: says for name, (says, _) in VARIABLES.items()} | READ
    return {
        "reference/environment.md": page(
            "Environment",
            "## Options that several commands share",
            "",
            *table(("variable", "option", "commands"), rows),
            "Every other option: `SKYPLAN_` + the command + the option, in capitals with `_` between words, as in `SKYPLAN_PLAN_TOP=5`.",
            "",
            "## Read by the programs",
            "",
            *table(("variable", "what it does"), [(f"`{n}`", cell(says)) for n, says in told.items()]),
            "Credentials are never skyplan's: Terraform's providers and the clouds' libraries take theirs from the environment as they always do.",
            "",
            "## In pipelines",
            "",
            *table(("variable", "what it does"), [(f"`{n}`", cell(says)) for n, says in CI.items()]),
            "## On nodes",
            "",
            *table(("variable", "what it does"), [(f"`{n}`", cell(says)) for n, says in NODES.items()]),
            "What a job finds in its environment: [job protocol](../job-protocol.md), [credentials](../node-credentials.md).",
        )
    }


def _derived(name: str, call: tuple[str, str]) -> bool:
    return name.startswith("SKYPLAN_" + call[0].upper().replace(" ", "_") + "_")
