/*
 * The loop of the renewal process: looks for certificates that are due, takes the lock, and runs the client.
 */
#include "acme/acme_renewal.h"

#include "acme/acme_challenge.h"
#include "acme/acme_folder.h"
#include "acme/acme_hook.h"
#include "acme/acme_order.h"
#include "acme/acme_status.h"

#include <errno.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* The state of one certificate in this process. */
struct certificate_state {
    struct acme_attempt attempt;    /* kept in memory, too: the disk may be full */
    uint32_t random;
    bool file_invalid;              /* the file is not usable; logged */
    bool supports_window;           /* its client queries the window of the authority */
    int64_t due_s, query_s;         /* when it is to be requested; when its client is to query the window */
};

struct renewal {
    const struct acme_renewal *settings;
    struct acme_events events;
    struct certificate_state *states;
    char hook[PATH_MAX];
    bool lock_failed;               /* logged */
};

static int64_t now_s(void)
{
    struct clock clock;

    clock_read(&clock);
    return clock_wall_s(&clock);
}

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
 * Reads certificate and attempt, which another machine may have changed. Returns the time of the next run of the
 * client.
 */
static int64_t read_next_s(struct renewal *renewal, size_t index, struct acme_validity *out_validity, bool *out_exists)
{
    const struct acme_certificate *certificate = &renewal->settings->acme->items[index];
    struct certificate_state *state = &renewal->states[index];
    struct acme_attempt stored;
    int error = acme_file_read(certificate->file.data, certificate, out_validity);

    *out_exists = error == 0;
    if (error < 0 && error != -ENOENT && !state->file_invalid)
        log_write(renewal->settings->log, LOG_ERROR, "acme: \"" STR_FMT "\" is not a certificate with its key (%d: %s)",
                  STR_ARG(certificate->file), -error, strerror(-error));
    state->file_invalid = error < 0 && error != -ENOENT;
    if (acme_attempt_read(certificate->attempt_file.data, &stored) == 0 && stored.tried_s >= state->attempt.tried_s &&
        stored.queried_s >= state->attempt.queried_s)
        state->attempt = stored;
    state->due_s = acme_due_s(error == 0 ? out_validity : NULL, &state->attempt, now_s(), state->random);
    state->query_s = state->supports_window
                       ? acme_window_query_s(error == 0 ? out_validity : NULL, &state->attempt, now_s(), state->random)
                       : INT64_MAX;
    return state->due_s < state->query_s ? state->due_s : state->query_s;
}

static void report_status(struct renewal *renewal, size_t index, const struct acme_validity *validity, int64_t next_s)
{
    const struct certificate_state *state = &renewal->states[index];
    const struct acme_attempt *attempt = &state->attempt;
    bool by_window = acme_window_decides(attempt, now_s());
    bool exact = by_window || attempt->failures > 0 || next_s > state->due_s;
    struct acme_status status = {.not_after_s = validity ? (uint64_t)validity->not_after_s : 0,
                                 .tried_s = (uint64_t)attempt->tried_s,
                                 .next_s = (uint64_t)(exact ? next_s : state->due_s),
                                 .failures = attempt->failures,
                                 .window = by_window};

    memcpy(status.error, attempt->error, sizeof(status.error));
    acme_status_set(renewal->settings->acme->zone, index, &status);
}

static void store_attempt(struct renewal *renewal, size_t index)
{
    const struct acme_certificate *certificate = &renewal->settings->acme->items[index];
    int error = acme_attempt_write(certificate->attempt_file.data, &renewal->states[index].attempt);

    if (error < 0)
        log_write(renewal->settings->log, LOG_ERROR, "acme: \"" STR_FMT "\" cannot be written (%d: %s)",
                  STR_ARG(certificate->attempt_file), -error, strerror(-error));
}

static void record_success(struct renewal *renewal, size_t index, const char *directory)
{
    const struct acme_certificate *certificate = &renewal->settings->acme->items[index];
    const char message = 1;

    renewal->states[index].attempt = (struct acme_attempt){.tried_s = now_s(), .queried_s = now_s()};
    store_attempt(renewal, index);
    log_write(renewal->settings->log, LOG_NOTICE, "acme: \"" STR_FMT "\" has a new certificate from %s",
              STR_ARG(certificate->name), directory);
    if (write(renewal->settings->channel_fd, &message, 1) < 0)
        log_write(renewal->settings->log, LOG_INFO, "acme: the master finds the new certificate at its next check");
}

