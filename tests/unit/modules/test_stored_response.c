/* The stored head of a response: written and parsed without a change; malformed heads are rejected. */
#include "../http/suite.h"

#include "base/limits.h"
#include "modules/gateway/cache/response_cache.h"

static const struct stored_metadata usual = {.status = 200, .received_s = 784111777, .lifetime_s = 60, .no_cache = 1};
static struct arena arena;
static struct headers fields;

static struct str usual_head(void)
{
    struct str head;

    arena_init(&arena, NULL, 0);
    fields = (struct headers){0};
    ck_assert_int_eq(headers_add(&fields, &arena, STR("ETag"), STR("\"a\"")), 0);
    ck_assert_int_eq(headers_add(&fields, &arena, STR("X-Empty"), STR("")), 0);
    head = stored_response_write(&usual, STR("Fine"), &fields, &arena);
    ck_assert_ptr_nonnull(head.data);
    return head;
}

START_TEST(written_head_is_parsed_back)
{
    struct cache_entry entry = {.head = usual_head()};
    const struct stored_response *stored = stored_response_of(&entry, 784111800);

    ck_assert_ptr_nonnull(stored);
    ck_assert_ptr_eq(stored_response_of(&entry, 784111800), stored);
    ck_assert_int_eq(stored->metadata.status, 200);
    ck_assert_text(stored->reason, "Fine");
    ck_assert_uint_eq(stored->headers.count, 2);
    ck_assert_text(headers_value(&stored->headers, STR("etag")), "\"a\"");
    ck_assert_text(headers_value(&stored->headers, STR("X-Empty")), "");
    ck_assert_int_eq(stored->freshness.lifetime_s, 60);
    ck_assert(stored->freshness.no_cache && !stored->freshness.never_stale);
    ck_assert_text(stored->validators.etag, "\"a\"");
    free(entry.parsed);
    arena_reset(&arena);
}
END_TEST

START_TEST(head_truncated_at_each_byte)
{
    struct str head = usual_head();

    for (size_t length = 0; length < head.length; length++) {
        struct cache_entry entry = {.head = str_slice(head, 0, length)};

        ck_assert_msg(!stored_response_of(&entry, 784111800), "%d bytes of %d", (int)length, (int)head.length);
    }
    arena_reset(&arena);
}
END_TEST

static const struct stored_metadata invalid[] = {
    {.status = -1},
    {.status = 100},
    {.status = 1000},
    {.status = 200, .fields = 0},
    {.status = 200, .fields = UINT32_MAX},
    {.status = 200, .received_s = INT64_MIN},
    {.status = 200, .received_s = LIMIT_STORED_SECONDS + 1},
    {.status = 200, .initial_age_s = INT64_MAX},
    {.status = 200, .lifetime_s = INT64_MAX},
    {.status = 200, .stale_while_revalidate = INT64_MIN},
    {.status = 200, .stale_if_error = INT64_MAX},
    {.status = 200, .no_cache = 2},
    {.status = 200, .never_stale = 255},
    {.status = 200, .reason = UINT16_MAX},
};

START_TEST(head_with_invalid_metadata_is_rejected)
{
    struct stored_metadata metadata = invalid[_i];
    struct str head = usual_head();
    struct cache_entry entry = {.head = head};

    if (metadata.fields == 0 && _i != 3)
        metadata.fields = 2;
    if (metadata.reason == 0)
        metadata.reason = 4;
    memcpy((char *)(uintptr_t)head.data, &metadata, sizeof(metadata));
    ck_assert_ptr_null(stored_response_of(&entry, 784111800));
    arena_reset(&arena);
}
END_TEST

/* Bytes after the metadata: the reason phrase "Fine", then the lines of two fields, 10 bytes each. */
static const char invalid_texts[][25] = {
    "Fi\re" "ETag: \"a\"\nX-Empty: \n",
    "Fine" "ETag: \"a\r\nX-Empty: \n",
    "Fine" "ETag: \"\0\"\nX-Empty: \n",
    "Fine" "E ag: \"a\"\nX-Empty: \n",
    "Fine" ": \"abcde\"\nX-Empty: \n",
    "Fine" "ETag:\"ab\"\nX-Empty: \n",
    "Fine" "ETag \"ab\"\nX-Empty: \n",
    "Fine" "ETag: \"a\"\nX-Empty: z",
};

START_TEST(head_with_invalid_text_is_rejected)
{
    struct str head = usual_head();
    struct cache_entry entry = {.head = head};

    ck_assert_uint_eq(sizeof(invalid_texts[_i]) - 1, head.length - sizeof(usual));
    memcpy((char *)(uintptr_t)head.data + sizeof(usual), invalid_texts[_i], sizeof(invalid_texts[_i]) - 1);
    ck_assert_ptr_null(stored_response_of(&entry, 784111800));
    arena_reset(&arena);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {written_head_is_parsed_back, head_truncated_at_each_byte};
    const struct suite_loop loops[] = {
        {head_with_invalid_metadata_is_rejected, COUNT(invalid)},
        {head_with_invalid_text_is_rejected, COUNT(invalid_texts)},
    };

    return suite_run_loops("stored response", tests, COUNT(tests), loops, COUNT(loops));
}
