/*
 * OpenSSL decrypts the first records under a key, because deriving the key costs as much as decrypting some of them.
 * Afterwards OpenSSL's sequence number does not advance, and it gets no more bytes from the network: a record that a
 * third party recorded earlier could have the number that OpenSSL expects, and would be accepted a second time.
 */
#include "tls/tls_receiver.h"

#include "base/limits.h"
#include "tls/tls_session_private.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>

enum {
    HEADER = RECORD_HEADER,
    TAG = 16,
    PASSED_MAX = 64,     /* alerts have 2 bytes, KeyUpdates 5 */
    BY_OPENSSL = 8,      /* records under one key; measured in instructions, with OpenSSL 3.0 */
};

/* RFC 8446 B.2 */
enum alert { UNEXPECTED_MESSAGE = 10, BAD_RECORD_MAC = 20, RECORD_OVERFLOW = 22, PROTOCOL_VERSION = 70 };

static ssize_t read_plaintext(struct tls_receiver *receiver, char *into, size_t size)
{
    size_t length = tls_receiver_pending(receiver);

    if (length > size)
        length = size;
    memcpy(into, receiver->plaintext + receiver->unread_from, length);
    receiver->unread_from += (uint32_t)length;
    if (receiver->unread_from == receiver->unread_to)
        tls_receiver_free_plaintext(receiver);
    return (ssize_t)length;
}

static size_t length_in_header(const char *header)
{
    return (size_t)(uint8_t)header[3] << 8 | (uint8_t)header[4];
}

/* 0, or -EPROTO: the header of a record that cannot be one of application data (RFC 8446 5.1, 5.2). */
static int check_header(struct tls_session *session, const char *header)
{
    if ((uint8_t)header[0] != RECORD_APPLICATION_DATA)
        return tls_session_reject(session, UNEXPECTED_MESSAGE, "a record of an unexpected type");
    if (header[1] != 3 || header[2] != 3)
        return tls_session_reject(session, PROTOCOL_VERSION, "a record with a wrong version");
    if (length_in_header(header) > RECORD_CIPHERTEXT_MAX)
        return tls_session_reject(session, RECORD_OVERFLOW, "a record is too long");
    return 0;
}

/* Moves input to the incomplete record until that has `length` bytes. False: out of memory. */
static bool collect_bytes(struct tls_session *session, size_t length)
{
    struct buffer *partial = &session->receiver->partial;
    struct str part = str_slice(session->bio.input, 0, length - partial->length);

    session->bio.input = str_skip(session->bio.input, part.length);
    return buffer_append(partial, part) == 0;
}

/* The record is split between calls: 1: complete in *out_record; -EAGAIN, -EPROTO. */
static int collect_record(struct tls_session *session, struct str *out_record)
{
    struct buffer *partial = &session->receiver->partial;
    size_t length;
    int error;

    if (partial->length < HEADER && !collect_bytes(session, HEADER))
        return tls_session_fail_allocation(session);
    if (partial->length < HEADER)
        return -EAGAIN;
    error = check_header(session, partial->data);
    if (error)
        return error;
    length = HEADER + length_in_header(partial->data);
    if (buffer_reserve(partial, length - partial->length) < 0 || !collect_bytes(session, length))
        return tls_session_fail_allocation(session);
    if (partial->length < length)
        return -EAGAIN;
    *out_record = buffer_str(partial);
    return 1;
}

/* 1: *out_record is a complete record, part of the input or of `partial`; -EAGAIN, -EPROTO. */
static int next_record(struct tls_session *session, struct str *out_record)
{
    struct str *input = &session->bio.input;
    size_t length;

    if (str_empty(*input))
        return -EAGAIN;
    if (session->receiver->partial.length || input->length < HEADER)
        return collect_record(session, out_record);
    length = HEADER + length_in_header(input->data);
    if (input->length < length)
        return collect_record(session, out_record);
    *out_record = str_slice(*input, 0, length);
    *input = str_skip(*input, length);
    return check_header(session, out_record->data) < 0 ? -EPROTO : 1;
}

/* OpenSSL reads one complete record, as without a receiver. */
static ssize_t read_by_openssl(struct tls_session *session, struct str record, char *into, size_t size)
{
    struct str rest = session->bio.input;
    ssize_t result;

    session->receiver->openssl_sequence++;
    session->bio.input = record;
    result = tls_session_read_record(session, into, size);
    session->bio.input = rest;
    session->receiver->closed = result == 0;
    return result;
}

