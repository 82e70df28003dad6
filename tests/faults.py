"""Brokers and networks that misbehave on purpose.

`ScriptedBroker` answers what a test tells it to, `FaultProxy` stands before a broker and spoils what passes. Both are
context managers that leave no socket and no thread behind.
"""

from __future__ import annotations

from faults_broker import Reply, ScriptedBroker, cluster_of
from faults_listener import SilentListener, closed_port, hang_up, read_frame, reset, unanswered_port
from faults_proxy import FaultProxy

__all__ = [
    "FaultProxy",
    "Reply",
    "ScriptedBroker",
    "SilentListener",
    "closed_port",
    "cluster_of",
    "hang_up",
    "read_frame",
    "reset",
    "unanswered_port",
]
