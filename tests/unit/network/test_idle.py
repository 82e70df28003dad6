from __future__ import annotations

from kclient.network.idle import IdleExpiry


def test_the_longest_idle_expire_first_whatever_order_they_came_in() -> None:
    idle = IdleExpiry(100)
    for channel_id in ("a", "b", "c"):
        idle.touch(channel_id, 0)
    idle.touch("a", 50)
    assert idle.expired(100) == []
    assert idle.expired(101) == ["b", "c"]
    assert idle.expired(151) == ["b", "c", "a"]
    idle.remove("b")
    idle.remove("b")
    assert idle.expired(151) == ["c", "a"]


def test_before_the_next_expiry_nothing_expires_whatever_happens_meanwhile() -> None:
    idle = IdleExpiry(100)
    assert idle.next_expiry_ms <= 0
    assert idle.expired(0) == []
    assert idle.next_expiry_ms == 100
    idle.touch("a", 10)
    idle.touch("b", 20)
    assert idle.expired(100) == []
    assert idle.next_expiry_ms == 111
    assert idle.expired(110) == []
    assert idle.expired(111) == ["a"]


def test_nothing_expires_without_a_limit() -> None:
    idle = IdleExpiry(-1)
    assert idle.next_expiry_ms > 1 << 60
    idle.touch("a", 0)
    assert idle.expired(1 << 60) == []
