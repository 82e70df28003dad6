"""Assignors that come with kclient: each can be named, imported and is told of; test_assignors of golden has shares."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

import kclient.consumer
from kclient.config import definition_of
from kclient.consumer import assignor as package
from kclient.consumer.assignor import ASSIGNORS, ConsumerPartitionAssignor
from kclient.consumer.config import ConsumerConfig
from kclient.errors import ConfigError


def test_every_assignor_of_the_package_can_be_named() -> None:
    modules = [
        importlib.import_module(f"{package.__name__}.{each.name}")
        for each in pkgutil.iter_modules(package.__path__)
    ]
    found = {
        cls.NAME: cls
        for module in modules
        for _, cls in inspect.getmembers(module, inspect.isclass)
        if issubclass(cls, ConsumerPartitionAssignor) and not inspect.isabstract(cls)
    }
    assert found == ASSIGNORS


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_its_name_is_taken_by_the_setting(name: str) -> None:
    config = ConsumerConfig.parse(bootstrap_servers="host:1", partition_assignment_strategy=name)
    assert config.partition_assignment_strategy == [name]


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_its_class_is_public(name: str) -> None:
    assert getattr(kclient.consumer, ASSIGNORS[name].__name__) is ASSIGNORS[name]


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_the_setting_and_its_error_tell_of_it(name: str) -> None:
    assert name in definition_of(ConsumerConfig)["partition.assignment.strategy"].doc
    with pytest.raises(ConfigError, match=rf"use .*\b{name}\b"):
        ConsumerConfig.parse(bootstrap_servers="host:1", partition_assignment_strategy=[])
