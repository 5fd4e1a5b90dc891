#include "loopback.h"

#include "../unit/skipped_clock.h"
#include "base/limits.h"
#include "cache/cache_store.h"
#include "log/access_log.h"
#include "log/log_file.h"
#include "server/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE_MS 10000

static void log_line(void *owner, enum log_level level, struct str line)
{
    struct loopback *loopback = owner;

    /* Drops the line if memory runs out, as a sink may do. */
    if (buffer_append(&loopback->logged, line) < 0)
        return;
}

bool loopback_logged(const struct loopback *loopback, const char *text)
{
    return str_search(buffer_str(&loopback->logged), str_from(text)) >= 0;
}

void loopback_make_directory(struct loopback *loopback)
{
    *loopback = (struct loopback){0};
    snprintf(loopback->directory, sizeof(loopback->directory), "/tmp/sluice-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(loopback->directory));
}

const char *loopback_path(struct loopback *loopback, const char *path)
{
    static char paths[4][512];
    static unsigned next;

    next = (next + 1) % 4;
    snprintf(paths[next], sizeof(paths[next]), "%s/%s", loopback->directory, path);
    return paths[next];
}

void loopback_write(struct loopback *loopback, const char *path, struct str content)
{
    int fd = open(loopback_path(loopback, path), O_WRONLY | O_CREAT | O_TRUNC, 0644);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, content.data, content.length), (ssize_t)content.length);
    close(fd);
}

void loopback_mkdir(struct loopback *loopback, const char *path)
{
    ck_assert_int_eq(mkdir(loopback_path(loopback, path), 0755), 0);
}

void loopback_link(struct loopback *loopback, const char *target, const char *path)
{
    ck_assert_int_eq(symlink(target, loopback_path(loopback, path)), 0);
}

/* Replaces "@/" by the directory. */
static struct str with_directory(struct loopback *loopback, struct arena *arena, struct str text)
{
    struct str made = STR("");
    ssize_t at;

    while ((at = str_search(text, STR("@/"))) >= 0) {
        made =
            arena_printf(arena, STR_FMT STR_FMT "%s/", STR_ARG(made), (int)at, text.data, loopback->directory);
        text = str_skip(text, (size_t)at + 2);
    }
    return arena_printf(arena, STR_FMT STR_FMT, STR_ARG(made), STR_ARG(text));
}

static void load(struct loopback *loopback, const char *configuration)
{
    struct configuration_source source = {.prefix = str_from(loopback->directory)};
    struct buffer diagnostics = {0};
    struct arena arena;

    arena_init(&arena, NULL, 0);
    source.text = with_directory(loopback, &arena, str_from(configuration));
    loopback->configuration = configuration_load(&source, loopback->worker.log, &diagnostics);
    ck_assert_msg(loopback->configuration != NULL, "rejected:\n" STR_FMT, STR_ARG(buffer_str(&diagnostics)));
    buffer_finish(&diagnostics);
    arena_reset(&arena);
}

void loopback_configuration_rejected(const char *line, const char *expected)
{
    struct configuration_source source = {0};
    struct buffer diagnostics = {0};
    struct log log = {.level = LOG_EMERG};
    char text[512];

    snprintf(text, sizeof(text), "http:\n  server:\n    listen: 8080\n    %s\n", line);
    source.text = str_from(text);
    ck_assert_msg(!configuration_load(&source, &log, &diagnostics), "taken: %s", line);
    ck_assert_msg(str_search(buffer_str(&diagnostics), str_from(expected)) >= 0 &&
                      str_search(buffer_str(&diagnostics), STR(":4:")) >= 0,
                  "\"%s\" or the place is not in:\n" STR_FMT, expected, (int)diagnostics.length,
                  diagnostics.data);
    buffer_finish(&diagnostics);
}

static void open_logs(struct loopback *loopback)
{
    for (size_t i = 0; i < loopback->configuration->access_log_count; i++) {
        struct access_log_target *target = loopback->configuration->access_logs[i];

        target->fd = log_file_open(target->path);
        ck_assert_int_ge(target->fd, 0);
    }
}

