"""Every error of kclient, as one tree under `KafkaError`.

The number in brackets is the code of the protocol. `RetriableError` and all below it have `retriable = True`,
`InvalidMetadataError` and all below it `invalid_metadata = True` as well. All of them can be pickled. An
error without children stands on a shared line under its parent.

    KafkaError
        AdminError, CommitFailedError, ConfigError, CorrelationIdMismatchError, InterruptError,
        InvalidReceiveError, SchemaError, WakeupError
        ApiError
            BrokerIdNotRegisteredError(102), BrokerNotAvailableError(8), ControllerIdNotRegisteredError(136),
            ControllerMovedError(11), DelegationTokenDisabledError(61), DelegationTokenExpiredError(66),
            DelegationTokenNotFoundError(62), DelegationTokenOwnerMismatchError(63),
            DuplicateBrokerRegistrationError(101), DuplicateResourceError(92), DuplicateSequenceError(46),
            DuplicateVoterError(126), FeatureUpdateFailedError(96), FencedMemberEpochError(110),
            FencedStateEpochError(124), GroupDeletionFailedError(134), GroupIdNotFoundError(69),
            GroupMaxSizeReachedError(81), GroupNotEmptyError(68), GroupSubscribedToTopicError(86),
            InconsistentClusterIdError(104), InconsistentGroupProtocolError(23),
            InconsistentVoterSetError(94), IneligibleReplicaError(107), InvalidCommitOffsetSizeError(28),
            InvalidFetchSizeError(4), InvalidGroupIdError(24), InvalidPartitionsError(37),
            InvalidPrincipalTypeError(67), InvalidRecordStateError(121), InvalidRegistrationError(119),
            InvalidRegularExpressionError(128), InvalidReplicaAssignmentError(39), InvalidRequestError(42),
            InvalidSessionTimeoutError(26), InvalidTimestampError(32), InvalidTxnStateError(48),
            InvalidTxnTimeoutError(50), InvalidUpdateVersionError(95), InvalidVoterKeyError(125),
            LogDirNotFoundError(57), MemberIdRequiredError(79), MismatchedEndpointTypeError(114),
            NewLeaderElectedError(108), NoReassignmentInProgressError(85), OffsetMetadataTooLargeError(12),
            OffsetMovedToTieredStorageError(109), OperationNotAttemptedError(55), PolicyViolationError(44),
            PositionOutOfRangeError(99), PrincipalDeserializationError(97), ReassignmentInProgressError(60),
            RebalanceInProgressError(27), RebootstrapRequiredError(129), RecordTooLargeError(10),
            ResourceNotFoundError(91), SecurityDisabledError(54), SnapshotNotFoundError(98),
            StaleBrokerEpochError(77), StaleMemberEpochError(113), StreamsInvalidTopologyEpochError(131),
            StreamsInvalidTopologyError(130), StreamsTopologyDescriptionUpdateFailedError(135),
            StreamsTopologyFencedError(132), TelemetryTooLargeError(118), TopicDeletionDisabledError(73),
            TopicExistsError(36), TransactionAbortableError(120), TransactionAbortedError,
            TransactionCoordinatorFencedError(52),
            TransactionalIdNotFoundError(105), UnacceptableCredentialError(93),
            UnknownControllerIdError(116), UnknownServerError(-1), UnknownSubscriptionIdError(117),
            UnreleasedInstanceIdError(111), UnsupportedAssignorError(112),
            UnsupportedByAuthenticationError(64), UnsupportedCompressionTypeError(76),
            UnsupportedEndpointTypeError(115), VoterNotFoundError(127)
            ApplicationRecoverableError
                FencedInstanceIdError(82), IllegalGenerationError(22), InvalidPidMappingError(49),
                InvalidProducerEpochError(47), ProducerFencedError(90), UnknownMemberIdError(25)
            InvalidConfigurationError(40)
                InvalidRecordError(87), InvalidReplicationFactorError(38), InvalidRequiredAcksError(21),
                InvalidTopicError(17), RecordBatchTooLargeError(18), UnsupportedForMessageFormatError(43),
                UnsupportedVersionError(35)
                AuthenticationError
                    IllegalSaslStateError(34), ProxyAuthenticationError, SaslAuthenticationError(58),
                    SslAuthenticationError, UnsupportedSaslMechanismError(33)
                AuthorizationError
                    ClusterAuthorizationError(31), DelegationTokenAuthorizationError(65),
                    GroupAuthorizationError(30), TopicAuthorizationError(29),
                    TransactionalIdAuthorizationError(53)
            InvalidOffsetError
                NoOffsetForPartitionError
                OffsetOutOfRangeError(1)
                    LogTruncationError
            OutOfOrderSequenceError(45)
                UnknownProducerIdError(59)
            RetriableError
                ConcurrentTransactionsError(51), CoordinatorLoadInProgressError(14), CorruptRecordError(2),
                FetchSessionIdNotFoundError(70), FetchSessionTopicIdError(106),
                InvalidFetchSessionEpochError(71), InvalidShareSessionEpochError(123),
                NotControllerError(41), NotEnoughReplicasAfterAppendError(20), NotEnoughReplicasError(19),
                OffsetNotAvailableError(78), RetriableCommitFailedError, ShareSessionLimitReachedError(133),
                ShareSessionNotFoundError(122), ThrottlingQuotaExceededError(89),
                UnknownLeaderEpochError(75), UnstableOffsetCommitError(88)
                DisconnectError
                    ProxyError
                KafkaTimeoutError(7)
                    BootstrapError, BufferExhaustedError
                RefreshRetriableError
                    CoordinatorNotAvailableError(15), NotCoordinatorError(16)
                    InvalidMetadataError
                        ElectionNotNeededError(84), EligibleLeadersNotAvailableError(83),
                        FencedLeaderEpochError(74), InconsistentTopicIdError(103), KafkaStorageError(56),
                        LeaderNotAvailableError(5), ListenerNotFoundError(72), NetworkError(13),
                        NotLeaderOrFollowerError(6), PreferredLeaderNotAvailableError(80),
                        ReplicaNotAvailableError(9), StaleMetadataError, UnknownTopicIdError(100),
                        UnknownTopicOrPartitionError(3)
        IllegalStateError
            ClientClosedError, ConcurrentModificationError, ForkedClientError
        SerializationError
            RecordDeserializationError
"""

from __future__ import annotations

from kclient.errors import base, broker, client, cluster, codes, connection, group, security, transaction
from kclient.errors.base import *
from kclient.errors.broker import *
from kclient.errors.client import *
from kclient.errors.cluster import *
from kclient.errors.codes import *
from kclient.errors.connection import *
from kclient.errors.group import *
from kclient.errors.security import *
from kclient.errors.transaction import *

__all__: list[str] = []
__all__ += base.__all__
__all__ += broker.__all__
__all__ += client.__all__
__all__ += cluster.__all__
__all__ += codes.__all__
__all__ += connection.__all__
__all__ += group.__all__
__all__ += security.__all__
__all__ += transaction.__all__
__all__.sort()
