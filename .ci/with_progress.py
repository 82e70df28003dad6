"""Run of a command that may be silent for long; where there is no terminal, a line every few seconds says it goes on.

On a terminal the command has it for itself, with progress bars of its own: `python .ci/with_progress.py COMMAND ...`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

_SILENCE_S = 5.0
_MOST_OF_A_LINE = 70


def main(command: list[str]) -> int:
    if sys.stdout.isatty():
        os.execvp(command[0], command)
    begun = said = time.monotonic()
    last = os.path.basename(command[0])
    over = threading.Event()

    def break_silence() -> None:
        nonlocal said
        while not over.wait(max(said + _SILENCE_S - time.monotonic(), 0.01)):
            now = time.monotonic()
            if now - said >= _SILENCE_S:
                said = now
                print(f"    {now - begun:.0f} s, still at: {last}", flush=True)

    threading.Thread(target=break_silence, daemon=True).start()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            said = time.monotonic()
            if line.strip():
                last = line.strip()[:_MOST_OF_A_LINE]
    over.set()
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
