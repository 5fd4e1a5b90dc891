/*
 * The loop of the renewal process: looks for certificates that are due, takes the lock, and runs the client.
 */
#include "acme/acme_renewal_private.h"

#include "acme/acme_folder.h"
#include "acme/acme_hook.h"
#include "acme/acme_status.h"

#include <errno.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The client passes its own arguments to the hook, so a link with this name, to the executable, selects the command. */
static int make_hook(struct renewal *renewal)
{
    const struct acme *acme = renewal->settings->acme;
    char made[PATH_MAX];
    int error = 0;

    if (snprintf(renewal->hook, PATH_MAX, STR_FMT "/clients/" ACME_HOOK, STR_ARG(acme->state)) >= PATH_MAX ||
        snprintf(made, PATH_MAX, "%s.%ld", renewal->hook, (long)getpid()) >= PATH_MAX)
        return -ENAMETOOLONG;
    unlink(made);
    if (symlink(renewal->settings->executable, made) < 0)
        return -errno;
    if (rename(made, renewal->hook) < 0) {
        error = -errno;
        unlink(made);
    }
    return error;
}

/*
 * True if the stored attempt replaces that in memory: any, because the clock of another machine may be behind; after a
 * failed write only a later one.
 */
static bool replaces_attempt(const struct certificate_state *state, const struct acme_attempt *stored)
{
    return !state->unwritten || stored->tried_s > state->attempt.tried_s ||
           stored->queried_s > state->attempt.queried_s;
}

/*
 * Reads certificate and attempt, which another machine may have changed. Returns the time of the next run of the
 * client, or of the next call if the file cannot be read now.
 */
static int64_t read_next_s(struct renewal *renewal, size_t index, struct acme_validity *out_validity, bool *out_exists)
{
    const struct acme_certificate *certificate = &renewal->settings->acme->items[index];
    struct certificate_state *state = &renewal->states[index];
    const struct acme_validity *valid;
    struct acme_attempt stored;
    int error = acme_file_read(certificate->file.data, certificate, out_validity);
    int file_error = error == -ENOENT ? 0 : error;

    *out_exists = error == 0;
    if (file_error < 0 && file_error != state->file_error)
        log_write(renewal->settings->log, LOG_ERROR, "acme: \"" STR_FMT "\" %s (%d: %s)", STR_ARG(certificate->file),
                  acme_file_is_unknown(error) ? "cannot be read" : "is not a certificate with its key", -error,
                  strerror(-error));
    state->file_error = file_error;
    if (acme_attempt_read(certificate->attempt_file.data, &stored) == 0 && replaces_attempt(state, &stored))
        state->attempt = stored;
    if (acme_file_is_unknown(error)) /* a valid certificate is not replaced */
        return state->due_s = state->query_s = renewal_now_s() + LIMIT_ACME_CHECK_S;
    valid = error == 0 ? out_validity : NULL;
    state->due_s = acme_due_s(valid, &state->attempt, renewal_now_s(), state->random);
    state->query_s = state->supports_window
                       ? acme_window_query_s(valid, &state->attempt, renewal_now_s(), state->random)
                       : INT64_MAX;
    return state->due_s < state->query_s ? state->due_s : state->query_s;
}

static void report_status(struct renewal *renewal, size_t index, const struct acme_validity *validity, int64_t next_s)
{
    const struct certificate_state *state = &renewal->states[index];
    const struct acme_attempt *attempt = &state->attempt;
    bool by_window = acme_window_decides(attempt, renewal_now_s());
    bool exact = by_window || attempt->failures > 0 || next_s > state->due_s;
    struct acme_status status = {.not_after_s = validity ? (uint64_t)validity->not_after_s : 0,
                                 .next_s = (uint64_t)(exact ? next_s : state->due_s),
                                 .failures = attempt->failures,
                                 .window = by_window};

    memcpy(status.error, attempt->error, sizeof(status.error));
    acme_status_set(renewal->settings->acme->zone, index, &status);
}

/* Another machine may request it earlier than this one: the random part of its time differs. */
static bool may_be_renewed(const struct acme_validity *validity)
{
    return !validity->covers_names || acme_renewal_s(validity, 0) <= renewal_now_s() + 2 * LIMIT_ACME_CHECK_S;
}

