/*
 * Reads and completes the directives shared by all gateways.
 */
#include "gateway_conf.h"

#include "base/limits.h"

#include <errno.h>

const char *const gateway_ignored_headers[] = {
    "X-Accel-Expires",  "Expires",           "Cache-Control",      "Set-Cookie",      "Vary",
    "X-Accel-Redirect", "X-Accel-Buffering", "X-Accel-Limit-Rate", "X-Accel-Charset", NULL};

const char *const gateway_next_words[] = {
    "error",    "timeout",  "invalid_header", "non_idempotent", "off",      "http_403", "http_404",
    "http_429", "http_500", "http_502",       "http_503",       "http_504", NULL};
/* "8 8k": number and size. */
int gateway_read_buffers(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    uint64_t *into = out;
    uint64_t count, size;
    struct conf_words words;
    struct conf_node word;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    if (words.count != 2 || str_to_u64(words.items[0], &count) < 0) {
        conf_error(reader->errors, node->mark, STR("write: proxy_buffers: 8 8k"), "a number and a size are required");
        return -EINVAL;
    }
    word = conf_word_node(node, words.items[1]);
    error = conf_read_size(reader, &word, &size);
    if (error < 0)
        return error;
    if (count < 1 || size < 1024 || size > LIMIT_SPOOL_BLOCK || count > LIMIT_SPOOL_MEMORY / size) {
        conf_error(reader->errors, node->mark, STR("write: proxy_buffers: 8 8k"),
                   "one buffer must have 1k to %dk, and all together at most %dm", LIMIT_SPOOL_BLOCK / 1024,
                   LIMIT_SPOOL_MEMORY / 1024 / 1024);
        return -EINVAL;
    }
    into[0] = count;
    into[1] = size;
    return 0;
}

int gateway_conf_complete(struct gateway_conf *own, struct conf_reader *reader, const struct conf_node *at)
{
    int error = 0;

    if (!own->remote_addr)
        error = conf_read_template_word(reader, at, STR("$remote_addr"), &own->remote_addr);
    if (error == 0 && !own->peer_addr)
        error = conf_read_template_word(reader, at, STR("$realip_remote_addr"), &own->peer_addr);
    if (error == 0 && !own->scheme)
        error = conf_read_template_word(reader, at, STR("$scheme"), &own->scheme);
    return error;
}
