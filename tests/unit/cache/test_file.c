#include "base/limits.h"
#include "cache/cache_file.h"

#include "cache_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct cache_fixture fixture;

static int open_again(const struct cache_id *id, uint64_t size, size_t content_max, struct cache_opened *out)
{
    return cache_file_open(&fixture.directory, id, size, content_max, out);
}

static int file_of(const struct cache_id *id)
{
    char name[CACHE_NAME];
    int fd;

    cache_file_name(&fixture.directory, id, name);
    fd = openat(fixture.directory.fd, name, O_RDWR);
    ck_assert_int_ge(fd, 0);
    return fd;
}

START_TEST(only_names_of_the_cache_are_parsed)
{
    struct cache_id id = {.hash = {{0x12, 0xab, [14] = 0xde, [15] = 0xf3}}, .sequence = 0x1234};
    struct cache_id read_back;
    char name[CACHE_NAME];

    fixture.directory.levels[0] = 1, fixture.directory.levels[1] = 2, fixture.directory.levels[2] = 0;
    cache_file_name(&fixture.directory, &id, name);
    ck_assert_str_eq(name, "3/ef/12ab000000000000000000000000def3.0000000000001234");
    ck_assert(cache_file_parse_name(name + 5, &read_back));
    ck_assert_mem_eq(&read_back, &id, sizeof(id));
    ck_assert(!cache_file_parse_name("12ab000000000000000000000000def3", &read_back));
    ck_assert(!cache_file_parse_name("12ab000000000000000000000000def3.", &read_back));
    ck_assert(!cache_file_parse_name("12ab000000000000000000000000def3.0000000000001234x", &read_back));
    ck_assert(!cache_file_parse_name("12ab000000000000000000000000def3.0000000000000000", &read_back));
    ck_assert(!cache_file_parse_name("12ab000000000000000000000000defx.0000000000001234", &read_back));
    ck_assert(!cache_file_parse_name("", &read_back));
    ck_assert(cache_file_is_temporary("12ab000000000000000000000000def3.0000000000001234.tmp"));
    ck_assert(!cache_file_is_temporary("12ab000000000000000000000000def3.0000000000001234"));
    ck_assert(!cache_file_is_temporary("12ab000000000000000000000000def3.0000000000001234.tmpx"));
    ck_assert(!cache_file_is_temporary("readme.tmp"));
}
END_TEST

START_TEST(checksums_do_not_depend_on_pieces)
{
    struct cache_checksum whole = {0}, other = {0};
    char bytes[100];

    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 7);
    cache_checksum_add(&whole, str_of(bytes, sizeof(bytes)));
    for (unsigned step = 1; step < 20; step++) {
        struct cache_checksum pieces = {0};

        for (unsigned i = 0; i < sizeof(bytes); i += step) {
            cache_checksum_add(&pieces, str_of(bytes + i, step < sizeof(bytes) - i ? step : sizeof(bytes) - i));
            cache_checksum_add(&pieces, (struct str){NULL, 0});
        }
        ck_assert_uint_eq(cache_checksum_end(&pieces), cache_checksum_end(&whole));
    }
    cache_checksum_add(&other, str_of(bytes, sizeof(bytes) - 1));
    ck_assert_uint_ne(cache_checksum_end(&other), cache_checksum_end(&whole));
    cache_checksum_add(&other, STR("\0"));
    ck_assert_uint_ne(cache_checksum_end(&other), cache_checksum_end(&whole));
}
END_TEST

START_TEST(written_file_is_read_back)
{
    struct cache_id id = cache_fixture_id(1, 7);
    struct cache_opened opened;
    uint64_t size;

    cache_fixture_open(&fixture);
    size = cache_fixture_store(&fixture, &id, "key", "the head", STR("the body"));
    ck_assert_int_eq(open_again(&id, size, 100, &opened), 0);
    ck_assert(str_equal(opened.key, STR("key")) && str_equal(opened.head, STR("the head")));
    ck_assert(str_equal(opened.content, STR("the body")));
    ck_assert_uint_eq(opened.body_length, 8);
    cache_opened_close(&opened);
    ck_assert_int_eq(open_again(&id, 0, 7, &opened), 0);
    ck_assert_ptr_null(opened.content.data);
    cache_opened_close(&opened);
    id.sequence = 8;
    ck_assert_int_eq(open_again(&id, size, 100, &opened), -ENOENT);
    cache_fixture_close(&fixture);
}
END_TEST

static void sweep(const struct cache_writer *writer)
{
    char name[CACHE_NAME + 8];

    cache_file_name(writer->directory, &writer->id, name);
    strcat(name, ".tmp");
    cache_file_remove_unfinished(fixture.directory.fd, name);
}

