/*
 * Directives of the main scope and of `events`: processes and privileges.
 */
#include "base/cidr.h"
#include "base/limits.h"
#include "build_options.h"
#include "io/backends.h"
#include "site/core.h"
#include "tls/aead_choice.h"

#include <errno.h>
#include <stddef.h>

#define AT(field) offsetof(struct core_main, field)

static int read_processes(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    uint64_t *count = out;

    if (node->kind == CONF_SCALAR && str_equal(node->text, STR("auto"))) {
        *count = 0;
        return 0;
    }
    return conf_read_number(reader, node, 1, 1024, count);
}

static int read_heartbeat(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    uint64_t *timeout_ms = out;
    int error;

    if (node->kind == CONF_SCALAR && core_is_off(node->text)) {
        *timeout_ms = 0;
        return 0;
    }
    error = conf_read_duration(reader, node, timeout_ms);
    if (error == 0 && (*timeout_ms < LIMIT_HEARTBEAT_MIN_MS || *timeout_ms > LIMIT_HEARTBEAT_MAX_MS)) {
        conf_error(reader->errors, node->mark, STR("write a duration from 1s to 1h, or off"),
                   STR_FMT " is too %s", STR_ARG(node->text), *timeout_ms < LIMIT_HEARTBEAT_MIN_MS ? "short" : "long");
        return -EINVAL;
    }
    return error;
}

/* "www-data" or "www-data www". */
static int read_user(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct str *names = out;
    struct conf_words words;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    if (words.count < 1 || words.count > 2) {
        conf_error(reader->errors, node->mark, STR("write: user: www-data, or: user: www-data www"),
                   "user takes a name and optionally a group");
        return -EINVAL;
    }
    names[0] = words.items[0];
    names[1] = words.count == 2 ? words.items[1] : STR("");
    return 0;
}

static int read_debug_connection(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    return conf_read_cidr(reader, node, out);
}

static const char *const backends[] = {"auto", "io_uring", "epoll", NULL};

const char *configuration_backend(const struct configuration *configuration)
{
    return backends[configuration->main->use];
}

struct conf_mark configuration_backend_mark(const struct configuration *configuration)
{
    const struct conf_node *use = conf_map_get(conf_map_get(configuration->tree, STR("events")), STR("use"));

    return use ? use->mark : (struct conf_mark){0};
}

void core_check_backend(const struct configuration *configuration, struct conf_errors *errors)
{
    const char *use = configuration_backend(configuration);
    bool found = strcmp(use, backends[0]) == 0;

    for (size_t i = 0; loop_backends[i]; i++)
        found |= strcmp(use, loop_backends[i]->name) == 0;
    if (!found)
        conf_error(errors, configuration_backend_mark(configuration),
                   conf_hint(errors, "write auto, or %s", loop_backends[0]->name), "this build has no %s", use);
}

static const char *const aeads[] = {"auto", "openssl", "ipsec-mb", NULL}; /* enum tls_aead */

void core_check_aead(const struct configuration *configuration, struct conf_errors *errors)
{
    const struct conf_node *node = conf_map_get(configuration->tree, STR("ssl_aead"));

    if (configuration->main->aead == TLS_AEAD_IPSEC_MB && !aead_engine(AEAD_IPSEC_MB)->built)
        conf_error(errors, node ? node->mark : (struct conf_mark){0},
                   STR("write auto or openssl, or build sluice with libipsec-mb-dev and -Dipsec_mb=enabled"),
                   "this build has no ipsec-mb");
}

#define SANDBOX_NAMES "\"capabilities\", \"no_dump\", \"landlock\", \"seccomp\""

