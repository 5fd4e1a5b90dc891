/*
 * Writes the listing as HTML without scripts, and as JSON. Names are escaped for their context. The path is the only
 * part of the request in the page.
 */
#include "autoindex.h"

#include "http/date.h"
#include "http/url.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Cuts off a run of digits; returns it without leading zeros. */
static struct str cut_number(struct str *text)
{
    size_t zeros = 0, length;

    while (zeros < text->length && text->data[zeros] == '0')
        zeros++;
    length = zeros;
    while (length < text->length && is_digit(text->data[length]))
        length++;
    struct str number = str_slice(*text, zeros, length);

    *text = str_skip(*text, length);
    return number;
}

int natural_compare(struct str a, struct str b)
{
    struct str left = a, right = b;

    while (left.length && right.length) {
        char l = str_lower(left.data[0]), r = str_lower(right.data[0]);

        if (is_digit(l) && is_digit(r)) {
            struct str one = cut_number(&left), other = cut_number(&right);
            int order = one.length == other.length  ? str_compare(one, other)
                        : one.length < other.length ? -1
                                                    : 1;

            if (order)
                return order;
            continue;
        }
        if (l != r)
            return (unsigned char)l < (unsigned char)r ? -1 : 1;
        left = str_skip(left, 1);
        right = str_skip(right, 1);
    }
    if (left.length || right.length)
        return left.length ? 1 : -1;
    return str_compare(a, b);
}

static int by_name(const void *a, const void *b)
{
    const struct directory_entry *left = a, *right = b;

    if (left->is_directory != right->is_directory)
        return left->is_directory ? -1 : 1;
    return natural_compare(left->name, right->name);
}

static int by_size(const void *a, const void *b)
{
    const struct directory_entry *left = a, *right = b;

    if (left->is_directory == right->is_directory && left->size != right->size)
        return left->size < right->size ? -1 : 1;
    return by_name(a, b);
}

static int by_date(const void *a, const void *b)
{
    const struct directory_entry *left = a, *right = b;

    if (left->is_directory == right->is_directory && left->modified_s != right->modified_s)
        return left->modified_s < right->modified_s ? -1 : 1;
    return by_name(a, b);
}

/* Reverses the order; called for directories and files separately, so that directories stay first. */
static void reverse_items(struct directory_entry *items, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        struct directory_entry entry = items[i];

        items[i] = items[count - 1 - i];
        items[count - 1 - i] = entry;
    }
}

void listing_sort(struct listing *listing)
{
    static int (*const orders[])(const void *, const void *) = {by_name, by_size, by_date};
    struct directory *directory = &listing->directory;
    size_t directories = 0;

    if (directory->count)
        qsort(directory->items, directory->count, sizeof(*directory->items), orders[listing->sort]);
    while (directories < directory->count && directory->items[directories].is_directory)
        directories++;
    if (listing->descending && directory->count) {
        reverse_items(directory->items, directories);
        reverse_items(directory->items + directories, directory->count - directories);
    }
}

/* Length in bytes of the UTF-8 character at the start of the text (RFC 3629); 0: invalid. */
static size_t utf8_character_length(struct str text)
{
    unsigned char first = (unsigned char)text.data[0];
    size_t length = first < 0x80                    ? 1
                    : first >= 0xc2 && first < 0xe0 ? 2
                    : first >= 0xe0 && first < 0xf0 ? 3
                    : first >= 0xf0 && first < 0xf5 ? 4
                                                    : 0;

    if (length == 0 || length > text.length)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if (((unsigned char)text.data[i] & 0xc0) != 0x80)
            return 0;
    }
    if (length > 2) {
        unsigned char second = (unsigned char)text.data[1];

        if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
            (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
            return 0;
    }
    return length;
}

static struct str html_sign(char c)
{
    switch (c) {
    case '&':
        return STR("&amp;");
    case '<':
        return STR("&lt;");
    case '>':
        return STR("&gt;");
    case '"':
        return STR("&quot;");
    case '\'':
        return STR("&#39;");
    default:
        return (unsigned char)c < 0x20 || c == 0x7f ? STR("\357\277\275") : (struct str){NULL, 0};
    }
}

/* Replaces invalid UTF-8 and control characters by U+FFFD. */
static int write_html(struct buffer *out, struct str text)
{
    int error = 0;

    while (text.length && error == 0) {
        size_t length = utf8_character_length(text);
        struct str sign = length ? html_sign(text.data[0]) : STR("\357\277\275");

        error = buffer_append(out, sign.data ? sign : str_slice(text, 0, length));
        text = str_skip(text, length ? length : 1);
    }
    return error;
}

