#include "acme/acme_schedule.h"

#include "../runner.h"
#include "made.h"

#include <errno.h>

#define DAY 86400

static const struct acme_validity ninety_days = {
    .not_before_s = 1000 * DAY, .not_after_s = 1090 * DAY, .covers_names = true};

START_TEST(renewal_is_after_two_thirds_of_the_lifetime)
{
    ck_assert_int_eq(acme_renewal_s(&ninety_days, 0), 1060 * DAY);
    ck_assert_int_ge(acme_renewal_s(&ninety_days, UINT32_MAX), 1064 * DAY);
    ck_assert_int_lt(acme_renewal_s(&ninety_days, UINT32_MAX), 1065 * DAY);
    ck_assert_int_eq(acme_renewal_s(&(struct acme_validity){0, 30, true}, 0), 20);
    ck_assert_int_eq(acme_renewal_s(&(struct acme_validity){50, 30, true}, 7), 50);
    ck_assert_int_lt(acme_renewal_s(&(struct acme_validity){0, 4000000000000, true}, UINT32_MAX), 4000000000000);
}
END_TEST

START_TEST(delays_grow_to_a_limit)
{
    ck_assert_uint_eq(acme_retry_s(300000, 1, 0), 300);
    ck_assert_uint_eq(acme_retry_s(300000, 2, 0), 600);
    ck_assert_uint_eq(acme_retry_s(300000, 4, 0), 2400);
    ck_assert_uint_eq(acme_retry_s(300000, 1, UINT32_MAX), 375);
    ck_assert_uint_eq(acme_retry_s(300000, 30, 0), 12 * 3600);
    ck_assert_uint_eq(acme_retry_s(300000, UINT64_MAX, 0), 12 * 3600);
    ck_assert_uint_eq(acme_retry_s(LIMIT_ACME_RETRY_MS, 3, UINT32_MAX), 15 * 3600);
    ck_assert_uint_eq(acme_retry_s(1, 1, 0), 1);
}
END_TEST

START_TEST(attempt_is_due_at_renewal_or_after_the_delay)
{
    struct acme_attempt attempt = {0};
    struct acme_validity lacks = ninety_days;
    int64_t now = 1010 * DAY, back = now - LIMIT_ACME_SKEW_S - 1;

    lacks.covers_names = false;
    ck_assert_int_eq(acme_due_s(&ninety_days, &attempt, now, 0), 1060 * DAY);
    ck_assert_int_le(acme_due_s(NULL, &attempt, now, 0), now);
    ck_assert_int_le(acme_due_s(&lacks, &attempt, now, 0), now);
    acme_attempt_failed(&attempt, 300000, "x", now, 0);
    ck_assert_int_eq(acme_due_s(NULL, &attempt, now, 0), now + 300);
    ck_assert_int_eq(acme_due_s(&lacks, &attempt, now + 299, 0), now + 300);
    ck_assert_int_eq(acme_due_s(&ninety_days, &attempt, now, 0), 1060 * DAY);
    /* The clock was set back. */
    ck_assert_int_le(acme_due_s(NULL, &attempt, back, 0), back);
    attempt.next_s = now + 1000 * DAY;
    ck_assert_int_le(acme_due_s(NULL, &attempt, now, 0), now);
    /* It was set forward. */
    ck_assert_int_le(acme_due_s(&ninety_days, &attempt, 2000 * DAY, 0), 2000 * DAY);
}
END_TEST

START_TEST(a_certificate_that_arrives_too_old_is_not_requested_at_once)
{
    int64_t now = 1080 * DAY;
    struct acme_attempt attempt = {.tried_s = now};
    struct acme_validity lacks = ninety_days;

    ck_assert_int_eq(acme_due_s(&ninety_days, &attempt, now, 0), now + 90 * DAY / 20);
    attempt.tried_s = now - 90 * DAY / 20;
    ck_assert_int_le(acme_due_s(&ninety_days, &attempt, now, 0), now);
    /* The clock was set back; there was no attempt; names are missing; the window was reached. */
    attempt.tried_s = now + LIMIT_ACME_SKEW_S + 1;
    ck_assert_int_le(acme_due_s(&ninety_days, &attempt, now, 0), now);
    attempt.tried_s = 0;
    ck_assert_int_le(acme_due_s(&ninety_days, &attempt, now, 0), now);
    attempt.tried_s = now;
    lacks.covers_names = false;
    ck_assert_int_le(acme_due_s(&lacks, &attempt, now, 0), now);
    attempt.window = ACME_WINDOW_REACHED;
    ck_assert_int_le(acme_due_s(&ninety_days, &attempt, now, 0), now);
}
END_TEST

