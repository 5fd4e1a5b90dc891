/*
 * All caps on sizes, counts and times that a client, an upstream server, a file or the configuration controls. The
 * default of a directive is in its table; its bounds are here.
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

/* base */
#define LIMIT_LOG_INTERVAL_MS       1000            /* between two error-log lines about one resource that runs out */
#define LIMIT_LOG_SAMPLE            1000000         /* requests per line of a sampled access log */
#define LIMIT_LOG_SAMPLE_DIGITS     6               /* decimals of `sample` */
#define LIMIT_LOG_FIELD             1024            /* bytes of one field of a structured error-log line */
#define LIMIT_LOG_RECORD            65536           /* bytes of one structured error-log line: every byte as \uXXXX */
#define LIMIT_SYSLOG_ADDRESS        64              /* bytes of the IP address of a syslog receiver, with port */
#define LIMIT_SYSLOG_CONNECT_MS     1000            /* the master connects to syslog receivers again after this time */
#define LIMIT_LOG_LINE              2048            /* bytes of one error-log line */
#define ARENA_BLOCK_SIZE            4096
#define LIMIT_REGEX_PATTERN         4096            /* bytes of a regular expression */
#define LIMIT_REGEX_STEPS           100000          /* steps of one match, backtracking included */
#define LIMIT_REGEX_HEAP_KIB        4096            /* heap of one match by the interpreter */

/* io */
/* The budget of one loop iteration for large ops: bytes from memory, from the page cache, and read for a sendfile. */
#define LIMIT_ITERATION_BYTES       (256 * 1024)
#define LIMIT_ITERATION_FILE_BYTES  (2 * 1024 * 1024)
#define LIMIT_ITERATION_FETCHED_BYTES (64 * 1024)
/* Time of all large ops of a loop iteration; the op that exceeds it is completed. */
#define LIMIT_ITERATION_US          200
/* File bytes probed at once while the previous window was in the page cache. */
#define LIMIT_CACHED_WINDOW         (1024 * 1024)
#define LIMIT_HELPER_THREADS        4
#define LIMIT_HELPER_QUEUE          1024
#define LIMIT_UNCACHED_WINDOW       (256 * 1024)    /* file bytes probed and read ahead at once */
#define LIMIT_READ_AHEAD            (512 * 1024)    /* file bytes that a helper thread reads ahead of an OP_READ */
#define LIMIT_FETCHES               3               /* helper reads of one window before sendfile waits for the disk */
#define LIMIT_RECEIVE_BYTES         (16 * 1024)     /* bytes of one receive */
/* Bytes of one receive of a large body, and its buffer per client. */
#define LIMIT_RECEIVE_LARGE         (64 * 1024)
#define LIMIT_RECEIVE_BUFFERS       256             /* buffers in the ring of provided buffers */
#define LIMIT_FILE_CACHE_CONTENT    16384           /* files up to this size are kept in memory */

