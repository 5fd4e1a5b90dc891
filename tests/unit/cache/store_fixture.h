/* A cache store over a temporary directory and a real loop. */
#ifndef TEST_CACHE_STORE_FIXTURE_H
#define TEST_CACHE_STORE_FIXTURE_H

#include "base/limits.h"
#include "cache/cache_store.h"
#include "cache_fixture.h"
#include "skipped_clock.h"

#include <sys/resource.h>
#include <unistd.h>

static struct cache_fixture fixture;
static struct loop loop;
static struct log quiet;
static struct buffer diagnostics;
static struct cache_conf conf;
static struct cache_store *store;
static struct cache_entry *last;
static bool answered;

static void log_line(void *owner, enum log_level level, struct str line)
{
    ck_assert_int_eq(buffer_append(&diagnostics, line), 0);
}

/* Opens a store over the existing directory, like a starting server. */
static void open_store(void)
{
    struct clock now;

    clock_read(&now);
    quiet = (struct log){.level = LOG_INFO, .sink = log_line};
    ck_assert_int_eq(loop_open(&loop, "epoll", &quiet), 0);
    conf = (struct cache_conf){.name = STR("one"), .path = str_from(fixture.path), .directory = fixture.directory,
                               .max_size = UINT64_MAX, .inactive_ms = 600000, .files_at_once = 10, .pause_ms = 1,
                               .step_ms = 100, .zone = cache_zone_create(128 * 1024, (uint64_t)now.wall_ms * 1000)};
    store = cache_store_create(&loop, &quiet, &conf, 0);
    ck_assert_ptr_nonnull(store);
}

static void turn_for(unsigned ms)
{
    uint64_t until = loop.clock.monotonic_ms + ms;

    while (loop.clock.monotonic_ms < until)
        ck_assert_int_ge(loop_run_iteration(&loop, until), 0);
}

/* Runs the loop until at most `left` operations are in flight: those of the cache manager, its timer or its step. */
static void finish_tasks_to(unsigned left)
{
    for (unsigned i = 0; i < 2000 && loop.in_flight > left; i++)
        ck_assert_int_ge(loop_run_iteration(&loop, loop.clock.monotonic_ms + 5), 0);
    ck_assert_uint_le(loop.in_flight, left);
}

static void finish_tasks(void)
{
    finish_tasks_to(1);
}

static void close_store(void)
{
    cache_store_stop(store);
    finish_tasks_to(0);
    cache_store_destroy(store);
    loop_close(&loop);
    cache_zone_destroy(conf.zone);
    buffer_finish(&diagnostics);
}

static void found(struct cache_lookup *lookup, struct cache_entry *entry)
{
    last = entry;
    answered = true;
}

/* Begins a step of the idle cache manager, which ends in this or a later call. */
static inline void run_manager(void)
{
    loop_skip(&loop, LIMIT_CACHE_IDLE_MS);
    turn_for(1);
}

/* Returns the entry, or NULL. */
static struct cache_entry *look_up(const char *key)
{
    struct cache_lookup lookup = {.found = found};
    bool pending;

    answered = false;
    last = cache_store_get(store, &lookup, str_from(key), &pending);
    for (unsigned i = 0; i < 1000 && pending && !answered; i++)
        ck_assert_int_ge(loop_run_iteration(&loop, loop.clock.monotonic_ms + 10), 0);
    ck_assert(!pending || answered);
    return last;
}

static void check_is(const char *key, const char *head, struct str body)
{
    struct cache_entry *entry = look_up(key);
    char *read_back = malloc(body.length + 1);

    ck_assert_msg(entry != NULL, "%s is not stored", key);
    ck_assert(str_equal(entry->head, str_from(head)));
    ck_assert_uint_eq(entry->body_length, body.length);
    ck_assert((entry->content.data == NULL) == (body.length > LIMIT_FILE_CACHE_CONTENT));
    ck_assert((entry->fd < 0) == (entry->content.data != NULL));
    if (entry->content.data) {
        ck_assert(str_equal(entry->content, body));
    } else {
        ck_assert_int_eq(pread(entry->fd, read_back, body.length, 0), (ssize_t)body.length);
        ck_assert_mem_eq(read_back, body.data, body.length);
    }
    free(read_back);
    cache_entry_unref(entry);
}

static struct cache_fill *begin_fill(const char *key)
{
    struct cache_origin origin = {.since = cache_zone_sequence(conf.zone)};
    struct cache_fill *made;

    cache_hash_key(str_from(key), &origin.hash);
    made = cache_fill_begin(store, str_from(key), &origin, 0);
    ck_assert_ptr_nonnull(made);
    return made;
}

static void store_response(const char *key, const char *head, struct str body)
{
    struct cache_fill *made = begin_fill(key);

    cache_fill_add(made, body);
    cache_fill_end(made, str_from(head));
    finish_tasks();
}

/* A store in a new directory, whose first scan is done. */
static inline void open_loaded(void)
{
    cache_fixture_open(&fixture);
    open_store();
    for (unsigned i = 0; i < 1000 && !cache_zone_loaded(conf.zone); i++)
        turn_for(5);
    ck_assert(cache_zone_loaded(conf.zone));
}

static inline void close_loaded(void)
{
    close_store();
    cache_fixture_close(&fixture);
}

enum { DESCRIPTORS = 64 };

static int used_descriptors[DESCRIPTORS];
static unsigned used_count;

/* Uses all descriptors of this process but `count`. */
static inline void use_descriptors(unsigned count)
{
    struct rlimit limit;
    int fd;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = DESCRIPTORS;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while ((fd = dup(STDIN_FILENO)) >= 0)
        used_descriptors[used_count++] = fd;
    while (count-- > 0)
        close(used_descriptors[--used_count]);
}

static inline void release_descriptors(void)
{
    while (used_count > 0)
        close(used_descriptors[--used_count]);
}

static inline unsigned logged_lines(void)
{
    unsigned lines = 0;

    for (size_t i = 0; i < diagnostics.length; i++)
        lines += diagnostics.data[i] == '\n';
    return lines;
}

static bool was_logged(const char *text)
{
    return diagnostics.length > 0 && str_search(buffer_str(&diagnostics), str_from(text)) >= 0;
}

#endif
