/*
 * Accepts from a listening socket, and pauses for PAUSE_MS if descriptors or memory run out.
 */
#include "io/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define PAUSE_MS 100

static void accept_next(struct listener *listener)
{
    if (!op_idle(&listener->accept))
        return;
    loop_accept(listener->loop, &listener->accept, listener->fd, &listener->peer);
    listener->accept_draining = listener->draining;
    if (listener->draining)
        loop_cancel(listener->loop, &listener->accept); /* a queued connection is still accepted */
}

static void pause_accept(struct listener *listener, uint64_t ms)
{
    if (op_idle(&listener->pause))
        loop_timer(listener->loop, &listener->pause, listener->loop->clock.monotonic_ms + ms);
}

static void stop_when_idle(struct listener *listener)
{
    if (!op_idle(&listener->accept) || !op_idle(&listener->pause))
        return;
    if (listener->spare_fd >= 0)
        close(listener->spare_fd);
    listener->spare_fd = -1;
    listener->stopped(listener->owner, listener);
}

static int spare_open(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Accepts and closes one queued connection with the spare descriptor, so that its client does not wait. */
static void reject_one(struct listener *listener)
{
    int fd;

    if (listener->spare_fd < 0)
        return;
    close(listener->spare_fd);
    fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    listener->spare_fd = spare_open();
}

static void accept_failed(struct listener *listener, int error)
{
    bool descriptors = error == -EMFILE || error == -ENFILE;

    if (descriptors && !(listener->exhausted && listener->exhausted(listener->owner)))
        reject_one(listener);
    if (log_limit_allows(listener->accept_failures, listener->loop->clock.monotonic_ms))
        log_write(listener->log, LOG_CRIT, "accept() failed (%s): pausing for %d ms at a time", strerror(-error),
                  PAUSE_MS);
    listener->accept_paused = true;
    pause_accept(listener, PAUSE_MS);
}

static void accept_done(struct op *op, int result)
{
    struct listener *listener = container_of(op, struct listener, accept);

    if (result >= 0) {
        listener->accept_paused = false;
        listener->accepted(listener->owner, listener, result, &listener->peer);
    }
    if (listener->stopping)
        stop_when_idle(listener);
    else if (result == -ECANCELED && listener->accept_draining)
        listener_stop(listener);
    else if (result < 0 && result != -ECANCELED)
        accept_failed(listener, result);
    else if (!listener->paused)
        accept_next(listener);
}

static void accept_pause_done(struct op *op, int result)
{
    struct listener *listener = container_of(op, struct listener, pause);

    if (listener->stopping)
        stop_when_idle(listener);
    else if (!listener->paused)
        accept_next(listener);
}

void listener_start(struct listener *listener)
{
    listener->accept = (struct op){.done = accept_done};
    listener->pause = (struct op){.done = accept_pause_done};
    listener->spare_fd = spare_open();
    listener->paused = listener->draining = listener->accept_draining = listener->stopping =
        listener->accept_paused = false;
    accept_next(listener);
}

void listener_pause(struct listener *listener)
{
    listener->paused = true;
    loop_cancel(listener->loop, &listener->accept);
}

void listener_resume(struct listener *listener)
{
    if (!listener->paused || listener->stopping)
        return;
    listener->paused = false;
    if (op_idle(&listener->pause))
        accept_next(listener);
}

void listener_drain(struct listener *listener)
{
    if (listener->draining || listener->stopping)
        return;
    listener->draining = true;
    loop_cancel(listener->loop, &listener->accept);
    if (!listener->paused && op_idle(&listener->pause))
        accept_next(listener);
}

void listener_stop(struct listener *listener)
{
    if (listener->stopping)
        return;
    listener->stopping = true;
    loop_cancel(listener->loop, &listener->accept);
    loop_cancel(listener->loop, &listener->pause);
    pause_accept(listener, 0);
}
