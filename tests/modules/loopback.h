/*
 * A worker inside the test: a configuration from text, real modules, real HTTP/1, and a socket pair instead of a
 * network. A request is given as text; the response is all bytes until the end of the connection.
 */
#ifndef TEST_MODULES_LOOPBACK_H
#define TEST_MODULES_LOOPBACK_H

#include "base/buffer.h"
#include "server/worker.h"

#include <check.h>

struct loopback {
    struct worker worker;
    struct error_log error_log;
    struct buffer logged;               /* lines of the error log */
    struct shared *shared;
    struct configuration *configuration;
    struct buffer text;                 /* the last response, complete */
    int status;                         /* of the last response; 0: there was none */
    struct str head;                    /* its status line and header fields */
    struct str body;
    void (*server_code_runs)(bool yes); /* called before (true) and after (false) the server's code runs; may be NULL */
    size_t endpoint;                    /* of loopback_request and loopback_disconnect; 0 after loopback_open */
    char directory[64];                 /* a temporary directory; "@/" in the configuration stands for it */
};

/* Fails the test if the configuration is invalid, and prints the errors. */
void loopback_open(struct loopback *loopback, const char *configuration);
/* A server with this line is rejected; the error has the line's position and contains `expected_text`. */
void loopback_configuration_rejected(const char *line, const char *expected_text);
void loopback_close(struct loopback *loopback);

/* Opens a connection. Returns the client's end, which is non-blocking. */
int loopback_connect(struct loopback *loopback);
/* The same at the endpoint of this index. An endpoint of `stream` requires worker.stream, set after loopback_open. */
int loopback_connect_at(struct loopback *loopback, size_t endpoint);
/*
 * Sends a request and waits for the end of the connection. Replaces "\n" by CRLF, adds "Connection: close" and ends the
 * head.
 */
void loopback_request(struct loopback *loopback, const char *head);
/* The same, with exactly these bytes. */
void loopback_request_raw(struct loopback *loopback, struct str bytes);
/* Sends a request and closes the connection after `turns` iterations of the loop, without reading a response. */
void loopback_disconnect(struct loopback *loopback, const char *head, unsigned turns);
/* Runs one iteration of the loop, which waits at most `milliseconds` for an event. */
void loopback_turn_once(struct loopback *loopback, unsigned milliseconds);
/* Runs an iteration of the loop so much later, without waiting (skipped_clock.h). */
void loopback_skip(struct loopback *loopback, unsigned milliseconds);
/* The same, then runs the loop for a millisecond, in which helper threads may finish. */
void loopback_skip_and_turn(struct loopback *loopback, unsigned milliseconds);
/* Runs the loop for `milliseconds`. */
void loopback_turn(struct loopback *loopback, unsigned milliseconds);

/* Returns the value of a header field of the last response; empty if it is absent. */
struct str loopback_field(const struct loopback *loopback, const char *name);
/* The next functions create files in the directory. They may be called before loopback_open. */
void loopback_make_directory(struct loopback *loopback);
void loopback_write(struct loopback *loopback, const char *path, struct str content);
void loopback_mkdir(struct loopback *loopback, const char *path);
void loopback_link(struct loopback *loopback, const char *target, const char *path);
/* Returns "directory/path" in one of a few static buffers. */
const char *loopback_path(struct loopback *loopback, const char *path);
bool loopback_logged(const struct loopback *loopback, const char *text);

#define ck_assert_text(actual, expected)                                                                     \
    do {                                                                                                     \
        struct str seen_ = (actual);                                                                         \
        struct str wanted_ = str_from(expected);                                                             \
        ck_assert_msg(str_equal(seen_, wanted_), "\"" STR_FMT "\" instead of \"" STR_FMT "\"",               \
                      STR_ARG(seen_), STR_ARG(wanted_));                                                     \
    } while (0)

int loopback_run(const char *name, const TTest *const *tests);

#endif
