"""The main job on the embedded broker."""

from __future__ import annotations

from harness.scenarios.main_job import *  # noqa: F403
