/*
 * Times of renewals and attempts, and the file of the last attempt: one line for each value.
 */
#include "acme/acme_schedule.h"

#include <errno.h>
#include <stdio.h>

/* `part` * random / 2^32; a greater part counts as 2^31 - 1. */
static int64_t random_share(int64_t part, uint32_t random)
{
    return part > INT32_MAX ? random_share(INT32_MAX, random) : (part * (int64_t)random) >> 32;
}

int64_t acme_renewal_s(const struct acme_validity *validity, uint32_t random)
{
    int64_t lifetime = validity->not_after_s - validity->not_before_s;

    if (lifetime <= 0)
        return validity->not_before_s;
    return validity->not_after_s - lifetime / 3 + random_share(lifetime / 20, random);
}

uint64_t acme_retry_s(uint64_t retry_ms, uint64_t failures, uint32_t random)
{
    uint64_t delay_ms = retry_ms;

    for (uint64_t i = 1; i < failures && delay_ms < LIMIT_ACME_RETRY_MS; i++)
        delay_ms *= 2;
    if (delay_ms > LIMIT_ACME_RETRY_MS)
        delay_ms = LIMIT_ACME_RETRY_MS;
    delay_ms += (uint64_t)random_share((int64_t)delay_ms / 4, random);
    return (delay_ms + 999) / 1000;
}

/* False: the clock was set back since. */
static bool is_past(int64_t recorded_s, int64_t now_s)
{
    return recorded_s <= now_s + LIMIT_ACME_SKEW_S;
}

bool acme_window_decides(const struct acme_attempt *attempt, int64_t now_s)
{
    return attempt->window == ACME_WINDOW_AHEAD && is_past(attempt->queried_s, now_s) &&
           now_s - attempt->queried_s <= LIMIT_ACME_ANSWER_S;
}

/* The last tenth of the lifetime, for an authority whose window never begins. */
static int64_t last_tenth_s(const struct acme_validity *validity, uint32_t random)
{
    int64_t lifetime = validity->not_after_s - validity->not_before_s;

    return validity->not_after_s - lifetime / 10 + random_share(lifetime / 20, random);
}

/* The time at which the delay after a failure ends; 0: there is none, or the clock was set. */
static int64_t delayed_s(const struct acme_attempt *attempt, int64_t now_s)
{
    bool known = is_past(attempt->tried_s, now_s) && attempt->next_s <= now_s + 2 * LIMIT_ACME_RETRY_MS / 1000;

    return attempt->failures > 0 && known ? attempt->next_s : 0;
}

/*
 * With a wrong clock, a new certificate may be past its time of renewal when it arrives: a twentieth of the lifetime
 * passes until the next one is requested. 0: there was no success, or the clock was set back since.
 */
static int64_t rested_s(const struct acme_validity *validity, const struct acme_attempt *attempt, int64_t now_s)
{
    int64_t lifetime = validity->not_after_s - validity->not_before_s;
    bool succeeded = attempt->failures == 0 && attempt->tried_s > 0 && is_past(attempt->tried_s, now_s);

    return succeeded && lifetime > 0 ? attempt->tried_s + lifetime / 20 : 0;
}

int64_t acme_due_s(const struct acme_validity *validity, const struct acme_attempt *attempt, int64_t now_s,
                   uint32_t random)
{
    int64_t delay_s = delayed_s(attempt, now_s), due_s = now_s, rest_s;

    if (validity && validity->covers_names && attempt->window != ACME_WINDOW_REACHED) {
        due_s = acme_renewal_s(validity, random);
        if (due_s < validity->not_after_s && acme_window_decides(attempt, now_s))
            due_s = last_tenth_s(validity, random);
        rest_s = rested_s(validity, attempt, now_s);
        due_s = rest_s > due_s ? rest_s : due_s;
    }
    return delay_s > due_s ? delay_s : due_s;
}

