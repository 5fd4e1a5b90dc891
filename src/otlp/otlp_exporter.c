/*
 * The loop of the exporter: waits for spans, takes a batch, sends it, repeats it after temporary failures.
 */
#include "otlp/otlp_exporter.h"

#include "base/limits.h"
#include "build_options.h"
#include "otlp/otlp_encode.h"
#include "otlp/otlp_gzip.h"
#include "otlp/otlp_send.h"
#include "otlp/otlp_socket.h"
#include "otlp/span_ring.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { QUIET_MS = 10 }; /* pause after a wakeup without a batch: limits the CPU time that a worker can cause */

struct exporter {
    const struct otlp_exporter *settings;
    struct span_zone *zone;
    struct otlp_counters *counters;
    struct otlp_events events;
    struct otlp_connection connection;
    struct otlp_message message;
    struct buffer compressed;       /* the same by gzip; empty: not compressed */
    uint64_t batch;                 /* spans in `message` */
    struct span span;               /* a private copy */
    bool carried_over;              /* `span` did not fit into the last batch: it begins the next one */
    bool corrupt;                   /* the positions of a ring, or a span, were invalid */
    char cause[128];                /* of the last attempt's failure, for the log; empty: none */
    uint64_t logged_ms;             /* 0: no line was logged */
    uint64_t logged_full, logged_failed; /* counters at that time */
};

uint64_t otlp_backoff_ms(unsigned attempt, uint64_t retry_after_ms)
{
    uint64_t delay_ms = (uint64_t)LIMIT_OTLP_BACKOFF_MS << (attempt - 1);

    return delay_ms < retry_after_ms ? retry_after_ms : delay_ms;
}

/* Logs spans dropped since the last line, at most once per minute; with `last`, which is the end, in any case. */
static void log_dropped(struct exporter *exporter, bool last)
{
    uint64_t full = __atomic_load_n(&exporter->counters->dropped_full, __ATOMIC_RELAXED);
    uint64_t failed = __atomic_load_n(&exporter->counters->dropped_failed, __ATOMIC_RELAXED);
    uint64_t now = otlp_now_ms();

    if ((full == exporter->logged_full && failed == exporter->logged_failed) ||
        (!last && exporter->logged_ms > 0 && now - exporter->logged_ms < LIMIT_OTLP_LOG_MS))
        return;
    log_write(exporter->settings->log, LOG_WARN,
              "otlp: spans were dropped: %llu because the queue of a worker was full, %llu because they could not be "
              "sent to " STR_FMT "%s%s%s",
              (unsigned long long)(full - exporter->logged_full),
              (unsigned long long)(failed - exporter->logged_failed),
              STR_ARG(exporter->settings->otlp->endpoint.url), exporter->cause[0] ? ": " : "", exporter->cause,
              exporter->corrupt ? "; a worker wrote invalid spans" : "");
    exporter->logged_ms = now;
    exporter->logged_full = full;
    exporter->logged_failed = failed;
    exporter->corrupt = false;
    exporter->cause[0] = '\0';
}

/* Copies the next valid span. False: there is none. */
static bool take_span(struct exporter *exporter)
{
    if (exporter->carried_over) {
        exporter->carried_over = false;
        return true;
    }
    while (span_zone_take(exporter->zone, &exporter->span, &exporter->corrupt)) {
        if (span_is_valid(&exporter->span))
            return true;
        exporter->corrupt = true;
        otlp_count(&exporter->counters->dropped_failed, 1);
    }
    return false;
}

/* Completes the message, once for all attempts to send it. 0 or -errno. */
static int end_message(struct exporter *exporter)
{
    struct otlp_message *message = &exporter->message;
    int error = otlp_message_end(message);

    if (error < 0 || !exporter->settings->otlp->gzip)
        return error;
    return otlp_gzip(buffer_str(&message->out), &exporter->compressed);
}

/* Fills the message. 0 or -errno: the spans are counted as dropped. */
static int take_batch(struct exporter *exporter)
{
    const struct otlp *otlp = exporter->settings->otlp;
    int error = 0;

    exporter->batch = 0;
    otlp_message_begin(&exporter->message, otlp, STR(SLUICE_VERSION), LIMIT_OTLP_REQUEST);
    while (error == 0 && exporter->batch < otlp->batch_size && take_span(exporter)) {
        error = otlp_message_add(&exporter->message, &exporter->span);
        exporter->batch += error == 0;
    }
    exporter->carried_over = error == -ENOBUFS && exporter->batch > 0;
    span_zone_set_taken(exporter->zone, exporter->batch + exporter->carried_over);
    if (error == 0 || exporter->carried_over)
        error = end_message(exporter);
    else
        exporter->batch++;
    return error;
}

