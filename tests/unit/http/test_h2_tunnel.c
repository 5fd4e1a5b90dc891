/*
 * Extended CONNECT (RFC 8441): a stream that becomes a tunnel, and the requests for one that do not.
 */
#include "h2_session_fixture.h"

#include "http/h2/session.h"

#include <stdio.h>

#define ACCEPTED "HEADERS 1 :status=200\n"

static void connect_to(const char *path, uint8_t flags)
{
    char lines[200];

    snprintf(lines, sizeof lines,
             ":method=CONNECT\n:protocol=websocket\n:scheme=http\n:authority=a\n:path=%s\nsec-websocket-version=13\n",
             path);
    h2_client_headers(&client, 1, flags, lines);
}

/* Bytes pass in both directions until END_STREAM, without a length, trailers and the limit of bodies. */
START_TEST(tunnel_passes_bytes_in_both_directions)
{
    static const size_t pieces[] = {0, 1, 10};

    for (size_t i = 0; i < COUNT(pieces); i++) {
        open_session();
        client.piece = pieces[i];
        connect_to("/tunnel", 0);
        expect(ACCEPTED);
        client.piece = 0; /* each received piece is one DATA frame */
        h2_client_data(&client, 1, STR("hello"), false);
        expect("PING sluicebd\nDATA 1 5 hello\n");
        h2_client_data(&client, 1, STR("again"), false);
        expect("DATA 1 5 again\n");
        h2_client_data(&client, 1, STR(""), true);
        expect("DATA 1 0  end\n");
        ck_assert_text(buffer_str(&server->log), "GET /tunnel 200 10\n");
        ck_assert_int_eq(table_server_phase(server), SESSION_IDLE);
        close_session();
    }
}
END_TEST

START_TEST(tunnel_ended_with_its_request)
{
    open_session();
    connect_to("/tunnel", H2_FLAG_END_STREAM);
    expect(ACCEPTED "DATA 1 0  end\n");
    close_session();
}
END_TEST

static struct h2_stream *the_stream(void)
{
    const struct h2_session *h2 = container_of(server->session, struct h2_session, session);

    for (size_t i = 0; i < H2_BUCKETS; i++) {
        if (h2->streams[i])
            return h2->streams[i];
    }
    return NULL;
}

/* Its buffers were large while bytes passed. */
START_TEST(idle_tunnel_holds_no_large_buffer)
{
    static char bytes[60001];

    memset(bytes, 'x', sizeof bytes - 1);
    open_session();
    connect_to("/tunnel", 0);
    expect(ACCEPTED);
    for (size_t i = 0; i < 60000; i += 10000)
        h2_client_data(&client, 1, str_of(bytes + i, 10000), false);
    (void)h2_client_log(&client);
    ck_assert_uint_eq(client.received, 60000);
    ck_assert_ptr_null(the_stream()->input.data);
    ck_assert_ptr_null(the_stream()->pulled_bytes.data);
    h2_client_data(&client, 1, STR("again"), false);
    ck_assert_ptr_nonnull(strstr(h2_client_log(&client), "DATA 1 5 again\n"));
    close_session();
}
END_TEST

/* client_body_timeout does not apply to an idle tunnel, but to one whose client does not end its side. */
START_TEST(idle_tunnel_does_not_time_out)
{
    open_session();
    connect_to("/tunnel", 0);
    expect(ACCEPTED);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(table_server_phase(server), SESSION_WAITING);
        advance_clock(100000);
        expect("");
    }
    h2_client_data(&client, 1, STR("hello"), true);
    expect("PING sluicebd\nDATA 1 5 hello\nDATA 1 0  end\n");
    close_session();
    open_session();
    connect_to("/denied", 0);
    expect("HEADERS 1 :status=403 content-length=2\nDATA 1 2 no end\n");
    ck_assert_int_eq(table_server_phase(server), SESSION_BODY);
    advance_clock(60000);
    expect("RST_STREAM 1 NO_ERROR\n");
    close_session();
}
END_TEST

static const struct {
    const char *path, *received, *log;
} responses[] = {
    {"/hello", "HEADERS 1 :status=501 content-length=0 end\n", "GET /hello 501 0\n"},
    {"/none", "HEADERS 1 :status=501 content-length=0 end\n", "GET /none 501 0\n"},
    {"/broken", "HEADERS 1 :status=501 content-length=0 end\n", "GET /broken 501 0\n"},
    {"/denied", "HEADERS 1 :status=403 content-length=2\nDATA 1 2 no end\n", "GET /denied 403 2\n"},
    /* A tunnel that fails is reset by CANCEL. */
    {"/cut", ACCEPTED "DATA 1 4 part\nRST_STREAM 1 CANCEL\n", "GET /cut 200 4 cancelled\n"},
};