static const struct directive directives[] = {
    {.name = "worker_processes",
     .scopes = SCOPE_MAIN,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(worker_processes),
     .row_size = sizeof(uint64_t),
     .row = read_processes,
     .default_value = "auto",
     .syntax = "auto | number",
     .example = "worker_processes: 4",
     .help = "The number of worker processes; auto is one per core.",
     .schema =
         "{\"oneOf\": [{\"const\": \"auto\"}, {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1024}]}"},
    {.name = "worker_shutdown_timeout",
     .scopes = SCOPE_MAIN,
     .type = DIRECTIVE_DURATION,
     .offset = AT(worker_shutdown_timeout_ms),
     .default_value = "60s",
     .example = "worker_shutdown_timeout: 5m",
     .help = "After QUIT or a reload, how long active responses may take before their connections are closed."},
    {.name = "worker_heartbeat_timeout",
     .scopes = SCOPE_MAIN,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(worker_heartbeat_timeout_ms),
     .row_size = sizeof(uint64_t),
     .row = read_heartbeat,
     .default_value = "5s",
     .syntax = "duration | off",
     .example = "worker_heartbeat_timeout: 10s",
     .help = "A worker whose event loop does not run for this long is killed and replaced, unless a debugger has "
             "stopped it. A worker may take 6 times as long to start. off: no check.",
     .schema = "{\"oneOf\": [{\"enum\": [false, \"off\", \"no\", \"false\"]}, "
               "{\"type\": \"string\", \"pattern\": \"^([0-9]+(ms|[smhdwMy]) ?)+$\"}]}"},
    {.name = "daemon",
     .scopes = SCOPE_MAIN,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(daemon),
     .default_value = "off",
     .example = "daemon: on",
     .help = "Run in the background (off by default, unlike nginx: service managers require off)."},
    {.name = "pid",
     .scopes = SCOPE_MAIN,
     .type = DIRECTIVE_PATH,
     .offset = AT(pid),
     .default_value = SLUICE_PID,
     .example = "pid: /run/sluice/sluice.pid",
     .help = "The file with the process id of the master; -s reads it."},
    {.name = "user",
     .scopes = SCOPE_MAIN,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(user),
     .row_size = 2 * sizeof(struct str),
     .row = read_user,
     .help = "User, and optionally group, of the workers when the master is root.",
     .syntax = "user [group]",
     .example = "user: www-data"},
    {.name = "error_log",
     .scopes = SCOPE_MAIN,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(error_log),
     .row_size = sizeof(struct error_log_settings),
     .row = core_error_log_read,
     .default_value = "stderr notice",
     .help = "The destination of the error log, and its lowest level. A syslog receiver is syslog:server=ADDRESS (IP "
             "address with port, default 514, or unix:PATH), with facility (local7), tag (sluice), severity (info; of "
             "access logs), nohostname and format (rfc3164, as nginx, or rfc5424), joined by commas. journald is "
             "systemd's journal, optionally with server (unix:PATH), tag, facility (daemon) and severity: "
             "journald:tag=web. It gets PRIORITY and SYSLOG_IDENTIFIER, and in the error log SLUICE_CLIENT, "
             "SLUICE_REQUEST and others. Lines that a receiver does not accept are lost and counted. format: json "
             "writes one object per line: time, level, pid, message, and connection, client, server, request, host, "
             "request_id and upstream where the line has them. `sluice ctl log-level` changes the level until the next "
             "reload.",
     .syntax = "file | stderr | stdout | syslog:server=... | journald [debug | info | notice | warn | error | crit | "
               "alert | emerg] | {path: ..., level: ..., format: text | json}",
     .example = "error_log: {path: stderr, level: notice}",
     .schema =
         "{\"oneOf\": [{\"type\": \"string\"}, {\"type\": \"object\", \"additionalProperties\": false, "
         "\"properties\": {\"path\": {\"type\": \"string\"}, \"level\": {\"enum\": [\"debug\", \"info\", "
         "\"notice\", \"warn\", \"error\", \"crit\", \"alert\", \"emerg\"]}, "
         "\"format\": {\"enum\": [\"text\", \"json\"]}}}]}"},
    {.name = "control",
     .scopes = SCOPE_MAIN,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(control),
     .row_size = sizeof(struct core_control),
     .row = core_control_read,
     .default_value = "off",
     .syntax = "off | unix:path",
     .example = "control: unix:/run/sluice/control.sock",
     .help = "The Unix socket of `sluice ctl`, which shows and changes the state of the running server: HTTP with "
             "JSON below /v1. Only the user of the master and root can connect (mode 0600). It shows the paths of "
             "requests in progress, without query components. The states and weights of upstream servers that it sets "
             "last until the server ends, also after a reload that does not change `down` or `weight` of the server.",
     .schema = "{\"oneOf\": [{\"enum\": [false, \"off\", \"no\", \"false\"]}, "
               "{\"type\": \"string\", \"pattern\": \"^unix:/\"}]}"},
    {.name = "ssl_aead",
     .scopes = SCOPE_MAIN,
     .type = DIRECTIVE_CHOICE,
     .offset = AT(aead),
     .choices = aeads,
     .default_value = "auto",
     .example = "ssl_aead: openssl",
     .help = "The library that encrypts TLS records in user space. auto: OpenSSL, or for AES-GCM ipsec-mb (Intel's "
             "multi-buffer library, amd64) where a measurement at start finds it more than 10 % faster; the log and "
             "`sluice doctor` report the choice. ipsec-mb: without measurement; where the processor lacks AES-NI, "
             "the log reports it, and OpenSSL encrypts. ChaCha20-Poly1305 is always encrypted by OpenSSL, and so "
             "is what OpenSSL's configuration assigns to another provider (FIPS), except with ipsec-mb."},
    {.name = "sandbox",
     .scopes = SCOPE_MAIN,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(sandbox),
     .row_size = sizeof(unsigned),
     .row = core_sandbox_read,
     .default_value = "on",
     .syntax = "on | off | [capabilities | no_dump | landlock | seccomp, ...]",
     .example = "sandbox: [capabilities, no_dump]",
     .help = "Removes rights that workers do not need. on: all parts; a list: only these. capabilities: no "
             "capabilities, and none can be gained, also with user: root. no_dump: no core dumps, and other processes "
             "of the same user cannot read the memory, which contains private keys; without it, core dumps of workers "
             "that dropped root also need fs.suid_dumpable=2. landlock: workers open only the files below the "
             "directories that the configuration names, and connect only to its ports (Linux 6.7). seccomp: a system "
             "call that no feature of sluice uses ends the worker, and the log names it.",
     .schema = "{\"oneOf\": [{\"enum\": [true, false, \"on\", \"off\", \"yes\", \"no\", \"true\", \"false\", "
               SANDBOX_NAMES "]}, {\"type\": \"array\", "
               "\"minItems\": 1, \"items\": {\"enum\": [" SANDBOX_NAMES "]}}]}"},
    {.name = "use",
     .scopes = SCOPE_EVENTS,
     .type = DIRECTIVE_CHOICE,
     .offset = AT(use),
     .choices = backends,
     .default_value = "auto",
     .example = "use: epoll",
     .help = "The event loop's kernel interface; auto is io_uring where it is permitted, else epoll."},
    {.name = "worker_connections",
     .scopes = SCOPE_EVENTS,
     .type = DIRECTIVE_NUMBER,
     .offset = AT(worker_connections),
     .low = 1,
     .high = 1000000,
     .default_value = "4096",
     .example = "worker_connections: 20000",
     .help = "The maximum number of connections of one worker; at the limit it stops accepting."},
    {.name = "worker_connections_per_address",
     .scopes = SCOPE_EVENTS,
     .type = DIRECTIVE_NUMBER,
     .offset = AT(connections_per_address),
     .high = 1000000,
     .default_value = "0",
     .example = "worker_connections_per_address: 100",
     .help = "The maximum number of connections of one worker from one IPv4 address or one IPv6 /64 network; "
             "further ones are closed at once. 0: no limit."},
    {.name = "debug_connection",
     .scopes = SCOPE_EVENTS,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(debug_connections),
     .row_size = sizeof(struct cidr),
     .row = read_debug_connection,
     .syntax = "address | address/bits | unix:",
     .example = "debug_connection: [127.0.0.1, \"2001:db8::/32\"]",
     .help = "Clients whose connections are logged at level debug, regardless of the level of error_log. In http: "
             "their requests, the modules that handle them, and each frame of HTTP/2, without header fields and "
             "bodies. In stream: their virtual server, the upstream servers that are tried, and the end. The "
             "address is that of the connection, not one in a header field. Unlike nginx, no host names."},
    {.name = "multi_accept",
     .scopes = SCOPE_EVENTS,
     .type = DIRECTIVE_SWITCH,
     .ignored = &(const struct directive_ignored){"all waiting connections are always accepted",
                                                  "delete it; worker_connections limits the connections of a worker"},
     .default_value = "on",
     .example = "multi_accept: on",
     .help = "The loop always accepts all waiting connections: off causes a warning and has no effect."},
    {0},
};

const struct conf_group core_main_group = {
    .name = "core",
    .directives = directives,
    .size = sizeof(struct core_main),
};
