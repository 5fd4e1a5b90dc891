/*
 * GET /v1/certificates: those that this worker presents, also after a reload of changed files.
 */
#include "control/control.h"

#include "tls/tls_certificate_facts.h"

#define DAY_SECONDS 86400

int64_t control_days_left(int64_t until_s, int64_t now_s)
{
    int64_t left_s = until_s - now_s;

    return (left_s < 0 ? left_s - (DAY_SECONDS - 1) : left_s) / DAY_SECONDS;
}

static void write_server(struct report *report, const struct endpoint *endpoint, size_t server, int64_t now_s)
{
    struct tls_certificate_facts facts;

    for (size_t i = 0; tls_certificate_facts(endpoint->tls, server, i, &facts); i++) {
        report_row(report);
        report_text(report, endpoint->servers[server]->name);
        report_text(report, endpoint->text);
        report_text(report, str_from(facts.subject));
        report_text(report, str_from(facts.issuer));
        report_text(report, str_from(facts.key));
        report_time(report, facts.until_s);
        report_signed(report, control_days_left(facts.until_s, now_s));
    }
}

int control_certificates(struct control_call *call)
{
    static const char *const columns[] = {"server", "listen", "subject", "issuer", "key", "until", "days_left", NULL};
    const struct configuration *configuration = call->worker->configuration;

    report_begin(&call->report, "certificates", columns);
    for (size_t i = 0; i < configuration->endpoint_count; i++) {
        const struct endpoint *endpoint = &configuration->endpoints[i];

        for (size_t k = 0; endpoint->tls && k < endpoint->server_count; k++)
            write_server(&call->report, endpoint, k, clock_wall_s(&call->worker->loop.clock));
    }
    report_end(&call->report);
    return 200;
}
