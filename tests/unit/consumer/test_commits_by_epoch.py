"""Commits, lookups and transactions of a member whose epoch moves on."""

from __future__ import annotations

from typing import Any

import pytest

from harness.consumer.consumer_group import ConsumerGroupModel, Told
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.coordinator.consumer_member_state import ConsumerMemberState
from kclient.errors import (
    CommitFailedError,
    Errors,
    RebalanceInProgressError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import offset_fetch

T0, T1, U0, U1 = (TopicPartition(topic, number) for topic in "tu" for number in (0, 1))
HEARTBEAT = ApiKeys.CONSUMER_GROUP_HEARTBEAT


class TestCommits:
    def test_they_have_the_member_and_its_epoch(self, group: ConsumerGroupModel) -> None:
        group.join()
        group.rig.consumer.commit_sync({T0: 3})
        request = group.rig.sent(ApiKeys.OFFSET_COMMIT)[0]
        assert (request.member_id, request.generation_id_or_member_epoch) == (group.member_id, 1)

    def test_lookups_have_them_too(self, group: ConsumerGroupModel) -> None:
        group.join()
        looked_up = group.rig.sent(ApiKeys.OFFSET_FETCH)[0].groups[0]
        assert (looked_up.member_id, looked_up.member_epoch) == (group.member_id, 1)

    def test_one_that_an_epoch_overtook_goes_again_with_the_new_one(self, group: ConsumerGroupModel) -> None:
        group.join()
        usual = group.rig.handlers[ApiKeys.OFFSET_COMMIT]
        stale = group.rig.refuse_commit(Errors.STALE_MEMBER_EPOCH)

        def overtaken(request: Any, version: int) -> Any:
            if request.generation_id_or_member_epoch == group.member_epoch:
                return usual(request, version) if group.member_epoch > 1 else None
            return stale(request, version)

        group.rig.handlers[ApiKeys.OFFSET_COMMIT] = overtaken
        group.rig.topics["t"] = 3  # a partition more, and so another epoch, while the commit is on its way
        group.rig.consumer.commit_sync({T0: 3})
        epochs = [each.generation_id_or_member_epoch for each in group.rig.sent(ApiKeys.OFFSET_COMMIT)]
        assert epochs == [1, 2]
        assert group.rig.committed == {T0: 3}

    def test_one_from_before_partitions_were_given_up_fails(self, group: ConsumerGroupModel) -> None:
        group.join()
        failures: list[Any] = []
        held: list[Any] = []
        usual = group.rig.handlers[ApiKeys.OFFSET_COMMIT]
        group.rig.handlers[ApiKeys.OFFSET_COMMIT] = lambda request, version: held.append(request)
        group.rig.consumer.commit_async({T0: 3}, lambda offsets, error: failures.append(error))
        group.want(T1)
        group.poll_for(2500)
        assert group.rig.consumer.assignment() == {T1}
        group.rig.handlers[ApiKeys.OFFSET_COMMIT] = usual
        group.rig.on(ApiKeys.OFFSET_COMMIT, group.rig.refuse_commit(Errors.STALE_MEMBER_EPOCH))
        group.poll_for(100)
        assert [type(failure) for failure in failures] == [CommitFailedError]
        assert not group.rig.committed

    def test_a_member_that_is_unknown_asks_what_has_become_of_it(self, group: ConsumerGroupModel) -> None:
        told = Told()
        group.join(("t",), told)
        group.remove_member()
        group.rig.on(ApiKeys.OFFSET_COMMIT, group.rig.refuse_commit(Errors.UNKNOWN_MEMBER_ID))
        with pytest.raises(CommitFailedError):
            group.rig.consumer.commit_sync({T0: 3})
        group.poll_for(50)
        assert told.calls[1] == ("lost", [T0, T1])

    @pytest.mark.parametrize("code", [Errors.STALE_MEMBER_EPOCH, Errors.UNKNOWN_MEMBER_ID])
    def test_a_lookup_that_is_refused_is_tried_again(self, group: ConsumerGroupModel, code: int) -> None:
        group.rig.fill(T0, 5)
        group.rig.committed[T0] = 3
        refused = offset_fetch.OffsetFetchResponseGroup(group_id="g", error_code=code)
        group.rig.on(ApiKeys.OFFSET_FETCH, offset_fetch.OffsetFetchResponse(groups=[refused]))
        records = group.join()
        records += group.poll_for(500)
        assert [record.offset for record in records] == [3, 4]

    def test_nothing_is_committed_by_a_member_that_joins(self, group: ConsumerGroupModel) -> None:
        group.rig.handlers[HEARTBEAT] = lambda _request, _version: None
        group.rig.consumer.subscribe(["t"])
        group.poll_for(50)
        with pytest.raises(RebalanceInProgressError):
            group.rig.consumer.commit_sync({T0: 3})

    def test_transactions_are_told_the_epoch_of_now(self, group: ConsumerGroupModel) -> None:
        assert group.rig.consumer.group_metadata().generation_id == -1
        group.join(("t", "u"))
        first = group.rig.consumer.group_metadata()
        assert (first.member_id, first.generation_id) == (group.member_id, 1)
        group.want(T0)
        group.poll_for(2500)
        assert group.rig.consumer.group_metadata().generation_id == 2 == group.member_epoch

    def test_transactions_are_told_the_old_epoch_until_the_application_has_partitions_again(
        self, group: ConsumerGroupModel
    ) -> None:
        group.join()
        group.remove_member()
        group.rig.rounds(200)
        group.rig.consumer.poll(0)  # hears of the loss
        group.rig.rounds(20)
        assert (group.state, group.member_epoch) == (ConsumerMemberState.RECONCILING, 2)
        assert group.rig.consumer.group_metadata().generation_id == 1
        group.poll_for(20)
        assert group.rig.consumer.group_metadata().generation_id == 2

    def test_transactions_of_a_member_that_was_removed_are_told_its_old_epoch(
        self, group: ConsumerGroupModel
    ) -> None:
        group.join()
        group.remove_member()
        group.rig.rounds(200)
        assert group.rig.consumer.group_metadata().generation_id == 1
