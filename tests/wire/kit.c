#include "kit.h"

#include "io/backends.h"

#include "../unit/skip.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

const struct transport transports[] = {
    {"plain", 0, "", PATH_PLAIN, PATH_PLAIN_SENDFILE, REASON_PLAIN},
    {"1.3 aes-128", TLS1_3_VERSION, "TLS_AES_128_GCM_SHA256", PATH_USER, PATH_USER, KTLS_NO_MODULE},
    {"1.3 aes-256", TLS1_3_VERSION, "TLS_AES_256_GCM_SHA384", PATH_USER, PATH_USER, KTLS_NO_MODULE},
    {"1.3 chacha", TLS1_3_VERSION, "TLS_CHACHA20_POLY1305_SHA256", PATH_USER, PATH_USER, KTLS_NO_MODULE},
    {"1.2 aes-128", TLS1_2_VERSION, "ECDHE-ECDSA-AES128-GCM-SHA256", PATH_USER, PATH_USER, KTLS_NO_MODULE},
    {"1.2 aes-256", TLS1_2_VERSION, "ECDHE-ECDSA-AES256-GCM-SHA384", PATH_USER, PATH_USER, KTLS_NO_MODULE},
    {"1.2 chacha", TLS1_2_VERSION, "ECDHE-ECDSA-CHACHA20-POLY1305", PATH_USER, PATH_USER, KTLS_NO_MODULE},
    {"1.2 cbc", TLS1_2_VERSION, "ECDHE-ECDSA-AES128-SHA", PATH_OPENSSL, PATH_OPENSSL, REASON_SUITE},
};
const int transport_count = sizeof(transports) / sizeof(transports[0]);

static const struct loop_backend *available[4];

int backend_count(void)
{
    static int count;
    struct loop loop;

    if (count > 0)
        return count;
    for (int i = 0; loop_backends[i]; i++) {
        int error = loop_open_backend(&loop, loop_backends[i], NULL);

        if (error < 0) {
            report_skipped(loop_backends[i]->name, strerror(-error));
            continue;
        }
        loop_close(&loop);
        available[count++] = loop_backends[i];
    }
    return count;
}

static void logged(void *owner, enum log_level level, struct str line)
{
    struct kit *kit = owner;
    size_t length = line.length < sizeof kit->last_log - 1 ? line.length : sizeof kit->last_log - 1;

    memcpy(kit->last_log, line.data, length);
    kit->last_log[length] = '\0';
    kit->log_lines += level <= LOG_INFO;
    if (getenv("KIT_VERBOSE"))
        fprintf(stderr, "%s", kit->last_log);
}

static struct kit *kit_of(struct wire *wire)
{
    return container_of(wire, struct kit, wire);
}

static bool give_one(struct kit *kit, size_t room)
{
    struct chunk *next = &kit->plan[kit->given];
    struct chunk now = *next;

    if (now.kind == CHUNK_BYTES && now.bytes.length > room)
        now.bytes.length = room;
    if (wire_send(&kit->wire, &now) < 0)
        return false;
    chunk_advance(next, chunk_length(&now));
    if (chunk_length(next) == 0)
        kit->given++;
    return true;
}

void kit_pump(struct kit *kit)
{
    size_t room;

    while (kit->given < kit->planned && (room = wire_room(&kit->wire)) > 0) {
        if (!give_one(kit, room))
            return;
    }
    if (kit->given == kit->planned && kit->close_after && chunk_length(&kit->wire.span) == 0)
        wire_close(&kit->wire, WIRE_CLOSE_ORDERLY);
    else
        wire_flush(&kit->wire);
}

static void opened(struct wire *wire)
{
    kit_of(wire)->opened++;
    if (!wire_got_plain_http(wire))
        wire_receive(wire);
}

