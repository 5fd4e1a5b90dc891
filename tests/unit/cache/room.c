#include "room.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

static unsigned counted;

static int count_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    counted += kind == FTW_F;
    return 0;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    return remove(path);
}

void room_open(struct room *room)
{
    snprintf(room->path, sizeof(room->path), "/tmp/sluice-cache-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(room->path));
    room->directory = (struct cache_directory){.fd = open(room->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                               .levels = {1, 2}};
    ck_assert_int_ge(room->directory.fd, 0);
}

void room_close(struct room *room)
{
    close(room->directory.fd);
    ck_assert_int_eq(nftw(room->path, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

unsigned room_count(const struct room *room)
{
    counted = 0;
    ck_assert_int_eq(nftw(room->path, count_one, 8, FTW_PHYS), 0);
    return counted;
}

struct cache_id room_id(unsigned char hash, uint64_t sequence)
{
    return (struct cache_id){.hash = {{hash, 1, 2, 3}}, .sequence = sequence};
}

uint64_t room_store(struct room *room, const struct cache_id *id, const char *key, const char *head, struct str body)
{
    struct cache_making making = {.directory = &room->directory, .id = *id, .fd = -1};
    uint64_t size = 0;

    ck_assert_int_eq(cache_file_create(&making), 0);
    ck_assert_int_eq(cache_file_write(&making, body), 0);
    ck_assert_int_eq(cache_file_complete(&making, str_from(key), str_from(head), &size), 0);
    ck_assert_int_eq(making.fd, -1);
    return size;
}

int room_run(const char *name, const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *cases = tcase_create(name);
    SRunner *runner;
    int failed;

    for (size_t i = 0; i < count; i++)
        tcase_add_test(cases, tests[i]);
    tcase_set_timeout(cases, 60);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
