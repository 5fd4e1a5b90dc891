/*
 * Translation of nginx's configuration: no input hangs or crashes the parser or the rules. For UTF-8 input the output
 * is valid YAML, also after parts of it were removed.
 */
#include "fuzz.h"

#include "base/utf8.h"
#include "conf/source_text.h"
#include "import/import.h"

#include <errno.h>

#define SERVERS (SCOPE_SITE | SCOPE_STREAM | SCOPE_STREAM_SERVER | SCOPE_UPSTREAM)

/* The translator reads names, scopes and types: the table has each scope and type, and the directives with a rule. */
static const struct directive directives[] = {
    {.name = "user", .scopes = SCOPE_MAIN, .type = DIRECTIVE_CUSTOM},
    {.name = "error_log", .scopes = SCOPE_MAIN, .type = DIRECTIVE_CUSTOM},
    {.name = "worker_connections", .scopes = SCOPE_EVENTS, .type = DIRECTIVE_NUMBER},
    {.name = "log_format", .scopes = SCOPE_HTTP, .type = DIRECTIVE_CUSTOM},
    {.name = "map", .scopes = SCOPE_HTTP, .type = DIRECTIVE_REPEAT},
    {.name = "geo", .scopes = SCOPE_HTTP, .type = DIRECTIVE_REPEAT},
    {.name = "resolver", .scopes = SCOPE_HTTP, .type = DIRECTIVE_CUSTOM},
    {.name = "proxy_cache_path", .scopes = SCOPE_HTTP, .type = DIRECTIVE_REPEAT},
    {.name = "listen", .scopes = SCOPE_SERVER | SCOPE_STREAM_SERVER, .type = DIRECTIVE_REPEAT},
    {.name = "server_name", .scopes = SCOPE_SERVER, .type = DIRECTIVE_WORDS},
    {.name = "server", .scopes = SCOPE_UPSTREAM, .type = DIRECTIVE_REPEAT},
    {.name = "root", .scopes = SCOPE_SITE, .type = DIRECTIVE_CUSTOM},
    {.name = "alias", .scopes = SCOPE_LOCATION, .type = DIRECTIVE_CUSTOM},
    {.name = "index", .scopes = SCOPE_SITE, .type = DIRECTIVE_TEMPLATES},
    {.name = "charset", .scopes = SCOPE_SITE, .type = DIRECTIVE_TEXT},
    {.name = "proxy_method", .scopes = SCOPE_SITE, .type = DIRECTIVE_TEMPLATE},
    {.name = "auth_basic_user_file", .scopes = SCOPE_SITE, .type = DIRECTIVE_PATH},
    {.name = "client_max_body_size", .scopes = SCOPE_SITE, .type = DIRECTIVE_SIZE},
    {.name = "send_timeout", .scopes = SERVERS, .type = DIRECTIVE_DURATION},
    {.name = "internal", .scopes = SCOPE_LOCATION, .type = DIRECTIVE_SWITCH},
    {.name = "etag", .scopes = SCOPE_SITE, .type = DIRECTIVE_CHOICE},
    {.name = "ssl_protocols", .scopes = SERVERS, .type = DIRECTIVE_FLAGS},
    {.name = "cors", .scopes = SCOPE_SITE, .type = DIRECTIVE_BLOCK},
    {.name = "set", .scopes = SCOPE_SITE, .type = DIRECTIVE_REPEAT},
    {.name = "rewrite", .scopes = SCOPE_SERVER | SCOPE_LOCATION, .type = DIRECTIVE_REPEAT},
    {.name = "return", .scopes = SCOPE_SERVER | SCOPE_LOCATION, .type = DIRECTIVE_CUSTOM},
    {.name = "add_header", .scopes = SCOPE_SITE, .type = DIRECTIVE_REPEAT},
    {.name = "allow", .scopes = SERVERS, .type = DIRECTIVE_REPEAT},
    {.name = "deny", .scopes = SERVERS, .type = DIRECTIVE_REPEAT},
    {.name = "access_log", .scopes = SERVERS, .type = DIRECTIVE_REPEAT},
    {.name = "proxy_pass", .scopes = SCOPE_LOCATION | SCOPE_STREAM_SERVER, .type = DIRECTIVE_CUSTOM},
    {0},
};

static const struct conf_group group = {.name = "all", .directives = directives};
static const struct conf_group *const groups[] = {&group};
static const struct conf_schema schema = {groups, 1};

static struct str media_type(struct str extension)
{
    return str_equal(extension, STR("html")) ? STR("text/html") : (struct str){NULL, 0};
}

static int read_input(void *owner, struct arena *arena, struct str path, struct str *out_text)
{
    if (!str_equal(path, STR("/n/nginx.conf")))
        return -ENOENT;
    *out_text = *(const struct str *)owner;
    return 0;
}

static int match_nothing(void *owner, struct arena *arena, struct str pattern, struct str **out_paths,
                         size_t *out_count)
{
    *out_paths = NULL;
    *out_count = 0;
    return 0;
}

static bool is_utf8(struct str text)
{
    uint32_t code;
    size_t length;

    for (size_t at = 0; at < text.length; at += length) {
        length = utf8_decode(str_skip(text, at), &code);
        if (length == 0)
            return false;
    }
    return true;
}

static void check_printed(struct import *import)
{
    struct buffer yaml = {0};
    struct arena arena;
    struct conf_errors errors = {.arena = &arena};

    arena_init(&arena, NULL, 0);
    HOLDS(import_print(import, true, &yaml) == 0);
    HOLDS(buffer_append(&yaml, STR("x-end: one key at least\n")) == 0);
    HOLDS(conf_tree_parse(&arena, STR("printed"), buffer_str(&yaml), &errors) || errors.failed);
    if (errors.failed) {
        struct buffer diagnostics = {0};

        HOLDS(conf_errors_print(&errors, &diagnostics) == 0);
        fprintf(stderr, STR_FMT "\n" STR_FMT "\n", STR_ARG(buffer_str(&yaml)), STR_ARG(buffer_str(&diagnostics)));
    }
    HOLDS(!errors.failed);
    buffer_finish(&yaml);
    arena_reset(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct str text = str_of((const char *)bytes, size);
    const struct nginx_files files = {.read = read_input, .match = match_nothing, .owner = &text};
    const struct import_source source = {
        .path = STR("/n/nginx.conf"), .files = &files, .schema = &schema, .media_type = media_type};
    struct nginx_fault fault = {.message = {NULL, 0}};
    struct buffer list = {0};
    struct import *import;
    struct arena arena;
    int error;

    arena_init(&arena, NULL, 256 * 1024 * 1024);
    error = import_read(&arena, &source, &import, &fault);
    HOLDS(error == 0 || error == -EINVAL);
    if (error == -EINVAL)
        HOLDS(fault.message.length > 0);
    if (error == 0 && is_utf8(text)) {
        check_printed(import);
        for (unsigned line = 1; line < 40; line += 3)
            HOLDS(import_reject(import, line, STR("because")) != -ENOMEM);
        check_printed(import);
    }
    if (error == 0)
        HOLDS(import_list(import, "", &list) == 0);
    buffer_finish(&list);
    arena_reset(&arena);
    return 0;
}
