/*
 * Sends requests of size 1, n and 2n of each kind. This program compares the memory that the server allocates.
 * callgrind counts the instructions and writes a dump per measurement, which check_complexity.py compares.
 */
#include "complexity.h"

#include "../modules/loopback.h"
#include "stream/stream.h"
#include "http2.h"
#include "tls_client.h"
#include "upstreams.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

/*
 * For an input of 2n the server may allocate 2.2 times the memory for n, and this many bytes: the sizes of arena blocks
 * and of growing buffers are not proportional to the input.
 */
#define MEMORY_SLACK 65536
#define MEASUREMENTS 3

static struct loopback server;

/* Counts the allocated bytes, including those of arenas, which use no pool of blocks here. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static unsigned measurements;
static bool counting;
static size_t asked_for;

static void count(size_t size)
{
    if (counting)
        asked_for += size;
}

void *__wrap_malloc(size_t size)
{
    count(size);
    return __real_malloc(size);
}

void *__wrap_calloc(size_t number, size_t size)
{
    count(number * size);
    return __real_calloc(number, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    size_t before = malloc_usable_size(memory);

    count(size > before ? size - before : 0);
    return __real_realloc(memory, size);
}

/* Texts. */

static void append(struct buffer *text, struct str piece)
{
    if (buffer_append(text, piece) < 0) /* ck_assert makes a system call each time, which would be too slow */
        ck_abort_msg("out of memory");
}

/* Less work than snprintf, which callgrind would instrument for each element of a text. */
static struct str format_number(size_t number, char digits[24])
{
    char *at = digits + 24;

    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    return str_of(at, (size_t)(digits + 24 - at));
}

/* Appends `from` with `sign` replaced by the number. */
static void append_numbered(struct buffer *text, const char *from, char sign, size_t number)
{
    struct str rest = str_from(from);
    char digits[24];

    while (rest.data) {
        append(text, str_cut(&rest, sign));
        if (rest.data)
            append(text, format_number(number, digits));
    }
}

static void replace(struct buffer *text, char from, char to)
{
    for (size_t i = 0; i < text->length; i++) {
        if (text->data[i] == from)
            text->data[i] = to;
    }
}

/* Returns the text for n. "~" is replaced by the number of the measurement, "#" by the index. */
static struct buffer grow(const struct grown *grown, size_t n)
{
    struct buffer text = {0};

    append_numbered(&text, grown->front, '~', measurements);
    for (size_t i = 0; i < n && grown->unit[0]; i++)
        append_numbered(&text, grown->unit, '#', i);
    append_numbered(&text, grown->back, '~', measurements);
    return text;
}

/* Counts only the code of the server, not that of the test. */
static void server_code_runs(bool yes)
{
    counting = yes;
    CALLGRIND_TOGGLE_COLLECT;
    if (!yes)
        upstreams_serve();
}

static size_t count_answers(struct str text, int status)
{
    char line[32];
    size_t answers = 0;
    ssize_t at;

    snprintf(line, sizeof(line), "HTTP/1.1 %d ", status);
    while ((at = str_search(text, str_from(line))) >= 0) {
        answers++;
        text = str_skip(text, (size_t)at + 1);
    }
    return answers;
}

/* The client of one request. */
struct request_client {
    int fd;
    struct tls_client *tls;         /* NULL: plain */
    struct str bytes;               /* still to be sent */
    struct buffer sealed;           /* the bytes of TLS; `bytes` points into it */
    bool over;
};

/* Passes received bytes to TLS. Appends its output to the bytes that are still to be sent. */
static void advance_tls(struct request_client *client, struct str received)
{
    struct buffer more = {0};

    append(&more, client->bytes);
    tls_client_advance(client->tls, received, &server.text, &more);
    buffer_finish(&client->sealed);
    client->sealed = more;
    client->bytes = buffer_str(&client->sealed);
}

static void send_some(struct request_client *client, size_t piece)
{
    struct str bytes = piece ? str_slice(client->bytes, 0, piece) : client->bytes;
    ssize_t sent = bytes.length ? send(client->fd, bytes.data, bytes.length, MSG_NOSIGNAL) : 0;

    client->bytes = str_skip(client->bytes, sent > 0 ? (size_t)sent : 0);
}

static void receive_some(struct request_client *client)
{
    char got[65536];
    ssize_t length = read(client->fd, got, sizeof(got));

    client->over = length == 0 || (length < 0 && errno != EAGAIN);
    if (length > 0 && client->tls)
        advance_tls(client, str_of(got, (size_t)length));
    else if (length > 0)
        append(&server.text, str_of(got, (size_t)length));
}

/* Returns the number of HTTP/2 streams that the server ends. */
static size_t streams_ended(const struct kind *kind, size_t n)
{
    return (kind->connection_persists ? n : 1) + (kind->server_resets ? n : 0);
}

/*
 * Like loopback_request_raw, but sends in pieces, and has no timeout because callgrind is slow. `response`: length of
 * the upstream server's first response.
 */
static void send_request(const struct kind *kind, struct str bytes, size_t n, size_t response)
{
    struct request_client client = {.fd = loopback_connect_at(&server, kind->entrance), .bytes = bytes};

    server.text.length = 0;
    if (kind->entrance == AT_TLS) {
        client.tls = tls_client_create(kind->hello ? n : 0, kind->hello_record, bytes, kind->record);
        client.bytes = STR("");
        advance_tls(&client, STR(""));
    }
    while (!client.over) {
        send_some(&client, kind->piece);
        loopback_turn_once(&server, client.bytes.length ? 0 : 5);
        receive_some(&client);
        if (kind->http2 && h2_count_ends(buffer_str(&server.text)) == streams_ended(kind, n))
            shutdown(client.fd, SHUT_WR);
        /* A `stream` connection to an upstream ends with its client. */
        if (kind->entrance == AT_STREAM && server.text.length == response)
            shutdown(client.fd, SHUT_WR);
    }
    close(client.fd);
    tls_client_destroy(client.tls);
    buffer_finish(&client.sealed);
    loopback_turn_once(&server, 0);
}

