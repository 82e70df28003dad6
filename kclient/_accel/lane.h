/* A lane as polls see it: whether an answer is the one that somebody waits for. What it is about is said by pure_lane.py.
   Nothing here needs the interpreter. */
#ifndef KCLIENT_LANE_H
#define KCLIENT_LANE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "Python.h"
#include "pythread.h"

#define KCLIENT_LARGEST_ANSWER 512

enum { KCLIENT_SHUT, KCLIENT_OPEN, KCLIENT_SENDING, KCLIENT_SENT, KCLIENT_ANSWERED };

/* `state` and `waiting` are looked at by threads that have the GIL and by a poll, which has not; from SENT to ANSWERED
   only the poll leads, and what it says then lies in the numbers. */
typedef struct {
    int fd, state, waiting, answered, patrol_ms;
    int32_t correlation_id;
    unsigned char *answer;
    size_t answer_size, offset_at, time_at, start_at;
    int64_t base_offset, append_time_ms, sent_ms, latency_ms, longest_ms;
    PyThread_type_lock unanswered; /* held while there is no answer to what was sent */
} kclient_lane;

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
/* The answer but for its numbers. */
static int kclient_is_answer(const kclient_lane *lane, const unsigned char *data, size_t size) {
    unsigned char expected[KCLIENT_LARGEST_ANSWER];
    if (size != lane->answer_size) return 0;
    memcpy(expected, lane->answer, size);
    kclient_put_big_endian(expected + 4, 4, (uint32_t)lane->correlation_id);
    memcpy(expected + lane->offset_at, data + lane->offset_at, 8);
    memcpy(expected + lane->time_at, data + lane->time_at, 8);
    memcpy(expected + lane->start_at, data + lane->start_at, 8);
    return !memcmp(expected, data, size) && (int64_t)kclient_big_endian(data + lane->offset_at, 8) >= 0;
}

#endif