/* http */
#define LIMIT_HEADERS               1000            /* upper bound of max_headers */
/* Upper bound of client_header_buffer_size and large_client_header_buffers. */
#define LIMIT_REQUEST_HEAD          (1024ull * 1024)
/* Members of Connection in one message; above it a request gets 400, a response 502. */
#define LIMIT_CONNECTION_OPTIONS    32
#define LIMIT_TRACESTATE_MEMBERS    32              /* list members of tracestate (W3C Trace Context 3.3.1.1) */
#define LIMIT_CHUNK_LINE            256             /* a chunk-size line with its extensions */
#define LIMIT_CHUNK_EXTENSIONS      (16 * 1024)     /* bytes of chunk extensions of one body */
#define LIMIT_TRAILER_BYTES         8192
/* Largest file that `etag: hash` reads. */
#define LIMIT_ETAG_HASH             (64 * 1024 * 1024)
#define LIMIT_RANGES                100             /* upper bound of max_ranges */
/* Bytes of an unread request body that are discarded to keep the connection or the stream. */
#define LIMIT_PIPELINE_DRAIN        (64 * 1024)
/* Arena of one exchange: request head, response head, generated page. */
#define LIMIT_EXCHANGE_MEMORY       (32 * 1024 * 1024)
/* Arenas and buffered bodies of an HTTP/2 connection; further streams are rejected. */
#define LIMIT_CONNECTION_MEMORY     (48 * 1024 * 1024)
/* File bytes read at once for a body that is transformed in memory. */
#define LIMIT_FILE_WINDOW           (16 * 1024)
#define LIMIT_LEADING_LINES         4               /* empty lines before a request (RFC 9112 2.2) */
#define LIMIT_REJECTED_HEAD         1024            /* bytes kept of a rejected request head, for the log */
#define LIMIT_HOST                  255
/* Bytes of a stored reason phrase; a longer one is replaced by the standard phrase. */
#define LIMIT_STORED_REASON         256
/* A larger time in the metadata of a stored response is invalid. */
#define LIMIT_STORED_SECONDS        (INT64_C(1) << 60)
#define LIMIT_VARY_FIELDS           32              /* field names in the Vary of a stored response */
#define LIMIT_TARGETED_MEMBERS      64              /* members of a targeted Cache-Control field (RFC 9213) */
/* Burst of 1xx responses of an upstream server that are forwarded; further ones are dropped. */
#define LIMIT_INTERIMS              16
#define LIMIT_INTERIM_MS            250             /* interval at which one more 1xx is forwarded after the burst */
/* Wait for 100 Continue of an upstream server that got Expect; the body is sent afterwards. */
#define LIMIT_CONTINUE_MS           1000
/* Bytes of queued 1xx responses per client; further ones are dropped. */
#define LIMIT_INTERIM_BYTES         (64 * 1024)
#define LIMIT_INTERNAL_REDIRECTS    10
#define LIMIT_LISTING_ITEMS         10000           /* entries of a directory listing */
/* Bits of a uint64_t without the last: a shift by the highest index plus one must be defined. */
#define LIMIT_MODULES               63
#define LIMIT_COMPRESS_INPUT        (16 * 1024)     /* bytes of a body encoded per step */
#define LIMIT_COMPRESS_OUTPUT       (16 * 1024)     /* bytes of encoded output per step */
/* Bytes that a worker encodes per loop iteration, over all bodies. */
#define LIMIT_COMPRESS_ITERATION    (64 * 1024)
/* Memory of all encoders of a worker; further responses are sent unencoded. */
#define LIMIT_COMPRESS_MEMORY       (256 * 1024 * 1024)
#define LIMIT_SUBREQUESTS           50              /* concurrent subrequests of one exchange */
#define LIMIT_SUBREQUEST_DEPTH      4               /* nesting depth of subrequests */
#define LIMIT_DETACHED_SUBREQUESTS  512             /* detached subrequests of a worker; above it no new one starts */
/* Bytes of an unneeded subrequest response read to keep the connection reusable. */
#define LIMIT_SUBREQUEST_REST       (64 * 1024)

/* HTTP/2 */
#define LIMIT_H2_FRAME              16384           /* payload of one frame, received or sent (RFC 9113 4.2) */
#define LIMIT_H2_HEADER_BLOCK       (256u * 1024)   /* encoded bytes of one header section (CVE-2024-27316) */
#define LIMIT_H2_STRING             65536u          /* encoded bytes of a name or a value; the maximum of libnghttp2 */
#define LIMIT_H2_HEADER_LIST        (1024u * 1024)  /* decoded bytes of one header section */
/* Queued control frames; a client that causes more without reading is disconnected. */
#define LIMIT_H2_CONTROL_BYTES      (64 * 1024)
#define LIMIT_H2_STREAMS            1000            /* upper bound of http2_max_concurrent_streams */
#define LIMIT_H2_CONNECTION_WINDOW  (1024u * 1024)  /* initial size of a connection's receive window */
/* Largest receive window, also of a connection: bytes buffered per connection. */
#define LIMIT_H2_WINDOW             (4u * 1024 * 1024)
/* Receive window of a stream to an upstream server: bytes buffered per response. */
#define LIMIT_H2_UPSTREAM_WINDOW    (256u * 1024)
#define LIMIT_H2_UPSTREAM_REFUSALS  8               /* repetitions of a request whose stream a server refused */
#define LIMIT_H2_UPSTREAM_STREAMS   128             /* concurrent streams on one connection to an upstream server */
/* Wait for the acknowledgement of the first GOAWAY before the second. */
#define LIMIT_H2_GOAWAY_MS          1000
/* Burst of events without requests: http/h2/abuse.c has the costs. */
#define LIMIT_H2_CREDIT             2000
#define LIMIT_H2_CREDIT_PER_S       200
#define LIMIT_H2_CREDIT_PER_RESPONSE 10
#define LIMIT_H2_CREDIT_PER_DATA    5               /* of at least LIMIT_H2_SMALL bytes */
/* A DATA frame or a window increment of fewer bytes counts as a small one. */
#define LIMIT_H2_SMALL              1024

