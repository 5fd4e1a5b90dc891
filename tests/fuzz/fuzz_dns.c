/*
 * DNS answers. The input after the first byte is a message without id and question: its flags, its counts, and its
 * records. The parser of SRV records reads it alone, then a name server on the loopback address answers each query of
 * a resolver with it. `done` runs once, with an error text or with addresses whose time to live is within its limits.
 * Bit 0 of the first byte requests a service.
 */
#include "fuzz.h"

#include "base/limits.h"
#include "io/resolver.h"
#include "io/resolver_srv.h"

#include <errno.h>
#include <netinet/in.h>
#include <unistd.h>

enum { PORT = 81, HEADER = 12, HEAD = 10, MESSAGE = 2048, TIMEOUT_MS = 40 };

static struct loop loop;
static int name_server = -1;
static char servers[32];
static struct str answer_text; /* flags, counts and records */

static struct {
    unsigned calls;
    bool service;
} query;

static void set_up(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);

    HOLDS(loop_open(&loop, "epoll", NULL) == 0);
    name_server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    HOLDS(bind(name_server, (struct sockaddr *)&address, length) == 0);
    HOLDS(getsockname(name_server, (struct sockaddr *)&address, &length) == 0);
    snprintf(servers, sizeof(servers), "127.0.0.1:%u", ntohs(address.sin_port));
}

/* Answers all queries received so far: the head and question of the query, with flags and counts of the input. */
static void answer_queries(void)
{
    unsigned char message[MESSAGE + LIMIT_HOST * 2];
    struct sockaddr_storage from;
    socklen_t length = sizeof(from);
    ssize_t size;

    while ((size = recvfrom(name_server, message, 600, 0, (struct sockaddr *)&from, &length)) > HEADER) {
        size_t question = HEADER + strnlen((char *)message + HEADER, (size_t)size - HEADER) + 5;
        size_t records = answer_text.length - HEAD;

        HOLDS(question <= (size_t)size);
        memcpy(message + 2, answer_text.data, HEAD);
        message[2] |= 0x80; /* a response */
        message[4] = 0;
        message[5] = 1; /* one question */
        memcpy(message + question, answer_text.data + HEAD, records);
        (void)sendto(name_server, message, question + records, 0, (struct sockaddr *)&from, length);
        length = sizeof(from);
    }
}

static void check_address(const struct resolver_address *address)
{
    const struct sockaddr_in *ip4 = (const struct sockaddr_in *)&address->socket;
    const struct sockaddr_in6 *ip6 = (const struct sockaddr_in6 *)&address->socket;
    bool is_ip4 = address->socket.ss_family == AF_INET;

    HOLDS(is_ip4 || address->socket.ss_family == AF_INET6);
    HOLDS(address->length == (is_ip4 ? sizeof(*ip4) : sizeof(*ip6)));
    HOLDS(is_ip4 ? ip4->sin_port != 0 : ip6->sin6_port != 0);
    if (!query.service)
        HOLDS(ntohs(is_ip4 ? ip4->sin_port : ip6->sin6_port) == PORT && address->priority == 0 && address->weight == 0);
}

static void resolved(void *owner, const struct resolver_answer *answer)
{
    HOLDS(owner == &query);
    query.calls++;
    HOLDS(answer->count <= LIMIT_UPSTREAM_ADDRESSES);
    HOLDS((answer->count == 0) == (answer->reason != NULL));
    HOLDS(answer->valid_ms >= LIMIT_RESOLVE_MIN_MS && answer->valid_ms <= LIMIT_RESOLVE_MAX_MS);
    for (size_t i = 0; i < answer->count; i++)
        check_address(&answer->addresses[i]);
}

static void resolve(void)
{
    struct resolver_settings settings = {.servers = str_from(servers), .timeout_ms = TIMEOUT_MS};
    struct resolver *resolver = resolver_create(&loop, &settings);

    HOLDS(resolver);
    query.calls = 0;
    HOLDS(resolver_query_start(resolver, STR("a.test"), PORT, query.service ? STR("http") : STR(""), resolved, &query));
    for (int i = 0; query.calls == 0; i++) {
        HOLDS(i < 10000);
        answer_queries();
        HOLDS(loop_run_iteration(&loop, loop.clock.monotonic_ms + 1) >= 0);
    }
    resolver_stop(resolver);
    while (loop.in_flight > 0)
        HOLDS(loop_run_iteration(&loop, loop.clock.monotonic_ms + 1) >= 0);
    resolver_destroy(resolver);
    HOLDS(query.calls == 1);
    answer_queries(); /* none is left for the next input */
}

static void read_records(const uint8_t *bytes, size_t size)
{
    struct srv_record records[4];
    int count = srv_read(bytes, size, records, 4);

    HOLDS(count == -EBADMSG || (count >= 0 && count <= 4));
    for (int i = 0; i < count; i++) {
        size_t length = strnlen(records[i].target, sizeof(records[i].target));

        HOLDS(length > 0 && length <= LIMIT_HOST && records[i].port != 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (name_server < 0)
        set_up();
    if (size < 1 + HEAD || size > MESSAGE)
        return 0;
    read_records(bytes + 1, size - 1);
    query.service = bytes[0] & 1;
    answer_text = str_of((const char *)bytes + 1, size - 1);
    resolve();
    return 0;
}
