/*
 * The only file that includes pcre2.h. A regex holds the memory of its last match: it is used by one process and one
 * thread only.
 */
#include "base/regex.h"

#include "base/limits.h"

#define PCRE2_CODE_UNIT_WIDTH 8

#include <errno.h>
#include <pcre2.h>
#include <stdlib.h>

struct regex {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *limits;
    uint32_t groups;
    uint32_t names;
    uint32_t name_size; /* bytes of an entry of name_table: two bytes for the number, then the name */
    PCRE2_SPTR name_table;
};

static pcre2_match_context *make_limits(void)
{
    pcre2_match_context *limits = pcre2_match_context_create(NULL);

    if (!limits)
        return NULL;
    pcre2_set_match_limit(limits, LIMIT_REGEX_STEPS);
    pcre2_set_depth_limit(limits, LIMIT_REGEX_STEPS);
    pcre2_set_heap_limit(limits, LIMIT_REGEX_HEAP_KIB);
    return limits;
}

static int compile_error(int error, size_t at, size_t *out_at, char message[REGEX_MESSAGE])
{
    if (error == PCRE2_ERROR_HEAP_FAILED ||
        pcre2_get_error_message(error, (PCRE2_UCHAR *)message, REGEX_MESSAGE) < 0)
        return -ENOMEM;
    *out_at = at;
    return -EINVAL;
}

static int compile_pattern(struct regex *regex, struct str pattern, bool nocase, size_t *out_at,
                           char message[REGEX_MESSAGE])
{
    pcre2_compile_context *rules = pcre2_compile_context_create(NULL);
    uint32_t options = PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C | (nocase ? PCRE2_CASELESS : 0);
    size_t at = 0;
    int error = PCRE2_ERROR_HEAP_FAILED;

    if (rules) {
        pcre2_set_max_pattern_length(rules, LIMIT_REGEX_PATTERN);
        regex->code = pcre2_compile((PCRE2_SPTR)pattern.data, pattern.length, options, &error, &at, rules);
    }
    pcre2_compile_context_free(rules);
    return regex->code ? 0 : compile_error(error, at, out_at, message);
}

static int prepare_match(struct regex *regex)
{
    regex->match = pcre2_match_data_create_from_pattern(regex->code, NULL);
    regex->limits = make_limits();
    if (!regex->match || !regex->limits)
        return -ENOMEM;
    pcre2_pattern_info(regex->code, PCRE2_INFO_CAPTURECOUNT, &regex->groups);
    pcre2_pattern_info(regex->code, PCRE2_INFO_NAMECOUNT, &regex->names);
    pcre2_pattern_info(regex->code, PCRE2_INFO_NAMEENTRYSIZE, &regex->name_size);
    pcre2_pattern_info(regex->code, PCRE2_INFO_NAMETABLE, &regex->name_table);
    /* If the system forbids run-time machine code, this call fails, and PCRE2 uses its interpreter. */
    (void)pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE);
    return 0;
}

int regex_compile(struct str pattern, bool nocase, struct regex **out_regex, size_t *out_at,
                  char message[REGEX_MESSAGE])
{
    struct regex *regex = calloc(1, sizeof(*regex));
    int error;

    if (!regex)
        return -ENOMEM;
    error = compile_pattern(regex, pattern, nocase, out_at, message);
    if (error == 0)
        error = prepare_match(regex);
    if (error < 0)
        regex_destroy(regex);
    else
        *out_regex = regex;
    return error;
}

void regex_destroy(struct regex *regex)
{
    if (!regex)
        return;
    pcre2_match_context_free(regex->limits);
    pcre2_match_data_free(regex->match);
    pcre2_code_free(regex->code);
    free(regex);
}

static int run_match(const struct regex *regex, struct str subject, uint32_t options)
{
    return pcre2_match(regex->code, (PCRE2_SPTR)(subject.data ? subject.data : ""), subject.length, 0,
                       options, regex->match, regex->limits);
}

int regex_match(const struct regex *regex, struct str subject)
{
    int result = run_match(regex, subject, 0);

    /* Machine code has a stack of fixed size; the interpreter uses the heap, up to LIMIT_REGEX_HEAP_KIB. */
    if (result == PCRE2_ERROR_JIT_STACKLIMIT)
        result = run_match(regex, subject, PCRE2_NO_JIT);
    if (result >= 0)
        return 1;
    switch (result) {
    case PCRE2_ERROR_NOMATCH:
        return 0;
    case PCRE2_ERROR_NOMEMORY:
        return -ENOMEM;
    case PCRE2_ERROR_MATCHLIMIT:
    case PCRE2_ERROR_DEPTHLIMIT:
    case PCRE2_ERROR_HEAPLIMIT:
        return -E2BIG;
    default:
        return -EILSEQ;
    }
}

struct str regex_group(const struct regex *regex, struct str subject, unsigned number)
{
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(regex->match);

    if (number > regex->groups || ends[2 * number] == PCRE2_UNSET)
        return (struct str){NULL, 0};
    return str_slice(subject, ends[2 * number], ends[2 * number + 1]);
}

unsigned regex_group_count(const struct regex *regex)
{
    return regex->groups;
}

bool regex_name(const struct regex *regex, unsigned index, struct str *out_name, unsigned *out_number)
{
    PCRE2_SPTR row = regex->name_table + (size_t)index * regex->name_size;

    if (index >= regex->names)
        return false;
    *out_number = (unsigned)row[0] << 8 | row[1];
    *out_name = str_from((const char *)row + 2);
    return true;
}
