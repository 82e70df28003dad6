"""Decisions by the rules there are: every kind of rule, and a model that looks at all of them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.broker.metadata.cache import MetadataCache
from kclient.broker.metadata.image.metadata_delta import MetadataDelta
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.broker.metadata.image.security import AccessControlEntry, AclsImage
from kclient.broker.security import authorizer as module
from kclient.broker.security.authorizer import Requester, StandardAuthorizer, java_address
from kclient.common.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from kclient.common.uuid import Uuid
from kclient.protocol.messages.metadata_records import RemoveAccessControlEntryRecord

_O, _R = AclOperation, ResourceType
ALICE = Requester("User:alice", "10.0.0.1", "Produce")


def rule(
    operation: AclOperation = _O.READ,
    name: str = "t",
    *,
    kind: ResourceType = _R.TOPIC,
    prefix: bool = False,
    principal: str = "User:alice",
    host: str = "*",
    deny: bool = False,
) -> AccessControlEntry:
    pattern = PatternType.PREFIXED if prefix else PatternType.LITERAL
    effect = AclPermissionType.DENY if deny else AclPermissionType.ALLOW
    return AccessControlEntry(kind, name, pattern, principal, host, operation, effect)


def cache_of(*rules: AccessControlEntry) -> MetadataCache:
    cache = MetadataCache()
    cache.image = MetadataImage(acls=AclsImage({Uuid.random(): each for each in rules}))
    return cache


def may(
    rules: Sequence[AccessControlEntry],
    operation: AclOperation = _O.READ,
    name: str = "t",
    kind: ResourceType = _R.TOPIC,
    *,
    who: Requester = ALICE,
    **settings: bool,
) -> bool:
    return StandardAuthorizer(cache_of(*rules), **settings).authorized(who, operation, kind, name)


def test_what_no_rule_is_about_is_denied_unless_everybody_may() -> None:
    assert not may([])
    assert may([], everyone_without_rules=True)
    # A rule for somebody else is one, too.
    assert not may([rule(principal="User:bob")], everyone_without_rules=True)
    assert may([rule(name="u", principal="User:bob")], everyone_without_rules=True)


@pytest.mark.parametrize(
    "matching",
    [
        rule(),
        rule(name="*"),
        rule(name="t", prefix=True),
        rule(principal="User:*"),
        rule(host="10.0.0.1"),
        rule(_O.ALL),
    ],
)
def test_a_rule_that_matches_allows_and_denies(matching: AccessControlEntry) -> None:
    denying = attrs.evolve(matching, permission_type=AclPermissionType.DENY)
    assert may([matching])
    assert not may([denying])
    assert not may([denying, rule()])
    assert not may([rule(), denying])


@pytest.mark.parametrize(
    "other",
    [
        rule(_O.WRITE),
        rule(name="tt"),
        rule(name="T"),
        rule(name="tt", prefix=True),
        rule(name="*", prefix=True),
        rule(kind=_R.GROUP),
        rule(principal="User:bob"),
        rule(principal="Group:alice"),
        rule(host="10.0.0.2"),
        rule(_O.DESCRIBE),
    ],
)
def test_a_rule_about_something_else_neither_allows_nor_denies(other: AccessControlEntry) -> None:
    assert not may([other])
    assert may([attrs.evolve(other, permission_type=AclPermissionType.DENY), rule()])


@pytest.mark.parametrize("operation", [_O.READ, _O.WRITE, _O.DELETE, _O.ALTER])
def test_describing_is_implied_by_what_allows_more_but_not_denied_with_it(operation: AclOperation) -> None:
    assert may([rule(operation)], _O.DESCRIBE)
    assert may([rule(operation, deny=True), rule(_O.DESCRIBE)], _O.DESCRIBE)


def test_describing_settings_is_implied_by_altering_them_and_by_nothing_else() -> None:
    assert may([rule(_O.ALTER_CONFIGS)], _O.DESCRIBE_CONFIGS)
    assert not may([rule(_O.ALTER_CONFIGS)], _O.DESCRIBE)
    assert not may([rule(_O.ALTER), rule(_O.READ), rule(_O.CREATE)], _O.DESCRIBE_CONFIGS)


def test_an_effect_that_is_not_known_denies() -> None:
    assert not may([attrs.evolve(rule(), permission_type=42), rule()])


def test_super_users_may_do_everything_whatever_rules_say() -> None:
    decide = StandardAuthorizer(cache_of(rule(deny=True)), ["User:alice"])
    assert decide.authorized(ALICE, _O.READ, _R.TOPIC, "t")
    assert decide.authorized_for_any(ALICE, _O.WRITE, _R.TOPIC)
    assert not decide.authorized(attrs.evolve(ALICE, principal="User:bob"), _O.READ, _R.TOPIC, "t")


def test_a_name_falls_under_every_prefix_that_it_begins_with() -> None:
    prefixes = [rule(name=name, prefix=True, principal="User:x") for name in ("a", "ab", "abd", "b", "abc")]
    for position in range(5):
        rules = [*prefixes]
        rules[position] = attrs.evolve(rules[position], principal="User:alice")
        allowed = [name for name in ("a", "ab", "abc", "abce", "abdx", "b", "c", "") if may(rules, name=name)]
        assert allowed == [
            name
            for name in ("a", "ab", "abc", "abce", "abdx", "b", "c", "")
            if name.startswith(rules[position].resource_name)
        ]


def change(cache: MetadataCache, going: Iterable[Uuid], coming: Mapping[Uuid, AccessControlEntry]) -> None:
    """Publish a change of rules, as the controller does."""
    delta = MetadataDelta(cache.image)
    for acl_id in going:
        delta.replay(RemoveAccessControlEntryRecord(id=acl_id))
    for acl_id, acl in coming.items():
        delta.replay(acl.record(acl_id))
    cache.on_metadata_update(delta, delta.apply())


def test_rules_hold_from_the_moment_they_are_published_until_they_are_gone() -> None:
    cache = cache_of()
    decide = StandardAuthorizer(cache)
    asked = (ALICE, _O.READ, _R.TOPIC, "t")
    assert not decide.authorized(*asked)
    first, second = Uuid.random(), Uuid.random()
    change(cache, [], {first: rule()})
    assert decide.authorized(*asked)
    change(cache, [], {second: rule()})
    change(cache, [first], {})
    assert decide.authorized(*asked), "the same rule is there once more"
    change(cache, [second], {})
    assert not decide.authorized(*asked)


def test_whoever_asks_finds_the_index_made(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = cache_of(rule(name="other"))
    decide = StandardAuthorizer(cache)
    change(cache, [], {Uuid.random(): rule()})
    for way in ("__init__", "changed"):
        monkeypatch.setattr(module.AclIndex, way, None)
    assert decide.authorized(ALICE, _O.READ, _R.TOPIC, "t")
    assert decide.authorized_for_any(ALICE, _O.READ, _R.TOPIC)


def test_a_change_makes_anew_only_the_rules_of_its_resources() -> None:
    cache = cache_of(*(rule(name=f"t{number}") for number in range(3)), rule(name="p", prefix=True))
    decide = StandardAuthorizer(cache)
    before = decide._index._types[_R.TOPIC]
    change(cache, [], {Uuid.random(): rule(name="t1", principal="User:bob")})
    after = decide._index._types[_R.TOPIC]
    assert [after._literal[name] is before._literal[name] for name in ("t0", "t1", "t2")] == [
        True,
        False,
        True,
    ]
    assert after._prefixes is before._prefixes
    assert after.by_principal["User:alice"] is before.by_principal["User:alice"]
    change(cache, [], {Uuid.random(): rule(kind=_R.GROUP)})
    assert decide._index._types[_R.TOPIC] is after


def test_where_the_index_cannot_be_changed_it_is_made_anew(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cache = cache_of(rule())
    decide = StandardAuthorizer(cache)

    def broken(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(module.AclIndex, "changed", broken)
    change(cache, list(cache.image.acls.acls), {})
    assert not decide.authorized(ALICE, _O.READ, _R.TOPIC, "t")
    assert "made anew" in caplog.text


def test_an_error_while_deciding_denies(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = StandardAuthorizer(cache_of(rule(), rule(name="*")), everyone_without_rules=True)

    def broken(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(module.AclIndex, "find", broken)
    monkeypatch.setattr(module.AclIndex, "allows_any", broken)
    assert not decide.authorized(ALICE, _O.READ, _R.TOPIC, "t")
    assert not decide.authorized_for_any(ALICE, _O.READ, _R.TOPIC)


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ([], False),
        ([rule(_O.WRITE)], True),
        ([rule(_O.ALL, "p", prefix=True)], True),
        ([rule(_O.WRITE, kind=_R.GROUP)], False),
        ([rule(_O.READ)], False),
        ([rule(_O.WRITE, principal="User:*")], True),
        ([rule(_O.WRITE), rule(_O.WRITE, deny=True)], False),
        ([rule(_O.WRITE), rule(_O.WRITE, "*", deny=True)], False),
        ([rule(_O.WRITE, "ta"), rule(_O.ALL, "t", prefix=True, deny=True)], False),
        ([rule(_O.WRITE, "ta", prefix=True), rule(_O.WRITE, "t", prefix=True, deny=True)], False),
        ([rule(_O.WRITE, "t", prefix=True), rule(_O.WRITE, "ta", prefix=True, deny=True)], True),
        ([rule(_O.WRITE, "t", prefix=True), rule(_O.WRITE, "t", deny=True)], True),
        ([rule(_O.WRITE, "*"), rule(_O.WRITE, "t", deny=True)], True),
        ([rule(_O.WRITE, "*"), rule(_O.WRITE, "h", prefix=True, deny=True)], True),
        ([rule(_O.WRITE, host="10.0.0.2")], False),
    ],
)
def test_a_right_on_any_resource_is_one_that_no_rule_takes_away_again(
    rules: Sequence[AccessControlEntry], allowed: bool
) -> None:
    assert StandardAuthorizer(cache_of(*rules)).authorized_for_any(ALICE, _O.WRITE, _R.TOPIC) == allowed


def test_decisions_are_logged_as_kafka_logs_them(caplog: pytest.LogCaptureFixture) -> None:
    decide = StandardAuthorizer(cache_of(rule()))
    with caplog.at_level(logging.INFO, "kafka.authorizer.logger"):
        decide.authorized(ALICE, _O.READ, _R.TOPIC, "t")
        decide.authorized(ALICE, _O.WRITE, _R.TOPIC, "t", log_denied=False)
        decide.authorized(ALICE, _O.WRITE, _R.TRANSACTIONAL_ID, "x\ny", count=2)
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        (
            "INFO",
            (
                "Principal = User:alice is Denied operation = WRITE from host = 10.0.0.1 on resource = "
                "TransactionalId:LITERAL:'x\\ny' for request = Produce with resourceRefCount = 2 based on rule "
                "DefaultDeny"
            ),
        )
    ]
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "kafka.authorizer.logger"):
        decide.authorized(ALICE, _O.READ, _R.TOPIC, "t")
        decide.authorized(ALICE, _O.READ, _R.TOPIC, "t", log_allowed=False)
    (said,) = caplog.records
    assert said.levelname == "DEBUG"
    assert "is Allowed operation = READ" in said.getMessage()
    assert "based on rule MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=t" in said.getMessage()


def test_nothing_is_made_for_a_log_that_nobody_reads(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "kafka.authorizer.logger")
    monkeypatch.setattr(module, "_said", None)
    decide = StandardAuthorizer(cache_of(rule()))
    assert decide.authorized(ALICE, _O.READ, _R.TOPIC, "t")
    assert not decide.authorized(ALICE, _O.WRITE, _R.TOPIC, "t")
    assert caplog.records == []


@pytest.mark.parametrize(
    ("host", "java"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("fe80::12:0a%eth0", "fe80:0:0:0:0:0:12:a%eth0"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
    ],
)
def test_addresses_are_those_that_java_writes(host: str, java: str) -> None:
    assert java_address(host) == java


NAMES = st.text("ab*", min_size=1, max_size=3)
RULES = st.builds(
    AccessControlEntry,
    st.sampled_from([_R.TOPIC, _R.GROUP]),
    NAMES,
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from(["User:alice", "User:bob", "User:*"]),
    st.sampled_from(["*", "10.0.0.1", "10.0.0.2"]),
    st.sampled_from([_O.ALL, _O.READ, _O.WRITE, _O.DESCRIBE, _O.ALTER_CONFIGS, _O.DESCRIBE_CONFIGS]),
    st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.ALLOW, AclPermissionType.DENY]),
)
ASKED = st.sampled_from([_O.READ, _O.WRITE, _O.DESCRIBE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS])


def about(acl: AccessControlEntry, name: str) -> bool:
    if acl.pattern_type == PatternType.LITERAL:
        return acl.resource_name in {"*", name}
    return name.startswith(acl.resource_name)


def by_hand(rules: Sequence[AccessControlEntry], operation: AclOperation, name: str, everyone: bool) -> bool:
    """The decision, from the text of Kafka's documentation and every rule there is."""
    found = [acl for acl in rules if acl.resource_type == _R.TOPIC and about(acl, name)]
    if not found:
        return everyone
    mine = [
        acl for acl in found if acl.principal in {"User:alice", "User:*"} and acl.host in {"*", "10.0.0.1"}
    ]
    allowing = {operation, _O.ALL}
    if operation == _O.DESCRIBE:
        allowing |= {_O.READ, _O.WRITE, _O.DELETE, _O.ALTER}
    if operation == _O.DESCRIBE_CONFIGS:
        allowing |= {_O.ALTER_CONFIGS}
    if any(a.operation in {operation, _O.ALL} for a in mine if a.permission_type == AclPermissionType.DENY):
        return False
    return any(a.operation in allowing for a in mine if a.permission_type == AclPermissionType.ALLOW)


