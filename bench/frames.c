/*
 * Compares methods of sending a file as HTTP/2 frames through kernel TLS: 9 bytes in memory before each 16,375 bytes of
 * the file. Prints, per MiB of the file, the system calls, the bytes copied into user space or from there into a pipe,
 * and the CPU time of the sender. The receiver is another process, decrypts by kernel TLS and checks every byte.
 * Requires a kernel with TLS and io_uring. Usage: build/bench/frames FILE
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HEAD = 9, PAYLOAD = 16375, FRAME = HEAD + PAYLOAD, BATCH = 16, PIPE = 1 << 20, WINDOW = 64 * PAYLOAD };

static const char head[HEAD + 1] = "frameHead"; /* any 9 bytes: the receiver does not parse them */
static unsigned long calls, copied;
static int file;
static size_t frames;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* Counts a system call; ends the program unless it transferred all bytes. */
static void check(const char *what, ssize_t result, size_t expected)
{
    calls++;
    if (result < 0)
        fail(what);
    if ((size_t)result != expected) {
        fprintf(stderr, "%s: %zd instead of %zu bytes\n", what, result, expected);
        exit(1);
    }
}

/* HTTP/1.1, for comparison: 1 MiB per call. */
static void send_unframed(int to)
{
    off_t at = 0;

    while ((size_t)at < frames * PAYLOAD) {
        size_t left = frames * PAYLOAD - (size_t)at, length = left < (1 << 20) ? left : 1 << 20;

        check("sendfile", sendfile(to, file, &at, length), length);
    }
}

static void send_by_sendfile(int to)
{
    off_t at = 0;

    for (size_t i = 0; i < frames; i++) {
        check("send", send(to, head, HEAD, MSG_MORE), HEAD);
        copied += HEAD;
        check("sendfile", sendfile(to, file, &at, PAYLOAD), PAYLOAD);
    }
}

static size_t batch_size(size_t frame)
{
    return frames - frame < BATCH ? frames - frame : BATCH;
}

static void send_by_pipe(int to)
{
    off_t at = 0;
    int ends[2];

    if (pipe(ends) < 0 || fcntl(ends[1], F_SETPIPE_SZ, PIPE) < 0)
        fail("pipe");
    for (size_t frame = 0; frame < frames; frame += batch_size(frame)) {
        for (size_t i = 0; i < batch_size(frame); i++) {
            check("write", write(ends[1], head, HEAD), HEAD);
            copied += HEAD;
            check("splice", splice(file, &at, ends[1], NULL, PAYLOAD, SPLICE_F_MOVE), PAYLOAD);
        }
        for (size_t left = batch_size(frame) * FRAME; left > 0;) {
            ssize_t moved = splice(ends[0], NULL, to, NULL, left, SPLICE_F_MOVE);

            check("splice to the socket", moved, moved > 0 ? (size_t)moved : 1);
            left -= (size_t)moved;
        }
    }
    close(ends[0]);
    close(ends[1]);
}

static void link_to_next(struct io_uring_sqe *sqe, size_t expected)
{
    sqe->user_data = expected;
    sqe->flags |= IOSQE_IO_LINK;
}

/* For each frame: SEND with MSG_MORE, file to pipe, pipe to socket. Linked requests keep this order. */
static void send_by_linked_requests(int to)
{
    struct io_uring ring;
    int ends[2], error = io_uring_queue_init(4 * BATCH, &ring, 0);

    if (error < 0) {
        errno = -error;
        fail("io_uring_queue_init");
    }
    if (pipe(ends) < 0 || fcntl(ends[1], F_SETPIPE_SZ, PIPE) < 0)
        fail("pipe");
    for (size_t frame = 0, batch; frame < frames; frame += batch) {
        struct io_uring_sqe *sqe = NULL;

        batch = batch_size(frame);
        for (size_t i = 0; i < batch; i++) {
            sqe = io_uring_get_sqe(&ring);
            io_uring_prep_send(sqe, to, head, HEAD, MSG_MORE);
            link_to_next(sqe, HEAD);
            copied += HEAD;
            sqe = io_uring_get_sqe(&ring);
            io_uring_prep_splice(sqe, file, (int64_t)((frame + i) * PAYLOAD), ends[1], -1, PAYLOAD, 0);
            link_to_next(sqe, PAYLOAD);
            sqe = io_uring_get_sqe(&ring);
            io_uring_prep_splice(sqe, ends[0], -1, to, -1, PAYLOAD, i + 1 < batch ? SPLICE_F_MORE : 0);
            link_to_next(sqe, PAYLOAD);
        }
        sqe->flags &= (uint8_t)~IOSQE_IO_LINK;
        check("io_uring_enter", io_uring_submit_and_wait(&ring, (unsigned)(3 * batch)), 3 * batch);
        for (size_t i = 0; i < 3 * batch; i++) {
            struct io_uring_cqe *cqe;

            if (io_uring_wait_cqe(&ring, &cqe) < 0 || cqe->res != (int)cqe->user_data) {
                fprintf(stderr, "completion: %d instead of %d\n", cqe->res, (int)cqe->user_data);
                exit(1);
            }
            io_uring_cqe_seen(&ring, cqe);
        }
    }
    io_uring_queue_exit(&ring);
    close(ends[0]);
    close(ends[1]);
}

