/*
 * Listening addresses. In nginx, `ssl` and `proxy_protocol` of one server apply to all servers of the address; in
 * sluice each server needs them.
 */
#include "import/import_scope.h"

/* "*:80" becomes 80, a missing port becomes 80, and localhost becomes an address. */
static struct str listen_address(struct import *import, struct str word)
{
    struct str port = word;
    struct str host = str_cut(&port, ':');
    uint64_t number;

    if (str_starts(word, STR("unix:")) || str_to_u64(word, &number) == 0)
        return word;
    if (str_starts(word, STR("[")))
        return str_search(word, STR("]:")) < 0 ? words_print(import, STR_FMT ":80", STR_ARG(word)) : word;
    if (str_equal(host, STR("localhost")))
        host = STR("127.0.0.1");
    if (str_equal(host, STR("*")))
        return port.data ? port : STR("80");
    return words_print(import, STR_FMT ":" STR_FMT, STR_ARG(host), STR_ARG(port.data ? port : STR("80")));
}

/* How a word of listen is carried over: NULL: unchanged; "": not needed; else omitted with this note. */
static const char *listen_word(struct str word)
{
    static const struct {
        const char *word, *why;
    } words[] = {
        {"reuseport", ""},
        {"bind", ""},
        {"deferred", ""},
        {"ipv6only=on", ""},
        {"so_keepalive", "the kernel's defaults apply"},
        {"ipv6only=off", "an IPv6 address accepts IPv6 only: listen on the port alone, too"},
        {"http2", ""}, /* becomes the directive: carry_http2 */
        {"quic", "HTTP/3 is not supported"},
        {"rcvbuf=", "the kernel chooses the size of its buffers"},
        {"sndbuf=", "the kernel chooses the size of its buffers"},
        {"fastopen=", "the kernel's defaults apply"},
        {"setfib=", "it has an effect on FreeBSD only"},
        {"accept_filter=", "it has an effect on FreeBSD only"},
        {"udp", "UDP is not supported"},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        struct str known = str_from(words[i].word);

        if (str_equal(word, known) || (str_ends(known, STR("=")) && str_starts(word, known)) ||
            (str_equal(known, STR("so_keepalive")) && str_starts(word, known)))
            return words[i].why;
    }
    return NULL;
}

static bool omits_listen(struct str word)
{
    return str_equal(word, STR("quic")) || str_equal(word, STR("udp"));
}

static bool has_ssl(const struct nginx_directive *server)
{
    const struct nginx_directive *ssl = nginx_tree_find(server, STR("ssl"));

    return ssl && ssl->count == 1 && str_equal(ssl->words[0], STR("on"));
}

/* "127.0.0.1:443 ssl", a key of import->addresses. */
static struct str shared_key(struct import *import, struct str address, const char *word)
{
    return words_print(import, STR_FMT " %s", STR_ARG(address), word);
}

static const char *const shared_words[] = {"ssl", "proxy_protocol"};

static void add_address(struct import *import, const struct nginx_directive *server,
                        const struct nginx_directive *listen, bool ssl)
{
    struct str address = listen_address(import, listen->words[0]);

    for (size_t i = 0; i < sizeof(shared_words) / sizeof(shared_words[0]); i++) {
        struct str key = shared_key(import, address, shared_words[i]);
        bool has_word = i == 0 && ssl;

        for (size_t k = 1; k < listen->count; k++)
            has_word |= str_equal(listen->words[k], str_from(shared_words[i]));
        if (has_word && !yaml_builder_find(import->addresses, key))
            yaml_builder_add(import->arena, import->addresses, YAML_BUILDER_TEXT, key, server);
    }
}

void record_addresses(struct import *import, const struct nginx_directive *http)
{
    import->addresses = yaml_builder_root(import->arena);
    import->out_of_memory |= !import->addresses;
    for (const struct nginx_directive *server = http->first; server; server = server->next) {
        bool ssl = has_ssl(server);

        for (const struct nginx_directive *child = server->first; child; child = child->next) {
            if (str_equal(child->name, STR("listen")) && child->count > 0)
                add_address(import, server, child, ssl);
        }
    }
}

