/*
 * Certificates by ACME on the status page: end of validity, next attempt, and the last failure.
 */
#include "status.h"

#include "acme/acme_status.h"
#include "base/saturate.h"

#include <stddef.h>
#include <stdio.h>
#include <time.h>

static const struct row {
    const char *name;
    const char *help;
    size_t offset;                  /* of the value in struct acme_status */
} rows[] = {
    {"expires_seconds", "End of the validity of the certificate, in seconds since the epoch; 0: there is none yet.",
     offsetof(struct acme_status, not_after_s)},
    {"next_attempt_seconds", "When the certificate is requested next, in seconds since the epoch.",
     offsetof(struct acme_status, next_s)},
    {"failures", "Failed attempts since the last success.", offsetof(struct acme_status, failures)},
    {"window", "1: the authority's window (RFC 9773) decides about the next attempt; 0: two thirds of the lifetime.",
     offsetof(struct acme_status, window)},
};

static unsigned long long value_of(const struct row *row, const struct acme_status *status)
{
    return *(const uint64_t *)(const void *)((const char *)status + row->offset);
}

static const char *name_of(const struct acme_certificate *certificate, char name[LIMIT_ACME_NAME + 1])
{
    snprintf(name, LIMIT_ACME_NAME + 1, STR_FMT, STR_ARG(certificate->name));
    return name;
}

void status_acme_prometheus(struct status_page_text *page, const struct acme *acme)
{
    char name[LIMIT_ACME_NAME + 1];
    struct acme_status status;

    for (size_t i = 0; acme->count > 0 && i < sizeof(rows) / sizeof(rows[0]); i++) {
        status_print(page, "# HELP sluice_acme_%s %s\n# TYPE sluice_acme_%s gauge\n", rows[i].name, rows[i].help,
                     rows[i].name);
        for (size_t k = 0; k < acme->count && acme_status_get(acme->zone, k, &status); k++) {
            status_print(page, "sluice_acme_%s{name=\"", rows[i].name);
            status_print_label(page, name_of(&acme->items[k], name));
            status_print(page, "\"} %llu\n", value_of(&rows[i], &status));
        }
    }
}

void status_acme_json(struct status_page_text *page, const struct acme *acme)
{
    char name[LIMIT_ACME_NAME + 1];
    struct acme_status status;

    if (acme->count == 0 || !acme->zone)
        return;
    status_print(page, ",\n  \"acme\": [");
    for (size_t k = 0; k < acme->count && acme_status_get(acme->zone, k, &status); k++) {
        status_print(page, "%s\n    {\"name\": \"", k ? "," : "");
        status_print_json(page, name_of(&acme->items[k], name));
        status_print(page, "\"");
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
            status_print(page, ", \"%s\": %llu", rows[i].name, value_of(&rows[i], &status));
        status_print(page, ", \"error\": \"");
        status_print_json(page, status.error);
        status_print(page, "\"}");
    }
    status_print(page, "]");
}

static void print_time(struct status_page_text *page, const char *title, uint64_t seconds)
{
    time_t at = (time_t)seconds;
    char text[32] = "none yet";
    struct tm when;

    if (seconds > 0 && gmtime_r(&at, &when))
        (void)strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &when);
    status_print(page, "<tr><td>&emsp;%s<td>%s\n", title, text);
}

static void print_days(struct status_page_text *page, const struct acme_status *status, int64_t now_s)
{
    uint64_t left_s = u64_sub_sat(status->not_after_s, now_s > 0 ? (uint64_t)now_s : 0);

    if (status->not_after_s > 0)
        status_print(page, "<td>%llu days left\n", (unsigned long long)(left_s / 86400));
    else
        status_print(page, "<td>self-signed until the first one arrives\n");
}

void status_acme_html(struct status_page_text *page, const struct acme *acme, int64_t now_s)
{
    char name[LIMIT_ACME_NAME + 1];
    struct acme_status status;

    if (acme->count == 0 || !acme->zone)
        return;
    status_print(page, "<h2>Certificates by ACME</h2>\n<table>\n");
    for (size_t k = 0; k < acme->count && acme_status_get(acme->zone, k, &status); k++) {
        status_print(page, "<tr><td>");
        status_print_html(page, name_of(&acme->items[k], name));
        print_days(page, &status, now_s);
        print_time(page, "Valid until", status.not_after_s);
        print_time(page, "Next attempt", status.next_s);
        status_print(page, "<tr><td>&emsp;Time of renewal<td>%s\n",
                     status.window ? "window of the authority" : "two thirds of the lifetime");
        status_print(page, "<tr><td>&emsp;Failed attempts<td>%llu\n", (unsigned long long)status.failures);
        if (*status.error) {
            status_print(page, "<tr><td>&emsp;Cause<td>");
            status_print_html(page, status.error);
            status_print(page, "\n");
        }
    }
    status_print(page, "</table>\n");
}
