/*
 * Chooses the AEAD engines of the workers: at the start, and again when a reload changes ssl_aead.
 */
#include "master/master_state.h"

#include "tls/aead_choice.h"

static bool has_tls(const struct configuration *configuration)
{
    for (size_t i = 0; i < configuration->endpoint_count; i++) {
        if (configuration->endpoints[i].ssl)
            return true;
    }
    return false;
}

int master_aead_choose(struct master *master, struct generation *generation)
{
    enum tls_aead setting = (enum tls_aead)generation->configuration->main->aead;
    struct aead_choice *choice = &master->shared->aead;

    if (!has_tls(generation->configuration) || (master->aead_chosen && master->aead_setting == setting))
        return 0;
    aead_examine(setting, choice);
    master->aead_chosen = true;
    master->ktls_chosen = false;
    master->aead_setting = setting;
    aead_log(choice, setting, &master->error_log.log);
    return 0;
}

struct str master_aead_describe(char *into, size_t size)
{
    struct aead_choice choice;

    aead_examine(TLS_AEAD_AUTO, &choice);
    return aead_summary(&choice, into, size);
}