@given(st.lists(RULES, max_size=12), ASKED, NAMES, st.booleans())
def test_decisions_are_those_of_whoever_looks_at_every_rule(
    rules: list[AccessControlEntry], operation: AclOperation, name: str, everyone: bool
) -> None:
    found = may(rules, operation, name, everyone_without_rules=everyone)
    assert found == by_hand(rules, operation, name, everyone)


@given(
    st.lists(RULES, max_size=8),
    st.lists(st.tuples(st.lists(RULES, max_size=4), st.lists(st.integers(0, 20), max_size=4)), max_size=6),
    ASKED,
    NAMES,
)
def test_decisions_after_changes_are_those_of_an_index_made_anew(
    rules: list[AccessControlEntry],
    changes: list[tuple[list[AccessControlEntry], list[int]]],
    operation: AclOperation,
    name: str,
) -> None:
    cache = cache_of(*rules)
    decide = StandardAuthorizer(cache)
    asked = (ALICE, operation, _R.TOPIC, name)
    for coming, going in changes:
        known = list(cache.image.acls.acls)
        gone = {known[number] for number in going if number < len(known)}
        # Some ids that go come back at once with another rule.
        ids = [*list(gone)[:1], *(Uuid.random() for _ in coming)]
        change(cache, gone, dict(zip(ids, coming, strict=False)))
        anew = StandardAuthorizer(cache)
        assert decide.authorized(*asked) == anew.authorized(*asked)
        assert decide.authorized_for_any(*asked[:3]) == anew.authorized_for_any(*asked[:3])
        assert decide.authorized(*asked) == by_hand(
            list(cache.image.acls.acls.values()), operation, name, False
        )
