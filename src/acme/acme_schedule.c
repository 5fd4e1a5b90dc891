/*
 * Times of renewals and attempts, and the file of the last attempt: one line for each value.
 */
#include "acme/acme_schedule.h"

#include <errno.h>
#include <stdio.h>

/* `part` * random / 2^32, for parts below 2^31. */
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

int64_t acme_due_s(const struct acme_validity *validity, const struct acme_attempt *attempt, int64_t now_s,
                   uint32_t random)
{
    int64_t due_s = validity && validity->covers_names ? acme_renewal_s(validity, random) : now_s;
    bool known = attempt->tried_s <= now_s && attempt->next_s <= now_s + 2 * LIMIT_ACME_RETRY_MS / 1000;

    return attempt->failures > 0 && known && attempt->next_s > due_s ? attempt->next_s : due_s;
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

static bool read_number(struct str *text, struct str name, uint64_t *out)
{
    struct str line = str_cut(text, '\n');

    return str_equal(str_cut(&line, ' '), name) && str_to_u64(str_or_empty(line), out) == 0 && *out <= INT64_MAX;
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
        *out_attempt = (struct acme_attempt){(int64_t)tried, (int64_t)next, failures, ""};
        snprintf(out_attempt->error, sizeof(out_attempt->error), STR_FMT, STR_ARG(str_or_empty(line)));
    }
    buffer_finish(&buffer);
    return error;
}

int acme_attempt_write(const char *path, const struct acme_attempt *attempt)
{
    char text[LIMIT_ACME_ERROR + 128];
    int length = snprintf(text, sizeof(text), "tried %lld\nnext %lld\nfailures %llu\nerror %s\n",
                          (long long)attempt->tried_s, (long long)attempt->next_s,
                          (unsigned long long)attempt->failures, attempt->error);

    return acme_file_replace(path, str_of(text, (size_t)length));
}
