/*
 * Probes by real loopback connections which versions and ciphers the kernel encrypts; /proc is unreliable in
 * containers. Each probe needs its own socket: a socket accepts a key once.
 */
#include "tls/ktls.h"
#include "tls/tcp_pair.h"

#include <errno.h>

static struct record_key dummy_key(unsigned version, unsigned cipher)
{
    return (struct record_key){.version = (uint16_t)(version ? RECORD_TLS_1_3 : RECORD_TLS_1_2),
                               .cipher = (uint8_t)cipher};
}

/* From Linux 6.14 on, TLS 1.3 only, a socket accepts a second key. */
static void probe_rekey(const struct ktls_calls *calls, int fd, const struct record_key *key,
                        struct ktls_support *support)
{
    struct record_key other = *key;

    other.key[0] ^= 1;
    if (key->version == RECORD_TLS_1_3 && ktls_rekey(calls, fd, &other) == 0)
        support->rekey = true;
}

static enum ktls_reason probe_one(const struct ktls_calls *calls, unsigned version, unsigned cipher,
                                  struct ktls_support *support)
{
    struct record_key key = dummy_key(version, cipher);
    struct tcp_pair pair = {-1, -1};
    int error = -tcp_pair_open(&pair);

    if (error) {
        if (!support->error)
            support->error = error;
        return KTLS_ULP_REFUSED;
    }
    enum ktls_reason reason = ktls_enable_error(calls, pair.local, &key, &error);
    if (reason == KTLS_OK)
        probe_rekey(calls, pair.local, &key, support);
    tcp_pair_close(&pair);
    if (reason != KTLS_OK && !support->error)
        support->error = error;
    return reason == KTLS_TX_REFUSED ? KTLS_CIPHER : reason;
}

void ktls_probe(const struct ktls_calls *calls, struct ktls_support *out_support)
{
    struct ktls_support support = {0};
    enum ktls_reason reason = KTLS_OK;

    for (unsigned version = 0; version < 2; version++) {
        support.reason[version][RECORD_NONE] = KTLS_NO_KEY;
        for (unsigned cipher = RECORD_AES_128_GCM; cipher <= RECORD_CHACHA20_POLY1305; cipher++) {
            /* Other failures concern TLS as a whole and not this cipher. */
            if (reason == KTLS_OK || reason == KTLS_CIPHER)
                reason = probe_one(calls, version, cipher, &support);
            support.reason[version][cipher] = reason;
        }
    }
    *out_support = support;
}

bool ktls_supports(const struct ktls_support *support, uint8_t cipher)
{
    return support->reason[0][cipher] == KTLS_OK || support->reason[1][cipher] == KTLS_OK;
}

bool ktls_is_supported(const struct ktls_support *support)
{
    for (uint8_t cipher = RECORD_AES_128_GCM; cipher < RECORD_CIPHERS; cipher++) {
        if (ktls_supports(support, cipher))
            return true;
    }
    return false;
}

static size_t append_text(char *into, size_t size, size_t used, const char *text)
{
    struct str part = str_slice(str_from(text), 0, size - used);

    memcpy(into + used, part.data, part.length);
    return used + part.length;
}

static size_t append_version(const struct ktls_support *support, unsigned version, char *into, size_t size,
                             size_t used, bool *any)
{
    bool first = true;

    for (unsigned cipher = RECORD_AES_128_GCM; cipher <= RECORD_CHACHA20_POLY1305; cipher++) {
        if (support->reason[version][cipher] != KTLS_OK)
            continue;
        if (first)
            used = append_text(into, size, used, *any ? "; " : "kTLS: available (");
        used = append_text(into, size, used, !first ? ", " : version ? "TLS 1.3: " : "TLS 1.2: ");
        used = append_text(into, size, used, record_cipher_name((uint8_t)cipher));
        first = false;
        *any = true;
    }
    return used;
}

static const char *refusal_text(const struct ktls_support *support)
{
    switch (support->reason[1][RECORD_AES_128_GCM]) {
    case KTLS_OFF:
        return "switched off (ssl_ktls)";
    case KTLS_NOT_BUILT:
        return "not built in (meson option ktls)";
    case KTLS_NO_MODULE:
        return "the kernel has no module \"tls\" loaded (modprobe tls, as root; some kernels are built "
               "without it)";
    case KTLS_NO_PERMISSION:
        return "TCP_ULP is forbidden here (a container's seccomp profile?)";
    case KTLS_CIPHER:
        return "the kernel refuses every cipher";
    default:
        return "TCP_ULP was refused";
    }
}

struct str ktls_describe(const struct ktls_support *support, char *into, size_t size)
{
    size_t used = 0;
    bool any = false;

    used = append_version(support, 1, into, size, used, &any);
    used = append_version(support, 0, into, size, used, &any);
    if (any) {
        used = append_text(into, size, used, support->rekey ? "; rekeying)" : ")");
        return str_of(into, used);
    }
    used = append_text(into, size, used, "kTLS: not available: ");
    used = append_text(into, size, used, refusal_text(support));
    if (support->error) {
        used = append_text(into, size, used, ": ");
        used = append_text(into, size, used, strerror(support->error));
    }
    return str_of(into, used);
}
