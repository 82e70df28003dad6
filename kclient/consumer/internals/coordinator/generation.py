"""Generation: a member's place in its group, which a commit names."""

from __future__ import annotations

import attrs

from kclient.errors import RebalanceInProgressError


def commit_while_rebalancing() -> RebalanceInProgressError:
    """Return the error for a commit that comes while the group rebalances."""
    return RebalanceInProgressError(
        "Offsets cannot be committed while the group rebalances; call poll() and commit again"
    )


@attrs.frozen
class Generation:
    """The member's place in the group as of one rebalance. Immutable."""

    id: int = -1
    member_id: str = ""
    assignor: str | None = None

    @property
    def is_valid(self) -> bool:
        """True if the group knows the member under it."""
        return self.id >= 0
