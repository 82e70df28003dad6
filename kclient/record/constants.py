"""Positions and sizes of the fields in a batch, and the values that mean "none"."""

from __future__ import annotations

import struct

MAGIC_0 = 0
MAGIC_1 = 1
MAGIC_2 = 2

# Common to all magics: offset (8), length of what follows (4); the magic at 16 in all of them.
LOG_OVERHEAD = 12
HEADER_UP_TO_MAGIC = 17
SMALLEST_LENGTH = 14
# More, and the size of the batch with its first fields would not be a positive 32-bit integer.
LARGEST_LENGTH = 2**31 - 1 - LOG_OVERHEAD

# Magic 2. Base offset and leader epoch stand before what the CRC covers: a broker sets them in place.
BATCH_OVERHEAD = 61
LENGTH_AT = 8
LEADER_EPOCH_AT = 12
MAGIC_AT = 16
CRC_AT = 17
ATTRIBUTES_AT = 21
LAST_OFFSET_DELTA_AT = 23
BASE_TIMESTAMP_AT = 27
MAX_TIMESTAMP_AT = 35
PRODUCER_ID_AT = 43
PRODUCER_EPOCH_AT = 51
BASE_SEQUENCE_AT = 53
COUNT_AT = 57
# The fields before the CRC's range, and those in it.
PREFIX = struct.Struct(">qiibI")
COVERED = struct.Struct(">hiqqqhii")
HEADER = struct.Struct(">qiibIhiqqqhii")

# Bits of the attributes.
CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1

DEFAULT_DECOMPRESS_MAX_BYTES = 64 * 1024 * 1024
