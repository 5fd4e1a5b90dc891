/*
 * Media types: the built-in table, the `types` directive, and the lookup table of a scope, which contains
 * each Content-Type with its charset, so that a request copies no text.
 */
#include "site/core.h"

#include <errno.h>

static const struct {
    const char *extensions;
    const char *type;
} built_in[] = {
    {"atom", "application/atom+xml"},
    {"mpd", "application/dash+xml"},
    {"epub", "application/epub+zip"},
    {"geojson", "application/geo+json"},
    {"gz tgz", "application/gzip"},
    {"jar war ear", "application/java-archive"},
    {"json map", "application/json"},
    {"jsonld", "application/ld+json"},
    {"webmanifest", "application/manifest+json"},
    {"doc", "application/msword"},
    {"bin exe dll img msi dmg so", "application/octet-stream"},
    {"pdf", "application/pdf"},
    {"sig", "application/pgp-signature"},
    {"ps eps ai", "application/postscript"},
    {"rss", "application/rss+xml"},
    {"rtf", "application/rtf"},
    {"sql", "application/sql"},
    {"toml", "application/toml"},
    {"apk", "application/vnd.android.package-archive"},
    {"m3u8", "application/vnd.apple.mpegurl"},
    {"deb", "application/vnd.debian.binary-package"},
    {"kml", "application/vnd.google-earth.kml+xml"},
    {"kmz", "application/vnd.google-earth.kmz"},
    {"xls", "application/vnd.ms-excel"},
    {"eot", "application/vnd.ms-fontobject"},
    {"ppt", "application/vnd.ms-powerpoint"},
    {"odg", "application/vnd.oasis.opendocument.graphics"},
    {"odp", "application/vnd.oasis.opendocument.presentation"},
    {"ods", "application/vnd.oasis.opendocument.spreadsheet"},
    {"odt", "application/vnd.oasis.opendocument.text"},
    {"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
    {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {"rar", "application/vnd.rar"},
    {"sqlite", "application/vnd.sqlite3"},
    {"wasm", "application/wasm"},
    {"7z", "application/x-7z-compressed"},
    {"br", "application/x-brotli"},
    {"bz2", "application/x-bzip2"},
    {"iso", "application/x-iso9660-image"},
    {"rpm", "application/x-rpm"},
    {"tar", "application/x-tar"},
    {"pem crt der", "application/x-x509-ca-cert"},
    {"xz", "application/x-xz"},
    {"xhtml", "application/xhtml+xml"},
    {"xsl xsd rng", "application/xml"},
    {"zip", "application/zip"},
    {"zst", "application/zstd"},
    {"aac", "audio/aac"},
    {"flac", "audio/flac"},
    {"mid midi", "audio/midi"},
    {"m4a", "audio/mp4"},
    {"mp3", "audio/mpeg"},
    {"ogg oga opus", "audio/ogg"},
    {"wav", "audio/wav"},
    {"weba", "audio/webm"},
    {"ttc", "font/collection"},
    {"otf", "font/otf"},
    {"ttf", "font/ttf"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"apng", "image/apng"},
    {"avif", "image/avif"},
    {"bmp", "image/bmp"},
    {"gif", "image/gif"},
    {"heic", "image/heic"},
    {"jpeg jpg jpe jfif", "image/jpeg"},
    {"jxl", "image/jxl"},
    {"png", "image/png"},
    {"svg svgz", "image/svg+xml"},
    {"tif tiff", "image/tiff"},
    {"webp", "image/webp"},
    {"ico cur", "image/x-icon"},
    {"ics", "text/calendar"},
    {"css", "text/css"},
    {"csv", "text/csv"},
    {"html htm shtml", "text/html"},
    {"js mjs", "text/javascript"},
    {"md markdown", "text/markdown"},
    {"txt text log conf cfg ini asc", "text/plain"},
    {"vcf", "text/vcard"},
    {"vtt", "text/vtt"},
    {"c h", "text/x-c"},
    {"htc", "text/x-component"},
    {"diff patch", "text/x-diff"},
    {"py", "text/x-python"},
    {"sh", "text/x-shellscript"},
    {"xml", "text/xml"},
    {"yaml yml", "text/yaml"},
    {"3gp 3gpp", "video/3gpp"},
    {"ts", "video/mp2t"},
    {"mp4 m4v", "video/mp4"},
    {"mpeg mpg", "video/mpeg"},
    {"ogv", "video/ogg"},
    {"mov", "video/quicktime"},
    {"webm", "video/webm"},
    {"flv", "video/x-flv"},
    {"mkv", "video/x-matroska"},
    {"avi", "video/x-msvideo"},
};

#define BUILT_IN (sizeof(built_in) / sizeof(built_in[0]))

static int add_rows(struct conf_reader *reader, const struct conf_pair *pair, struct conf_rows *rows,
                    size_t *room)
{
    struct conf_words words;
    struct media_type *items = rows->items;
    int error = conf_read_words(reader, pair->value, &words);

    if (error < 0)
        return error;
    if (str_find(pair->key->text, '/') < 1 || words.count == 0) {
        conf_error(reader->errors, pair->key->mark, STR("types: {text/x-log: [log, out]}"),
                   "types maps a media type to its extensions");
        return -EINVAL;
    }
    if (rows->count + words.count > *room) {
        size_t capacity = (rows->count + words.count) * 2;

        items = arena_zalloc(reader->arena, capacity, sizeof(*items));
        if (!items)
            return -ENOMEM;
        if (rows->count)
            memcpy(items, rows->items, rows->count * sizeof(*items));
        rows->items = items;
        *room = capacity;
    }
    for (size_t i = 0; i < words.count; i++) {
        struct str extension = words.items[i];

        if (str_starts(extension, STR(".")))
            extension = str_skip(extension, 1);
        items[rows->count++] = (struct media_type){extension, pair->key->text};
    }
    return 0;
}

int core_types_read(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct conf_rows rows = {arena_zalloc(reader->arena, 1, sizeof(struct media_type)), 0};
    size_t room = 1;

    if (!rows.items)
        return -ENOMEM;
    if (node->kind != CONF_MAP) {
        conf_error(reader->errors, node->mark, STR("types: {text/x-log: [log, out]}"), "types takes a mapping");
        return -EINVAL;
    }
    for (size_t i = 0; i < node->count; i++) {
        int error = add_rows(reader, &node->pairs[i], &rows, &room);

        if (error < 0)
            return error;
    }
    *(struct conf_rows *)out = rows;
    return 0;
}

/* Returns the type as it is sent: with charset if it is one that takes a charset. */
static struct str complete_type(struct arena *arena, const struct core_site *site, struct str type)
{
    struct str charset = site->charset.data ? site->charset : STR("utf-8");

    if (str_equal(charset, STR("off")) || str_empty(charset) || !mime_takes_charset(type))
        return type;
    return arena_join(arena, (const struct str[]){type, STR("; charset="), charset}, 3);
}

static const struct str *make_content_type(struct arena *arena, const struct core_site *site, struct str type)
{
    struct str *copy = arena_alloc(arena, sizeof(*copy));

    if (!copy)
        return NULL;
    *copy = complete_type(arena, site, type);
    return copy->data ? copy : NULL;
}

static int add_built_in(struct arena *arena, struct core_site *site)
{
    for (size_t i = 0; i < BUILT_IN; i++) {
        struct str rest = str_from(built_in[i].extensions);
        const struct str *type = make_content_type(arena, site, str_from(built_in[i].type));

        while (type && rest.data) {
            int error = table_set(&site->mime.by_extension, str_cut(&rest, ' '), (void *)(uintptr_t)type);

            if (error < 0)
                return error;
        }
        if (!type)
            return -ENOMEM;
    }
    return 0;
}

struct str core_type_built_in(struct str extension)
{
    for (size_t i = 0; i < BUILT_IN; i++) {
        struct str rest = str_from(built_in[i].extensions);

        while (rest.data) {
            if (str_equal_nocase(str_cut(&rest, ' '), extension))
                return str_from(built_in[i].type);
        }
    }
    return (struct str){NULL, 0};
}

int core_types_build(struct arena *arena, struct core_site *site)
{
    const struct media_type *rows = site->types.items;
    bool is_emptied = rows && site->types.count == 0;
    int error = 0;

    table_init(&site->mime.by_extension, true);
    site->mime.default_type = complete_type(
        arena, site, str_empty(site->default_type) ? STR("application/octet-stream") : site->default_type);
    if (!site->mime.default_type.data)
        error = -ENOMEM;
    if (error == 0 && !is_emptied)
        error = add_built_in(arena, site);
    for (size_t i = 0; i < site->types.count && error == 0; i++) {
        const struct str *type = make_content_type(arena, site, rows[i].type);

        error =
            type ? table_set(&site->mime.by_extension, rows[i].extension, (void *)(uintptr_t)type) : -ENOMEM;
    }
    if (error < 0)
        table_finish(&site->mime.by_extension);
    return error;
}
