/*
 * Media types by file name extension. The reader of the `types` directive fills the table.
 */
#include "http/mime.h"

const struct str *mime_find(const struct mime *mime, struct str path)
{
    struct str name = str_skip(path, (size_t)(str_rfind(path, '/') + 1));
    ssize_t dot = str_rfind(name, '.');

    return dot >= 0 ? table_get(&mime->by_extension, str_skip(name, (size_t)dot + 1)) : NULL;
}

struct str mime_lookup(const struct mime *mime, struct str path)
{
    const struct str *type = mime_find(mime, path);

    return type ? *type : mime->default_type;
}

static bool starts_nocase(struct str s, struct str prefix)
{
    return str_equal_nocase(str_slice(s, 0, prefix.length), prefix);
}

static bool ends_nocase(struct str s, struct str suffix)
{
    return s.length >= suffix.length && str_equal_nocase(str_skip(s, s.length - suffix.length), suffix);
}

bool mime_takes_charset(struct str type)
{
    struct str essence = str_trim(str_cut(&type, ';'));

    /*
     * A type with a parameter is not changed. XML declares its encoding (RFC 7303 3.2); JSON has no charset (RFC 8259
     * 11).
     */
    if (type.data || ends_nocase(essence, STR("+xml")) || ends_nocase(essence, STR("/xml")) ||
        ends_nocase(essence, STR("+json")))
        return false;
    return starts_nocase(essence, STR("text/")) || str_equal_nocase(essence, STR("application/javascript"));
}
