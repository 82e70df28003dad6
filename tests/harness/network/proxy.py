"""FaultProxy: stands before a broker and spoils what passes."""

from __future__ import annotations

import contextlib
import enum
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import attrs

from harness.network.listener import JOIN_S, Listener, UnfinishedFrameError, hang_up, read_frame, reset
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import parse_request, parse_response, response_buffers


class Fault(enum.Enum):
    """The harm that a rule does to a frame, and to its connection."""

    DELAY = enum.auto()
    DRIP = enum.auto()
    CUT = enum.auto()
    RESET = enum.auto()
    BLACKHOLE = enum.auto()
    SWALLOW = enum.auto()
    CORRUPT = enum.auto()
    DUPLICATE = enum.auto()
    SWAP = enum.auto()
    LENGTH = enum.auto()
    EDIT = enum.auto()
    ANSWER = enum.auto()


Answering = Callable[[Any], Any]
"""Gets the message of a request; returns the message that answers it, or None to leave it to the broker."""
Editing = Callable[[Any], Any]
"""Gets the message of an answer; returns the one for the client, or None to leave it as it is."""


@attrs.define(eq=False)
class Rule:
    """Spoils frames of `api` (None: any) in one direction, `times` times (negative: always).

    `amount` is milliseconds (DELAY), bytes a second (DRIP), how many bytes pass, length included (CUT, RESET), the
    position of the byte to turn round (CORRUPT), or the length that is told (LENGTH). `answer` makes the message that
    the client gets, of the request (ANSWER) or of the broker's answer (EDIT), and `pass_on` says whether the broker
    gets a request that is answered all the same. `hits` counts, `frame_bytes` is the size of the last frame that was
    hit, length included.
    """

    fault: Fault
    api: ApiKeys | None
    on_response: bool
    amount: int
    times: int
    hits: int = 0
    frame_bytes: int = 0
    answer: Answering | None = None
    pass_on: bool = False


class FaultProxy(Listener):
    """A TCP proxy for one broker that reads frames and spoils those its rules name.

    Faults of a request are those on the way to the broker; faults of a response are those on the way back, after the
    broker has done what was asked.
    """

    def __init__(self, target: tuple[str, int], *, port: int = 0) -> None:
        super().__init__("fault-proxy", port)
        self.target = target
        self.receive_buffer_bytes: int | None = None
        """The most that the system takes from a client while nobody reads, for connections made from now on."""
        self.unfinished = 0
        """Requests that clients gave up in their middle."""
        self._rules: list[Rule] = []
        self._rules_lock = threading.Lock()
        self._links: set[_Link] = set()

    @property
    def produces(self) -> bool:
        """True while the broker may still append what came over a connection, even one that its client gave up."""
        return any(link.has_produced for link in self._links.copy())

    def delay(self, api: ApiKeys | None, ms: int, *, times: int = 1, on_response: bool = True) -> Rule:
        """Hold frames back for `ms`."""
        return self._add(Fault.DELAY, api, on_response, ms, times)

    def drip(
        self, api: ApiKeys | None, bytes_per_s: int, *, times: int = 1, on_response: bool = True
    ) -> Rule:
        """Pass frames byte by byte."""
        return self._add(Fault.DRIP, api, on_response, bytes_per_s, times)

    def cut(self, api: ApiKeys | None, after: int, *, times: int = 1, on_response: bool = True) -> Rule:
        """Pass `after` bytes of a frame, then close with FIN."""
        return self._add(Fault.CUT, api, on_response, after, times)

    def reset(self, api: ApiKeys | None, after: int, *, times: int = 1, on_response: bool = True) -> Rule:
        """Pass `after` bytes of a frame, then close with RST."""
        return self._add(Fault.RESET, api, on_response, after, times)

    def blackhole(self, api: ApiKeys | None, *, times: int = 1, on_response: bool = True) -> Rule:
        """From such a frame on the connection stays open and nothing passes, either way."""
        return self._add(Fault.BLACKHOLE, api, on_response, 0, times)

    def swallow(self, api: ApiKeys | None, *, times: int = 1, on_response: bool = True) -> Rule:
        """Drop such frames, and nothing else."""
        return self._add(Fault.SWALLOW, api, on_response, 0, times)

    def corrupt(self, api: ApiKeys | None, at: int, *, times: int = 1, on_response: bool = True) -> Rule:
        """Turn round the bits of byte `at` (0 is the first after the length) of frames that have it."""
        return self._add(Fault.CORRUPT, api, on_response, at, times)

    def duplicate(self, api: ApiKeys | None, *, times: int = 1, on_response: bool = True) -> Rule:
        """Pass such frames twice."""
        return self._add(Fault.DUPLICATE, api, on_response, 0, times)

    def swap(self, api: ApiKeys | None, *, times: int = 1) -> Rule:
        """Give such an answer to the client after the next one, whatever that answers. One at the end is lost."""
        return self._add(Fault.SWAP, api, True, 0, times)

    def lie_about_length(
        self, api: ApiKeys | None, length: int, *, times: int = 1, on_response: bool = True
    ) -> Rule:
        """Tell another length of such frames than they have."""
        return self._add(Fault.LENGTH, api, on_response, length, times)

    def edit(self, api: ApiKeys, edit: Editing, *, times: int = 1) -> Rule:
        """Change the broker's answers to such requests.

        An answer for which `edit` returns None passes as it is, and is no hit.
        """
        rule = self._add(Fault.EDIT, api, True, 0, times)
        rule.answer = edit
        return rule

    def answer(self, api: ApiKeys, answer: Answering, *, times: int = 1, pass_on: bool = False) -> Rule:
        """Answer requests in the broker's place, in the order in which the broker answers the others.

        With `pass_on` the broker does what is asked, and its own answer is thrown away. A request for which `answer`
        returns None is left to the broker, and is no hit.
        """
        rule = Rule(Fault.ANSWER, api, False, 0, times, answer=answer, pass_on=pass_on)
        with self._rules_lock:
            self._rules.append(rule)
        return rule

    def clear(self) -> None:
        """Drop all rules; what is passed byte by byte goes on as a whole."""
        with self._rules_lock:
            self._rules.clear()

    def follows(self, rule: Rule) -> bool:
        """Return False once `clear` has dropped the rule."""
        with self._rules_lock:
            return rule in self._rules

    def serve(self, sock: socket.socket) -> None:
        upstream = socket.create_connection(self.target, timeout=JOIN_S)
        upstream.settimeout(None)
        upstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.track(upstream)
        if self.receive_buffer_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer_bytes)
        link = _Link(self, sock, upstream)
        self._links.add(link)
        responses = self.spawn(link.pump_responses)
        try:
            link.pump_requests()
        finally:
            _wait_for_end(upstream, responses)
            self.untrack(upstream)
            hang_up(upstream)
            self._links.discard(link)

    def rule_for(self, api: int, on_response: bool) -> Rule | None:
        """The first rule with hits left for such a frame; counts the hit."""
        with self._rules_lock:
            for rule in self._rules:
                if rule.on_response == on_response and rule.api in {None, api} and rule.hits != rule.times:
                    rule.hits += 1
                    return rule
        return None

    def _add(self, fault: Fault, api: ApiKeys | None, on_response: bool, amount: int, times: int) -> Rule:
        rule = Rule(fault, api, on_response, amount, times)
        with self._rules_lock:
            self._rules.append(rule)
        return rule