/* Checks one certificate, and requests it if it is due. Returns the time of the next check. */
static int64_t check_certificate(struct renewal *renewal, size_t index, bool *renewing)
{
    struct acme_validity validity;
    bool exists;
    int64_t next_s = read_next_s(renewal, index, &validity, &exists);

    if (next_s <= renewal_now_s()) {
        int lock = acme_folder_lock(renewal->settings->acme);

        if (lock < 0 && lock != -EAGAIN && !renewal->lock_failed)
            log_write(renewal->settings->log, LOG_ERROR, "acme: the lock of \"" STR_FMT "\" cannot be taken (%d: %s)",
                      STR_ARG(renewal->settings->acme->state), -lock, strerror(-lock));
        renewal->lock_failed = lock < 0 && lock != -EAGAIN;
        /* Another machine may have installed it before the lock was free. */
        if (lock >= 0 && read_next_s(renewal, index, &validity, &exists) <= renewal_now_s())
            renewal_run_client(renewal, index);
        if (lock >= 0)
            close(lock);
        next_s = read_next_s(renewal, index, &validity, &exists);
        if (next_s <= renewal_now_s())
            next_s = renewal_now_s() + LIMIT_ACME_LOCK_S;
    }
    report_status(renewal, index, exists ? &validity : NULL, next_s);
    *renewing |= !exists || may_be_renewed(&validity);
    return next_s;
}

/* Bounded by LIMIT_ACME_CHECK_S: the clock may be set and other machines may install certificates meanwhile. */
static uint64_t wait_ms(int64_t next_s)
{
    int64_t wait_s = next_s - renewal_now_s();

    return 1000 * (uint64_t)(wait_s < 1 ? 1 : wait_s > LIMIT_ACME_CHECK_S ? LIMIT_ACME_CHECK_S : wait_s);
}

static bool renewal_continues(const struct renewal *renewal)
{
    return !renewal->events.ending && !renewal->events.replaced;
}

static void run_loop(struct renewal *renewal)
{
    while (renewal_continues(renewal)) {
        int64_t next_s = INT64_MAX;
        bool renewing = false;

        for (size_t i = 0; i < renewal->settings->acme->count && renewal_continues(renewal); i++) {
            int64_t one_s = check_certificate(renewal, i, &renewing);

            next_s = one_s < next_s ? one_s : next_s;
        }
        acme_zone_set_renewing(renewal->settings->acme->zone, renewing);
        if (renewal_continues(renewal))
            (void)acme_events_wait(&renewal->events, -1, wait_ms(next_s));
    }
}

/*
 * A reload or a restart makes the next attempt earlier, because the cause of the failure may have been removed. Without
 * the lock only in this process: another one is about to write the result of its attempt.
 */
static void read_attempts(struct renewal *renewal)
{
    const struct acme *acme = renewal->settings->acme;
    int lock = acme_folder_lock(acme);

    for (size_t i = 0; i < acme->count; i++) {
        struct acme_attempt *attempt = &renewal->states[i].attempt;
        int64_t soon_s;

        if (RAND_bytes((unsigned char *)&renewal->states[i].random, sizeof(uint32_t)) != 1)
            renewal->states[i].random = 0;
        if (acme_attempt_read(acme->items[i].attempt_file.data, attempt) < 0 || attempt->failures == 0)
            continue;
        soon_s = attempt->tried_s + LIMIT_ACME_RELOAD_S;
        attempt->next_s = attempt->next_s < soon_s ? attempt->next_s : soon_s;
        renewal->states[i].unwritten = true;
        if (lock >= 0)
            renewal_store_attempt(renewal, i);
    }
    if (lock >= 0)
        close(lock);
}

/* Runs each client once, not for each certificate. */
static void find_windows(struct renewal *renewal)
{
    const struct acme *acme = renewal->settings->acme;

    for (size_t i = 0; i < acme->count; i++) {
        int client = acme->items[i].settings->client;
        size_t same = 0;
        char directory[LIMIT_ACME_URL + 1];
        struct acme_order order = renewal_make_order(renewal, i, directory);

        while (acme->items[same].settings->client != client)
            same++;
        snprintf(directory, sizeof(directory), STR_FMT, STR_ARG(acme->items[i].settings->directories.items[0]));
        renewal->states[i].supports_window =
            same < i ? renewal->states[same].supports_window : acme_order_supports_window(&order);
    }
}

int acme_renewal_run(const struct acme_renewal *settings)
{
    struct renewal *renewal = calloc(1, sizeof(*renewal));
    int error = renewal ? acme_events_open(&renewal->events, settings->channel_fd) : -ENOMEM;

    if (error == 0) {
        renewal->settings = settings;
        renewal->states = calloc(settings->acme->count, sizeof(*renewal->states));
        error = renewal->states ? make_hook(renewal) : -ENOMEM;
    }
    if (error == 0) {
        read_attempts(renewal);
        find_windows(renewal);
        run_loop(renewal);
    } else {
        log_write(settings->log, LOG_ALERT,
                  "acme: certificates are not renewed (%d: %s); state folder: \"" STR_FMT "\"", -error,
                  strerror(-error), STR_ARG(settings->acme->state));
    }
    if (renewal) {
        acme_events_close(&renewal->events);
        free(renewal->states);
    }
    free(renewal);
    return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
