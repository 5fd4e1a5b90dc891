/*
 * Connection settings of a location: sizes and timeouts apply from its request on. Timed out connections are reset if
 * reset_timedout_connection is on.
 */
#include "loopback.h"

#include "server/connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

static struct loopback server;

/*
 * The location /own differs from its server in one directive. `outside` and `inside` are the values of the response
 * field outside and inside /own.
 */
static const struct {
    const char *of_server, *of_location;
    const char *field, *outside, *inside;
} heads[] = {
    {"server_tokens: off", "server_tokens: on", "Server", "sluice", "sluice/"},
    {"server_tokens: on", "server_tokens: off", "Server", "sluice/", "sluice"},
    {"keepalive_requests: 9", "keepalive_requests: 1", "Connection", "", "close"},
    {"keepalive_requests: 1", "keepalive_requests: 9", "Connection", "close", ""},
    {"keepalive_timeout: 9s", "keepalive_timeout: 0", "Connection", "", "close"},
    {"keepalive_timeout: 0", "keepalive_timeout: 9s", "Connection", "close", ""},
};

static void set_up(const char *of_server, const char *of_location)
{
    static char text[1024];

    snprintf(text, sizeof text,
             "http:\n  client_header_timeout: 90ms\n  lingering_timeout: 40ms\n  server:\n    listen: 8080\n "
             "   %s\n    location:\n"
             "      /: {return: 200 ok}\n      /own: {return: 200 ok, %s}\n      /cut: {return: 444, %s}\n"
             "      /file: {root: '@/', %s}\n",
             of_server, of_location, of_location, of_location);
    loopback_open(&server, text);
}

/* Waits by poll for bytes or the end of the stream, because recv with MSG_PEEK would clear the error of a reset. */
static void wait_for_bytes(int fd)
{
    struct pollfd expected = {.fd = fd, .events = POLLIN};

    for (int i = 0; i < 2000 && poll(&expected, 1, 0) == 0; i++)
        loopback_turn(&server, 2);
}

/* Reads until the end. Returns 0, or the -errno of the end. */
static ssize_t receive_until_end(int fd)
{
    char bytes[4096];
    ssize_t count = 1;

    while (count > 0) {
        wait_for_bytes(fd);
        count = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    }
    return count < 0 ? -errno : 0;
}

static struct str request_and_keep_open(int fd, const char *path)
{
    static char text[4096];
    char head[128];
    ssize_t count;

    snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    ck_assert_int_gt(send(fd, head, strlen(head), MSG_NOSIGNAL), 0);
    wait_for_bytes(fd);
    count = recv(fd, text, sizeof text, MSG_DONTWAIT);
    ck_assert_int_gt(count, 0);
    return str_of(text, (size_t)count);
}

/* A value that ends with a slash is a prefix. An empty value: the field is absent. */
static bool has(struct str head, const char *field, const char *value)
{
    bool whole = value[0] && value[strlen(value) - 1] != '/';
    char line[128];

    snprintf(line, sizeof line, "\r\n%s: %s%s", field, value, whole ? "\r\n" : "");
    return (str_search(head, str_from(line)) >= 0) == (value[0] != '\0');
}

static void check_head(size_t row, bool own)
{
    struct str head;
    int fd;

    set_up(heads[row].of_server, heads[row].of_location);
    fd = loopback_connect(&server);
    head = request_and_keep_open(fd, own ? "/own" : "/");
    ck_assert_msg(has(head, heads[row].field, own ? heads[row].inside : heads[row].outside), "%s: " STR_FMT,
                  heads[row].of_location, STR_ARG(head));
    close(fd);
    loopback_close(&server);
}

START_TEST(header_fields_follow_the_location)
{
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        check_head(i, false);
        check_head(i, true);
    }
}
END_TEST

static const struct wire_settings *settings_now(void)
{
    return container_of(server.worker.connection_list.next, struct connection, link)->wire.settings;
}

START_TEST(the_wire_follows_the_location)
{
    int fd;

    set_up("sendfile: on", "sendfile: off, output_buffers: 2 4k, lingering_close: off, tcp_nodelay: off");
    fd = loopback_connect(&server);
    (void)request_and_keep_open(fd, "/");
    ck_assert(settings_now()->sendfile);
    ck_assert_uint_eq(settings_now()->block_size, 65536);
    ck_assert_uint_eq(settings_now()->lingering_ms, 40);
    (void)request_and_keep_open(fd, "/own");
    ck_assert(!settings_now()->sendfile);
    ck_assert_uint_eq(settings_now()->block_size, 8192);
    ck_assert_uint_eq(settings_now()->lingering_ms, 0);
    ck_assert(settings_now()->delay);
    (void)request_and_keep_open(fd, "/");
    ck_assert(settings_now()->sendfile);
    close(fd);
    loopback_close(&server);
}
END_TEST

START_TEST(keepalive_timeout_follows_the_location)
{
    int fd;

    set_up("keepalive_timeout: 1h", "keepalive_timeout: 50ms");
    fd = loopback_connect(&server);
    (void)request_and_keep_open(fd, "/own");
    ck_assert_int_eq(receive_until_end(fd), 0);
    close(fd);
    loopback_close(&server);
}
END_TEST

