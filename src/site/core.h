/*
 * The directive tables of the core and the structs that they fill; private to src/site. Each core_*.c contains the
 * table of one subject; configuration.c combines them.
 */
#ifndef SITE_CORE_H
#define SITE_CORE_H

#include "acme/acme.h"
#include "site/configuration.h"

extern const struct conf_group core_main_group;
extern const struct conf_group core_http_group;
extern const struct conf_group core_site_group;
extern const struct conf_group core_http2_group;
extern const struct conf_group core_server_group;
extern const struct conf_group core_ssl_group;

/* Directives of http only. */
struct core_http {
    struct conf_rows log_formats;   /* struct log_format, without the built-in ones */
    struct core_file_cache {
        bool enabled;
        uint64_t max_entries;
        uint64_t inactive_ms;
    } open_file_cache;
    uint64_t open_file_cache_valid_ms;
    uint64_t open_file_cache_min_uses;
    bool open_file_cache_errors;
};

/* One `listen`. */
struct listen_row {
    struct listen_address address;
    struct str text;                /* the address in canonical form: the key of endpoints */
    struct conf_mark mark;
    bool ssl;
    bool proxy_protocol;
    bool is_default;
    bool control;
    uint64_t backlog;
};

/* Directives of server only. */
struct core_server {
    struct conf_rows listens;           /* struct listen_row */
    struct conf_words names;
    const struct capture **patterns;    /* names that begin with "~" */
    size_t pattern_count;
};

/* Report a `use` and an `ssl_aead` that are not available in this build. */
void core_check_backend(const struct configuration *configuration, struct conf_errors *errors);
void core_check_aead(const struct configuration *configuration, struct conf_errors *errors);
/* Reads `control` into a struct core_control. */
directive_row core_control_read;
/* Reads `sandbox` into an unsigned: bit i is enum sandbox_part i. */
directive_row core_sandbox_read;
/* True for "off", "false" and "no", which YAML permits for it. */
static inline bool core_is_off(struct str text)
{
    return str_equal(text, STR("off")) || str_equal(text, STR("false")) || str_equal(text, STR("no"));
}

/*
 * Sets `name` and `made` from the text of a scope's status_zone. A name applies to the scope where it is written; on
 * and off apply to inner scopes, too, also to those inside a scope with a name. Returns 0, or -EINVAL after reporting.
 */
MUST_CHECK int core_status_zone_check(struct status_zone_setting *setting, struct conf_reader *reader,
                                      const struct conf_node *at);
/* Returns the address of a server without `listen`: nginx's *:80, or *:8000 without root privileges. */
struct str core_default_address(void);

/*
 * core_site_read.c: read a path, or a template that begins with a variable, into a const struct template *; "4 8k" into
 * two adjacent uint64_t, count and size; `disable_symlinks` into a struct core_symlinks.
 */
directive_row core_site_read_root;
directive_row core_site_read_buffers;
directive_row core_site_read_symlinks;

/* Settings of HTTP/2 in one scope. */
struct core_http2 {
    bool enabled;
    uint64_t max_concurrent_streams, body_preread_size, chunk_size;
};

/* A file named in the configuration, and its place there. */
struct core_file {
    struct str path;
    struct conf_mark mark;
};

/* One `ssl_conf_command`. */
struct core_ssl_commands {
    struct core_ssl_command {
        struct tls_command command;
        struct conf_mark mark;
    } *items;
    size_t count;
};

struct core_ssl {
    struct conf_rows certificates;              /* struct core_file */
    struct conf_rows keys;                      /* struct core_file */
    struct acme_settings acme;                  /* of `ssl_certificate: acme` */
    unsigned protocols;                         /* bits of enum tls_protocol */
    struct str ciphers;
    struct str ciphersuites;
    struct str curves;
    bool prefer_server_ciphers;
    bool session_tickets;
    bool early_data;
    struct conf_rows ticket_keys;               /* struct core_file */
    uint64_t session_timeout_ms;
    struct core_ssl_files {
        uint64_t valid_ms;                      /* 0: files are read once */
    } files;
    int verify_client;                          /* enum tls_verify */
    uint64_t verify_depth;
    /* For client certificates. */
    struct core_file client_certificate, trusted_certificate, crl;
    struct core_file passwords, dh_parameters;  /* dh_parameters: a file, or "auto" */
    struct conf_rows commands;                  /* struct core_ssl_commands */
    struct conf_words alpn;                     /* of `stream` */
    struct core_ssl_cache {
        struct str name;                        /* contains a colon: an unnamed cache (`builtin`) */
        uint64_t size;                          /* bytes; 0: nothing is cached */
        struct conf_mark mark;
    } session_cache;
    bool reject;
    int ktls;                                   /* enum tls_ktls */
    uint64_t ktls_threshold;
    uint64_t buffer_size;
    bool small_records;
};

