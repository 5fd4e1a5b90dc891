/*
 * Subrequests, with modules that the test defines: their requests and results, and that each is released when its
 * parent ends, for every kind of end.
 */
#include "loopback.h"

#include "base/limits.h"
#include "server/connection.h"
#include "server/module.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct loopback server;
static const struct module owner_module;

static struct {
    struct exchange *pending; /* a child whose module returned PENDING */
    struct exchange *parent;  /* of /hold/ */
    unsigned guarded, cancelled, finished, notified;
    unsigned pulled, closed; /* of the child's body */
    struct body body;
    unsigned pieces; /* still to come */
} seen;

/* Starts a subrequest for the rest of the path, and responds with its status and path. */

static void answered(struct exchange *child, void *owner)
{
    struct exchange *x = owner;
    struct str text =
        arena_printf(&x->arena, "%d " STR_FMT, child->response.status, STR_ARG(child->request.path));

    seen.notified++;
    x->response.status = 200;
    x->response.body = body_bytes(&x->arena, text);
    exchange_resume(x, OUTCOME_RESPONDED);
    exchange_subrequest_end(child);
}

static enum outcome rejected(struct exchange *x, int error)
{
    struct str text = arena_printf(&x->arena, "%s", strerror(-error));

    x->response.status = 200;
    x->response.body = body_bytes(&x->arena, text);
    return OUTCOME_RESPONDED;
}

static enum outcome start_many_subrequests(struct exchange *x)
{
    struct exchange *child;
    int error = 0;
    unsigned count = 0;

    for (; error == 0 && count < 1000; count++)
        error = exchange_subrequest(x, STR("/now"), NULL, NULL, &child);
    ck_assert_uint_eq(count, LIMIT_SUBREQUESTS + 1);
    return rejected(x, error);
}

/* Passes the state of this module to a subrequest that outlives x. */
static enum outcome pass_state(struct exchange *x)
{
    unsigned *state = exchange_state(x, &owner_module, sizeof(*state)), *fresh;
    struct exchange *child;

    *state = 7;
    ck_assert_int_eq(exchange_subrequest(x, STR("/later"), NULL, NULL, &child), 0);
    ck_assert_ptr_null(exchange_state_found(child, &owner_module));
    fresh = exchange_state_pass(x, child, &owner_module, sizeof(*fresh));
    ck_assert_ptr_nonnull(fresh);
    ck_assert_uint_eq(*fresh, 0);
    ck_assert_ptr_eq(exchange_state(x, &owner_module, sizeof(*fresh)), fresh);
    ck_assert_ptr_eq(exchange_state(child, &owner_module, sizeof(*state)), state);
    x->response.status = 204;
    return OUTCOME_RESPONDED;
}

static enum outcome parent_handler(struct exchange *x, const void *conf, void *state)
{
    struct str path = x->request.path;
    struct exchange *child;
    int error;

    if (str_equal(path, STR("/many")))
        return start_many_subrequests(x);
    if (str_equal(path, STR("/pathless")))
        return rejected(x, exchange_subrequest(x, STR("now"), answered, x, &child));
    if (str_equal(path, STR("/climbing")))
        return rejected(x, exchange_subrequest(x, STR("/../now"), answered, x, &child));
    if (str_starts(path, STR("/throw/")) && !exchange_is_subrequest(x)) {
        ck_assert_int_eq(exchange_subrequest(x, str_skip(path, 6), NULL, NULL, &child), 0);
        x->response.status = 204;
        return OUTCOME_RESPONDED;
    }
    if (str_starts(path, STR("/hold/"))) {
        ck_assert_int_eq(exchange_subrequest(x, str_skip(path, 5), NULL, NULL, &child), 0);
        seen.parent = x;
        return OUTCOME_PENDING;
    }
    if (str_equal(path, STR("/pass")))
        return pass_state(x);
    if (!str_starts(path, STR("/sub/")))
        return OUTCOME_DECLINED;
    error = exchange_subrequest(x, str_skip(path, 4), answered, x, &child);
    return error < 0 ? rejected(x, error) : OUTCOME_PENDING;
}

