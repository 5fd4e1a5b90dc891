/*
 * Set-Cookie of upstream servers: the first line of the input has the words of proxy_cookie_domain and
 * proxy_cookie_path, and letters for the flags of the cookie "a"; each further line is a field. A second parser
 * (RFC 6265 5.2) reads the fields before and after: the pair is the same, and so are the attributes and their order,
 * except for those that the directives map, remove or add.
 */
#include "fuzz.h"

#include "modules/proxy/proxy.h"

enum { DOMAIN_FROM, DOMAIN_TO, PATH_FROM, PATH_TO, FLAGS, WORDS };

struct attribute {
    struct str name, value; /* without a value: data NULL */
};

static struct str words[WORDS];

/* Reads the next attribute that is not empty. False: there is none. */
static bool read_attribute(struct str *rest, struct attribute *out)
{
    while (rest->data) {
        struct str part = str_cut(rest, ';');

        if (str_empty(str_trim(part)))
            continue;
        out->name = str_trim(str_cut(&part, '='));
        out->value = str_trim(part);
        return true;
    }
    return false;
}

static bool has_flag(char letter)
{
    return words[FLAGS].data && str_find(words[FLAGS], letter) >= 0;
}

static enum proxy_same_site same_site(void)
{
    return has_flag('n')   ? SAME_SITE_NONE
           : has_flag('l') ? SAME_SITE_LAX
           : has_flag('s') ? SAME_SITE_STRICT
           : has_flag('d') ? SAME_SITE_DROP
                           : SAME_SITE_KEEP;
}

static struct proxy_flags read_flags(void)
{
    return (struct proxy_flags){.cookie = STR("a"),
                                .secure = has_flag('S') ? 1 : has_flag('-') ? -1 : 0,
                                .http_only = has_flag('H') ? 1 : has_flag('_') ? -1 : 0,
                                .same_site = same_site()};
}

static bool is_removed(struct str name, const struct proxy_flags *flags)
{
    return (flags->secure && str_equal_nocase(name, STR("secure"))) ||
           (flags->http_only && str_equal_nocase(name, STR("httponly"))) ||
           (flags->same_site && str_equal_nocase(name, STR("samesite")));
}

/* A browser joins such a path with a scheme to the URL of another host. */
static bool names_host(struct str path)
{
    return path.length > 1 && str_find(STR("/\\\t"), path.data[0]) >= 0 && str_find(STR("/\\\t"), path.data[1]) >= 0;
}

static struct str without_dot(struct str domain)
{
    return str_skip(domain, str_starts(domain, STR(".")));
}

static void check_domain(struct str before, struct str after)
{
    bool matches = words[DOMAIN_TO].data && str_equal_nocase(without_dot(before), without_dot(words[DOMAIN_FROM]));

    HOLDS(str_equal(after, matches ? without_dot(words[DOMAIN_TO]) : before));
}

/* The end of the path is the same, and another host is named only by the directive. */
static void check_path(struct str before, struct str after, struct arena *arena)
{
    struct str made;

    if (!words[PATH_TO].data || !str_starts(before, words[PATH_FROM])) {
        HOLDS(str_equal(after, before));
        return;
    }
    made = arena_join(arena, (const struct str[]){words[PATH_TO], str_skip(before, words[PATH_FROM].length)}, 2);
    HOLDS(str_equal(made, after) || (names_host(made) && !names_host(words[PATH_TO]) && !names_host(after) &&
                                     str_ends(made, after)));
}

static void check_attribute(const struct attribute *before, const struct attribute *after, struct arena *arena)
{
    HOLDS(str_equal(before->name, after->name) && !before->value.data == !after->value.data);
    if (before->value.data && str_equal_nocase(before->name, STR("domain")))
        check_domain(before->value, after->value);
    else if (before->value.data && str_equal_nocase(before->name, STR("path")))
        check_path(before->value, after->value, arena);
    else
        HOLDS(str_equal(before->value, after->value));
}