/* Writes the link of an item, with the prefix "./", so that a name with a colon is not parsed as a scheme. */
static int write_link(const struct listing *listing, struct buffer *out, const struct directory_entry *item)
{
    struct str encoded = url_path_encode(&listing->x->arena, item->name);
    int error = encoded.data ? buffer_append(out, STR("<a href=\"./")) : -ENOMEM;

    if (error == 0)
        error = write_html(out, encoded);
    if (error == 0)
        error = buffer_printf(out, "%s\"><bdi>", item->is_directory ? "/" : "");
    if (error == 0)
        error = write_html(out, item->name);
    return error < 0 ? error : buffer_printf(out, "%s</bdi></a>", item->is_directory ? "/" : "");
}

static int write_size(const struct listing *listing, struct buffer *out, const struct directory_entry *item)
{
    static const char units[] = "kMGTPE";
    uint64_t size = item->size;
    unsigned unit = 0;

    if (item->is_directory)
        return buffer_append(out, STR("&ndash;"));
    if (listing->conf->exact_size || size < 1000)
        return buffer_printf(out, "%llu B", (unsigned long long)size);
    for (; size >= 999950; size /= 1000)
        unit++;
    return size < 99950
               ? buffer_printf(out, "%llu.%llu %cB", (unsigned long long)(size + 50) / 1000,
                               (unsigned long long)(size + 50) % 1000 / 100, units[unit])
               : buffer_printf(out, "%llu %cB", (unsigned long long)(size + 500) / 1000, units[unit]);
}

static int write_date(const struct listing *listing, struct buffer *out, const struct directory_entry *item)
{
    time_t seconds = (time_t)item->modified_s;
    char text[32] = "";
    struct tm when;

    if (listing->conf->localtime ? localtime_r(&seconds, &when) : gmtime_r(&seconds, &when))
        (void)strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &when);
    return buffer_append(out, str_from(text));
}

static int write_row(const struct listing *listing, struct buffer *out, const struct directory_entry *item)
{
    int error = buffer_append(out, STR("<tr><td>"));

    if (error == 0)
        error = write_link(listing, out, item);
    if (error == 0)
        error = buffer_append(out, STR("<td>"));
    if (error == 0)
        error = write_size(listing, out, item);
    if (error == 0)
        error = buffer_append(out, STR("<td>"));
    if (error == 0)
        error = write_date(listing, out, item);
    return error < 0 ? error : buffer_append(out, STR("\n"));
}

/* Writes the directories of the path, each parent as a link; the last one is the current directory. */
static int write_breadcrumbs(struct buffer *out, struct str path)
{
    size_t depth = 0;
    int error;

    for (size_t i = 1; i < path.length; i++)
        depth += path.data[i] == '/';
    error = buffer_append(out, STR("<h1><a href=\"./"));
    for (size_t i = 0; i < depth && error == 0; i++)
        error = buffer_append(out, STR("../"));
    if (error == 0)
        error = buffer_append(out, STR("\">/</a>"));
    path = str_skip(path, 1);
    while (path.length && error == 0) {
        struct str name = str_cut(&path, '/');

        depth--;
        error = buffer_append(out, STR(" <a href=\"./"));
        for (size_t i = 0; i < depth && error == 0; i++)
            error = buffer_append(out, STR("../"));
        if (error == 0)
            error = buffer_append(out, STR("\"><bdi>"));
        if (error == 0)
            error = write_html(out, name);
        if (error == 0)
            error = buffer_append(out, STR("</bdi></a> /"));
    }
    return error < 0 ? error : buffer_append(out, STR("</h1>\n"));
}

/* The link of a column sorts by it; the link of the current column reverses the order. */
static int write_column(const struct listing *listing, struct buffer *out, enum listing_sort sort)
{
    static const struct {
        const char *key, *title;
    } columns[] = {{"name", "Name"}, {"size", "Size"}, {"date", "Changed"}};
    bool current = listing->sort == sort;
    bool descending = current && !listing->descending;

    return buffer_printf(out, "<th%s><a href=\"?sort=%s&amp;order=%s\">%s</a>%s",
                         !current              ? ""
                         : listing->descending ? " aria-sort=\"descending\""
                                               : " aria-sort=\"ascending\"",
                         columns[sort].key, descending ? "desc" : "asc", columns[sort].title,
                         !current              ? ""
                         : listing->descending ? " &darr;"
                                               : " &uarr;");
}

