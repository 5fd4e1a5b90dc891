/*
 * What modules have to say of a connection below HTTP, and what they may ask of it.
 */
#include "server/module.h"
#include "server/stream_steps.h"
#include "server/variables.h"

const struct sockaddr *stream_client(const struct stream *stream)
{
    return stream->told.any.sa_family != AF_UNSPEC ? &stream->told.any : &stream->address.any;
}

const struct sockaddr *stream_peer(const struct stream *stream)
{
    return &stream->address.any;
}

const struct proxy_header *stream_greeting(const struct stream *stream)
{
    return stream->header;
}

void stream_set_client(struct stream *stream, const union proxy_address *client)
{
    stream->told = *client;
}

static void say_refused(struct stream *stream, int status, const char *module)
{
    struct str client = variable_address(stream_client(stream), &stream->arena);

    log_write(stream->worker->log, LOG_ERROR, "*%llu refused with %d by module %s, client: " STR_FMT,
              (unsigned long long)stream->number, status, module, STR_ARG(client));
}

/* In the order in which they are asked of requests, too; the first that refuses is the last. */
int stream_admit(struct stream *stream)
{
    int status = 0;

    for (unsigned index = 0; module_table[index] && status == 0; index++) {
        const struct stream_part *part = module_table[index]->stream;

        if (part && part->connected)
            status = part->connected(stream, stream->own->module_conf[index],
                                     stream->worker->module_states[index]);
        if (status != 0)
            say_refused(stream, status, module_table[index]->name);
    }
    return status;
}