START_TEST(unfinished_files_are_deleted)
{
    struct cache_writer writer = {.directory = &fixture.directory, .fd = -1, .id = cache_fixture_id(1, 7)};

    cache_fixture_open(&fixture);
    ck_assert_int_eq(cache_file_create(&writer), 0);
    close(writer.fd); /* as if its process had died */
    ck_assert_uint_eq(cache_fixture_count(&fixture), 1);
    sweep(&writer);
    ck_assert_uint_eq(cache_fixture_count(&fixture), 0);
    cache_fixture_close(&fixture);
}
END_TEST

START_TEST(discarded_file_is_deleted)
{
    struct cache_writer writer = {.directory = &fixture.directory, .fd = -1};

    cache_fixture_open(&fixture);
    cache_file_discard(&writer); /* never created */
    writer.id = cache_fixture_id(1, 7);
    ck_assert_int_eq(cache_file_create(&writer), 0);
    ck_assert_int_eq(cache_file_write(&writer, STR("some")), 0);
    ck_assert_uint_eq(cache_fixture_count(&fixture), 1);
    sweep(&writer); /* the file is being written: another process does not delete it */
    ck_assert_uint_eq(cache_fixture_count(&fixture), 1);
    cache_file_discard(&writer);
    ck_assert_uint_eq(cache_fixture_count(&fixture), 0);
    cache_fixture_close(&fixture);
}
END_TEST

/* Changes each byte of key, head and mark, and truncates the file to each length: every such file is invalid. */
START_TEST(damaged_files_are_invalid)
{
    struct cache_id id = cache_fixture_id(1, 7);
    struct cache_opened opened;
    uint64_t size;
    int fd;

    cache_fixture_open(&fixture);
    size = cache_fixture_store(&fixture, &id, "a key", "the head", STR("the body"));
    fd = file_of(&id);
    for (uint64_t at = 8; at < size; at++) {
        char was, other;

        ck_assert_int_eq(pread(fd, &was, 1, (off_t)at), 1);
        other = (char)(was ^ 0x41);
        ck_assert_int_eq(pwrite(fd, &other, 1, (off_t)at), 1);
        ck_assert_msg(open_again(&id, 0, 100, &opened) == -EBADMSG, "byte %d of %d", (int)at, (int)size);
        ck_assert_int_eq(pwrite(fd, &was, 1, (off_t)at), 1);
    }
    for (uint64_t length = 0; length < size; length++) {
        ck_assert_int_eq(ftruncate(fd, (off_t)length), 0);
        ck_assert_int_eq(open_again(&id, 0, 100, &opened), -EBADMSG);
    }
    close(fd);
    cache_fixture_close(&fixture);
}
END_TEST

/*
 * Changes the mark of the file to that of an earlier boot of the machine: the mark ends with the id of the boot and a
 * checksum.
 */
static void move_before_boot(int fd, uint64_t size)
{
    struct cache_checksum sum = {0};
    char mark[88];
    uint64_t value;

    ck_assert_int_eq(pread(fd, mark, sizeof(mark), (off_t)(size - sizeof(mark))), sizeof(mark));
    mark[sizeof(mark) - 9] ^= 1;
    cache_checksum_add(&sum, STR("keyhead"));
    cache_checksum_add(&sum, str_of(mark, sizeof(mark) - 8));
    value = cache_checksum_end(&sum);
    memcpy(mark + sizeof(mark) - 8, &value, 8);
    ck_assert_int_eq(pwrite(fd, mark, sizeof(mark), (off_t)(size - sizeof(mark))), sizeof(mark));
}

/*
 * The machine may have stopped before it wrote the body to disk. The mark has the id of another boot, so the body is
 * verified.
 */
START_TEST(body_from_before_a_boot_is_verified)
{
    struct cache_id id = cache_fixture_id(1, 7);
    struct cache_opened opened;
    struct str body = STR("the body of a file that is longer than one word");
    uint64_t size;
    int fd;

    cache_fixture_open(&fixture);
    size = cache_fixture_store(&fixture, &id, "key", "head", body);
    fd = file_of(&id);
    ck_assert_int_eq(pwrite(fd, "X", 1, 10), 1);
    ck_assert_int_eq(open_again(&id, size, 0, &opened), 0); /* written since this boot: the body is not verified */
    cache_opened_close(&opened);
    move_before_boot(fd, size);
    ck_assert_int_eq(open_again(&id, size, 0, &opened), -EBADMSG);
    ck_assert_int_eq(pwrite(fd, body.data + 10, 1, 10), 1);
    ck_assert_int_eq(open_again(&id, size, 0, &opened), 0);
    cache_opened_close(&opened);
    close(fd);
    cache_fixture_close(&fixture);
}
END_TEST

