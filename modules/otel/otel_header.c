/*
 * `header` of otel_exporter: further fields of the requests to the collector. Values may be secrets: no message quotes
 * them.
 */
#include "otel.h"

#include "base/limits.h"
#include "http/h1_parse.h"
#include "site/field_name.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define HEADER_HINT STR("write header: {authorization: {file: /etc/sluice/collector.token}}")

/* Written by the exporter, or about its connection (RFC 9110 7.6.1). */
static const char *const reserved[] = {"Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect",
                                       "Host", "Keep-Alive", "Proxy-Connection", "TE", "Trailer",
                                       "Transfer-Encoding", "Upgrade", "User-Agent", NULL};

static const struct directive file_children[] = {
    {.name = "file",
     .type = DIRECTIVE_PATH,
     .offset = 0,
     .help = "File with the value. A line break at its end does not belong to it."},
    {0},
};

static int report_header(struct conf_reader *reader, const struct conf_node *node, struct str name, const char *what)
{
    conf_error(reader->errors, node->mark, HEADER_HINT, "header " STR_FMT ": %s", STR_ARG(name), what);
    return -EINVAL;
}

/* Reads at most `size` bytes of a file. Returns their number, or -errno. */
static ssize_t read_path(const char *path, char *into, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    size_t length = 0;
    ssize_t got = fd < 0 ? -1 : 1;

    while (got > 0 || (fd >= 0 && got < 0 && errno == EINTR)) {
        got = read(fd, into + length, size - length);
        length += got > 0 ? (size_t)got : 0;
    }
    if (got < 0)
        got = -errno;
    if (fd >= 0)
        close(fd);
    return got < 0 ? got : (ssize_t)length;
}

static int read_file(struct conf_reader *reader, const struct conf_node *node, struct str name, struct str *out_value)
{
    struct str file = STR(""), path;
    char *text;
    ssize_t length;
    int error = conf_read_block(reader, node, file_children, &file);

    if (error < 0)
        return error;
    if (str_empty(file))
        return report_header(reader, node, name, "the mapping has no file");
    path = arena_copy(reader->arena, file);
    text = arena_alloc(reader->arena, LIMIT_OTLP_FIELDS + 1);
    if (!path.data || !text)
        return -ENOMEM;
    length = read_path(path.data, text, LIMIT_OTLP_FIELDS + 1);
    if (length < 0) {
        conf_error(reader->errors, node->mark, STR("create it, with one line"),
                   "header " STR_FMT ": \"" STR_FMT "\" cannot be read (%d: %s)", STR_ARG(name), STR_ARG(path),
                   (int)-length, strerror((int)-length));
        return -EINVAL;
    }
    *out_value = str_of(text, (size_t)length);
    if (str_ends(*out_value, STR("\n")))
        out_value->length--;
    if (str_ends(*out_value, STR("\r")))
        out_value->length--;
    return 0;
}

static int read_field(struct conf_reader *reader, const struct conf_pair *pair, struct otlp_pair *field)
{
    struct str name = pair->key->text, value;
    bool in_file = pair->value->kind == CONF_MAP;
    int error = field_name_check(reader, pair->key->mark, name, "header", reserved, HEADER_HINT);

    if (!in_file)
        conf_mark_hide(pair->value->mark);
    if (error == 0)
        error = in_file ? read_file(reader, pair->value, name, &value) : conf_read_text(reader, pair->value, &value);
    if (error < 0)
        return error;
    value = str_trim(value);
    if (!h1_is_value(value))
        return report_header(reader, pair->value, name, "the value has a line break or another control byte");
    if (str_empty(value))
        return report_header(reader, pair->value, name, "the value is empty");
    *field = (struct otlp_pair){name, value};
    return 0;
}

int otel_header_read(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct otel_header *row = out;
    int result = 0;

    if (node->kind != CONF_MAP) {
        conf_mark_hide(node->mark);
        conf_error(reader->errors, node->mark, HEADER_HINT, "'header' takes a mapping from names to values");
        return -EINVAL;
    }
    row->fields = arena_zalloc(reader->arena, node->count + 1, sizeof(*row->fields));
    if (!row->fields)
        return -ENOMEM;
    for (size_t i = 0; i < node->count; i++) {
        int error = read_field(reader, &node->pairs[i], &row->fields[row->count]);

        if (error == -ENOMEM)
            return error;
        row->count += error == 0;
        result = error < 0 ? error : result;
    }
    return result;
}

int otel_header_check(const struct otel_exporter *exporter, struct conf_reader *reader, const struct conf_node *at)
{
    const struct conf_node *node = conf_map_get(conf_map_get(at, STR("otel_exporter")), STR("header"));
    const struct otel_header *rows = exporter->header.items;
    struct otlp_pair *fields;
    size_t count = 0, bytes = 0;

    for (size_t i = 0; i < exporter->header.count; i++)
        count += rows[i].count;
    fields = arena_zalloc(reader->arena, count + 1, sizeof(*fields));
    if (!fields)
        return -ENOMEM;
    reader->otlp->fields = fields;
    reader->otlp->field_count = count;
    for (size_t i = 0; i < exporter->header.count; i++) {
        for (size_t k = 0; k < rows[i].count; k++) {
            bytes += rows[i].fields[k].name.length + rows[i].fields[k].value.length + strlen(": \r\n");
            *fields++ = rows[i].fields[k];
        }
    }
    if (bytes <= LIMIT_OTLP_FIELDS)
        return 0;
    conf_error(reader->errors, node ? node->mark : at->mark, STR("shorten the values, or remove fields"),
               "header: all fields together have more than %d bytes", LIMIT_OTLP_FIELDS);
    return -EINVAL;
}
