"""The number that all chance begins with; `SOAK_SEED` repeats a run."""

from __future__ import annotations

import os
import random


def new_seed() -> int:
    """Return SOAK_SEED, or a number that is told, so that a run can be repeated."""
    seed = int(os.environ.get("SOAK_SEED") or random.SystemRandom().randrange(10**9))
    print(f"SOAK_SEED={seed}")
    return seed