static void send_by_read(int to)
{
    static char buffer[BATCH * FRAME];
    struct iovec parts[BATCH];

    for (size_t frame = 0, batch; frame < frames; frame += batch) {
        batch = batch_size(frame);
        for (size_t i = 0; i < batch; i++) {
            memcpy(buffer + i * FRAME, head, HEAD);
            parts[i] = (struct iovec){buffer + i * FRAME + HEAD, PAYLOAD};
        }
        check("preadv", preadv(file, parts, (int)batch, (off_t)(frame * PAYLOAD)), batch * PAYLOAD);
        check("send", send(to, buffer, batch * FRAME, 0), batch * FRAME);
        copied += batch * FRAME;
    }
}

/* The kernel reads the mapped pages; the process does not access them. */
static void send_by_mmap(int to)
{
    for (size_t frame = 0, batch; frame < frames; frame += batch) {
        struct iovec parts[2 * BATCH];
        struct msghdr message = {.msg_iov = parts};
        size_t at = frame * PAYLOAD, page = at % 4096, in_window = frame % (WINDOW / PAYLOAD);
        static char *window;
        static size_t window_length;

        if (in_window == 0) {
            size_t length = frames * PAYLOAD - at < WINDOW ? frames * PAYLOAD - at : WINDOW;

            if (window)
                check("munmap", munmap(window, window_length), 0);
            window_length = length + page;
            window = mmap(NULL, window_length, PROT_READ, MAP_SHARED, file, (off_t)(at - page));
            check("mmap", window == MAP_FAILED ? -1 : 0, 0);
        }
        batch = batch_size(frame);
        for (size_t i = 0; i < batch; i++) {
            size_t before = (frame - in_window) * PAYLOAD % 4096;

            parts[2 * i] = (struct iovec){(char *)(uintptr_t)head, HEAD};
            parts[2 * i + 1] = (struct iovec){window + before + (in_window + i) * PAYLOAD, PAYLOAD};
            copied += HEAD;
        }
        message.msg_iovlen = 2 * batch;
        check("sendmsg", sendmsg(to, &message, 0), batch * FRAME);
        if (frame + batch == frames) {
            check("munmap", munmap(window, window_length), 0);
            window = NULL;
        }
    }
}

static const struct {
    const char *name;
    void (*send)(int to);
    int has_frame_headers;
} methods[] = {
    {"no frames: sendfile (HTTP/1.1)", send_unframed, 0},
    {"(a) write, splice into a pipe; splice", send_by_pipe, 1},
    {"(b) io_uring: SEND linked to splices", send_by_linked_requests, 1},
    {"(c) send(MSG_MORE), sendfile", send_by_sendfile, 1},
    {"(d) preadv, send", send_by_read, 1},
    {"(e) mmap, sendmsg", send_by_mmap, 1},
};

static void enable_tls(int fd, int direction)
{
    struct tls12_crypto_info_aes_gcm_128 key = {.info = {TLS_1_3_VERSION, TLS_CIPHER_AES_GCM_128},
                                                .key = "not a secret"};

    if (setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", 4) < 0 || setsockopt(fd, SOL_TLS, direction, &key, sizeof key) < 0)
        fail("kernel TLS");
}

static void connect_pair(int ends[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    if (bind(listener, (struct sockaddr *)&address, length) < 0 || listen(listener, 1) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) < 0)
        fail("listen");
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(ends[0], (struct sockaddr *)&address, length) < 0)
        fail("connect");
    ends[1] = accept(listener, NULL, NULL);
    close(listener);
    setsockopt(ends[0], IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    enable_tls(ends[0], TLS_TX);
    enable_tls(ends[1], TLS_RX);
}

static void receive_all(int from, char *into, size_t length)
{
    while (length > 0) {
        ssize_t count = recv(from, into, length, 0);

        if (count <= 0)
            fail("recv");
        into += count;
        length -= (size_t)count;
    }
}

/* Exit status 0: all frames arrived. */
static void receive_frames(int from, int has_frame_headers)
{
    static char got[FRAME], expected[PAYLOAD];
    size_t skip = has_frame_headers ? HEAD : 0;

    for (size_t i = 0; i < frames; i++) {
        receive_all(from, got, skip + PAYLOAD);
        if (pread(file, expected, PAYLOAD, (off_t)(i * PAYLOAD)) != PAYLOAD || memcmp(got, head, skip) != 0 ||
            memcmp(got + skip, expected, PAYLOAD) != 0)
            _exit(1);
    }
    _exit(0);
}

static double cpu_ms(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

static void measure(size_t method)
{
    double mib = (double)(frames * PAYLOAD) / (1 << 20), before;
    int ends[2], status;
    pid_t receiver;

    connect_pair(ends);
    receiver = fork();
    if (receiver == 0)
        receive_frames(ends[1], methods[method].has_frame_headers);
    close(ends[1]);
    calls = copied = 0;
    before = cpu_ms();
    methods[method].send(ends[0]);
    printf("%-40s %7.1f calls %9.0f bytes copied %7.2f ms CPU", methods[method].name, (double)calls / mib,
           (double)copied / mib, (cpu_ms() - before) / mib);
    waitpid(receiver, &status, 0);
    printf("%s\n", status == 0 ? "" : "  WRONG BYTES RECEIVED");
    close(ends[0]);
}

int main(int argc, char **argv)
{
    struct stat found;

    setvbuf(stdout, NULL, _IOLBF, 0);
    file = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    if (file < 0 || fstat(file, &found) < 0) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    frames = (size_t)found.st_size / PAYLOAD;
    printf("per MiB, %zu frames:\n", frames);
    for (size_t method = 0; method < sizeof methods / sizeof methods[0]; method++)
        measure(method);
    return 0;
}
