"""Which extra brings a package that is not installed: so that a command which needs one says what to install, wherever it needs it first.

Decides nothing else; an import that fails for a package that is not here is a bug and stays one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from planner.model.errors import MissingPart

#: by the package's import name
EXTRA_OF: Final[dict[str, str]] = {
    "alembic": "record",
    "azure": "azure",
    "boto3": "aws",
    "botocore": "aws",
    "cdktf": "cdk",
    "constructs": "cdk",
    "fastapi": "server",
    "google": "gcp",
    "grpc": "nebius",
    "httpx": "comment",
    "jinja2": "cdk",
    "jsii": "cdk",
    "jwt": "server",
    "nebius": "nebius",
    "networkx": "record",
    "plotext": "charts",
    "prometheus_client": "server",
    "psycopg": "postgres",
    "resvg_py": "charts",
    "rich": "terminal",
    "sqlalchemy": "record",
    "starlette": "server",
    "uvicorn": "server",
}


def missing_part(error: ImportError) -> MissingPart | None:
    """What to install for an import that failed; None where no extra brings it."""
    from planner.model.diagnostic import Diagnostic  # noqa: PLC0415 - only on an error
    from planner.model.errors import MissingPart  # noqa: PLC0415

    package = (error.name or "").partition(".")[0]
    extra = EXTRA_OF.get(package)
    if extra is None:
        return None
    summary = (
        f"this needs {package}; install the extra `{extra}` from your checkout of skyplan: pip install '.[{extra}]'"
    )
    return MissingPart([Diagnostic(code="SKY-APPLY-316", summary=summary)])
