#include "cache/cache_file.h"

#include "room.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct room room;

static int open_again(const struct cache_id *id, uint64_t size, size_t content_max, struct cache_opened *out)
{
    return cache_file_open(&room.folder, id, size, content_max, out);
}

static int file_of(const struct cache_id *id)
{
    char name[CACHE_NAME];
    int fd;

    cache_file_name(&room.folder, id, name);
    fd = openat(room.folder.fd, name, O_RDWR);
    ck_assert_int_ge(fd, 0);
    return fd;
}

START_TEST(names)
{
    struct cache_id id = {.hash = {{0x12, 0xab, [14] = 0xde, [15] = 0xf3}}, .sequence = 0x1234};
    struct cache_id read_back;
    char name[CACHE_NAME];

    room.folder.levels[0] = 1, room.folder.levels[1] = 2, room.folder.levels[2] = 0;
    cache_file_name(&room.folder, &id, name);
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

START_TEST(sums_do_not_depend_on_pieces)
{
    struct cache_sum whole = {0}, other = {0};
    char bytes[100];

    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 7);
    cache_sum_add(&whole, str_of(bytes, sizeof(bytes)));
    for (unsigned step = 1; step < 20; step++) {
        struct cache_sum pieces = {0};

        for (unsigned i = 0; i < sizeof(bytes); i += step) {
            cache_sum_add(&pieces, str_of(bytes + i, step < sizeof(bytes) - i ? step : sizeof(bytes) - i));
            cache_sum_add(&pieces, (struct str){NULL, 0});
        }
        ck_assert_uint_eq(cache_sum_end(&pieces), cache_sum_end(&whole));
    }
    cache_sum_add(&other, str_of(bytes, sizeof(bytes) - 1));
    ck_assert_uint_ne(cache_sum_end(&other), cache_sum_end(&whole));
    cache_sum_add(&other, STR("\0"));
    ck_assert_uint_ne(cache_sum_end(&other), cache_sum_end(&whole));
}
END_TEST

START_TEST(written_and_read)
{
    struct cache_id id = room_id(1, 7);
    struct cache_opened opened;
    uint64_t size;

    room_open(&room);
    size = room_store(&room, &id, "key", "the head", STR("the body"));
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
    room_close(&room);
}
END_TEST

static void sweep(const struct cache_making *making)
{
    char name[CACHE_NAME + 8];

    cache_file_name(making->folder, &making->id, name);
    strcat(name, ".tmp");
    cache_file_remove_unfinished(room.folder.fd, name);
}

START_TEST(what_was_left_is_swept)
{
    struct cache_making making = {.folder = &room.folder, .fd = -1, .id = room_id(1, 7)};

    room_open(&room);
    ck_assert_int_eq(cache_file_create(&making), 0);
    close(making.fd); /* as if its process had died */
    ck_assert_uint_eq(room_count(&room), 1);
    sweep(&making);
    ck_assert_uint_eq(room_count(&room), 0);
    room_close(&room);
}
END_TEST

START_TEST(one_that_was_dropped_leaves_nothing)
{
    struct cache_making making = {.folder = &room.folder, .fd = -1};

    room_open(&room);
    cache_file_discard(&making); /* never created */
    making.id = room_id(1, 7);
    ck_assert_int_eq(cache_file_create(&making), 0);
    ck_assert_int_eq(cache_file_write(&making, STR("some")), 0);
    ck_assert_uint_eq(room_count(&room), 1);
    sweep(&making); /* it is being made: nobody else deletes it */
    ck_assert_uint_eq(room_count(&room), 1);
    cache_file_discard(&making);
    ck_assert_uint_eq(room_count(&room), 0);
    room_close(&room);
}
END_TEST

/* Whatever byte of key, head and mark is another, wherever the file ends: it is not believed. */
START_TEST(damage_is_seen)
{
    struct cache_id id = room_id(1, 7);
    struct cache_opened opened;
    uint64_t size;
    int fd;

    room_open(&room);
    size = room_store(&room, &id, "a key", "the head", STR("the body"));
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
    room_close(&room);
}
END_TEST

/* As if the file had been written before the machine was last started: its mark ends with that start and a sum. */
static void date_back(int fd, uint64_t size)
{
    struct cache_sum sum = {0};
    char mark[88];
    uint64_t value;

    ck_assert_int_eq(pread(fd, mark, sizeof(mark), (off_t)(size - sizeof(mark))), sizeof(mark));
    mark[sizeof(mark) - 9] ^= 1;
    cache_sum_add(&sum, STR("keyhead"));
    cache_sum_add(&sum, str_of(mark, sizeof(mark) - 8));
    value = cache_sum_end(&sum);
    memcpy(mark + sizeof(mark) - 8, &value, 8);
    ck_assert_int_eq(pwrite(fd, mark, sizeof(mark), (off_t)(size - sizeof(mark))), sizeof(mark));
}

