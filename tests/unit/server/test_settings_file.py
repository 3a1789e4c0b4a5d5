"""Settings and the files beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.model.errors import InputError
from planner.server.settings_file import MAX_BYTES, read

TEXT = """\
url: http://127.0.0.1:8443
tls: {certificate: tls/a.pem, key: /elsewhere/a.key}
identity:
  aws: {certificates: {us-east-1: aws.pem}}
  ca_file: ca.pem
"""


def test_names_begin_at_the_settings_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "server.yaml").write_text(TEXT)
    (folder / "aws.pem").write_text("the certificate")
    monkeypatch.chdir(tmp_path)
    settings = read(Path("etc/server.yaml"))
    assert settings.tls == (str(folder / "tls/a.pem"), "/elsewhere/a.key")
    assert settings.identity.aws_certificates == (("us-east-1", "the certificate"),)
    assert settings.identity.ca_file == str(folder / "ca.pem")


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00", b" " * (MAX_BYTES + 1)])
def test_what_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "server.yaml"
    path.write_text(TEXT)
    if content is not None:
        (tmp_path / "aws.pem").write_bytes(content)
    with pytest.raises(InputError) as wrong:
        read(path)
    (problem,) = wrong.value.diagnostics
    assert problem.code == "SKY-SPEC-101"
    assert "aws.pem" in problem.summary


def test_all_problems_at_once(tmp_path: Path) -> None:
    path = tmp_path / "server.yaml"
    path.write_text("url: ftp://x\nlisten: nowhere\nmore: 1\n")
    with pytest.raises(InputError) as wrong:
        read(path)
    assert [(p.location.line, p.code) for p in wrong.value.diagnostics if p.location] == [
        (1, "SKY-SPEC-105"),
        (2, "SKY-SPEC-105"),
        (3, "SKY-SPEC-102"),
    ]
