#include "site/configuration_files.h"

#include "../runner.h"

static struct arena arena;

static void expect_path(const char *path, const char *directory, ino_t inode, const char *expected)
{
    struct conf_file file = {.path = str_from(path), .directory = str_from(directory), .inode = inode};
    struct str found = configuration_file_path(&arena, &file);

    ck_assert_msg(str_equal(found, str_from(expected)), "%s: " STR_FMT, path, STR_ARG(found));
}

START_TEST(paths_are_absolute)
{
    arena_init(&arena, NULL, 0);
    expect_path("/etc/sluice/sluice.yaml", "/etc/sluice", 1, "/etc/sluice/sluice.yaml");
    expect_path("/sluice.yaml", "/", 1, "/sluice.yaml");
    expect_path("sluice.yaml", "/etc", 1, "/etc/sluice.yaml");
    expect_path("sluice.yaml", "/", 1, "/sluice.yaml");
    expect_path("conf.d/../a.yaml", "/etc/conf.d/..", 1, "/etc/conf.d/../a.yaml");
    arena_reset(&arena);
}
END_TEST

START_TEST(text_in_memory_has_a_name)
{
    arena_init(&arena, NULL, 0);
    expect_path("(built-in)", "/etc", 0, "(built-in)");
    arena_reset(&arena);
}
END_TEST

/* The examples of FIPS 180-2 and the empty message. */
START_TEST(digests_are_those_of_sha256sum)
{
    char digest[CONFIGURATION_DIGEST];

    ck_assert_int_eq(configuration_file_digest(STR("abc"), digest), 0);
    ck_assert_str_eq(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    ck_assert_int_eq(configuration_file_digest(STR(""), digest), 0);
    ck_assert_str_eq(digest, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}
END_TEST

int main(void)
{
    return run_tests("configuration_files", (const TTest *const[]){paths_are_absolute, text_in_memory_has_a_name,
                                                                   digests_are_those_of_sha256sum, NULL});
}
