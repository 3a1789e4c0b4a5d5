"""One call of an SDK, with every error of that SDK mapped to ours.  Decides nothing about the answer."""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from planner.clouds import errors_map

T = TypeVar("T")


def of_aws(operation: str, ask: Callable[[], T]) -> T:
    """The answer of boto3.  Raises CloudError, and what `ask` itself raises where boto3 is not there."""
    try:
        from botocore import exceptions, parsers  # noqa: PLC0415 - optional
    except ImportError:
        return ask()
    try:
        return ask()
    except exceptions.ClientError as error:
        words = error.response.get("Error", {})
        raise errors_map.aws_error(operation, words.get("Code", "Unknown"), words.get("Message", str(error))) from error
    except (exceptions.NoCredentialsError, exceptions.PartialCredentialsError, exceptions.ProfileNotFound) as error:
        raise errors_map.no_credentials(str(error)) from error
    except (exceptions.BotoCoreError, parsers.ResponseParserError) as error:  # the second: a proxy's page
        raise errors_map.unreachable(operation, str(error)) from error


def of_nebius(operation: str, ask: Callable[[], T]) -> T:
    """The answer of Nebius' SDK.  Raises CloudError only."""
    import yaml  # noqa: PLC0415 - the profile's form
    from nebius.aio.cli_config import ConfigError  # noqa: PLC0415 - optional
    from nebius.aio.service_error import RequestError  # noqa: PLC0415
    from nebius.aio.token.static import NoTokenInEnvError  # noqa: PLC0415
    from nebius.base.error import SDKError  # noqa: PLC0415

    try:
        return ask()
    except RequestError as error:
        raise errors_map.grpc_error("Nebius", operation, error.status.code.name, str(error)) from error
    except TimeoutError as error:
        raise errors_map.unreachable(operation, str(error) or "in time", "Nebius") from error
    except (NoTokenInEnvError, ConfigError, OSError, yaml.YAMLError) as error:
        raise errors_map.no_credentials(str(error), "Nebius") from error
    except SDKError as error:
        raise errors_map.unreachable(operation, f"{type(error).__name__} {error}", "Nebius") from error
