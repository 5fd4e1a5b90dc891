/*
 * The metrics of the status page: one row per metric. Counters are printed as they are; derived values are computed
 * here.
 */
#include "status.h"

#include "build_options.h"
#include "http/h2/frame.h"

#include <stddef.h>
#include <stdio.h>

const char *const status_class_names[STATUS_CLASSES] = {"other", "1xx", "2xx", "3xx", "4xx", "5xx"};

static const char *version_label(unsigned index, char memory[8])
{
    return SLUICE_VERSION;
}

static const char *connection_state_label(unsigned index, char memory[8])
{
    static const char *const names[CONNECTION_STATES] = {[CONNECTION_HANDSHAKE] = "handshake",
                                                         [CONNECTION_READING] = "reading",
                                                         [CONNECTION_WRITING] = "writing",
                                                         [CONNECTION_WAITING] = "waiting"};

    return names[index];
}

static const char *protocol_label(unsigned index, char memory[8])
{
    static const char *const names[COUNTERS_PROTOCOLS] = {[REQUEST_HTTP_1_0] = "HTTP/1.0",
                                                          [REQUEST_HTTP_1_1] = "HTTP/1.1",
                                                          [REQUEST_HTTP_2] = "HTTP/2.0"};

    return names[index];
}

static const char *h2_error_label(unsigned index, char memory[8])
{
    return h2_error_name(index);
}

static const char *status_class_label(unsigned index, char memory[8])
{
    return status_class_names[index];
}

static const char *status_code_label(unsigned index, char memory[8])
{
    snprintf(memory, 8, "%03u", index % 1000);
    return memory;
}

static const char *tls_path_label(unsigned index, char memory[8])
{
    return wire_path_name((enum wire_path)index);
}

static const char *tls_reason_label(unsigned index, char memory[8])
{
    return wire_reason_name(index);
}

static const char *cipher_label(unsigned index, char memory[8])
{
    return record_cipher_name((uint8_t)index);
}

static const char *handshake_label(unsigned index, char memory[8])
{
    static const char *const names[] = {"full", "resumed", "failed"};

    return names[index];
}

static const char *lookup_label(unsigned index, char memory[8])
{
    static const char *const names[] = {"hit", "miss"};

    return names[index];
}

static const char *dropped_label(unsigned index, char memory[8])
{
    static const char *const names[] = {"queue_full", "not_sent"};

    return names[index];
}

#define AT(field)  .offset = offsetof(struct status_values, field)
#define SUM(field) AT(total.sum.field)

