/*
 * The listeners of a worker: see worker_listen.h.
 */
#include "server/worker_listen.h"

#include "server/descriptors.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void listener_stopped(void *owner, struct listener *listener)
{
    struct worker *worker = owner;
    struct worker_listener *entry = container_of(listener, struct worker_listener, listener);

    loop_close_fd(&worker->loop, listener->fd);
    listener->fd = -1;
    worker->listeners_open--;
    if (entry->borrowed) {
        list_remove(&entry->link);
        free(entry);
    }
}

static bool reclaim_descriptors(void *owner)
{
    return descriptors_reclaim(owner);
}

static bool is_permitted(const struct worker *worker, int fd)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
           (peer.uid == 0 || peer.uid == worker->control_user);
}

/*
 * The mode of the control socket excludes other users only while it is 0600: a socket that was inherited from a server,
 * a service manager or another master may have connections from before.
 */
static void accept_control(void *owner, struct listener *listener, int fd, const struct sockaddr_storage *peer)
{
    struct worker *worker = owner;

    if (is_permitted(worker, fd)) {
        worker->accept(worker, listener, fd, peer);
        return;
    }
    log_write(worker->log, LOG_WARN, "control: a connection of another user is closed");
    loop_close_fd(&worker->loop, fd);
}

static worker_accept *accept_function(const struct worker *worker, const struct endpoint *endpoint)
{
    if (endpoint->control)
        return accept_control;
    return endpoint->servers[0]->stream ? worker->stream->accept : worker->accept;
}

static void start_listener(struct worker *worker, struct worker_listener *entry,
                           const struct endpoint *endpoint, int fd)
{
    entry->endpoint = endpoint;
    entry->listener.loop = &worker->loop;
    entry->listener.log = worker->log;
    entry->listener.accept_failures = &worker->log_limits.accept;
    entry->listener.fd = fd;
    entry->listener.accepted = accept_function(worker, endpoint);
    entry->listener.stopped = listener_stopped;
    entry->listener.exhausted = reclaim_descriptors;
    entry->listener.owner = worker;
    worker->listeners_open++;
    listener_start(&entry->listener);
}

int worker_listen(struct worker *worker, const struct worker_args *args)
{
    worker->control_user = args->identity ? 0 : geteuid(); /* an identity: the master is root */
    worker->listeners = calloc(args->socket_count + 1, sizeof(*worker->listeners));
    if (!worker->listeners)
        return -ENOMEM;
    for (size_t i = 0; i < args->socket_count; i++) {
        const struct worker_socket *own = &args->sockets[i];

        start_listener(worker, &worker->listeners[i], &worker->configuration->endpoints[own->endpoint], own->fd);
        worker->listener_count++;
    }
    return 0;
}

void worker_listen_for(struct worker *worker, uint32_t socket_index, int fd)
{
    size_t endpoint = socket_index / worker->worker_count;
    struct worker_listener *borrowed = NULL;

    if (endpoint < worker->configuration->endpoint_count && !worker->draining && !worker->stopping)
        borrowed = calloc(1, sizeof(*borrowed));
    if (!borrowed) {
        close(fd);
        return;
    }
    borrowed->borrowed = true;
    borrowed->dead_worker = socket_index % worker->worker_count;
    list_push(&worker->borrowed, &borrowed->link);
    start_listener(worker, borrowed, &worker->configuration->endpoints[endpoint], fd);
    if (worker->paused)
        listener_pause(&borrowed->listener);
}

void worker_unlisten_for(struct worker *worker, uint32_t number)
{
    for (struct list *link = worker->borrowed.next; link != &worker->borrowed; link = link->next) {
        struct worker_listener *entry = container_of(link, struct worker_listener, link);

        if (entry->dead_worker == number)
            listener_stop(&entry->listener);
    }
}

void worker_for_all_listeners(struct worker *worker, void (*operation)(struct listener *listener))
{
    for (size_t i = 0; i < worker->listener_count; i++) {
        if (worker->listeners[i].listener.fd >= 0)
            operation(&worker->listeners[i].listener);
    }
    for (struct list *link = worker->borrowed.next; link != &worker->borrowed; link = link->next)
        operation(&container_of(link, struct worker_listener, link)->listener);
}

void worker_listen_pause(struct worker *worker)
{
    worker_for_all_listeners(worker, worker->paused ? listener_pause : listener_resume);
}