static void start_modules(struct worker *worker)
{
    size_t count = 0;

    while (module_table[count])
        count++;
    worker->module_states = calloc(count + 1, sizeof(*worker->module_states));
    ck_assert_ptr_nonnull(worker->module_states);
    for (size_t i = 0; i < count; i++) {
        if (module_table[i]->worker_start)
            ck_assert_int_eq(module_table[i]->worker_start(worker, &worker->module_states[i]), 0);
    }
}

static void open_caches(struct loopback *loopback)
{
    struct worker *worker = &loopback->worker;
    struct caches *caches = &loopback->configuration->caches;

    ck_assert_int_eq(caches_open(caches, NULL, (uid_t)-1, (gid_t)-1, worker->log), 0);
    worker->caches = calloc(caches->count + 1, sizeof(struct cache_store *));
    ck_assert_ptr_nonnull(worker->caches);
    for (size_t i = 0; i < caches->count; i++) {
        worker->caches[i] = cache_store_create(&worker->loop, worker->log, caches->items[i], 0);
        ck_assert_ptr_nonnull(worker->caches[i]);
    }
}

static void each_cache(struct worker *worker, void (*call)(struct cache_store *store))
{
    for (size_t i = 0; i < worker->configuration->caches.count; i++)
        call(worker->caches[i]);
}

void loopback_open(struct loopback *loopback, const char *configuration)
{
    struct worker *worker = &loopback->worker;
    const char *backend = getenv("LOOPBACK_BACKEND");

    signal(SIGPIPE, SIG_IGN); /* as in the master */
    if (!loopback->directory[0])
        loopback_make_directory(loopback);
    loopback->worker = (struct worker){0};
    loopback->endpoint = 0;
    loopback->error_log.log = (struct log){.level = LOG_INFO, .sink = log_line, .owner = loopback};
    worker->log = &loopback->error_log.log;
    worker->error_log = &loopback->error_log;
    load(loopback, configuration);
    ck_assert_int_eq(limits_open(&loopback->configuration->limits, NULL, worker->log), 0);
    ck_assert_int_eq(status_zones_open(&loopback->configuration->zones, NULL, 1), 0);
    loopback->shared = shared_create(1);
    ck_assert_ptr_nonnull(loopback->shared);
    ck_assert_int_eq(shared_slot_acquire(loopback->shared), 0);
    loopback->shared->worker_count = loopback->shared->generation = 1;
    worker->configuration = loopback->configuration;
    worker->shared = loopback->shared;
    worker->counters = &loopback->shared->workers[0].counters;
    worker->sessions = (struct session_shared){&worker->arenas, &worker->loop.clock, &worker->counters->protocols};
    worker->channel_fd = worker->signal_fd = -1;
    list_init(&worker->connection_list);
    list_init(&worker->streams);
    list_init(&worker->resumed);
    list_init(&worker->woken);
    list_init(&worker->orphaned_subrequests);
    list_init(&worker->borrowed);
    list_init(&worker->requests);
    list_init(&worker->free_connections);
    ck_assert_int_eq(loop_open(&worker->loop, backend ? backend : "auto", worker->log), 0);
    worker->loop.large_done = connection_resume_after;
    worker->wires = (struct wire_shared){.loop = &worker->loop,
                                         .log = worker->log,
                                         .ktls = &loopback->shared->ktls,
                                         .counters = &worker->counters->wires,
                                         .output_max = LIMIT_WORKER_OUTPUT};
    ck_assert_int_eq(wire_shared_init(&worker->wires), 0);
    worker->files = file_cache_create(&worker->loop, &loopback->configuration->file_cache);
    ck_assert_ptr_nonnull(worker->files);
    file_cache_set_counters(worker->files, &worker->counters->files);
    file_reader_init(&worker->reader, &worker->loop);
    worker->upstreams = upstream_pool_create(&worker->loop, worker->log, &loopback->configuration->upstreams,
                                             loopback->shared->upstreams, 0);
    ck_assert_ptr_nonnull(worker->upstreams);
    open_caches(loopback);
    open_logs(loopback);
    worker->access_log = access_log_create(&worker->loop, worker->log, &worker->counters->log_lines_dropped,
                                           worker->configuration->access_logs,
                                           (unsigned)worker->configuration->access_log_count,
                                           worker->configuration->access_log_selections);
    ck_assert_ptr_nonnull(worker->access_log);
    start_modules(worker);
    worker->listeners = calloc(loopback->configuration->endpoint_count, sizeof(*worker->listeners));
    ck_assert_ptr_nonnull(worker->listeners);
    for (size_t i = 0; i < loopback->configuration->endpoint_count; i++)
        worker->listeners[i].endpoint = &loopback->configuration->endpoints[i];
}