/* log */
#define LIMIT_ACCESS_BATCH          1048576         /* bytes of access log that one worker buffers for one target */

/* server */
#define LIMIT_WORKERS               1024            /* upper bound of worker_processes */
/* Output buffers of all connections of a worker. */
#define LIMIT_WORKER_OUTPUT         (256ull * 1024 * 1024)
#define LIMIT_ARENA_FREE_BLOCKS     1024
/* Arenas of all exchanges of a worker. */
#define LIMIT_WORKER_EXCHANGES      (1024ull * 1024 * 1024)
#define LIMIT_RESTART_DELAY_MS      10000           /* longest delay before a crashing worker is restarted */
#define LIMIT_HEARTBEAT_MIN_MS      1000            /* bounds of worker_heartbeat_timeout */
#define LIMIT_HEARTBEAT_MAX_MS      (3600 * 1000)
/* Longest time between two heartbeats of a worker, and between two checks of the master. */
#define LIMIT_HEARTBEAT_INTERVAL_MS 1000
/* A worker may take this many times worker_heartbeat_timeout to become ready. */
#define LIMIT_HEARTBEAT_START_FACTOR 6
#define LIMIT_ABORT_MS              1000            /* a worker that has not exited this long after SIGABRT is killed */
#define LIMIT_LISTEN_FDS            1024            /* sockets passed by a service manager (LISTEN_FDS) */
#define LIMIT_UPGRADE_MS            60000           /* time after which a new binary that does not serve is killed */
#define LIMIT_UPGRADE_CHECK_MS      500             /* interval between two checks during an upgrade */
/* Bounds of the time between two messages for the watchdog of a service manager. */
#define LIMIT_WATCHDOG_INTERVAL_MS_MIN 100
#define LIMIT_WATCHDOG_INTERVAL_MS_MAX (3600 * 1000)
/* A worker that has not exited this long after a fast shutdown began is killed. */
#define LIMIT_STOP_MS               5000
/* Zones of status_zone, of servers, locations and servers of stream together. */
#define LIMIT_STATUS_ZONES          1024
#define LIMIT_STATUS_ZONE_NAME      256             /* bytes of a name; one made from a longer pattern is truncated */

/* control */
/* Bytes of a response of the control socket. */
#define LIMIT_CONTROL_RESPONSE      (16u * 1024 * 1024)
#define LIMIT_CONTROL_REQUEST       (16 * 1024)     /* bytes of the body of a request to the control socket */
/* Queries of a worker in LIMIT_CONTROL_PERIOD_MS; further ones wait. The master forwards twice as many. */
#define LIMIT_CONTROL_QUERIES       16
#define LIMIT_CONTROL_PERIOD_MS     1000
/* Queries of one worker in that time after which the master kills it. */
#define LIMIT_CONTROL_FLOOD         4096
/* Kernel memory of the unread messages of a worker (about 20); above it the worker gets no query. */
#define LIMIT_CONTROL_UNREAD        (16 * 1024)
#define LIMIT_CONTROL_PENDING       16              /* queries of a worker that are in progress */
#define LIMIT_CONTROL_RESPONSE_MS   3000            /* longest wait for the responses of all workers */
#define LIMIT_CONTROL_PACKETS       8192            /* packets read for one query */
/* Connections in one response: their rows fit into a socket buffer. */
#define LIMIT_CONTROL_CONNECTIONS   400
#define LIMIT_CONTROL_SEND_BUFFER   (208 * 1024)    /* of that socket, as for SO_SNDBUF: the kernel doubles it */
#define LIMIT_CONTROL_ENTRIES       1000            /* entries of a cache in one response */
/* Bytes of the keys of these entries: escaped, they fit into LIMIT_CONTROL_RESPONSE. */
#define LIMIT_CONTROL_ENTRY_KEYS    (1024 * 1024)
/* Bytes, with a NUL, of the path of a request in a list of connections. */
#define LIMIT_CONTROL_PATH          256
#define LIMIT_CONTROL_MS            10000           /* longest wait of `sluice ctl` for the server */

