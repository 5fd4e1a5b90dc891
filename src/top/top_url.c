/*
 * Parses the URL of a status page.
 */
#include "top/top_url.h"

#include "base/str.h"

#include <string.h>

#define SCHEME       "http://"
#define DEFAULT_PORT "80"
#define DEFAULT_PATH "/status"

/* The part fits into its member of struct top_url: the length of the URL, or of the port, has been checked. */
static void copy_part(char *into, struct str text)
{
    if (text.length > 0)
        memcpy(into, text.data, text.length);
    into[text.length] = '\0';
}

/* Characters outside of this range would end the request line or a field. */
static bool is_printable(struct str text)
{
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] <= ' ' || text.data[i] > '~')
            return false;
    }
    return true;
}

static const char *parse_port(struct str text, struct top_url *url)
{
    uint64_t port;

    if (text.length >= sizeof(url->port) || str_to_u64(text, &port) < 0 || port == 0 || port > 65535)
        return "the port must be a number from 1 to 65535";
    copy_part(url->port, text);
    return NULL;
}

static const char *parse_authority(struct str authority, struct top_url *url)
{
    bool brackets = str_starts(authority, STR("["));
    ssize_t end = brackets ? str_find(authority, ']') : str_find(authority, ':');
    struct str host = end < 0 ? authority : str_slice(authority, brackets, (size_t)end);
    struct str rest = end < 0 ? STR("") : str_skip(authority, (size_t)end + brackets);

    if (brackets && end < 0)
        return "the address has no closing bracket";
    if (str_empty(host) || str_find(authority, '@') >= 0)
        return "the URL must have a host, and no user name";
    copy_part(url->host, host);
    copy_part(url->authority, authority);
    copy_part(url->port, STR(DEFAULT_PORT));
    if (str_empty(rest))
        return NULL;
    return rest.data[0] == ':' ? parse_port(str_skip(rest, 1), url)
                               : "only a port (\":N\") may follow the closing bracket";
}

const char *top_url_parse(const char *text, struct top_url *out_url)
{
    struct str rest = str_from(text);
    struct top_url url;
    size_t authority;
    const char *fault;

    if (rest.length > LIMIT_TOP_URL)
        return "the URL is too long";
    if (!str_starts(rest, STR(SCHEME)))
        return "the URL must begin with http://";
    if (!is_printable(rest))
        return "the URL has a character that is not printable ASCII";
    copy_part(url.text, rest);
    rest = str_skip(rest, sizeof(SCHEME) - 1);
    authority = strcspn(rest.data, "/?#");
    fault = parse_authority(str_slice(rest, 0, authority), &url);
    rest = str_skip(rest, authority);
    if (!fault && str_find(rest, '#') >= 0)
        fault = "the URL must not have a fragment";
    if (!fault && str_starts(rest, STR("?")))
        fault = "the URL must have a path before the query";
    if (fault)
        return fault;
    copy_part(url.target, str_empty(rest) ? STR(DEFAULT_PATH) : rest);
    *out_url = url;
    return NULL;
}
