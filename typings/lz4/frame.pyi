from typing_extensions import Buffer

BLOCKSIZE_MAX64KB: int

def compress(
    data: Buffer,
    compression_level: int = ...,
    block_size: int = ...,
    content_checksum: bool = ...,
    block_checksum: bool = ...,
    block_linked: bool = ...,
    store_size: bool = ...,
    return_bytearray: bool = ...,
) -> bytes: ...
def decompress(data: Buffer, return_bytearray: bool = ..., return_bytes_read: bool = ...) -> bytes: ...
