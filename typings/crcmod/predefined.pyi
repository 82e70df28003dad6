from collections.abc import Callable

from typing_extensions import Buffer

def mkPredefinedCrcFun(crc_name: str) -> Callable[[Buffer, int], int]: ...
