"""Tellers that come, leave, are killed and stopped, so that their group is in constant change."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.checker.log import HistoryLog
from harness.soak.churn import ClientProcess

_TELLER = Path(__file__).parent / "teller.py"
_SEATS = 2
_LEAVE_S = 150.0
_JOIN_S = 2 * _LEAVE_S


class Tellers(threading.Thread):
    """Two seats, each with a process and a transactional id. `counts` says how often each change was made.

    Who comes to a seat ends what a teller there left open when it was killed. A teller that is stopped is still
    there when it goes on: its transaction was aborted meanwhile, its partitions may be another one's, and in a
    "zombie" its seat is taken as well.
    """

    def __init__(
        self,
        directory: Path,
        servers: str,
        seed: int,
        version: str,
        history: HistoryLog,
        settings: Mapping[str, object],
    ) -> None:
        super().__init__(name="tellers", daemon=True)
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self.members: list[ClientProcess] = []
        """All that there ever were."""
        self._directory = directory
        self._servers = servers
        self._seed = seed
        self._version = version
        self._history = history
        self._settings = settings
        self._rng = random.Random(f"{seed} tellers")
        self._stopping = threading.Event()
        self._seats = [self._new(seat) for seat in range(_SEATS)]
        self.start()

    def run(self) -> None:
        try:
            while not self._stopping.wait(self._rng.uniform(1.0, 6.0)):
                kind = self._rng.choice((self._kill, self._leave, self._pause, self._zombie))
                self.counts[kind.__name__.strip("_")] += 1
                kind(self._rng.randrange(_SEATS))
        except BaseException as error:
            self.problems.append(f"tellers: {error}")

    def stop(self) -> None:
        """Change no more; both seats are taken."""
        self._stopping.set()
        self.join(_JOIN_S)
        if self.is_alive():
            self.problems.append("tellers: the changes did not end")

    def end(self) -> None:
        """End all of them."""
        self.stop()
        with ThreadPoolExecutor(_SEATS) as ends:
            list(ends.map(self._end, self._seats))

    def _new(self, seat: int) -> ClientProcess:
        settings = {**self._settings, "transactional.id": f"teller-{seat}"}
        arguments = [self._servers, str(self._seed), self._version, json.dumps(settings)]
        name = f"teller-{seat}.{len(self.members)}"
        teller = ClientProcess(name, self._directory, _TELLER, arguments, self._history, leave_s=_LEAVE_S)
        self.members.append(teller)
        return teller

    def _kill(self, seat: int) -> None:
        self._seats[seat].kill()
        self._stopping.wait(self._rng.choice((0.0, 3.0)))
        self._seats[seat] = self._new(seat)

    def _leave(self, seat: int) -> None:
        self._end(self._seats[seat])
        self._stopping.wait(self._rng.choice((0.0, 3.0)))
        self._seats[seat] = self._new(seat)

    def _pause(self, seat: int) -> None:
        self._seats[seat].pause()
        self._stopping.wait(self._rng.choice((1.0, 5.0, 12.0)))
        self._seats[seat].resume()

    def _zombie(self, seat: int) -> None:
        zombie = self._seats[seat]
        zombie.pause()
        self._seats[seat] = self._new(seat)
        self._stopping.wait(self._rng.uniform(2.0, 8.0))
        zombie.resume()
        self._end(zombie)

    def _end(self, teller: ClientProcess) -> None:
        try:
            teller.leave()
        except AssertionError as error:
            self.problems.append(f"teller: {error}")
