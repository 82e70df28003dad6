"""The operations of the admin client, one module a subject, each a generator (see `steps`).

What only some of them send is imported when they run: most programs ask for topics and offsets alone.
"""

from __future__ import annotations

import typing

from kclient.utils import lazy

if typing.TYPE_CHECKING:
    from kclient.admin.internals.operations import (
        acls,
        configs,
        group_descriptions,
        group_offsets,
        groups,
        offsets,
        quotas,
        scram,
        share_group_offsets,
        tokens,
        topics,
        transactions,
    )
else:
    __getattr__, __dir__ = lazy.names(__name__, {})

__all__ = [
    "acls",
    "configs",
    "group_descriptions",
    "group_offsets",
    "groups",
    "offsets",
    "quotas",
    "scram",
    "share_group_offsets",
    "tokens",
    "topics",
    "transactions",
]