/* tls */
#define LIMIT_RECORD_PLAINTEXT      16384           /* RFC 8446 5.1 */
#define LIMIT_RECORDS_PER_KEY       (1ull << 24)    /* RFC 8446 5.5: 2^24.5 full records for AES-GCM */
#define LIMIT_HANDSHAKE_BYTES       (1 << 18)
/* Cipher contexts per worker: one for each direction of a connection. */
#define LIMIT_CIPHERS_LIVE          1024
#define LIMIT_CIPHER_BYTES          (1200 << 10)    /* memory of the cipher contexts of a worker */
#define LIMIT_AEAD_GAIN             10              /* percent that an engine other than OpenSSL must save */
#define LIMIT_AEAD_NOISE            5               /* assumed error of that measurement, in percent */
/* Time to compare the kernel's encryption with that in user space, for all ciphers. */
#define LIMIT_KTLS_MEASURE_MS       100
#define LIMIT_CLIENT_HELLO          16384           /* bytes of a ClientHello parsed for SNI and ALPN */
#define LIMIT_ALPN_TEXT             255             /* bytes of the ALPN list of a ClientHello */
#define LIMIT_SERVER_NAME           255             /* bytes of SNI (RFC 1035 2.3.4) */
#define LIMIT_PEM_FILE              (1 << 20)       /* a certificate chain or a key */
#define LIMIT_CERTIFICATE_RELOAD    (64 << 20)      /* certificate files of one virtual server */
#define LIMIT_FILES_CHECK_MS        100             /* shortest interval between two checks of the certificate files */
/* Minimum size of ssl_dhparam: precomputation breaks smaller groups. */
#define LIMIT_DH_BITS               2048
#define LIMIT_PEM_CHAIN             16              /* certificates in a chain */
#define LIMIT_KEY_UPDATES           32              /* KeyUpdates accepted from one peer within LIMIT_KEY_UPDATES_MS */
#define LIMIT_KEY_UPDATES_MS        1000
#define LIMIT_EARLY_DATA            16384           /* bytes of early data per connection */
/* Lifetime of an entry of the replay window; OpenSSL accepts tickets for about 11 s. */
#define LIMIT_EARLY_S               30
#define LIMIT_EARLY_DRIFT_MS        2500            /* clock difference tolerated between client and server */
/* Bytes of a session kept by the server, client certificate included. */
#define LIMIT_TLS_SESSION           (8 * 1024)
#define LIMIT_TLS_SESSIONS          10000000        /* entries of a session cache whose size is given as a number */
#define LIMIT_EMPTY_RECORDS         32              /* consecutive records without data from one peer */
#define LIMIT_TLS_ALERTS            8               /* warning alerts sent to one peer */

