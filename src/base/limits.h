/*
 * Every cap on a size, a count or a time that comes from outside, in one place.
 * What a directive can set has its default in the directive's table and its
 * bounds here.
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

/* base */
#define LIMIT_LOG_LINE              2048            /* bytes of one error-log line */
#define ARENA_BLOCK_SIZE            4096
#define LIMIT_REGEX_PATTERN         4096            /* bytes of a regular expression */
#define LIMIT_REGEX_STEPS           100000          /* of one match, backtracking included */
#define LIMIT_REGEX_HEAP_KIB        4096            /* of one match that has no machine code */

/* io */
#define LIMIT_TURN_BYTES            (256 * 1024)    /* of large sends and files, for all ops together in one turn of the loop */
#define LIMIT_TURN_FILE_BYTES       (2 * 1024 * 1024) /* the same where files that are in memory leave, which costs less a byte */
#define LIMIT_TURN_FETCHED_BYTES    (64 * 1024)     /* the same where helper threads fetched them from a disk */
#define LIMIT_HOT_WINDOW            (1024 * 1024)   /* file bytes probed at once while what came before was in memory */
#define LIMIT_HELPER_THREADS        4
#define LIMIT_HELPER_QUEUE          1024
#define LIMIT_COLD_WINDOW           (256 * 1024)    /* file bytes probed and read ahead at once */
#define LIMIT_FETCHES               3               /* of a window by helpers, before the loop itself waits for the disk */
#define LIMIT_LENT_BYTES            (16 * 1024)     /* one receive */
#define LIMIT_LENT_BUFFERS          256             /* in the ring of provided buffers */
#define LIMIT_FILE_CACHE_CONTENT    16384           /* files up to this size are kept whole in memory */

/* http */
#define LIMIT_HEADERS               1000            /* upper bound of max_headers */
#define LIMIT_REQUEST_HEAD          (1024ull * 1024) /* upper bound of client_header_buffer_size and its large kin */
#define LIMIT_CONNECTION_OPTIONS    32              /* members of Connection in one message: more are refused with 400, of an upstream with 502 */
#define LIMIT_CHUNK_LINE            256             /* a chunk-size line with its extensions */
#define LIMIT_CHUNK_EXTENSIONS      (16 * 1024)     /* of all chunks of one body */
#define LIMIT_TRAILER_BYTES         8192
#define LIMIT_ETAG_HASH             (64 * 1024 * 1024) /* bytes of a file that `etag: hash` reads for its ETag */
#define LIMIT_RANGES                100             /* upper bound of max_ranges */
#define LIMIT_PIPELINE_DRAIN        (64 * 1024)
#define LIMIT_EXCHANGE_MEMORY       (32 * 1024 * 1024) /* one exchange's arena: its head, its answer's head, a generated page */
#define LIMIT_FILE_WINDOW           (16 * 1024)     /* file bytes read at once for who wants bytes */
#define LIMIT_LEADING_LINES         4               /* empty lines before a request (RFC 9112 2.2) */
#define LIMIT_REFUSED_HEAD          1024            /* bytes kept of a head that was refused, for the log */
#define LIMIT_HOST                  255
#define LIMIT_VARY_FIELDS           32              /* names in the Vary of an answer that is stored */
#define LIMIT_TARGETED_MEMBERS      64              /* of a targeted Cache-Control field (RFC 9213) */
#define LIMIT_INTERIMS              16              /* 1xx of an upstream that are forwarded at once; further ones are dropped */
#define LIMIT_INTERIM_MS            250             /* and one more is forwarded each time that this has passed */
#define LIMIT_CONTINUE_MS           1000            /* a server that was sent Expect says 100 within this, or is sent the body all the same */
#define LIMIT_INTERIM_BYTES         (64 * 1024)     /* of 1xx that wait for the client; further ones are dropped */
#define LIMIT_REROUTES              10
#define LIMIT_LISTING_ITEMS         10000           /* of a folder that is listed */
#define LIMIT_MODULES               63              /* a location has a bit for each, and the one behind the last can be shifted to */
#define LIMIT_COMPRESS_INPUT        (16 * 1024)     /* bytes of a body that are encoded at once */
#define LIMIT_COMPRESS_OUTPUT       (16 * 1024)     /* and of what comes of them */
#define LIMIT_COMPRESS_TURN         (64 * 1024)     /* bytes that a worker encodes in one turn of its loop, for all bodies together */
#define LIMIT_COMPRESS_MEMORY       (256 * 1024 * 1024) /* of all coders of a worker: further answers leave as they are */
#define LIMIT_SUBREQUESTS           50              /* children of one exchange, at once */
#define LIMIT_SUBREQUEST_DEPTH      4               /* children of children */
#define LIMIT_SUBREQUESTS_APART     512             /* of a worker, that nobody waits for: a server which never answers is asked no more often */
#define LIMIT_SUBREQUEST_REST       (64 * 1024)     /* bytes of a child's answer that are read although nobody wants them */

