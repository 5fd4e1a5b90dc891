/*
 * The commands of `sluice ctl`, their HTTP requests, and the responses.
 */
#include "command/ctl.h"

#include "conf/template.h"

#include <errno.h>
#include <stdio.h>

const struct ctl_verb ctl_verbs[] = {
    {.noun = "workers", .help = "the worker processes of all generations"},
    {.noun = "upstreams", .help = "the servers of all upstream groups"},
    {"upstreams", "down", "PATCH", NULL, "\"state\": \"down\"", {{"upstream"}, {"server"}},
     "send no requests to a server of a group"},
    {"upstreams", "drain", "PATCH", NULL, "\"state\": \"draining\"", {{"upstream"}, {"server"}},
     "send only requests of its sticky sessions to it"},
    {"upstreams", "up", "PATCH", NULL, "\"state\": \"up\"", {{"upstream"}, {"server"}},
     "use it again, also after failures"},
    {"upstreams", "weight", "PATCH", NULL, NULL, {{"upstream"}, {"server"}, {"weight", true}},
     "change its share of the requests"},
    {"upstreams", "add", "POST", "/v1/upstreams/add", NULL, {{"upstream"}, {"server"}},
     "add a server to a group with a zone",
     .options = {{"weight", true}, {"max_conns", true}, {"max_fails", true}, {"fail_timeout", .value = "TIME"},
                 {"slow_start", .value = "TIME"}, {"backup", .word = true}, {"down", .word = true}}},
    {"upstreams", "remove", "POST", "/v1/upstreams/remove", NULL, {{"upstream"}, {"server"}},
     "remove one; its running requests are completed"},
    {.noun = "caches", .help = "the caches: entries, bytes, limit"},
    {"caches", "entries", NULL, "/v1/caches/entries", NULL, {{"cache"}}, "its responses: keys, sizes, ages",
     .options = {{"prefix"}, {"cursor", true}}, .slow = true},
    {"caches", "purge", "POST", "/v1/caches/purge", NULL, {{"cache"}, {"key"}}, "remove the response of a key",
     .slow = true},
    {"caches", "purge-prefix", "POST", "/v1/caches/purge", NULL, {{"cache"}, {"prefix"}},
     "remove the responses of all keys with a prefix", .slow = true},
    {"caches", "purge-all", "POST", "/v1/caches/purge", "\"all\": true", {{"cache"}}, "remove all responses",
     .slow = true},
    {.noun = "log-level", .help = "the level of the error log"},
    {"log-level", NULL, "PATCH", NULL, NULL, {{"level"}}, "change it in all processes, until the next reload"},
    {.noun = "ticket-keys", .help = "the generated keys of session tickets"},
    {"ticket-keys", "rotate", "POST", "/v1/ticket-keys/rotate", NULL, {{NULL}},
     "generate the next key; the previous one still decrypts"},
    {.noun = "limits", .help = "the zones of limit_req and limit_conn"},
    {"limits", "keys", NULL, "/v1/limits/keys", NULL, {{NULL}}, "the keys that were limited last"},
    {.noun = "certificates", .help = "the certificates in use, with the days left"},
    {.noun = "connections", .help = "client connections of all workers"},
    {"connections", "close", "POST", "/v1/connections/close", NULL, {{"id", true}}, "close a connection"},
    {.noun = "configuration", .help = "the configuration that runs: file, generation, since when"},
    {"configuration", "files", NULL, "/v1/configuration/files", NULL, {{NULL}},
     "the files it was loaded from: bytes, SHA-256"},
    {"configuration", "diff", NULL, "/v1/configuration/files", NULL, {{NULL}},
     "compare these with the files on disk; exit status 1: they differ", .diff = true},
    {.noun = NULL},
};

/* The number of arguments of a command. */
static size_t argument_count(const struct ctl_verb *verb)
{
    size_t count = 0;

    while (verb->arguments[count].name)
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
        if (strcmp(noun, verb->noun) == 0 &&
            (verb->verb ? word && strcmp(word, verb->verb) == 0 : !word || verb->arguments[0].name))
            return verb;
    }
    return NULL;
}

/* The number of words that name the command. */
static size_t name_count(const struct ctl_verb *verb)
{
    return verb->verb ? 2 : 1;
}

/* The option that a word sets. NULL: none. */
static const struct ctl_argument *find_option(const struct ctl_verb *verb, struct str word)
{
    struct str value = word;
    struct str name = str_cut(&value, '=');

    for (const struct ctl_argument *option = verb->options; option->name; option++) {
        if (str_equal(name, str_from(option->name)) && !option->word == (value.data != NULL))
            return option;
    }
    return NULL;
}

/* The first word after the arguments that is not an option, or whose option was set before. NULL: none. */
static const char *find_wrong_word(const struct ctl_verb *verb, char *const *words, size_t count)
{
    size_t first = name_count(verb) + argument_count(verb);

    for (size_t i = first; i < count; i++) {
        const struct ctl_argument *option = find_option(verb, str_from(words[i]));

        if (!option)
            return words[i];
        for (size_t k = first; k < i; k++) {
            if (find_option(verb, str_from(words[k])) == option)
                return words[i];
        }
    }
    return NULL;
}

/* True if the number of words fits the command; options may follow. */
static bool count_matches(const struct ctl_verb *verb, size_t count)
{
    size_t needed = name_count(verb) + argument_count(verb);

    return verb->options[0].name ? count >= needed : count == needed;
}

