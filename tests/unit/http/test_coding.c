#include "http/coding.h"

#include "suite.h"

static const enum coding all[] = {CODING_BR, CODING_ZSTD, CODING_GZIP};

/*
 * Returns the names of the codings chosen from `offered`, in their order. '|' separates field lines; NULL: the field is
 * absent.
 */
static const char *choose(const char *text, const enum coding *offered, unsigned count)
{
    static char chosen[64];
    struct headers headers = {0};
    struct str rest = str_from(text);
    enum coding out[CODINGS];
    struct arena arena;
    unsigned found;

    arena_init(&arena, NULL, 0);
    while (rest.data) {
        struct str line = str_cut(&rest, '|');

        ck_assert_int_eq(headers_add(&headers, &arena, STR("accept-encoding"), line), 0);
    }
    found = coding_choose(&headers, offered, count, out);
    arena_reset(&arena);
    chosen[0] = '\0';
    for (unsigned i = 0; i < found; i++) {
        if (i > 0)
            strcat(chosen, " ");
        strcat(chosen, coding_name(out[i]).data);
    }
    return chosen;
}

static const struct {
    const char *field;
    const char *chosen; /* from all three */
} cases[] = {
    {NULL, ""},
    {"", ""},
    {"  ", ""},
    {",,", ""},
    {"gzip", "gzip"},
    {"GZip", "gzip"},
    {"x-gzip", "gzip"},
    {"gzip, deflate, br, zstd", "br zstd gzip"},
    {"gzip, br", "br gzip"},
    {"deflate, compress", ""},
    {"gzipp, xgzip, bro", ""},
    {"gzip|br", "br gzip"},
    {"*", "br zstd gzip"},
    {"*;q=0.5", "br zstd gzip"},
    {"*;q=0", ""},
    {"gzip, *;q=0", "gzip"},
    {"gzip;q=0, *", "br zstd"},
    {"gzip;q=0", ""},
    {"gzip;q=0.0", ""},
    {"gzip;q=0.000", ""},
    {"gzip;q=0.001", "gzip"},
    {"gzip;q=1.000", "gzip"},
    {"gzip;q=1.", "gzip"},
    {"gzip;Q=0.5", "gzip"},
    {"gzip ; q=0.5", "gzip"},
    {"gzip;q=1.0, br;q=0.8, zstd;q=0.9", "gzip zstd br"},
    {"gzip;q=0.5, br;q=0.5", "br gzip"},
    {"br;q=0.5, gzip;q=0.51", "gzip br"},
    {"br;q=0.1, *;q=0.9", "zstd gzip"}, /* "*" covers identity, too */
    {"br;q=0.1, *;q=0.9, identity;q=0.1", "zstd gzip br"},
    /* If identity has a greater weight, no coding is used. If the weights are equal, the coding is used. */
    {"identity", ""},
    {"identity, gzip", "gzip"},
    {"identity;q=1, gzip;q=0.5", ""},
    {"identity;q=0.5, gzip;q=0.5, br;q=0.4", "gzip"},
    {"identity;q=0.5, *;q=0.2", ""},
    {"identity;q=0.5, gzip, *;q=0", "gzip"},
    /* A client that rejects every coding and identity still gets the unencoded bytes. */
    {"identity;q=0", ""},
    {"identity;q=0, gzip", "gzip"},
    {"identity;q=0, *;q=0", ""},
    {"*;q=0, deflate", ""},
    /* A malformed member is rejected. If a coding is listed twice, the smaller weight counts. */
    {"gzip;q=2", ""},
    {"gzip;q=1.001", ""},
    {"gzip;q=1.5", ""},
    {"gzip;q=0.5555", ""},
    {"gzip;q=-1", ""},
    {"gzip;q=+1", ""},
    {"gzip;q=.5", ""},
    {"gzip;q=", ""},
    {"gzip;q", ""},
    {"gzip;", ""},
    {"gzip;q=a", ""},
    {"gzip;q=0,5", ""},
    {"gzip;q=1;q=0.5", ""},
    {"gzip;level=9", ""},
    {"gzip;q =1", ""},
    {"gzip;q=\"1\"", ""},
    {"gzip q=1", ""},
    {"gzip=1", ""},
    {"\"gzip\"", ""},
    {"gzip, gzip;q=0", ""},
    {"gzip;q=0.3|gzip;q=0.9, br;q=0.5", "br gzip"},
    {"gzip, br;q=x", "gzip"},
};

START_TEST(preferred_coding_is_chosen)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *chosen = choose(cases[i].field, all, COUNT(all));

        ck_assert_msg(strcmp(chosen, cases[i].chosen) == 0, "\"%s\": %s", cases[i].field, chosen);
    }
}
END_TEST

/* Only offered codings are chosen; in the server's order if the client gives none. */
START_TEST(only_offered_codings_are_chosen)
{
    static const enum coding two[] = {CODING_GZIP, CODING_BR};

    ck_assert_str_eq(choose("br, gzip, zstd", two, 2), "gzip br");
    ck_assert_str_eq(choose("br, gzip;q=0.9, zstd", two, 2), "br gzip");
    ck_assert_str_eq(choose("zstd", two, 2), "");
    ck_assert_str_eq(choose("*", two, 1), "gzip");
    ck_assert_str_eq(choose("*", two, 0), "");
}
END_TEST

START_TEST(each_coding_is_found_by_its_name)
{
    for (enum coding coding = 0; coding < CODINGS; coding++)
        ck_assert_int_eq(coding_by_name(coding_name(coding)), coding);
    ck_assert_int_eq(coding_by_name(STR("X-GZIP")), CODING_GZIP);
    ck_assert_int_eq(coding_by_name(STR("identity")), CODINGS);
    ck_assert_int_eq(coding_by_name(STR("")), CODINGS);
    ck_assert_text(coding_name(CODING_BR), "br");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {preferred_coding_is_chosen, only_offered_codings_are_chosen,
                                  each_coding_is_found_by_its_name};

    return suite_run("coding", tests, COUNT(tests));
}
