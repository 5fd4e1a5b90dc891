/*
 * A token bucket with a cost for each event.
 */
#include "http/h2/abuse.h"

#include "base/limits.h"
#include "base/saturate.h"

/* A page load cancels few streams and completes many, so an ordinary client keeps its credit. */
static const uint8_t event_costs[H2_EVENTS] = {
    [H2_EVENT_SETTINGS] = 10,
    [H2_EVENT_PING] = 5,
    [H2_EVENT_PRIORITY] = 1,
    [H2_EVENT_WINDOW_UPDATE] = 1,
    [H2_EVENT_EMPTY_DATA] = 5,
    [H2_EVENT_CONTINUATION] = 5,
    [H2_EVENT_CLIENT_RESET] = 10,
    [H2_EVENT_SERVER_RESET] = 20,
    [H2_EVENT_UNKNOWN] = 2,
    [H2_EVENT_IGNORED] = 2,
};

static void raise_credit(struct h2_credit *credit, uint64_t by)
{
    uint64_t missing = (uint64_t)((int64_t)LIMIT_H2_CREDIT - credit->left);

    credit->left += (int32_t)(by < missing ? by : missing);
}

void h2_credit_init(struct h2_credit *credit, uint64_t now_ms)
{
    *credit = (struct h2_credit){.left = LIMIT_H2_CREDIT, .seen_ms = now_ms};
}

bool h2_credit_charge(struct h2_credit *credit, enum h2_event event, uint64_t now_ms)
{
    uint64_t passed_ms = u64_sub_sat(now_ms, credit->seen_ms);

    if (passed_ms > 1000)
        passed_ms = 1000;
    raise_credit(credit, passed_ms * LIMIT_H2_CREDIT_PER_S / 1000);
    if (passed_ms * LIMIT_H2_CREDIT_PER_S >= 1000)
        credit->seen_ms = now_ms;
    credit->left -= event_costs[event];
    return credit->left > 0;
}

void h2_credit_restore(struct h2_credit *credit, uint32_t amount)
{
    raise_credit(credit, amount);
}
