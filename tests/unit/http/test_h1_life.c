#include "http/h1_session.h"

#include "session_rows.h"
#include "suite.h"

#include <errno.h>

START_TEST(idle_session_is_small)
{
    struct table_server server;
    struct h1_session *h1;

    ck_assert_uint_le(sizeof(struct h1_session), 120);
    table_server_open(&server, &protocol_http1, rows);
    ck_assert_int_eq(table_server_phase(&server), SESSION_IDLE);
    table_server_feed(&server, STR("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    table_server_feed(&server, STR("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"), 1);
    ck_assert_int_eq(table_server_phase(&server), SESSION_IDLE);
    h1 = (struct h1_session *)server.session;
    ck_assert_ptr_null(h1->current);
    ck_assert_ptr_null(h1->head.data);
    ck_assert_uint_eq(server.pool.free_count, 1);
    table_server_close(&server);
}
END_TEST

START_TEST(each_part_of_a_request_has_its_phase)
{
    struct table_server server;

    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("\r\n"), 0);
    ck_assert_int_eq(table_server_phase(&server), SESSION_IDLE);
    table_server_feed(&server, STR("POST /echo HTTP/1.1\r\nHost: a\r\nContent-"), 0);
    ck_assert_int_eq(table_server_phase(&server), SESSION_HEAD);
    table_server_feed(&server, STR("Length: 5\r\n\r\n123"), 0);
    ck_assert_int_eq(table_server_phase(&server), SESSION_BODY);
    table_server_feed(&server, STR("45GET /later HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    ck_assert_int_eq(table_server_phase(&server), SESSION_WAITING);
    table_server_feed(&server, STR("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    ck_assert_uint_gt(server.unread.length, 0);
    table_server_answer(&server);
    ck_assert_uint_eq(server.unread.length, 0);
    ck_assert_int_eq(table_server_phase(&server), SESSION_IDLE);
    ck_assert_text(table_server_take(&server), ECHOED("5", "12345") ECHOED("5", "later") HELLO);
    /* Produce is not called, so the response waits to be sent. */
    ck_assert_uint_gt(server.protocol->consume(server.session, STR("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n")),
                      0);
    ck_assert_int_eq(table_server_phase(&server), SESSION_SENDING);
    table_server_signal(&server, SESSION_TIMEOUT);
    ck_assert_int_eq(table_server_phase(&server), SESSION_OVER);
    ck_assert_int_eq(server.result, -ETIMEDOUT);
    table_server_close(&server);
}
END_TEST

/* The path of the current exchange; empty: there is none. */
static struct str current_path(const struct table_server *server)
{
    unsigned count = 99;
    const struct exchange *x = protocol_http1.current(server->session, &count);

    ck_assert_uint_eq(count, x ? 1 : 0);
    return x ? x->request.path : STR("");
}

START_TEST(current_exchange_lasts_from_the_head_to_the_response)
{
    struct table_server server;

    table_server_open(&server, &protocol_http1, rows);
    ck_assert_text(current_path(&server), "");
    table_server_feed(&server, STR("GET /later HTTP/1.1\r\nHost: a\r\n"), 0);
    ck_assert_text(current_path(&server), "");
    table_server_feed(&server, STR("\r\n"), 0);
    ck_assert_text(current_path(&server), "/later");
    table_server_answer(&server);
    ck_assert_text(current_path(&server), "");
    /* The response is sent, and the rest of the body is read. */
    table_server_feed(&server, STR("POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12"), 0);
    ck_assert_text(current_path(&server), "");
    table_server_close(&server);
}
END_TEST

START_TEST(timeout_ends_idle_and_incomplete_requests)
{
    struct table_server server;

    table_server_open(&server, &protocol_http1, rows);
    table_server_signal(&server, SESSION_TIMEOUT);
    ck_assert_int_eq(server.result, 0);
    ck_assert_uint_eq(server.out.length, 0);
    table_server_close(&server);

    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("GET /hello HTTP/1.1\r\nHo"), 0);
    table_server_signal(&server, SESSION_TIMEOUT);
    ck_assert_text(table_server_take(&server), REFUSED("408 Request Timeout"));
    ck_assert_int_eq(server.result, 0);
    ck_assert_text(buffer_str(&server.log), "GET  408 7\n");
    table_server_close(&server);

    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n123"), 0);
    table_server_signal(&server, SESSION_TIMEOUT);
    ck_assert_text(table_server_take(&server), "HTTP/1.1 408 Request Timeout\r\n" DATED
                                               "Content-Length: 2\r\nConnection: close\r\n\r\nno");
    ck_assert_int_eq(server.result, 0);
    table_server_close(&server);

    /* An unread request body that does not arrive */
    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n123"), 0);
    ck_assert_text(table_server_take(&server), HELLO);
    ck_assert_int_eq(table_server_phase(&server), SESSION_BODY);
    table_server_signal(&server, SESSION_TIMEOUT);
    ck_assert_int_eq(server.result, 0);
    table_server_close(&server);

    /* The timeout does not apply while the server works on a request. */
    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("GET /later HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    table_server_signal(&server, SESSION_TIMEOUT);
    table_server_answer(&server);
    ck_assert_text(table_server_take(&server), ECHOED("5", "later"));
    table_server_close(&server);
}
END_TEST

START_TEST(end_of_the_peer_cancels_incomplete_requests_only)
{
    struct table_server server;

    table_server_open(&server, &protocol_http1, rows);
    table_server_signal(&server, SESSION_PEER_CLOSED);
    ck_assert_int_eq(server.result, 0);
    table_server_close(&server);

    /* in the middle of a head: no exchange begins */
    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("GET /hel"), 0);
    table_server_signal(&server, SESSION_PEER_CLOSED);
    ck_assert_int_eq(server.result, 0);
    ck_assert_uint_eq(server.begun + server.rejected + server.out.length, 0);
    table_server_close(&server);

    /* in the middle of a body */
    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n123"), 0);
    table_server_signal(&server, SESSION_PEER_CLOSED);
    ck_assert_text(buffer_str(&server.log), "POST /echo 400 2\n");
    ck_assert_int_eq(server.result, 0);
    table_server_close(&server);

    /* while the server works on a complete request: the client may have closed only its sending side */
    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("GET /later HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    table_server_signal(&server, SESSION_PEER_CLOSED);
    ck_assert_int_eq(server.result, -EAGAIN);
    table_server_answer(&server);
    ck_assert_int_eq(server.result, 0);
    ck_assert_text(table_server_take(&server),
                   "HTTP/1.1 200 OK\r\n" DATED "Content-Length: 5\r\nConnection: close\r\n\r\nlater");
    table_server_close(&server);

    /* while the rest of a body is discarded */
    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n123"), 0);
    table_server_signal(&server, SESSION_PEER_CLOSED);
    ck_assert_int_eq(server.result, 0);
    table_server_close(&server);
}
END_TEST

START_TEST(drain_ends_idle_sessions)
{
    struct table_server server;

    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    table_server_signal(&server, SESSION_DRAIN);
    ck_assert_int_eq(server.result, 0);
    table_server_close(&server);

    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server,
                      STR("GET /later HTTP/1.1\r\nHost: a\r\n\r\nGET /bye HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    table_server_signal(&server, SESSION_DRAIN);
    ck_assert_int_eq(server.result, -EAGAIN);
    table_server_answer(&server);
    ck_assert_int_eq(server.result, 0);
    ck_assert_text(table_server_take(&server),
                   "HTTP/1.1 200 OK\r\n" DATED "Content-Length: 5\r\nConnection: close\r\n\r\nlater");
    table_server_close(&server);

    /* a new connection gets one response */
    table_server_open(&server, &protocol_http1, rows);
    table_server_signal(&server, SESSION_DRAIN);
    ck_assert_int_eq(server.result, -EAGAIN);
    table_server_feed(&server, STR("GET /hello HTTP/1.1\r\nHost: a\r\n\r\nGET /hello HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    ck_assert_int_eq(server.result, 0);
    ck_assert_text(buffer_str(&server.log), "GET /hello 200 5\n");
    table_server_close(&server);

    /*
     * after a response without "Connection: close" the client may send one more request; the response to it has
     * "Connection: close"
     */
    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    (void)table_server_take(&server);
    table_server_signal(&server, SESSION_RETIRE);
    ck_assert_int_eq(server.result, -EAGAIN);
    table_server_feed(&server, STR("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    ck_assert_int_eq(server.result, 0);
    ck_assert_text(table_server_take(&server),
                   "HTTP/1.1 200 OK\r\n" DATED "Content-Length: 5\r\nConnection: close\r\n\r\nhello");
    table_server_close(&server);

    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("GET /later HTTP/1.1\r\nHost: a\r\n\r\nGET /bye HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    table_server_signal(&server, SESSION_RETIRE);
    table_server_answer(&server);
    ck_assert_int_eq(server.result, 0);
    ck_assert_text(table_server_take(&server),
                   "HTTP/1.1 200 OK\r\n" DATED "Content-Length: 5\r\nConnection: close\r\n\r\nlater");
    table_server_close(&server);

    /* the server reads the rest of a head that has begun */
    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("GET /hello HTTP/1.1\r\n"), 0);
    table_server_signal(&server, SESSION_DRAIN);
    ck_assert_int_eq(server.result, -EAGAIN);
    table_server_feed(&server, STR("Host: a\r\n\r\n"), 0);
    ck_assert_int_eq(server.result, 0);
    ck_assert_text(buffer_str(&server.log), "GET /hello 200 5\n");
    table_server_close(&server);
}
END_TEST

START_TEST(closing_cancels_exchanges)
{
    struct table_server server;

    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("GET /later HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    table_server_hang_up(&server);
    ck_assert_text(buffer_str(&server.log), "GET /later 0 0 cancelled\n");
    table_server_close(&server);

    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a"),
                      0);
    table_server_hang_up(&server);
    ck_assert_text(buffer_str(&server.log), "POST /echo 0 0 cancelled\n");
    table_server_close(&server);

    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("GET /broken HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    table_server_hang_up(&server);
    ck_assert_text(buffer_str(&server.log), "GET /broken 200 4 cancelled\n");
    table_server_close(&server);

    /* `finished` is called once, even if the body is still being discarded */
    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n123"), 0);
    table_server_hang_up(&server);
    ck_assert_text(buffer_str(&server.log), "POST /hello 200 5\n");
    table_server_close(&server);

    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("GET /hel"), 0);
    table_server_close(&server);
}
END_TEST

START_TEST(last_permitted_response_closes_the_connection)
{
    struct table_server server;

    table_server_open(&server, &protocol_http1, rows);
    server.settings.keepalive_requests = 2;
    table_server_feed(&server,
                      STR("GET /hello HTTP/1.1\r\nHost: a\r\n\r\nGET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
                          "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"),
                      0);
    ck_assert_text(table_server_take(&server),
                   HELLO "HTTP/1.1 200 OK\r\n" DATED "Content-Length: 5\r\nConnection: close\r\n\r\nhello");
    ck_assert_int_eq(server.result, 0);
    ck_assert_uint_eq(server.begun, 2);
    table_server_close(&server);
}
END_TEST

/* An exchange with a reference remains valid after the end of its session. */
START_TEST(exchange_outlives_its_session)
{
    struct table_server server;
    struct exchange *x;

    table_server_open(&server, &protocol_http1, rows);
    table_server_feed(&server, STR("GET /later HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    x = server.later;
    exchange_hold(x);
    table_server_hang_up(&server);
    ck_assert(x->cancelled);
    ck_assert_ptr_null(x->session);
    ck_assert_text(x->request.path, "/later");
    exchange_respond(x);
    exchange_release(x);
    table_server_close(&server);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        idle_session_is_small, each_part_of_a_request_has_its_phase,
        current_exchange_lasts_from_the_head_to_the_response, timeout_ends_idle_and_incomplete_requests,
        end_of_the_peer_cancels_incomplete_requests_only, drain_ends_idle_sessions, closing_cancels_exchanges,
        last_permitted_response_closes_the_connection, exchange_outlives_its_session,
    };

    return suite_run("h1_life", tests, COUNT(tests));
}
