/*
 * Name resolution with a scripted name server, on both backends of the kernel; and the parser of SRV records, byte by
 * byte.
 */
#include "fixture.h"

#include "io/resolver.h"
#include "io/resolver_srv.h"

#include "../runner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct loop loop;
static struct resolver *resolver;
static int server_fd;
static pthread_t server;
static char servers[32];

static struct {
    int calls;
    size_t count;
    uint64_t valid_ms;
    char first[INET6_ADDRSTRLEN];
    unsigned port;
    char reason[64];
} came;

/*
 * Responds to queries for A with 10.0.0.1 to 10.0.0.3 and a TTL of 60 s. The first letter of a name can change this: n,
 * NXDOMAIN; s, no response.
 */
static void *run_name_server(void *unused)
{
    static const unsigned char record[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 0, 0, 0};
    unsigned char message[512];
    struct sockaddr_storage from;
    socklen_t length = sizeof(from);
    ssize_t size;

    while ((size = recvfrom(server_fd, message, 300, 0, (struct sockaddr *)&from, &length)) > 16) {
        bool wants_a = message[size - 3] == 1;
        char kind = (char)message[13];

        if (kind == 's')
            continue;
        message[2] = 0x85;
        message[3] = kind == 'n' ? 0x83 : 0x80;
        message[11] = 0; /* no additional records: the response repeats only the question */
        if (kind != 'n' && wants_a) {
            message[7] = 3;
            for (unsigned char i = 1; i <= 3; i++, size += (ssize_t)sizeof(record)) {
                memcpy(message + size, record, sizeof(record));
                message[(size_t)size + sizeof(record) - 1] = i;
            }
        }
        (void)sendto(server_fd, message, (size_t)size, 0, (struct sockaddr *)&from, length);
        length = sizeof(from);
    }
    return NULL;
}

static void answered(void *owner, const struct resolver_answer *answer)
{
    ck_assert_ptr_eq(owner, &came);
    came.calls++;
    came.count = answer->count;
    came.valid_ms = answer->valid_ms;
    snprintf(came.reason, sizeof(came.reason), "%s", answer->reason ? answer->reason : "");
    if (answer->count > 0) {
        const struct sockaddr_in *address = (const struct sockaddr_in *)&answer->addresses[0].socket;

        inet_ntop(AF_INET, &address->sin_addr, came.first, sizeof(came.first));
        came.port = ntohs(address->sin_port);
    }
}

static bool open_resolver(int index, uint64_t timeout_ms)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct resolver_settings settings = {.timeout_ms = timeout_ms, .no_ipv6 = true};
    socklen_t length = sizeof(address);

    memset(&came, 0, sizeof(came));
    if (!open_loop(&loop, index))
        return false;
    server_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(server_fd, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(getsockname(server_fd, (struct sockaddr *)&address, &length), 0);
    ck_assert_int_eq(pthread_create(&server, NULL, run_name_server, NULL), 0);
    snprintf(servers, sizeof(servers), "127.0.0.1:%u", ntohs(address.sin_port));
    settings.servers = str_from(servers);
    resolver = resolver_create(&loop, &settings);
    ck_assert_ptr_nonnull(resolver);
    return true;
}

static void close_resolver(void)
{
    resolver_stop(resolver);
    for (int i = 0; i < 100 && loop.in_flight > 0; i++)
        ck_assert_int_ge(loop_run_iteration(&loop, loop.clock.monotonic_ms + 10), 0);
    ck_assert_uint_eq(loop.in_flight, 0);
    resolver_destroy(resolver);
    loop_close(&loop);
    shutdown(server_fd, SHUT_RDWR);
    pthread_join(server, NULL);
    close(server_fd);
}

static void wait_for(int calls)
{
    uint64_t limit = loop.clock.monotonic_ms + 20000;

    while (came.calls < calls && loop.clock.monotonic_ms < limit)
        ck_assert_int_ge(loop_run_iteration(&loop, limit), 0);
    ck_assert_int_eq(came.calls, calls);
}

static struct resolver_query *start_query(const char *name)
{
    struct resolver_query *query = resolver_query_start(resolver, str_from(name), 81, (struct str){0}, answered, &came);

    ck_assert_ptr_nonnull(query);
    ck_assert_int_eq(came.calls, 0);
    return query;
}

