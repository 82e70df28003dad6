"""Descriptors of the process, shared out so that connections cannot take those that logs need."""

from __future__ import annotations

import resource

import attrs

_MANY = 1 << 20


@attrs.frozen
class DescriptorShares:
    """The number of connections there may be, and of the files of logs that stay open.

    A quarter is left to what is open for a moment, such as checkpoints, and to the rest of the process. Immutable.
    """

    connections: int
    log_files: int


def descriptor_shares() -> DescriptorShares:
    """The shares under the limit that the process has now (`ulimit -n`)."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY or limit > _MANY:
        limit = _MANY
    return DescriptorShares(connections=limit // 2, log_files=limit // 4)
