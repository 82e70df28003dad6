"""Errors about groups of consumers, share groups and streams groups, and the offsets they commit."""

from __future__ import annotations

from kclient.errors.base import (
    ApiError,
    ApplicationRecoverableError,
    RefreshRetriableError,
    RetriableError,
)

__all__ = [
    "CoordinatorLoadInProgressError",
    "CoordinatorNotAvailableError",
    "FencedInstanceIdError",
    "FencedMemberEpochError",
    "FencedStateEpochError",
    "GroupDeletionFailedError",
    "GroupIdNotFoundError",
    "GroupMaxSizeReachedError",
    "GroupNotEmptyError",
    "GroupSubscribedToTopicError",
    "IllegalGenerationError",
    "InconsistentGroupProtocolError",
    "InvalidCommitOffsetSizeError",
    "InvalidGroupIdError",
    "InvalidRecordStateError",
    "InvalidRegularExpressionError",
    "InvalidSessionTimeoutError",
    "InvalidShareSessionEpochError",
    "MemberIdRequiredError",
    "NotCoordinatorError",
    "OffsetMetadataTooLargeError",
    "RebalanceInProgressError",
    "ShareSessionLimitReachedError",
    "ShareSessionNotFoundError",
    "StaleMemberEpochError",
    "StreamsInvalidTopologyEpochError",
    "StreamsInvalidTopologyError",
    "StreamsTopologyDescriptionUpdateFailedError",
    "StreamsTopologyFencedError",
    "UnknownMemberIdError",
    "UnreleasedInstanceIdError",
    "UnstableOffsetCommitError",
    "UnsupportedAssignorError",
]


class OffsetMetadataTooLargeError(ApiError, code=12):
    default_message = (
        "The text committed with the offset is longer than offset.metadata.max.bytes of the broker."
    )


class CoordinatorLoadInProgressError(RetriableError, code=14):
    default_message = "The coordinator is still loading its state."


class CoordinatorNotAvailableError(RefreshRetriableError, code=15):
    default_message = (
        "The coordinator is not available; its broker or its internal topic may not be ready yet."
    )


class NotCoordinatorError(RefreshRetriableError, code=16):
    default_message = "The broker asked is not the coordinator of this group or transactional id."


class IllegalGenerationError(ApplicationRecoverableError, code=22):
    default_message = "The group has moved on to another generation; the member has to join again."


class InconsistentGroupProtocolError(ApiError, code=23):
    default_message = (
        "The members of the group have no protocol in common; give all of them a common "
        "partition.assignment.strategy."
    )


class InvalidGroupIdError(ApiError, code=24):
    default_message = "The group id is not valid; set group.id to a name that is not empty."


class UnknownMemberIdError(ApplicationRecoverableError, code=25):
    default_message = "The coordinator does not know this member; it was removed and has to join again."


class InvalidSessionTimeoutError(ApiError, code=26):
    default_message = (
        "session.timeout.ms lies outside group.min.session.timeout.ms and group.max.session.timeout.ms of "
        "the broker."
    )


class RebalanceInProgressError(ApiError, code=27):
    default_message = "The group is rebalancing; call poll() to take part, then try again."


class InvalidCommitOffsetSizeError(ApiError, code=28):
    default_message = (
        "The commit is larger than a record may be; commit fewer partitions or shorter metadata."
    )


class GroupNotEmptyError(ApiError, code=68):
    default_message = "The group still has members; stop them first."


class GroupIdNotFoundError(ApiError, code=69):
    default_message = "No group of this id exists."


class MemberIdRequiredError(ApiError, code=79):
    default_message = "The coordinator gave the member an id, with which it has to join again."


class GroupMaxSizeReachedError(ApiError, code=81):
    default_message = "The group has as many members as group.max.size of the broker allows."


class FencedInstanceIdError(ApplicationRecoverableError, code=82):
    default_message = (
        "Another consumer has joined with the same group.instance.id; give each one an id of its own."
    )


class GroupSubscribedToTopicError(ApiError, code=86):
    default_message = "The group still subscribes to the topic, so its offsets cannot be deleted."


class UnstableOffsetCommitError(RetriableError, code=88):
    default_message = "A transaction with offsets of this partition is still open."


class FencedMemberEpochError(ApiError, code=110):
    default_message = (
        "The coordinator has fenced the member's epoch; the member has to leave its partitions and rejoin."
    )


class UnreleasedInstanceIdError(ApiError, code=111):
    default_message = "Another member still uses this group.instance.id and has to leave first."


class UnsupportedAssignorError(ApiError, code=112):
    default_message = "The coordinator does not have the wanted assignor; see group.remote.assignor."


class StaleMemberEpochError(ApiError, code=113):
    default_message = "The member's epoch is out of date; take it from the next heartbeat and try again."


class InvalidRecordStateError(ApiError, code=121):
    default_message = (
        "The state of the record does not allow this acknowledgement; it may belong to another member now."
    )


class ShareSessionNotFoundError(RetriableError, code=122):
    default_message = "The broker no longer knows the share session; the next fetch starts a new one."


class InvalidShareSessionEpochError(RetriableError, code=123):
    default_message = "The epoch of the share session is out of step; the next fetch starts a new one."


class FencedStateEpochError(ApiError, code=124):
    default_message = "The share coordinator has fenced the request: its state epoch is out of date."


class InvalidRegularExpressionError(ApiError, code=128):
    default_message = "The broker cannot read the regular expression; it has to follow RE2's syntax."


class StreamsInvalidTopologyError(ApiError, code=130):
    default_message = "The topology of the streams group is not valid."


class StreamsInvalidTopologyEpochError(ApiError, code=131):
    default_message = "The epoch of the streams topology is not valid."


class StreamsTopologyFencedError(ApiError, code=132):
    default_message = "The epoch of the streams topology is out of date."


class ShareSessionLimitReachedError(RetriableError, code=133):
    default_message = "The broker has as many share sessions as it allows."


class GroupDeletionFailedError(ApiError, code=134):
    default_message = "The group could not be deleted completely; delete it again."


class StreamsTopologyDescriptionUpdateFailedError(ApiError, code=135):
    default_message = "The description of the streams topology could not be stored."
