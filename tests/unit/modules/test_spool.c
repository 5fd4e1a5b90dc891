#include "spool_bed.h"

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

START_TEST(little_stays_in_memory)
{
    struct spool_settings settings = plan();

    open_spool(&settings);
    ck_assert_int_eq(take(CHUNK_BYTES, 100), 0);
    give(999);
    ck_assert(!spool_full(spool));
    ck_assert_int_eq(take(CHUNK_BYTES | CHUNK_FILE, 100), 1);
    ck_assert_int_eq(lent.kind, CHUNK_BYTES);
    take_all(CHUNK_BYTES | CHUNK_FILE);
    ck_assert_uint_eq(asked_count, 0);
    close_spool();
}
END_TEST

START_TEST(much_goes_to_a_file_without_a_name)
{
    struct spool_settings settings = plan();
    unsigned before = count_entries("/proc/self/fd");

    open_spool(&settings);
    give(5000);
    ck_assert(spool_full(spool));
    ck_assert_int_eq(take(CHUNK_BYTES, 100), -EAGAIN);
    run_all();
    ck_assert_uint_gt(moves, 0);
    ck_assert(!spool_streams(spool));
    ck_assert_uint_eq(count_entries(folder), 2);
    ck_assert_int_eq(take(CHUNK_BYTES | CHUNK_FILE, 100), 1);
    ck_assert_int_eq(lent.kind, CHUNK_FILE);
    ck_assert_uint_eq(lent.file.length, 5000);
    take_all(CHUNK_BYTES | CHUNK_FILE);
    give(10);
    ck_assert_int_eq(take(CHUNK_BYTES | CHUNK_FILE, 100), 1);
    ck_assert_int_eq(lent.kind, CHUNK_BYTES);
    take_all(CHUNK_BYTES);
    close_spool();
    ck_assert_uint_eq(count_entries("/proc/self/fd"), before);
    ck_assert_uint_eq(failures, 0);
}
END_TEST

/* Whatever the order in which bytes come, go, and are written: they are the same bytes. */
START_TEST(any_order_keeps_the_order)
{
    unsigned state = 1;

    for (unsigned round = 0; round < 400; round++) {
        struct spool_settings settings = plan();

        settings.file_max = round % 4 == 0 ? 7000 : 1 << 20;
        open_spool(&settings);
        for (unsigned step = 0; step < 300; step++) {
            state = state * 1103515245u + 12345u;
            cold = state >> 29 & 1;
            if ((state >> 16) % 3 == 0 && !spool_full(spool))
                give((state >> 8) % 1500 + 1);
            else if ((state >> 16) % 3 == 1 && asked_count > 0)
                run();
            else
                (void)take((state >> 20) % 2 ? CHUNK_BYTES : CHUNK_BYTES | CHUNK_FILE, (state >> 8) % 900 + 1);
        }
        if (round % 2)
            take_all(round % 3 ? CHUNK_BYTES : CHUNK_BYTES | CHUNK_FILE);
        close_spool();
        ck_assert_uint_eq(failures, 0);
    }
}
END_TEST

START_TEST(what_is_kept_is_taken_again)
{
    for (size_t size = 1; size < 9000; size += 617) {
        struct spool_settings settings = plan();

        settings.keeps = true;
        open_spool(&settings);
        while (given < size) {
            give(size - given < 400 ? size - (size_t)given : 400);
            run_all();
        }
        for (unsigned i = 0; i < 3; i++) {
            cold = i == 1;
            spool_rewind(spool);
            taken = 0;
            take_all(CHUNK_BYTES);
        }
        spool_rewind(spool);
        taken = 0;
        ck_assert_int_eq(take(CHUNK_BYTES, 10), 1);
        lent = (struct chunk){.kind = CHUNK_BYTES};
        close_spool();
    }
}
END_TEST