/* The hash covers the text between the style tags. After a change of the style the tests print the new hash. */
const char listing_policy[] = "default-src 'none'; style-src 'sha256-Dqi+KWnB8LH7TSpDixnFn7RyWCjSdpJcm994sopZjDM='; "
                              "base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

static const char style[] =
    "<style>\n"
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 "
    "1rem;color:#222;background:#fff}\n"
    "h1{font-size:1.25rem;font-weight:600;overflow-wrap:anywhere}\n"
    "a{color:#0b57d0;text-decoration:none}a:hover,a:focus{text-decoration:underline}\n"
    "table{width:100%;border-collapse:collapse}th{text-align:left;font-weight:600}\n"
    "th,td{padding:.2rem .5rem;border-bottom:1px solid #ddd}td:first-child{overflow-wrap:anywhere}\n"
    "th:nth-child(n+2),td:nth-child(n+2){text-align:right;white-space:nowrap;font-variant-numeric:tabular-"
    "nums}\n"
    "p{color:#666}\n"
    "@media(max-width:40rem){th:nth-child(3),td:nth-child(3){display:none}}\n"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}a{color:#8ab4f8}th,td{border-color:"
    "#333}"
    "p{color:#999}}\n"
    "</style>\n";

static int write_page_head(const struct listing *listing, struct buffer *out)
{
    struct str path = listing->x->request.path;
    int error = buffer_append(out, STR("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
                                       "<meta name=\"viewport\" content=\"width=device-width\">\n"
                                       "<meta name=\"color-scheme\" content=\"light dark\">\n<title>"));

    if (error == 0)
        error = write_html(out, path);
    if (error == 0)
        error = buffer_append(out, STR("</title>\n"));
    if (error == 0)
        error = buffer_append(out, str_of(style, sizeof(style) - 1));
    if (error == 0)
        error = write_breadcrumbs(out, path);
    if (error == 0)
        error = buffer_append(out, STR("<table>\n<tr>"));
    for (int sort = SORT_NAME; sort <= SORT_DATE && error == 0; sort++)
        error = write_column(listing, out, (enum listing_sort)sort);
    if (error == 0)
        error = buffer_append(out, STR("\n"));
    if (error == 0 && path.length > 1)
        error = buffer_append(out, STR("<tr><td><a href=\"../\">../</a><td><td>\n"));
    return error;
}

int listing_write_page(const struct listing *listing, struct buffer *out)
{
    const struct directory *directory = &listing->directory;
    size_t directories = 0;
    int error = write_page_head(listing, out);

    for (size_t i = 0; i < directory->count && error == 0; i++) {
        directories += directory->items[i].is_directory;
        error = write_row(listing, out, &directory->items[i]);
    }
    if (error == 0)
        error = buffer_printf(out, "</table>\n<p>%zu director%s, %zu file%s%s</p>\n</html>\n", directories,
                              directories == 1 ? "y" : "ies", directory->count - directories,
                              directory->count - directories == 1 ? "" : "s",
                              directory->cut ? "; there are more, which are not shown" : "");
    return error;
}

/* The format of nginx. */
int listing_write_json(const struct listing *listing, struct buffer *out)
{
    const struct directory *directory = &listing->directory;
    int error = buffer_append(out, STR("["));

    for (size_t i = 0; i < directory->count && error == 0; i++) {
        const struct directory_entry *item = &directory->items[i];
        char date[DATE_LENGTH + 1];
        struct str modified = date_format(item->modified_s, date);

        error = buffer_append(out, i ? STR(",\n{\"name\":\"") : STR("\n{\"name\":\""));
        if (error == 0)
            error = template_escape_json(out, item->name);
        if (error == 0)
            error = buffer_printf(out, "\",\"type\":\"%s\",\"mtime\":\"" STR_FMT "\"",
                                  item->is_directory ? "directory" : "file", STR_ARG(modified));
        if (error == 0 && !item->is_directory)
            error = buffer_printf(out, ",\"size\":%llu", (unsigned long long)item->size);
        if (error == 0)
            error = buffer_append(out, STR("}"));
    }
    return error < 0 ? error : buffer_append(out, STR("\n]\n"));
}
