/*
 * One run of the client for a certificate, and the record of its result.
 */
#include "acme/acme_renewal_private.h"

#include "acme/acme_challenge.h"
#include "acme/acme_status.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

int64_t renewal_now_s(void)
{
    struct clock clock;

    clock_read(&clock);
    return clock_wall_s(&clock);
}

void renewal_store_attempt(struct renewal *renewal, size_t index)
{
    const struct acme_certificate *certificate = &renewal->settings->acme->items[index];
    int error = acme_attempt_write(certificate->attempt_file.data, &renewal->states[index].attempt);

    renewal->states[index].unwritten = error < 0;
    if (error < 0)
        log_write(renewal->settings->log, LOG_ERROR, "acme: \"" STR_FMT "\" cannot be written (%d: %s)",
                  STR_ARG(certificate->attempt_file), -error, strerror(-error));
}

static void record_success(struct renewal *renewal, size_t index, const char *directory)
{
    const struct acme_certificate *certificate = &renewal->settings->acme->items[index];
    const char message = 1;

    renewal->states[index].attempt = (struct acme_attempt){.tried_s = renewal_now_s(), .queried_s = renewal_now_s()};
    renewal_store_attempt(renewal, index);
    log_write(renewal->settings->log, LOG_NOTICE, "acme: \"" STR_FMT "\" has a new certificate from %s",
              STR_ARG(certificate->name), directory);
    if (write(renewal->settings->channel_fd, &message, 1) < 0)
        log_write(renewal->settings->log, LOG_INFO, "acme: the master finds the new certificate at its next check");
}

static void record_failure(struct renewal *renewal, size_t index, const char *error)
{
    const struct acme_certificate *certificate = &renewal->settings->acme->items[index];
    struct certificate_state *state = &renewal->states[index];

    acme_attempt_failed(&state->attempt, certificate->settings->retry_ms, error, renewal_now_s(), state->random);
    renewal_store_attempt(renewal, index);
    log_write(renewal->settings->log, LOG_ERROR, "acme: no certificate for \"" STR_FMT "\": %s; next attempt in %lld s",
              STR_ARG(certificate->name), state->attempt.error, (long long)(state->attempt.next_s - renewal_now_s()));
}

struct acme_order renewal_make_order(struct renewal *renewal, size_t index, const char *directory)
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
    struct acme_order order = renewal_make_order(renewal, index, directory);
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

    acme_attempt_answered(attempt, window, renewal_now_s());
    renewal_store_attempt(renewal, index);
    log_write(renewal->settings->log, LOG_INFO, "acme: the authority's window for the renewal of \"" STR_FMT "\" %s",
              STR_ARG(renewal->settings->acme->items[index].name), texts[window]);
}

/* Queries the authority that issued the certificate, which is renewed in its window. Holds the lock. */
static void query_window(struct renewal *renewal, size_t index)
{
    const struct acme *acme = renewal->settings->acme;
    const struct conf_words *directories = &acme->items[index].settings->directories;
    char directory[LIMIT_ACME_URL + 1] = "", error[LIMIT_ACME_ERROR] = "";
    struct acme_order order = renewal_make_order(renewal, index, directory);
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

void renewal_run_client(struct renewal *renewal, size_t index)
{
    if (renewal->states[index].due_s <= renewal_now_s())
        request_certificate(renewal, index);
    else
        query_window(renewal, index);
}