const struct ctl_verb *ctl_find(char *const *words, size_t count, char *out_error, size_t error_size)
{
    const struct ctl_verb *verb = NULL;
    const char *wrong;

    if (count == 0)
        snprintf(out_error, error_size, "ctl takes a command; sluice ctl help lists them");
    else if (!noun_known(words[0]))
        snprintf(out_error, error_size, "ctl has no command \"%s\"; sluice ctl help lists them", words[0]);
    else if (!(verb = find_verb(words[0], count > 1 ? words[1] : NULL)))
        snprintf(out_error, error_size, "\"%s\" has no command \"%s\"; sluice ctl help lists them", words[0], words[1]);
    else if (!count_matches(verb, count))
        snprintf(out_error, error_size, "\"%s%s%s\" takes %zu argument%s, found %zu; sluice ctl help names them",
                 verb->noun, verb->verb ? " " : "", verb->verb ? verb->verb : "", argument_count(verb),
                 argument_count(verb) == 1 ? "" : "s", count - name_count(verb));
    else if ((wrong = find_wrong_word(verb, words, count)) != NULL)
        snprintf(out_error, error_size,
                 "\"%s %s\" has no option \"%.64s\", or has it twice; sluice ctl help lists them", verb->noun,
                 verb->verb ? verb->verb : "", wrong);
    else
        return verb;
    return NULL;
}

/* True for a number as the server parses it. Other words are sent as texts, which the server rejects. */
static bool is_number(struct str word)
{
    uint64_t number;

    return str_to_u64(word, &number) == 0 && (word.length == 1 || word.data[0] != '0');
}

static int append_argument(struct buffer *out, const struct ctl_argument *argument, struct str word)
{
    const char *quote = argument->number && is_number(word) ? "" : "\"";
    int error = buffer_printf(out, "\"%s\": %s", argument->name, quote);

    if (error == 0)
        error = template_escape_json(out, word);
    return error == 0 ? buffer_append(out, str_from(quote)) : error;
}

static int append_option(struct buffer *out, const struct ctl_verb *verb, struct str word)
{
    const struct ctl_argument *option = find_option(verb, word);
    int error = buffer_append(out, STR(", "));

    (void)str_cut(&word, '=');
    if (error < 0)
        return error;
    return option->word ? buffer_printf(out, "\"%s\": true", option->name) : append_argument(out, option, word);
}

/* The JSON object of a command that changes something. */
static int append_object(struct buffer *out, const struct ctl_verb *verb, char *const *words, size_t count)
{
    int error = buffer_printf(out, "{%s", verb->members ? verb->members : "");

    for (size_t i = 0; i < argument_count(verb) && error == 0; i++) {
        if (i > 0 || verb->members)
            error = buffer_append(out, STR(", "));
        if (error == 0)
            error = append_argument(out, &verb->arguments[i], str_from(words[name_count(verb) + i]));
    }
    for (size_t i = name_count(verb) + argument_count(verb); i < count && error == 0; i++)
        error = append_option(out, verb, str_from(words[i]));
    return error == 0 ? buffer_append(out, STR("}")) : error;
}

/* Percent-encodes all bytes but the unreserved ones (RFC 3986 2.3). */
static int append_encoded(struct buffer *out, struct str text)
{
    int error = 0;

    for (size_t i = 0; i < text.length && error == 0; i++) {
        unsigned char c = (unsigned char)text.data[i];
        char lower = str_lower((char)c);
        bool unreserved = (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || (c != 0 && strchr("-._~", c));

        error = unreserved ? buffer_append(out, str_of(&text.data[i], 1)) : buffer_printf(out, "%%%02X", c);
    }
    return error;
}

static int append_parameter(struct buffer *out, struct str name, struct str value)
{
    int error = buffer_printf(out, "&" STR_FMT "=", STR_ARG(name));

    return error == 0 ? append_encoded(out, value) : error;
}

/* The arguments and options of a GET. */
static int append_query(struct buffer *out, const struct ctl_verb *verb, char *const *words, size_t count)
{
    size_t first = name_count(verb), options = first + argument_count(verb);
    int error = 0;

    for (size_t i = first; i < options && error == 0; i++)
        error = append_parameter(out, str_from(verb->arguments[i - first].name), str_from(words[i]));
    for (size_t i = options; i < count && error == 0; i++) {
        struct str value = str_from(words[i]);
        struct str name = str_cut(&value, '=');

        error = append_parameter(out, name, str_or_empty(value));
    }
    return error;
}

int ctl_request_print(const struct ctl_verb *verb, char *const *words, size_t count, bool table, struct buffer *out)
{
    struct buffer object = {0};
    int error = verb->method ? append_object(&object, verb, words, count) : 0;

    if (error == 0)
        error = buffer_printf(out, "%s %s%s?format=%s", verb->method ? verb->method : "GET",
                              verb->path ? verb->path : "/v1/", verb->path ? "" : verb->noun,
                              table ? "table" : "json");
    if (error == 0 && !verb->method)
        error = append_query(out, verb, words, count);
    if (error == 0)
        error = buffer_append(out, STR(" HTTP/1.0\r\n"));
    if (error == 0 && verb->method)
        error = buffer_printf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n", object.length);
    if (error == 0)
        error = buffer_append(out, STR("\r\n"));
    if (error == 0)
        error = buffer_append(out, buffer_str(&object));
    buffer_finish(&object);
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
