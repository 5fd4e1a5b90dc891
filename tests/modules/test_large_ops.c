/*
 * What a large op of the loop resumes or wakes: continued at once, so that it counts to the time of that op (rule 7 of
 * io/loop.h).
 */
#include "loopback.h"

#include "server/connection.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct loopback server;
static struct exchange *pending; /* its module returned PENDING */
static unsigned filtered;

static enum outcome pending_handler(struct exchange *x, const void *conf, void *state)
{
    pending = x;
    return OUTCOME_PENDING;
}

static int count_filtered(struct exchange *x, const void *conf)
{
    filtered++;
    return 0;
}

static const struct module module = {.name = "pending", .handler = pending_handler, .filter = count_filtered};
const struct module *const module_table[] = {&module, NULL};

static void first_socket_has_room(struct op *op, int result)
{
    pending->response.status = 204;
    exchange_resume(pending, OUTCOME_RESPONDED);
    ck_assert_uint_eq(filtered, 0);
}

static void second_socket_has_room(struct op *op, int result)
{
    ck_assert_uint_eq(filtered, 1);
}

START_TEST(large_ops_continue_what_they_resume)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    struct op first = {.done = first_socket_has_room}, second = {.done = second_socket_has_room};
    int fd, pair[2];

    loopback_make_directory(&server);
    loopback_open(&server, "http: {server: {listen: 8080}}");
    fd = loopback_connect(&server);
    ck_assert_int_eq(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
    while (!pending)
        loopback_turn(&server, 1);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    loop_poll(&server.worker.loop, &first, pair[0], POLLOUT);
    loop_poll(&server.worker.loop, &second, pair[1], POLLOUT);
    while (!op_idle(&second))
        loopback_turn(&server, 1);
    loop_close_fd(&server.worker.loop, pair[0]);
    loop_close_fd(&server.worker.loop, pair[1]);
    close(fd);
    while (server.worker.connections > 0)
        loopback_turn(&server, 1);
    loopback_close(&server);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {large_ops_continue_what_they_resume, NULL};

    return loopback_run("large_ops", tests);
}
