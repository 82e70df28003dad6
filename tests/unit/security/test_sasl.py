"""PLAIN."""

from __future__ import annotations

from kclient.security.sasl import PlainMechanism


def test_plain_is_one_token_and_over_with_the_answer() -> None:
    exchange = PlainMechanism("alice", "p\u00e4ss")
    assert exchange.first() == b"\0alice\0p\xc3\xa4ss"
    assert not exchange.complete
    assert exchange.next(b"") is None
    assert exchange.complete