/* nginx uses the certificate of the default server of the address. */
static void share_certificate(struct import *import, const struct scope *scope, const struct nginx_directive *other)
{
    if (nginx_tree_find(scope->block, STR("ssl_certificate")) ||
        nginx_tree_find(scope->outer->block, STR("ssl_certificate")) ||
        yaml_builder_find(scope->map, STR("ssl_certificate")))
        return;
    for (const struct nginx_directive *child = other->first; child; child = child->next) {
        if (str_equal(child->name, STR("ssl_certificate")) || str_equal(child->name, STR("ssl_certificate_key")) ||
            str_equal(child->name, STR("ssl_password_file")))
            translate_directive(import, scope, child);
    }
}

/* Appends words that another server sets for the address. */
static struct str add_shared(struct import *import, const struct scope *scope, const struct nginx_directive *listen,
                             struct str text)
{
    struct str address = listen_address(import, listen->words[0]);

    for (size_t i = 0; scope->kind == SCOPE_SERVER && i < sizeof(shared_words) / sizeof(shared_words[0]); i++) {
        const struct yaml_builder *shared =
            yaml_builder_find(import->addresses, shared_key(import, address, shared_words[i]));
        bool has_word = i == 0 && has_ssl(scope->block);

        for (size_t k = 1; k < listen->count; k++)
            has_word |= str_equal(listen->words[k], str_from(shared_words[i]));
        if (!shared || has_word)
            continue;
        text = words_print(import, STR_FMT " %s", STR_ARG(text), shared_words[i]);
        if (i == 0)
            share_certificate(import, scope, shared->origin);
    }
    return text;
}

/* True if `listen` has this address and the word http2. */
static bool listens_http2(struct import *import, const struct nginx_directive *listen, struct str address)
{
    bool has_word = false;

    if (!str_equal(listen->name, STR("listen")) || listen->count == 0)
        return false;
    for (size_t i = 1; i < listen->count; i++)
        has_word |= str_equal(listen->words[i], STR("http2"));
    return has_word && str_equal(listen_address(import, listen->words[0]), address);
}

/*
 * Until nginx 1.25.1 `listen ... http2` holds for all servers on the address. A directive of the server takes
 * precedence.
 */
static void carry_http2(struct import *import, const struct scope *scope, struct str address)
{
    bool has_http2 = false;

    if (scope->kind != SCOPE_SERVER || nginx_tree_find(scope->block, STR("http2")) ||
        yaml_builder_find(scope->map, STR("http2")))
        return;
    for (const struct nginx_directive *server = scope->outer->block->first; server; server = server->next) {
        for (const struct nginx_directive *child = server->first; child; child = child->next)
            has_http2 |= listens_http2(import, child, address);
    }
    if (has_http2)
        import_put(import, scope->map, "http2", STR("on"), NULL);
}

void translate_listen(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
                      const struct rule *rule)
{
    bool ssl = has_ssl(scope->block);
    struct str text;

    if (directive->count == 0) {
        import_omit(import, scope->map, directive, "it takes an address");
        return;
    }
    text = listen_address(import, directive->words[0]);
    for (size_t i = 1; i < directive->count; i++) {
        struct str word = directive->words[i];
        const char *why = listen_word(word);

        if (why && omits_listen(word)) { /* after all directives, add_listen_placeholder checks for another listen */
            import_comment_out(import, scope->map, directive);
            import_add_note(import, IMPORT_OMITTED, directive, "%s", why);
            return;
        }
        if (why && *why)
            import_add_note(import, IMPORT_CHANGED, directive, STR_FMT ": %s", STR_ARG(word), why);
        ssl &= !str_equal(word, STR("ssl"));
        if (str_equal(word, STR("default")))
            word = STR("default_server");
        if (!why)
            text = words_print(import, STR_FMT " " STR_FMT, STR_ARG(text), STR_ARG(word));
    }
    if (ssl)
        text = words_print(import, STR_FMT " ssl", STR_ARG(text));
    import_put_item(import, scope->map, "listen", add_shared(import, scope, directive, text), directive);
    carry_http2(import, scope, listen_address(import, directive->words[0]));
}