static int turn(struct loopback *loopback, uint64_t until_ms)
{
    int result;

    if (loopback->server_code_runs)
        loopback->server_code_runs(true);
    result = loop_run_iteration(&loopback->worker.loop, until_ms);
    connection_resume_all(&loopback->worker);
    access_log_flush(loopback->worker.access_log);
    if (loopback->server_code_runs)
        loopback->server_code_runs(false);
    return result;
}

void loopback_turn_once(struct loopback *loopback, unsigned milliseconds)
{
    ck_assert_int_ge(turn(loopback, loopback->worker.loop.clock.monotonic_ms + milliseconds), 0);
}

void loopback_skip(struct loopback *loopback, unsigned milliseconds)
{
    clock_skip(milliseconds);
    loopback_turn_once(loopback, 0);
}

void loopback_skip_and_turn(struct loopback *loopback, unsigned milliseconds)
{
    loopback_skip(loopback, milliseconds);
    loopback_turn(loopback, 1);
}

void loopback_turn(struct loopback *loopback, unsigned milliseconds)
{
    const struct clock *clock = &loopback->worker.loop.clock;
    uint64_t end = clock->monotonic_ms + milliseconds;

    do
        ck_assert_int_ge(turn(loopback, end), 0);
    while (clock->monotonic_ms < end);
}

/* A listener of `stream` has other events: server/worker_listen.c. */
static void accept_at(struct worker *worker, struct worker_listener *place, int fd, const struct sockaddr_storage *peer)
{
    if (!place->endpoint->servers[0]->stream) {
        connection_accept(worker, &place->listener, fd, peer);
        return;
    }
    ck_assert_ptr_nonnull(worker->stream);
    worker->stream->accept(worker, &place->listener, fd, peer);
}

int loopback_connect_at(struct loopback *loopback, size_t endpoint)
{
    struct sockaddr_storage peer = {0};
    struct sockaddr_in *address = (struct sockaddr_in *)(void *)&peer;
    int pair[2];

    address->sin_family = AF_INET;
    address->sin_port = htons(4711);
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    accept_at(&loopback->worker, &loopback->worker.listeners[endpoint], pair[1], &peer);
    return pair[0];
}

int loopback_connect(struct loopback *loopback)
{
    return loopback_connect_at(loopback, loopback->endpoint);
}

/* Returns true at the end of the connection. */
static bool read_more(struct loopback *loopback, int fd)
{
    char bytes[65536];
    ssize_t length;

    while ((length = read(fd, bytes, sizeof(bytes))) > 0)
        ck_assert_int_eq(buffer_append(&loopback->text, str_of(bytes, (size_t)length)), 0);
    return length == 0 || errno == ECONNRESET;
}

static void split_response(struct loopback *loopback)
{
    struct str text = buffer_str(&loopback->text);
    ssize_t end = str_search(text, STR("\r\n\r\n"));
    uint64_t status = 0;

    loopback->status = 0;
    loopback->head = loopback->body = STR("");
    if (end < 0)
        return;
    loopback->head = str_slice(text, 0, (size_t)end + 2);
    loopback->body = str_skip(text, (size_t)end + 4);
    ck_assert_int_eq(str_to_u64(str_slice(text, 9, 12), &status), 0);
    loopback->status = (int)status;
}

void loopback_request_raw(struct loopback *loopback, struct str bytes)
{
    int fd = loopback_connect(loopback);
    const struct clock *clock = &loopback->worker.loop.clock;
    uint64_t end = clock->monotonic_ms + PATIENCE_MS;
    bool over = false;

    loopback->text.length = 0;
    while (!over) {
        if (bytes.length) {
            ssize_t sent = send(fd, bytes.data, bytes.length, MSG_NOSIGNAL);

            bytes = str_skip(bytes, sent > 0 ? (size_t)sent : 0);
        }
        ck_assert_int_ge(turn(loopback, clock->monotonic_ms + 5), 0);
        over = read_more(loopback, fd);
        ck_assert_msg(clock->monotonic_ms < end, "no end of the answer:\n" STR_FMT,
                      STR_ARG(buffer_str(&loopback->text)));
    }
    close(fd);
    loopback_turn(loopback, 1);
    split_response(loopback);
}

