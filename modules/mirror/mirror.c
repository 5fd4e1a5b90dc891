/*
 * `mirror`: a request is asked again of other URIs of this server, and what they answer is thrown away: nobody waits
 * for it.
 */
#include "server/module.h"

#include <errno.h>
#include <stddef.h>

struct mirror_conf {
    struct conf_rows uris; /* struct mirror_uri */
    int bodies;            /* no effect */
};

struct mirror_uri {
    const struct template *text; /* NULL: off */
};

struct mirroring {
    bool done;
};

extern const struct module module_mirror;

static int read_uri(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct mirror_uri *uri = out;
    struct str text;
    int error = conf_read_text(reader, node, &text);

    if (error < 0 || str_equal(text, STR("off")) || str_equal(text, STR("false")))
        return error;
    if (str_starts(text, STR("/")) || str_starts(text, STR("$")))
        return conf_read_template_word(reader, node, text, &uri->text);
    conf_error(reader->errors, node->mark, STR("write: mirror: /mirror, or off"),
               "\"" STR_FMT "\" is no path of this server", STR_ARG(text));
    return -EINVAL;
}

static const char *const bodies[] = {"off", NULL};

static const struct directive directives[] = {
    {.name = "mirror",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_REPEAT,
     .offset = offsetof(struct mirror_conf, uris),
     .row_size = sizeof(struct mirror_uri),
     .row = read_uri,
     .example = "mirror: [/mirror, /other-mirror]",
     .schema = "{\"type\": [\"string\", \"boolean\"]}",
     .help = "Each request is asked again of these URIs, by its method and with its fields, and what they "
             "answer is "
             "thrown away; nobody waits for it. Its body is not sent along. off: of none."},
    {.name = "mirror_request_body",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CHOICE,
     .offset = offsetof(struct mirror_conf, bodies),
     .choices = bodies,
     .fallback = "off",
     .example = "mirror_request_body: off",
     .help = "Always off: a body is passed on as it comes, and read once. nginx sends it along unless it is told "
             "not to."},
    {0},
};

/* As it was asked, but for the path and the body. */
static int ask_again(struct exchange *x, const struct template *text)
{
    struct str uri = exchange_eval(x, text);
    struct exchange *child;
    int error = uri.data ? exchange_child(x, uri, NULL, NULL, &child) : -ENOMEM;

    if (error < 0)
        return error;
    child->request.method = x->request.method;
    child->request.method_name = x->request.method_name;
    if (!child->request.query.data)
        child->request.query = x->request.query;
    return 0;
}

static enum outcome mirror_answer(struct exchange *x, const void *conf, void *state)
{
    const struct mirror_conf *own = conf;
    const struct mirror_uri *uris = own->uris.items;
    struct mirroring *mirroring = exchange_state(x, &module_mirror, sizeof(*mirroring));

    if (!mirroring || mirroring->done || exchange_is_child(x))
        return OUTCOME_PASS;
    mirroring->done = true; /* however often it is rerouted */
    for (size_t i = 0; i < own->uris.count; i++) {
        int error = uris[i].text ? ask_again(x, uris[i].text) : 0;

        if (error < 0)
            exchange_say(x, LOG_ERROR, "mirror: cannot ask again (%d: %s)", -error, strerror(-error));
    }
    return OUTCOME_PASS;
}

static bool mirror_idle(const void *conf)
{
    const struct mirror_conf *own = conf;

    return own->uris.count == 0;
}

const struct module module_mirror = {
    .name = "mirror",
    .directives = directives,
    .conf_size = sizeof(struct mirror_conf),
    .idle = mirror_idle,
    .answer = mirror_answer,
    .others = OTHERS_PASS,
};
