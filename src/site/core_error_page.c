/*
 * Rows of `error_page`: statuses, and the target of their error page.
 */
#include "site/core.h"

#include <errno.h>

#define MAX_STATUSES (sizeof(((struct error_page *)0)->statuses) / sizeof(unsigned))
#define ROW_HINT     STR("write: error_page: [404 /404.html, 500 502 503 =200 /busy.html]")

static int add_status(struct conf_reader *reader, const struct conf_node *node, struct str word,
                      struct error_page *row)
{
    uint64_t status;

    if (str_to_u64(word, &status) < 0 || status < 300 || status > 599 || status == 304) {
        conf_error(reader->errors, node->mark, ROW_HINT,
                   "\"" STR_FMT "\" is not a status from 300 to 599", STR_ARG(word));
        return -EINVAL;
    }
    if (row->count == MAX_STATUSES) {
        conf_error(reader->errors, node->mark, STR("write the rest as another item of the list"),
                   "more than %zu statuses for one error page", MAX_STATUSES);
        return -EINVAL;
    }
    row->statuses[row->count++] = (unsigned)status;
    return 0;
}

/* "=" or "=200" */
static int read_response_status(struct conf_reader *reader, const struct conf_node *node, struct str word,
                       struct error_page *row)
{
    struct str number = str_skip(word, 1);
    uint64_t status;

    if (str_empty(number)) {
        row->response_status = -1;
        return 0;
    }
    if (str_to_u64(number, &status) < 0 || status < 200 || status > 599) {
        conf_error(reader->errors, node->mark, ROW_HINT, "\"" STR_FMT "\" is not a status",
                   STR_ARG(word));
        return -EINVAL;
    }
    row->response_status = (int)status;
    return 0;
}

int core_error_page_read(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct error_page *row = out;
    struct conf_words words;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    if (words.count < 2) {
        conf_error(reader->errors, node->mark, ROW_HINT, "error_page takes statuses and a page");
        return -EINVAL;
    }
    for (size_t i = 0; i + 1 < words.count && error == 0; i++) {
        if (str_starts(words.items[i], STR("=")))
            error = read_response_status(reader, node, words.items[i], row);
        else
            error = add_status(reader, node, words.items[i], row);
    }
    if (error == 0 && row->count == 0) {
        conf_error(reader->errors, node->mark, ROW_HINT, "error_page has no status");
        error = -EINVAL;
    }
    if (error < 0)
        return error;
    return conf_read_template_word(reader, node, words.items[words.count - 1], &row->target);
}