static void make_head(struct buffer *bytes, const char *head)
{
    struct str rest = str_from(head);

    while (rest.data) {
        struct str line = str_cut(&rest, '\n');

        ck_assert_int_eq(buffer_printf(bytes, STR_FMT "\r\n", STR_ARG(line)), 0);
    }
    if (str_search(buffer_str(bytes), STR("\r\nHost:")) < 0)
        ck_assert_int_eq(buffer_append(bytes, STR("Host: localhost\r\n")), 0);
    ck_assert_int_eq(buffer_append(bytes, STR("Connection: close\r\n\r\n")), 0);
}

void loopback_request(struct loopback *loopback, const char *head)
{
    struct buffer bytes = {0};

    make_head(&bytes, head);
    loopback_request_raw(loopback, buffer_str(&bytes));
    buffer_finish(&bytes);
}

void loopback_disconnect(struct loopback *loopback, const char *head, unsigned turns)
{
    struct buffer bytes = {0};
    int fd = loopback_connect(loopback);

    make_head(&bytes, head);
    ck_assert_int_eq(send(fd, bytes.data, bytes.length, MSG_NOSIGNAL), (ssize_t)bytes.length);
    buffer_finish(&bytes);
    while (turns--)
        ck_assert_int_ge(turn(loopback, loopback->worker.loop.clock.monotonic_ms), 0);
    close(fd);
}

struct str loopback_field(const struct loopback *loopback, const char *name)
{
    struct str rest = loopback->head;

    while (rest.data) {
        struct str value = str_cut(&rest, '\n');
        struct str field = str_cut(&value, ':');

        if (value.data && str_equal_nocase(field, str_from(name))) {
            value = str_trim(value);
            if (str_ends(value, STR("\r")))
                value.length--;
            return value;
        }
    }
    return STR("");
}

static int remove_one(const char *path, const struct stat *stat, int kind, struct FTW *place)
{
    return remove(path);
}

void loopback_close(struct loopback *loopback)
{
    struct worker *worker = &loopback->worker;

    connection_abort_all(worker);
    if (worker->stream)
        worker->stream->abort_all(worker);
    for (int i = 0; i < 1000 && worker->connections; i++)
        ck_assert_int_ge(turn(loopback, worker->loop.clock.monotonic_ms + 10), 0);
    ck_assert_uint_eq(worker->connections, 0);
    access_log_destroy(worker->access_log);
    for (size_t i = 0; module_table[i]; i++) {
        if (module_table[i]->worker_stop && worker->module_states[i])
            module_table[i]->worker_stop(worker->module_states[i]);
    }
    each_cache(worker, cache_store_stop);
    upstream_pool_stop(worker->upstreams);
    for (int i = 0; i < 1000 && worker->loop.in_flight; i++)
        ck_assert_int_ge(loop_run_iteration(&worker->loop, worker->loop.clock.monotonic_ms + 10), 0);
    ck_assert_uint_eq(worker->loop.in_flight, 0);
    connection_free_all(worker);
    each_cache(worker, cache_store_destroy);
    free(worker->caches);
    upstream_pool_destroy(worker->upstreams);
    file_cache_destroy(worker->files);
    wire_shared_finish(&worker->wires);
    loop_close(&worker->loop);
    arena_pool_finish(&worker->arenas);
    free(worker->module_states);
    free(worker->listeners);
    for (size_t i = 0; i < loopback->configuration->access_log_count; i++)
        close(loopback->configuration->access_logs[i]->fd);
    limits_close(&loopback->configuration->limits);
    status_zones_close(&loopback->configuration->zones);
    configuration_destroy(loopback->configuration);
    shared_destroy(loopback->shared);
    buffer_finish(&loopback->logged);
    buffer_finish(&loopback->text);
    nftw(loopback->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    loopback->directory[0] = '\0';
}

int loopback_run(const char *name, const TTest *const *tests)
{
    Suite *suite = suite_create(name);
    TCase *cases = tcase_create(name);
    SRunner *runner;
    int failed;

    tcase_set_timeout(cases, 60);
    for (; *tests; tests++)
        tcase_add_test(cases, *tests);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