static void parent_cancel(struct exchange *x, void *state)
{
    seen.cancelled += 100;
}

static enum outcome guard_handler(struct exchange *x, const void *conf, void *state)
{
    ck_assert(!exchange_is_subrequest(x));
    seen.guarded++;
    return OUTCOME_ALLOWED;
}

static int body_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    static char text[LIMIT_SUBREQUEST_REST];

    seen.pulled++;
    if (seen.pieces == 0)
        return 0;
    if (seen.pulled % 2) /* every second pull returns -EAGAIN */
        return -EAGAIN;
    seen.pieces--;
    *out = (struct chunk){.kind = CHUNK_BYTES,
                          .bytes = {text, room < sizeof(text) / 4 ? room : sizeof(text) / 4}};
    return 1;
}

static void body_ended(struct body *body)
{
    seen.closed++;
}

static enum outcome maker_handler(struct exchange *x, const void *conf, void *state)
{
    static const struct body_ops ops = {body_next, body_ended};
    struct str path = x->request.path;

    if (str_equal(path, STR("/later"))) {
        seen.pending = x;
        return OUTCOME_PENDING;
    }
    if (str_equal(path, STR("/moved")))
        return exchange_internal_redirect(x, STR("/now"), STR(""));
    if (str_equal(path, STR("/round")))
        return exchange_internal_redirect(x, STR("/round"), STR(""));
    if (str_equal(path, STR("/cut")))
        return exchange_close_without_response(x);
    if (str_equal(path, STR("/rejected")))
        return exchange_error_response(x, 403);
    if (!str_starts(path, STR("/now")) && !str_starts(path, STR("/inside")) && !str_equal(path, STR("/long")))
        return OUTCOME_DECLINED;
    if (exchange_is_subrequest(x)) {
        ck_assert_uint_eq(x->request.content_length, 0);
        ck_assert_ptr_null(headers_find(&x->request.headers, STR("Content-Length")));
        ck_assert_ptr_null(headers_find(&x->request.headers, STR("Upgrade")));
        ck_assert_int_eq(x->request.method, METHOD_GET);
        ck_assert_text(headers_value(&x->request.headers, STR("X-Test")), "yes");
    }
    x->response.status = 200;
    x->response.body = body_empty();
    if (str_equal(path, STR("/long"))) {
        seen.body = (struct body){.ops = &ops, .length = BODY_LENGTH_UNKNOWN};
        x->response.body = &seen.body;
    }
    return OUTCOME_RESPONDED;
}

static void maker_cancel(struct exchange *x, void *state)
{
    ck_assert_ptr_eq(x, seen.pending);
    seen.cancelled++;
    seen.pending = NULL;
}

static int maker_shape(struct exchange *x, const void *conf)
{
    ck_assert(!exchange_is_subrequest(x));
    return 0;
}

static void maker_finish(struct exchange *x, const void *conf)
{
    seen.finished++;
}

static const struct module guard = {.name = "guard", .handler = guard_handler, .access = true};
static const struct module owner_module = {.name = "owner", .handler = parent_handler, .cancel = parent_cancel};
static const struct module maker = {.name = "maker",
                                    .handler = maker_handler,
                                    .filter = maker_shape,
                                    .finish = maker_finish,
                                    .cancel = maker_cancel};
const struct module *const module_table[] = {&guard, &owner_module, &maker, NULL};

static void set_up(void)
{
    memset(&seen, 0, sizeof(seen));
    loopback_open(&server, "http:\n"
                           "  server:\n"
                           "    listen: 8080\n"
                           "    error_page: 403 =200 /now\n"
                           "    location: {/inside: {internal: on}}\n");
}

static void send_request(const char *path)
{
    char head[128];

    snprintf(head, sizeof(head), "GET %s HTTP/1.1\nX-Test: yes\nUpgrade: x\nContent-Length: 0", path);
    loopback_request(&server, head);
}