/* Returns the bytes of one request. */
static struct buffer make_request(const struct kind *kind, size_t n)
{
    struct buffer made = {0};

    if (!kind->make)
        return grow(&kind->request, n);
    kind->make(&made, n);
    return made;
}

/* Returns the number of bytes that the server allocated. */
static size_t measure(const struct kind *kind, size_t n, const char *label)
{
    static const struct grown short_answer = {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "", ""};
    const struct grown *answer = kind->first_response.front ? &kind->first_response : &short_answer;
    struct buffer request, first, later;
    size_t answers = 0;
    char name[128];

    measurements++;
    request = make_request(kind, n);
    first = grow(answer, n);
    later = grow(kind->later_response.front ? &kind->later_response : answer, n);
    replace(&first, '^', '\0');
    replace(&later, '^', '\0');
    upstreams_set_responses(buffer_str(&first), buffer_str(&later), kind->piece, kind->body);
    CALLGRIND_ZERO_STATS;
    asked_for = 0;
    for (unsigned i = 0; i < (kind->times ? kind->times : 1); i++) {
        send_request(kind, buffer_str(&request), n, first.length);
        if (kind->times > 1)
            loopback_turn(&server, 20); /* helper threads write the stored responses */
        answers += kind->http2 ? h2_count_answers(buffer_str(&server.text)) :
                                 count_answers(buffer_str(&server.text), kind->status);
    }
    /* With n elements the request must succeed. With one element it may be rejected. */
    ck_assert_msg(n == 1 || answers >= (kind->connection_persists ? n : 1) * (kind->times ? kind->times : 1),
                  "%s, %s: %zu answers with %d:\n" STR_FMT "\n" STR_FMT, kind->name, label, answers, kind->status,
                  (int)(server.text.length > 2000 ? 2000 : server.text.length), server.text.data,
                  (int)(server.logged.length > 2000 ? 2000 : server.logged.length), server.logged.data);
    snprintf(name, sizeof(name), "%s: %s", kind->name, label);
    CALLGRIND_DUMP_STATS_AT(name);
    upstreams_disconnect();
    buffer_finish(&request);
    buffer_finish(&first);
    buffer_finish(&later);
    server.logged.length = 0;
    return asked_for;
}

static void open_server(void)
{
    static const char file[4096];

    loopback_make_directory(&server);
    loopback_write(&server, "file", str_of(file, sizeof(file)));
    loopback_write(&server, "users", STR("ada:$5$x$4.aY3qEt1fZaTBVM5rFz5nA8WLPzEPLIeeBnDvdnWY9\n"));
    loopback_mkdir(&server, "list");
    loopback_mkdir(&server, "cache");
    upstreams_open(&server);
    loopback_open(&server, complexity_configuration);
    server.worker.stream = &stream_listening;
    server.server_code_runs = server_code_runs;
    server.error_log.log.level = LOG_DEBUG;
}

/* Returns the least of several measurements: a new log buffer is allocated if the old one is still being written. */
static size_t measure_min(const struct kind *kind, size_t n, const char *label)
{
    size_t min = measure(kind, n, label);

    for (int i = 1; i < MEASUREMENTS && !RUNNING_ON_VALGRIND; i++) {
        size_t again;

        loopback_turn(&server, 20);
        again = measure(kind, n, label);
        min = again < min ? again : min;
    }
    return min;
}

/*
 * Sends each kind once before the measurement, so that allocations at first use do not count. Under valgrind only the
 * instructions are compared, by check_complexity.py.
 */
static void check(const struct kind *kind)
{
    size_t none, one, two;

    (void)measure(kind, 2 * kind->n, "first");
    none = measure_min(kind, 1, "1");
    one = measure_min(kind, kind->n, "n");
    two = measure_min(kind, 2 * kind->n, "2n");
    printf("%-50s %7zu: %9zu %9zu %9zu bytes\n", kind->name, kind->n, none, one, two);
    one = one > none ? one - none : 0;
    two = two > none ? two - none : 0;
    ck_assert_msg(RUNNING_ON_VALGRIND || two <= one * 22 / 10 + MEMORY_SLACK, "%s: %zu bytes for n, %zu for 2n",
                  kind->name, one, two);
}

static char **selected; /* the names of the kinds, ended by NULL; empty: all */

static bool is_selected(const struct kind *kind)
{
    for (char **name = selected; *name; name++) {
        if (strcmp(*name, kind->name) == 0)
            return true;
    }
    return !*selected;
}

START_TEST(memory_grows_linearly)
{
    open_server();
    CALLGRIND_START_INSTRUMENTATION; /* once: each start discards the translated code */
    for (size_t i = 0; i < kind_count; i++) {
        if (is_selected(&kinds[i]))
            check(&kinds[i]);
    }
    loopback_close(&server);
}
END_TEST

static int list_kinds(void)
{
    for (size_t i = 0; i < kind_count; i++)
        puts(kinds[i].name);
    return 0;
}

int main(int argc, char **argv)
{
    const TTest *const tests[] = {memory_grows_linearly, NULL};

    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list_kinds();
    selected = argv + 1;
    return loopback_run("complexity", tests);
}
