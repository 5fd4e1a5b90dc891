/*
 * The variables of fastcgi: the script of the path, and the rest.
 */
#include "fastcgi.h"

static const struct fastcgi_conf *conf_of(const struct exchange *x)
{
    const struct gateway_request *p = gateway_request_of(x);

    return p && p->x && p->conf->gateway == &fastcgi_gateway ? fastcgi_conf_of(p) : NULL;
}

/* Returns group 1 or 2 of fastcgi_split_path_info; data NULL if it is not configured or does not match. */
static struct str part_of_path(const struct exchange *x, const struct fastcgi_conf *conf, unsigned group)
{
    const struct regex *regex = conf && conf->split_path_info ? capture_regex(conf->split_path_info) : NULL;

    if (!regex || regex_match(regex, x->request.path) != 1)
        return (struct str){NULL, 0};
    return regex_group(regex, x->request.path, group);
}

/* Returns the path of the script: the part before the path info, with fastcgi_index added after a slash. */
static struct str get_script_name(const void *subject, struct str parameter, struct arena *arena)
{
    struct exchange *x = (struct exchange *)(uintptr_t)subject;
    const struct fastcgi_conf *conf = conf_of(x);
    struct str path = part_of_path(x, conf, 1);
    struct str name;

    if (!path.data)
        path = x->request.path;
    if (!conf || !conf->index || !str_ends(path, STR("/")))
        return path;
    name = template_eval(conf->index, x, arena);
    return name.data ? arena_join(arena, (const struct str[]){path, name}, 2) : name;
}

static struct str get_path_rest(const void *subject, struct str parameter, struct arena *arena)
{
    struct str rest = part_of_path(subject, conf_of(subject), 2);

    return rest.data ? rest : STR("");
}

static const struct variable variables[] = {
    {"fastcgi_path_info", false, get_path_rest, .type = "text",
     .help = "The part of the path after the script, by fastcgi_split_path_info."},
    {"fastcgi_script_name", false, get_script_name, .type = "text",
     .help = "Path of the script, with fastcgi_index added after a slash."},
};

const struct variable_table fastcgi_variables = {variables, sizeof(variables) / sizeof(variables[0]), NULL};
