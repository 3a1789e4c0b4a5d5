"""The command that packs the agent says what it wants."""

from __future__ import annotations

import subprocess
import sys


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
