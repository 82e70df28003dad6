"""ConfigurationsImage: the settings of topics, brokers and others that differ from the defaults."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import attrs

from kclient.protocol.messages.metadata_records import ConfigRecord
from kclient.protocol.schema import Message


class ResourceType(enum.IntEnum):
    """The kind of resource that is configured, by its number in records and in the protocol."""

    TOPIC = 2
    BROKER = 4


ConfigResource = tuple[int, str]
"""Kind and name of what is configured."""

_NOTHING: Mapping[str, str] = MappingProxyType({})


@attrs.frozen
class ConfigurationsImage:
    """The settings of each resource that has any. Immutable."""

    resources: Mapping[ConfigResource, Mapping[str, str]] = MappingProxyType({})

    def of(self, kind: ResourceType, name: str) -> Mapping[str, str]:
        """The settings of a resource."""
        return self.resources.get((kind, name), _NOTHING)

    def records(self) -> Iterator[Message]:
        """The records that make all of this."""
        for (kind, resource), settings in self.resources.items():
            for name, value in settings.items():
                yield ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)


class ConfigurationsDelta:
    """Changes of the settings. Used by one thread."""

    def __init__(self, image: ConfigurationsImage) -> None:
        self._image = image
        self.changed: dict[ConfigResource, dict[str, str]] = {}
        """All settings of each resource of which any changes."""

    def replay(self, record: ConfigRecord) -> None:
        """Set a setting, or take it away."""
        resource = record.resource_type, record.resource_name
        settings = self.changed.get(resource)
        if settings is None:
            settings = self.changed[resource] = dict(self._image.resources.get(resource, _NOTHING))
        if record.value is None:
            settings.pop(record.name, None)
        else:
            settings[record.name] = record.value

    def replay_removal(self, topic: str) -> None:
        """Forget the settings of a topic that is gone."""
        resource = int(ResourceType.TOPIC), topic
        if resource in self.changed or resource in self._image.resources:
            self.changed[resource] = {}

    def apply(self) -> ConfigurationsImage:
        """The settings after the change."""
        resources = dict(self._image.resources)
        for resource, settings in self.changed.items():
            if settings:
                resources[resource] = MappingProxyType(settings)
            else:
                resources.pop(resource, None)
        return ConfigurationsImage(resources)
