#include "server/sockets.h"

#include "runner.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char said[4096];

static void keep(void *owner, enum log_level level, struct str line)
{
    size_t length = strlen(said);

    snprintf(said + length, sizeof(said) - length, STR_FMT, STR_ARG(line));
}

static struct log log_kept = {.level = LOG_NOTICE, .sink = keep};

static struct endpoint endpoint_of(const char *text)
{
    struct endpoint endpoint = {.backlog = 16};

    ck_assert_int_eq(listen_address_parse(str_from(text), &endpoint.address), 0);
    return endpoint;
}

/* A port that was free a moment ago. */
static unsigned free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static int lowest_free(void)
{
    int fd = dup(0);

    close(fd);
    return fd;
}

START_TEST(one_socket_for_each_worker)
{
    char text[64];
    struct endpoint endpoint;
    struct configuration configuration = {.endpoints = &endpoint, .endpoint_count = 1};
    struct sockets sockets;
    int before = lowest_free();
    int own;

    snprintf(text, sizeof(text), "127.0.0.1:%u", free_port());
    endpoint = endpoint_of(text);
    ck_assert_int_eq(sockets_open(&sockets, &configuration, 3, &log_kept), 0);
    own = sockets_get(&sockets, 0, 1);
    ck_assert_int_ge(own, 0);
    ck_assert_int_ne(own, sockets_get(&sockets, 0, 0));
    ck_assert_int_ne(own, sockets_get(&sockets, 0, 2));
    sockets_keep_own(&sockets, 1);
    ck_assert_int_eq(sockets_get(&sockets, 0, 0), -1);
    ck_assert_int_eq(sockets_get(&sockets, 0, 1), own);
    sockets_close(&sockets, true);
    sockets_close(&sockets, true);
    ck_assert_int_eq(lowest_free(), before);
}
END_TEST

START_TEST(a_taken_port_is_told_even_with_reuseport)
{
    char texts[2][64];
    struct endpoint endpoints[2];
    struct configuration configuration = {.endpoints = endpoints, .endpoint_count = 2};
    struct sockets sockets;
    struct sockets second;
    int before = lowest_free();

    for (int i = 0; i < 2; i++) {
        snprintf(texts[i], sizeof(texts[i]), "127.0.0.1:%u", free_port());
        endpoints[i] = endpoint_of(texts[i]);
    }
    said[0] = '\0';
    ck_assert_int_eq(sockets_open(&sockets, &configuration, 2, &log_kept), 0);
    ck_assert_int_eq(sockets_open(&second, &configuration, 2, &log_kept), -EADDRINUSE);
    for (int i = 0; i < 2; i++) {
        char wanted[256];

        snprintf(wanted, sizeof(wanted), "bind() to %s failed (98: Address already in use)", texts[i]);
        ck_assert_msg(strstr(said, wanted), "%s", said);
    }
    sockets_close(&second, false);
    sockets_close(&sockets, false);
    ck_assert_int_eq(lowest_free(), before);
    ck_assert_int_eq(socket_probe(&endpoints[0].address), 0);
}
END_TEST

START_TEST(an_address_that_is_not_ours_is_told)
{
    struct endpoint endpoint = endpoint_of("192.0.2.1:1");
    struct configuration configuration = {.endpoints = &endpoint, .endpoint_count = 1};
    struct sockets sockets;

    said[0] = '\0';
    ck_assert_int_lt(sockets_open(&sockets, &configuration, 2, &log_kept), 0);
    ck_assert_ptr_nonnull(strstr(said, "bind() to 192.0.2.1:1 failed"));
}
END_TEST

START_TEST(unix_paths)
{
    char folder[] = "/tmp/test_sockets.XXXXXX";
    char text[128];
    char path[64];
    struct endpoint endpoint;
    struct configuration configuration = {.endpoints = &endpoint, .endpoint_count = 1};
    struct sockets sockets;
    struct sockets second;
    FILE *file;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/socket", folder);
    snprintf(text, sizeof(text), "unix:%s", path);
    endpoint = endpoint_of(text);
    ck_assert_int_eq(sockets_open(&sockets, &configuration, 2, &log_kept), 0);
    ck_assert_int_eq(sockets_get(&sockets, 0, 0), sockets_get(&sockets, 0, 1));
    ck_assert_int_eq(sockets_open(&second, &configuration, 2, &log_kept), -EADDRINUSE);
    /* Left behind by a crash: closed, but the path stays. */
    sockets_close(&sockets, false);
    ck_assert_int_eq(access(path, F_OK), 0);
    ck_assert_int_eq(sockets_open(&sockets, &configuration, 2, &log_kept), 0);
    sockets_close(&sockets, true);
    ck_assert_int_eq(access(path, F_OK), -1);
    /* A file of somebody's is not removed. */
    file = fopen(path, "w");
    fclose(file);
    ck_assert_int_eq(sockets_open(&sockets, &configuration, 2, &log_kept), -EADDRINUSE);
    ck_assert_int_eq(access(path, F_OK), 0);
    unlink(path);
    rmdir(folder);
}
END_TEST

int main(void)
{
    return run_tests("sockets", (const TTest *const[]){
                                    one_socket_for_each_worker, a_taken_port_is_told_even_with_reuseport,
                                    an_address_that_is_not_ours_is_told, unix_paths, NULL});
}
