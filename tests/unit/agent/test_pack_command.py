"""The command that packs the agent says what it wants."""

from __future__ import annotations

import random
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from modules.agent.pack import deflated


def packed(*words: str, cwd) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "modules.agent.pack", *words], capture_output=True, text=True, check=False, cwd=cwd
    )


def test_without_a_file_and_into_no_folder_it_ends_in_words(request, tmp_path):
    root = request.config.rootpath
    assert packed(cwd=root).returncode == 2
    assert packed("--help", cwd=root).returncode == 0
    assert not (root / "--help").exists()
    done = packed(str(tmp_path / "none" / "agent.pyz"), cwd=root)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert len(packed(str(tmp_path / "agent.pyz"), cwd=root).stdout.strip()) == 64


@pytest.mark.parametrize("seed", range(20))
def test_every_zlib_reads_what_it_compresses(seed):
    chance = random.Random(seed)
    letters = b"ab\xff\x90c" if seed % 2 else bytes(range(256))
    content = bytes(chance.choice(letters) for _ in range(chance.randrange(5000))) + b"same" * chance.randrange(400)
    packed = deflated(content)
    assert zlib.decompress(packed, -15) == content
    assert deflated(content) == packed


def test_text_becomes_small():
    text = Path(__file__).read_bytes()
    assert len(deflated(text)) < len(text) * 0.6
    assert zlib.decompress(deflated(b"a" * 100_000), -15) == b"a" * 100_000