/* The other one is taken whole, whatever is under way, and whether or not the first is still there. */
START_TEST(a_copy_has_all_of_it)
{
    static const struct spool_events events = {moved, failed};

    for (size_t size = 0; size < 4000; size += 411) {
        for (unsigned run_before = 0; run_before < 2; run_before++) {
            struct spool_settings settings = plan();
            struct spool *first, *copy = NULL;

            settings.keeps = true;
            open_spool(&settings);
            give(size);
            if (run_before)
                run_all();
            ck_assert_int_eq(spool_copy(spool, &events, &spool, &copy), 0);
            ck_assert_uint_eq(spool_length(copy), size);
            first = spool;
            spool = copy;
            take_all(CHUNK_BYTES | (run_before ? CHUNK_FILE : 0));
            taken = 0;
            spool = first;
            take_all(CHUNK_BYTES);
            close_spool();
            spool = copy;
            owned = true;
            taken = 0;
            spool_rewind(copy);
            take_all(CHUNK_BYTES);
            close_spool();
            ck_assert_uint_eq(failures, 0);
        }
    }
}
END_TEST

START_TEST(a_copy_without_a_descriptor_is_none)
{
    static const struct spool_events events = {moved, failed};
    struct spool_settings settings = plan();
    struct rlimit before, none;
    struct spool *copy = NULL;
    int result;

    settings.keeps = true;
    open_spool(&settings);
    give(3000);
    run_all();
    getrlimit(RLIMIT_NOFILE, &before);
    none = (struct rlimit){0, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    result = spool_copy(spool, &events, &spool, &copy);
    setrlimit(RLIMIT_NOFILE, &before);
    ck_assert_int_lt(result, 0);
    ck_assert_ptr_null(copy);
    take_all(CHUNK_BYTES);
    close_spool();
}
END_TEST

START_TEST(a_folder_that_cannot_be_written_loses_nothing)
{
    struct spool_settings settings = plan();

    settings.folder = STR("/nowhere/at/all");
    settings.keeps = true;
    open_spool(&settings);
    give(1200);
    run_all();
    ck_assert_uint_eq(failures, 1);
    ck_assert_int_eq(failed_with, -ENOENT);
    ck_assert(spool_full(spool));
    ck_assert(spool_streams(spool));
    give(500); /* it was full, but takes it */
    ck_assert_uint_eq(asked_count, 0);
    take_all(CHUNK_BYTES | CHUNK_FILE);
    give(1000);
    take_all(CHUNK_BYTES);
    ck_assert_uint_eq(failures, 1);
    close_spool();
}
END_TEST

START_TEST(a_full_disk_loses_nothing)
{
    struct spool_settings settings = plan();

    signal(SIGXFSZ, SIG_IGN);
    disk = 2500;
    open_spool(&settings);
    give(900);
    give(900);
    run();
    ck_assert_uint_eq(failures, 0);
    give(1500); /* 700 of them fit */
    run();
    ck_assert_uint_eq(failures, 0);
    give(900);
    run_all();
    ck_assert_uint_eq(failures, 1);
    ck_assert_int_eq(failed_with, -EFBIG);
    ck_assert(spool_streams(spool));
    ck_assert_int_eq(take(CHUNK_BYTES | CHUNK_FILE, 100), 1);
    ck_assert_uint_eq(lent.file.length, 2500);
    take_all(CHUNK_BYTES);
    close_spool();
}
END_TEST

START_TEST(the_file_has_an_end)
{
    struct spool_settings settings = plan();

    settings.file_max = 1500;
    open_spool(&settings);
    give(1200);
    run_all();
    give(1200);
    run_all();
    ck_assert(!spool_streams(spool));
    give(500);
    ck_assert_uint_eq(asked_count, 0);
    ck_assert(spool_full(spool));
    ck_assert(spool_streams(spool));
    ck_assert_int_eq(take(CHUNK_BYTES | CHUNK_FILE, 100), 1);
    ck_assert_uint_eq(lent.file.length, 1500);
    take_all(CHUNK_BYTES);
    ck_assert_uint_eq(failures, 0);
    close_spool();
    settings.file_max = 0;
    open_spool(&settings);
    give(5000);
    ck_assert_uint_eq(asked_count, 0);
    ck_assert(spool_streams(spool));
    take_all(CHUNK_BYTES);
    close_spool();
}
END_TEST

/* A helper that has no time is as good as a disk that is full. */
START_TEST(too_many_helpers_asked)
{
    struct spool_settings settings = plan();
    unsigned before = count_entries("/proc/self/fd");

    open_spool(&settings);
    give(1200);
    run_all();
    busy = true;
    give(1200);
    run_all();
    ck_assert_uint_eq(failures, 1);
    busy = false;
    take_all(CHUNK_BYTES);
    busy = true;
    close_spool();
    ck_assert_uint_eq(count_entries("/proc/self/fd"), before);
}
END_TEST

/* Let go of at every moment: nothing is told any more, and nothing is left. */
START_TEST(it_may_be_closed_at_any_time)
{
    struct spool_settings settings = plan();
    unsigned before = count_entries("/proc/self/fd");

    for (unsigned i = 0; i < 64; i++) {
        open_spool(&settings);
        if (i & 1)
            give(1500);
        if (i & 2)
            run_all();
        if (i & 4)
            give(1500);
        cold = i & 8;
        if (i & 16)
            (void)take(CHUNK_BYTES, 100);
        if (i & 32)
            spool_wake(spool);
        close_spool();
        ck_assert_uint_eq(count_entries("/proc/self/fd"), before);
    }
    spool_close(NULL);
}
END_TEST

/* What was being fetched when it was taken from the beginning again is none of what comes first. */
START_TEST(it_may_be_rewound_while_the_file_is_read)
{
    for (unsigned i = 0; i < 2; i++) {
        struct spool_settings settings = plan();

        settings.keeps = true;
        open_spool(&settings);
        while (given < 3 * LIMIT_FILE_WINDOW) {
            give(4000);
            run_all();
        }
        while (taken < LIMIT_FILE_WINDOW) {
            ck_assert_int_eq(take(CHUNK_BYTES, LIMIT_FILE_WINDOW), 1);
            look_at_lent();
        }
        cold = true;
        ck_assert_int_eq(take(CHUNK_BYTES, 100), -EAGAIN);
        spool_rewind(spool);
        taken = 0;
        busy = i; /* nor does its failure count */
        run();
        busy = false;
        ck_assert_uint_gt(moves, 0);
        take_all(CHUNK_BYTES);
        ck_assert_uint_eq(taken, given);
        close_spool();
    }
}
END_TEST

START_TEST(a_wake_is_told_later_and_once)
{
    struct spool_settings settings = plan();

    open_spool(&settings);
    spool_wake(spool);
    spool_wake(spool);
    ck_assert_uint_eq(moves, 0);
    run_all();
    ck_assert_uint_eq(moves, 1);
    close_spool();
}
END_TEST

/* A file that was cut from outside cannot be told from a broken disk. */
START_TEST(a_file_that_cannot_be_read_is_an_error)
{
    for (unsigned i = 0; i < 2; i++) {
        struct spool_settings settings = plan();
        int fd;

        open_spool(&settings);
        give(1500);
        run_all();
        ck_assert_int_eq(take(CHUNK_FILE, 100), 1);
        fd = lent.file.fd;
        lent = (struct chunk){.kind = CHUNK_BYTES};
        ck_assert_int_eq(ftruncate(fd, 0), 0);
        spool_rewind(spool);
        cold = i;
        if (cold) {
            ck_assert_int_eq(take(CHUNK_BYTES, 100), -EAGAIN);
            run_all();
        }
        ck_assert_int_eq(take(CHUNK_BYTES, 100), -EIO);
        close_spool();
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {little_stays_in_memory,
                                  much_goes_to_a_file_without_a_name,
                                  any_order_keeps_the_order,
                                  what_is_kept_is_taken_again,
                                  a_copy_has_all_of_it,
                                  a_copy_without_a_descriptor_is_none,
                                  a_folder_that_cannot_be_written_loses_nothing,
                                  a_full_disk_loses_nothing,
                                  the_file_has_an_end,
                                  too_many_helpers_asked,
                                  it_may_be_closed_at_any_time,
                                  it_may_be_rewound_while_the_file_is_read,
                                  a_wake_is_told_later_and_once,
                                  a_file_that_cannot_be_read_is_an_error};
    int result;

    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    result = suite_run("spool", tests, COUNT(tests));
    rmdir(folder);
    return result;
}
