/*
 * Rules about which files are served.
 */
#include "lint/lint_config.h"
#include "sandbox/sandbox.h"

#include <limits.h>
#include <stdlib.h>

/*
 * Reports an alias and a location of which only one ends with a slash. With location "/a" the path "/ab" then maps to
 * the alias followed by "b", and "/a../" to a path above the alias.
 */
static void alias_slash(struct lint *lint, const struct lint_place *place)
{
    const struct location *location = place->location;
    const struct conf_node *alias = config_find(location->values, "alias");
    bool prefix = location->kind == LOCATION_PREFIX || location->kind == LOCATION_PREFIX_FINAL;

    if (!alias || !prefix || !location->nested ||
        str_ends(location->pattern, STR("/")) == str_ends(config_text(alias), STR("/")))
        return;
    lint_report(lint, alias->mark, STR("end both with a slash, or neither"),
                "location \"" STR_FMT
                "\" and its alias do not both end with a slash: the rest of the path is appended without a slash",
                STR_ARG(location->pattern));
}

static void autoindex_open(struct lint *lint, const struct lint_place *place)
{
    const struct conf_scope_values *values = place->location->values;
    const struct conf_node *autoindex = config_find_inherited(values, "autoindex");

    if (!config_is_on(autoindex) || config_is_guarded(values) || !config_listens_outside(lint, place->server))
        return;
    lint_report(lint, autoindex->mark,
                STR("restrict access (allow and deny, auth_request), or turn it on in one location only"),
                "all clients can list the directories of location \"" STR_FMT "\"", STR_ARG(place->location->pattern));
}

/* Reports a root that is a system directory: it contains more than the files of a site. */
static void root_of_system(struct lint *lint, const struct lint_place *place)
{
    static const char *const directories[] = {"/",    "/bin", "/boot", "/dev",  "/etc", "/home",
                                          "/lib", "/opt", "/proc", "/root", "/run", "/sbin",
                                          "/sys", "/tmp", "/usr",  "/var"};
    static const char *const names[] = {"root", "alias"};

    for (size_t n = 0; n < 2; n++) {
        const struct conf_node *node = config_find_inherited(place->location->values, names[n]);
        struct str path = config_text(node);

        while (path.length > 1 && str_ends(path, STR("/")))
            path.length--;
        for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
            if (str_equal(path, str_from(directories[i])))
                lint_report(lint, node->mark, STR("use a separate directory for the site"),
                            "\"%s\" is a directory of the system: all files that the server can read are served",
                            directories[i]);
        }
    }
}

static bool follows_all_links(const struct core_site *site)
{
    return site->disable_symlinks.policy == SYMLINKS_ANYWHERE || site->disable_symlinks.policy == SYMLINKS_OWNER;
}

/*
 * Reports roots that the sandbox cannot restrict to their files: those that begin with a variable, or whose links may
 * lead out of them.
 */
static void sandbox_wide(struct lint *lint, const struct lint_place *place)
{
    const struct core_site *site = place->location->site;
    const struct template *root = site->alias.path ? site->alias.path : site->root;
    const struct conf_node *node = config_find_inherited(place->location->values, site->alias.path ? "alias" : "root");
    const struct conf_node *links = config_find_inherited(place->location->values, "disable_symlinks");
    struct str front;

    if (!(lint->configuration->main->sandbox & (1u << SANDBOX_LANDLOCK)) || !root || !node)
        return;
    front = template_front(root);
    if (follows_all_links(site) && links)
        lint_report(lint, links->mark, STR("write: disable_symlinks: beneath, where links stay below the root"),
                    "symbolic links may lead anywhere, so the sandbox lets workers read all files");
    else if (!template_constant(root))
        lint_report(lint, node->mark, STR("write a constant root for each server"),
                    "this directory depends on a variable, so the sandbox lets workers read all files in \"" STR_FMT
                    "\"",
                    STR_ARG(str_slice(front, 0, (size_t)(str_rfind(front, '/') + 1))));
}

