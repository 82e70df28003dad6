"""The identity of a metric, and its text."""

from __future__ import annotations

import copy
import pickle

import attrs
import pytest

from kclient.metrics import MetricName

TAGS = (("client-id", "c"), ("node-id", "node-1"))


def test_the_description_is_not_part_of_a_metrics_identity() -> None:
    one, two = MetricName("n", "g", TAGS, "one"), MetricName("n", "g", TAGS, "two")
    assert one == two
    assert {one: 1.0}[two] == 1.0


@pytest.mark.parametrize(
    "other",
    [
        MetricName("m", "g", TAGS),
        MetricName("n", "h", TAGS),
        MetricName("n", "g"),
        MetricName("n", "g", TAGS[:1]),
    ],
)
def test_name_group_and_tags_are(other: MetricName) -> None:
    assert other != MetricName("n", "g", TAGS)
    assert other not in {MetricName("n", "g", TAGS)}


def test_it_is_written_as_group_and_name_with_its_tags_if_it_has_any() -> None:
    assert str(MetricName("n", "g")) == "g:n"
    assert str(MetricName("n", "g", TAGS)) == "g:n[client-id=c,node-id=node-1]"


def test_a_name_that_is_a_key_already_cannot_be_changed() -> None:
    name = MetricName("n", "g")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        name.name = "other"  # type: ignore[misc]


def test_a_copy_finds_what_was_kept_under_the_original() -> None:
    name = MetricName("n", "g", TAGS, "what it says")
    kept = {name: 1.0}
    for made in (copy.copy(name), pickle.loads(pickle.dumps(name))):
        assert kept[made] == 1.0
        assert made.description == "what it says"
