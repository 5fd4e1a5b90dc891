/*
 * Maps a request to a file by `root` and `alias`, and finds the directory below which symbolic links are checked.
 */
#include "server/request_state.h"

#include "http/url.h"

#include <errno.h>

struct str exchange_root(struct exchange *x)
{
    const struct core_site *site = request_state_of(x)->location->site;
    const struct template *directory = site->alias.path ? site->alias.path : site->root;
    struct str root;

    if (!directory)
        return (struct str){NULL, 0};
    root = template_eval(directory, x, &x->arena);
    /*
     * A variable may be empty or set by the client: the root must be absolute, and only constant text of the
     * configuration may contain "..".
     */
    if (!root.data || !str_starts(root, STR("/")) ||
        (!template_constant(directory) && url_path_traverses(root) && !url_path_traverses(template_text(directory))))
        return (struct str){NULL, 0};
    return root;
}

/* Splits "/a/b" into the directory "/a/" and "b". */
static void split_name(struct str whole, struct str *out_root, struct str *out_path)
{
    size_t slash = (size_t)str_rfind(whole, '/') + 1;

    *out_root = str_slice(whole, 0, slash);
    *out_path = str_skip(whole, slash);
}

/* The alias of a regular expression is the whole path, which must stay below the text before the first variable. */
static int full_alias(struct exchange *x, struct str whole, struct str uri, struct str *out_root,
                      struct str *out_path)
{
    struct str front = template_front(request_state_of(x)->location->site->alias.path);
    bool below = str_starts(uri, x->request.path);
    struct str prefix = below ? request_state_of(x)->alias_rest : STR("");

    uri = below ? str_skip(uri, x->request.path.length) : uri;
    whole = arena_join(&x->arena, (const struct str[]){whole, str_or_empty(prefix), uri}, 3);
    if (!whole.data)
        return -ENOMEM;
    split_name(str_starts(front, STR("/")) ? front : STR("/"), out_root, out_path);
    *out_path = str_skip(whole, out_root->length);
    return 0;
}

/*
 * In location /a with `alias: /www/b` the path "/ax" is not below /www/b (in nginx it maps to /www/bx): if neither
 * prefix nor root ends with a slash, the rest of the URI must begin with one.
 */
static bool path_is_outside_alias(const struct core_site *site, struct str root, struct str rest)
{
    return rest.length && rest.data[0] != '/' && !str_ends(site->alias.prefix, STR("/")) && !str_ends(root, STR("/"));
}

/*
 * Returns true if a name below `root` begins with a dot; false if the constant text of an alias that is the whole path
 * contains such a name.
 */
static bool alias_path_is_hidden(const struct core_site *site, struct str root, struct str path)
{
    return url_path_hidden(path) &&
           !(site->alias.whole && url_path_hidden(str_skip(template_text(site->alias.path), root.length)));
}

int exchange_file(struct exchange *x, struct str uri, struct str *out_root, struct str *out_path)
{
    const struct core_site *site = request_state_of(x)->location->site;
    struct str root = exchange_root(x);

    if (!root.data)
        return -ENOENT;
    *out_root = root;
    *out_path = uri;
    if (site->alias.whole && full_alias(x, root, uri, out_root, out_path) < 0)
        return -ENOMEM;
    if (site->alias.path && !site->alias.whole && str_starts(uri, site->alias.prefix))
        *out_path = str_skip(uri, site->alias.prefix.length);
    if (site->alias.path && !site->alias.whole && path_is_outside_alias(site, root, *out_path))
        return -ENOENT;
    /* The URI has no hidden name, but its rest after a prefix ("/i.git/x" of "/i") or a capture can have one. */
    if (site->alias.path && alias_path_is_hidden(site, *out_root, *out_path))
        return -ENOENT;
    /* An alias of a single file. */
    if (site->alias.path && str_empty(*out_path) && !str_ends(root, STR("/")))
        split_name(root, out_root, out_path);
    /* With merge_slashes: off a path may begin with several slashes; it is still relative to the root. */
    while (str_starts(*out_path, STR("/")))
        *out_path = str_skip(*out_path, 1);
    /* The URI has no ".." segment, but its rest after a prefix ("/i../x") can begin with one. */
    return site->alias.path && url_path_traverses(*out_path) ? -ENOENT : 0;
}

int exchange_rewrite_to_file(struct exchange *x, struct str uri, bool directory)
{
    bool whole = request_state_of(x)->location->site->alias.whole;

    if (whole && directory)
        return 0;
    if (whole)
        request_state_of(x)->alias_rest =
            str_starts(uri, x->request.path) ? str_skip(uri, x->request.path.length) : uri;
    return exchange_rewrite(x, uri, x->request.query);
}

enum symlinks exchange_symlinks(const struct exchange *x)
{
    return (enum symlinks)request_state_of(x)->location->site->disable_symlinks.policy;
}

/* Joins both by one slash. */
static struct str join_path(struct arena *arena, struct str root, struct str path)
{
    while (str_ends(root, STR("/")))
        root.length--;
    while (str_starts(path, STR("/")))
        path = str_skip(path, 1);
    return arena_join(arena, (const struct str[]){root, STR("/"), str_or_empty(path)}, 3);
}

bool exchange_symlinks_from(struct exchange *x, struct str *root, struct str *path, enum symlinks *out_symlinks)
{
    const struct template *from = request_state_of(x)->location->site->disable_symlinks.from;
    struct str directory, name;

    *out_symlinks = exchange_symlinks(x);
    if (*out_symlinks == SYMLINKS_BENEATH || *out_symlinks == SYMLINKS_ANYWHERE)
        return true;
    name = join_path(&x->arena, *root, *path);
    directory = from ? template_eval(from, x, &x->arena) : STR("");
    if (!name.data || !directory.data)
        return false;
    if (str_equal(name, directory)) {
        *out_symlinks = SYMLINKS_ANYWHERE;
        return true;
    }
    while (str_ends(directory, STR("/")))
        directory.length--;
    if (!str_starts(name, directory) || !str_starts(str_skip(name, directory.length), STR("/")))
        directory.length = 0;
    *root = directory.length ? directory : STR("/");
    *path = str_skip(name, directory.length);
    return true;
}
