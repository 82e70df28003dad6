/* What poller.pyx needs of the system: epoll and sockets of Linux. Elsewhere KCLIENT_EPOLL is 0 and nothing works. */
#ifndef KCLIENT_EPOLL_H
#define KCLIENT_EPOLL_H

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "Python.h"

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
/* The same without the GIL, and for `fills` until all there is to receive is there, or something else happens. From the
   end of the wait until the GIL is here again, *waiting counts this thread. */
static int kclient_wait_released(int epoll, kclient_event *events, int room, int timeout_ms,
                                 kclient_fill *fills, int fill_count, int *waiting) {
    int count, error, found, i;
    int64_t deadline_ms = timeout_ms < 0 ? -1 : kclient_now_ms() + timeout_ms;
    PyThreadState *state = PyEval_SaveThread();
    for (;;) {
        found = epoll_wait(epoll, events, room, timeout_ms);
        error = errno;
        for (count = i = 0; i < found; ++i)
            if (!kclient_received(&events[i], fills, fill_count)) events[count++] = events[i];
        if (count || found <= 0) break;
        if (deadline_ms >= 0) {
            timeout_ms = (int)(deadline_ms - kclient_now_ms());
            if (timeout_ms <= 0) break;
        }
    }
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
#define kclient_wait_released(epoll, events, room, timeout_ms, fills, count, waiting) ((void)(fills), kclient_nothing())
#define kclient_ring(fd) ((void)(fd))
#define kclient_hush(fd) ((void)(fd))
#define kclient_now_ms() ((int64_t)0)
#define kclient_send(fd, spans, count) ((void)(spans), (Py_ssize_t)kclient_nothing())
#define kclient_recv(fd, to, size) ((void)(to), (Py_ssize_t)kclient_nothing())
#define kclient_close(fd) ((void)(fd))
#endif

#endif