/* server */
#define LIMIT_ACCESS_BATCH          1048576         /* bytes of access log that one worker holds for one target */

/* server */
#define LIMIT_WORKERS               1024            /* upper bound of worker_processes */
#define LIMIT_WORKER_OUTPUT         (256ull * 1024 * 1024) /* bytes held for output by all connections of a worker */
#define LIMIT_ARENA_BLOCKS_KEPT     1024
#define LIMIT_RESTART_DELAY_MS      10000           /* between deaths of a worker that dies at once */
#define LIMIT_STOP_MS               5000            /* a worker that was told to end at once and does not is killed */

/* tls */
#define LIMIT_RECORD_PLAINTEXT      16384           /* RFC 8446 5.1 */
#define LIMIT_RECORDS_PER_KEY       (1ull << 24)    /* RFC 8446 5.5: 2^24.5 full records for AES-GCM */
#define LIMIT_HANDSHAKE_BYTES       (1 << 18)
#define LIMIT_CIPHERS_LIVE          512             /* cipher contexts per worker */
#define LIMIT_CLIENT_HELLO          16384           /* bytes of a ClientHello that is read for its name */
#define LIMIT_ALPN_TEXT             255             /* bytes of the protocols that a ClientHello names */
#define LIMIT_SERVER_NAME           255             /* bytes of SNI (RFC 1035 2.3.4) */
#define LIMIT_PEM_FILE              (1 << 20)       /* a certificate chain or a key */
#define LIMIT_RENEWAL               (64 << 20)      /* all files of one virtual server */
#define LIMIT_FILES_LOOK_MS         100             /* between two looks at the files of TLS, at least */
#define LIMIT_DH_BITS               2048            /* the least of ssl_dhparam: fewer can be broken for all servers at once */
#define LIMIT_PEM_CHAIN             16              /* certificates in a chain */
#define LIMIT_KEY_UPDATES           32              /* from one peer within LIMIT_KEY_UPDATES_MS, or that it does not take */
#define LIMIT_KEY_UPDATES_MS        1000
#define LIMIT_EARLY_DATA            16384           /* bytes of early data of one connection */
#define LIMIT_EARLY_S               30              /* connections with early data are known; they can be replayed for 11 (OpenSSL's tolerance) and a few */
#define LIMIT_EARLY_DRIFT_MS        2500            /* between two clocks */
#define LIMIT_TLS_SESSION           (8 * 1024)      /* bytes of a session that the server keeps, with its client's certificate */
#define LIMIT_TLS_SESSIONS          10000000        /* in a cache that has a number of them in the place of a size */
#define LIMIT_TLS_ALERTS            8               /* warnings written to one peer */