START_TEST(head_is_updated)
{
    struct cache_zone *zone = cache_zone_create(32 * 1024, 0);
    struct cache_id id = cache_fixture_id(1, 7);
    struct cache_view first, second;
    struct cache_victims none = {0};
    struct cache_opened opened;
    uint64_t size;
    int fd;

    cache_fixture_open(&fixture);
    size = cache_fixture_store(&fixture, &id, "key", "one", STR("the body"));
    ck_assert_int_eq(cache_zone_publish(zone, &id, size, &(struct cache_origin){id.hash, UINT64_MAX}, 1, &none), 0);
    ck_assert(cache_zone_find(zone, &id.hash, false, 1, &first, &none));
    fd = file_of(&id); /* the incomplete update of a process that died is overwritten */
    ck_assert_int_eq(pwrite(fd, "half a note", 11, (off_t)size), 11);
    close(fd);
    ck_assert_int_eq(cache_file_update(&fixture.directory, zone, &id, &first, STR("another")), 0);
    ck_assert_int_eq(cache_file_update(&fixture.directory, zone, &id, &first, STR("too late")), -EBUSY);
    ck_assert(cache_zone_find(zone, &id.hash, false, 1, &second, &none));
    ck_assert_uint_gt(second.size, first.size);
    ck_assert_int_eq(open_again(&id, second.size, 100, &opened), 0);
    ck_assert(str_equal(opened.head, STR("another")) && str_equal(opened.content, STR("the body")));
    ck_assert_uint_eq(opened.updates, 1);
    cache_opened_close(&opened);
    ck_assert_int_eq(open_again(&id, first.size, 100, &opened), 0); /* the old size selects the old head */
    ck_assert(str_equal(opened.head, STR("one")));
    cache_opened_close(&opened);
    ck_assert_int_eq(open_again(&id, 0, 100, &opened), 0); /* without a size, as for the loader: the newest head */
    ck_assert(str_equal(opened.head, STR("another")));
    cache_opened_close(&opened);
    cache_fixture_close(&fixture);
    cache_zone_destroy(zone);
}
END_TEST

START_TEST(links_are_not_followed)
{
    struct cache_id id = cache_fixture_id(1, 7), other = cache_fixture_id(1, 8);
    char name[CACHE_NAME], target[CACHE_NAME];
    struct cache_opened opened;

    cache_fixture_open(&fixture);
    (void)cache_fixture_store(&fixture, &id, "key", "head", STR("body"));
    cache_file_name(&fixture.directory, &id, target);
    cache_file_name(&fixture.directory, &other, name);
    ck_assert_int_eq(symlinkat(target + 5, fixture.directory.fd, name), 0);
    ck_assert_int_eq(open_again(&other, 0, 100, &opened), -ELOOP);
    cache_fixture_close(&fixture);
}
END_TEST

static char directory[CACHE_NAME + sizeof(fixture.path)];
static bool enough;

/* Like the loader, deletes unfinished files in the directory in which files are created, until `enough` is set. */
static void *delete_unfinished_files(void *unused)
{
    while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
        DIR *all = opendir(directory);
        const struct dirent *entry;

        /* readdir also returns files created meanwhile: without a limit, one pass could last for the whole test. */
        for (int removed = 0; all && removed < LIMIT_CACHE_ATTEMPTS / 8 && (entry = readdir(all));) {
            if (!cache_file_is_temporary(entry->d_name))
                continue;
            cache_file_remove_unfinished(dirfd(all), entry->d_name);
            removed++;
        }
        if (all)
            closedir(all);
        usleep(1000); /* a pause, so that few passes occur while a file is being written */
    }
    return unused;
}

START_TEST(file_in_progress_is_not_deleted)
{
    struct cache_id id = cache_fixture_id(1, 7);
    char name[CACHE_NAME];
    pthread_t sweeper;

    cache_fixture_open(&fixture);
    cache_file_name(&fixture.directory, &id, name);
    snprintf(directory, sizeof(directory), "%s/%.4s", fixture.path, name);
    enough = false;
    ck_assert_int_eq(pthread_create(&sweeper, NULL, delete_unfinished_files, NULL), 0);
    for (; id.sequence < 3000; id.sequence++) {
        (void)cache_fixture_store(&fixture, &id, "key", "head", STR("body"));
        cache_file_delete(&fixture.directory, &id);
    }
    __atomic_store_n(&enough, true, __ATOMIC_RELAXED);
    ck_assert_int_eq(pthread_join(sweeper, NULL), 0);
    cache_fixture_close(&fixture);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        only_names_of_the_cache_are_parsed, checksums_do_not_depend_on_pieces, written_file_is_read_back,
        discarded_file_is_deleted, unfinished_files_are_deleted, file_in_progress_is_not_deleted,
        damaged_files_are_invalid, body_from_before_a_boot_is_verified, head_is_updated, links_are_not_followed,
    };

    return cache_fixture_run("file", tests, COUNT(tests));
}
