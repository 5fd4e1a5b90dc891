/*
 * A health check over HTTP/2. Only the head of the response is read.
 */
#include "upstream/upstream_check_http2.h"

#include "base/limits.h"

#include <errno.h>
#include <stdlib.h>

struct check_session {
    struct h2_client_session h2;
    struct h2_client_stream stream;
    struct arena arena;             /* of the response head */
    struct headers trailers;        /* not read */
};

struct h2_client_request *check_request_create(struct arena *arena, bool https, struct str host, struct str uri)
{
    struct h2_client_request *request = arena_zalloc(arena, 1, sizeof(*request));
    struct headers *headers = arena_zalloc(arena, 1, sizeof(*headers));

    if (!request || !headers || headers_add(headers, arena, STR("User-Agent"), STR("sluice-health-check")) < 0)
        return NULL;
    request->pseudo = (struct h2_pseudo_fields){STR("GET"), https ? STR("https") : STR("http"), host, uri};
    request->headers = headers;
    return request;
}

/* Each event of the connection is followed by check_session_produce. */
static void session_woken(void *owner)
{
}

struct check_session *check_session_create(const struct h2_client_request *request, const struct clock *clock)
{
    struct check_session *session = calloc(1, sizeof(*session));

    if (!session)
        return NULL;
    arena_init(&session->arena, NULL, LIMIT_CHECK_MEMORY);
    session->stream = (struct h2_client_stream){.request = request,
                                                .arena = &session->arena,
                                                .trailers = &session->trailers,
                                                .head_max = LIMIT_CHECK_HEAD};
    h2_client_session_init(&session->h2, session_woken, session, clock);
    h2_client_stream_open(&session->h2, &session->stream);
    return session;
}

void check_session_destroy(struct check_session *session)
{
    if (!session)
        return;
    h2_client_stream_end(&session->stream);
    h2_client_session_finish(&session->h2);
    arena_reset(&session->arena);
    free(session);
}

void check_session_end(struct check_session *session)
{
    h2_client_stream_end(&session->stream);
    h2_client_session_goaway(&session->h2, H2_NO_ERROR);
}

int check_session_produce(struct check_session *session, size_t room, struct str out_parts[2])
{
    return h2_client_session_produce(&session->h2, room, out_parts);
}

/* The status; 0: the head is incomplete. 1xx responses are skipped. */
static int read_head(struct check_session *session)
{
    struct str part;

    for (;;) {
        switch (h2_client_stream_read(&session->stream, 0, &part)) {
        case REPLY_INTERIM:
            break;
        case REPLY_HEAD:
            return session->stream.status;
        case REPLY_NO_MEMORY:
            return -ENOMEM;
        case REPLY_BAD:
            return -EPROTO;
        case REPLY_MORE:
        case REPLY_PART: /* the next two do not precede the head */
        case REPLY_WHOLE:
            return 0;
        }
    }
}

int check_session_receive(struct check_session *session, struct str bytes)
{
    int error = h2_client_session_consume(&session->h2, bytes);

    if (error < 0)
        return error;
    return h2_client_session_next_updated(&session->h2) ? read_head(session) : 0;
}
