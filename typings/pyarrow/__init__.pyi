# pyarrow has no types of its own; what kclient takes from it is checked where it is used.
from typing import Any

def __getattr__(name: str) -> Any: ...
