/*
 * Every transport over every backend: the client receives the bytes that the owner sent, over every path and with every
 * size of socket buffers.
 */
#include "kit.h"

#include "base/limits.h"

#include "../unit/runner.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

static struct kit kit;

static const struct transport *pick(int index, int *out_backend)
{
    *out_backend = index / transport_count;
    return &transports[index % transport_count];
}

static void close_wire(void)
{
    wire_close(&kit.wire, WIRE_CLOSE_ORDERLY);
    kit_until_closed(&kit);
    ck_assert_int_eq(kit.end, WIRE_CLOSE_ORDERLY);
    ck_assert_uint_eq(kit_counted(&kit), kit.got_length);
    ck_assert(kit.got_end || kit.got_close_notify);
    if (kit.transport->version)
        ck_assert(kit.got_close_notify);
    kit_close(&kit);
}

static void open_wire(int index, int buffer)
{
    int backend;
    const struct transport *transport = pick(index, &backend);

    kit_prepare(&kit, backend, transport);
    kit_open(&kit, buffer);
}

/* A head and a small file are one record, if the record layer seals; several responses in sequence. */
START_TEST(rule_14_small_response_is_one_record)
{
    int fd = kit_file(1024);
    size_t length = 0;
    uint64_t records;

    open_wire(_i, 0);
    kit_until_open(&kit);
    records = kit.counters.records;
    for (int i = 0; i < 20; i++) {
        kit_plan_bytes(&kit, STR("HEAD"));
        kit_plan_file(&kit, fd, 0, 1024);
        kit_client_send(&kit, "GET\n");
        length += 4 + 1024;
        kit_run_until_received(&kit, length);
        ck_assert_uint_eq(kit.got_length, length);
        ck_assert_mem_eq(kit.got + length - 1028, "HEAD", 4);
        ck_assert_mem_eq(kit.got + length - 1024, kit_pattern(), 1024);
    }
    ck_assert(wire_drained(&kit.wire));
    ck_assert_uint_eq(kit.shared.output_bytes, 0);
    if (kit.transport->file_path == PATH_USER)
        ck_assert_uint_eq(kit.counters.records - records, 20);
    kit.transfer = wire_transfer_end(&kit.wire, NULL);
    ck_assert_int_eq(kit.transfer.path, kit.transport->bytes_path); /* a short file is copied */
    close_wire();
    close(fd);
}
END_TEST

/* Large bodies alternate between bytes and files, with odd lengths; the client reads fast. */
static void exchange_large_bodies(int index, int buffer, size_t read_max, bool sendfile, size_t scale)
{
    const size_t sizes[] = {1, 16384, 65537, 300001 / scale, 1048576 / scale, 16385};
    int fd = kit_file(KIT_PATTERN), backend;
    const struct transport *transport = pick(index, &backend);
    size_t length = 0;

    kit_prepare(&kit, backend, transport);
    kit.settings.sendfile = sendfile;
    kit_open(&kit, buffer);
    kit.read_max = read_max;
    for (size_t i = 0; i < 6; i++) {
        kit_plan_bytes(&kit, str_of(kit_pattern(), sizes[5 - i] % 300000));
        kit_plan_file(&kit, fd, (int64_t)i, sizes[i]);
    }
    kit_client_send(&kit, "GET\n");
    for (size_t i = 0; i < 6; i++) {
        kit_run_until_received(&kit, length + sizes[5 - i] % 300000 + sizes[i]);
        ck_assert_mem_eq(kit.got + length, kit_pattern(), sizes[5 - i] % 300000);
        length += sizes[5 - i] % 300000;
        ck_assert_mem_eq(kit.got + length, kit_pattern() + i, sizes[i]);
        length += sizes[i];
    }
    ck_assert_uint_eq(kit.got_length, length);
    close_wire();
    close(fd);
}

START_TEST(large_responses_arrive_completely)
{
    exchange_large_bodies(_i, 0, 0, true, 1);
}
END_TEST

START_TEST(large_responses_arrive_without_sendfile)
{
    exchange_large_bodies(_i, 0, 0, false, 1);
}
END_TEST

/* With buffers of 4 KiB sends are short, and each waits for room. */
START_TEST(large_responses_arrive_through_a_small_window)
{
    exchange_large_bodies(_i, 4096, 6000, true, 8);
}
END_TEST

/* Each chunk is accounted in its own transfer, also after later chunks. */
START_TEST(transfers_of_two_responses)
{
    int fd = kit_file(200000), backend;
    const struct transport *transport = pick(_i, &backend);
    struct transfer file = {0}, bytes = {0};

    kit_prepare(&kit, backend, transport);
    kit_open(&kit, 0);
    kit_plan_bytes(&kit, STR("HEAD"));
    kit.plan[0].transfer = &file;
    kit_plan_bytes(&kit, STR("other"));
    kit.plan[1].transfer = &bytes;
    kit_plan_file(&kit, fd, 0, 200000);
    kit.plan[2].transfer = &file;
    kit_plan_bytes(&kit, STR("other"));
    kit.plan[3].transfer = &bytes;
    kit_client_send(&kit, "GET\n");
    kit_run_until_received(&kit, 200014);
    ck_assert_uint_eq(wire_transfer_end(&kit.wire, NULL).total, 0);
    kit.transfer = wire_transfer_end(&kit.wire, &bytes);
    ck_assert_str_ne(wire_path_name(kit.transfer.path), wire_path_name(PATH_NONE));
    ck_assert_uint_eq(kit.transfer.total, 10);
    ck_assert_uint_eq(kit.transfer.in_memory, 10);
    ck_assert_uint_eq(kit.transfer.zero_copy, 0);
    ck_assert_uint_eq(bytes.total, 0);
    kit.transfer = wire_transfer_end(&kit.wire, &file);
    ck_assert_str_eq(wire_path_name(kit.transfer.path), wire_path_name(transport->file_path));
    ck_assert_str_eq(wire_reason_name(kit.transfer.reason), wire_reason_name(transport->reason));
    ck_assert_uint_eq(kit.transfer.total, 200004);
    ck_assert_uint_eq(kit.transfer.zero_copy, transport->version ? 0 : 200000);
    close_wire();
    close(fd);
}
END_TEST

