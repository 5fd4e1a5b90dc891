#include "http/mime.h"

#include "suite.h"

START_TEST(type_follows_the_extension_of_the_path)
{
    static struct str html = {"text/html", 9};
    static struct str gzip = {"application/gzip", 16};
    static const struct {
        const char *path;
        const char *type;
    } cases[] = {
        {"/index.html", "text/html"},
        {"/INDEX.HTML", "text/html"},
        {"/a.tar.gz", "application/gzip"},
        {"/a.b/c", "x/none"},
        {"/", "x/none"},
        {"", "x/none"},
        {"/a.", "x/none"},
        {"/.gz", "application/gzip"},
        {"name.gz", "application/gzip"},
        {"/a.htm", "x/none"},
        {"/a.html/", "x/none"},
        {"/a.gz.", "x/none"},
    };
    struct mime mime = {.default_type = STR("x/none")};

    table_init(&mime.by_extension, true);
    ck_assert_int_eq(table_set(&mime.by_extension, STR("html"), &html), 0);
    ck_assert_int_eq(table_set(&mime.by_extension, STR("gz"), &gzip), 0);
    for (size_t i = 0; i < COUNT(cases); i++)
        ck_assert_text(mime_lookup(&mime, str_from(cases[i].path)), cases[i].type);
    table_finish(&mime.by_extension);
}
END_TEST

START_TEST(only_text_types_take_a_charset)
{
    static const char *const yes[] = {
        "text/html", "text/plain", "TEXT/css", "text/javascript", "application/javascript", "text/markdown"};
    static const char *const no[] = {"",
                                     "text",
                                     "image/png",
                                     "application/json",
                                     "application/ld+json",
                                     "text/xml",
                                     "image/svg+xml",
                                     "application/xml",
                                     "text/html; charset=x",
                                     "text/x+XML",
                                     "application/octet-stream",
                                     "font/woff2"};

    for (size_t i = 0; i < COUNT(yes); i++)
        ck_assert_msg(mime_takes_charset(str_from(yes[i])), "%s", yes[i]);
    for (size_t i = 0; i < COUNT(no); i++)
        ck_assert_msg(!mime_takes_charset(str_from(no[i])), "%s", no[i]);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {type_follows_the_extension_of_the_path, only_text_types_take_a_charset};

    return suite_run("mime", tests, COUNT(tests));
}