static void check_added(struct str *rest, const char *name, const char *value)
{
    struct attribute added;

    HOLDS(read_attribute(rest, &added) && str_equal(added.name, str_from(name)));
    HOLDS(str_equal(added.value, str_from(value)));
}

static void check_cookie(struct str before, struct str after, struct arena *arena)
{
    static const char *const same_sites[] = {[SAME_SITE_NONE] = "None", [SAME_SITE_LAX] = "Lax",
                                             [SAME_SITE_STRICT] = "Strict", [SAME_SITE_DROP] = NULL};
    struct str pair = str_trim(str_cut(&before, ';'));
    struct proxy_flags flags = {.secure = 0};
    struct attribute one, other;

    HOLDS(str_equal(pair, str_trim(str_cut(&after, ';'))));
    if (words[FLAGS].data && str_equal(str_trim(str_cut(&pair, '=')), STR("a")))
        flags = read_flags();
    while (read_attribute(&before, &one)) {
        if (is_removed(one.name, &flags))
            continue;
        HOLDS(read_attribute(&after, &other));
        check_attribute(&one, &other, arena);
    }
    if (flags.secure > 0)
        check_added(&after, "Secure", "");
    if (flags.http_only > 0)
        check_added(&after, "HttpOnly", "");
    if (same_sites[flags.same_site])
        check_added(&after, "SameSite", same_sites[flags.same_site]);
    HOLDS(!read_attribute(&after, &other));
}

/* Compiles two words. False: they are not valid in a configuration. */
static bool compile_pair(struct arena *arena, unsigned from, struct proxy_rewrite *out)
{
    struct str why;
    size_t at;

    *out = (struct proxy_rewrite){.kind = REWRITE_PAIR};
    return template_compile(arena, words[from], NULL, &out->from, &at, &why) == 0 &&
           template_compile(arena, words[from + 1], NULL, &out->to, &at, &why) == 0;
}

/* Reads the first line: words without variables, semicolons and tabs. False: it is not valid. */
static bool read_words(struct str line)
{
    if (str_find(line, '$') >= 0 || str_find(line, ';') >= 0 || str_find(line, '\t') >= 0)
        return false;
    for (unsigned i = 0; i < WORDS; i++) {
        words[i] = line.data ? str_cut(&line, ' ') : (struct str){NULL, 0};
        if (words[i].data && str_empty(words[i]))
            return false;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct str rest = str_of((const char *)bytes, size);
    struct exchange x = {.cancelled = false};
    struct headers before = {0};
    struct proxy_rewrite domain, path;
    struct proxy_flags flags;
    struct proxy_conf conf = {.http_version = 0};
    struct gateway_request request = {.x = &x, .conf = &conf.gateway};

    if (size > 2000 || !read_words(str_cut(&rest, '\n')))
        return 0;
    arena_init(&x.arena, NULL, 0);
    flags = read_flags();
    if (words[DOMAIN_TO].data && compile_pair(&x.arena, DOMAIN_FROM, &domain))
        conf.cookie_domains = (struct conf_rows){&domain, 1};
    if (words[PATH_TO].data && compile_pair(&x.arena, PATH_FROM, &path))
        conf.cookie_paths = (struct conf_rows){&path, 1};
    if (words[FLAGS].data)
        conf.cookie_flags = (struct conf_rows){&flags, 1};
    while (rest.data)
        HOLDS(headers_add(&before, &x.arena, STR("Set-Cookie"), str_trim(str_cut(&rest, '\n'))) == 0);
    HOLDS(headers_add(&before, &x.arena, STR("X"), STR("Path=/; Secure")) == 0);
    HOLDS(headers_copy(&x.response.headers, &x.arena, &before) == 0);
    HOLDS(proxy_rewrite_cookies(&request) == 0 && x.response.headers.count == before.count);
    for (unsigned i = 0; i + 1 < before.count; i++)
        check_cookie(before.items[i].value, x.response.headers.items[i].value, &x.arena);
    HOLDS(str_equal(x.response.headers.items[before.count - 1].value, STR("Path=/; Secure")));
    arena_reset(&x.arena);
    return 0;
}