/* The path and the reason that the access log will contain. */
START_TEST(path_and_reason_of_a_large_file)
{
    int fd = kit_file(200000), backend;
    const struct transport *transport = pick(_i, &backend);

    kit_prepare(&kit, backend, transport);
    kit_open(&kit, 0);
    kit_plan_bytes(&kit, STR("HEAD"));
    kit_plan_file(&kit, fd, 0, 200000);
    kit_client_send(&kit, "GET\n");
    kit_run_until_received(&kit, 200004);
    kit.transfer = wire_transfer_end(&kit.wire, NULL);
    ck_assert_str_eq(wire_path_name(kit.transfer.path), wire_path_name(transport->file_path));
    ck_assert_str_eq(wire_reason_name(kit.transfer.reason), wire_reason_name(transport->reason));
    ck_assert_uint_eq(kit.transfer.zero_copy, transport->version ? 0 : 200000);
    ck_assert_uint_eq(kit.counters.transfers[transport->file_path], 1);
    kit_plan_bytes(&kit, str_of(kit_pattern(), 70000));
    kit_client_send(&kit, "GET\n");
    kit_run_until_received(&kit, 270004);
    kit.transfer = wire_transfer_end(&kit.wire, NULL);
    ck_assert_int_eq(kit.transfer.path, transport->bytes_path);
    close_wire();
    close(fd);
}
END_TEST

/* The wire offers bytes that the owner leaves again, once and unchanged. */
START_TEST(unconsumed_bytes_are_offered_again)
{
    char text[30001];

    open_wire(_i, 0);
    kit_until_open(&kit);
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    kit.consumes = false;
    kit_client_send(&kit, text);
    for (int i = 0; i < 20; i++)
        kit_turn(&kit);
    ck_assert_uint_eq(kit.received_length, 0);
    wire_watch(&kit.wire);
    kit.consumes = true;
    wire_receive(&kit.wire);
    for (int i = 0; i < 200 && kit.received_length < 30000; i++)
        kit_turn(&kit);
    ck_assert_uint_eq(kit.received_length, 30000);
    close_wire();
}
END_TEST

/* A plain wire receives a large body in larger pieces, if the owner requests it; TLS delivers record by record. */
START_TEST(large_bodies_are_received_in_larger_pieces)
{
    bool plain = transports[_i % transport_count].version == 0;
    char text[60001];

    open_wire(_i, 0);
    kit_until_open(&kit);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i % 23);
    text[sizeof text - 1] = '\0';
    for (int round = 0; round < 2; round++) {
        kit.receives_large = round == 1;
        kit.received_length = kit.received_max = 0;
        kit_client_send(&kit, text);
        for (int i = 0; i < 500 && kit.received_length < 60000; i++)
            kit_turn(&kit);
        ck_assert_uint_eq(kit.received_length, 60000);
        ck_assert_mem_eq(kit.received, text, 60000);
        if (plain && kit.receives_large)
            ck_assert_uint_gt(kit.received_max, LIMIT_RECEIVE_BYTES);
        else
            ck_assert_uint_le(kit.received_max, LIMIT_RECEIVE_BYTES);
    }
    close_wire();
}
END_TEST

static bool sent_at_once(void)
{
    int at_once = 0;
    socklen_t length = sizeof at_once;

    ck_assert_int_eq(getsockopt(kit.wire.fd, IPPROTO_TCP, TCP_NODELAY, &at_once, &length), 0);
    return at_once != 0;
}

/* tcp_nodelay, which a location can change. */
START_TEST(tcp_nodelay_follows_the_settings)
{
    struct wire_settings delaying;

    open_wire(_i, 0);
    kit_until_open(&kit);
    delaying = kit.settings;
    delaying.delay = true;
    wire_apply_settings(&kit.wire, &delaying);
    ck_assert(!sent_at_once());
    wire_apply_settings(&kit.wire, &kit.settings);
    ck_assert(sent_at_once());
    close_wire();
}
END_TEST

static void add_tests(TCase *tcase)
{
    int count = transport_count * backend_count();

    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, rule_14_small_response_is_one_record, 0, count);
    tcase_add_loop_test(tcase, tcp_nodelay_follows_the_settings, 0, count);
    tcase_add_loop_test(tcase, large_responses_arrive_completely, 0, count);
    tcase_add_loop_test(tcase, large_responses_arrive_without_sendfile, 0, count);
    tcase_add_loop_test(tcase, large_responses_arrive_through_a_small_window, 0, count);
    tcase_add_loop_test(tcase, path_and_reason_of_a_large_file, 0, count);
    tcase_add_loop_test(tcase, transfers_of_two_responses, 0, count);
    tcase_add_loop_test(tcase, large_bodies_are_received_in_larger_pieces, 0, count);
    tcase_add_loop_test(tcase, unconsumed_bytes_are_offered_again, 0, count);
}

int main(void)
{
    return run_suite("transports", add_tests);
}
