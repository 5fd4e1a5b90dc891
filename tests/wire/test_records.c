/*
 * Sizes of the records that the record layer in user space sends: small at first and after an idle period, otherwise
 * full; several records per read and per send; bytes of the owner that are encrypted without a copy.
 */
#include "kit.h"

#include "base/limits.h"

#include "../unit/runner.h"

#include <string.h>
#include <unistd.h>

enum { BLOCK = 65536, SEALED_TRANSPORTS = 6 }; /* transports 1 to 6: OpenSSL offers the key */

static struct kit kit;
static unsigned sends, reads;           /* system calls of the server */

ssize_t __real_send(int fd, const void *bytes, size_t length, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __real_preadv64v2(int fd, const struct iovec *parts, int count, off64_t at, int flags);
ssize_t __wrap_preadv64v2(int fd, const struct iovec *parts, int count, off64_t at, int flags);

ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags)
{
    sends++;
    return __real_send(fd, bytes, length, flags);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    sends++;
    return __real_sendmsg(fd, message, flags);
}

ssize_t __wrap_preadv64v2(int fd, const struct iovec *parts, int count, off64_t at, int flags)
{
    ssize_t result = __real_preadv64v2(fd, parts, count, at, flags);

    reads += result >= 0; /* without RWF_NOWAIT in the file system the call fails */
    return result;
}

static size_t sealed_in_place, sealed_from_owner; /* bytes of application data that were in the record, or not yet */

ssize_t __real_record_seal(struct cipher_context_cache *cache, struct record_key *key, struct cipher_context **context,
                           uint8_t type, const struct iovec *parts, int count, char *into);
ssize_t __wrap_record_seal(struct cipher_context_cache *cache, struct record_key *key, struct cipher_context **context,
                           uint8_t type, const struct iovec *parts, int count, char *into);

ssize_t __wrap_record_seal(struct cipher_context_cache *cache, struct record_key *key, struct cipher_context **context,
                           uint8_t type, const struct iovec *parts, int count, char *into)
{
    for (int i = 0; i < count && type == RECORD_APPLICATION_DATA; i++) {
        bool in_place = i == 0 && parts[i].iov_base == into + record_head(key);

        *(in_place ? &sealed_in_place : &sealed_from_owner) += parts[i].iov_len;
    }
    return __real_record_seal(cache, key, context, type, parts, count, into);
}

/* With io_uring, a small send causes no further system call. */
static bool calls_send(void)
{
    return strcmp(kit.loop.backend->name, "io_uring") != 0;
}

static void open_wire(int index, bool small_records)
{
    kit_prepare(&kit, index / SEALED_TRANSPORTS, &transports[1 + index % SEALED_TRANSPORTS]);
    kit.settings.small_records = small_records;
    kit_open(&kit, 0);
    kit_until_open(&kit);
    for (int i = 0; i < 5; i++)
        kit_turn(&kit); /* for the tickets */
}

/* Fetches a response of four bytes and a file. Returns the position of its first record in kit.tapped. */
static size_t fetch(int fd, size_t length)
{
    size_t before = kit.got_length, from = kit.tapped_length;

    sends = reads = 0;
    kit_plan_bytes(&kit, STR("HEAD"));
    kit_plan_file(&kit, fd, 0, length);
    kit_client_send(&kit, "GET\n");
    kit_run_until_received(&kit, before + 4 + length);
    for (int i = 0; i < 100 && !wire_drained(&kit.wire); i++)
        kit_turn(&kit); /* the client may receive the last byte before the server gets its completion */
    ck_assert_mem_eq(kit.got + before, "HEAD", 4);
    ck_assert_mem_eq(kit.got + before + 4, kit_pattern(), length);
    return from;
}

/*
 * Checks all records from `at` on except the last: small ones for the first `small` bytes of plaintext, then full ones.
 * Records that fill up the two blocks with small records may be shorter. Returns the number of records.
 */
