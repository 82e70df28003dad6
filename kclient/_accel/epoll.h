/* What poller.pyx needs of the system: epoll and sockets of Linux. Elsewhere KCLIENT_EPOLL is 0 and nothing works. */
#ifndef KCLIENT_EPOLL_H
#define KCLIENT_EPOLL_H

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "lane.h"

/* Memory that a socket is received into by polls, and what came of it. Of a whole frame first come the `head` bytes
   that are left of its length; a frame for which there is no room ends there. */
typedef struct { int fd; char *at; size_t left, head, got; int error; } kclient_fill;

#if defined(__linux__)
#include <limits.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define KCLIENT_EPOLL 1
typedef struct epoll_event kclient_event;
typedef struct iovec kclient_span;

static int kclient_epoll(void) { return epoll_create1(EPOLL_CLOEXEC); }
static int kclient_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

/* what: 0 adds, 1 modifies, 2 removes */
static int kclient_watch(int epoll, int what, int fd, int events) {
    static const int operations[] = {EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL};
    struct epoll_event event;
    memset(&event, 0, sizeof event);
    event.events = (events & 1 ? EPOLLIN : 0) | (events & 2 ? EPOLLOUT : 0);
    event.data.fd = fd;
    return epoll_ctl(epoll, operations[what], fd, &event);
}
static int kclient_fd_of(const kclient_event *event) { return event->data.fd; }
/* As selectors have it: what is neither input nor output, an error or a hang-up, counts as both. */
static int kclient_mask_of(const kclient_event *event) {
    return (event->events & ~EPOLLOUT ? 1 : 0) | (event->events & ~EPOLLIN ? 2 : 0);
}
static int kclient_wait(int epoll, kclient_event *events, int room, int timeout_ms) {
    return epoll_wait(epoll, events, room, timeout_ms);
}
static int64_t kclient_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
/* Receive into the memory that waits for `event`, if any does: whether that is all the event is good for. */
static int kclient_received(const kclient_event *event, kclient_fill *fills, int fill_count) {
    ssize_t count;
    for (; fill_count; ++fills, --fill_count)
        if (fills->fd == event->data.fd) break;
    if (!fill_count || event->events != EPOLLIN || !fills->left || fills->error) return 0;
    for (;;) {
        count = recv(fills->fd, fills->at, fills->head ? fills->head : fills->left, MSG_DONTWAIT);
        if (count <= 0) break;
        fills->at += count;
        fills->got += (size_t)count;
        if (!fills->head) {
            fills->left -= (size_t)count;
            return fills->left != 0;
        }
        fills->head -= (size_t)count;
        if (!fills->head) {
            const unsigned char *end = (const unsigned char *)fills->at;
            size_t size = (size_t)end[-4] << 24 | (size_t)end[-3] << 16 | (size_t)end[-2] << 8 | end[-1];
            fills->left = size <= fills->left ? size : 0;
            if (!fills->left) return 0;
        }
    }
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
    if (count < 0) fills->error = errno;
    return 0; /* the end will be met again by whoever reads on */
}
static int kclient_lane_state(const kclient_lane *lane) { return __atomic_load_n(&lane->state, __ATOMIC_ACQUIRE); }
static void kclient_lane_enter(kclient_lane *lane, int state) { __atomic_store_n(&lane->state, state, __ATOMIC_RELEASE); }
static int kclient_lane_move(kclient_lane *lane, int from, int to) {
    return __atomic_compare_exchange_n(&lane->state, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}
static void kclient_lane_wait(kclient_lane *lane, int more) { __atomic_fetch_add(&lane->waiting, more, __ATOMIC_SEQ_CST); }
/* Take the answer that `event` announces, if it is all there, as expected, and waited for. All else stays where it is. */
static int kclient_lane_received(kclient_lane *lane, const kclient_event *event) {
    unsigned char data[KCLIENT_LARGEST_ANSWER + 1];
    int64_t took_ms;
    ssize_t count;
    if (event->data.fd != lane->fd || event->events != EPOLLIN) return 0;
    if (kclient_lane_state(lane) != KCLIENT_SENT || !__atomic_load_n(&lane->waiting, __ATOMIC_SEQ_CST)) return 0;
    count = recv(lane->fd, data, lane->answer_size + 1, MSG_DONTWAIT | MSG_PEEK);
    if (count < 0 || !kclient_is_answer(lane, data, (size_t)count)) return 0;
    if (recv(lane->fd, data, lane->answer_size, MSG_DONTWAIT) != (ssize_t)lane->answer_size) return 0;
    lane->base_offset = (int64_t)kclient_big_endian(data + lane->offset_at, 8);
    lane->append_time_ms = (int64_t)kclient_big_endian(data + lane->time_at, 8);
    ++lane->answered;
    took_ms = kclient_now_ms() - lane->sent_ms;
    lane->latency_ms += took_ms;
    if (took_ms > lane->longest_ms) lane->longest_ms = took_ms;
    kclient_lane_enter(lane, KCLIENT_ANSWERED);
    PyThread_release_lock(lane->unanswered);
    return 1;
}
/* The same without the GIL, and for `fills` until all there is to receive is there, or something else happens. Answers
   to what is sent through `lane` do not end it; but now and then its owner wants to see what was, and a lane that
   nobody uses is shut. From the end of the wait until the GIL is here again, *waiting counts this thread. */
static int kclient_wait_released(int epoll, kclient_event *events, int room, int timeout_ms,
                                 kclient_fill *fills, int fill_count, kclient_lane *lane, int *waiting) {
    int count, error, found, i;
    int64_t now_ms = kclient_now_ms(), patrol_ms = lane ? now_ms + lane->patrol_ms : now_ms;
    int64_t deadline_ms = timeout_ms < 0 ? -1 : now_ms + timeout_ms;
    kclient_lane *open = lane;
    PyThreadState *state = PyEval_SaveThread();
    for (;;) {
        int64_t until_ms = open && (deadline_ms < 0 || patrol_ms < deadline_ms) ? patrol_ms : deadline_ms;
        found = epoll_wait(epoll, events, room, until_ms < 0 ? -1 : (int)(until_ms - now_ms));
        error = errno;
        for (count = i = 0; i < found; ++i)
            if (!kclient_received(&events[i], fills, fill_count) && !(open && kclient_lane_received(open, &events[i])))
                events[count++] = events[i];
        if (count || found < 0) break;
        if (until_ms < 0) continue;
        now_ms = kclient_now_ms();
        if (deadline_ms >= 0 && now_ms >= deadline_ms) break;
        if (open && now_ms >= patrol_ms) {
            if (open->answered || !kclient_lane_move(open, KCLIENT_OPEN, KCLIENT_SHUT)) break;
            open = NULL;
        }
    }
    /* What began now would wait for this thread to have the GIL. */
    if (open) kclient_lane_move(open, KCLIENT_OPEN, KCLIENT_SHUT);
    if (found < 0) count = found;
    __atomic_fetch_add(waiting, 1, __ATOMIC_SEQ_CST);
    PyEval_RestoreThread(state);
    __atomic_fetch_sub(waiting, 1, __ATOMIC_SEQ_CST);
    errno = error;
    return count;
}
static void kclient_ring(int fd) {
    int error = errno;
    eventfd_write(fd, 1); /* it fails only when it is full, and then it wakes, too */
    errno = error;
}
static void kclient_hush(int fd) {
    eventfd_t count;
    eventfd_read(fd, &count);
}
static Py_ssize_t kclient_send(int fd, kclient_span *spans, int count) {
    struct msghdr message;
    memset(&message, 0, sizeof message);
    message.msg_iov = spans;
    message.msg_iovlen = (size_t)count;
    return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}
static Py_ssize_t kclient_recv(int fd, void *to, size_t size) { return recv(fd, to, size, MSG_DONTWAIT); }
static void kclient_close(int fd) { close(fd); }

#else

#define KCLIENT_EPOLL 0
typedef struct { int unused; } kclient_event;
typedef struct { void *iov_base; size_t iov_len; } kclient_span;

static int kclient_nothing(void) { errno = ENOSYS; return -1; }
#define kclient_epoll() kclient_nothing()
#define kclient_eventfd() kclient_nothing()
#define kclient_watch(epoll, what, fd, events) kclient_nothing()
#define kclient_fd_of(event) ((void)(event), -1)
#define kclient_mask_of(event) ((void)(event), 0)
#define kclient_wait(epoll, events, room, timeout_ms) kclient_nothing()
#define kclient_wait_released(epoll, events, room, timeout_ms, fills, count, lane, waiting) \
    ((void)(fills), (void)(lane), kclient_nothing())
#define kclient_lane_state(lane) ((lane)->state)
#define kclient_lane_enter(lane, now) ((void)((lane)->state = (now)))
#define kclient_lane_move(lane, from, to) ((lane)->state == (from) ? ((lane)->state = (to), 1) : 0)
#define kclient_lane_wait(lane, more) ((void)((lane)->waiting += (more)))
#define kclient_ring(fd) ((void)(fd))
#define kclient_hush(fd) ((void)(fd))
#define kclient_now_ms() ((int64_t)0)
#define kclient_send(fd, spans, count) ((void)(spans), (Py_ssize_t)kclient_nothing())
#define kclient_recv(fd, to, size) ((void)(to), (Py_ssize_t)kclient_nothing())
#define kclient_close(fd) ((void)(fd))
#endif

#endif
