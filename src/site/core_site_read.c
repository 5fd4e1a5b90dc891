/*
 * Readers of directives in core_site.c whose values are not of a plain type: roots, buffers, symbolic links.
 */
#include "base/limits.h"
#include "site/core.h"

#include <errno.h>

#define BUFFERS_HINT STR("write a number and a size, as in: 4 8k")

int core_site_read_buffers(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    uint64_t *numbers = out;
    uint64_t count = 0;
    uint64_t size = 0;
    struct conf_words words;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    if (words.count != 2) {
        conf_error(reader->errors, node->mark, BUFFERS_HINT, "two words are required, found %zu", words.count);
        return -EINVAL;
    }
    struct conf_node first = conf_word_node(node, words.items[0]);
    struct conf_node second = conf_word_node(node, words.items[1]);

    error = conf_read_number(reader, &first, 1, 1024, &count);
    if (error == 0)
        error = conf_read_size(reader, &second, &size);
    if (error < 0)
        return error;
    if (size < 1024 || size > LIMIT_REQUEST_HEAD) {
        conf_error(reader->errors, node->mark, BUFFERS_HINT, "a buffer has from 1k to %llu bytes",
                   LIMIT_REQUEST_HEAD);
        return -EINVAL;
    }
    numbers[0] = count;
    numbers[1] = size;
    return 0;
}

/* Escapes the dollar signs of the directory prepended to a relative path, because the result is read as a template. */
static struct str escape_directory(struct arena *arena, struct str path, size_t directory)
{
    char *text = arena_alloc(arena, path.length + directory + 1);
    size_t length = 0;

    if (!text)
        return (struct str){NULL, 0};
    for (size_t i = 0; i < path.length; i++) {
        text[length++] = path.data[i];
        if (i < directory && path.data[i] == '$')
            text[length++] = '$';
    }
    text[length] = '\0'; /* every text of the configuration is terminated */
    return str_of(text, length);
}

int core_site_read_root(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct str path;
    int error = conf_read_text(reader, node, &path);

    if (error < 0)
        return error;
    if (!str_starts(path, STR("$"))) {
        size_t written = path.length;

        error = conf_read_path(reader, node, &path);
        if (error < 0)
            return error;
        path = escape_directory(reader->arena, path, path.length - written);
        if (!path.data)
            return -ENOMEM;
    }
    return conf_read_template_word(reader, node, path, out);
}

static const char *const policies[] = {"beneath", "off", "if_not_owner", "on", NULL};

int core_site_read_symlinks(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct core_symlinks *symlinks = out;
    struct conf_words words;
    struct conf_node word;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    word = conf_word_node(node, words.count ? words.items[0] : STR(""));
    error = conf_read_choice(reader, &word, policies, &symlinks->policy);
    if (error < 0 || words.count < 2)
        return error;
    if (words.count == 2 && str_starts(words.items[1], STR("from=")) &&
        (symlinks->policy == SYMLINKS_NONE || symlinks->policy == SYMLINKS_OWNER))
        return conf_read_template_word(reader, node, str_skip(words.items[1], 5), &symlinks->from);
    conf_error(reader->errors, node->mark, STR("write: disable_symlinks: on from=$document_root"),
               "only on and if_not_owner take from=");
    return -EINVAL;
}