static const struct {
    const char *path;
    int status;
    const char *body;
    unsigned children;
} cases[] = {
    {"/sub/now", 200, "200 /now", 1},
    {"/sub/now%3fa=b", 200, "200 /now", 1},
    {"/sub/inside", 200, "200 /inside", 1},
    {"/sub/moved", 200, "200 /now", 1},
    {"/sub/round", 200, "500 /round", 1},
    {"/sub/nothing", 200, "404 /nothing", 1},
    {"/sub/cut", 200, "444 /cut", 1},
    {"/sub/rejected", 200, "403 /rejected", 1},
    {"/sub/sub/now", 200, "200 /sub/now", 2},
    {"/sub/sub/sub/sub/now", 200, "200 /sub/sub/sub/now", 4},
    {"/sub/sub/sub/sub/sub/now", 200, "200 /sub/sub/sub/sub/now", 4}, /* the innermost one fails with EMFILE */
    {"/inside", 404, NULL, 0},
    {"/many", 200, "Too many open files", LIMIT_SUBREQUESTS},
    {"/pathless", 200, "Invalid argument", 0},
    {"/climbing", 200, "Invalid argument", 0},
};

START_TEST(subrequest_is_routed)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set_up();
        send_request(cases[i].path);
        ck_assert_msg(server.status == cases[i].status, "%s: %d", cases[i].path, server.status);
        if (cases[i].body)
            ck_assert_text(server.body, cases[i].body);
        ck_assert(list_empty(&server.worker.orphaned_subrequests));
        ck_assert_uint_eq(seen.guarded, strcmp(cases[i].path, "/inside") != 0);
        ck_assert_uint_eq(seen.finished, 1 + cases[i].children);
        ck_assert_uint_eq(server.worker.counters->requests, 1);
        loopback_close(&server);
    }
}
END_TEST

static int open_request(const char *path)
{
    char head[128];
    int fd = loopback_connect(&server);

    snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    ck_assert_int_gt(send(fd, head, strlen(head), MSG_NOSIGNAL), 0);
    for (int i = 0; i < 1000 && !seen.pending; i++)
        loopback_turn(&server, 1);
    ck_assert_ptr_nonnull(seen.pending);
    return fd;
}

static void leave(int fd)
{
    struct linger now = {.l_onoff = 1};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(fd);
    for (int i = 0; i < 1000 && server.worker.connections; i++)
        loopback_turn(&server, 1);
    ck_assert_uint_eq(server.worker.connections, 0);
}

static int receive_status(int fd)
{
    char text[4096] = "";
    ssize_t length = -1;

    for (int i = 0; i < 1000 && length <= 0; i++) {
        loopback_turn(&server, 1);
        length = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
    }
    ck_assert_int_gt(length, 12);
    return atoi(text + 9);
}

START_TEST(subrequest_may_be_pending)
{
    int fd;

    set_up();
    fd = open_request("/sub/later");
    ck_assert_uint_eq(seen.notified, 0);
    seen.pending->response.status = 204;
    exchange_resume(seen.pending, OUTCOME_RESPONDED);
    ck_assert_int_eq(receive_status(fd), 200);
    ck_assert_uint_eq(seen.notified, 1);
    ck_assert_uint_eq(seen.finished, 2);
    close(fd);
    loopback_close(&server);
}
END_TEST

/* The client or the worker ends the parent: both exchanges are released, and the owner of the child is not called. */
START_TEST(subrequest_ends_with_its_parent)
{
    static const char *const paths[] = {"/sub/later", "/sub/sub/later"};

    for (unsigned i = 0; i < 4; i++) {
        int fd;

        set_up();
        fd = open_request(paths[i / 2]);
        if (i % 2)
            connection_abort_all(&server.worker);
        leave(fd);
        ck_assert_uint_eq(seen.cancelled, 101 + 100 * (i / 2));
        ck_assert_uint_eq(seen.finished, 2 + i / 2);
        ck_assert_uint_eq(seen.notified, 0);
        loopback_close(&server);
    }
}
END_TEST

