"""The inside of the admin client. Checks that most programs never need are imported at first use."""

from __future__ import annotations

import typing

from kclient.utils import lazy

if typing.TYPE_CHECKING:
    from kclient.admin.internals import security_arguments, transaction_arguments
else:
    __getattr__, __dir__ = lazy.names(__name__, {})

__all__ = ["security_arguments", "transaction_arguments"]
