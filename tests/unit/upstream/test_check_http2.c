/* The session of a health check over HTTP/2, in memory: its frames, and the responses of servers. */
#include "upstream/upstream_check_http2.h"

#include "../http/suite.h"
#include "base/limits.h"

#include <errno.h>

static struct arena arena;
static struct clock clock_now;
static struct check_session *session;
static char sent[4000];
static size_t sent_length;

/* Collects all frames that are due. */
static void collect_output(void)
{
    struct str parts[2];

    while (check_session_produce(session, 1000, parts) == 1) {
        for (unsigned i = 0; i < 2; i++) {
            ck_assert_uint_le(sent_length + parts[i].length, sizeof sent);
            if (parts[i].length)
                memcpy(sent + sent_length, parts[i].data, parts[i].length);
            sent_length += parts[i].length;
        }
    }
}

static void start(void)
{
    const struct h2_client_request *request;

    arena_init(&arena, NULL, 0);
    request = check_request_create(&arena, true, STR("app.test"), STR("/healthz"));
    ck_assert_ptr_nonnull(request);
    ck_assert_uint_eq(request->content_length, 0);
    session = check_session_create(request, &clock_now);
    ck_assert_ptr_nonnull(session);
    sent_length = 0;
    collect_output();
}

static void stop(void)
{
    check_session_destroy(session);
    arena_reset(&arena);
}

/* Finds the frame of a type; NULL: it was not sent. */
static const char *find_frame(enum h2_frame_type type)
{
    size_t at = sizeof "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" - 1;

    while (at + H2_FRAME_HEAD <= sent_length) {
        struct h2_frame frame = h2_frame_parse_head(sent + at);

        if (frame.type == (uint8_t)type)
            return sent + at;
        at += H2_FRAME_HEAD + frame.length;
    }
    return NULL;
}

static char bytes[100000];

static char *add_frame(char *at, enum h2_frame_type type, uint8_t flags, uint32_t stream, struct str payload)
{
    at = h2_frame_write_head(at, (uint32_t)payload.length, type, flags, stream);
    memcpy(at, payload.data, payload.length);
    return at + payload.length;
}

/* A head with a literal status. */
static char *add_head(char *at, const char *status, uint8_t flags)
{
    char block[8] = "\x08\x03";

    memcpy(block + 2, status, 3);
    return add_frame(at, H2_HEADERS, flags | H2_FLAG_END_HEADERS, 1, str_of(block, 5));
}

static int receive(const char *end)
{
    return check_session_receive(session, str_of(bytes, (size_t)(end - bytes)));
}

START_TEST(request_and_end)
{
    const char *head;

    start();
    head = find_frame(H2_HEADERS);
    ck_assert_ptr_nonnull(head);
    ck_assert_uint_eq(h2_frame_parse_head(head).stream, 1);
    ck_assert_uint_eq(h2_frame_parse_head(head).flags, H2_FLAG_END_HEADERS | H2_FLAG_END_STREAM);
    ck_assert_ptr_null(find_frame(H2_GOAWAY));
    ck_assert_int_eq(receive(add_head(add_frame(bytes, H2_SETTINGS, 0, 0, STR("")), "200", 0)), 200);
    check_session_end(session);
    collect_output();
    ck_assert_ptr_nonnull(find_frame(H2_RST_STREAM));
    ck_assert_ptr_nonnull(find_frame(H2_GOAWAY));
    stop();
}
END_TEST

START_TEST(responses)
{
    char *end;

    for (size_t piece = 1; piece < 100; piece += 9) {
        int status = 0;

        start();
        end = add_head(add_frame(bytes, H2_SETTINGS, 0, 0, STR("")), "103", 0);
        end = add_head(end, "503", H2_FLAG_END_STREAM);
        for (const char *at = bytes; at < end; at += piece) {
            ck_assert_int_eq(status, 0);
            status = check_session_receive(session, str_slice(str_of(at, (size_t)(end - at)), 0, piece));
        }
        ck_assert_int_eq(status, 503);
        stop();
    }
}
END_TEST

START_TEST(invalid_responses)
{
    static char field[LIMIT_CHECK_HEAD + 20];
    char *settings_end = add_frame(bytes, H2_SETTINGS, 0, 0, STR("")), *end;

    start(); /* a response by HTTP/1.1 */
    ck_assert_int_eq(check_session_receive(session, STR("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")), -EPROTO);
    stop();
    start();
    ck_assert_int_eq(receive(add_frame(settings_end, H2_RST_STREAM, 0, 1, STR("\0\0\0\2"))), -EPROTO);
    stop();
    start(); /* the stream was not processed */
    ck_assert_int_eq(receive(add_frame(settings_end, H2_GOAWAY, 0, 0, STR("\0\0\0\0\0\0\0\0"))), -EPROTO);
    stop();
    start();
    ck_assert_int_eq(receive(add_frame(settings_end, H2_DATA, 0, 1, STR("early"))), -EPROTO);
    stop();
    start(); /* :status 2x0 */
    ck_assert_int_eq(receive(add_head(settings_end, "2x0", 0)), -EPROTO);
    stop();
    start(); /* a head above the limit: a literal field "x" */
    memcpy(field, "\x88\0\1x\x7f", 5);
    field[5] = (char)(0x80 | ((LIMIT_CHECK_HEAD - 127) & 0x7f));
    field[6] = (char)(0x80 | (((LIMIT_CHECK_HEAD - 127) >> 7) & 0x7f));
    field[7] = (char)((LIMIT_CHECK_HEAD - 127) >> 14);
    memset(field + 8, 'v', LIMIT_CHECK_HEAD);
    end = add_frame(settings_end, H2_HEADERS, 0, 1, str_of(field, 16384));
    end = add_frame(end, H2_CONTINUATION, 0, 1, str_of(field + 16384, 16384));
    end = add_frame(end, H2_CONTINUATION, H2_FLAG_END_HEADERS, 1, str_of(field + 32768, LIMIT_CHECK_HEAD + 8 - 32768));
    ck_assert_int_eq(receive(end), -EPROTO);
    stop();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {request_and_end, responses, invalid_responses};

    return suite_run("check_http2", tests, COUNT(tests));
}
