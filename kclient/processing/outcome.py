"""The outcome of a run."""

from __future__ import annotations

import attrs


@attrs.define(kw_only=True)
class Processed:
    """Counts of a run: only what is finished, with exactly once only what is committed.

    `records` are those read and done with, dead letters among them; `outputs` those written and acknowledged, without
    the dead letters; `commits` are commits of offsets or transactions; `aborted` are transactions that were aborted.
    """

    records: int = 0
    outputs: int = 0
    dead_letters: int = 0
    commits: int = 0
    aborted: int = 0
