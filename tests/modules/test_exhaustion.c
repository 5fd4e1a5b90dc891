#include "loopback.h"

#include "../unit/runner.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The linker replaces the allocators in the project's own code by these (--wrap). */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_reallocarray(void *memory, size_t count, size_t size);
void *__real_arena_alloc(struct arena *arena, size_t size);
void *__real_arena_zalloc(struct arena *arena, size_t count, size_t size);
struct str __real_arena_copy(struct arena *arena, struct str s);
void *__wrap_malloc(size_t size);
void *__wrap_arena_alloc(struct arena *arena, size_t size);
void *__wrap_arena_zalloc(struct arena *arena, size_t count, size_t size);
struct str __wrap_arena_copy(struct arena *arena, struct str s);
struct str __wrap_arena_printf(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_reallocarray(void *memory, size_t count, size_t size);

static bool counting;
static unsigned allocations;
static unsigned failing; /* the number of the allocation that fails; with `all`, the later ones fail, too */
static bool all;

static bool fails(void)
{
    if (!counting)
        return false;
    allocations++;
    return failing && (allocations == failing || (all && allocations > failing));
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails() ? NULL : __real_realloc(memory, size);
}

void *__wrap_reallocarray(void *memory, size_t count, size_t size)
{
    return fails() ? NULL : __real_reallocarray(memory, count, size);
}

void *__wrap_arena_alloc(struct arena *arena, size_t size)
{
    return fails() ? NULL : __real_arena_alloc(arena, size);
}

void *__wrap_arena_zalloc(struct arena *arena, size_t count, size_t size)
{
    return fails() ? NULL : __real_arena_zalloc(arena, count, size);
}

struct str __wrap_arena_copy(struct arena *arena, struct str s)
{
    return fails() ? (struct str){NULL, 0} : __real_arena_copy(arena, s);
}

struct str __wrap_arena_printf(struct arena *arena, const char *format, ...)
{
    struct str made = {NULL, 0};
    va_list args;

    va_start(args, format);
    if (!fails())
        made = arena_vprintf(arena, format, args);
    va_end(args);
    return made;
}

static void inside(bool yes)
{
    counting = yes;
}

static const char configuration[] =
    "http:\n"
    "  access_log: '@/access.log'\n"
    "  log_format: {own: '$uri $status'}\n"
    "  add_header: [X-A '$request_id', {X-B: b}]\n"
    "  error_page: 404 /errors/404.html\n"
    "  limit_req_zone: ['$binary_remote_addr zone=asked:64k rate=200r/s', '$host zone=rare:64k rate=1r/m']\n"
    "  limit_conn_zone: '$binary_remote_addr zone=open:64k'\n"
    "  map: {$arg_m $mapped: {hostnames: on, default: none, '~^(?<took>x)(.*)$': '$took-$2', '*.a': b}}\n"
    "  geo: {$place: {default: out, 127.0.0.0/8: in}}\n"
    "  upstream:\n"
    "    group: {server: ['unix:@/app.sock weight=2', {address: 'unix:@/none.sock', backup: on}], ip_hash: "
    "on}\n"
    "    names: {server: [a.invalid down, b.invalid down], hash: '$uri$args'}\n"
    "  server:\n"
    "    - listen: [8080, '[::]:8080']\n"
    "      server_name: [a, '*.b', 'c.*', .d]\n"
    "      root: @/www\n"
    "      types: {text/x-own: [own]}\n"
    "      location:\n"
    "        /errors/: {internal: on}\n"
    "        /say: {return: '200 \"$host $args $request_id\"', access_log: '@/own.log own'}\n"
    "        /status: {status: on}\n"
    "        /app/: {proxy_pass: 'http://unix:@/app.sock:/x/', proxy_set_header: {X-A: '$host$args'}}\n"
    "        /group/: {proxy_pass: http://group}\n"
    "        /variable/: {proxy_pass: 'http://unix:@/$arg_to'}\n"
    "        /asked/: {auth_request: '/app/auth?$args', mirror: [/say, off], allow: ['unix:', all], deny: "
    "10.0.0.0/8}\n"
    "        /try/: {try_files: [$uri, $uri/, '/say?tried=$uri']}\n"
    "        /made/: {set: [$a '$mapped$place', $args '$args&more'], when: {$a ~ in and -f "
    "$document_root/file.html: {set: "
    "$b $a, add_header: X-When $b, return: '200 \"$b $1\"'}}}\n"
    "        ~ ^/old/(?<rest>.*)$: {rewrite: ['^/old/(.*)$ /say/$1?q=$1 last']}\n"
    "        ~* ^/alias/(.*)$: {alias: '@/www/$1'}\n"
    "        /list/: {alias: '@/www/', index: none, autoindex: on}\n"
    "        /hash/: {alias: '@/www/', etag: hash}\n"
    "        /encoded/: {alias: '@/www/', precompressed: [br, gzip], gzip: on, gzip_types: '*', gzip_min_length: 0}\n"
    "        /said/: {alias: '@/www/', expires: '$arg_e', security_headers: strict, cors: {origins: "
    "[https://a.test], "
    "credentials: on}, preload: /a.css as=style, add_trailer: X-Sent $body_bytes_sent}\n"
    "        /limited/: {alias: '@/www/', limit_req: zone=asked burst=9, limit_conn: open 9}\n"
    "        /narrow/: {alias: '@/www/', limit_req: zone=rare, limit_except: {GET: {deny: all}}}\n"
    "        /throttled/: {alias: '@/www/', limit_rate: 2m, limit_rate_after: 1k}\n"
    "        /known/: {alias: '@/www/', auth_basic: '$host \"x\"', auth_basic_user_file: '@/users'}\n"
    "        /signed/: {alias: '@/www/', secure_link: '$arg_s,$arg_e', secure_link_sha256: '$uri$arg_e key', "
    "secure_link_required: on}\n"
    "        /traced: {otel_trace_context: propagate, otel_trace: '$arg_s$host', return: '200 \"$http_traceparent "
    "$otel_span_id\"'}\n"
    "        '@named': {}\n"
    "    - {listen: 8080, server_name: e}\n";

/* Loading fails or succeeds completely. Without any memory it may fail without a message. */
START_TEST(failed_allocation_rejects_the_configuration)
{
    struct configuration_source source = {.prefix = STR("/tmp")};
    char text[sizeof(configuration)];
    struct log quiet = {.level = LOG_EMERG};
    struct buffer diagnostics = {0};
    struct configuration *loaded = NULL;

    all = _i;
    memcpy(text, configuration, sizeof(text));
    for (char *at = text; (at = strchr(at, '@')) != NULL; at++) {
        if (at[1] == '/')
            at[0] = '/';
    }
    source.text = str_from(text);
    failing = 0;
    do {
        failing++;
        allocations = 0;
        counting = true;
        loaded = configuration_load(&source, &quiet, &diagnostics);
        counting = false;
        ck_assert(loaded || allocations >= failing);
        configuration_destroy(loaded);
    } while (allocations >= failing);
    ck_assert_ptr_nonnull(loaded);
    ck_assert_uint_gt(failing, 500);
    buffer_finish(&diagnostics);
}
END_TEST

static struct loopback server;

/* The upstream server, in a separate thread. It allocates no memory, and sends the same response to every request. */
static void *application(void *listening)
{
    static const char answer[] = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
                                 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n"
                                 "7\r\nbehind.\r\n0\r\nX-T: t\r\n\r\n";
    char bytes[4096];
    int fd;

    while ((fd = accept(*(int *)listening, NULL, NULL)) >= 0) {
        size_t length = 0;
        ssize_t more;

        while ((more = read(fd, bytes + length, sizeof(bytes) - length)) > 0) {
            length += (size_t)more;
            if (length >= 4 && memcmp(bytes + length - 4, "\r\n\r\n", 4) == 0)
                break;
        }
        if (more > 0 && write(fd, answer, sizeof(answer) - 1) < 0)
            length = 0;
        close(fd);
    }
    return NULL;
}

static int listen_behind(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    return fd;
}

static const char *const requests[] = {
    "GET /file.html HTTP/1.1",
    "GET /file.html HTTP/1.1\nRange: bytes=0-1,3-4",
    "GET / HTTP/1.1",
    "GET /folder HTTP/1.1",
    "GET /absent HTTP/1.1",
    "GET /large HTTP/1.1",
    "GET /say?a=1 HTTP/1.1",
    "POST /file.html HTTP/1.1\nContent-Length: 0",
    "OPTIONS * HTTP/1.1",
    "BAD",
    "GET /app/a HTTP/1.1",
    "POST /app/ HTTP/1.1\nContent-Length: 0",
    "GET /group/ HTTP/1.1",
    "GET /variable/?to=app.sock HTTP/1.1",
    "GET /asked/?a HTTP/1.1",
    /* its body is the CRLFs that loopback_request adds to end a head */
    "PUT /asked/?a HTTP/1.1\nContent-Length: 4\n\n",
    "GET /try/none HTTP/1.1",
    "GET /made/?m=xyz HTTP/1.1",
    "GET /old/a%20b?c HTTP/1.1",
    "GET /alias/file.html HTTP/1.1",
    "GET /list/ HTTP/1.1",
    "GET /list/?sort=size HTTP/1.1\nAccept: application/json",
    "GET /hash/large HTTP/1.1",
    "GET /hash/file.html HTTP/1.1",
    "GET /said/file.html?e=modified HTTP/1.1\nOrigin: https://a.test",
    "GET /said/file.html?e=1d HTTP/1.1",
    "GET /encoded/file.html HTTP/1.1\nAccept-Encoding: gzip;q=0.5, br",
    "GET /encoded/large HTTP/1.1\nAccept-Encoding: gzip, br",
    "GET /limited/file.html HTTP/1.1",
    "GET /narrow/file.html HTTP/1.1\nAccept: application/json",
    "DELETE /narrow/file.html HTTP/1.1\nAccept: text/html",
    "GET /throttled/large HTTP/1.1",
    "GET /known/file.html HTTP/1.1\nAuthorization: Basic YW5uOnNlY3JldA==",
    "GET /known/file.html HTTP/1.1\nAuthorization: Basic YW5uOndyb25n",
    "GET /known/file.html HTTP/1.1\nAccept: text/plain",
    "GET /signed/file.html?s=bad&e=1 HTTP/1.1",
    "OPTIONS /said/ HTTP/1.1\nOrigin: https://a.test\nAccess-Control-Request-Method: GET",
    "GET /traced?s=on HTTP/1.1\nConnection: tracestate, x",
    ("GET /traced HTTP/1.1\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n"
     "tracestate: a=1\ntracestate: b=2"),
    "GET /status HTTP/1.1",
    "PUT /status HTTP/1.1\nContent-Length: 0",
};

/*
 * A request during which one allocation fails gets a response or the end of its connection. The next request gets its
 * response.
 */
START_TEST(failed_allocation_affects_one_request_only)
{
    static char large[100000];
    unsigned max = 0;
    pthread_t thread;
    int behind;

    loopback_make_directory(&server);
    loopback_mkdir(&server, "www");
    loopback_mkdir(&server, "www/folder");
    loopback_mkdir(&server, "www/errors");
    loopback_write(&server, "www/file.html", STR("a small file"));
    loopback_write(&server, "www/index.html", STR("index"));
    loopback_write(&server, "www/errors/404.html", STR("absent"));
    loopback_write(&server, "users", /* the password is "secret" */
                   STR("ann:$2y$04$pwrdMZsDDJ5NfbSciM7mPeG7AVb4piRMhRd2Jz2AoPE3kpw7FkJxe\n"));
    memset(large, 'l', sizeof(large));
    loopback_write(&server, "www/large", str_of(large, sizeof(large)));
    behind = listen_behind(loopback_path(&server, "app.sock"));
    ck_assert_int_eq(pthread_create(&thread, NULL, application, &behind), 0);
    loopback_open(&server, configuration);
    loopback_request(&server, "GET /app/a HTTP/1.1");
    ck_assert_int_eq(server.status, 103);
    ck_assert_int_ge(str_search(server.body, STR("behind.")), 0);
    server.server_code_runs = inside;
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        failing = 0;
        do {
            failing++;
            allocations = 0;
            loopback_request(&server, requests[i]);
        } while (allocations >= failing);
        max = failing > max ? failing : max;
        failing = 0;
        loopback_request(&server, "GET /file.html HTTP/1.1");
        ck_assert_int_eq(server.status, 200);
        ck_assert_text(server.body, "a small file");
    }
    ck_assert_uint_gt(max, 20);
    server.server_code_runs = NULL;
    loopback_close(&server);
    shutdown(behind, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(behind);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, failed_allocation_rejects_the_configuration, 0, 2);
    tcase_add_test(tcase, failed_allocation_affects_one_request_only);
}

int main(void)
{
    return run_suite("exhaustion", add_tests);
}
