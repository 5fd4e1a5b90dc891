/* The ring of the io_uring backend rejects operations that the backend does not use. */
#include "io/backends.h"
#include "io/loop.h"

#include "../runner.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

static struct loop loop;

/* The backend's state begins with its ring. */
static struct io_uring *ring_of_loop(void)
{
    struct log quiet = {.level = LOG_EMERG};
    int error = loop_open(&loop, "io_uring", &quiet);

    if (error < 0) {
        exit(skip_program(strerror(-error)));
    }
    return loop.backend_state;
}

/* Submits an entry and returns its result. */
static int result_of(struct io_uring *ring, struct io_uring_sqe *entry)
{
    struct io_uring_cqe *completion;
    int result;

    io_uring_sqe_set_data64(entry, 42);
    ck_assert_int_eq(io_uring_submit_and_wait(ring, 1), 1);
    ck_assert_int_eq(io_uring_peek_cqe(ring, &completion), 0);
    ck_assert_uint_eq(completion->user_data, 42);
    result = completion->res;
    io_uring_cqe_seen(ring, completion);
    return result;
}

START_TEST(other_operations_are_rejected)
{
    struct io_uring *ring = ring_of_loop();
    struct io_uring_sqe *entry = io_uring_get_sqe(ring);

    io_uring_prep_openat(entry, AT_FDCWD, "/etc/passwd", O_RDONLY, 0);
    ck_assert_int_eq(result_of(ring, entry), -EACCES);
    entry = io_uring_get_sqe(ring);
    io_uring_prep_socket(entry, AF_INET, SOCK_STREAM, 0, 0);
    ck_assert_int_eq(result_of(ring, entry), -EACCES);
    entry = io_uring_get_sqe(ring);
    io_uring_prep_nop(entry);
    ck_assert_int_eq(result_of(ring, entry), -EACCES);
    loop_close(&loop);
}
END_TEST

START_TEST(other_flags_are_rejected)
{
    struct io_uring *ring = ring_of_loop();
    struct io_uring_sqe *entry = io_uring_get_sqe(ring);

    io_uring_prep_poll_add(entry, 0, POLLIN);
    entry->flags |= IOSQE_ASYNC;
    ck_assert_int_eq(result_of(ring, entry), -EACCES);
    loop_close(&loop);
}
END_TEST

START_TEST(the_operations_in_use_are_permitted)
{
    struct io_uring *ring = ring_of_loop();
    struct io_uring_sqe *entry = io_uring_get_sqe(ring);
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    io_uring_prep_poll_add(entry, ends[1], POLLOUT);
    ck_assert_int_eq(result_of(ring, entry), POLLOUT);
    close(ends[0]);
    close(ends[1]);
    loop_close(&loop);
}
END_TEST

START_TEST(registrations_are_rejected)
{
    struct io_uring *ring = ring_of_loop();
    int fd = 0;

    ck_assert_int_eq(io_uring_register_files(ring, &fd, 1), -EACCES);
    loop_close(&loop);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        other_operations_are_rejected, other_flags_are_rejected, the_operations_in_use_are_permitted,
        registrations_are_rejected, NULL,
    };

    (void)ring_of_loop(); /* skips the tests where there is none */
    loop_close(&loop);
    return run_tests("io_uring", tests);
}
