/*
 * Rows of limit_req and limit_conn, and the zones that they name.
 */
#include "limit/limit_use.h"

#include "base/table.h"

#include <errno.h>

static const struct {
    const char *directive, *hint;
} kinds[] = {
    [LIMIT_REQUESTS] = {"limit_req",
                        "write in http: limit_req_zone: \"$binary_remote_addr zone=one:10m rate=10r/s\""},
    [LIMIT_CONNECTIONS] = {"limit_conn", "write in http: limit_conn_zone: \"$binary_remote_addr zone=addr:10m\""},
    [LIMIT_STREAM_CONNECTIONS] = {"limit_conn",
                                  "write in stream: limit_conn_zone: \"$binary_remote_addr zone=addr:10m\""},
};

static struct limit_use *use_at(const struct conf_rows *rows, size_t row_size, size_t index)
{
    return (struct limit_use *)(void *)((char *)rows->items + index * row_size);
}

/* A zone that is named twice would count a request twice. */
static bool is_named_before(const struct conf_rows *rows, size_t row_size, size_t index)
{
    const struct limit_conf *zone = use_at(rows, row_size, index)->zone;

    for (size_t i = 0; i < index; i++) {
        if (use_at(rows, row_size, i)->zone == zone)
            return true;
    }
    return false;
}

int limit_uses_find(struct conf_reader *reader, enum limit_kind kind, const struct conf_rows *rows, size_t row_size)
{
    for (size_t i = 0; i < rows->count; i++) {
        struct limit_use *use = use_at(rows, row_size, i);

        if (!use->name.data) /* the row was rejected and reported */
            return -EINVAL;
        use->zone = limits_find(reader->limits, kind, use->name);
        if (!use->zone) {
            conf_error(reader->errors, use->mark, str_from(kinds[kind].hint),
                       "%s: there is no %s_zone \"" STR_FMT "\"", kinds[kind].directive, kinds[kind].directive,
                       STR_ARG(use->name));
            return -EINVAL;
        }
        if (is_named_before(rows, row_size, i)) {
            conf_error(reader->errors, use->mark, STR("delete one of the two"),
                       "%s names the zone \"" STR_FMT "\" twice", kinds[kind].directive, STR_ARG(use->name));
            return -EINVAL;
        }
    }
    return 0;
}

void limit_use_record(const struct limit_use *use, struct str key, enum limit_action action, int64_t now_s)
{
    limit_zone_record(use->zone->zone, key, table_hash_long(key), action, now_s);
}

const char *const limit_levels[] = {"info", "notice", "warn", "error", NULL};

enum log_level limit_level(int choice)
{
    static const enum log_level levels[] = {LOG_INFO, LOG_NOTICE, LOG_WARN, LOG_ERROR};

    return levels[choice < 0 ? 0 : choice];
}
