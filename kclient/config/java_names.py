"""Java class names that stand for something kclient has: configuration written for Java keeps working.

A string in a configuration is looked up here and nowhere else. It is never imported: a configuration file
must not be able to run code of its choice (CVE-2023-25194 was that). The names on the right are kclient's
short names; the packages that own the classes turn them into objects.
"""

from __future__ import annotations

_SERIALIZATION = "org.apache.kafka.common.serialization."
_CONSUMER = "org.apache.kafka.clients.consumer."
_PRODUCER = "org.apache.kafka.clients.producer."

_TYPES = {
    "Boolean": "boolean",
    "ByteArray": "bytes",
    "ByteBuffer": "bytes",
    "Bytes": "bytes",
    "Double": "double",
    "Float": "float",
    "Integer": "integer",
    "Long": "long",
    "Short": "short",
    "String": "string",
    "UUID": "uuid",
    "Void": "void",
}

JAVA_NAMES: dict[str, dict[str, str]] = {
    "serializer": {f"{_SERIALIZATION}{java}Serializer": name for java, name in _TYPES.items()},
    "deserializer": {f"{_SERIALIZATION}{java}Deserializer": name for java, name in _TYPES.items()},
    "partitioner": {
        f"{_PRODUCER}internals.DefaultPartitioner": "default",
        f"{_PRODUCER}UniformStickyPartitioner": "uniform_sticky",
        f"{_PRODUCER}RoundRobinPartitioner": "round_robin",
    },
    "assignor": {
        f"{_CONSUMER}RangeAssignor": "range",
        f"{_CONSUMER}RoundRobinAssignor": "roundrobin",
        f"{_CONSUMER}StickyAssignor": "sticky",
        f"{_CONSUMER}CooperativeStickyAssignor": "cooperative-sticky",
    },
    "interceptor": {},
    "metrics reporter": {"org.apache.kafka.common.metrics.JmxReporter": "jmx"},
}
"""For each kind of thing: Java's class name to our short name."""


def java_alias(kind: str, class_name: str) -> str:
    """Our short name for a Java class of `kind` (a key of `JAVA_NAMES`); a short name stands for itself.

    Raises ValueError for any other string, and KeyError for a kind that does not exist.
    """
    names = JAVA_NAMES[kind]
    alias = names.get(class_name)
    if alias is not None:
        return alias
    short_names = sorted(set(names.values()))
    if class_name in short_names:
        return class_name
    raise ValueError(
        f"no {kind} is known by this name and classes are never imported by name; pass the object itself"
        + (f", or one of {', '.join(short_names)}" if short_names else "")
    )
