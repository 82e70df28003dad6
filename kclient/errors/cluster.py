"""Errors about brokers, controllers, features and telemetry: the cluster itself."""

from __future__ import annotations

from kclient.errors.base import ApiError, RetriableError

__all__ = [
    "BrokerIdNotRegisteredError",
    "ControllerIdNotRegisteredError",
    "ControllerMovedError",
    "DuplicateBrokerRegistrationError",
    "DuplicateVoterError",
    "FeatureUpdateFailedError",
    "InconsistentClusterIdError",
    "InconsistentVoterSetError",
    "InvalidRegistrationError",
    "InvalidUpdateVersionError",
    "InvalidVoterKeyError",
    "MismatchedEndpointTypeError",
    "NotControllerError",
    "OperationNotAttemptedError",
    "RebootstrapRequiredError",
    "StaleBrokerEpochError",
    "TelemetryTooLargeError",
    "UnknownControllerIdError",
    "UnknownSubscriptionIdError",
    "UnsupportedEndpointTypeError",
    "VoterNotFoundError",
]


class ControllerMovedError(ApiError, code=11):
    default_message = "The controller has moved to another broker."


class NotControllerError(RetriableError, code=41):
    default_message = "The broker asked is not the controller of the cluster."


class OperationNotAttemptedError(ApiError, code=55):
    default_message = "The broker did not try this part of the request because another part failed."


class StaleBrokerEpochError(ApiError, code=77):
    default_message = "The broker has registered anew since; its epoch in the request is out of date."


class InconsistentVoterSetError(ApiError, code=94):
    default_message = "The request names a voter that is not among the quorum's voters, or the reverse."


class InvalidUpdateVersionError(ApiError, code=95):
    default_message = "The version given for the update is not valid; read the current one and try again."


class FeatureUpdateFailedError(ApiError, code=96):
    default_message = "The cluster could not update the finalized features."


class DuplicateBrokerRegistrationError(ApiError, code=101):
    default_message = "Another live broker is registered with this id; give each broker an id of its own."


class BrokerIdNotRegisteredError(ApiError, code=102):
    default_message = "No broker is registered with this id."


class InconsistentClusterIdError(ApiError, code=104):
    default_message = "The cluster id of the request differs from the cluster's; check the addresses used."


class MismatchedEndpointTypeError(ApiError, code=114):
    default_message = (
        "The endpoint is of the other kind: use bootstrap.servers for brokers, bootstrap.controllers for "
        "controllers."
    )


class UnsupportedEndpointTypeError(ApiError, code=115):
    default_message = "The server does not support this type of endpoint yet."


class UnknownControllerIdError(ApiError, code=116):
    default_message = "The cluster knows no controller of this id."


class UnknownSubscriptionIdError(ApiError, code=117):
    default_message = "The telemetry subscription is out of date; the client has to ask for the current one."


class TelemetryTooLargeError(ApiError, code=118):
    default_message = "The pushed metrics are larger than the broker accepts."


class InvalidRegistrationError(ApiError, code=119):
    default_message = "The controller finds the broker's registration invalid."


class InvalidVoterKeyError(ApiError, code=125):
    default_message = "The voter's id and directory id do not match those of the receiving replica."


class DuplicateVoterError(ApiError, code=126):
    default_message = "The voter is already one of the quorum's voters."


class VoterNotFoundError(ApiError, code=127):
    default_message = "The voter is not one of the quorum's voters."


class RebootstrapRequiredError(ApiError, code=129):
    default_message = "The client has to start again from its bootstrap servers."


class ControllerIdNotRegisteredError(ApiError, code=136):
    default_message = "No controller is registered with this id."
