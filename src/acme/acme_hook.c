/*
 * The hook of uacme(1). For tls-alpn-01 it gets the digest of the key authorization instead of the key authorization.
 */
#include "acme/acme_hook.h"

#include "acme/acme.h"
#include "acme/acme_challenge.h"
#include "acme/acme_tls_alpn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int report_result(const char *hook, const char *identifier, int error)
{
    if (error < 0)
        fprintf(stderr, "%s: the challenge for \"%.*s\" failed (%d: %s)\n", hook, LIMIT_ACME_NAME, identifier, -error,
                strerror(-error));
    return error < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int store_challenge(const char *folder, bool tls_alpn, char *const *argv)
{
    return tls_alpn ? acme_tls_alpn_store(folder, str_from(argv[3]), str_from(argv[5]))
                    : acme_challenge_store(folder, str_from(argv[4]), str_from(argv[5]));
}

static int remove_challenge(const char *folder, bool tls_alpn, char *const *argv)
{
    return tls_alpn ? acme_tls_alpn_remove(folder, str_from(argv[3]))
                    : acme_challenge_remove(folder, str_from(argv[4]));
}

int acme_hook(int argc, char *const *argv)
{
    const char *folder = getenv(ACME_CHALLENGES), *type = getenv(ACME_CHALLENGE_TYPE);
    bool tls_alpn;

    if (argc != 6 || !folder) {
        fprintf(stderr, "%s is called by the ACME client: METHOD TYPE IDENTIFIER TOKEN AUTHORIZATION, with %s\n",
                argv[0], ACME_CHALLENGES);
        return EXIT_FAILURE;
    }
    tls_alpn = type && strcmp(type, acme_challenge_types[ACME_TLS_ALPN_01]) == 0;
    if (strcmp(argv[2], acme_challenge_types[tls_alpn ? ACME_TLS_ALPN_01 : ACME_HTTP_01]) != 0)
        return EXIT_FAILURE;
    if (strcmp(argv[1], "begin") == 0)
        return report_result(argv[0], argv[3], store_challenge(folder, tls_alpn, argv));
    if (strcmp(argv[1], "done") == 0 || strcmp(argv[1], "failed") == 0)
        return report_result(argv[0], argv[3], remove_challenge(folder, tls_alpn, argv));
    fprintf(stderr, "%s: unknown method \"%.16s\"\n", argv[0], argv[1]);
    return EXIT_FAILURE;
}