/* Passes an alert or handshake message to OpenSSL, sealed under the number that it expects. */
static ssize_t pass_to_openssl(struct tls_session *session, uint8_t type, struct str content, char *into, size_t size)
{
    struct tls_receiver *receiver = session->receiver;
    struct cipher_context *context = NULL;
    struct record_key key = receiver->key;
    struct iovec part = {(void *)(uintptr_t)content.data, content.length};
    char record[PASSED_MAX + RECORD_OVERHEAD];
    ssize_t length;

    key.sequence = receiver->openssl_sequence;
    length = record_seal(receiver->cache, &key, &context, type, &part, 1, record);
    record_release(receiver->cache, &context);
    record_key_wipe(&key);
    if (length < 0)
        return tls_session_fail_allocation(session);
    return read_by_openssl(session, str_of(record, (size_t)length), into, size);
}

/* Empty records hide the amount of data (RFC 8446 5.4), but many of them only cost CPU time. */
static ssize_t count_empty(struct tls_session *session)
{
    if (++session->receiver->empty_records > LIMIT_EMPTY_RECORDS)
        return tls_session_reject(session, UNEXPECTED_MESSAGE, "the peer sent too many empty records");
    return -EAGAIN;
}

/* `inner` is TLSInnerPlaintext (RFC 8446 5.2). Returns the length of application data; else as tls_session_read. */
static ssize_t read_inner(struct tls_session *session, char *inner, size_t length, char *into, size_t size)
{
    uint8_t type;

    while (length && inner[length - 1] == 0)
        length--;
    if (length == 0)
        return tls_session_reject(session, UNEXPECTED_MESSAGE, "a record without a content type");
    type = (uint8_t)inner[--length];
    if (type == RECORD_APPLICATION_DATA) {
        if (length == 0)
            return count_empty(session);
        session->receiver->empty_records = 0;
        return (ssize_t)length;
    }
    if (length == 0 || length > PASSED_MAX || (type != RECORD_ALERT && type != RECORD_HANDSHAKE))
        return tls_session_reject(session, UNEXPECTED_MESSAGE, "a record of an unexpected type");
    return pass_to_openssl(session, type, str_of(inner, length), into, size);
}

/* Decrypts the record into `inner`, which has room for it, and reads it. Results as tls_session_read. */
static ssize_t read_record(struct tls_session *session, struct str record, char *inner, char *into, size_t size)
{
    struct tls_receiver *receiver = session->receiver;
    ssize_t length;

    if (record.length > HEADER + RECORD_INNER_MAX + TAG)
        return tls_session_reject(session, RECORD_OVERFLOW, "a record is too long");
    length = record_open(receiver->cache, &receiver->key, &receiver->context, record, inner);
    if (length == -EBADMSG)
        return tls_session_reject(session, BAD_RECORD_MAC, "a record could not be decrypted");
    if (length < 0)
        return tls_session_fail_allocation(session);
    return read_inner(session, inner, (size_t)length, into, size);
}

/* For a record that may not fit into the caller's buffer: decrypts it to other memory, which is read in parts. */
static ssize_t read_by_parts(struct tls_session *session, struct str record, char *into, size_t size)
{
    struct tls_receiver *receiver = session->receiver;
    char *inner = malloc(record.length);
    ssize_t length = inner ? read_record(session, record, inner, into, size) : tls_session_fail_allocation(session);

    if (length <= 0) {
        free(inner);
        return length;
    }
    receiver->plaintext = inner;
    receiver->unread_from = 0;
    receiver->unread_to = (uint32_t)length;
    return read_plaintext(receiver, into, size);
}

static ssize_t read_before_key(struct tls_session *session, struct str record, char *into, size_t size)
{
    ssize_t result = read_by_openssl(session, record, into, size);

    /* After data, since a handshake message may continue in the next record. */
    if (result > 0 && session->receiver->openssl_sequence >= BY_OPENSSL)
        tls_receiver_derive_key(session->receiver);
    return result;
}

ssize_t tls_receiver_read(struct tls_session *session, char *into, size_t size)
{
    struct tls_receiver *receiver = session->receiver;
    struct str record;
    ssize_t result;

    if (tls_receiver_pending(receiver))
        return read_plaintext(receiver, into, size);
    if (SSL_pending(session->ssl))
        return tls_session_read_record(session, into, size);
    if (receiver->closed) {
        session->bio.input = STR("");
        return 0;
    }
    result = next_record(session, &record);
    if (result < 0)
        return result;
    if (receiver->key.cipher == RECORD_NONE)
        result = read_before_key(session, record, into, size);
    else if (record.length > HEADER + TAG + size)
        result = read_by_parts(session, record, into, size);
    else
        result = read_record(session, record, into, into, size);
    buffer_finish(&receiver->partial);
    return result;
}