static unsigned check_records(size_t at, size_t small)
{
    const size_t added = kit.wire.key.version == RECORD_TLS_1_3 ? 17
                        : kit.wire.key.cipher == RECORD_CHACHA20_POLY1305 ? 16 : 24;
    size_t plaintext = 0, length;
    unsigned count = 0, shorter = 0;

    for (; at < kit.tapped_length; at += 5 + length, count++) {
        const uint8_t *head = (const uint8_t *)kit.tapped + at;
        size_t due = plaintext < small ? SMALL_RECORD_PLAINTEXT : LIMIT_RECORD_PLAINTEXT;

        length = (size_t)head[3] << 8 | head[4];
        ck_assert_int_eq(head[0], RECORD_APPLICATION_DATA);
        ck_assert_uint_le(length, due + added);
        if (length < due + added && at + 5 + length < kit.tapped_length)
            shorter++;
        plaintext += length - added;
    }
    ck_assert_uint_eq(at, kit.tapped_length);
    ck_assert_uint_le(shorter, small > 0 ? 2 : 0);
    return count;
}

static void check_output_is_empty(void)
{
    ck_assert(wire_drained(&kit.wire));
    ck_assert_uint_eq(kit.shared.output_bytes, 0);
}

static void close_wire(int fd)
{
    wire_close(&kit.wire, WIRE_CLOSE_ORDERLY);
    kit_until_closed(&kit);
    kit_close(&kit);
    close(fd);
}

START_TEST(small_records_first_then_full)
{
    const size_t length = 300000;
    int fd = kit_file(length);
    unsigned count;

    open_wire(_i, true);
    count = check_records(fetch(fd, length), SMALL_RECORD_BYTES);
    ck_assert_uint_ge(count,
                      SMALL_RECORD_BYTES / SMALL_RECORD_PLAINTEXT +
                      (length - SMALL_RECORD_BYTES) / LIMIT_RECORD_PLAINTEXT);
    check_output_is_empty();
    check_records(fetch(fd, length), 0); /* after so many bytes the records are full */
    check_output_is_empty();
    close_wire(fd);
}
END_TEST

START_TEST(full_records_with_small_records_off)
{
    int fd = kit_file(300000);

    open_wire(_i, false);
    check_records(fetch(fd, 300000), 0);
    check_output_is_empty();
    close_wire(fd);
}
END_TEST

/* A longer response that begins before the idle period is over continues with full records. */
START_TEST(small_records_after_an_idle_period)
{
    int fd = kit_file(200000);

    open_wire(_i, true);
    fetch(fd, 200000);
    check_records(fetch(fd, 200000), 0);
    kit.wire.sealed_ms -= SMALL_RECORD_REST_MS; /* simulates an idle period */
    check_records(fetch(fd, 200000), SMALL_RECORD_BYTES);
    check_output_is_empty();
    close_wire(fd);
}
END_TEST

/* A small response is one record, and counts towards the bytes after which records are full. */
START_TEST(small_response_is_one_record)
{
    int fd = kit_file(200000);
    uint32_t stretch;

    open_wire(_i, true);
    stretch = kit.wire.sent_since_idle; /* of the tickets */
    for (int i = 0; i < 20; i++) {
        ck_assert_uint_eq(check_records(fetch(fd, 1024), SMALL_RECORD_BYTES), 1);
        ck_assert_uint_eq(sends, calls_send() ? 1 : 0);
        check_output_is_empty();
    }
    ck_assert_uint_eq(kit.wire.sent_since_idle, stretch + 20 * 1028);
    check_records(fetch(fd, 200000), SMALL_RECORD_BYTES - stretch - 20 * 1028);
    close_wire(fd);
}
END_TEST

