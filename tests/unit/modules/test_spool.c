#include "spool_fixture.h"

#include "base/limits.h"

#include <dirent.h>
#include <signal.h>

static unsigned count_entries(const char *path)
{
    DIR *entries = opendir(path);
    unsigned count = 0;

    ck_assert_ptr_nonnull(entries);
    while (readdir(entries))
        count++;
    closedir(entries);
    return count;
}

START_TEST(small_body_stays_in_memory)
{
    struct spool_settings settings = default_settings();

    open_spool(&settings);
    ck_assert_int_eq(read_chunk(CHUNK_BYTES, 100), 0);
    append_bytes(999);
    ck_assert(!spool_full(spool));
    ck_assert_int_eq(read_chunk(CHUNK_BYTES | CHUNK_FILE, 100), 1);
    ck_assert_int_eq(chunk.kind, CHUNK_BYTES);
    read_all(CHUNK_BYTES | CHUNK_FILE);
    ck_assert_uint_eq(submitted_count, 0);
    close_spool();
}
END_TEST

START_TEST(large_body_goes_to_an_unnamed_file)
{
    struct spool_settings settings = default_settings();
    unsigned before = count_entries("/proc/self/fd");

    open_spool(&settings);
    append_bytes(5000);
    ck_assert(spool_full(spool));
    ck_assert_int_eq(read_chunk(CHUNK_BYTES, 100), -EAGAIN);
    run_all();
    ck_assert_uint_gt(moves, 0);
    ck_assert(!spool_streams(spool));
    ck_assert_uint_eq(count_entries(directory), 2);
    ck_assert_int_eq(read_chunk(CHUNK_BYTES | CHUNK_FILE, 100), 1);
    ck_assert_int_eq(chunk.kind, CHUNK_FILE);
    ck_assert_uint_eq(chunk.file.length, 5000);
    read_all(CHUNK_BYTES | CHUNK_FILE);
    append_bytes(10);
    ck_assert_int_eq(read_chunk(CHUNK_BYTES | CHUNK_FILE, 100), 1);
    ck_assert_int_eq(chunk.kind, CHUNK_BYTES);
    read_all(CHUNK_BYTES);
    close_spool();
    ck_assert_uint_eq(count_entries("/proc/self/fd"), before);
    ck_assert_uint_eq(failures, 0);
}
END_TEST

/* For any order of adding, taking and writing to the file, the owner gets the bytes unchanged. */
START_TEST(bytes_stay_in_order)
{
    unsigned state = 1;

    for (unsigned round = 0; round < 400; round++) {
        struct spool_settings settings = default_settings();

        settings.file_max = round % 4 == 0 ? 7000 : 1 << 20;
        open_spool(&settings);
        for (unsigned step = 0; step < 300; step++) {
            state = state * 1103515245u + 12345u;
            cold = state >> 29 & 1;
            if ((state >> 16) % 3 == 0 && !spool_full(spool))
                append_bytes((state >> 8) % 1500 + 1);
            else if ((state >> 16) % 3 == 1 && submitted_count > 0)
                run_first_op();
            else
                (void)read_chunk((state >> 20) % 2 ? CHUNK_BYTES : CHUNK_BYTES | CHUNK_FILE, (state >> 8) % 900 + 1);
        }
        if (round % 2)
            read_all(round % 3 ? CHUNK_BYTES : CHUNK_BYTES | CHUNK_FILE);
        close_spool();
        ck_assert_uint_eq(failures, 0);
    }
}
END_TEST

START_TEST(buffered_body_is_read_again)
{
    for (size_t size = 1; size < 9000; size += 617) {
        struct spool_settings settings = default_settings();

        settings.keeps = true;
        open_spool(&settings);
        while (given < size) {
            append_bytes(size - given < 400 ? size - (size_t)given : 400);
            run_all();
        }
        for (unsigned i = 0; i < 3; i++) {
            cold = i == 1;
            spool_rewind(spool);
            taken = 0;
            read_all(CHUNK_BYTES);
        }
        spool_rewind(spool);
        taken = 0;
        ck_assert_int_eq(read_chunk(CHUNK_BYTES, 10), 1);
        chunk = (struct chunk){.kind = CHUNK_BYTES};
        close_spool();
    }
}
END_TEST

