/*
 * What `stream` says of its servers, as it was read.
 */
#ifndef SERVER_CORE_STREAM_H
#define SERVER_CORE_STREAM_H

#include "conf/conf_schema.h"
#include "upstream/upstream.h"
#include "wire/wire.h"

struct core_stream {
    const struct upstream *upstream; /* proxy_pass; NULL: none */
    uint64_t connect_timeout_ms;
    uint64_t timeout_ms;
    uint64_t next_tries;            /* 0: as many as there are servers */
    uint64_t next_timeout_ms;       /* 0: no limit */
    uint64_t preread_size;
    uint64_t preread_timeout_ms;
    int proxy_protocol;             /* 0: off; else its version */
    bool ssl_preread;
    bool next_upstream;
    bool half_close;
};

extern const struct conf_group core_stream_group;

/* The stream part of a virtual server. */
struct stream_server {
    const struct core_stream *conf;
    void *const *module_conf;       /* by index in module_table */
    struct wire_settings wire;
};

#endif
