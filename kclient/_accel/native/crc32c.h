/* CRC-32C (Castagnoli): the processor's instruction where there is one, eight bytes at a time by table elsewhere. */
#ifndef KCLIENT_CRC32C_H
#define KCLIENT_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KCLIENT_CRC32C_POLYNOMIAL 0x82f63b78u

static uint32_t kclient_crc32c_table[8][256];

static uint32_t kclient_crc32c_by_table(uint32_t crc, const uint8_t *data, size_t size) {
    for (; size >= 8; data += 8, size -= 8) {
        /* Byte by byte, so that it is right for either order of bytes and any alignment. */
        uint32_t low = crc ^ ((uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24);
        crc = kclient_crc32c_table[7][low & 255] ^ kclient_crc32c_table[6][low >> 8 & 255]
            ^ kclient_crc32c_table[5][low >> 16 & 255] ^ kclient_crc32c_table[4][low >> 24]
            ^ kclient_crc32c_table[3][data[4]] ^ kclient_crc32c_table[2][data[5]]
            ^ kclient_crc32c_table[1][data[6]] ^ kclient_crc32c_table[0][data[7]];
    }
    for (; size; ++data, --size) crc = crc >> 8 ^ kclient_crc32c_table[0][(crc ^ *data) & 255];
    return crc;
}

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <nmmintrin.h>
#define KCLIENT_CRC32C_INSTRUCTION 1
#define KCLIENT_CRC32C_TARGET __attribute__((target("sse4.2")))
#define KCLIENT_CRC32C_STEP(crc, word) _mm_crc32_u64(crc, word)
#define KCLIENT_CRC32C_BYTE(crc, byte) _mm_crc32_u8((uint32_t)(crc), byte)
static int kclient_crc32c_has_instruction(void) { return __builtin_cpu_supports("sse4.2"); }
#elif defined(_M_X64) && defined(_MSC_VER)
#include <intrin.h>
#include <nmmintrin.h>
#define KCLIENT_CRC32C_INSTRUCTION 1
#define KCLIENT_CRC32C_TARGET
#define KCLIENT_CRC32C_STEP(crc, word) _mm_crc32_u64(crc, word)
#define KCLIENT_CRC32C_BYTE(crc, byte) _mm_crc32_u8((uint32_t)(crc), byte)
static int kclient_crc32c_has_instruction(void) { int id[4]; __cpuid(id, 1); return id[2] >> 20 & 1; }
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define KCLIENT_CRC32C_INSTRUCTION 1
#define KCLIENT_CRC32C_TARGET
#define KCLIENT_CRC32C_STEP(crc, word) __crc32cd((uint32_t)(crc), word)
#define KCLIENT_CRC32C_BYTE(crc, byte) __crc32cb((uint32_t)(crc), byte)
static int kclient_crc32c_has_instruction(void) { return 1; }
#endif

#ifdef KCLIENT_CRC32C_INSTRUCTION

/* The instruction takes three cycles and one can begin in each, so three stretches are summed at once; a sum is moved
   on over the length of a stretch by a table made for it. */
#define KCLIENT_CRC32C_LONG 4096
#define KCLIENT_CRC32C_SHORT 256

static uint32_t kclient_crc32c_over_long[4][256];
static uint32_t kclient_crc32c_over_short[4][256];

static uint64_t kclient_crc32c_word(const uint8_t *data) {
    uint64_t word;
    memcpy(&word, data, 8);
    return word;
}

static uint32_t kclient_crc32c_moved(uint32_t over[4][256], uint32_t crc) {
    return over[0][crc & 255] ^ over[1][crc >> 8 & 255] ^ over[2][crc >> 16 & 255] ^ over[3][crc >> 24];
}

KCLIENT_CRC32C_TARGET static uint32_t kclient_crc32c_stretches(
    uint32_t crc, const uint8_t **data, size_t *size, size_t stretch, uint32_t over[4][256]) {
    const uint8_t *p = *data;
    size_t left = *size;
    for (; left >= 3 * stretch; p += 2 * stretch, left -= 3 * stretch) {
        uint64_t first = crc, second = 0, third = 0;
        const uint8_t *end = p + stretch;
        for (; p < end; p += 8) {
            first = KCLIENT_CRC32C_STEP(first, kclient_crc32c_word(p));
            second = KCLIENT_CRC32C_STEP(second, kclient_crc32c_word(p + stretch));
            third = KCLIENT_CRC32C_STEP(third, kclient_crc32c_word(p + 2 * stretch));
        }
        crc = kclient_crc32c_moved(over, (uint32_t)first) ^ (uint32_t)second;
        crc = kclient_crc32c_moved(over, crc) ^ (uint32_t)third;
    }
    *data = p;
    *size = left;
    return crc;
}

KCLIENT_CRC32C_TARGET static uint32_t kclient_crc32c_by_instruction(uint32_t crc, const uint8_t *data, size_t size) {
    uint64_t wide;
    crc = kclient_crc32c_stretches(crc, &data, &size, KCLIENT_CRC32C_LONG, kclient_crc32c_over_long);
    crc = kclient_crc32c_stretches(crc, &data, &size, KCLIENT_CRC32C_SHORT, kclient_crc32c_over_short);
    for (wide = crc; size >= 8; data += 8, size -= 8) wide = KCLIENT_CRC32C_STEP(wide, kclient_crc32c_word(data));
    for (crc = (uint32_t)wide; size; ++data, --size) crc = KCLIENT_CRC32C_BYTE(crc, *data);
    return crc;
}

static void kclient_crc32c_fill_over(uint32_t over[4][256], size_t stretch) {
    /* Moving on is linear: it is enough to move every bit, a byte of zeros at a time. */
    uint32_t moved[32];
    for (int bit = 0; bit < 32; ++bit) {
        uint32_t crc = 1u << bit;
        for (size_t i = 0; i < stretch; ++i) crc = crc >> 8 ^ kclient_crc32c_table[0][crc & 255];
        moved[bit] = crc;
    }
    for (int byte = 0; byte < 4; ++byte)
        for (int value = 0; value < 256; ++value) {
            uint32_t crc = 0;
            for (int bit = 0; bit < 8; ++bit)
                if (value >> bit & 1) crc ^= moved[8 * byte + bit];
            over[byte][value] = crc;
        }
}

#endif

static uint32_t (*kclient_crc32c_function)(uint32_t, const uint8_t *, size_t) = kclient_crc32c_by_table;

/* Makes the tables and looks at the processor. To be called once, before kclient_crc32c. */
static void kclient_crc32c_setup(void) {
    for (uint32_t value = 0; value < 256; ++value) {
        uint32_t crc = value;
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? KCLIENT_CRC32C_POLYNOMIAL : 0);
        kclient_crc32c_table[0][value] = crc;
    }
    for (int table = 1; table < 8; ++table)
        for (int value = 0; value < 256; ++value) {
            uint32_t crc = kclient_crc32c_table[table - 1][value];
            kclient_crc32c_table[table][value] = crc >> 8 ^ kclient_crc32c_table[0][crc & 255];
        }
#ifdef KCLIENT_CRC32C_INSTRUCTION
    if (kclient_crc32c_has_instruction()) {
        kclient_crc32c_fill_over(kclient_crc32c_over_long, KCLIENT_CRC32C_LONG);
        kclient_crc32c_fill_over(kclient_crc32c_over_short, KCLIENT_CRC32C_SHORT);
        kclient_crc32c_function = kclient_crc32c_by_instruction;
    }
#endif
}

static uint32_t kclient_crc32c(uint32_t crc, const void *data, size_t size) {
    return ~kclient_crc32c_function(~crc, (const uint8_t *)data, size);
}

#endif