/* Returns true if the batch is done, accepted or not; false: it may be sent again. */
static bool send_once(struct exporter *exporter, uint64_t *out_retry_after_ms)
{
    const struct otlp *otlp = exporter->settings->otlp;
    const struct buffer *body = otlp->gzip ? &exporter->compressed : &exporter->message.out;
    struct otlp_response response = {0};
    const char *fault;
    int error = otlp_send(&exporter->connection, &exporter->events, otlp, buffer_str(body), &response, &fault);
    uint64_t rejected = response.rejected < exporter->batch ? response.rejected : exporter->batch;

    *out_retry_after_ms = response.retry_after_ms;
    if (error == 0 && response.status >= 200 && response.status < 300) {
        otlp_count(&exporter->counters->sent, exporter->batch - rejected);
        snprintf(exporter->cause, sizeof(exporter->cause), "%s",
                 rejected > 0 ? "the collector rejected a part of a batch" : "");
        exporter->batch = rejected;
        return true;
    }
    if (error < 0 && fault)
        snprintf(exporter->cause, sizeof(exporter->cause), "TLS: %s", fault);
    else if (error < 0)
        snprintf(exporter->cause, sizeof(exporter->cause), "%d: %s", -error, strerror(-error));
    else
        snprintf(exporter->cause, sizeof(exporter->cause), "the collector responded with status %d", response.status);
    log_write(exporter->settings->log, LOG_INFO, "otlp: sending to " STR_FMT " failed (%s)",
              STR_ARG(otlp->endpoint.url), exporter->cause);
    return error == 0 && !otlp_status_is_retryable(response.status);
}

/* Sends the batch; spans that are not accepted are counted as dropped. Returns true if all were accepted. */
static bool send_batch(struct exporter *exporter)
{
    uint64_t retry_after_ms;

    for (unsigned attempt = 1; !send_once(exporter, &retry_after_ms); attempt++) {
        uint64_t delay_ms = otlp_backoff_ms(attempt, retry_after_ms), now = otlp_now_ms();

        if (attempt == LIMIT_OTLP_ATTEMPTS || exporter->events.ending)
            break;
        /* The random part prevents many servers from trying again at the same time. */
        otlp_wait(&exporter->events, -1, 0, now + delay_ms + now % (delay_ms / 2), true);
    }
    otlp_count(&exporter->counters->dropped_failed, exporter->batch);
    return exporter->batch == 0;
}

/* Returns true if a batch was sent; false: none were waiting, or they could not be sent. */
static bool export_batch(struct exporter *exporter)
{
    int error = take_batch(exporter);
    bool sent = error == 0 && exporter->batch > 0 && send_batch(exporter);

    if (error < 0)
        otlp_count(&exporter->counters->dropped_failed, exporter->batch);
    span_zone_set_taken(exporter->zone, exporter->carried_over);
    otlp_message_finish(&exporter->message);
    buffer_finish(&exporter->compressed);
    log_dropped(exporter, false);
    return sent;
}

static bool batch_waits(const struct exporter *exporter)
{
    return span_zone_waiting(exporter->zone) >= exporter->settings->otlp->batch_size;
}

/* Waits until a batch is complete, or until `due_ms`. */
static void wait_for_batch(struct exporter *exporter, uint64_t due_ms)
{
    int wake_fd = span_zone_wake_fd(exporter->zone);
    uint64_t wakes;

    while (!batch_waits(exporter) && otlp_wait(&exporter->events, wake_fd, POLLIN, due_ms, true)) {
        if (read(wake_fd, &wakes, sizeof(wakes)) < 0 || batch_waits(exporter))
            continue;
        otlp_wait(&exporter->events, -1, 0, otlp_now_ms() + QUIET_MS, true);
    }
}

/* Polls the channel without waiting. */
static bool is_ending(struct exporter *exporter)
{
    otlp_wait(&exporter->events, -1, 0, 0, true);
    return exporter->events.ending;
}

static void run_loop(struct exporter *exporter)
{
    uint64_t interval_ms = exporter->settings->otlp->interval_ms, due_ms = otlp_now_ms() + interval_ms;

    while (!is_ending(exporter)) {
        wait_for_batch(exporter, due_ms);
        while (!is_ending(exporter) && (batch_waits(exporter) || exporter->carried_over))
            export_batch(exporter);
        if (!exporter->events.ending && otlp_now_ms() >= due_ms) {
            export_batch(exporter);
            otlp_connection_check(&exporter->connection);
            due_ms = otlp_now_ms() + interval_ms;
        }
        log_dropped(exporter, false);
    }
}

int otlp_exporter_run(const struct otlp_exporter *settings)
{
    struct exporter *exporter = calloc(1, sizeof(*exporter));

    if (!exporter) {
        log_write(settings->log, LOG_ALERT, "otlp: out of memory");
        return EXIT_FAILURE;
    }
    exporter->settings = settings;
    exporter->zone = settings->otlp->zone;
    exporter->counters = span_zone_counters(exporter->zone);
    exporter->events = (struct otlp_events){.channel_fd = settings->channel_fd};
    exporter->logged_full = __atomic_load_n(&exporter->counters->dropped_full, __ATOMIC_RELAXED);
    exporter->logged_failed = __atomic_load_n(&exporter->counters->dropped_failed, __ATOMIC_RELAXED);
    otlp_count(&exporter->counters->dropped_failed, span_zone_set_taken(exporter->zone, 0));
    run_loop(exporter);
    while (otlp_now_ms() < exporter->events.end_ms && export_batch(exporter))
        continue;
    log_dropped(exporter, true);
    otlp_connection_close(&exporter->connection);
    free(exporter);
    return EXIT_SUCCESS;
}