const struct metric status_metrics[] = {
    {"build_info", METRIC_FACT, "Version of the server.", "version", version_label, 0, 1, AT(one)},
    {"start_time_seconds", METRIC_GAUGE, "Start time of the server, in seconds since the epoch.", NULL,
     NULL, 0, 1, AT(total.started_s)},
    {"generation", METRIC_GAUGE, "Generation of the worker processes: 1, and one more after each reload.",
     NULL, NULL, 0, 1, AT(total.generation)},
    {"workers", METRIC_GAUGE, "Configured number of worker processes.", NULL, NULL, 0, 1, AT(total.workers)},
    {"worker_restarts_total", METRIC_COUNTER, "Worker processes that died and were replaced.", NULL, NULL, 0,
     1, AT(total.restarts)},
    {"connections", METRIC_GAUGE, "Open connections by state.", "state", connection_state_label, 0, CONNECTION_STATES,
     SUM(connections)},
    {"connections_accepted_total", METRIC_COUNTER, "Connections accepted.", NULL, NULL, 0, 1, SUM(accepted)},
    {"connections_refused_total", METRIC_COUNTER,
     "Connections closed after accept, because their address had worker_connections_per_address connections.", NULL,
     NULL, 0, 1, SUM(rejected)},
    {"exchange_memory_bytes", METRIC_GAUGE, "Memory of the requests and responses being processed, in bytes.", NULL,
     NULL, 0, 1, SUM(exchange_memory)},
    {"exchange_memory_refusals_total", METRIC_COUNTER, "Allocations rejected by the memory limit of a worker.",
     NULL, NULL, 0, 1, SUM(exchange_rejections)},
    {"requests_total", METRIC_COUNTER, "Requests whose head was received.", NULL, NULL, 0, 1, SUM(requests)},
    {"requests_by_protocol_total", METRIC_COUNTER, "Requests whose head was received, by protocol.", "protocol",
     protocol_label, 0, COUNTERS_PROTOCOLS, SUM(requests_by_protocol)},
    {"http2_streams", METRIC_GAUGE, "Open streams of HTTP/2 connections.", NULL, NULL, 0, 1,
     SUM(protocols.h2_streams)},
    {"http2_streams_total", METRIC_COUNTER, "Streams that clients opened and the server accepted.", NULL, NULL, 0, 1,
     SUM(protocols.h2_streams_opened)},
    {"http2_resets_sent_total", METRIC_COUNTER,
     "RST_STREAM frames sent, by error code. REFUSED_STREAM: more streams than http2_max_concurrent_streams.", "code",
     h2_error_label, 0, H2_COUNTED_ERRORS, SUM(protocols.h2_resets_sent), .sparse = true},
    {"http2_resets_received_total", METRIC_COUNTER, "Open streams that clients reset, by error code.", "code",
     h2_error_label, 0, H2_COUNTED_ERRORS, SUM(protocols.h2_resets_received), .sparse = true},
    {"http2_connection_errors_total", METRIC_COUNTER,
     "HTTP/2 connections that the server ended by GOAWAY with an error, by error code.", "code", h2_error_label, 0,
     H2_COUNTED_ERRORS, SUM(protocols.h2_connection_errors), .sparse = true},
    {"responses_total", METRIC_COUNTER, "Completed requests by class of status.", "class",
     status_class_label, 0, STATUS_CLASSES, AT(classes)},
    {"responses_by_status_total", METRIC_COUNTER,
     "Completed requests by status, as in $status.", "status", status_code_label, 0, COUNTERS_STATUSES,
     SUM(status), .sparse = true},
    {"request_duration_seconds", METRIC_HISTOGRAM,
     "Time from the first byte of a request to the end of its response, in the resolution of loop iterations.",
     NULL, NULL, 0, LATENCY_BOUNDS + 1, SUM(latency.counts)},
    {"sent_bytes_total", METRIC_COUNTER,
     "Bytes of responses before encryption, by $tls_path.", "path", tls_path_label,
     PATH_PLAIN, PATH_COUNT, SUM(wires.bytes)},
    {"transfers_total", METRIC_COUNTER, "Responses by the $tls_path of most of their bytes.",
     "path", tls_path_label, PATH_PLAIN, PATH_COUNT, SUM(wires.transfers)},
    {"zero_copy_bytes_total", METRIC_COUNTER,
     "Bytes sent without a copy in user space, as in $bytes_zero_copy.", NULL, NULL, 0, 1, AT(zero_copy)},
    {"zero_copy_ratio", METRIC_GAUGE, "Share of bytes sent without a copy in user space, from 0 to 1.", NULL,
     NULL, 0, 1, AT(zero_copy_share), .millionths = true},
    {"ktls_promotions_total", METRIC_COUNTER, "Connections on which kernel TLS was enabled.", NULL, NULL,
     0, 1, SUM(wires.promotions)},
    {"ktls_rekeyings_total", METRIC_COUNTER, "New keys that the kernel accepted.", NULL, NULL, 0, 1,
     SUM(wires.rekeyings)},
    {"ktls_declines_total", METRIC_COUNTER,
     "TLS responses that the kernel did not encrypt, by $tls_path_reason.", "reason",
     tls_reason_label, KTLS_OFF, REASON_PLAIN, SUM(wires.declines)},
    {"tls_records_total", METRIC_COUNTER, "TLS records encrypted in user space.", NULL, NULL, 0, 1,
     SUM(wires.records)},
    {"aead_ipsec_mb", METRIC_GAUGE, "Library that encrypts records in user space, by cipher. 1: ipsec-mb, 0: OpenSSL.",
     "cipher", cipher_label, RECORD_AES_128_GCM, RECORD_CIPHERS, AT(total.aead_ipsec_mb)},
    {"ktls_kernel_ns_per_kib", METRIC_GAUGE,
     "CPU time in ns per KiB of large bodies that the kernel encrypts, measured at start for ssl_ktls: auto. "
     "0: not measured.",
     "cipher", cipher_label, RECORD_AES_128_GCM, RECORD_CIPHERS, AT(total.ktls_kernel_ns)},
    {"ktls_user_ns_per_kib", METRIC_GAUGE, "The same for encryption in user space.", "cipher", cipher_label,
     RECORD_AES_128_GCM, RECORD_CIPHERS, AT(total.ktls_user_ns)},
    {"tls_handshakes_total", METRIC_COUNTER, "TLS handshakes by result.", "result", handshake_label, 0, 3,
     AT(handshakes)},
    {"upstream_sent_bytes_total", METRIC_COUNTER,
     "Bytes sent to upstream servers, before encryption, by path as in $tls_path.", "path", tls_path_label,
     PATH_PLAIN, PATH_COUNT, SUM(upstream_wires.bytes)},
    {"upstream_tls_handshakes_total", METRIC_COUNTER, "TLS handshakes with upstream servers, by result.", "result",
     handshake_label, 0, 3, AT(upstream_handshakes)},
    {"open_file_cache_lookups_total", METRIC_COUNTER,
     "Lookups of files: hits, and misses that open or revalidate the file.", "result", lookup_label,
     0, 2, AT(lookups)},
    {"access_log_lines_dropped_total", METRIC_COUNTER, "Access log lines that were dropped.", NULL, NULL,
     0, 1, SUM(log_lines_dropped)},
    {"spans_sent_total", METRIC_COUNTER, "Spans that the collector of otel_exporter accepted.", NULL, NULL, 0, 1,
     AT(total.spans_sent)},
    {"spans_dropped_total", METRIC_COUNTER,
     "Spans that were dropped. queue_full: the queue of a worker was full. not_sent: the collector did not accept "
     "them.",
     "reason", dropped_label, 0, 2, AT(total.spans_dropped)},
    {0},
};

