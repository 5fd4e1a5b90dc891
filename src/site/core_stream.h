/*
 * The values of `stream` and of its servers.
 */
#ifndef SITE_CORE_STREAM_H
#define SITE_CORE_STREAM_H

#include "site/configuration.h"
#include "upstream/upstream_ssl.h"

struct stream_pass {
    const struct upstream *upstream;    /* NULL: none, or proxy_pass contains variables */
    const struct template *text;        /* proxy_pass with variables; NULL: none */
};

struct core_stream {
    struct stream_pass pass;
    const struct template *text;            /* return: the text sent to the client; NULL: the connection is proxied */
    union proxy_address bind;               /* proxy_bind; AF_UNSPEC: none */
    struct conf_rows log_formats;           /* struct log_format, without the built-in ones */
    struct conf_rows access_logs;           /* struct access_log_row */
    struct status_zone_setting status_zone;
    uint64_t connect_timeout_ms;
    uint64_t timeout_ms;
    uint64_t next_tries;                    /* 0: as many as there are servers */
    uint64_t next_timeout_ms;               /* 0: no limit */
    uint64_t upload_rate, download_rate;    /* bytes per second and connection; 0: no limit */
    uint64_t preread_size;
    uint64_t preread_timeout_ms;
    int proxy_protocol;                     /* 0: off; else its version */
    bool ssl_preread;
    bool next_upstream;
    bool half_close;
};

/* TLS to upstream servers. */
struct core_stream_tls {
    bool on;
    struct upstream_ssl_conf ssl;       /* proxy_ssl_... */
};

extern const struct conf_group core_stream_group, core_stream_tls_group;

/* The stream part of a virtual server. */
struct stream_server {
    const struct core_stream *conf;
    const struct core_stream_tls *tls;
    void *const *module_conf;       /* by index in module_table */
    const struct status_zone *zone; /* of status_zone; NULL: none */
    struct wire_settings wire;
};

#endif
