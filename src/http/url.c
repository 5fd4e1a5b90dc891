/*
 * Request targets and Host. A path is decoded once and then normalised in decoded form, so that "%2e%2e" equals
 * "..", and the result has no ".." segment.
 */
#include "http/url.h"

#include "base/limits.h"

#include <arpa/inet.h>
#include <errno.h>

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

/* True if the path is in its normalised form already: no escape, no segment that begins with a dot, no "//". */
static bool is_normalised(struct str path, bool merge_slashes)
{
    char before = 'x';

    for (size_t i = 0; i < path.length; i++) {
        char c = path.data[i];

        if (c == '%' || is_control(c) || (before == '/' && (c == '.' || (c == '/' && merge_slashes))))
            return false;
        before = c;
    }
    return true;
}

/* Percent-decodes `raw` into `into`, which has room for all of it. Bytes written, or -EINVAL. */
static ssize_t percent_decode(struct str raw, char *into)
{
    char *at = into;

    for (size_t i = 0; i < raw.length; i++) {
        char c = raw.data[i];

        if (c == '%') {
            int high = i + 2 < raw.length ? str_hex_digit(raw.data[i + 1]) : -1;
            int low = high < 0 ? -1 : str_hex_digit(raw.data[i + 2]);

            if (low < 0)
                return -EINVAL;
            c = (char)(high << 4 | low);
            i += 2;
        }
        if (is_control(c))
            return -EINVAL;
        *at++ = c;
    }
    return at - into;
}

/*
 * Removes dot segments in place (RFC 3986 5.2.4) from a path that begins with "/". `end` is the end of the result,
 * after a slash whenever a segment begins. A path above the root is rejected, not truncated to the root.
 */
static ssize_t remove_dots(char *path, size_t length, bool merge_slashes)
{
    size_t end = 1;
    size_t at = 1;

    while (at < length) {
        const char *slash = memchr(path + at, '/', length - at);
        size_t next = slash ? (size_t)(slash - path) + 1 : length;
        size_t segment = next - at - (slash ? 1 : 0);

        if (segment == 2 && path[at] == '.' && path[at + 1] == '.') {
            const char *parent = end > 1 ? memrchr(path, '/', end - 1) : NULL;

            if (!parent)
                return -EINVAL;
            end = (size_t)(parent - path) + 1;
        } else if (!(segment == 1 && path[at] == '.') && !(segment == 0 && merge_slashes)) {
            memmove(path + end, path + at, next - at);
            end += next - at;
        }
        at = next;
    }
    return (ssize_t)end;
}

int url_path_normalise(struct arena *arena, struct str path, bool merge_slashes, struct str *out_path)
{
    struct str copy;
    ssize_t length;

    if (path.length == 0 || path.data[0] != '/')
        return -EINVAL;
    for (size_t i = 0; i < path.length; i++) {
        if (is_control(path.data[i]))
            return -EINVAL;
    }
    copy = arena_copy(arena, path);
    if (!copy.data)
        return -ENOMEM;
    length = remove_dots((char *)copy.data, copy.length, merge_slashes);
    if (length < 0)
        return (int)length;
    *out_path = str_slice(copy, 0, (size_t)length);
    return 0;
}

static int path_decode(struct arena *arena, struct str raw, bool merge_slashes, struct str *out_path,
                       bool *out_traverses)
{
    char *decoded;
    ssize_t length;

    if (is_normalised(raw, merge_slashes)) {
        *out_path = raw;
        return 0;
    }
    decoded = arena_alloc(arena, raw.length);
    if (!decoded)
        return -ENOMEM;
    length = percent_decode(raw, decoded);
    *out_traverses = length > 0 && url_path_traverses(str_of(decoded, (size_t)length));
    if (length > 0)
        length = remove_dots(decoded, (size_t)length, merge_slashes);
    if (length < 0)
        return (int)length;
    *out_path = str_of(decoded, (size_t)length);
    return 0;
}

/* Cuts off "http://" or "https://"; false for another form or scheme. */
static bool parse_scheme(struct str *rest)
{
    static const struct str schemes[] = {{"http://", 7}, {"https://", 8}};

    for (size_t i = 0; i < 2; i++) {
        if (str_equal_nocase(str_slice(*rest, 0, schemes[i].length), schemes[i])) {
            *rest = str_skip(*rest, schemes[i].length);
            return true;
        }
    }
    return false;
}

static size_t authority_length(struct str rest)
{
    size_t length = 0;

    while (length < rest.length && rest.data[length] != '/' && rest.data[length] != '?')
        length++;
    return length;
}

int url_target_parse(struct arena *arena, struct str target, bool merge_slashes,
                     struct url_target *out_target)
{
    struct url_target parsed = {.target = target};
    struct str path;
    ssize_t question;
    int error;

