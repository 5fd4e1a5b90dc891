#include "cache_fixture.h"

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

void cache_fixture_open(struct cache_fixture *fixture)
{
    snprintf(fixture->path, sizeof(fixture->path), "/tmp/sluice-cache-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(fixture->path));
    fixture->directory = (struct cache_directory){.fd = open(fixture->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                               .levels = {1, 2}};
    ck_assert_int_ge(fixture->directory.fd, 0);
}

void cache_fixture_close(struct cache_fixture *fixture)
{
    close(fixture->directory.fd);
    ck_assert_int_eq(nftw(fixture->path, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

unsigned cache_fixture_count(const struct cache_fixture *fixture)
{
    counted = 0;
    ck_assert_int_eq(nftw(fixture->path, count_one, 8, FTW_PHYS), 0);
    return counted;
}

struct cache_id cache_fixture_id(unsigned char hash, uint64_t sequence)
{
    return (struct cache_id){.hash = {{hash, 1, 2, 3}}, .sequence = sequence};
}

uint64_t cache_fixture_store(struct cache_fixture *fixture, const struct cache_id *id, const char *key,
                             const char *head, struct str body)
{
    struct cache_writer writer = {.directory = &fixture->directory, .id = *id, .fd = -1};
    uint64_t size = 0;

    ck_assert_int_eq(cache_file_create(&writer), 0);
    ck_assert_int_eq(cache_file_write(&writer, body), 0);
    ck_assert_int_eq(cache_file_complete(&writer, &id->hash, str_from(key), str_from(head), &size), 0);
    ck_assert_int_eq(writer.fd, -1);
    return size;
}

int cache_fixture_run(const char *name, const TTest *const *tests, size_t count)
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
