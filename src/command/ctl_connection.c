/*
 * One connection to the control socket for each request.
 */
#include "command/ctl_connection.h"

#include "base/limits.h"
#include "log/error_log.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static const char *remedy_of(int error)
{
    return error == EACCES        ? "; run this command as the user of the server's master, or as root"
           : error == ENOENT      ? "; is \"control\" set in the configuration that runs?"
           : error == ECONNREFUSED ? "; the server is not running"
                                  : "";
}

/* Returns a connected socket, or -1 after an error message. */
static int connect_to(const char *path, bool slow)
{
    const struct timeval timeout = {.tv_sec = slow ? 0 : LIMIT_CONTROL_MS / 1000}; /* 0: no timeout */
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;

    if (strlen(path) >= sizeof(address.sun_path)) {
        error_log_print(LOG_ERROR, "\"%s\" is too long for a Unix socket", path);
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path));
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) == 0 &&
        connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    error_log_print(LOG_ERROR, "connect() to unix:%s failed (%d: %s)%s", path, errno, strerror(errno),
                    remedy_of(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static int send_all(int fd, struct str text)
{
    while (text.length > 0) {
        ssize_t sent = send(fd, text.data, text.length, MSG_NOSIGNAL);

        if (sent < 0 && errno != EINTR)
            return -errno;
        text = str_skip(text, sent < 0 ? 0 : (size_t)sent);
    }
    return 0;
}

/* Reads until the server closes the connection. */
static int receive_all(int fd, struct buffer *out)
{
    ssize_t got = 1;
    int error = 0;

    while (error == 0 && got != 0) {
        error = buffer_reserve(out, 65536);
        got = error == 0 ? recv(fd, out->data + out->length, 65536, 0) : 0;
        if (got > 0)
            out->length += (size_t)got;
        else if (got < 0 && errno != EINTR)
            error = -errno;
    }
    return error;
}

int ctl_exchange(const char *path, struct str request, bool slow, struct buffer *out)
{
    int fd = connect_to(path, slow);
    int error;

    if (fd < 0)
        return -1;
    error = send_all(fd, request);
    if (error == 0)
        error = receive_all(fd, out);
    close(fd);
    if (error < 0)
        error_log_print(LOG_ERROR, "no response from the server (%d: %s)", -error, strerror(-error));
    return error < 0 ? -1 : 0;
}
