/*
 * Writes the listing as HTML and as JSON. Names are escaped for their context. The path is the only part of the request
 * in the page. A long listing has a filter, the only script.
 */
#include "autoindex.h"

#include "http/date.h"
#include "http/url.h"
#include "server/page/html.h"
#include "server/page/page.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

/* A listing with more entries has a filter. */
#define FILTER_FROM 50

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Consumes a run of digits, and returns it without leading zeros. */
static struct str next_number(struct str *text)
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
            struct str one = next_number(&left), other = next_number(&right);
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

/* Writes the link of an item, with the prefix "./", so that a name with a colon is not parsed as a scheme. */
static int write_link(const struct listing *listing, struct buffer *out, const struct directory_entry *item)
{
    struct str encoded = url_path_encode(&listing->x->arena, item->name);
    int error = encoded.data ? buffer_append(out, STR("<a href=\"./")) : -ENOMEM;

    if (error == 0)
        error = html_append(out, encoded);
    if (error == 0)
        error = buffer_printf(out, "%s\"><bdi>", item->is_directory ? "/" : "");
    if (error == 0)
        error = html_append(out, item->name);
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
    char text[64] = "";
    struct tm when;

    if (listing->conf->localtime ? localtime_r(&seconds, &when) : gmtime_r(&seconds, &when))
        (void)strftime(text, sizeof(text), "<span>%Y-%m-%d</span> <span>%H:%M</span>", &when);
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
            error = html_append(out, name);
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

static int write_page_head(const struct listing *listing, struct buffer *out)
{
    struct str path = listing->x->request.path;
    int error = buffer_append(out, page_start);

    if (error == 0)
        error = buffer_append(out, STR("<title>"));
    if (error == 0)
        error = html_append(out, path);
    if (error == 0)
        error = buffer_append(out, STR("</title>\n"));
    if (error == 0)
        error = write_breadcrumbs(out, path);
    if (error == 0 && listing_has_filter(listing))
        error = buffer_append(out, STR("<label hidden>Filter <input type=\"search\"></label>\n"));
    return error;
}

static int write_table_head(const struct listing *listing, struct buffer *out)
{
    int error = buffer_append(out, STR("<table>\n<thead>\n<tr>"));

    for (int sort = SORT_NAME; sort <= SORT_DATE && error == 0; sort++)
        error = write_column(listing, out, (enum listing_sort)sort);
    if (error == 0 && listing->x->request.path.length > 1)
        error = buffer_append(out, STR("\n<tbody>\n<tr><td><a href=\"../\">../</a><td><td>"));
    return error < 0 ? error : buffer_append(out, STR("\n<tbody>\n"));
}

static int write_page_end(const struct listing *listing, struct buffer *out, size_t directories)
{
    size_t others = listing->directory.count - directories;
    int error = buffer_printf(out, "</table>\n<p class=\"note\">%zu director%s, %zu file%s%s</p>\n", directories,
                              directories == 1 ? "y" : "ies", others, others == 1 ? "" : "s",
                              listing->directory.truncated ? "; there are more, which are not shown" : "");

    if (error == 0 && listing_has_filter(listing))
        error = buffer_append(out, page_filter_script);
    return error < 0 ? error : buffer_append(out, STR("</html>\n"));
}

bool listing_has_filter(const struct listing *listing)
{
    return listing->directory.count > FILTER_FROM;
}

int listing_write_page(const struct listing *listing, struct buffer *out)
{
    const struct directory *directory = &listing->directory;
    size_t directories = 0;
    int error = write_page_head(listing, out);

    if (error == 0)
        error = write_table_head(listing, out);
    for (size_t i = 0; i < directory->count && error == 0; i++) {
        directories += directory->items[i].is_directory;
        error = write_row(listing, out, &directory->items[i]);
    }
    return error < 0 ? error : write_page_end(listing, out, directories);
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