/* One read fills a block and one send empties it, for any number of records in it (one read covers up to 16). */
START_TEST(many_records_per_call)
{
    const size_t length = 20 * BLOCK;
    int fd = kit_file(length);

    open_wire(_i, true);
    fetch(fd, SMALL_RECORD_BYTES);
    ck_assert_uint_le(reads, 5);
    ck_assert_uint_le(sends, 3);
    fetch(fd, length);
    ck_assert_uint_le(reads, 22);
    ck_assert_uint_le(sends, 23);
    close_wire(fd);
}
END_TEST

/* One send also covers bytes that exceed one block and fit two. */
START_TEST(two_blocks_per_send)
{
    static const struct {
        size_t length;
        unsigned sends;
    } rows[] = {{BLOCK / 2, 1}, {BLOCK - 4, 1}, {BLOCK, 1}, {BLOCK + 40000, 1}, {2 * BLOCK - 4, 1}, {2 * BLOCK, 3}};
    int fd = kit_file(2 * BLOCK);

    open_wire(_i, false);
    setsockopt(kit.wire.fd, SOL_SOCKET, SO_SNDBUF, &(int){1 << 20}, sizeof(int));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fetch(fd, rows[i].length);
        if (calls_send())
            ck_assert_uint_eq(sends, rows[i].sends);
        else
            ck_assert_uint_le(sends, rows[i].sends);
        check_output_is_empty();
    }
    close_wire(fd);
}
END_TEST

/* Sends a response of bytes in memory: four bytes, `length` more, and four at the end. */
static void fetch_bytes(size_t length)
{
    size_t before = kit.got_length;

    sealed_in_place = sealed_from_owner = 0;
    kit_plan_bytes(&kit, STR("HEAD"));
    kit_plan_bytes(&kit, str_of(kit_pattern(), length));
    kit_plan_bytes(&kit, STR("TAIL"));
    kit_client_send(&kit, "GET\n");
    kit_run_until_received(&kit, before + 8 + length);
    ck_assert_mem_eq(kit.got + before, "HEAD", 4);
    ck_assert_mem_eq(kit.got + before + 4, kit_pattern(), length);
    ck_assert_mem_eq(kit.got + before + 4 + length, "TAIL", 4);
}

/*
 * Bytes of the owner that complete a record are encrypted from the owner's memory; only those of the last record and
 * before them in the first one are copied.
 */
START_TEST(full_records_are_sealed_without_a_copy)
{
    const size_t full = LIMIT_RECORD_PLAINTEXT;
    int fd = kit_file(4096);

    open_wire(_i, false);
    fetch_bytes(full - 4);
    ck_assert_uint_eq(sealed_from_owner, full - 4);
    ck_assert_uint_eq(sealed_in_place, 8);
    fetch_bytes(full - 8);
    ck_assert_uint_eq(sealed_from_owner, 4); /* TAIL */
    ck_assert_uint_eq(sealed_in_place, full - 4);
    fetch_bytes(full - 9);
    ck_assert_uint_eq(sealed_from_owner, 0);
    ck_assert_uint_eq(sealed_in_place, full - 1);
    fetch_bytes(3 * full + 100);
    ck_assert_uint_eq(sealed_from_owner, 3 * full - 4);
    ck_assert_uint_eq(sealed_in_place, 4 + 104 + 4);
    close_wire(fd);
}
END_TEST

static void add_tests(TCase *tcase)
{
    int count = SEALED_TRANSPORTS * backend_count();

    tcase_add_loop_test(tcase, small_records_first_then_full, 0, count);
    tcase_add_loop_test(tcase, full_records_with_small_records_off, 0, count);
    tcase_add_loop_test(tcase, small_records_after_an_idle_period, 0, count);
    tcase_add_loop_test(tcase, small_response_is_one_record, 0, count);
    tcase_add_loop_test(tcase, many_records_per_call, 0, count);
    tcase_add_loop_test(tcase, two_blocks_per_send, 0, count);
    tcase_add_loop_test(tcase, full_records_are_sealed_without_a_copy, 0, count);
}

int main(void)
{
    return run_suite("records", add_tests);
}
