"""From a frame to the handler of its API, and from whatever goes wrong there to an answer."""

from __future__ import annotations

import logging
import struct
import threading
import time
from functools import partial

from kclient.broker.apis.api_versions import unsupported_version_response
from kclient.broker.apis.call import ApiCall, UnreadableRequestError
from kclient.broker.apis.controller_requests import is_for_controller
from kclient.broker.apis.registry import ServedApi, served_apis
from kclient.broker.broker_context import BrokerContext
from kclient.broker.network.request_channel import Request, Response, ResponseAction
from kclient.errors import Errors, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.codec import decode_prefix
from kclient.protocol.messages.headers import RequestHeader
from kclient.protocol.registry import request_class
from kclient.utils.log_context import RepeatedWarning

log = logging.getLogger(__name__)

_FIXED_HEADER = struct.Struct(
    ">hhi"
)  # api key, version, correlation id: the same in every version of the header


class ApiDispatcher:
    """Calls handlers. Thread-safe.

    A request that is malformed, of an unknown API or of a version that was not offered closes the connection:
    its sender cannot be trusted to find the next frame. The one exception is ApiVersions, which is how
    clients ask for the versions in the first place (KIP-511). A handler that fails is told to the client as an error of
    all that it asked for, and the connection goes on.
    """

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker
        self._apis = served_apis()
        self._warnings = RepeatedWarning(log)
        self._warnings_lock = threading.Lock()

    def handle(self, request: Request) -> None:
        """Answer `request`, now or later. Never raises."""
        try:
            self._handle(request)
        except KafkaError as error:
            self._refuse(request, str(error))
        except Exception:
            log.exception("A request from %s could not be answered", request.client_host)
            self._close(request, Errors.UNKNOWN_SERVER_ERROR)

    def _handle(self, request: Request) -> None:
        started_ns = time.perf_counter_ns() if self._broker.quotas.request.enabled else 0
        frame = request.frame
        if len(frame) < _FIXED_HEADER.size:
            self._refuse(request, f"it has only {len(frame)} bytes")
            return
        number, version, correlation_id = _FIXED_HEADER.unpack_from(frame)
        api = self._apis.get(number)
        if api is None:
            self._refuse(request, f"its API {number} is not served")
            return
        if not api.serves(version):
            if api.key is ApiKeys.API_VERSIONS:
                request.record.api, request.record.version = number, 0
                call = ApiCall(self._broker, request, api.key, 0, correlation_id, None)
                call.respond(unsupported_version_response())
            else:
                self._refuse(request, f"version {version} of {api.key.name} is not served")
            return
        request.record.api, request.record.version = number, version
        header, position = decode_prefix(RequestHeader, api.key.request_header_version(version), frame)
        # Bytes after the message are let pass, as Java's broker does: librdkafka sends three too many when it asks
        # for all topics in a flexible version of Metadata.
        message, _ = decode_prefix(request_class(api.key), version, frame, position)
        call = ApiCall(
            self._broker, request, api.key, version, correlation_id, header.client_id, message, started_ns
        )
        if is_for_controller(self._broker, api.key, message):
            call.handled_ns = time.perf_counter_ns() if started_ns else 0
            self._broker.controller_events.put(partial(self._answer, api, call))
        else:
            self._answer(api, call)

    def _answer(self, api: ServedApi, call: ApiCall) -> None:
        try:
            response = api.handler(call, call.message)
        except UnreadableRequestError as error:
            self._refuse(call.request, str(error))
            return
        except Exception as error:
            call.fail(error)
            return
        if response is not None:
            call.respond(response)
        elif call.started_ns:
            call.handled_ns = time.perf_counter_ns()

    def _refuse(self, request: Request, why: str) -> None:
        with self._warnings_lock:
            self._warnings.warn(
                f"request from {request.client_host}",
                f"Closing a connection from {request.client_host}: a request cannot be understood: {why}",
                self._broker.time.monotonic_ms(),
            )
        self._close(request, Errors.INVALID_REQUEST)

    @staticmethod
    def _close(request: Request, error: Errors) -> None:
        request.record.errors = {int(error): 1}
        request.reply(Response(request.connection_id, ResponseAction.CLOSE))