/* True if `path` is below the directory without a hidden component: hidden files are not served. */
static bool is_served(struct str directory, struct str path)
{
    struct str below;

    while (directory.length > 1 && str_ends(directory, STR("/")))
        directory.length--;
    if (!directory.length || !str_starts(path, directory))
        return false;
    below = str_skip(path, directory.length);
    return (str_starts(below, STR("/")) || str_equal(directory, STR("/"))) && str_search(below, STR("/.")) < 0;
}

/* The resolved `path`, in the arena; empty if it does not exist. */
static struct str real_path(struct lint *lint, struct str path)
{
    char real[PATH_MAX];
    struct str copy = arena_copy(lint->arena, path);

    return copy.data && realpath(copy.data, real) ? arena_copy(lint->arena, str_from(real)) : STR("");
}

static struct str path_of(struct lint *lint, const struct conf_file *file, struct str path)
{
    if (str_starts(path, STR("/")))
        return path;
    return arena_printf(lint->arena, STR_FMT "/" STR_FMT, STR_ARG(file->directory), STR_ARG(path));
}

static void secret_check(struct lint *lint, const struct conf_node *scalar, void *owner)
{
    const struct str *directory = owner;
    struct str path = real_path(lint, path_of(lint, scalar->mark.file, scalar->text));

    if (is_served(*directory, path))
        lint_report(lint, scalar->mark, STR("move it out of the directory that is served"),
                    "this file is in the directory that \"" STR_FMT "\" serves", STR_ARG(*directory));
}

/* Reports private keys, password files and the configuration below a root. */
static void secret_served(struct lint *lint, const struct lint_place *place)
{
    static const char *const names[] = {"ssl_certificate_key", "auth_basic_user_file",
                                        "proxy_ssl_certificate_key"};
    const struct core_site *site = place->location->site;
    const struct template *directory = site->alias.path ? site->alias.path : site->root;
    const struct conf_file *file = lint->configuration->tree->mark.file;
    struct str served, own;

    if (!directory || !template_constant(directory))
        return;
    served = real_path(lint, template_text(directory));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        config_each_scalar(lint, config_find_inherited(place->location->values, names[i]), secret_check, &served);
    own = file ? real_path(lint, file->path) : STR("");
    if (is_served(served, own)) {
        const struct conf_node *root =
            config_find_inherited(place->location->values, site->alias.path ? "alias" : "root");

        lint_report(lint, root ? root->mark : lint->configuration->tree->mark,
                    STR("move the configuration out of the directory"),
                    "this directory contains the configuration, which is served, too");
    }
}

static void try_last(struct lint *lint, const struct lint_place *place)
{
    const struct conf_node *tried = config_find(place->location->values, "try_files");
    struct str last = config_text(tried);

    if (tried && tried->kind == CONF_LIST && tried->count)
        last = config_text(tried->items[tried->count - 1]);
    else if (str_rfind(last, ' ') >= 0)
        last = str_skip(last, (size_t)str_rfind(last, ' ') + 1);
    if (str_equal(last, STR("$uri")) || str_equal(last, STR("$uri/")))
        lint_report(lint, tried->mark, STR("add =404, a page or @name as the last one"),
                    "the last item of try_files is the URI that is used if no file exists: \"" STR_FMT
                    "\" leads back to this location",
                    STR_ARG(last));
}

const struct lint_rule lint_rules_files[] = {
    {"alias-slash", LINT_LOCATION, alias_slash,
     "Only one of a location and its alias ends with a slash."},
    {"open-autoindex", LINT_LOCATION, autoindex_open, "Directories are listed for all clients."},
    {"root-of-system", LINT_LOCATION, root_of_system, "A directory of the system is served as a site."},
    {"sandbox-wide", LINT_LOCATION, sandbox_wide,
     "The sandbox cannot confine workers to the files of a site."},
    {"secret-served", LINT_LOCATION, secret_served,
     "A private key, a password file or the configuration is below a root."},
    {"try-files-last", LINT_LOCATION, try_last,
     "The last item of try_files is a file, but is used as a URI."},
    {0},
};
