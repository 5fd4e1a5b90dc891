/*
 * The exporter: a process that the master forks beside the workers of a configuration. It takes spans from their rings,
 * and sends them to the collector in batches.
 */
#ifndef OTLP_OTLP_EXPORTER_H
#define OTLP_OTLP_EXPORTER_H

#include "base/log.h"
#include "otlp/otlp.h"

struct otlp_exporter {
    const struct otlp *otlp;        /* with its zone */
    int channel_fd;                 /* the exporter ends when the other end is closed */
    struct log *log;
};

/*
 * Runs until the channel is closed, then sends the spans that are left, for at most LIMIT_OTLP_FLUSH_MS. Returns the
 * exit status of the process.
 */
int otlp_exporter_run(const struct otlp_exporter *settings);

/* The delay after failed attempt number `attempt` (from 1), without its random part. */
uint64_t otlp_backoff_ms(unsigned attempt, uint64_t retry_after_ms);

#endif