START_TEST(a_window_ahead_delays_the_renewal)
{
    int64_t now = 1062 * DAY;
    struct acme_attempt attempt = {.queried_s = now, .window = ACME_WINDOW_AHEAD};

    ck_assert(acme_window_decides(&attempt, now));
    ck_assert_int_eq(acme_due_s(&ninety_days, &attempt, now, 0), 1081 * DAY);
    ck_assert_int_lt(acme_due_s(&ninety_days, &attempt, now, UINT32_MAX), 1090 * DAY);
    ck_assert(acme_window_decides(&attempt, now + LIMIT_ACME_ANSWER_S));
    /* The answer is old, or in the future. */
    ck_assert(!acme_window_decides(&attempt, now + LIMIT_ACME_ANSWER_S + 1));
    ck_assert_int_eq(acme_due_s(&ninety_days, &attempt, now + LIMIT_ACME_ANSWER_S + 1, 0), 1060 * DAY);
    ck_assert(!acme_window_decides(&attempt, now - LIMIT_ACME_SKEW_S - 1));
    attempt.window = ACME_WINDOW_UNKNOWN;
    ck_assert(!acme_window_decides(&attempt, now));
    ck_assert_int_eq(acme_due_s(&ninety_days, &attempt, now, 0), 1060 * DAY);
    /* It does not delay a certificate that lacks names, or that is not valid. */
    attempt.window = ACME_WINDOW_AHEAD;
    ck_assert_int_le(acme_due_s(NULL, &attempt, now, 0), now);
    ck_assert_int_le(acme_due_s(&(struct acme_validity){50, 30, true}, &attempt, now, 0), now);
}
END_TEST

START_TEST(a_window_that_was_reached_makes_a_certificate_due)
{
    int64_t now = 1010 * DAY;
    struct acme_attempt attempt = {.queried_s = now, .window = ACME_WINDOW_REACHED};

    ck_assert_int_eq(acme_due_s(&ninety_days, &attempt, now, 0), now);
    ck_assert_int_eq(acme_window_query_s(&ninety_days, &attempt, now, 0), INT64_MAX);
    acme_attempt_failed(&attempt, 300000, "x", now, 0);
    ck_assert_int_eq(acme_due_s(&ninety_days, &attempt, now, 0), now + 300);
}
END_TEST

START_TEST(the_window_is_queried_repeatedly)
{
    int64_t now = 1010 * DAY, back = now - LIMIT_ACME_SKEW_S - 1;
    struct acme_attempt attempt = {0};
    struct acme_validity lacks = ninety_days;

    lacks.covers_names = false;
    ck_assert_int_eq(acme_window_query_s(&ninety_days, &attempt, now, 0), now);
    acme_attempt_answered(&attempt, ACME_WINDOW_AHEAD, now);
    ck_assert_int_eq(acme_window_query_s(&ninety_days, &attempt, now, 0), now + LIMIT_ACME_QUERY_S);
    ck_assert_int_gt(acme_window_query_s(&ninety_days, &attempt, now, UINT32_MAX), now + LIMIT_ACME_QUERY_S);
    ck_assert_int_lt(acme_window_query_s(&ninety_days, &attempt, now, UINT32_MAX), now + LIMIT_ACME_ANSWER_S);
    ck_assert_int_eq(acme_window_query_s(&ninety_days, &attempt, back, 0), back); /* the clock was set back */
    ck_assert_int_eq(acme_window_query_s(NULL, &attempt, now, 0), INT64_MAX);
    ck_assert_int_eq(acme_window_query_s(&lacks, &attempt, now, 0), INT64_MAX);
    ck_assert_int_eq(acme_window_query_s(&ninety_days, &attempt, 1090 * DAY - LIMIT_ACME_LAST_DAY_S, 0), INT64_MAX);
    ck_assert_int_ne(acme_window_query_s(&ninety_days, &attempt, 1090 * DAY - LIMIT_ACME_LAST_DAY_S - 1, 0), INT64_MAX);
    acme_attempt_failed(&attempt, 300000, "x", now, 0);
    ck_assert_int_eq(acme_window_query_s(&ninety_days, &attempt, now, 0), now + 300);
    ck_assert_int_eq(attempt.window, ACME_WINDOW_AHEAD);
    acme_attempt_answered(&attempt, ACME_WINDOW_UNKNOWN, now + 300);
    ck_assert(attempt.failures == 0 && attempt.tried_s == now && attempt.queried_s == now + 300 && !*attempt.error);
}
END_TEST

/* The clock of the machine that recorded the attempt is ahead of that of this one. */
START_TEST(attempt_of_another_machine_counts)
{
    int64_t now = 1010 * DAY, ahead = now + LIMIT_ACME_SKEW_S;
    struct acme_attempt attempt = {0};

    acme_attempt_answered(&attempt, ACME_WINDOW_AHEAD, ahead);
    ck_assert(acme_window_decides(&attempt, now));
    ck_assert_int_eq(acme_window_query_s(&ninety_days, &attempt, now, 0), ahead + LIMIT_ACME_QUERY_S);
    acme_attempt_failed(&attempt, 300000, "x", ahead, 0);
    ck_assert_int_eq(acme_due_s(NULL, &attempt, now, 0), ahead + 300);
    attempt = (struct acme_attempt){.tried_s = 1080 * DAY + LIMIT_ACME_SKEW_S};
    ck_assert_int_gt(acme_due_s(&ninety_days, &attempt, 1080 * DAY, 0), 1080 * DAY);
}
END_TEST