    if (str_equal(target, STR("*"))) {
        *out_target = (struct url_target){.target = target, .path = target, .asterisk = true};
        return 0;
    }
    if (target.length == 0 || str_find(target, '#') >= 0)
        return -EINVAL;
    if (target.data[0] != '/') {
        if (!parse_scheme(&target))
            return -EINVAL;
        parsed.authority = str_slice(target, 0, authority_length(target));
        if (parsed.authority.length == 0)
            return -EINVAL;
        target = parsed.target = str_skip(target, parsed.authority.length);
    }
    question = str_find(target, '?');
    path = question < 0 ? target : str_slice(target, 0, (size_t)question);
    if (question >= 0)
        parsed.query = str_skip(target, (size_t)question + 1);
    parsed.bare = target.length == 0;
    if (path.length == 0)
        path = STR("/");
    if (parsed.target.length == 0)
        parsed.target = STR("/");
    else if (parsed.target.data[0] == '?') /* "http://host?query" has the path "/" (RFC 9110 4.2.3) */
        parsed.target = arena_join(arena, (const struct str[]){STR("/"), parsed.target}, 2);
    if (!parsed.target.data)
        return -ENOMEM;
    error = path_decode(arena, path, merge_slashes, &parsed.path, &parsed.traverses);
    if (error)
        return error;
    *out_target = parsed;
    return 0;
}

/* Bytes of a host name: unreserved and sub-delims (RFC 3986 3.2.2). Escapes are rejected. */
static bool is_host_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c && strchr("-._~!$&'()*+,;=", c));
}

/* Lowers a name in place and drops one final dot. 0 if it is invalid: bad bytes, empty labels. */
static size_t host_check(char *name, size_t length)
{
    if (length > 1 && name[length - 1] == '.')
        length--;
    for (size_t i = 0; i < length; i++) {
        name[i] = str_lower(name[i]);
        if (!is_host_byte(name[i]) || (name[i] == '.' && (i == 0 || name[i - 1] == '.')))
            return 0;
    }
    return length && name[length - 1] == '.' ? 0 : length;
}

/* "[...]" with brackets. */
static bool is_ipv6(struct str bracketed)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;

    if (bracketed.length < 4 || bracketed.length - 2 >= sizeof(text))
        return false;
    memcpy(text, bracketed.data + 1, bracketed.length - 2);
    text[bracketed.length - 2] = '\0';
    return strlen(text) == bracketed.length - 2 && inet_pton(AF_INET6, text, &address) == 1;
}

static int parse_url_port(struct str text, uint16_t *out_port)
{
    uint64_t port = 0;

    /* "host:" without digits is legal (RFC 3986 3.2.3). */
    if (text.length && (str_to_u64(text, &port) != 0 || port > UINT16_MAX))
        return -EINVAL;
    *out_port = (uint16_t)port;
    return 0;
}

int url_host_parse(struct arena *arena, struct str text, struct str *out_host, uint16_t *out_port)
{
    bool bracketed = text.length && text.data[0] == '[';
    ssize_t end = bracketed ? str_find(text, ']') : str_find(text, ':');
    size_t length = end < 0 ? text.length : (size_t)end + (bracketed ? 1 : 0);
    struct str rest = str_skip(text, length);
    struct str host;
    uint16_t port = 0;

    if (length == 0 || text.length > LIMIT_HOST || (bracketed && end < 0))
        return -EINVAL;
    if (rest.length && (rest.data[0] != ':' || parse_url_port(str_skip(rest, 1), &port) != 0))
        return -EINVAL;
    host = arena_copy(arena, str_slice(text, 0, length));
    if (!host.data)
        return -ENOMEM;
    if (bracketed) {
        if (!is_ipv6(host))
            return -EINVAL;
        for (size_t i = 0; i < host.length; i++)
            ((char *)host.data)[i] = str_lower(host.data[i]);
    } else {
        host.length = host_check((char *)host.data, host.length);
        if (host.length == 0)
            return -EINVAL;
    }
    *out_host = host;
    *out_port = port;
    return 0;
}

/* pchar without "%" (RFC 3986 3.3), and "/". */
static bool is_path_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr("-._~!$&'()*+,;=:@/", c));
}

struct str url_path_encode(struct arena *arena, struct str path)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t escapes = 0;
    size_t length;
    char *encoded;
    char *at;

    for (size_t i = 0; i < path.length; i++)
        escapes += !is_path_byte(path.data[i]);
    if (__builtin_mul_overflow(escapes, 2u, &length) || __builtin_add_overflow(length, path.length, &length))
        return (struct str){NULL, 0};
    at = encoded = arena_alloc(arena, length);
    if (!encoded)
        return (struct str){NULL, 0};
    for (size_t i = 0; i < path.length; i++) {
        unsigned char c = (unsigned char)path.data[i];

        if (is_path_byte((char)c)) {
            *at++ = (char)c;
        } else {
            *at++ = '%';
            *at++ = digits[c >> 4];
            *at++ = digits[c & 15];
        }
    }
    return str_of(encoded, length);
}

bool url_path_hidden(struct str path)
{
    while (path.data) {
        struct str segment = str_cut(&path, '/');

        if (str_starts(segment, STR(".")) && !str_equal(segment, STR(".well-known")))
            return true;
    }
    return false;
}

bool url_path_traverses(struct str path)
{
    while (path.data) {
        if (str_equal(str_cut(&path, '/'), STR("..")))
            return true;
    }
    return false;
}

/* An IPv6 address without brackets has no port. */
struct str url_without_port(struct str authority)
{
    ssize_t colon = str_rfind(authority, ':');
    ssize_t close = str_rfind(authority, ']');
    bool has_port = colon > close && (close >= 0 || str_find(authority, ':') == colon);

    return has_port ? str_slice(authority, 0, (size_t)colon) : authority;
}