int64_t acme_window_query_s(const struct acme_validity *validity, const struct acme_attempt *attempt, int64_t now_s,
                            uint32_t random)
{
    int64_t delay_s = delayed_s(attempt, now_s);

    if (!validity || !validity->covers_names || attempt->window == ACME_WINDOW_REACHED ||
        validity->not_after_s - now_s <= LIMIT_ACME_LAST_DAY_S)
        return INT64_MAX;
    if (delay_s > 0)
        return delay_s;
    return attempt->queried_s == 0 || !is_past(attempt->queried_s, now_s)
               ? now_s
               : attempt->queried_s + LIMIT_ACME_QUERY_S + random_share(LIMIT_ACME_QUERY_S / 4, random);
}

void acme_attempt_answered(struct acme_attempt *attempt, enum acme_window window, int64_t now_s)
{
    *attempt = (struct acme_attempt){.tried_s = attempt->tried_s, .queried_s = now_s, .window = (int)window};
}

void acme_attempt_failed(struct acme_attempt *attempt, uint64_t retry_ms, const char *error, int64_t now_s,
                         uint32_t random)
{
    attempt->failures++;
    attempt->tried_s = now_s;
    attempt->next_s = now_s + (int64_t)acme_retry_s(retry_ms, attempt->failures, random);
    snprintf(attempt->error, sizeof(attempt->error), "%s", *error ? error : "unknown error");
    for (char *c = attempt->error; *c; c++) {
        if (*c < ' ' || *c > '~')
            *c = ' ';
    }
}

/* Sums of two numbers do not overflow. */
static bool read_number(struct str *text, struct str name, uint64_t *out)
{
    struct str line = str_cut(text, '\n');

    return str_equal(str_cut(&line, ' '), name) && str_to_u64(str_or_empty(line), out) == 0 && *out <= INT64_MAX / 2;
}

/* The lines about the window, which a file of an earlier version lacks. */
static void read_answer(struct str *text, struct acme_attempt *attempt)
{
    uint64_t queried, window;

    if (read_number(text, STR("asked"), &queried) && read_number(text, STR("window"), &window) &&
        window <= ACME_WINDOW_REACHED) {
        attempt->queried_s = (int64_t)queried;
        attempt->window = (int)window;
    }
}

int acme_attempt_read(const char *path, struct acme_attempt *out_attempt)
{
    struct buffer buffer = {0};
    uint64_t tried = 0, next = 0, failures = 0;
    int error = acme_file_load(path, &buffer);
    struct str text = buffer_str(&buffer), line;

    *out_attempt = (struct acme_attempt){0};
    if (error == 0 && !(read_number(&text, STR("tried"), &tried) && read_number(&text, STR("next"), &next) &&
                        read_number(&text, STR("failures"), &failures)))
        error = -EINVAL;
    if (error == 0) {
        line = str_cut(&text, '\n');
        if (!str_equal(str_cut(&line, ' '), STR("error")))
            error = -EINVAL;
    }
    if (error == 0) {
        *out_attempt =
            (struct acme_attempt){.tried_s = (int64_t)tried, .next_s = (int64_t)next, .failures = failures};
        snprintf(out_attempt->error, sizeof(out_attempt->error), STR_FMT, STR_ARG(str_or_empty(line)));
        read_answer(&text, out_attempt);
    }
    buffer_finish(&buffer);
    return error;
}

int acme_attempt_write(const char *path, const struct acme_attempt *attempt)
{
    char text[LIMIT_ACME_ERROR + 128];
    int length = snprintf(text, sizeof(text), "tried %lld\nnext %lld\nfailures %llu\nerror %s\nasked %lld\nwindow %d\n",
                          (long long)attempt->tried_s, (long long)attempt->next_s,
                          (unsigned long long)attempt->failures, attempt->error, (long long)attempt->queried_s,
                          attempt->window);

    return acme_file_replace(path, str_of(text, (size_t)length));
}