static uint64_t ratio_millionths(uint64_t part, uint64_t whole)
{
    /* part * 1000000 would overflow above 18 TB. */
    return whole ? (uint64_t)((double)part / (double)whole * 1e6) : 0;
}

void status_collect(struct status_values *values)
{
    const struct counters *sum = &values->total.sum;
    uint64_t bytes = 0;

    values->one = 1;
    for (unsigned i = 0; i < COUNTERS_STATUSES; i++)
        values->classes[i / 100] += sum->status[i];
    values->handshakes[0] = sum->wires.handshakes_full;
    values->handshakes[1] = sum->wires.handshakes_resumed;
    values->handshakes[2] = sum->wires.handshakes_failed;
    values->upstream_handshakes[0] = sum->upstream_wires.handshakes_full;
    values->upstream_handshakes[1] = sum->upstream_wires.handshakes_resumed;
    values->upstream_handshakes[2] = sum->upstream_wires.handshakes_failed;
    values->lookups[0] = sum->files.hits;
    values->lookups[1] = sum->files.misses;
    values->zero_copy = sum->wires.bytes[PATH_PLAIN_SENDFILE] + sum->wires.bytes[PATH_PLAIN_SPLICE] +
                        sum->wires.bytes[PATH_KTLS_SENDFILE] + sum->wires.bytes[PATH_KTLS_SPLICE] +
                        sum->wires.bytes[PATH_PLAIN_MAPPED] + sum->wires.bytes[PATH_KTLS_MAPPED];
    for (unsigned i = 0; i < PATH_COUNT; i++)
        bytes += sum->wires.bytes[i];
    values->zero_copy_share = ratio_millionths(values->zero_copy, bytes);
}
