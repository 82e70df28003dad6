"""Run of a command that may be silent for long: a line every few seconds says that it goes on.

    python .ci/with_progress.py COMMAND ...

On a terminal the command has one as well, so that it can draw progress bars of its own.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
import termios
import threading
import time
import tty

_SILENCE_S = 5.0
_MOST_OF_A_LINE = 70
_MOST_KEPT = 4000
_NO_TEXT = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x08")


def output_of_command() -> tuple[int, int]:
    """Both ends of what the command writes to: the one to read from, and its own."""
    if not sys.stdout.isatty():
        return os.pipe()
    ours, its = os.openpty()
    tty.setraw(its)  # line ends are made by the terminal at the other end
    fcntl.ioctl(its, termios.TIOCSWINSZ, fcntl.ioctl(sys.stdout.fileno(), termios.TIOCGWINSZ, bytes(8)))
    return ours, its


def main(command: list[str]) -> int:
    begun = said = time.monotonic()
    last, text = os.path.basename(command[0]), ""
    over = threading.Event()

    def break_silence() -> None:
        nonlocal said
        while not over.wait(max(said + _SILENCE_S - time.monotonic(), 0.01)):
            now = time.monotonic()
            if now - said >= _SILENCE_S:
                said = now
                print(f"    {now - begun:.0f} s, still at: {last}", flush=True)

    ours, its = output_of_command()
    threading.Thread(target=break_silence, daemon=True).start()
    with subprocess.Popen(command, stdout=its) as process:
        os.close(its)
        try:
            while data := os.read(ours, 65536):
                os.write(sys.stdout.fileno(), data)
                said = time.monotonic()
                # Lines come in pieces, and carriage returns begin them anew.
                text = (text + data.decode(errors="replace"))[-_MOST_KEPT:]
                lines = _NO_TEXT.sub("", text).replace("\r", "\n").split("\n")
                last = next((line.strip() for line in reversed(lines) if line.strip()), last)[
                    :_MOST_OF_A_LINE
                ]
        except OSError:
            pass  # a terminal without its other end
        os.close(ours)
    over.set()
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
