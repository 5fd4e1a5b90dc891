/*
 * Checks of the merged TLS directives of a scope: certificates with their keys, client certificates, early data.
 */
#include "site/core.h"

#include <errno.h>

/* Each certificate file needs its key, at the same index of the other list. */
static int check_pairs(const struct core_ssl *ssl, struct conf_reader *reader)
{
    const struct core_file *certificates = ssl->certificates.items;
    size_t from_files = 0;

    for (size_t i = 0; i < ssl->certificates.count; i++)
        from_files += str_starts(certificates[i].path, STR("/"));
    if (from_files != ssl->certificates.count && ssl->certificates.count > 1) {
        conf_error(reader->errors, certificates[0].mark, STR("name files only, or self-signed or acme alone"),
                   "self-signed and acme cannot be combined with other certificates");
        return -EINVAL;
    }
    if (from_files == ssl->keys.count || from_files == 0 || ssl->keys.count == 0)
        return 0;
    conf_error(reader->errors, certificates[0].mark,
               STR("ssl_certificate_key: as many keys, in the same order; or ssl_certificate: self-signed"),
               "%zu certificates and %zu keys", from_files, ssl->keys.count);
    return -EINVAL;
}

/* ssl_verify_client needs a trusted authority. */
static int check_authorities(const struct core_ssl *ssl, struct conf_reader *reader, const struct conf_node *at)
{
    const struct conf_node *node = conf_map_get(at, STR("ssl_verify_client"));
    bool has = !str_empty(ssl->client_certificate.path) || !str_empty(ssl->trusted_certificate.path);

    if (has || ssl->verify_client == TLS_VERIFY_OFF || ssl->verify_client == TLS_VERIFY_OPTIONAL_NO_CA)
        return 0;
    conf_error(reader->errors, node ? node->mark : at->mark,
               STR("ssl_client_certificate: a PEM file of your authority"),
               "ssl_verify_client requests certificates, but no trusted authority is configured");
    return -EINVAL;
}

/* 0-RTT replay state is per machine, so ticket keys must not be shared between machines that accept early data. */
static int check_early(const struct core_ssl *ssl, struct conf_reader *reader, const struct conf_node *at)
{
    const struct conf_node *node = conf_map_get(at, STR("ssl_early_data"));

    if (!ssl->early_data || (ssl->session_tickets && ssl->ticket_keys.count == 0))
        return 0;
    conf_error(reader->errors, node ? node->mark : at->mark, STR("ssl_early_data: off"), "%s",
               ssl->session_tickets ? "ssl_early_data cannot be used with ssl_session_ticket_key: 0-RTT replay state "
                                      "is per machine, and other machines may have the same keys"
                                    : "ssl_early_data cannot be used without ssl_session_tickets");
    return -EINVAL;
}

int core_ssl_check(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    int pairs, authorities, early;

    core_acme_check(conf, reader, at);
    if (reader->scope != SCOPE_SERVER && reader->scope != SCOPE_STREAM_SERVER)
        return 0;
    pairs = check_pairs(conf, reader);
    authorities = check_authorities(conf, reader, at);
    early = check_early(conf, reader, at);
    return pairs < 0 ? pairs : authorities < 0 ? authorities : early;
}