/* A copy gets all bytes, during any operation, and whether or not the original still exists. */
START_TEST(copy_has_all_bytes)
{
    static const struct spool_events events = {moved, failed};

    for (size_t size = 0; size < 4000; size += 411) {
        for (unsigned run_before = 0; run_before < 2; run_before++) {
            struct spool_settings settings = default_settings();
            struct spool *first, *copy = NULL;

            settings.keeps = true;
            open_spool(&settings);
            append_bytes(size);
            if (run_before)
                run_all();
            ck_assert_int_eq(spool_copy(spool, &events, &spool, &copy), 0);
            ck_assert_uint_eq(spool_length(copy), size);
            first = spool;
            spool = copy;
            read_all(CHUNK_BYTES | (run_before ? CHUNK_FILE : 0));
            taken = 0;
            spool = first;
            read_all(CHUNK_BYTES);
            close_spool();
            spool = copy;
            owned = true;
            taken = 0;
            spool_rewind(copy);
            read_all(CHUNK_BYTES);
            close_spool();
            ck_assert_uint_eq(failures, 0);
        }
    }
}
END_TEST

START_TEST(copy_fails_without_descriptors)
{
    static const struct spool_events events = {moved, failed};
    struct spool_settings settings = default_settings();
    struct rlimit before, none;
    struct spool *copy = NULL;
    int result;

    settings.keeps = true;
    open_spool(&settings);
    append_bytes(3000);
    run_all();
    getrlimit(RLIMIT_NOFILE, &before);
    none = (struct rlimit){0, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    result = spool_copy(spool, &events, &spool, &copy);
    setrlimit(RLIMIT_NOFILE, &before);
    ck_assert_int_lt(result, 0);
    ck_assert_ptr_null(copy);
    read_all(CHUNK_BYTES);
    close_spool();
}
END_TEST

START_TEST(unwritable_directory_loses_no_bytes)
{
    struct spool_settings settings = default_settings();

    settings.directory = STR("/nowhere/at/all");
    settings.keeps = true;
    open_spool(&settings);
    append_bytes(1200);
    run_all();
    ck_assert_uint_eq(failures, 1);
    ck_assert_int_eq(failed_with, -ENOENT);
    ck_assert(spool_full(spool));
    ck_assert(spool_streams(spool));
    append_bytes(500); /* the spool counts as full, and still accepts these bytes */
    ck_assert_uint_eq(submitted_count, 0);
    read_all(CHUNK_BYTES | CHUNK_FILE);
    append_bytes(1000);
    read_all(CHUNK_BYTES);
    ck_assert_uint_eq(failures, 1);
    close_spool();
}
END_TEST

START_TEST(full_disk_loses_no_bytes)
{
    struct spool_settings settings = default_settings();

    signal(SIGXFSZ, SIG_IGN);
    disk = 2500;
    open_spool(&settings);
    append_bytes(900);
    append_bytes(900);
    run_first_op();
    ck_assert_uint_eq(failures, 0);
    append_bytes(1500); /* the file has room for 700 of them */
    run_first_op();
    ck_assert_uint_eq(failures, 0);
    append_bytes(900);
    run_all();
    ck_assert_uint_eq(failures, 1);
    ck_assert_int_eq(failed_with, -EFBIG);
    ck_assert(spool_streams(spool));
    ck_assert_int_eq(read_chunk(CHUNK_BYTES | CHUNK_FILE, 100), 1);
    ck_assert_uint_eq(chunk.file.length, 2500);
    read_all(CHUNK_BYTES);
    close_spool();
}
END_TEST

START_TEST(file_size_is_limited)
{
    struct spool_settings settings = default_settings();

    settings.file_max = 1500;
    open_spool(&settings);
    append_bytes(1200);
    run_all();
    append_bytes(1200);
    run_all();
    ck_assert(!spool_streams(spool));
    append_bytes(500);
    ck_assert_uint_eq(submitted_count, 0);
    ck_assert(spool_full(spool));
    ck_assert(spool_streams(spool));
    ck_assert_int_eq(read_chunk(CHUNK_BYTES | CHUNK_FILE, 100), 1);
    ck_assert_uint_eq(chunk.file.length, 1500);
    read_all(CHUNK_BYTES);
    ck_assert_uint_eq(failures, 0);
    close_spool();
    settings.file_max = 0;
    open_spool(&settings);
    append_bytes(5000);
    ck_assert_uint_eq(submitted_count, 0);
    ck_assert(spool_streams(spool));
    read_all(CHUNK_BYTES);
    close_spool();
}
END_TEST

/* If the helpers' queue is full, the spool acts as if the disk were full. */
START_TEST(helper_queue_is_full)
{
    struct spool_settings settings = default_settings();
    unsigned before = count_entries("/proc/self/fd");

    open_spool(&settings);
    append_bytes(1200);
    run_all();
    busy = true;
    append_bytes(1200);
    run_all();
    ck_assert_uint_eq(failures, 1);
    busy = false;
    read_all(CHUNK_BYTES);
    busy = true;
    close_spool();
    ck_assert_uint_eq(count_entries("/proc/self/fd"), before);
}
END_TEST

/* A spool that is closed, at any moment, makes no further call of the owner and leaves no file. */
START_TEST(closed_at_any_moment)
{
    struct spool_settings settings = default_settings();
    unsigned before = count_entries("/proc/self/fd");

    for (unsigned i = 0; i < 64; i++) {
        open_spool(&settings);
        if (i & 1)
            append_bytes(1500);
        if (i & 2)
            run_all();
        if (i & 4)
            append_bytes(1500);
        cold = i & 8;
        if (i & 16)
            (void)read_chunk(CHUNK_BYTES, 100);
        if (i & 32)
            spool_wake(spool);
        close_spool();
        ck_assert_uint_eq(count_entries("/proc/self/fd"), before);
    }
    spool_close(NULL);
}
END_TEST

/* Bytes of a read that was in progress before the rewind are not returned after it. */
START_TEST(rewound_during_a_read)
{
    for (unsigned i = 0; i < 2; i++) {
        struct spool_settings settings = default_settings();

        settings.keeps = true;
        open_spool(&settings);
        while (given < 3 * LIMIT_FILE_WINDOW) {
            append_bytes(4000);
            run_all();
        }
        while (taken < LIMIT_FILE_WINDOW) {
            ck_assert_int_eq(read_chunk(CHUNK_BYTES, LIMIT_FILE_WINDOW), 1);
            check_returned_chunk();
        }
        cold = true;
        ck_assert_int_eq(read_chunk(CHUNK_BYTES, 100), -EAGAIN);
        spool_rewind(spool);
        taken = 0;
        busy = i; /* a failure of that read has no effect, either */
        run_first_op();
        busy = false;
        ck_assert_uint_gt(moves, 0);
        read_all(CHUNK_BYTES);
        ck_assert_uint_eq(taken, given);
        close_spool();
    }
}
END_TEST

START_TEST(wake_is_deferred_and_merged)
{
    struct spool_settings settings = default_settings();

    open_spool(&settings);
    spool_wake(spool);
    spool_wake(spool);
    ck_assert_uint_eq(moves, 0);
    run_all();
    ck_assert_uint_eq(moves, 1);
    close_spool();
}
END_TEST

/* A truncated file is reported as a read error. */
START_TEST(unreadable_file_is_an_error)
{
    for (unsigned i = 0; i < 2; i++) {
        struct spool_settings settings = default_settings();
        int fd;

        open_spool(&settings);
        append_bytes(1500);
        run_all();
        ck_assert_int_eq(read_chunk(CHUNK_FILE, 100), 1);
        fd = chunk.file.fd;
        chunk = (struct chunk){.kind = CHUNK_BYTES};
        ck_assert_int_eq(ftruncate(fd, 0), 0);
        spool_rewind(spool);
        cold = i;
        if (cold) {
            ck_assert_int_eq(read_chunk(CHUNK_BYTES, 100), -EAGAIN);
            run_all();
        }
        ck_assert_int_eq(read_chunk(CHUNK_BYTES, 100), -EIO);
        close_spool();
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        small_body_stays_in_memory, large_body_goes_to_an_unnamed_file, bytes_stay_in_order,
        buffered_body_is_read_again,
        copy_has_all_bytes, copy_fails_without_descriptors, unwritable_directory_loses_no_bytes,
        full_disk_loses_no_bytes, file_size_is_limited, helper_queue_is_full, closed_at_any_moment,
        rewound_during_a_read, wake_is_deferred_and_merged, unreadable_file_is_an_error,
    };
    int result;

    if (!mkdtemp(directory))
        return EXIT_FAILURE;
    result = suite_run("spool", tests, COUNT(tests));
    rmdir(directory);
    return result;
}
