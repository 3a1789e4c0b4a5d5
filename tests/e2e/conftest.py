"""The cloud of the end-to-end tests: an emulated AWS per worker, reset for every test, and the real Terraform in front of it.

Everything listens on the loopback, on free ports, and ends with the tests.  Terraform tests carry the marker `terraform`; where
Terraform or the provider is not there, the fixtures skip and say what is missing.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.e2e.judges import record
from tests.e2e.workspace import Workspace
from tests.emulators import terraform as terraform_on_this_machine
from tests.emulators.aws import Aws, AwsProcess
from tests.emulators.terraform import SCHEMAS, Terraform


@pytest.fixture(scope="session")
def aws_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsProcess]:
    """The emulator's process, one per worker."""
    process = AwsProcess(tmp_path_factory.mktemp("aws"))
    yield process
    process.close()


@pytest.fixture
def aws(socket_enabled: None, aws_process: AwsProcess) -> Iterator[Aws]:
    """A fresh AWS with a fault proxy in front: `aws.proxy`, `aws.client`, `aws.instances`, `aws.environment`."""
    fresh = Aws(aws_process)
    yield fresh
    fresh.close()


@pytest.fixture
def aws_environment(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """This process's own environment points at the emulated AWS, for code that makes boto3 clients itself."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in aws.environment.items():
        monkeypatch.setenv(name, value)
    return aws.environment


@pytest.fixture(scope="session")
def terraform_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CLI configuration and provider cache, shared by a worker's tests: unpacking the AWS provider is done once."""
    return tmp_path_factory.mktemp("terraform")


@pytest.fixture
def terraform(aws: Aws, terraform_home: Path) -> Terraform:
    """The real Terraform with the real AWS provider against `aws`; skips where there is none."""
    if reason := terraform_on_this_machine.missing(aws=True):
        pytest.skip(reason)
    return terraform_on_this_machine.prepare(terraform_home / "aws", **aws.environment)


@pytest.fixture
def as_written(request: pytest.FixtureRequest) -> Callable[[Workspace, str], None]:
    """Holds what a life asked of access control to what is written down of it (`tests/e2e/judges/life.jsonl`)."""
    update = bool(request.config.getoption("--update-golden"))

    def check(workspace: Workspace, life: str) -> None:
        assert workspace.identities is not None
        record.held_to(life, workspace.aws.judged(), workspace.identities.scope, update=update)

    return check


@pytest.fixture
def stub_terraform(tmp_path: Path, terraform_home: Path) -> Callable[..., Terraform]:
    """Makes a Terraform whose providers are stubs: `stub_terraform("aws", "google", STUB_FAIL=…)`.

    Schemas are `modules/schemas/NAME.json.gz`.  The stub's log, which is its cloud, is `tmp_path / "cloud.jsonl"`.
    """
    if reason := terraform_on_this_machine.missing(aws=False):
        pytest.skip(reason)

    def make(*names: str, **variables: str) -> Terraform:
        stubs = {name: SCHEMAS / f"{name}.json.gz" for name in names or ("aws",)}
        log = {"STUB_LOG": str(tmp_path / "cloud.jsonl")}
        return terraform_on_this_machine.prepare(tmp_path / "terraform", stubs=stubs, **log | variables)

    return make