/* A body that the machine had not written out when it went down: its mark is of another start, so the body is read. */
START_TEST(a_body_of_another_start_is_read)
{
    struct cache_id id = room_id(1, 7);
    struct cache_opened opened;
    struct str body = STR("the body of a file that is longer than one word");
    uint64_t size;
    int fd;

    room_open(&room);
    size = room_store(&room, &id, "key", "head", body);
    fd = file_of(&id);
    ck_assert_int_eq(pwrite(fd, "X", 1, 10), 1);
    ck_assert_int_eq(open_again(&id, size, 0, &opened), 0); /* of this start: the kernel has it */
    cache_opened_close(&opened);
    date_back(fd, size);
    ck_assert_int_eq(open_again(&id, size, 0, &opened), -EBADMSG);
    ck_assert_int_eq(pwrite(fd, body.data + 10, 1, 10), 1);
    ck_assert_int_eq(open_again(&id, size, 0, &opened), 0);
    cache_opened_close(&opened);
    close(fd);
    room_close(&room);
}
END_TEST

START_TEST(noted_anew)
{
    struct cache_zone *zone = cache_zone_create(32 * 1024, 0);
    struct cache_id id = room_id(1, 7);
    struct cache_view first, second;
    struct cache_victims none = {0};
    struct cache_opened opened;
    uint64_t size;
    int fd;

    room_open(&room);
    size = room_store(&room, &id, "key", "one", STR("the body"));
    ck_assert_int_eq(cache_zone_publish(zone, &id, size, &(struct cache_origin){id.hash, UINT64_MAX}, 1, &none), 0);
    ck_assert(cache_zone_find(zone, &id.hash, false, 1, &first, &none));
    fd = file_of(&id); /* what somebody who died began to note does not matter */
    ck_assert_int_eq(pwrite(fd, "half a note", 11, (off_t)size), 11);
    close(fd);
    ck_assert_int_eq(cache_file_update(&room.folder, zone, &id, &first, STR("another")), 0);
    ck_assert_int_eq(cache_file_update(&room.folder, zone, &id, &first, STR("too late")), -EBUSY);
    ck_assert(cache_zone_find(zone, &id.hash, false, 1, &second, &none));
    ck_assert_uint_gt(second.size, first.size);
    ck_assert_int_eq(open_again(&id, second.size, 100, &opened), 0);
    ck_assert(str_equal(opened.head, STR("another")) && str_equal(opened.content, STR("the body")));
    ck_assert_uint_eq(opened.updates, 1);
    cache_opened_close(&opened);
    ck_assert_int_eq(open_again(&id, first.size, 100, &opened), 0); /* who knows the old size sees the old head */
    ck_assert(str_equal(opened.head, STR("one")));
    cache_opened_close(&opened);
    ck_assert_int_eq(open_again(&id, 0, 100, &opened), 0); /* and the loader, the last one */
    ck_assert(str_equal(opened.head, STR("another")));
    cache_opened_close(&opened);
    room_close(&room);
    cache_zone_destroy(zone);
}
END_TEST

START_TEST(links_are_not_followed)
{
    struct cache_id id = room_id(1, 7), other = room_id(1, 8);
    char name[CACHE_NAME], target[CACHE_NAME];
    struct cache_opened opened;

    room_open(&room);
    (void)room_store(&room, &id, "key", "head", STR("body"));
    cache_file_name(&room.folder, &id, target);
    cache_file_name(&room.folder, &other, name);
    ck_assert_int_eq(symlinkat(target + 5, room.folder.fd, name), 0);
    ck_assert_int_eq(open_again(&other, 0, 100, &opened), -ELOOP);
    room_close(&room);
}
END_TEST

static char folder[CACHE_NAME + sizeof(room.path)];
static bool enough;

/* What a walk does where the files are made, over and over. */
static void *sweep_on(void *unused)
{
    while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
        DIR *all = opendir(folder);
        const struct dirent *entry;

        while (all && (entry = readdir(all)))
            if (cache_file_is_temporary(entry->d_name))
                cache_file_remove_unfinished(dirfd(all), entry->d_name);
        if (all)
            closedir(all);
        usleep(1000); /* between two walks: no file meets many */
    }
    return unused;
}

START_TEST(what_is_begun_is_not_swept)
{
    struct cache_id id = room_id(1, 7);
    char name[CACHE_NAME];
    pthread_t sweeper;

    room_open(&room);
    cache_file_name(&room.folder, &id, name);
    snprintf(folder, sizeof(folder), "%s/%.4s", room.path, name);
    enough = false;
    ck_assert_int_eq(pthread_create(&sweeper, NULL, sweep_on, NULL), 0);
    for (; id.sequence < 3000; id.sequence++) {
        (void)room_store(&room, &id, "key", "head", STR("body"));
        cache_file_delete(&room.folder, &id);
    }
    __atomic_store_n(&enough, true, __ATOMIC_RELAXED);
    ck_assert_int_eq(pthread_join(sweeper, NULL), 0);
    room_close(&room);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {names,
                                  sums_do_not_depend_on_pieces,
                                  written_and_read,
                                  one_that_was_dropped_leaves_nothing,
                                  what_was_left_is_swept,
                                  what_is_begun_is_not_swept,
                                  damage_is_seen,
                                  a_body_of_another_start_is_read,
                                  noted_anew,
                                  links_are_not_followed};

    return room_run("file", tests, COUNT(tests));
}