START_TEST(failures_are_counted_and_cleaned)
{
    struct acme_attempt attempt = {0};
    char longer[2 * LIMIT_ACME_ERROR];

    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    acme_attempt_failed(&attempt, 1000, "one\ntwo\x1b\xff", 100, 0);
    ck_assert_str_eq(attempt.error, "one two  ");
    ck_assert_uint_eq(attempt.failures, 1);
    ck_assert_int_eq(attempt.next_s, 101);
    acme_attempt_failed(&attempt, 1000, longer, 200, 0);
    ck_assert_uint_eq(strlen(attempt.error), LIMIT_ACME_ERROR - 1);
    ck_assert_int_eq(attempt.next_s, 202);
    acme_attempt_failed(&attempt, 1000, "", 300, 0);
    ck_assert_str_eq(attempt.error, "unknown error");
}
END_TEST

START_TEST(an_attempt_survives_a_restart)
{
    struct acme_attempt attempt = {5, 1ll << 40, 3, "a \"cause\" of it", 7, ACME_WINDOW_REACHED}, found;

    folder_make();
    ck_assert_int_eq(acme_attempt_read(path_of("x"), &found), -ENOENT);
    ck_assert_int_eq(acme_attempt_write(path_of("x"), &attempt), 0);
    ck_assert_int_eq(acme_attempt_read(path_of("x"), &found), 0);
    ck_assert(found.tried_s == 5 && found.next_s == 1ll << 40 && found.failures == 3);
    ck_assert(found.queried_s == 7 && found.window == ACME_WINDOW_REACHED);
    ck_assert_str_eq(found.error, attempt.error);
    ck_assert_int_eq(acme_attempt_write(path_of("none/x"), &attempt), -ENOENT);
    folder_remove();
}
END_TEST

START_TEST(malformed_attempts_are_ignored)
{
    static const char *const bad[] = {
        "",
        "tried 1\nnext 2\n",
        "tried 1\nnext 2\nfailures 3\n",
        "tried -1\nnext 2\nfailures 3\nerror x\n",
        "tried 1\nnext x\nfailures 3\nerror x\n",
        "next 2\ntried 1\nfailures 3\nerror x\n",
        "tried 99999999999999999999\nnext 2\nfailures 3\nerror x\n",
        "tried 9223372036854775807\nnext 2\nfailures 3\nerror x\n",
        "tried 18446744073709551615\nnext 2\nfailures 3\nerror x\n",
        "tried 1\nnext 2\nfailures 3\nfault x\n",
    };
    struct acme_attempt found;

    folder_make();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        file_write(path_of("x"), bad[i], 0600);
        ck_assert_msg(acme_attempt_read(path_of("x"), &found) == -EINVAL, "%s", bad[i]);
        ck_assert(found.tried_s == 0 && found.failures == 0);
    }
    file_write(path_of("x"), "tried 1\nnext 2\nfailures 3\nerror", 0600);
    ck_assert_int_eq(acme_attempt_read(path_of("x"), &found), 0);
    ck_assert_str_eq(found.error, "");
    folder_remove();
}
END_TEST

START_TEST(a_record_without_a_valid_answer_is_read)
{
    static const char *const answers[] = {"", "asked 7\n", "asked x\nwindow 1\n", "asked 7\nwindow 3\n",
                                          "window 1\nasked 7\n"};
    struct acme_attempt found;
    char text[128];

    folder_make();
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        snprintf(text, sizeof(text), "tried 1\nnext 2\nfailures 3\nerror x\n%s", answers[i]);
        file_write(path_of("x"), text, 0600);
        ck_assert_int_eq(acme_attempt_read(path_of("x"), &found), 0);
        ck_assert_msg(found.failures == 3 && found.queried_s == 0 && found.window == 0, "%s", answers[i]);
    }
    file_write(path_of("x"), "tried 1\nnext 2\nfailures 0\nerror \nasked 7\nwindow 1\n", 0600);
    ck_assert_int_eq(acme_attempt_read(path_of("x"), &found), 0);
    ck_assert(found.queried_s == 7 && found.window == ACME_WINDOW_AHEAD);
    folder_remove();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {renewal_is_after_two_thirds_of_the_lifetime,
                                         delays_grow_to_a_limit,
                                         attempt_is_due_at_renewal_or_after_the_delay,
                                         a_certificate_that_arrives_too_old_is_not_requested_at_once,
                                         a_window_ahead_delays_the_renewal,
                                         a_window_that_was_reached_makes_a_certificate_due,
                                         the_window_is_queried_repeatedly,
                                         attempt_of_another_machine_counts,
                                         failures_are_counted_and_cleaned,
                                         an_attempt_survives_a_restart,
                                         malformed_attempts_are_ignored,
                                         a_record_without_a_valid_answer_is_read,
                                         NULL};

    return run_tests("acme_schedule", tests);
}
