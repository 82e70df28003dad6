"""MemberLabels: what brokers are told of a consumer along with its metrics (KIP-714)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from kclient.consumer.config import ConsumerConfig

if TYPE_CHECKING:
    from kclient.consumer.internals.coordinator.membership import Membership


@attrs.define(eq=False)
class MemberLabels:
    """The group, the rack and the member. Belongs to the I/O thread."""

    _config: ConsumerConfig
    membership: Membership | None = attrs.field(default=None, init=False)
    """The membership, as soon as there is one."""
    _member_id: str = attrs.field(default="", init=False)

    def labels(self) -> dict[str, str]:
        """Return the labels that have a value; the id of a member that has left is its last one."""
        config = self._config
        if self.membership is not None:
            self._member_id = self.membership.generation.member_id or self._member_id
        labels = {
            "group_id": config.group_id,
            "group_instance_id": config.group_instance_id,
            "group_member_id": self._member_id,
            "client_rack": config.client_rack,
        }
        return {key: value for key, value in labels.items() if value}