/* A TCP connection, on which a reset differs from an orderly end. */
static int connect_tcp(void)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_storage peer = {.ss_family = AF_INET};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = sizeof here;
    int accepted;

    ck_assert_int_eq(bind(listener, (struct sockaddr *)&here, length), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&here, &length), 0);
    ck_assert_int_eq(connect(client, (struct sockaddr *)&here, length), 0);
    accepted = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    ck_assert_int_ge(accepted, 0);
    close(listener);
    connection_accept(&server.worker, &server.worker.listeners[0].listener, accepted, &peer);
    return client;
}

static const struct {
    const char *expected;
    bool resets; /* if reset_timedout_connection is on */
} ends[] = {
    {"", false},
    {"GET /own HTTP/1.1\r\nHo", true},
    {"GET /own HTTP/1.1\r\nHost: a\r\n\r\n", false},
    {"GET /cut HTTP/1.1\r\nHost: a\r\n\r\n", true},
    {"GET /file HTTP/1.1\r\nHost: a\r\n\r\n", true},
};

/* Makes a file that is larger than the kernel's socket buffers. */
static void make_file(void)
{
    loopback_write(&server, "file", STR(""));
    ck_assert_int_eq(truncate(loopback_path(&server, "file"), 64 << 20), 0);
}

static void check_end(const char *silent, bool on, bool resets)
{
    int fd;

    set_up(on ? "reset_timedout_connection: on" : "keepalive_timeout: 90ms",
           "keepalive_timeout: 90ms, send_timeout: 90ms");
    make_file();
    fd = connect_tcp();
    if (silent[0])
        ck_assert_int_gt(send(fd, silent, strlen(silent), MSG_NOSIGNAL), 0);
    for (int i = 0; i < 1000 && (i < 30 || server.worker.connections); i++)
        loopback_skip_and_turn(&server, 4); /* the client does not read, so the large response stalls */
    shutdown(fd, SHUT_WR);
    ck_assert_msg(receive_until_end(fd) == (on && resets ? -ECONNRESET : 0), "%s, %s", on ? "on" : "off", silent);
    close(fd);
    loopback_close(&server);
}

START_TEST(timed_out_connections_are_reset)
{
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        check_end(ends[i].expected, false, ends[i].resets);
        check_end(ends[i].expected, true, ends[i].resets);
    }
}
END_TEST

/*
 * A client that keeps sending after the end of the connection: returns true if the server still reads after 2.5
 * seconds.
 */
static bool still_reads_after_close(const char *lingering)
{
    const struct clock *clock = &server.worker.loop.clock;
    char text[256];
    uint64_t end;
    bool open = true;
    int fd;

    snprintf(text, sizeof text, "http: {%s, server: {listen: 8080, return: 200 ok}}", lingering);
    loopback_open(&server, text);
    fd = loopback_connect(&server);
    (void)request_and_keep_open(fd, "/");
    end = clock->monotonic_ms + 2500;
    while (open && clock->monotonic_ms < end) {
        loopback_skip_and_turn(&server, 10);
        open = send(fd, "x", 1, MSG_NOSIGNAL) == 1;
    }
    close(fd);
    loopback_close(&server);
    return open;
}

START_TEST(lingering_has_two_limits)
{
    ck_assert(still_reads_after_close("keepalive_timeout: 0, lingering_timeout: 400ms, lingering_time: 1h"));
    ck_assert(!still_reads_after_close("keepalive_timeout: 0, lingering_timeout: 400ms, lingering_time: 200ms"));
    ck_assert(!still_reads_after_close("keepalive_timeout: 0, lingering_timeout: 1h, lingering_time: 400ms"));
    ck_assert(!still_reads_after_close("keepalive_timeout: 0, lingering_close: off"));
}
END_TEST

/* After client_header_timeout the server disconnects a client that has not sent a complete ClientHello. */
static void check_handshake_timeout(bool begun)
{
    static const char hello[] = {0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, (char)0xfc};
    int fd;

    loopback_open(&server, "http: {client_header_timeout: 60ms, keepalive_timeout: 1h, send_timeout: 1h, "
                           "server: {listen: 8443 ssl, ssl_certificate: self-signed}}");
    fd = loopback_connect(&server);
    if (begun)
        ck_assert_int_gt(send(fd, hello, sizeof hello, MSG_NOSIGNAL), 0);
    ck_assert_int_eq(receive_until_end(fd), 0);
    ck_assert_uint_eq(server.worker.connections, 0);
    close(fd);
    loopback_close(&server);
}

START_TEST(handshake_times_out)
{
    check_handshake_timeout(false);
    check_handshake_timeout(true);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        header_fields_follow_the_location, the_wire_follows_the_location, keepalive_timeout_follows_the_location,
        timed_out_connections_are_reset, handshake_times_out, lingering_has_two_limits, NULL,
    };

    return loopback_run("connection", tests);
}
