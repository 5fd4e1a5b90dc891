/* How a file span is divided into calls of sendfile(2), counted by a wrapper. */
#include "fixture.h"

#include "base/limits.h"

#include "../runner.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

enum { TURNS = 4 };

static unsigned calls;
static size_t longest;

ssize_t __real_sendfile64(int to, int from, off64_t *at, size_t length);
ssize_t __wrap_sendfile64(int to, int from, off64_t *at, size_t length);

ssize_t __wrap_sendfile64(int to, int from, off64_t *at, size_t length)
{
    calls++;
    if (length > longest)
        longest = length;
    return __real_sendfile64(to, from, at, length);
}

static const struct {
    bool small_send_buffer;
    unsigned calls;
    size_t longest;
} cases[] = {
    {false, TURNS + 1, LIMIT_ITERATION_FILE_BYTES},
    {true, TURNS * LIMIT_ITERATION_FILE_BYTES / LIMIT_RECORD_PLAINTEXT + 1, LIMIT_RECORD_PLAINTEXT},
};

/* Returns false on a file system without RWF_NOWAIT (tmpfs), where the page cache is not checked. */
static bool has_page_cache_check(int file)
{
    char byte;

    return preadv2(file, &(struct iovec){&byte, 1}, 1, 0, RWF_NOWAIT) >= 0 || errno != EOPNOTSUPP;
}

/*
 * Returns the number of calls if the page cache is checked: one per LIMIT_CACHED_WINDOW bytes, two more because the
 * first windows are smaller, and one for the last bytes.
 */
static unsigned windows(void)
{
    return TURNS * LIMIT_ITERATION_FILE_BYTES / LIMIT_CACHED_WINDOW + 2 + 1;
}

/*
 * On a kTLS socket with few segments each call has the size of a record. On any other socket one call has the whole
 * share of an iteration.
 */
START_TEST(record_sized_calls_only_on_narrow_sockets)
{
    const size_t length = TURNS * LIMIT_ITERATION_FILE_BYTES + 1000;
    int file = pattern_file(length), sink = open("/dev/null", O_WRONLY | O_CLOEXEC), row = _i % 2;
    bool checked = !cases[row].small_send_buffer && has_page_cache_check(file);
    struct loop loop;
    struct probe probe;

    if (!open_loop(&loop, _i / 2))
        return;
    probe_init(&probe, &loop);
    calls = 0;
    longest = 0;
    loop_sendfile(&loop, &probe.op, sink, file, 0, length, cases[row].small_send_buffer);
    run_until_done(&probe, 1);
    ck_assert_int_eq(probe.result, (int)length);
    ck_assert_uint_eq(calls, checked ? windows() : cases[row].calls);
    ck_assert_uint_eq(longest, checked ? LIMIT_CACHED_WINDOW : cases[row].longest);
    close(file);
    loop_close_fd(&loop, sink);
    loop_close(&loop);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, record_sized_calls_only_on_narrow_sockets, 0, 2 * kernel_backend_count());
}

int main(void)
{
    return run_suite("sendfile", add_tests);
}