/* wire and journey */
#define SMALL_RECORD_PLAINTEXT      1369            /* sealed, with all headers, it fits one segment, over IPv6 and PPPoE, too */
#define SMALL_RECORD_BYTES          (64 * 1024)     /* in small records after a rest: as long as the congestion window is small */
#define SMALL_RECORD_REST_MS        1000            /* without a record: then that window is small again */
#define LIMIT_LINGERING_BYTES       (8 * 1024 * 1024) /* dropped after an orderly end, so that the answer is not lost to a reset */
#define LIMIT_SLOW_WINDOW_MS        30000           /* over which client_min_rate is measured */
#define LIMIT_TAIL_LOOK_MS          50              /* between two looks at what the kernel has not sent yet of an ended connection */
#define LIMIT_BLOCKS_KEPT           64              /* free output blocks of a worker */
#define LIMIT_PIPES                 128             /* that bytes of a worker pass through from socket to socket, each way */
#define LIMIT_PIPES_KEPT            16              /* of them, while nobody needs them */
#define LIMIT_PIPE_BYTES            (256 * 1024)    /* asked for, for one pipe: as much as a turn moves */
#define LIMIT_PIPE_LEAST            (64 * 1024)     /* what it must hold at least */
#define LIMIT_SPLICE_BYTES          (64 * 1024)     /* a shorter body is copied */
#define LIMIT_STREAM_MEMORY         (256 * 1024)    /* what one connection of `stream` may need for variables */
#define LIMIT_JOURNEYS_KEPT         256             /* free connections of a worker */
#define LIMIT_OWN_SHARE             1024            /* bytes of an idle connection beyond OpenSSL's SSL object, with what the heap adds to each piece */
#define LIMIT_EPOLL_SLOT            32              /* of them, what epoll keeps for each descriptor */

/* upstream, and the modules that pass requests on */
#define LIMIT_FORWARDED             64              /* addresses of X-Forwarded-For that are looked at, from the last one on */
#define LIMIT_PROXY_INPUT           (32 * 1024)     /* bytes of an answer's body kept for a client: two receives */
#define LIMIT_CHECK_LEAD_MS         1000u           /* at least so long one worker leads the health checks for all */
#define LIMIT_UPSTREAM_BLOCK        (32 * 1024)     /* one output block of a connection to a server */
#define LIMIT_UPSTREAM_TARGETS      1000            /* groups that a worker makes of variables in proxy_pass */
#define LIMIT_UPSTREAM_PEERS        1024            /* that workers know together; of more, each knows for itself */
#define LIMIT_UPSTREAM_TRIES        64              /* servers that are asked for one request */
#define LIMIT_UPSTREAM_PAUSE_MS     300000          /* a server that stays away is tried again so often, unless fail_timeout is longer */
#define LIMIT_UPSTREAM_AUTHORITY    512             /* bytes of "name:port" that variables made */
#define LIMIT_UPSTREAM_ADDRESSES    32              /* of one name */
#define LIMIT_RECLAIMED             32              /* idle client connections closed at a time, when descriptors are exhausted */
#define LIMIT_RECLAIM_MS            100             /* and so often at most */
#define LIMIT_UPSTREAM_PARTING_MS   5000            /* what was given to a connection leaves, and the server ends its side */
#define LIMIT_SPOOL_BLOCK           (1024 * 1024)   /* upper bound of a piece of a body that is kept in memory */
#define LIMIT_SPOOL_MEMORY          (64 * 1024 * 1024) /* and of all pieces of one body */
#define LIMIT_STORED_BLOCK          (16 * 1024)     /* the piece of a request's body */
#define LIMIT_SPOOL_FILE            (1ull << 40)    /* bytes of a temporary file */
#define LIMIT_FASTCGI_SAID          4096            /* of what a FastCGI server says for the error log, for one request */
#define LIMIT_FASTCGI_PARAMS        LIMIT_REQUEST_HEAD /* bytes of all parameters of one request */
#define LIMIT_PROXY_QUIET_MS        3600000         /* least patience with upgraded connections and event streams */
#define LIMIT_RESOLVE_VALID_MS      30000           /* names of the hosts file are looked up again so often */
#define LIMIT_RESOLVE_LEAST_MS      1000            /* a shorter time to live counts as that */
#define LIMIT_RESOLVE_MOST_MS       3600000         /* and a longer one as that */
#define LIMIT_RESOLVE_TIMEOUT_MS    30000           /* of one question, where resolver_timeout says nothing */
#define LIMIT_RESOLVE_TRY_MS        2000            /* before a name server is asked again */
#define LIMIT_RESOLVE_SERVERS       8               /* name servers of one `resolver` */
#define LIMIT_RESOLVE_RETRY_MS      1000            /* a question that failed is asked again after this; each further failure doubles it, */
#define LIMIT_RESOLVE_RETRY_MOST_MS 5000            /* up to this */
#define LIMIT_RESOLVED_NAMES        256             /* whose addresses a worker that starts finds */
#define LIMIT_RESOLVED_KEY          1024            /* bytes that tell them apart: host, port, service, name servers */

