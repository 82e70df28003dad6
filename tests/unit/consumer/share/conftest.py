"""Share consumers that a test drives by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from harness.consumer.share_model import ShareModel


@pytest.fixture
def make_share() -> Iterator[Callable[..., ShareModel]]:
    models: list[ShareModel] = []

    def make(**settings: object) -> ShareModel:
        model = ShareModel(**settings)
        models.append(model)
        return model

    yield make
    for model in models:
        model.consumer.close(0)


@pytest.fixture
def share(make_share: Callable[..., ShareModel]) -> ShareModel:
    """A share consumer that accepts implicitly."""
    return make_share()


@pytest.fixture
def explicit(make_share: Callable[..., ShareModel]) -> ShareModel:
    """A share consumer that acknowledges explicitly."""
    return make_share(share_acknowledgement_mode="explicit")