START_TEST(parent_ends_before_its_subrequest)
{
    int fd;

    set_up();
    fd = open_request("/throw/later");
    ck_assert_int_eq(receive_status(fd), 204);
    ck_assert_uint_eq(seen.finished, 1);
    ck_assert(!list_empty(&server.worker.orphaned_subrequests));
    close(fd);
    loopback_turn(&server, 20);
    ck_assert_uint_eq(server.worker.connections, 0);
    exchange_log_error(seen.pending, LOG_ERROR,
                       "still here"); /* the child keeps its own copy of the connection's address */
    ck_assert(loopback_logged(&server, "still here, client: 127.0.0.1"));
    seen.pending->response.status = 204;
    exchange_resume(seen.pending, OUTCOME_RESPONDED);
    loopback_turn(&server, 5);
    ck_assert(list_empty(&server.worker.orphaned_subrequests));
    ck_assert_uint_eq(seen.finished, 2);
    loopback_close(&server);
}
END_TEST

/* The same for a subrequest of the child; another connection has the memory of the client's one. */
START_TEST(descendants_keep_the_data_of_the_connection)
{
    int fd, other;

    set_up();
    fd = open_request("/hold/sub/later");
    seen.parent->response.status = 204;
    exchange_resume(seen.parent, OUTCOME_RESPONDED);
    ck_assert_int_eq(receive_status(fd), 204);
    close(fd);
    loopback_turn(&server, 20);
    ck_assert_uint_eq(server.worker.connections, 0);
    other = loopback_connect(&server);
    exchange_log_error(seen.pending, LOG_ERROR, "still here");
    ck_assert(loopback_logged(&server, "*1 still here, client: 127.0.0.1"));
    seen.pending->response.status = 204;
    exchange_resume(seen.pending, OUTCOME_RESPONDED);
    loopback_turn(&server, 5);
    ck_assert(list_empty(&server.worker.orphaned_subrequests));
    ck_assert_uint_eq(seen.finished, 3);
    close(other);
    loopback_close(&server);
}
END_TEST

START_TEST(state_is_passed_to_a_subrequest)
{
    const unsigned *state;
    int fd;

    set_up();
    fd = open_request("/pass");
    ck_assert_int_eq(receive_status(fd), 204);
    close(fd);
    loopback_turn(&server, 20);
    ck_assert_uint_eq(server.worker.connections, 0);
    state = exchange_state_found(seen.pending, &owner_module);
    ck_assert_ptr_nonnull(state);
    ck_assert_uint_eq(*state, 7);
    exchange_resume(seen.pending, OUTCOME_RESPONDED);
    loopback_turn(&server, 5);
    ck_assert(list_empty(&server.worker.orphaned_subrequests));
    loopback_close(&server);
}
END_TEST

START_TEST(subrequest_ends_with_the_worker)
{
    int fd;

    set_up();
    fd = open_request("/throw/later");
    ck_assert_int_eq(receive_status(fd), 204);
    close(fd);
    loopback_turn(&server, 20);
    connection_abort_all(&server.worker);
    ck_assert(list_empty(&server.worker.orphaned_subrequests));
    ck_assert_uint_eq(seen.cancelled, 1);
    ck_assert_uint_eq(seen.finished, 2);
    loopback_close(&server);
}
END_TEST

/* A short remaining body is read to its end, a long one up to a limit. */
START_TEST(rest_of_the_body_is_read)
{
    for (unsigned pieces = 0; pieces < 9; pieces += 4) {
        set_up();
        seen.pieces = pieces;
        loopback_request(&server, "GET /throw/long HTTP/1.1\nX-Test: yes");
        ck_assert_int_eq(server.status, 204);
        for (int i = 0; i < 20 && seen.body.wake; i++) {
            if (!list_empty(&server.worker.orphaned_subrequests))
                seen.body.wake(seen.body.owner);
            loopback_turn(&server, 1);
        }
        ck_assert(list_empty(&server.worker.orphaned_subrequests));
        ck_assert_uint_eq(seen.closed, 1);
        ck_assert_uint_eq(seen.pieces, pieces > 4 ? pieces - 4 : 0);
        loopback_close(&server);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        subrequest_is_routed, subrequest_may_be_pending, subrequest_ends_with_its_parent,
        parent_ends_before_its_subrequest, descendants_keep_the_data_of_the_connection,
        state_is_passed_to_a_subrequest, subrequest_ends_with_the_worker, rest_of_the_body_is_read, NULL,
    };

    return loopback_run("subrequest", tests);
}
