/*
 * The commands of `sluice ctl`, their HTTP requests, and the responses.
 */
#include "command/ctl.h"

#include <errno.h>
#include <stdio.h>

const struct ctl_verb ctl_verbs[] = {
    {"workers", NULL, {NULL}, "the worker processes of all generations"},
    {"upstreams", NULL, {NULL}, "the servers of all upstream groups"},
    {"certificates", NULL, {NULL}, "the certificates in use, with the days left"},
    {"configuration", NULL, {NULL}, "the configuration that runs: file, generation, since when"},
    {NULL, NULL, {NULL}, NULL},
};

/* The number of arguments of a command. */
static size_t argument_count(const struct ctl_verb *verb)
{
    size_t count = 0;

    while (verb->arguments[count])
        count++;
    return count;
}

static bool noun_known(const char *noun)
{
    for (const struct ctl_verb *verb = ctl_verbs; verb->noun; verb++) {
        if (strcmp(noun, verb->noun) == 0)
            return true;
    }
    return false;
}

/* The command with this noun and, if it has verbs, this verb; NULL: none. */
static const struct ctl_verb *find_verb(const char *noun, const char *word)
{
    for (const struct ctl_verb *verb = ctl_verbs; verb->noun; verb++) {
        if (strcmp(noun, verb->noun) == 0 && (verb->verb ? word && strcmp(word, verb->verb) == 0 : !word))
            return verb;
    }
    return NULL;
}

const struct ctl_verb *ctl_find(char *const *words, size_t count, char *out_error, size_t error_size)
{
    const struct ctl_verb *verb = NULL;

    if (count == 0)
        snprintf(out_error, error_size, "ctl takes a command; sluice ctl help lists them");
    else if (!noun_known(words[0]))
        snprintf(out_error, error_size, "ctl has no command \"%s\"; sluice ctl help lists them", words[0]);
    else if (!(verb = find_verb(words[0], count > 1 ? words[1] : NULL)))
        snprintf(out_error, error_size, "\"%s\" has no command \"%s\"; sluice ctl help lists them", words[0], words[1]);
    else if (verb->verb && argument_count(verb) != count - 2)
        snprintf(out_error, error_size, "\"%s %s\" takes %zu arguments, found %zu; sluice ctl help names them",
                 words[0], words[1], argument_count(verb), count - 2);
    else
        return verb;
    return NULL;
}

/* Percent-encodes all but unreserved characters (RFC 3986 2.3). */
static int append_encoded(struct buffer *out, const char *text)
{
    int error = 0;

    for (; *text && error == 0; text++) {
        char c = str_lower(*text);
        bool unreserved = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || strchr("-._~", c);

        error = unreserved ? buffer_append(out, str_of(text, 1)) : buffer_printf(out, "%%%02X", (unsigned char)*text);
    }
    return error;
}

int ctl_request_print(const struct ctl_verb *verb, char *const *words, bool table, struct buffer *out)
{
    int error = buffer_printf(out, "%s /v1/%s%s%s?format=%s", verb->verb ? "POST" : "GET", verb->noun,
                              verb->verb ? "/" : "", verb->verb ? verb->verb : "", table ? "table" : "json");

    for (size_t i = 0; i < argument_count(verb) && error == 0; i++) {
        error = buffer_printf(out, "&%s=", verb->arguments[i]);
        if (error == 0)
            error = append_encoded(out, words[2 + i]);
    }
    if (error == 0)
        error = buffer_printf(out, " HTTP/1.0\r\n%s\r\n", verb->verb ? "Content-Length: 0\r\n" : "");
    return error;
}

/* The value of Content-Length among the lines of a head; -EPROTO: none, or malformed. */
static int find_length(struct str head, uint64_t *out_length)
{
    while (head.data) {
        struct str value = str_cut(&head, '\n');
        struct str name = str_cut(&value, ':');

        if (!str_equal_nocase(name, STR("Content-Length")))
            continue;
        value = str_trim(value);
        if (value.length > 0 && value.data[value.length - 1] == '\r')
            value.length--;
        return str_to_u64(value, out_length) < 0 ? -EPROTO : 0;
    }
    return -EPROTO;
}

int ctl_response_parse(struct str received, int *out_status, struct str *out_body)
{
    ssize_t end = str_search(received, STR("\r\n\r\n"));
    uint64_t status = 0;
    uint64_t length = 0;
    struct str body;

    if (end < 0 || !str_starts(received, STR("HTTP/1.")) || received.data[8] != ' ' ||
        str_to_u64(str_slice(received, 9, 12), &status) < 0 || status < 200 || status > 599 ||
        find_length(str_slice(received, 0, (size_t)end), &length) < 0)
        return -EPROTO;
    body = str_skip(received, (size_t)end + 4);
    if (body.length != length)
        return -EPROTO;
    *out_status = (int)status;
    *out_body = body;
    return 0;
}