/*
 * core_ssl_read.c: reads a path into a struct core_file; `ssl_certificate` and `ssl_dhparam` into one, too, with a
 * keyword in place of the path; `ssl_certificate_cache` into a struct core_ssl_files, `ssl_conf_command` into a struct
 * core_ssl_commands, `ssl_session_cache` into a struct core_ssl_cache.
 */
directive_row core_ssl_read_file;
directive_row core_ssl_read_certificate;
directive_row core_ssl_read_certificate_cache;
directive_row core_ssl_read_commands;
directive_row core_ssl_read_cache;
directive_row core_ssl_read_dh;
/*
 * core_ssl_check.c: checks the values of a server after merging, because http and server may each set a part; and the
 * block `acme` of each scope. 0 or -EINVAL (reported).
 */
MUST_CHECK int core_ssl_check(void *conf, struct conf_reader *reader, const struct conf_node *at);
/* Returns command number `index` of all rows; NULL: no more. */
const struct core_ssl_command *core_ssl_command_at(const struct core_ssl *ssl, size_t index);

/* The keys of `acme`. */
extern const struct directive core_acme_children[];
/* Returns true for `ssl_certificate: acme`. */
bool core_acme_used(const struct core_ssl *ssl);
/* Reports invalid values of the `acme` block at `at`, if it is set there. */
void core_acme_check(const struct core_ssl *ssl, struct conf_reader *reader, const struct conf_node *at);

/* One extension of `types`. */
struct media_type {
    struct str extension;
    struct str type;
};

/* Reads `types`, a map from types to extensions, into a struct conf_rows. */
directive_row core_types_read;
/* Returns the built-in media type of an extension, ignoring case; data NULL: none. */
struct str core_type_built_in(struct str extension);
/*
 * Fills site->mime from types, default_type and charset. The table belongs to the caller (table_finish). Returns 0 or
 * -ENOMEM.
 */
MUST_CHECK int core_types_build(struct arena *arena, struct core_site *site);

/* One `error_page`. */
struct error_page {
    unsigned statuses[16];
    unsigned count;
    int response_status;            /* `=200`; 0: keep; -1: `=` alone, the status of the target */
    const struct template *target;  /* a path, "@name", or a URL */
};

/* Reads `error_page` into a struct error_page. */
directive_row core_error_page_read;

/* Read `log_format` into a struct conf_rows, and `access_log` into a struct access_log_row. */
directive_row core_log_formats_read;
directive_row core_access_log_read;
/* Reads `error_log` into core_main's field of that name. */
directive_row core_error_log_read;
/* True for "syslog:...", "journald" and "journald:...". */
bool core_is_syslog(struct str text);
/* Reads such a value. 0, -EINVAL (reported) or -ENOMEM. */
MUST_CHECK int core_syslog_read(struct conf_reader *reader, const struct conf_node *node, struct str text,
                                const struct syslog **out_syslog);
#define CORE_ACCESS_LOG_SYNTAX                                                                                         \
    "off | file | stdout | stderr | syslog:server=... | journald [format] [flush=time] [if=condition] "                \
    "[sample=share] | {path: ..., format: ..., flush: time, if: condition, sample: share}"
#define CORE_ACCESS_LOG_SCHEMA                                                                                         \
    "{\"oneOf\": [{\"type\": \"string\"}, {\"const\": false}, {\"type\": \"object\", \"additionalProperties\": "       \
    "false, \"properties\": {\"path\": {\"type\": \"string\"}, \"format\": {\"type\": \"string\"}, \"flush\": "        \
    "{\"type\": \"string\"}, \"if\": {\"type\": \"string\"}, \"sample\": {\"type\": [\"string\", \"number\"]}}}]}"
/* Prints the built-in formats of that name. Returns 0, -ENOENT or -ENOMEM. */
MUST_CHECK int core_log_format_print(struct str name, struct buffer *out);
/*
 * Returns a format by name: one of the file, else `main`, `combined` or `json`, compiled on first use. NULL: unknown
 * or out of memory.
 */
const struct log_format *core_log_format_find(struct conf_reader *reader, const struct conf_rows *formats,
                                              struct str name);

#endif