/* Without 101 there is no tunnel: another 2xx would be taken for one. */
START_TEST(response_without_101_opens_no_tunnel)
{
    open_session();
    connect_to(responses[_i].path, 0);
    expect(responses[_i].received);
    ck_assert_text(buffer_str(&server->log), responses[_i].log);
    close_session();
}
END_TEST

static void check_reset(const char *received)
{
    expect(received);
    ck_assert_text(buffer_str(&server->log), "GET /tunnel 200 0 cancelled\n");
    close_session();
}

/* RFC 9113 8.5: HEADERS on an open tunnel. */
START_TEST(headers_on_an_open_tunnel_reset_it)
{
    open_session();
    connect_to("/tunnel", 0);
    expect(ACCEPTED);
    h2_client_headers(&client, 1, H2_FLAG_END_STREAM, "x=y\n");
    check_reset("RST_STREAM 1 PROTOCOL_ERROR\n");
}
END_TEST

START_TEST(reset_of_a_tunnel_ends_its_exchange)
{
    open_session();
    connect_to("/tunnel", 0);
    expect(ACCEPTED);
    h2_client_number(&client, H2_RST_STREAM, 1, H2_CANCEL);
    check_reset("");
}
END_TEST

/* A stream is not affected by another one that requests no tunnel. */
START_TEST(requests_without_a_tunnel_are_refused_separately)
{
    open_session();
    h2_client_headers(&client, 1, 0, ":method=CONNECT\n:authority=a:443\n");
    expect("HEADERS 1 :status=501 content-length=7\nDATA 1 7 refused end\n");
    h2_client_headers(&client, 3, 0,
                      ":method=CONNECT\n:protocol=connect-udp\n:scheme=http\n:authority=a\n:path=/tunnel\n");
    expect("HEADERS 3 :status=501 content-length=7\nDATA 3 7 refused end\n");
    h2_client_headers(&client, 5, 0, ":method=GET\n:protocol=websocket\n:scheme=http\n:authority=a\n:path=/tunnel\n");
    expect("RST_STREAM 5 PROTOCOL_ERROR\n");
    h2_client_request(&client, 7, "GET", "/hello", true);
    expect(OK("7"));
    close_session();
}
END_TEST

static void ignore_wake(void *owner)
{
}

/* True if the settings of the server's preface have SETTINGS_ENABLE_CONNECT_PROTOCOL = 1. */
static bool offers_tunnels(bool enabled)
{
    static const struct exchange_events events = {.wake = ignore_wake};
    struct session_shared shared = {&server->pool, &server->clock, &server->counters};
    struct session_settings settings = server->settings;
    struct session *session;
    struct chunk chunk;
    size_t length;
    bool found = false;

    settings.http2.connect_protocol = enabled;
    session = protocol_http2.open(&settings, &events, NULL, &shared);
    ck_assert_int_eq(protocol_http2.produce(session, CHUNK_BYTES, 1000, &chunk), 1);
    ck_assert_uint_eq((unsigned char)chunk.bytes.data[3], H2_SETTINGS);
    length = H2_FRAME_HEAD + (unsigned char)chunk.bytes.data[2];
    for (size_t at = H2_FRAME_HEAD; at < length; at += H2_SETTING_SIZE)
        found |= memcmp(chunk.bytes.data + at, "\0\x08\0\0\0\x01", H2_SETTING_SIZE) == 0;
    protocol_http2.close(session);
    return found;
}

START_TEST(preface_offers_tunnels_only_if_enabled)
{
    open_session();
    ck_assert(offers_tunnels(true));
    ck_assert(!offers_tunnels(false));
    close_session();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        tunnel_passes_bytes_in_both_directions, tunnel_ended_with_its_request, idle_tunnel_does_not_time_out,
        idle_tunnel_holds_no_large_buffer, headers_on_an_open_tunnel_reset_it, reset_of_a_tunnel_ends_its_exchange,
        requests_without_a_tunnel_are_refused_separately, preface_offers_tunnels_only_if_enabled,
    };
    const struct suite_loop loops[] = {{response_without_101_opens_no_tunnel, COUNT(responses)}};

    return suite_run_loops("h2_tunnel", tests, COUNT(tests), loops, COUNT(loops));
}