static size_t received(struct wire *wire, struct str bytes)
{
    struct kit *kit = kit_of(wire);

    if (bytes.length == 0) {
        kit->peer_ended = true;
        return 0;
    }
    if (!kit->consumes)
        return 0;
    if (kit->received_length + bytes.length > sizeof kit->received)
        bytes.length = sizeof kit->received - kit->received_length;
    memcpy(kit->received + kit->received_length, bytes.data, bytes.length);
    kit->received_length += bytes.length;
    if (bytes.length > kit->received_max)
        kit->received_max = bytes.length;
    if (kit->receives_large)
        wire_receive_large(wire);
    else
        wire_receive(wire);
    if (memchr(bytes.data, '\n', bytes.length))
        kit_pump(kit);
    return bytes.length;
}

static void writable(struct wire *wire)
{
    kit_of(wire)->rooms++;
    kit_pump(kit_of(wire));
}

static void ending(struct wire *wire)
{
    kit_of(wire)->ending++;
}

static void closed(struct wire *wire, enum wire_close_reason end)
{
    kit_of(wire)->closed++;
    kit_of(wire)->end = end;
    kit_of(wire)->transfer = wire_transfer_end(wire, NULL);
}

static const struct wire_events events = {
    .opened = opened, .received = received, .writable = writable, .ending = ending, .closed = closed};

static struct tls_context *context_for(struct kit *kit)
{
    static struct str names[] = {{"localhost", 9}};
    static struct tls_certificate certificates[] = {{{"self-signed", 11}, {NULL, 0}}};

    kit->tls.names = names;
    kit->tls.name_count = 1;
    kit->tls.certificates = certificates;
    kit->tls.certificate_count = 1;
    kit->tls.prefer_server_ciphers = true;
    kit->tls.session_tickets = true;
    kit->tls.session_timeout_s = 300;
    kit->tls.ciphers = str_from(kit->transport->version == TLS1_2_VERSION ? kit->transport->cipher : "");
    return NULL;
}

void kit_prepare(struct kit *kit, int backend, const struct transport *transport)
{
    signal(SIGPIPE, SIG_IGN);
    memset(kit, 0, sizeof *kit);
    ck_assert_int_lt(backend, backend_count());
    kit->transport = transport;
    kit->consumes = true;
    kit->log = (struct log){.level = LOG_DEBUG, .sink = logged, .owner = kit};
    ck_assert_int_eq(loop_open_backend(&kit->loop, available[backend], &kit->log), 0);
    for (int version = 0; version < 2; version++) {
        for (int cipher = 0; cipher <= RECORD_CHACHA20_POLY1305; cipher++)
            kit->support.reason[version][cipher] = KTLS_NO_MODULE;
    }
    kit->settings = (struct wire_settings){.sendfile = true, .block_size = 65536, .record_size = 16384};
    kit->shared = (struct wire_shared){.loop = &kit->loop,
                                       .log = &kit->log,
                                       .ktls = &kit->support,
                                       .counters = &kit->counters,
                                       .output_max = 1 << 30};
    kit->tls.ktls_threshold = 65536;
    context_for(kit);
}

