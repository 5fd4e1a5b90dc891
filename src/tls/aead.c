/*
 * The table of AEAD engines.
 */
#include "tls/aead.h"

static const struct aead_engine *const engines[AEAD_KINDS] = {
    [AEAD_OPENSSL] = &aead_openssl, [AEAD_IPSEC_MB] = &aead_ipsec_mb};

const struct aead_engine *aead_engine(enum aead_kind kind)
{
    return engines[kind];
}

struct aead *aead_open(enum aead_kind kind)
{
    return engines[kind]->built ? engines[kind]->open() : NULL;
}

void aead_close(struct aead *aead)
{
    if (aead)
        aead->engine->close(aead);
}
