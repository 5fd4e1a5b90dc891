/*
 * A small HTTP client: connects to the first address that accepts, sends the request, reads the response by
 * http/h1_reply.h.
 */
#include "top/top_fetch.h"

#include "base/limits.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int top_server_init(struct top_server *server, const struct top_url *url, char out_fault[LIMIT_TOP_FAULT])
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    int error = getaddrinfo(url->host, url->port, &hints, &server->addresses);

    if (error != 0) {
        snprintf(out_fault, LIMIT_TOP_FAULT, "the host of %.128s has no address: %s", url->text, gai_strerror(error));
        return -EHOSTUNREACH;
    }
    server->url = *url;
    return 0;
}

void top_server_finish(struct top_server *server)
{
    freeaddrinfo(server->addresses);
    server->addresses = NULL;
}

static void close_socket(struct top_fetch *fetch)
{
    if (fetch->fd >= 0)
        close(fetch->fd);
    fetch->fd = -1;
}

/* Closes the connection and states the cause. Returns `error`. */
static int fail_fetch(struct top_fetch *fetch, int error, const char *format, ...) PRINTF_LIKE(3, 4);

static int fail_fetch(struct top_fetch *fetch, int error, const char *format, ...)
{
    va_list args;

    close_socket(fetch);
    va_start(args, format);
    vsnprintf(fetch->fault, sizeof(fetch->fault), format, args);
    va_end(args);
    return error;
}

static int fail_as(struct top_fetch *fetch, const char *doing, int error)
{
    return fail_fetch(fetch, error, "cannot %s %.128s: %s", doing, fetch->server->url.authority, strerror(-error));
}

/* Starts a connection to the current address. Returns 0 or -errno. */
static int connect_start(struct top_fetch *fetch)
{
    const struct addrinfo *address = fetch->address;

    close_socket(fetch);
    fetch->events = POLLOUT;
    fetch->fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address->ai_protocol);
    if (fetch->fd < 0)
        return -errno;
    return connect(fetch->fd, address->ai_addr, address->ai_addrlen) == 0 || errno == EINPROGRESS ? 0 : -errno;
}

/* Tries the current address and those after it. Returns 0, or the last error. */
static int connect_any(struct top_fetch *fetch, int error)
{
    for (; fetch->address; fetch->address = fetch->address->ai_next) {
        error = connect_start(fetch);
        if (error == 0)
            return 0;
    }
    return fail_as(fetch, "connect to", error);
}

int top_fetch_start(struct top_fetch *fetch, const struct top_server *server, uint64_t now_us)
{
    const struct h1_reply_settings settings = {.head_max = LIMIT_TOP_HEAD};
    int error;

    memset(fetch, 0, sizeof(*fetch));
    fetch->fd = -1;
    fetch->server = server;
    fetch->address = server->addresses;
    fetch->deadline_us = now_us + LIMIT_TOP_FETCH_MS * 1000ull;
    buffer_init(&fetch->page, LIMIT_TOP_PAGE);
    arena_init(&fetch->arena, NULL, LIMIT_TOP_MEMORY);
    h1_reply_init(&fetch->reply, &settings, &fetch->arena, &fetch->trailers);
    error = buffer_printf(&fetch->request,
                          "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: application/json\r\nConnection: close\r\n\r\n",
                          server->url.target, server->url.authority);
    return error < 0 ? fail_as(fetch, "request the page of", error) : connect_any(fetch, -EADDRNOTAVAIL);
}

static int connect_finish(struct top_fetch *fetch)
{
    int error = 0;
    socklen_t length = sizeof(error);

    if (getsockopt(fetch->fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
        error = errno;
    if (error != 0) {
        fetch->address = fetch->address->ai_next;
        return connect_any(fetch, -error);
    }
    fetch->connected = true;
    return 0;
}

static int send_request(struct top_fetch *fetch)
{
    ssize_t sent = send(fetch->fd, fetch->request.data, fetch->request.length, MSG_NOSIGNAL);

    if (sent < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : fail_as(fetch, "send to", -errno);
    buffer_consume(&fetch->request, (size_t)sent);
    if (fetch->request.length == 0)
        fetch->events = POLLIN;
    return 0;
}

static int check_head(struct top_fetch *fetch)
{
    struct str type = headers_value(&fetch->reply.headers, STR("Content-Type"));

    if (fetch->reply.status != 200)
        return fail_fetch(fetch, -EPROTO, "%.256s: the server answered with status %d", fetch->server->url.text,
                          fetch->reply.status);
    if (!str_equal_nocase(str_trim(str_cut(&type, ';')), STR("application/json")))
        return fail_fetch(fetch, -EPROTO,
                          "%.256s is not a status page in JSON: its location needs \"status: on\" or \"status: json\"",
                          fetch->server->url.text);
    return 0;
}

/* Applies one item of the response. Returns 1: complete; 0: more bytes are needed or `step` is only a part; -errno. */
static int apply_step(struct top_fetch *fetch, enum h1_reply_step step, struct str part)
{
    switch (step) {
    case REPLY_MORE:
    case REPLY_INTERIM:
        return 0;
    case REPLY_HEAD:
        return check_head(fetch);
    case REPLY_PART:
        if (buffer_append(&fetch->page, part) < 0)
            return fail_fetch(fetch, -E2BIG, "the page of %.128s is longer than %d bytes", fetch->server->url.authority,
                              LIMIT_TOP_PAGE);
        return 0;
    case REPLY_WHOLE:
        close_socket(fetch);
        return 1;
    case REPLY_BAD:
        return fail_fetch(fetch, -EPROTO, "%.128s sent an invalid response: %s", fetch->server->url.authority,
                          fetch->reply.fault);
    case REPLY_NO_MEMORY:
        break;
    }
    return fail_as(fetch, "read the response of", -ENOMEM);
}

/* Parses `in` and applies all items that it completes. */
static int parse_bytes(struct top_fetch *fetch, struct str in)
{
    enum h1_reply_step step;
    int result;

    do {
        struct str part = {NULL, 0};

        step = h1_reply_read(&fetch->reply, &in, &part);
        result = apply_step(fetch, step, part);
    } while (result == 0 && step != REPLY_MORE);
    return result;
}

static int receive_page(struct top_fetch *fetch)
{
    char bytes[16384];
    ssize_t got = recv(fetch->fd, bytes, sizeof(bytes), 0);

    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : fail_as(fetch, "read the response of", -errno);
    if (got == 0)
        return apply_step(fetch, h1_reply_ended(&fetch->reply, false), STR(""));
    return parse_bytes(fetch, str_of(bytes, (size_t)got));
}

int top_fetch_continue(struct top_fetch *fetch, uint64_t now_us)
{
    struct pollfd ready = {fetch->fd, fetch->events, 0};

    if (now_us >= fetch->deadline_us)
        return fail_as(fetch, "read the status page of", -ETIMEDOUT);
    if (poll(&ready, 1, 0) <= 0)
        return 0;
    if (!fetch->connected)
        return connect_finish(fetch);
    return fetch->events == POLLOUT ? send_request(fetch) : receive_page(fetch);
}

void top_fetch_finish(struct top_fetch *fetch)
{
    close_socket(fetch);
    h1_reply_finish(&fetch->reply);
    arena_reset(&fetch->arena);
    buffer_finish(&fetch->request);
    buffer_finish(&fetch->page);
}
