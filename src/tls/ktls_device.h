/*
 * TLS offload of network devices (tls-hw-tx-offload), as ethtool -k reports it.
 */
#ifndef TLS_KTLS_DEVICE_H
#define TLS_KTLS_DEVICE_H

#include "base/must_check.h"

#include <stdbool.h>

/* Whether a network device encrypts TLS. */
struct ktls_device {
    bool available;                 /* can be enabled */
    bool active;
};

/* Queries a device by its name. 0 or -errno. */
MUST_CHECK int ktls_device_query(const char *name, struct ktls_device *out_device);
/* True if a device of this network namespace encrypts TLS. */
bool ktls_device_any_active(void);

#endif
