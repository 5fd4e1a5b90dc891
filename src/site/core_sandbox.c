/*
 * The value of `sandbox`: on, off, or the names of its parts.
 */
#include "sandbox/sandbox.h"
#include "site/core.h"

#include <errno.h>

/* The words of `sandbox`; the parts follow in the order of enum sandbox_part. */
enum { WORD_ON, WORD_OFF, WORD_PARTS };

static const char *const words_allowed[] = {
    [WORD_ON] = "on",
    [WORD_OFF] = "off",
    [WORD_PARTS + SANDBOX_CAPABILITIES] = "capabilities",
    [WORD_PARTS + SANDBOX_NO_DUMP] = "no_dump",
    [WORD_PARTS + SANDBOX_LANDLOCK] = "landlock",
    [WORD_PARTS + SANDBOX_SECCOMP] = "seccomp",
    [WORD_PARTS + SANDBOX_PARTS] = NULL,
};

static int reject_combination(struct conf_reader *reader, const struct conf_node *node, const char *word)
{
    conf_error(reader->errors, node->mark, STR("write on, or off, or only names of parts"),
               "sandbox: \"%s\" cannot be combined", word);
    return -EINVAL;
}

int core_sandbox_read(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct conf_words words;
    unsigned parts = 0;
    int error = conf_read_words(reader, node, &words);

    for (size_t i = 0; i < words.count && error == 0; i++) {
        struct conf_node word = conf_word_node(node->kind == CONF_LIST ? node->items[i] : node, words.items[i]);
        int found;

        error = conf_read_choice(reader, &word, words_allowed, &found);
        if (error == 0 && found < WORD_PARTS && words.count > 1)
            error = reject_combination(reader, &word, words_allowed[found]);
        if (error == 0)
            parts |= found == WORD_ON ? SANDBOX_ALL : found == WORD_OFF ? 0 : 1u << (found - WORD_PARTS);
    }
    if (error == 0)
        *(unsigned *)out = parts;
    return error;
}