static void set_buffer(int fd, int size)
{
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

/* Sets the buffer sizes before connecting, so that the window is small from the start. */
static void connect_pair(int buffer, int *out_server, int *out_client)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    const int on = 1;

    ck_assert_int_eq(setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
    if (buffer)
        set_buffer(listener, buffer);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    *out_client = socket(AF_INET, SOCK_STREAM, 0);
    if (buffer)
        set_buffer(*out_client, buffer);
    ck_assert_int_eq(connect(*out_client, (struct sockaddr *)&address, length), 0);
    *out_server = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    ck_assert_int_ge(*out_server, 0);
    fcntl(*out_client, F_SETFL, O_NONBLOCK);
    close(listener);
}

void kit_open(struct kit *kit, int buffer)
{
    char error[512] = "";
    int server_fd;

    ck_assert_int_eq(wire_shared_init(&kit->shared), 0);
    connect_pair(buffer, &server_fd, &kit->client_fd);
    if (kit->transport->version) {
        kit->context = tls_context_create(&kit->tls, 1, &kit->log, error, sizeof error);
        ck_assert_msg(kit->context, "%s", error);
        kit_client_open(kit);
    } else {
        kit->client_connected = true;
    }
    ck_assert_int_eq(wire_open(&kit->wire, &kit->shared, &events, &kit->settings, server_fd, kit->context), 0);
    ck_assert_uint_eq(kit->opened + kit->closed, 0);
    kit->log_lines = 0;
}

void kit_close(struct kit *kit)
{
    ck_assert_uint_eq(kit->closed, 1);
    ck_assert_uint_eq(kit->loop.in_flight, 0);
    ck_assert_uint_eq(kit->shared.output_bytes, 0);
    kit_client_close(kit);
    tls_context_destroy(kit->context);
    wire_shared_finish(&kit->shared);
    loop_close(&kit->loop);
}

void kit_plan_bytes(struct kit *kit, struct str bytes)
{
    kit->plan[kit->planned++] = (struct chunk){.kind = CHUNK_BYTES, .bytes = bytes};
}

void kit_plan_file(struct kit *kit, int fd, int64_t at, uint64_t length)
{
    struct chunk chunk = {.kind = CHUNK_FILE};

    chunk.file.fd = fd;
    chunk.file.at = at;
    chunk.file.length = length;
    kit->plan[kit->planned++] = chunk;
}

/* Does not wait while the client has bytes to read. */
void kit_turn(struct kit *kit)
{
    struct pollfd client = {.fd = kit->client_fd, .events = POLLIN};
    bool waits = poll(&client, 1, 0) == 0;

    ck_assert_int_ge(loop_run_iteration(&kit->loop, kit->loop.clock.monotonic_ms + waits), 0);
    kit_client_turn(kit);
}

enum { FAR_TOO_LONG_MS = 60 * 1000 };

void kit_until_open(struct kit *kit)
{
    uint64_t limit = kit->loop.clock.monotonic_ms + FAR_TOO_LONG_MS;

    while ((!kit->opened || !kit->client_connected) && !kit->closed) {
        kit_turn(kit);
        ck_assert_uint_lt(kit->loop.clock.monotonic_ms, limit);
    }
}

void kit_run_until_received(struct kit *kit, size_t length)
{
    uint64_t limit = kit->loop.clock.monotonic_ms + FAR_TOO_LONG_MS;

    while (kit->got_length < length && !kit->got_end && !kit->got_close_notify) {
        kit_turn(kit);
        ck_assert_msg(kit->loop.clock.monotonic_ms < limit, "%s: %zu of %zu bytes came", kit->transport->name,
                      kit->got_length, length);
    }
}

void kit_until_closed(struct kit *kit)
{
    uint64_t limit = kit->loop.clock.monotonic_ms + FAR_TOO_LONG_MS;

    while (!kit->closed) {
        kit_turn(kit);
        if ((kit->got_end || kit->got_close_notify) && kit->client_fd >= 0) {
            if (kit->got_close_notify)
                SSL_shutdown(kit->client);
            close(kit->client_fd);
            kit->client_fd = -1;
        }
        ck_assert_uint_lt(kit->loop.clock.monotonic_ms, limit);
    }
    while (kit->loop.in_flight)
        kit_turn(kit);
}

static char pattern[KIT_PATTERN];

/* Before main, so that the processes of all tests share it. */
__attribute__((constructor)) static void make_pattern(void)
{
    uint32_t state = 12345;

    for (size_t i = 0; i < KIT_PATTERN; i++) {
        state = state * 1664525 + 1013904223;
        pattern[i] = (char)(state >> 24);
    }
}

const char *kit_pattern(void)
{
    return pattern;
}

int kit_file(size_t length)
{
    int fd = memfd_create("kit", MFD_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, kit_pattern(), length), (ssize_t)length);
    return fd;
}

uint64_t kit_counted(const struct kit *kit)
{
    uint64_t bytes = 0;

    for (unsigned path = 0; path < PATH_COUNT; path++)
        bytes += kit->counters.bytes[path];
    return bytes;
}