/* wire and connection */
/* A sealed record with all headers fits one TCP segment, also over IPv6 and PPPoE. */
#define SMALL_RECORD_PLAINTEXT      1369
/* Bytes sent in small records after an idle period, while the congestion window is small. */
#define SMALL_RECORD_BYTES          (64 * 1024)
/* Idle period after which the congestion window is assumed to be small again. */
#define SMALL_RECORD_REST_MS        1000
/* A shorter file span is copied: cheaper than a probe of the page cache and sendfile. */
#define LIMIT_COPIED_SPAN           (24 * 1024)
/* A file that is sent in shorter spans is mapped if at least this much of it follows. */
#define LIMIT_MAPPED_RUN            (64 * 1024)
/* Bytes mapped first; each further view of a transfer is eight times as long. */
#define LIMIT_FILE_VIEW_FIRST       (256 * 1024)
/* Longest view; it takes address space, but no memory. */
#define LIMIT_FILE_VIEW             (16 * 1024 * 1024)
/* Views of a worker: the kernel allows 65530 mappings per process. */
#define LIMIT_FILE_VIEWS            8192
/* Age at which the page cache is probed again, since pages may have been evicted. */
#define LIMIT_FILE_VIEW_CHECK_MS    1000
/* Mapped bytes queued on a connection; doubles while the socket takes them at once. */
#define LIMIT_GATHER_FIRST          (128 * 1024)
#define LIMIT_GATHER                (2 * 1024 * 1024)   /* the upper bound of these bytes */
/* Unsent bytes in the socket of an HTTP/2 connection; data of other streams is sent after them. */
#define LIMIT_HTTP2_UNSENT          (128 * 1024)
/* The limit of a faster client: the bytes that it acknowledges in this time. */
#define UNSENT_MS                   50
#define UNSENT_DOUBLINGS            4               /* LIMIT_HTTP2_UNSENT is doubled at most this often: 2 MiB */
/* Interval in which the rate of a client is measured; doubled as often as the limit. */
#define UNSENT_PERIOD_MS            20
/* Bytes discarded during lingering close, so that an RST does not destroy the response. */
#define LIMIT_LINGERING_BYTES       (8 * 1024 * 1024)
#define LIMIT_SLOW_WINDOW_MS        30000           /* period over which client_min_rate is measured */
/* Interval between two checks of the unacknowledged bytes of a closing kTLS connection. */
#define LIMIT_UNACKNOWLEDGED_CHECK_MS 50
#define LIMIT_FREE_BLOCKS           64              /* free output blocks of a worker */
#define LIMIT_PIPES                 128             /* pipes of a worker for splice between sockets, per direction */
#define LIMIT_FREE_PIPES            16              /* pipes kept while unused */
/* Requested capacity of one pipe: as many bytes as one loop iteration moves. */
#define LIMIT_PIPE_BYTES            (256 * 1024)
#define LIMIT_PIPE_MIN              (64 * 1024)     /* smallest capacity accepted */
#define LIMIT_SPLICE_BYTES          (64 * 1024)     /* bodies below this size are copied */
#define LIMIT_STREAM_MEMORY         (256 * 1024)    /* arena of one `stream` connection */
#define LIMIT_FREE_CONNECTIONS      256             /* free connections of a worker */
/* Memory of an idle connection beyond OpenSSL's SSL object, heap overhead included. */
#define LIMIT_IDLE_CONNECTION       1024
#define LIMIT_EPOLL_SLOT            32              /* the part of it that the epoll backend uses per descriptor */

