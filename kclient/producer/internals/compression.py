"""Compression of batches, and an estimate of the bytes that it saves."""

from __future__ import annotations

from kclient.compress.codec import CompressionType, compress
from kclient.producer.config import ProducerConfig

_INITIAL_RATIO = 1.0
# The estimate follows a worse ratio fast and a better one slowly: a batch that turns out too large has to be split.
_IMPROVING_STEP = 0.005
_DETERIORATING_STEP = 0.05
# Added to the estimate before it is relied upon.
_SAFETY = 1.05


class Compressor:
    """One producer's codec with its level, and the ratio it reaches per topic.

    `compress` and `reset` belong to the I/O thread; `uncompressed_limit` may be called by any.
    """

    __slots__ = ("_level", "_ratios", "attributes", "codec")

    def __init__(self, codec: CompressionType, level: int | None) -> None:
        self.codec = codec
        self.attributes = int(codec)
        self._level = level
        self._ratios: dict[str, float] = {}

    @classmethod
    def from_config(cls, config: ProducerConfig) -> Compressor:
        """The compressor that compression.type and the level of that codec ask for."""
        levels = {
            CompressionType.GZIP: config.compression_gzip_level,
            CompressionType.LZ4: config.compression_lz4_level,
            CompressionType.ZSTD: config.compression_zstd_level,
        }
        codec = CompressionType.for_name(config.compression_type)
        return cls(codec, levels.get(codec))

    def ratio(self, topic: str) -> float:
        """The expected size of a compressed batch of `topic`, as a part of its size before."""
        return self._ratios.get(topic, _INITIAL_RATIO)

    def uncompressed_limit(self, topic: str, batch_size: int, largest: int) -> int:
        """The number of bytes to collect for a batch that is to have `batch_size` compressed, at most `largest`."""
        if self.codec is CompressionType.NONE:
            return min(batch_size, largest)
        return min(max(int(batch_size / (self.ratio(topic) * _SAFETY)), batch_size), largest)

    def compress(self, topic: str, body: memoryview) -> bytes | None:
        """The records compressed; None without a codec."""
        if self.codec is CompressionType.NONE:
            return None
        compressed = compress(self.codec, body, self._level)
        observed = len(compressed) / max(len(body), 1)
        ratio = self.ratio(topic)
        if observed > ratio:
            self._ratios[topic] = max(ratio + _DETERIORATING_STEP, observed)
        elif observed < ratio:
            self._ratios[topic] = max(ratio - _IMPROVING_STEP, observed)
        return compressed

    def reset(self, topic: str) -> None:
        """A batch was too large: expect nothing of compression until shown again."""
        self._ratios[topic] = _INITIAL_RATIO
