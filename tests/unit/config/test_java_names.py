"""Java's class names."""

from __future__ import annotations

import pytest

from kclient.config.java_names import JAVA_NAMES, java_alias
from kclient.serialization import as_deserializer, as_serializer


def test_a_java_class_and_a_short_name_mean_the_same() -> None:
    for kind, names in JAVA_NAMES.items():
        for java, alias in names.items():
            assert java_alias(kind, java) == java_alias(kind, alias) == alias


def test_another_name_is_refused_saying_what_to_pass() -> None:
    with pytest.raises(
        ValueError, match="pass the object itself, or one of default, round_robin, uniform_sticky"
    ):
        java_alias("partitioner", "RoundRobinPartitioner")
    with pytest.raises(ValueError, match=r"pass the object itself$"):
        java_alias("interceptor", "com.example.Interceptor")


@pytest.mark.parametrize("name", sorted(set(JAVA_NAMES["serializer"].values())))
def test_every_name_of_a_serializer_stands_for_one(name: str) -> None:
    assert callable(as_serializer(name))
    assert name == "bytes" or callable(as_deserializer(name))