/* upstream, and the modules that pass requests on */
/* Addresses of X-Forwarded-For that are examined, starting from the last. */
#define LIMIT_FORWARDED             64
#define LIMIT_PROXY_INPUT           (32 * 1024)     /* bytes of a response body buffered per client: two receives */
#define LIMIT_CHECK_HEAD            (32 * 1024)     /* response head of a health check over HTTP/2 */
#define LIMIT_CHECK_MEMORY          (256 * 1024)    /* arena of that head */
#define LIMIT_CHECK_LEAD_MS         1000u           /* shortest period for which one worker leads the health checks */
#define LIMIT_UPSTREAM_BLOCK        (32 * 1024)     /* one output block of a connection to an upstream server */
#define LIMIT_UPSTREAM_TARGETS      1000            /* groups that a worker creates from variables in proxy_pass */
/* Peers whose state is shared by all workers; the state of further ones is per worker. */
#define LIMIT_UPSTREAM_PEERS        1024
#define LIMIT_UPSTREAM_TRIES        64              /* servers tried for one request */
#define LIMIT_UPSTREAM_WEIGHT       65535           /* weight of one server, as in an SRV record */
/* Servers added and removed at run time since the last reload, of all groups. */
#define LIMIT_UPSTREAM_CHANGES      128
/* max_conns, max_fails, and milliseconds of fail_timeout and slow_start of such a server. */
#define LIMIT_UPSTREAM_CHANGE_VALUE 0xffffffffu
/* A newer configuration retires the workers of the one before within this time. */
#define LIMIT_UPSTREAM_FORGED_MS    30000
#define LIMIT_UPSTREAM_FOLLOW_MS    1000            /* interval in which an idle worker looks for such changes */
#define LIMIT_UPSTREAM_ZONE_PORTS   1024            /* ports of one `zone`: each is a rule of the workers' sandbox */
/* Longest pause before a failed server is tried again, unless fail_timeout is longer. */
#define LIMIT_UPSTREAM_PAUSE_MS     300000
#define LIMIT_UPSTREAM_AUTHORITY    512             /* bytes of "name:port" computed from variables */
#define LIMIT_UPSTREAM_ADDRESSES    32              /* addresses of one name */
/* Idle client connections closed at once when descriptors are exhausted. */
#define LIMIT_RECLAIMED             32
#define LIMIT_RECLAIM_MS            100             /* shortest interval between two rounds of these */
/* Time to send queued bytes, and for the server to close its side. */
#define LIMIT_UPSTREAM_CLOSE_MS     5000
#define LIMIT_SPOOL_BLOCK           (1024 * 1024)   /* upper bound of one block of a spooled body in memory */
/* Upper bound of all blocks of one body. */
#define LIMIT_SPOOL_MEMORY          (64 * 1024 * 1024)
#define LIMIT_STORED_BLOCK          (16 * 1024)     /* block size of a buffered request body */
#define LIMIT_SPOOL_FILE            (1ull << 40)    /* bytes of a temporary file */
#define LIMIT_FASTCGI_STDERR        4096            /* bytes of FCGI_STDERR logged per request */
/* Bytes of all parameters of one request. */
#define LIMIT_FASTCGI_PARAMS        LIMIT_REQUEST_HEAD
/* Shortest read timeout of upgraded connections and event streams. */
#define LIMIT_PROXY_IDLE_MS         3600000
#define LIMIT_RESOLVE_VALID_MS      30000           /* interval between two reads of names from the hosts file */
#define LIMIT_RESOLVE_MIN_MS        1000            /* shorter DNS TTLs are raised to this */
#define LIMIT_RESOLVE_MAX_MS        3600000         /* longer DNS TTLs are lowered to this */
#define LIMIT_RESOLVE_TIMEOUT_MS    30000           /* one query, if resolver_timeout is not set */
#define LIMIT_RESOLVE_TRY_MS        2000            /* wait before a query is repeated */
#define LIMIT_RESOLVE_SERVERS       8               /* name servers of one `resolver` */
/* First retry of a failed lookup; each further failure doubles the delay. */
#define LIMIT_RESOLVE_RETRY_MS      1000
#define LIMIT_RESOLVE_RETRY_MAX_MS  5000            /* upper bound of that delay */
#define LIMIT_RESOLVED_NAMES        256             /* names whose addresses a starting worker inherits */
#define LIMIT_RESOLVED_KEY          1024            /* bytes of the key of a name: host, port, service, name servers */

/* limits of requests and connections */
#define LIMIT_ZONE_MIN              (32 * 1024)     /* smallest size of a zone */
#define LIMIT_ZONE_MAX              (16ull * 1024 * 1024 * 1024)
/* Entries of one hash chain of a zone; keyed hashes, but up to LIMIT_WORKERS entries of a key. */
#define LIMIT_ZONE_CHAIN            16384
#define LIMIT_LIMITED_KEYS          64              /* keys of a zone that were limited last, for the control socket */
#define LIMIT_LIMITED_KEY           64              /* bytes stored of such a key */
/* Bytes of a password file. */
#define LIMIT_PASSWORD_FILE         (4 * 1024 * 1024)
#define LIMIT_LOGIN_TEXT            512             /* bytes of a user name or a password: the limit of libcrypt */
#define LIMIT_LOGIN_PATH            4096            /* bytes of the path of a password file */
#define LIMIT_LOGINS                256             /* logins of a worker queued for hashing; further ones get 503 */
/* Concurrent hashes per worker; the other helper threads stay free for files. */
#define LIMIT_HASHES_AT_ONCE        2
#define LIMIT_LOGINS_KNOWN          512             /* successful logins that a worker caches */
#define LIMIT_LOGIN_KNOWN_MS        300000          /* lifetime of an unused cached login */
#define LIMIT_BCRYPT_COST           16              /* about 4 seconds per hash */
#define LIMIT_SHA_ROUNDS            5000000         /* about 4 seconds per hash */
#define LIMIT_RATE_MAX              (1ull << 40)    /* bytes per second; higher rates are unlimited */
#define LIMIT_REQUEST_RATE          1000000         /* upper bound of a rate and of a burst */

