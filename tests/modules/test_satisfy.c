/*
 * `satisfy` with two access modules. The query string selects their results, which they give at once or later. All or
 * any must allow the request.
 */
#include "loopback.h"

#include "server/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct loopback server;

static struct exchange *pending; /* the exchange whose module returned PENDING */

/* The letter of the query string selects the result: Pass, Allow, Deny, User (401), Break (500), Later. */
static enum outcome outcome_of_letter(struct exchange *x, char letter, const char *name)
{
    switch (letter) {
    case 'A':
        return OUTCOME_ALLOWED;
    case 'D':
        return exchange_error_response(x, 403);
    case 'B':
        return exchange_error_response(x, 500);
    case 'U':
        exchange_error_response(x, 401);
        ck_assert_int_eq(
            headers_add(&x->response.headers, &x->arena, STR("WWW-Authenticate"), str_from(name)), 0);
        return OUTCOME_RESPONDED;
    case 'L':
        pending = x;
        return OUTCOME_PENDING;
    default:
        return OUTCOME_DECLINED;
    }
}

static enum outcome gate_handler(struct exchange *x, const void *conf, void *state)
{
    return outcome_of_letter(x, x->request.query.length == 2 ? x->request.query.data[0] : 'P', "gate");
}

static enum outcome fence_handler(struct exchange *x, const void *conf, void *state)
{
    return outcome_of_letter(x, x->request.query.length == 2 ? x->request.query.data[1] : 'P', "fence");
}

static const struct module gate = {.name = "gate", .handler = gate_handler, .access = true};
static const struct module fence = {.name = "fence", .handler = fence_handler, .access = true};

static enum outcome last_handler(struct exchange *x, const void *conf, void *state)
{
    x->response.status = 204;
    return OUTCOME_RESPONDED;
}

/* Not an access module, so its OUTCOME_ALLOWED has no effect. */
static enum outcome first_handler(struct exchange *x, const void *conf, void *state)
{
    return OUTCOME_ALLOWED;
}

static const struct module first = {.name = "first", .handler = first_handler};
static const struct module last = {.name = "last", .handler = last_handler};
const struct module *const module_table[] = {&first, &gate, &fence, &last, NULL};

static const struct {
    const char *satisfy, *expected;
    int status;
    const char *demand; /* WWW-Authenticate */
} accesses[] = {
    {"all", "PP", 204, ""},     {"all", "AA", 204, ""},     {"all", "AD", 403, ""},
    {"all", "DA", 403, ""},     {"all", "UD", 401, "gate"}, {"all", "AU", 401, "fence"},
    {"all", "BA", 500, ""},     {"any", "PP", 204, ""},     {"any", "AD", 204, ""},
    {"any", "DA", 204, ""},     {"any", "UA", 204, ""},     {"any", "PA", 204, ""},
    {"any", "PD", 403, ""},     {"any", "DD", 403, ""},     {"any", "DU", 401, "fence"},
    {"any", "UD", 401, "gate"}, {"any", "UU", 401, "gate"}, {"any", "DB", 500, ""},
    {"any", "AB", 204, ""},
};

static void open_server(const char *satisfy)
{
    char configuration[128];

    snprintf(configuration, sizeof configuration, "http: {server: {listen: 8080, satisfy: %s}}", satisfy);
    loopback_open(&server, configuration);
}

START_TEST(all_or_any_must_allow)
{
    char head[64];

    for (size_t i = 0; i < sizeof accesses / sizeof accesses[0]; i++) {
        open_server(accesses[i].satisfy);
        snprintf(head, sizeof head, "GET /?%s HTTP/1.1", accesses[i].expected);
        loopback_request(&server, head);
        ck_assert_msg(server.status == accesses[i].status, "%s of %s: %d", accesses[i].satisfy,
                      accesses[i].expected, server.status);
        ck_assert_text(loopback_field(&server, "WWW-Authenticate"), accesses[i].demand);
        loopback_close(&server);
    }
}
END_TEST

static const struct {
    const char *satisfy, *expected;
    int resumed_with; /* the pending module resumes with this status, or with OUTCOME_ALLOWED for 0 */
    int status;
} later[] = {
    {"any", "LA", 403, 204}, {"any", "LD", 0, 204}, {"any", "DL", 0, 204}, {"any", "DL", 401, 401},
    {"all", "LA", 403, 403}, {"all", "LD", 0, 403}, {"all", "AL", 0, 204},
};

static void check_resumed(size_t i)
{
    char text[4096];
    ssize_t length = -1;
    int fd;

    pending = NULL;
    open_server(later[i].satisfy);
    fd = loopback_connect(&server);
    snprintf(text, sizeof text, "GET /?%s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", later[i].expected);
    ck_assert_int_gt(send(fd, text, strlen(text), MSG_NOSIGNAL), 0);
    for (int turns = 0; turns < 1000 && !pending; turns++)
        loopback_turn(&server, 1);
    ck_assert_ptr_nonnull(pending);
    if (later[i].resumed_with)
        exchange_error_response(pending, later[i].resumed_with);
    exchange_resume(pending, later[i].resumed_with ? OUTCOME_RESPONDED : OUTCOME_ALLOWED);
    for (int turns = 0; turns < 1000 && length <= 0; turns++) {
        loopback_turn(&server, 1);
        length = recv(fd, text, sizeof text - 1, MSG_DONTWAIT);
    }
    ck_assert_int_gt(length, 12);
    text[length] = '\0';
    ck_assert_msg(atoi(text + 9) == later[i].status, "%s of %s: %.12s", later[i].satisfy, later[i].expected,
                  text);
    close(fd);
    loopback_close(&server);
}

START_TEST(access_modules_may_be_pending)
{
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        check_resumed(i);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {all_or_any_must_allow, access_modules_may_be_pending, NULL};

    return loopback_run("satisfy", tests);
}
