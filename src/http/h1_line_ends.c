/*
 * Most heads have no bare LF and are copied at once.
 */
#include "http/h1_line_ends.h"

/* Length of the prefix of `lines` before the first bare LF; its whole length if there is none. */
static size_t before_bare_feed(struct str lines)
{
    const char *at = lines.data;
    const char *end = at + lines.length;

    while (at < end && (at = memchr(at, '\n', (size_t)(end - at)))) {
        if (at == lines.data || at[-1] != '\r')
            return (size_t)(at - lines.data);
        at++;
    }
    return lines.length;
}

static size_t count_feeds(struct str s)
{
    size_t feeds = 0;

    for (size_t i = 0; i < s.length; i++)
        feeds += s.data[i] == '\n';
    return feeds;
}

struct str h1_copy_lines(struct arena *arena, struct str lines)
{
    size_t length = before_bare_feed(lines);
    char *copy = arena_alloc(arena, lines.length + count_feeds(str_skip(lines, length)) + 1);

    if (!copy)
        return (struct str){0};
    if (length)
        memcpy(copy, lines.data, length);
    for (size_t i = length; i < lines.length; i++) {
        if (lines.data[i] == '\n' && (i == 0 || lines.data[i - 1] != '\r'))
            copy[length++] = '\r';
        copy[length++] = lines.data[i];
    }
    return (struct str){copy, length};
}