def _wait_for_end(broker: socket.socket, responses: threading.Thread) -> None:
    """Tell a broker that no more requests come, and wait until it has done those that it has and hangs up."""
    with contextlib.suppress(OSError):  # hung up already, or it takes too long
        broker.shutdown(socket.SHUT_WR)
        responses.join(JOIN_S)
        broker.settimeout(JOIN_S)
        while broker.recv(1 << 16):
            pass


@attrs.define(eq=False)
class _Pending:
    """A request whose answer has not gone to the client yet. `answer` is the frame that takes the broker's place."""

    api: int
    version: int
    correlation_id: int
    answer: bytes | None = None
    passed_on: bool = True


class _Link:
    """One proxied connection: two threads, one for each direction."""

    def __init__(self, proxy: FaultProxy, client: socket.socket, broker: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._broker = broker
        # Clients expect answers in the order of their requests, whoever gives them. Taken out under the lock alone.
        self._pending: deque[_Pending] = deque()
        self._to_client = threading.Lock()
        self._blackholed = threading.Event()
        self.has_produced = False
        self._held: tuple[bytes, Rule] | None = None
        """An answer that changes places with the next one."""

    def pump_requests(self) -> None:
        while True:
            try:
                frame = read_frame(self._client)
            except UnfinishedFrameError:
                self._proxy.unfinished += 1
                raise
            api, version, correlation_id = struct.unpack_from(">hhi", frame)
            self.has_produced |= api == ApiKeys.PRODUCE
            pending = _Pending(api, version, correlation_id)
            rule = self._proxy.rule_for(api, on_response=False)
            if rule is not None and rule.fault is Fault.ANSWER:
                rule = self._prepare(pending, rule, frame)
            self._pending.append(pending)
            if not pending.passed_on:
                with self._to_client:
                    if not self._flush():
                        return
            elif not self._pass(frame, self._broker, rule):
                return

    def _prepare(self, pending: _Pending, rule: Rule, frame: bytes) -> None:
        """Make the answer of `rule` to a request."""
        assert rule.answer is not None
        header, message = parse_request(memoryview(frame))
        answer = rule.answer(message)
        if answer is None:
            rule.hits -= 1
            return
        assert isinstance(header.api_key, ApiKeys)
        buffers = response_buffers(answer, header.api_key, header.api_version, header.correlation_id)
        pending.answer = b"".join(buffers)[4:]
        pending.passed_on = rule.pass_on

    def _flush(self) -> bool:
        """Give the client the answers that wait for nothing else; False if the connection is over. Under the lock."""
        while self._pending and not self._pending[0].passed_on:
            first = self._pending.popleft()
            assert first.answer is not None
            if not self._give(first, first.answer):
                return False
        return True

    def _give(self, pending: _Pending | None, frame: bytes) -> bool:
        """Give the client an answer, spoilt if a rule says so; False if the connection is over. Under the lock."""
        rule = self._proxy.rule_for(-1 if pending is None else pending.api, on_response=True)
        held, self._held = self._held, None
        if rule is not None and rule.fault is Fault.SWAP:
            rule.hits -= 1  # it counts when they have changed places
            if held is None:
                self._held = frame, rule
                return True
            rule = None
        if rule is not None and rule.fault is Fault.EDIT and pending is not None:
            frame, rule = self._edited(pending, frame, rule), None
        if not self._pass(frame, self._client, rule):
            return False
        if held is None:
            return True
        held[1].hits += 1
        return self._pass(held[0], self._client, None)

    def _edited(self, pending: _Pending, frame: bytes, rule: Rule) -> bytes:
        """Make the broker's answer what `rule` wants it to be."""
        assert rule.answer is not None
        api = ApiKeys(pending.api)
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        changed = None
        # One that is asked for versions in a version that it does not know answers in the oldest.
        if api is not ApiKeys.API_VERSIONS or not any(frame[4:6]):
            _, message = parse_response(api, pending.version, frame)
            changed = rule.answer(message)
        if changed is None:
            rule.hits -= 1
            return frame
        return b"".join(response_buffers(changed, api, pending.version, correlation_id))[4:]

    def pump_responses(self) -> None:
        try:
            while True:
                frame = read_frame(self._broker)
                if not self._forward(frame, int.from_bytes(frame[:4], "big", signed=True)):
                    return
        except (OSError, EOFError):
            pass
        finally:
            hang_up(self._client)

    def _forward(self, frame: bytes, correlation_id: int) -> bool:
        """Give the client an answer of the broker's, or what takes its place; False if the connection is over."""
        with self._to_client:
            found: _Pending | None = None
            while self._pending:
                # One that is passed over expected no answer.
                pending = self._pending.popleft()
                if pending.answer is not None and pending.correlation_id != correlation_id:
                    self._pass(pending.answer, self._client, None)
                if pending.correlation_id == correlation_id:
                    found = pending
                    frame = pending.answer or frame
                    break
            return self._give(found, frame) and self._flush()

    def _pass(self, frame: bytes, to: socket.socket, rule: Rule | None) -> bool:
        """Forward a frame; False if the connection is over."""
        whole = len(frame).to_bytes(4, "big") + frame
        if self._blackholed.is_set():
            return True
        if rule is None:
            to.sendall(whole)
            return True
        rule.frame_bytes = len(whole)
        match rule.fault:
            case Fault.DELAY:
                self._proxy.stopping.wait(rule.amount / 1000)
                to.sendall(whole)
            case Fault.DRIP:
                for sent in range(len(whole)):
                    if not self._proxy.follows(rule):
                        to.sendall(whole[sent:])
                        break
                    to.sendall(whole[sent : sent + 1])
                    if self._proxy.stopping.wait(1 / rule.amount):
                        return False
            case Fault.CUT | Fault.RESET:
                to.sendall(whole[: rule.amount])
                self._end(with_reset=rule.fault is Fault.RESET)
                return False
            case Fault.BLACKHOLE:
                self._blackholed.set()
            case Fault.CORRUPT:
                spoilt = bytearray(whole)
                if 4 + rule.amount < len(spoilt):
                    spoilt[4 + rule.amount] ^= 0xFF
                else:
                    rule.hits -= 1  # it is not long enough; spoil a later one
                to.sendall(spoilt)
            case Fault.DUPLICATE:
                to.sendall(whole + whole)
            case Fault.LENGTH:
                to.sendall(rule.amount.to_bytes(4, "big", signed=True) + frame)
            case Fault.SWALLOW:
                pass
            case Fault.ANSWER | Fault.EDIT | Fault.SWAP:
                raise AssertionError("answers are prepared, not passed")
        return True

    def _end(self, with_reset: bool) -> None:
        for sock in (self._client, self._broker):
            (reset if with_reset else hang_up)(sock)
