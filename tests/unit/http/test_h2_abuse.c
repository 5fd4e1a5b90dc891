#include "http/h2/abuse.h"

#include "base/limits.h"
#include "suite.h"

/* The credit that each kind of event costs. */
static const struct {
    enum h2_event event;
    int price;
} prices[] = {
    {H2_EVENT_SETTINGS, 10},    {H2_EVENT_PING, 5},         {H2_EVENT_PRIORITY, 1},
    {H2_EVENT_WINDOW_UPDATE, 1}, {H2_EVENT_EMPTY_DATA, 5},   {H2_EVENT_CONTINUATION, 5},
    {H2_EVENT_CLIENT_RESET, 10}, {H2_EVENT_SERVER_RESET, 20}, {H2_EVENT_UNKNOWN, 2},
    {H2_EVENT_IGNORED, 2},
};

START_TEST(events_use_up_credit)
{
    struct h2_credit credit;
    int events = 1;

    ck_assert_uint_eq(COUNT(prices), H2_EVENTS);
    h2_credit_init(&credit, 5000);
    while (h2_credit_charge(&credit, prices[_i].event, 5000))
        events++;
    ck_assert_int_eq(events, LIMIT_H2_CREDIT / prices[_i].price);
    ck_assert(!h2_credit_charge(&credit, prices[_i].event, 5000));
}
END_TEST

static struct h2_credit credit_without_rest(uint64_t now_ms)
{
    struct h2_credit credit;

    h2_credit_init(&credit, now_ms);
    credit.left = 1;
    return credit;
}

START_TEST(time_gives_back)
{
    struct h2_credit credit = credit_without_rest(5000);

    ck_assert(h2_credit_charge(&credit, H2_EVENT_PRIORITY, 5500));
    ck_assert_int_eq(credit.left, LIMIT_H2_CREDIT_PER_S / 2);
    ck_assert(h2_credit_charge(&credit, H2_EVENT_PRIORITY, 5500));
    ck_assert_int_eq(credit.left, LIMIT_H2_CREDIT_PER_S / 2 - 1);
}
END_TEST

/* Times of a millisecond between frequent events also restore credit. */
START_TEST(short_times_add_up)
{
    struct h2_credit credit = credit_without_rest(0);

    credit.left = 1000;
    for (uint64_t now_ms = 1; now_ms <= 1000; now_ms++)
        ck_assert(h2_credit_charge(&credit, H2_EVENT_PRIORITY, now_ms));
    ck_assert_int_eq(credit.left, LIMIT_H2_CREDIT_PER_S);
}
END_TEST

START_TEST(never_more_than_the_burst)
{
    struct h2_credit credit;

    h2_credit_init(&credit, 0);
    ck_assert(h2_credit_charge(&credit, H2_EVENT_PRIORITY, UINT64_MAX));
    ck_assert_int_eq(credit.left, LIMIT_H2_CREDIT - 1);
    h2_credit_restore(&credit, UINT32_MAX);
    ck_assert_int_eq(credit.left, LIMIT_H2_CREDIT);
    h2_credit_restore(&credit, 0);
    ck_assert_int_eq(credit.left, LIMIT_H2_CREDIT);
}
END_TEST

START_TEST(responses_give_back)
{
    struct h2_credit credit = credit_without_rest(0);

    h2_credit_restore(&credit, LIMIT_H2_CREDIT_PER_RESPONSE);
    ck_assert(h2_credit_charge(&credit, H2_EVENT_CLIENT_RESET, 0)); /* the reset costs the credit of one response */
    ck_assert(!h2_credit_charge(&credit, H2_EVENT_CLIENT_RESET, 0));
    ck_assert_int_eq(credit.left, -9);
    h2_credit_restore(&credit, 9 + 1);
    ck_assert_int_eq(credit.left, 1);
}
END_TEST

START_TEST(clock_goes_backwards)
{
    struct h2_credit credit = credit_without_rest(5000);

    credit.left = 10;
    ck_assert(h2_credit_charge(&credit, H2_EVENT_PRIORITY, 4000));
    ck_assert(h2_credit_charge(&credit, H2_EVENT_PRIORITY, 0));
    ck_assert_int_eq(credit.left, 8);
    ck_assert(h2_credit_charge(&credit, H2_EVENT_PRIORITY, 5000)); /* a period of time restores credit only once */
    ck_assert_int_eq(credit.left, 7);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {time_gives_back,     short_times_add_up,  never_more_than_the_burst,
                                  responses_give_back, clock_goes_backwards};
    const struct suite_loop loops[] = {{events_use_up_credit, COUNT(prices)}};

    return suite_run_loops("h2_abuse", tests, COUNT(tests), loops, COUNT(loops));
}
