/*
 * Preconditions (RFC 9110 13). A backslash in an entity tag is no escape, so header_list_next cannot parse a list of
 * them.
 */
#include "http/conditional.h"

#include "http/date.h"

#include <errno.h>

/* etagc (RFC 9110 8.8.3): any visible byte but the quote. */
static bool is_etag_byte(char c)
{
    unsigned char byte = (unsigned char)c;

    return byte == 0x21 || (byte >= 0x23 && byte != 0x7f);
}

/* Cuts one entity-tag, with W/ and quotes, off the front of `rest`. */
static bool parse_etag(struct str *rest, struct str *out_etag)
{
    size_t at = str_starts(*rest, STR("W/")) ? 2 : 0;

    if (at >= rest->length || rest->data[at] != '"')
        return false;
    for (at++; at < rest->length && is_etag_byte(rest->data[at]); at++)
        ;
    if (at == rest->length || rest->data[at] != '"')
        return false;
    *out_etag = str_slice(*rest, 0, at + 1);
    *rest = str_skip(*rest, at + 1);
    return true;
}

static bool is_weak(struct str etag)
{
    return str_starts(etag, STR("W/"));
}

/* RFC 9110 8.8.3.2; SAME: byte for byte. */
enum comparison { WEAK, STRONG, SAME };

static bool etags_match(struct str a, struct str b, enum comparison comparison)
{
    if (a.length == 0 || b.length == 0)
        return false;
    if (comparison != WEAK)
        return (comparison == SAME || !is_weak(a)) && str_equal(a, b);
    return str_equal(str_skip(a, is_weak(a) ? 2 : 0), str_skip(b, is_weak(b) ? 2 : 0));
}

bool etag_matches_weakly(struct str a, struct str b)
{
    return etags_match(a, b, WEAK);
}

bool etag_is_strong(struct str etag)
{
    struct str rest = etag, tag;

    return !is_weak(etag) && parse_etag(&rest, &tag) && rest.length == 0;
}

/* True if a member of the list matches; the malformed rest of a list matches nothing. */
static bool list_matches(struct str list, struct str etag, enum comparison comparison)
{
    struct str rest = str_trim(list);
    struct str member;

    while (rest.length) {
        if (rest.data[0] == ',') {
            rest = str_trim(str_skip(rest, 1));
            continue;
        }
        if (!parse_etag(&rest, &member))
            return false;
        if (etags_match(member, etag, comparison))
            return true;
        rest = str_trim(rest);
        if (rest.length && rest.data[0] != ',')
            return false;
    }
    return false;
}

/* "*" matches, because a current representation exists (RFC 9110 13.1.1). */
static bool field_matches(const struct headers *headers, const struct header *field, struct str etag,
                          enum comparison comparison)
{
    struct str name = field->name;

    for (; field; field = headers_next(headers, name, field)) {
        if ((comparison != SAME && str_equal(field->value, STR("*"))) || list_matches(field->value, etag, comparison))
            return true;
    }
    return false;
}

/* The date of a field; false if the field is absent, repeated or invalid, hence ignored. */
static bool single_date(const struct headers *headers, struct str name, int64_t now, int64_t *out_seconds)
{
    const struct header *field = headers_find(headers, name);

    return field && !headers_next(headers, name, field) && date_parse(field->value, now, out_seconds) == 0;
}

int conditional_check(const struct request *request, const struct validators *validators, int64_t now,
                      bool exact)
{
    const struct headers *headers = &request->headers;
    bool reads = request->method == METHOD_GET || request->method == METHOD_HEAD;
    const struct header *field = headers_find(headers, STR("If-Match"));
    int64_t dated = validators->dated > 0 ? validators->dated : -1;
    int64_t since = validators->modified >= 0 ? validators->modified : dated;
    int64_t date;

    if (field) {
        if (!field_matches(headers, field, validators->etag, STRONG))
            return 412;
    } else if (validators->modified >= 0 && single_date(headers, STR("If-Unmodified-Since"), now, &date)) {
        if (validators->modified > date)
            return 412;
    }

    field = headers_find(headers, STR("If-None-Match"));
    if (field) {
        if (field_matches(headers, field, validators->etag, WEAK))
            return reads ? 304 : 412;
    } else if (reads && since >= 0 && !validators->ignore_modified_since &&
               single_date(headers, STR("If-Modified-Since"), now, &date)) {
        if (exact ? since == date : since <= date)
            return 304;
    }
    return 0;
}

bool conditional_lists_etag(const struct request *request, struct str etag)
{
    const struct header *field = headers_find(&request->headers, STR("If-None-Match"));

    return field && field_matches(&request->headers, field, etag, SAME);
}

bool conditional_range_allowed(const struct request *request, const struct validators *validators,
                               int64_t now)
{
    const struct header *field = headers_find(&request->headers, STR("If-Range"));
    int64_t date;

    if (!field)
        return true;
    if (headers_next(&request->headers, STR("If-Range"), field))
        return false;
    if (str_starts(field->value, STR("\"")) || is_weak(field->value)) {
        struct str rest = field->value;
        struct str etag;

        return parse_etag(&rest, &etag) && rest.length == 0 && etags_match(etag, validators->etag, STRONG);
    }
    /* A date is a strong validator only once its second has passed (RFC 9110 8.8.2.2). */
    return validators->modified >= 0 && date_parse(field->value, now, &date) == 0 &&
           date == validators->modified && now > validators->modified;
}
