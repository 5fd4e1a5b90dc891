/*
 * Parses the answer section with a bounds check for every read; c-ares expands names.
 */
#define CARES_NO_DEPRECATED
#include "io/resolver_srv.h"

#include "base/saturate.h"

#include <ares.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

enum { HEADER = 12, QUESTION_TAIL = 4, RECORD_HEAD = 10, SRV_HEAD = 6 };

struct message {
    const unsigned char *bytes;
    size_t length;
    size_t at;
};

static uint16_t read_u16(const unsigned char *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t read_u32(const unsigned char *at)
{
    return (uint32_t)read_u16(at) << 16 | read_u16(at + 2);
}

static bool message_has(const struct message *message, size_t count)
{
    return size_sub_sat(message->length, message->at) >= count;
}

/* Skips a name; copies it to `out` (LIMIT_HOST + 1 bytes) unless that is NULL. */
static bool read_dns_name(struct message *message, char *out)
{
    char *text = NULL;
    long taken = 0;
    size_t length;
    bool fits;

    if (!message_has(message, 1) || ares_expand_name(message->bytes + message->at, message->bytes,
                                                     (int)message->length, &text, &taken) != ARES_SUCCESS)
        return false;
    length = strlen(text);
    fits = length <= LIMIT_HOST && taken > 0 && message_has(message, (size_t)taken);
    if (fits && out)
        memcpy(out, text, length + 1);
    ares_free_string(text);
    message->at += fits ? (size_t)taken : 0;
    return fits;
}

/* Target "." means that the service does not exist (RFC 2782). */
static bool read_srv_record(struct message *message, struct srv_record *out, bool *out_usable)
{
    const unsigned char *head;
    struct message name;
    size_t size;

    *out_usable = false;
    if (!read_dns_name(message, NULL) || !message_has(message, RECORD_HEAD))
        return false;
    head = message->bytes + message->at;
    size = read_u16(head + 8);
    message->at += RECORD_HEAD;
    if (!message_has(message, size))
        return false;
    name = *message;
    message->at += size;
    if (read_u16(head) != SRV_TYPE || read_u16(head + 2) != SRV_CLASS_IN || size <= SRV_HEAD)
        return true;
    *out = (struct srv_record){.priority = read_u16(head + RECORD_HEAD),
                               .weight = read_u16(head + RECORD_HEAD + 2),
                               .port = read_u16(head + RECORD_HEAD + 4),
                               .ttl_s = read_u32(head + 4)};
    name.at += SRV_HEAD;
    if (!read_dns_name(&name, out->target) || name.at != message->at)
        return false;
    *out_usable = out->target[0] != '\0' && strcmp(out->target, ".") != 0 && out->port != 0;
    return true;
}

int srv_read(const unsigned char *bytes, size_t length, struct srv_record *out_records, size_t room)
{
    struct message message = {.bytes = bytes, .length = length, .at = HEADER};
    size_t count = 0;
    unsigned questions, answers;

    if (length < HEADER || length > UINT16_MAX)
        return -EBADMSG;
    questions = read_u16(bytes + 4);
    answers = read_u16(bytes + 6);
    for (unsigned i = 0; i < questions; i++) {
        if (!read_dns_name(&message, NULL) || !message_has(&message, QUESTION_TAIL))
            return -EBADMSG;
        message.at += QUESTION_TAIL;
    }
    for (unsigned i = 0; i < answers && count < room; i++) {
        bool usable;

        if (!read_srv_record(&message, &out_records[count], &usable))
            return -EBADMSG;
        count += usable;
    }
    return (int)count;
}
