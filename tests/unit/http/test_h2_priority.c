#include "http/h2/priority.h"

#include "suite.h"

static const struct {
    const char *value;
    uint8_t urgency;
    bool incremental;
} values[] = {
    {"", 3, false},
    {"u=0", 0, false},
    {"u=7", 7, false},
    {"i", 3, true},
    {"i=?1", 3, true},
    {"i, i=?0", 3, false},
    {"u=5, i", 5, true},
    {"u=5,i", 5, true},
    {"  i ,\tu=1 ", 1, true},
    {"u=1, u=6", 6, false}, /* RFC 8941 3.2: the last value */
    {"u=2;a=1, i;b", 2, true},
    {"x=1, u=4, y", 4, false},
    /* Values out of range or of another type (RFC 9218 4). */
    {"u=8", 3, false},
    {"u=-1", 3, false},
    {"u=10", 3, false},
    {"u=1.0", 3, false},
    {"u=\"1\"", 3, false},
    {"u", 3, false},
    {"u=", 3, false},
    {"U=1, I", 3, false},
    {"i=1", 3, false},
    {"i=?2", 3, false},
    {"u = 1", 3, false},
    {",,,", 3, false},
    {";u=1", 3, false},
};

START_TEST(priority_field_is_parsed_or_ignored)
{
    struct h2_priority priority = {.urgency = H2_URGENCY_DEFAULT};

    h2_priority_parse(&priority, str_from(values[_i].value));
    ck_assert_msg(priority.urgency == values[_i].urgency && priority.incremental == values[_i].incremental,
                  "%s: u=%u, i=%d", values[_i].value, priority.urgency, priority.incremental);
}
END_TEST

START_TEST(absent_members_keep_their_values)
{
    struct h2_priority priority = {.urgency = 1, .incremental = true};

    h2_priority_parse(&priority, (struct str){NULL, 0});
    h2_priority_parse(&priority, STR("u=9, i=?3"));
    ck_assert_uint_eq(priority.urgency, 1);
    ck_assert(priority.incremental);
    h2_priority_parse(&priority, STR("u=2"));
    ck_assert_uint_eq(priority.urgency, 2);
    ck_assert(priority.incremental);
}
END_TEST

static struct h2_schedule schedule;
static struct h2_schedule_entry turns[8];

/* Adds one ready turn for each priority. */
static void make_ready(const struct h2_priority *priorities, size_t count)
{
    h2_schedule_init(&schedule);
    for (size_t i = 0; i < count; i++) {
        h2_schedule_entry_init(&turns[i], priorities[i]);
        h2_schedule_add(&schedule, &turns[i]);
    }
}

/* Checks the next turns; each digit of `order` is an index in `turns`. */
static void expect_order(const char *order)
{
    for (size_t i = 0; order[i]; i++) {
        const struct h2_schedule_entry *turn = h2_schedule_next(&schedule);

        ck_assert_ptr_nonnull(turn);
        ck_assert_msg(turn == &turns[order[i] - '0'], "%s: number %d at %d", order, (int)(turn - turns),
                      (int)i);
    }
}

START_TEST(more_urgent_streams_are_sent_first)
{
    make_ready((struct h2_priority[]){{3, false}, {7, true}, {0, false}, {1, true}}, 4);
    expect_order("222");
    h2_schedule_remove(&schedule, &turns[2]);
    expect_order("333");
    h2_schedule_remove(&schedule, &turns[3]);
    expect_order("00");
    h2_schedule_remove(&schedule, &turns[0]);
    expect_order("11");
    h2_schedule_remove(&schedule, &turns[1]);
    ck_assert_ptr_null(h2_schedule_next(&schedule));
    ck_assert_uint_eq(schedule.ready, 0);
}
END_TEST

START_TEST(ready_streams_are_counted)
{
    make_ready((struct h2_priority[]){{3, false}, {3, true}, {0, false}}, 3);
    ck_assert_uint_eq(schedule.count, 3);
    h2_schedule_add(&schedule, &turns[0]); /* already ready */
    expect_order("22");
    h2_schedule_change(&schedule, &turns[0], (struct h2_priority){7, true});
    ck_assert_uint_eq(schedule.count, 3);
    h2_schedule_remove(&schedule, &turns[0]);
    h2_schedule_remove(&schedule, &turns[0]); /* not ready */
    h2_schedule_change(&schedule, &turns[0], (struct h2_priority){3, true});
    ck_assert_uint_eq(schedule.count, 2);
}
END_TEST

START_TEST(streams_of_one_urgency_are_sent_in_order)
{
    make_ready((struct h2_priority[]){{3, false}, {3, false}, {3, false}}, 3);
    expect_order("0000");
    h2_schedule_remove(&schedule, &turns[0]);
    expect_order("11");
    h2_schedule_add(&schedule, &turns[0]); /* after the others */
    h2_schedule_add(&schedule, &turns[1]); /* already ready: keeps its place */
    expect_order("11");
    h2_schedule_remove(&schedule, &turns[1]);
    expect_order("22");
}
END_TEST

START_TEST(incremental_streams_take_turns)
{
    make_ready((struct h2_priority[]){{3, true}, {3, true}, {3, true}}, 3);
    expect_order("012012");
    h2_schedule_remove(&schedule, &turns[1]);
    expect_order("0202");
}
END_TEST

START_TEST(both_kinds_alternate)
{
    make_ready((struct h2_priority[]){{3, false}, {3, false}, {3, true}, {3, true}}, 4);
    expect_order("02030203");
}
END_TEST

/* The least urgent stream sends one of H2_SHARE frames. */
START_TEST(least_urgent_stream_sends_a_share_of_frames)
{
    unsigned least = 0;

    make_ready((struct h2_priority[]){{0, false}, {0, true}, {5, false}, {7, false}}, 4);
    for (unsigned i = 0; i < 10 * H2_SHARE; i++) {
        const struct h2_schedule_entry *turn = h2_schedule_next(&schedule);

        ck_assert_ptr_ne(turn, &turns[2]);
        least += turn == &turns[3];
    }
    ck_assert_uint_eq(least, 10);
}
END_TEST

START_TEST(change_moves_ready_streams)
{
    make_ready((struct h2_priority[]){{3, false}, {3, false}}, 2);
    h2_schedule_change(&schedule, &turns[1], (struct h2_priority){2, false});
    expect_order("11");
    h2_schedule_change(&schedule, &turns[1], (struct h2_priority){3, true});
    expect_order("0101");
    h2_schedule_remove(&schedule, &turns[0]);
    h2_schedule_change(&schedule, &turns[0], (struct h2_priority){0, false}); /* not ready, and remains so */
    expect_order("11");
    h2_schedule_add(&schedule, &turns[0]);
    expect_order("00");
    h2_schedule_remove(&schedule, &turns[0]);
    h2_schedule_remove(&schedule, &turns[0]);
    expect_order("11");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {absent_members_keep_their_values, more_urgent_streams_are_sent_first,
                                  ready_streams_are_counted, streams_of_one_urgency_are_sent_in_order,
                                  incremental_streams_take_turns,
                                  both_kinds_alternate, least_urgent_stream_sends_a_share_of_frames,
                                  change_moves_ready_streams};
    const struct suite_loop loops[] = {{priority_field_is_parsed_or_ignored, COUNT(values)}};

    return suite_run_loops("h2_priority", tests, COUNT(tests), loops, COUNT(loops));
}