/* limits of requests and connections */
#define LIMIT_ZONE_LEAST            (32 * 1024)     /* memory of one zone */
#define LIMIT_ZONE_MOST             (16ull * 1024 * 1024 * 1024)
#define LIMIT_PASSWORD_FILE         (4 * 1024 * 1024) /* bytes of a file of users */
#define LIMIT_LOGIN_TEXT            512             /* bytes of a name, and of a password: what libcrypt takes */
#define LIMIT_LOGIN_PATH            4096            /* bytes of the path of such a file */
#define LIMIT_LOGINS                256             /* of a worker, that wait to be hashed: more are answered 503 */
#define LIMIT_HASHES_AT_ONCE        2               /* of a worker, so that helper threads are left for files */
#define LIMIT_LOGINS_KNOWN          512             /* that a worker remembers as good */
#define LIMIT_LOGIN_KNOWN_MS        300000          /* without use */
#define LIMIT_BCRYPT_COST           16              /* some 4 seconds */
#define LIMIT_SHA_ROUNDS            5000000         /* the same */
#define LIMIT_PACED_RATE            (1ull << 40)    /* bytes a second: more is as good as no limit_rate */
#define LIMIT_REQUEST_RATE          1000000         /* upper bound of a rate, and of a burst */

/* cache */
#define LIMIT_CACHE_ZONE_LEAST      (32 * 1024)     /* memory of one index */
#define LIMIT_CACHE_ZONE_MOST       (64ull * 1024 * 1024 * 1024)
#define LIMIT_CACHE_HEAD            (2 * 1024 * 1024) /* key and noted head of one file */
#define LIMIT_CACHE_KEY             (64 * 1024)     /* a longer key is not stored */
#define LIMIT_CACHE_BODY            (64ull << 30)   /* bytes of one answer, where max_size does not say less */
#define LIMIT_CACHE_OPEN            1000            /* entries that a worker keeps open, of one cache */
#define LIMIT_CACHE_UPDATES         64              /* heads noted in one file, before it is fetched and written anew */
#define LIMIT_CACHE_WRITE           (64 * 1024)     /* bytes of an answer that are written at once */
#define LIMIT_CACHE_BEHIND          (256 * 1024)    /* bytes that wait for the disk: then the server waits, too */
#define LIMIT_CACHE_ATTEMPTS        8               /* to make a file that no walk takes away before it is locked */
#define LIMIT_CACHE_LOOK_MS         20              /* between two looks at what another worker fetches */
#define LIMIT_CACHE_KEEP_MS         1000            /* between two steps of the keeper while there is nothing to do */
#define LIMIT_CACHE_LEAD_MS         30000           /* without a step of its keeper a folder gets another */

/* conf */
#define LIMIT_CONF_DEPTH            32
#define LIMIT_CONF_NODES            (1000 * 1000)
#define LIMIT_CONF_FILE             (16 * 1024 * 1024)
#define LIMIT_CONF_ERRORS           20
#define LIMIT_CONF_INCLUDES         1000

/* import */
#define LIMIT_IMPORT_DEPTH          64              /* blocks and files in each other */
#define LIMIT_IMPORT_FILES          1000
#define LIMIT_IMPORT_DIRECTIVES     100000
#define LIMIT_IMPORT_WORDS          20000           /* of one directive: names of a server, most of all */
#define LIMIT_IMPORT_ROUNDS         1000            /* of asking the loader, which tells of twenty mistakes at once */

#endif
