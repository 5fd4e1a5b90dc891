/*
 * Settings that change while output is queued, because another stream of the connection belongs to a location with
 * other values: the queued bytes arrive complete and in order, and the connection stays open.
 */
#include "kit.h"

#include <check.h>
#include <unistd.h>

enum { BUFFER = 4096, TAIL = 3000, FILE_LENGTH = 1 << 17 };

static struct kit kit;

static const struct wire_settings usual = {.sendfile = true, .block_size = 65536, .record_size = 16384};
static const struct wire_settings without_sendfile = {.block_size = 65536, .record_size = 16384};
static const struct wire_settings short_records = {.sendfile = true, .block_size = 32768, .record_size = 4096};
static const struct wire_settings short_blocks = {.sendfile = true, .block_size = 1024, .record_size = 1024};
static const struct wire_settings growing = {
    .sendfile = true, .block_size = 65536, .record_size = 16384, .small_records = true};

static const struct change {
    const char *name;
    const struct wire_settings *before, *after;
} changes[] = {
    {"sendfile: on to off", &usual, &without_sendfile},
    {"sendfile: off to on", &without_sendfile, &usual},
    {"to short records", &usual, &short_records},
    {"from short records", &short_records, &usual},
    {"to short blocks", &usual, &short_blocks},
    {"from short blocks", &short_blocks, &usual},
    {"to growing records", &usual, &growing},
    {"from growing records", &growing, &short_records},
};
enum { CHANGES = sizeof changes / sizeof changes[0] };

/* The socket does not take all of the first bytes; a response head follows, and the span after it waits. */
enum { FIRST = 16434, SPAN = 50000 };
static const size_t heads[] = {100, 16370};
enum { HEADS = sizeof heads / sizeof heads[0] };

enum moment { BEFORE_SPAN, AFTER_FLUSH, MOMENTS };

/* plain, the record layer, and OpenSSL */
static const int chosen[] = {0, 1, 7};
enum { CHOSEN = sizeof chosen / sizeof chosen[0] };

static size_t given;

static void give_bytes(size_t length)
{
    while (length > 0 && wire_room(&kit.wire) > 0) {
        size_t room = wire_room(&kit.wire);
        struct chunk chunk = {.kind = CHUNK_BYTES};

        chunk.bytes = str_of(kit_pattern() + given, length < room ? length : room);
        ck_assert_int_eq(wire_send(&kit.wire, &chunk), 0);
        given += chunk.bytes.length;
        length -= chunk.bytes.length;
    }
}

static void give_span(int fd, size_t length)
{
    struct chunk chunk = {.kind = CHUNK_FILE};

    chunk.file.fd = fd;
    chunk.file.at = (int64_t)given;
    chunk.file.length = chunk.file.whole = length;
    if (wire_room(&kit.wire) == 0)
        return;
    ck_assert_int_eq(wire_send(&kit.wire, &chunk), 0);
    given += length;
}

static void send_all(int fd, size_t head, enum moment moment, const struct wire_settings *after)
{
    ck_assert_uint_gt(wire_room(&kit.wire), 0);
    give_bytes(FIRST);
    wire_flush(&kit.wire);
    give_bytes(head);
    if (moment == BEFORE_SPAN)
        wire_apply_settings(&kit.wire, after);
    give_span(fd, SPAN);
    wire_flush(&kit.wire);
    if (moment == AFTER_FLUSH)
        wire_apply_settings(&kit.wire, after);
}

static void expect_all(const char *what)
{
    kit_run_until_received(&kit, given);
    ck_assert_msg(kit.got_length == given && !kit.closed, "%s: %zu of %zu bytes", what, kit.got_length, given);
    for (size_t i = 0; i < given; i++)
        ck_assert_msg(kit.got[i] == kit_pattern()[i], "%s: byte %zu of %zu", what, i, given);
}

static void check_change(int backend, int transport, const struct change *change, size_t head,
                         enum moment moment)
{
    int fd = kit_file(FILE_LENGTH);
    char what[128];

    snprintf(what, sizeof what, "%s, %s, head of %zu, moment %d", change->name, transports[transport].name, head,
             (int)moment);
    given = 0;
    kit_prepare(&kit, backend, &transports[transport]);
    kit.settings = *change->before;
    kit_open(&kit, BUFFER);
    kit_until_open(&kit);
    send_all(fd, head, moment, change->after);
    expect_all(what);
    give_bytes(TAIL);
    wire_flush(&kit.wire);
    expect_all(what);
    (void)wire_transfer_end(&kit.wire, NULL);
    wire_close(&kit.wire, WIRE_CLOSE_ABORT);
    kit_until_closed(&kit);
    kit_close(&kit);
    close(fd);
}

/* With each backend, transport and change. */
START_TEST(queued_output_survives_a_change)
{
    int transport = chosen[_i / CHANGES % CHOSEN];

    for (int row = 0; row < HEADS * MOMENTS; row++)
        check_change(_i / CHANGES / CHOSEN, transport, &changes[_i % CHANGES], heads[row % HEADS],
                     (enum moment)(row / HEADS));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("settings");
    TCase *all = tcase_create("all");
    SRunner *runner;
    int failed;

    (void)kit_pattern(); /* made once, not in each process */
    tcase_set_timeout(all, 60);
    tcase_add_loop_test(all, queued_output_survives_a_change, 0, CHANGES * CHOSEN * backend_count());
    suite_add_tcase(suite, all);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
