/*
 * The TLS settings of a server from its directives.
 */
#include "base/limits.h"
#include "site/capture.h"
#include "site/load.h"

#include <errno.h>

static int copy_certificates(struct load *load, const struct virtual_server *server, const struct core_ssl *ssl,
                             struct tls_settings *out)
{
    const struct core_file *files = ssl->certificates.items;
    const struct core_file *keys = ssl->keys.items;
    struct tls_certificate *certificates;

    certificates = arena_zalloc(load->reader.arena, ssl->certificates.count + 1, sizeof(*certificates));
    if (!certificates)
        return -ENOMEM;
    for (size_t i = 0; i < ssl->certificates.count; i++) {
        certificates[i].certificate = files[i].path;
        certificates[i].key = i < ssl->keys.count ? keys[i].path : STR("");
    }
    if (core_acme_used(ssl)) {
        const struct acme_certificate *acme = load_acme_find(load, server);

        /* A rejected one is checked as a generated certificate, to report further errors of the server. */
        certificates[0] = acme ? (struct tls_certificate){.certificate = acme->file,
                                                          .key = STR(""),
                                                          .may_be_absent = true}
                               : (struct tls_certificate){.certificate = STR("self-signed")};
    }
    out->certificates = certificates;
    out->certificate_count = ssl->certificates.count;
    return 0;
}

static int copy_ticket_keys(struct load *load, const struct core_ssl *ssl, struct tls_settings *out)
{
    const struct core_file *files = ssl->ticket_keys.items;
    struct str *paths = arena_zalloc(load->reader.arena, ssl->ticket_keys.count + 1, sizeof(*paths));

    if (!paths)
        return -ENOMEM;
    for (size_t i = 0; i < ssl->ticket_keys.count; i++)
        paths[i] = files[i].path;
    out->ticket_keys = paths;
    out->ticket_key_count = ssl->ticket_keys.count;
    return 0;
}

static int copy_commands(struct load *load, const struct core_ssl *ssl, struct tls_settings *out)
{
    size_t count = 0;
    struct tls_command *commands;

    while (core_ssl_command_at(ssl, count))
        count++;
    commands = arena_zalloc(load->reader.arena, count + 1, sizeof(*commands));
    if (!commands)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        commands[i] = core_ssl_command_at(ssl, i)->command;
    out->commands = commands;
    out->command_count = count;
    return 0;
}

/* Servers that name the same cache share it. */
static int set_session_cache(struct load *load, const struct core_ssl_cache *cache, struct tls_settings *out)
{
    struct session_caches *caches = &load->configuration->session_caches;
    struct named_session_cache **items, *made;

    for (size_t i = 0; i < caches->count; i++) {
        if (!str_equal(caches->items[i]->name, cache->name))
            continue;
        if (caches->items[i]->size != cache->size)
            conf_error(load->errors, cache->mark, STR("use the same size in both"),
                       "the session cache \"" STR_FMT "\" has two sizes", STR_ARG(cache->name));
        out->session_cache = caches->items[i];
        return 0;
    }
    items = arena_zalloc(load->reader.arena, caches->count + 1, sizeof(struct named_session_cache *));
    made = arena_zalloc(load->reader.arena, 1, sizeof(*made));
    if (!items || !made)
        return -ENOMEM;
    *made = (struct named_session_cache){.name = cache->name, .size = cache->size};
    for (size_t i = 0; i < caches->count; i++)
        items[i] = caches->items[i];
    items[caches->count] = made;
    *caches = (struct session_caches){.items = items, .count = caches->count + 1};
    out->session_cache = made;
    return 0;
}

static int copy_patterns(struct load *load, const struct virtual_server *server, struct tls_settings *out)
{
    const struct regex **patterns =
        arena_zalloc(load->reader.arena, server->pattern_count + 1, sizeof(*patterns));

    if (!patterns)
        return -ENOMEM;
    for (size_t i = 0; i < server->pattern_count; i++)
        patterns[i] = capture_regex(server->patterns[i]);
    out->patterns = patterns;
    out->pattern_count = server->pattern_count;
    return 0;
}

static bool enables_http2(const struct loaded_server *loaded)
{
    const struct core_http2 *http2 = conf_scope_group(loaded->values, CORE_HTTP2);

    return http2->enabled;
}

int load_tls_settings(struct load *load, const struct loaded_server *loaded)
{
    static const struct str no_name[] = {{NULL, 0}};
    const struct core_ssl *ssl = loaded->ssl;
    struct virtual_server *server = loaded->server;

    server->tls = (struct tls_settings){
        .names = server->names.items,
        .name_count = server->names.count,
        .protocols = ssl->protocols,
        .ciphers = ssl->ciphers,
        .ciphersuites = ssl->ciphersuites,
        .curves = ssl->curves,
        .dh_parameters = ssl->dh_parameters.path,
        .passwords = ssl->passwords.path,
        .reject = ssl->reject,
        .prefer_server_ciphers = ssl->prefer_server_ciphers,
        .session_tickets = ssl->session_tickets,
        .session_timeout_s = ssl->session_timeout_ms / 1000,
        .early_data = ssl->early_data,
        .client = {.verify = (enum tls_verify)ssl->verify_client,
                   .depth = (unsigned)ssl->verify_depth,
                   .client_ca = ssl->client_certificate.path,
                   .trusted = ssl->trusted_certificate.path,
                   .crl = ssl->crl.path},
        .owner = server,
        .ktls = (enum tls_ktls)ssl->ktls,
        .ktls_threshold = ssl->ktls_threshold,
    };
    server->tls.http2 = !server->stream && enables_http2(loaded);
    if (server->stream) {
        server->tls.alpn = ssl->alpn.count ? ssl->alpn.items : no_name;
        server->tls.alpn_count = ssl->alpn.count;
    }
    server->files_valid_ms = ssl->files.valid_ms;
    if (core_acme_used(ssl) && server->files_valid_ms == 0)
        server->files_valid_ms = LIMIT_ACME_CHECK_S * 1000;
    if (copy_patterns(load, server, &server->tls) < 0 || copy_ticket_keys(load, ssl, &server->tls) < 0 ||
        copy_commands(load, ssl, &server->tls) < 0 ||
        (ssl->session_cache.size && set_session_cache(load, &ssl->session_cache, &server->tls) < 0))
        return -ENOMEM;
    return copy_certificates(load, server, ssl, &server->tls);
}
