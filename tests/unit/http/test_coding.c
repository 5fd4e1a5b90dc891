#include "http/coding.h"

#include "suite.h"

static const enum coding all[] = {CODING_BR, CODING_ZSTD, CODING_GZIP};

/* The names of what is chosen of `offered`, in their order; field lines are separated by '|', NULL: there is none. */
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
    const char *chosen; /* of all three */
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
    {"br;q=0.1, *;q=0.9", "zstd gzip"}, /* the star is identity's, too */
    {"br;q=0.1, *;q=0.9, identity;q=0.1", "zstd gzip br"},
    /* identity that is liked better wins; of equals the coding does. */
    {"identity", ""},
    {"identity, gzip", "gzip"},
    {"identity;q=1, gzip;q=0.5", ""},
    {"identity;q=0.5, gzip;q=0.5, br;q=0.4", "gzip"},
    {"identity;q=0.5, *;q=0.2", ""},
    {"identity;q=0.5, gzip, *;q=0", "gzip"},
    /* Who refuses all of it still gets the bytes. */
    {"identity;q=0", ""},
    {"identity;q=0, gzip", "gzip"},
    {"identity;q=0, *;q=0", ""},
    {"*;q=0, deflate", ""},
    /* What cannot be read is refused, and of two words the lesser counts. */
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

START_TEST(chooses)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *chosen = choose(cases[i].field, all, COUNT(all));

        ck_assert_msg(strcmp(chosen, cases[i].chosen) == 0, "\"%s\": %s", cases[i].field, chosen);
    }
}
END_TEST

/* Only of what there is, and in the server's order where the client has none. */
START_TEST(chooses_of_what_is_offered)
{
    static const enum coding two[] = {CODING_GZIP, CODING_BR};

    ck_assert_str_eq(choose("br, gzip, zstd", two, 2), "gzip br");
    ck_assert_str_eq(choose("br, gzip;q=0.9, zstd", two, 2), "br gzip");
    ck_assert_str_eq(choose("zstd", two, 2), "");
    ck_assert_str_eq(choose("*", two, 1), "gzip");
    ck_assert_str_eq(choose("*", two, 0), "");
}
END_TEST

START_TEST(names)
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
    const TTest *const tests[] = {chooses, chooses_of_what_is_offered, names};

    return suite_run("coding", tests, COUNT(tests));
}