START_TEST(addresses_have_a_ttl)
{
    if (!open_resolver(_i, 5000))
        return;
    start_query("a.test");
    wait_for(1);
    ck_assert_uint_eq(came.count, 3);
    ck_assert_uint_eq(came.valid_ms, 60000);
    ck_assert_str_eq(came.first, "10.0.0.1");
    ck_assert_uint_eq(came.port, 81);
    ck_assert_str_eq(came.reason, "");
    came.calls = 0;
    start_query("b.test"); /* with a new channel */
    start_query("c.test");
    wait_for(2);
    close_resolver();
}
END_TEST

START_TEST(nonexistent_name_is_reported)
{
    if (!open_resolver(_i, 5000))
        return;
    start_query("nobody.test");
    wait_for(1);
    ck_assert_uint_eq(came.count, 0);
    ck_assert_str_eq(came.reason, "Domain name not found");
    close_resolver();
}
END_TEST

/* The timeout applies to the whole query, and a later query is not delayed by an earlier one. */
START_TEST(query_times_out)
{
    if (!open_resolver(_i, 300))
        return;
    start_query("silent.test");
    wait_for(1);
    ck_assert_uint_eq(came.count, 0);
    ck_assert_str_ne(came.reason, "");
    came.calls = 0;
    start_query("a.test");
    wait_for(1);
    ck_assert_uint_eq(came.count, 3);
    close_resolver();
}
END_TEST

START_TEST(cancelled_query_makes_no_callback)
{
    if (!open_resolver(_i, 5000))
        return;
    resolver_query_cancel(start_query("a.test"));
    resolver_query_cancel(NULL);
    start_query("b.test");
    wait_for(1);
    close_resolver();
    ck_assert_int_eq(came.calls, 1);
}
END_TEST

START_TEST(close_ends_open_queries_without_callbacks)
{
    if (!open_resolver(_i, 5000))
        return;
    start_query("silent.test");
    turn_some(&loop, 3);
    start_query("a.test");
    close_resolver();
    ck_assert_int_eq(came.calls, 0);
}
END_TEST

/* _http._tcp.a: two records; the target of the second is the root, so the service is not available there (RFC 2782). */
static const unsigned char srv_answer[] =
    "\0\0\x81\x80\0\1\0\2\0\0\0\0\5_http\4_tcp\1a\0\0\x21\0\1"
    "\xc0\x0c\0\x21\0\1\0\0\1\x2c\0\x0a\0\x0a\0\5\x1f\x90\1b\xc0\x17"
    "\xc0\x0c\0\x21\0\1\0\0\1\x2c\0\7\0\0\0\0\0\1\0";

START_TEST(srv_records_are_parsed)
{
    unsigned char answer[sizeof(srv_answer)];
    struct srv_record records[4];
    size_t length = sizeof(srv_answer) - 1;

    memcpy(answer, srv_answer, sizeof(answer));
    ck_assert_int_eq(srv_read(answer, length, records, 4), 1);
    ck_assert_str_eq(records[0].target, "b.a");
    ck_assert_uint_eq(records[0].priority, 10);
    ck_assert_uint_eq(records[0].weight, 5);
    ck_assert_uint_eq(records[0].port, 8080);
    ck_assert_uint_eq(records[0].ttl_s, 300);
    ck_assert_int_eq(srv_read(answer, length, records, 0), 0);
    for (size_t prefix = 0; prefix < length; prefix++)
        ck_assert_int_eq(srv_read(answer, prefix, records, 4), -EBADMSG);
    for (size_t at = 0; at < length; at++) { /* no value of a byte causes a read past the end */
        unsigned char *exact = malloc(length);

        memcpy(exact, answer, length);
        exact[at] ^= 0xff;
        ck_assert_int_le(srv_read(exact, length, records, 4), 2);
        free(exact);
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, addresses_have_a_ttl, 0, kernel_backend_count());
    tcase_add_loop_test(tcase, nonexistent_name_is_reported, 0, kernel_backend_count());
    tcase_add_loop_test(tcase, query_times_out, 0, kernel_backend_count());
    tcase_add_loop_test(tcase, cancelled_query_makes_no_callback, 0, kernel_backend_count());
    tcase_add_loop_test(tcase, close_ends_open_queries_without_callbacks, 0, kernel_backend_count());
    tcase_add_test(tcase, srv_records_are_parsed);
}

int main(void)
{
    return run_suite("resolver", add_tests);
}