/* acme */
#define LIMIT_ACME_NAMES            100             /* of one certificate: the limit of public authorities */
#define LIMIT_ACME_NAME             253             /* bytes of a DNS name */
/* Bytes of the first name: NAME_MAX without the suffix ".issuer.crt" of lego. */
#define LIMIT_ACME_FIRST_NAME       244
#define LIMIT_ACME_TOKEN            128             /* bytes of a token; authorities use 43 */
#define LIMIT_ACME_AUTHORIZATION    256             /* bytes of a key authorization: token, dot, thumbprint (43) */
#define LIMIT_ACME_URL              1024            /* bytes of the URL of an authority */
#define LIMIT_ACME_EMAIL            254
#define LIMIT_ACME_EAB              512             /* bytes of a key id or key of an external account */
#define LIMIT_ACME_PROVIDER         64              /* bytes of the name of a DNS provider */
#define LIMIT_ACME_RESOLVERS        8               /* name servers that the client queries */
#define LIMIT_ACME_RESOLVER         300             /* bytes of the name or address of one, with its port */
#define LIMIT_ACME_OUTPUT           8192            /* last bytes of the client's output that are kept */
#define LIMIT_ACME_ERROR            256             /* bytes of the text of a failure, with its NUL */
/* Longest delay after failures, before up to a quarter of it is added. */
#define LIMIT_ACME_RETRY_MS         (12 * 3600 * 1000)
/* Interval between queries for the authority's window, before up to a quarter of it is added. */
#define LIMIT_ACME_QUERY_S          (6 * 3600)
#define LIMIT_ACME_ANSWER_S         (12 * 3600)     /* validity of the answer to such a query */
/* No such query in this time before the expiry: lego renews a certificate with less than a day left. */
#define LIMIT_ACME_LAST_DAY_S       (26 * 3600)
/*
 * A recorded time that is further in the future is ignored. A smaller difference is the clock of another machine that
 * uses the same folder.
 */
#define LIMIT_ACME_SKEW_S           300
/* Interval between two attempts to get the lock of the state folder. */
#define LIMIT_ACME_LOCK_S           10
#define LIMIT_ACME_CHECK_S          60              /* longest interval between two checks of certificates and clock */
/* Longest time between a failed attempt and the next one after a start or a reload. */
#define LIMIT_ACME_RELOAD_S         60
/* Delay before an ended renewal process is started again; doubled each time, up to a minute. */
#define LIMIT_ACME_CONTROL_MS       1000

/* otlp */
/* One span in shared memory: ids, times, name, attributes; further attributes are dropped. */
#define LIMIT_SPAN_BYTES            2048
#define LIMIT_SPAN_TEXT             512             /* bytes of one value of a span; longer values are truncated */
#define LIMIT_SPAN_KEY              255             /* bytes of the name of an attribute */
#define LIMIT_OTLP_BATCH            10000           /* upper bound of batch_size */
#define LIMIT_OTLP_QUEUE            65536           /* spans of a worker that wait: batch_size times batch_count */
#define LIMIT_OTLP_INTERVAL_MS      (3600 * 1000)   /* upper bound of interval */
#define LIMIT_OTLP_URL              1024            /* bytes of the endpoint */
#define LIMIT_OTLP_FIELDS           16384           /* bytes of all fields of `header` */
/* Bytes of a batch; further spans are in the next one. */
#define LIMIT_OTLP_REQUEST          (4 * 1024 * 1024)
#define LIMIT_OTLP_RESPONSE         (64 * 1024)     /* bytes of the collector's response; the rest is not read */
#define LIMIT_OTLP_SEND_MS          10000           /* one attempt to send a batch: connection, request, response */
#define LIMIT_OTLP_ATTEMPTS         6               /* attempts to send a batch */
#define LIMIT_OTLP_BACKOFF_MS       500             /* delay after the first attempt; doubled after each further one */
#define LIMIT_OTLP_RETRY_AFTER_MS   30000           /* longest delay that a collector can request */
#define LIMIT_OTLP_FLUSH_MS         3000            /* time in which an ending exporter sends the spans that are left */
#define LIMIT_OTLP_LOG_MS           60000           /* between two log lines about dropped spans */
/* Delay before an ended exporter is started again; doubled each time, up to half a minute. */
#define LIMIT_OTLP_RESTART_MS       500