static void record_failure(struct renewal *renewal, size_t index, const char *error)
{
    const struct acme_certificate *certificate = &renewal->settings->acme->items[index];
    struct certificate_state *state = &renewal->states[index];

    acme_attempt_failed(&state->attempt, certificate->settings->retry_ms, error, now_s(), state->random);
    store_attempt(renewal, index);
    log_write(renewal->settings->log, LOG_ERROR, "acme: no certificate for \"" STR_FMT "\": %s; next attempt in %lld s",
              STR_ARG(certificate->name), state->attempt.error, (long long)(state->attempt.next_s - now_s()));
}

/* `directory` is filled in for each authority. */
static struct acme_order make_order(struct renewal *renewal, size_t index, const char *directory)
{
    return (struct acme_order){.acme = renewal->settings->acme,
                               .certificate = &renewal->settings->acme->items[index],
                               .directory = directory,
                               .hook = renewal->hook,
                               .environment = &renewal->settings->environments[index],
                               .events = &renewal->events,
                               .log = renewal->settings->log};
}

/* Requests a certificate from one authority after the other. Holds the lock. */
static void request_certificate(struct renewal *renewal, size_t index)
{
    const struct acme *acme = renewal->settings->acme;
    const struct acme_certificate *certificate = &acme->items[index];
    char directory[LIMIT_ACME_URL + 1] = "";
    struct acme_order order = make_order(renewal, index, directory);
    char error[LIMIT_ACME_ERROR] = "", cause[LIMIT_ACME_ERROR];
    size_t length = 0;
    int result = -EINVAL;

    acme_challenge_clear(acme->challenges.data);
    acme_zone_set_renewing(acme->zone, true);
    for (size_t i = 0; i < certificate->settings->directories.count && result == -EINVAL; i++) {
        snprintf(directory, sizeof(directory), STR_FMT, STR_ARG(certificate->settings->directories.items[i]));
        log_write(renewal->settings->log, LOG_NOTICE, "acme: requesting a certificate for \"" STR_FMT "\" from %s",
                  STR_ARG(certificate->name), order.directory);
        result = acme_order_request(&order, cause, sizeof(cause));
        if (result == -EINVAL && length < sizeof(error))
            length += (size_t)snprintf(error + length, sizeof(error) - length, "%s%s: %s", i ? "; " : "",
                                       order.directory, cause);
    }
    if (result == 0)
        record_success(renewal, index, order.directory);
    else if (result == -EINVAL)
        record_failure(renewal, index, error);
}

static void record_answer(struct renewal *renewal, size_t index, enum acme_window window)
{
    static const char *const texts[] = {[ACME_WINDOW_UNKNOWN] = "is not known",
                                        [ACME_WINDOW_AHEAD] = "has not been reached",
                                        [ACME_WINDOW_REACHED] = "has been reached, but the client did not renew it"};
    struct acme_attempt *attempt = &renewal->states[index].attempt;

    acme_attempt_answered(attempt, window, now_s());
    store_attempt(renewal, index);
    log_write(renewal->settings->log, LOG_INFO, "acme: the authority's window for the renewal of \"" STR_FMT "\" %s",
              STR_ARG(renewal->settings->acme->items[index].name), texts[window]);
}

/* Queries the authority that issued the certificate, which is renewed in its window. Holds the lock. */
static void query_window(struct renewal *renewal, size_t index)
{
    const struct acme *acme = renewal->settings->acme;
    const struct conf_words *directories = &acme->items[index].settings->directories;
    char directory[LIMIT_ACME_URL + 1] = "", error[LIMIT_ACME_ERROR] = "";
    struct acme_order order = make_order(renewal, index, directory);
    enum acme_window window = ACME_WINDOW_UNKNOWN;
    int result = 0;

    acme_challenge_clear(acme->challenges.data);
    for (size_t i = 0; i < directories->count && result == 0 && window == ACME_WINDOW_UNKNOWN; i++) {
        snprintf(directory, sizeof(directory), STR_FMT, STR_ARG(directories->items[i]));
        result = acme_order_renew(&order, &window, error, sizeof(error));
    }
    if (result == 1)
        record_success(renewal, index, order.directory);
    else if (result == 0)
        record_answer(renewal, index, window);
    if (result != -EINVAL)
        return;
    if (window == ACME_WINDOW_REACHED)
        renewal->states[index].attempt.window = window; /* due: any authority may issue the next certificate */
    record_failure(renewal, index, error);
}

