/* Whether the answer to a fetch is as expected, and the fetch that follows it. What it is about is said by
   pure_prepared.py, whose steps these are. Nothing here needs the interpreter. */
#ifndef KCLIENT_FOLLOW_H
#define KCLIENT_FOLLOW_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KCLIENT_LARGEST_OFFSET ((int64_t)1 << 62)

typedef struct {
    unsigned char topic_id[16];
    int32_t partition;
    size_t offset_at;
    int64_t end; /* of the batches in the answer; negative for none */
} kclient_place;

typedef struct {
    unsigned char *frame;
    size_t size, epoch_at, written;
    kclient_place *places;
    size_t place_count;
    const volatile unsigned char *occupied;
    int32_t answered, session_id;
    int armed, followed;
} kclient_prepared;

typedef struct { const unsigned char *at; size_t left; } kclient_answer;

static uint64_t kclient_big_endian(const unsigned char *at, int size) {
    uint64_t found = 0;
    while (size--) found = found << 8 | *at++;
    return found;
}
static void kclient_put_big_endian(unsigned char *at, int size, uint64_t number) {
    while (size--) {
        at[size] = (unsigned char)number;
        number >>= 8;
    }
}
/* NULL if there is less left. */
static const unsigned char *kclient_skip(kclient_answer *answer, size_t size) {
    const unsigned char *at = answer->at;
    if (size > answer->left) return NULL;
    answer->at += size;
    answer->left -= size;
    return at;
}
/* An unsigned varint; negative if it is none. */
static int64_t kclient_number(kclient_answer *answer) {
    int64_t found = 0;
    int shift;
    for (shift = 0; shift <= 28; shift += 7) {
        const unsigned char *at = kclient_skip(answer, 1);
        if (!at) return -1;
        found |= (int64_t)(*at & 0x7F) << shift;
        if (*at < 0x80) return found;
    }
    return -1;
}
/* How many elements or bytes follow; null counts as nothing. */
static int64_t kclient_count(kclient_answer *answer) {
    int64_t found = kclient_number(answer);
    return found > 0 ? found - 1 : found;
}
/* The offset behind the last whole batch; negative if there is none, or nobody can tell. */
static int64_t kclient_end_of(const unsigned char *at, size_t left) {
    int64_t end = -1;
    while (left >= 27) {
        int64_t base = (int64_t)kclient_big_endian(at, 8);
        int32_t length = (int32_t)kclient_big_endian(at + 8, 4), last_delta = 0;
        if (at[16] >= 2 && at[16] < 128) last_delta = (int32_t)kclient_big_endian(at + 23, 4);
        if (length < 14 || last_delta < 0) return -1;
        if ((size_t)length + 12 > left) break;
        end = base < -KCLIENT_LARGEST_OFFSET || base > KCLIENT_LARGEST_OFFSET ? -1 : base + 1 + last_delta;
        at += (size_t)length + 12;
        left -= (size_t)length + 12;
    }
    return end > KCLIENT_LARGEST_OFFSET ? -1 : end;
}
static kclient_place *kclient_place_of(kclient_prepared *fetch, size_t *next, const unsigned char *topic_id,
                                       int32_t partition) {
    /* Brokers answer in the order of the session, so it is most often the next one. */
    size_t i;
    for (i = 0; i < fetch->place_count; ++i) {
        kclient_place *place = &fetch->places[(*next + i) % fetch->place_count];
        if (place->partition == partition && !memcmp(place->topic_id, topic_id, 16)) {
            *next = (*next + i + 1) % fetch->place_count;
            return place;
        }
    }
    return NULL;
}
/* Whether the answer is followed; the frame is then ready. */
static int kclient_follow(kclient_prepared *fetch, const unsigned char *data, size_t size) {
    kclient_answer answer = {data, size};
    const unsigned char *at;
    int64_t topics, partitions, aborted, records, asked;
    size_t i, next = 0, found = 0;
    if (!fetch->armed || *fetch->occupied) return 0;
    for (i = 0; i < fetch->place_count; ++i) fetch->places[i].end = -1;
    at = kclient_skip(&answer, 15);
    if (!at || (int32_t)kclient_big_endian(at, 4) != fetch->answered || at[4] || kclient_big_endian(at + 5, 4) ||
        kclient_big_endian(at + 9, 2) || (int32_t)kclient_big_endian(at + 11, 4) != fetch->session_id)
        return 0;
    topics = kclient_count(&answer);
    if (topics < 0) return 0;
    while (topics--) {
        const unsigned char *topic_id = kclient_skip(&answer, 16);
        if (!topic_id || (partitions = kclient_count(&answer)) < 0) return 0;
        while (partitions--) {
            kclient_place *place;
            at = kclient_skip(&answer, 30);
            if (!at || kclient_big_endian(at + 4, 2)) return 0;
            place = kclient_place_of(fetch, &next, topic_id, (int32_t)kclient_big_endian(at, 4));
            if (!place || place->end >= 0 || (aborted = kclient_count(&answer)) < 0) return 0;
            while (aborted--)
                if (!kclient_skip(&answer, 16) || kclient_number(&answer)) return 0;
            at = kclient_skip(&answer, 4);
            if (!at || kclient_big_endian(at, 4) != 0xFFFFFFFF) return 0; /* another replica is preferred */
            records = kclient_count(&answer);
            if (records < 0 || !(at = kclient_skip(&answer, (size_t)records)) || kclient_number(&answer)) return 0;
            if (records) {
                place->end = kclient_end_of(at, (size_t)records);
                asked = (int64_t)kclient_big_endian(fetch->frame + place->offset_at, 8);
                if (place->end < 0 || place->end <= asked) return 0;
                ++found;
            }
        }
        if (kclient_number(&answer)) return 0;
    }
    if (kclient_number(&answer) || answer.left || !found) return 0;
    for (i = 0; i < fetch->place_count; ++i)
        if (fetch->places[i].end >= 0)
            kclient_put_big_endian(fetch->frame + fetch->places[i].offset_at, 8, (uint64_t)fetch->places[i].end);
    fetch->armed = 0;
    fetch->followed = 1;
    return 1;
}

#endif