/* cache */
#define LIMIT_CACHE_ZONE_MIN        (32 * 1024)     /* smallest size of a cache index */
#define LIMIT_CACHE_ZONE_MAX        (64ull * 1024 * 1024 * 1024)
/* Key and stored headers of one file. */
#define LIMIT_CACHE_HEAD            (2 * 1024 * 1024)
#define LIMIT_CACHE_KEY             (64 * 1024)     /* longer keys are not stored */
#define LIMIT_CACHE_BODY            (64ull << 30)   /* bytes of one response, unless max_size is smaller */
#define LIMIT_CACHE_OPEN            1000            /* entries of one cache that a worker keeps open */
/* Header updates appended to one file before the response is fetched and written again. */
#define LIMIT_CACHE_UPDATES         64
#define LIMIT_CACHE_WRITE           (64 * 1024)     /* bytes of a response per write */
/* Body bytes stored before a HEAD that is requested as GET is answered: those of one write. */
#define LIMIT_CACHE_HEAD_DELAY      (64 * 1024)
#define LIMIT_CACHE_COPY            (1024 * 1024)   /* bytes of a stored body copied per step */
/* Bytes queued for the disk before reading from the upstream server pauses. */
#define LIMIT_CACHE_QUEUED          (256 * 1024)
/* Attempts to create a file while the cache manager removes it before it is locked. */
#define LIMIT_CACHE_ATTEMPTS        32
/* Interval between two checks of a response that another worker fetches. */
#define LIMIT_CACHE_CHECK_MS        20
/* Further scans of a cache directory for temporary files that were locked. */
#define LIMIT_CACHE_RESCANS         5
#define LIMIT_CACHE_IDLE_MS         1000            /* pause between two steps of an idle cache manager */
/* Time without a step after which another worker takes over the cache manager. */
#define LIMIT_CACHE_LEAD_MS         30000

/* conf */
#define LIMIT_CONF_DEPTH            32
#define LIMIT_CONF_NODES            (1000 * 1000)
#define LIMIT_CONF_FILE             (16 * 1024 * 1024)
#define LIMIT_CONF_ERRORS           20
#define LIMIT_CONF_INCLUDES         1000

/* import */
#define LIMIT_IMPORT_DEPTH          64              /* nesting depth of blocks and included files */
#define LIMIT_IMPORT_FILES          1000
#define LIMIT_IMPORT_DIRECTIVES     100000
#define LIMIT_IMPORT_WORDS          20000           /* words of one directive; server_name has the most */
#define LIMIT_IMPORT_ROUNDS         1000            /* runs of the loader, which reports at most twenty errors each */

/* top: bounds of the memory that `sluice top` uses for a status page */
#define LIMIT_TOP_URL               2048            /* bytes of the URL */
#define LIMIT_TOP_FETCH_MS          5000            /* time for one request */
#define LIMIT_TOP_HEAD              16384           /* bytes of the response head */
/* Bytes of the page: full tables of upstream servers and of zones have 2 MiB. */
#define LIMIT_TOP_PAGE              (4 * 1024 * 1024)
/* Arena of one response or sample. */
#define LIMIT_TOP_MEMORY            (8 * 1024 * 1024)
#define LIMIT_TOP_DEPTH             16              /* nesting of values that are ignored */
#define LIMIT_TOP_KEY               64              /* bytes of a key; longer ones are ignored */
#define LIMIT_TOP_NAME              256             /* bytes of a text; longer texts are truncated */
#define LIMIT_TOP_PATHS             16              /* values of $tls_path; further ones are ignored */
#define LIMIT_TOP_BUCKETS           64              /* buckets of the latency histogram */
#define LIMIT_TOP_FAULT             512             /* bytes of an error message */
#define LIMIT_TOP_COLUMNS           256             /* of the terminal; further ones stay empty */
#define LIMIT_TOP_ROWS              128
#define LIMIT_TOP_INTERVAL_S        3600            /* longest interval between two readings */

/* doctor */
#define LIMIT_BENCHMARK_SECONDS     120             /* upper bound of doctor --seconds */
#define LIMIT_BENCHMARK_BYTES       (16ull << 30)   /* bodies of one measurement of the benchmark */
#define LIMIT_BENCHMARK_START_MS    30000           /* start of its server, up to the first response */
#define LIMIT_BENCHMARK_WAIT_MS     5000            /* end of its server, and each handshake */
#define LIMIT_BENCHMARK_LATE_S      120             /* more time for measurements without responses, all together */

#endif