/* Another machine may request it earlier than this one: the random part of its time differs. */
static bool may_be_renewed(const struct acme_validity *validity)
{
    return !validity->covers_names || acme_renewal_s(validity, 0) <= now_s() + 2 * LIMIT_ACME_CHECK_S;
}

static void run_client(struct renewal *renewal, size_t index)
{
    if (renewal->states[index].due_s <= now_s())
        request_certificate(renewal, index);
    else
        query_window(renewal, index);
}

/* Checks one certificate, and requests it if it is due. Returns the time of the next check. */
static int64_t check_certificate(struct renewal *renewal, size_t index, bool *renewing)
{
    struct acme_validity validity;
    bool exists;
    int64_t next_s = read_next_s(renewal, index, &validity, &exists);

    if (next_s <= now_s()) {
        int lock = acme_folder_lock(renewal->settings->acme);

        if (lock < 0 && lock != -EAGAIN && !renewal->lock_failed)
            log_write(renewal->settings->log, LOG_ERROR, "acme: the lock of \"" STR_FMT "\" cannot be taken (%d: %s)",
                      STR_ARG(renewal->settings->acme->state), -lock, strerror(-lock));
        renewal->lock_failed = lock < 0 && lock != -EAGAIN;
        /* Another machine may have installed it before the lock was free. */
        if (lock >= 0 && read_next_s(renewal, index, &validity, &exists) <= now_s())
            run_client(renewal, index);
        if (lock >= 0)
            close(lock);
        next_s = read_next_s(renewal, index, &validity, &exists);
        if (next_s <= now_s())
            next_s = now_s() + LIMIT_ACME_LOCK_S;
    }
    report_status(renewal, index, exists ? &validity : NULL, next_s);
    *renewing |= !exists || may_be_renewed(&validity);
    return next_s;
}

/* Bounded by LIMIT_ACME_CHECK_S: the clock may be set and other machines may install certificates meanwhile. */
static uint64_t wait_ms(int64_t next_s)
{
    int64_t wait_s = next_s - now_s();

    return 1000 * (uint64_t)(wait_s < 1 ? 1 : wait_s > LIMIT_ACME_CHECK_S ? LIMIT_ACME_CHECK_S : wait_s);
}

static bool continues(const struct renewal *renewal)
{
    return !renewal->events.ending && !renewal->events.replaced;
}

static void run_loop(struct renewal *renewal)
{
    while (continues(renewal)) {
        int64_t next_s = INT64_MAX;
        bool renewing = false;

        for (size_t i = 0; i < renewal->settings->acme->count && continues(renewal); i++) {
            int64_t one_s = check_certificate(renewal, i, &renewing);

            next_s = one_s < next_s ? one_s : next_s;
        }
        acme_zone_set_renewing(renewal->settings->acme->zone, renewing);
        if (continues(renewal))
            (void)acme_events_wait(&renewal->events, -1, wait_ms(next_s));
    }
}

/* A reload or a restart makes the next attempt earlier, because the cause of the failure may have been removed. */
static void read_attempts(struct renewal *renewal)
{
    const struct acme *acme = renewal->settings->acme;

    for (size_t i = 0; i < acme->count; i++) {
        struct acme_attempt *attempt = &renewal->states[i].attempt;
        int64_t soon_s;

        if (RAND_bytes((unsigned char *)&renewal->states[i].random, sizeof(uint32_t)) != 1)
            renewal->states[i].random = 0;
        if (acme_attempt_read(acme->items[i].attempt_file.data, attempt) < 0 || attempt->failures == 0)
            continue;
        soon_s = attempt->tried_s + LIMIT_ACME_RELOAD_S;
        attempt->next_s = attempt->next_s < soon_s ? attempt->next_s : soon_s;
        store_attempt(renewal, i);
    }
}

/* Runs each client once, not for each certificate. */
static void find_windows(struct renewal *renewal)
{
    const struct acme *acme = renewal->settings->acme;

    for (size_t i = 0; i < acme->count; i++) {
        int client = acme->items[i].settings->client;
        size_t same = 0;
        char directory[LIMIT_ACME_URL + 1];
        struct acme_order order = make_order(renewal, i, directory);

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
