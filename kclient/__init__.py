"""kclient: Apache Kafka's client for Python, with an embedded broker."""

from __future__ import annotations

from kclient._version import __version__

__all__ = ["__version__"]
