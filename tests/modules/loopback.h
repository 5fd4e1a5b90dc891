/*
 * A worker inside the test: a configuration from text, real modules, real HTTP/1, and a socket pair in the place of
 * a network. A question is the bytes of a request; the answer is all that comes until the connection ends.
 */
#ifndef TEST_MODULES_LOOPBACK_H
#define TEST_MODULES_LOOPBACK_H

#include "base/buffer.h"
#include "server/worker.h"

#include <check.h>

struct loopback {
    struct worker worker;
    struct error_log error_log;
    struct buffer logged;           /* lines of the error log */
    struct shared *shared;
    struct configuration *configuration;
    struct buffer text;             /* the last answer, whole */
    int status;                     /* of the last answer; 0: none came */
    struct str head;                /* its status line and fields */
    struct str body;
    void (*inside)(bool yes);       /* told when the server's code begins and ends to run; NULL: nobody asks */
    char folder[64];                /* a temporary folder; "@/" in the configuration means it */
};

/* Fails the test where the configuration is refused, showing why. */
void loopback_open(struct loopback *loopback, const char *configuration);
/* A server with this line in it is refused, and what is said names the line's place and has `said` in it. */
void loopback_configuration_rejected(const char *line, const char *said);
void loopback_close(struct loopback *loopback);

/* A connection; the client's end, non-blocking. */
int loopback_connect(struct loopback *loopback);
/* Asks, and waits for the end of the connection. "\n" becomes CRLF; the head is ended, with "Connection: close" added. */
void loopback_ask(struct loopback *loopback, const char *head);
/* The same, byte for byte. */
void loopback_ask_raw(struct loopback *loopback, struct str bytes);
/* Asks, and leaves without waiting for an answer, after `turns` turns of the loop. */
void loopback_leave(struct loopback *loopback, const char *head, unsigned turns);
/* One turn of the loop, which waits at most so long for an event. */
void loopback_turn_once(struct loopback *loopback, unsigned milliseconds);
/* Turns the loop for some milliseconds. */
void loopback_turn(struct loopback *loopback, unsigned milliseconds);

/* The value of a field of the last answer; empty where there is none. */
struct str loopback_field(const struct loopback *loopback, const char *name);
/* Files below the folder: made before loopback_open, or while it runs. */
void loopback_make_folder(struct loopback *loopback);
void loopback_write(struct loopback *loopback, const char *path, struct str content);
void loopback_mkdir(struct loopback *loopback, const char *path);
void loopback_link(struct loopback *loopback, const char *target, const char *path);
/* "folder/path", in one of a few static buffers. */
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
