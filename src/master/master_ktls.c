/*
 * Kernel TLS on this machine: probed once for all generations, and compared with user space for `ssl_ktls: auto`.
 * Workers read both results from shared memory.
 */
#include "master/master_state.h"

#include "tls/ktls_measure.h"

static bool any_server(const struct configuration *configuration, bool (*is)(enum tls_ktls ktls))
{
    for (size_t i = 0; i < configuration->endpoint_count; i++) {
        const struct endpoint *endpoint = &configuration->endpoints[i];

        for (size_t k = 0; endpoint->ssl && k < endpoint->server_count; k++) {
            if (is(endpoint->servers[k]->tls.ktls))
                return true;
        }
    }
    return false;
}

static bool uses_ktls(enum tls_ktls ktls)
{
    return ktls != TLS_KTLS_OFF;
}

static bool is_auto(enum tls_ktls ktls)
{
    return ktls == TLS_KTLS_AUTO;
}

int master_ktls_probe(struct master *master, struct generation *generation)
{
    struct ktls_support *support = &master->shared->ktls;
    char text[512];
    struct str line;

    if (!any_server(generation->configuration, uses_ktls)) {
        for (unsigned version = 0; !master->ktls_probed && version < 2; version++) {
            for (unsigned cipher = 0; cipher <= RECORD_CHACHA20_POLY1305; cipher++)
                support->reason[version][cipher] = KTLS_OFF;
        }
        return 0;
    }
    if (!master->ktls_probed) {
        ktls_probe(&ktls_calls_kernel, support);
        line = ktls_describe(support, text, sizeof(text));
        log_write(&master->error_log.log, LOG_NOTICE, STR_FMT, STR_ARG(line));
    }
    master->ktls_probed = true;
    return configuration_check_ktls(generation->configuration, support, &master->error_log.log);
}

int master_ktls_choose(struct master *master, struct generation *generation)
{
    const struct ktls_support *support = &master->shared->ktls;
    struct ktls_choice *choice = &master->shared->ktls_choice;
    char text[192];

    if (master->ktls_chosen || !any_server(generation->configuration, is_auto) || !ktls_is_supported(support))
        return 0;
    ktls_examine(&ktls_calls_kernel, support, &master->shared->aead, choice);
    master->ktls_chosen = true;
    for (uint8_t cipher = RECORD_AES_128_GCM; cipher < RECORD_CIPHERS; cipher++) {
        if (ktls_supports(support, cipher))
            log_write(&master->error_log.log, LOG_NOTICE, "large bodies, %s: " STR_FMT, record_cipher_name(cipher),
                      STR_ARG(ktls_choice_describe(choice, cipher, text, sizeof(text))));
    }
    return 0;
}
