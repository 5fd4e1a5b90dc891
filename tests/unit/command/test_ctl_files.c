#include "command/ctl_files.h"

#include "../runner.h"
#include "site/configuration_files.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[] = "/tmp/test_ctl_files.XXXXXX";
static struct arena arena;
static struct buffer rows;
static struct ctl_files files;

static void open_directory(void)
{
    strcpy(directory + sizeof(directory) - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(chdir(directory), 0);
    arena_init(&arena, NULL, 0);
    buffer_init(&rows, 0);
    files = (struct ctl_files){.arena = &arena};
    ck_assert_int_eq(buffer_append(&rows, STR("path\tbytes\tsha256\n")), 0);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    return remove(path);
}

static void close_directory(void)
{
    nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    arena_reset(&arena);
    buffer_finish(&rows);
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

/* A row of the server: the file had this text when it was loaded. */
static void add_row(const char *name, const char *text)
{
    char digest[CONFIGURATION_DIGEST];

    ck_assert_int_eq(configuration_file_digest(str_from(text), digest), 0);
    ck_assert_int_eq(buffer_printf(&rows, "%s/%s\t%zu\t%s\n", directory, name, strlen(text), digest), 0);
}

/* A file that was loaded with the text that it has. */
static void add_equal(const char *name, const char *text)
{
    write_file(name, text);
    add_row(name, text);
}

static void expect_states(const char *expected, int status)
{
    char text[1024] = "";

    ck_assert_int_eq(ctl_files_compare(&files, buffer_str(&rows)), 0);
    for (const struct ctl_file *file = files.first; file; file = file->next)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d %s\n", file->state,
                 file->path.data + strlen(directory) + 1);
    ck_assert_str_eq(text, expected);
    ck_assert_int_eq(ctl_files_status(&files), status);
}

START_TEST(equal_files_are_unchanged)
{
    open_directory();
    add_equal("a.yaml", "http:\n  include: '*.part'\n");
    add_equal("1.part", "x: 1\n");
    expect_states("0 a.yaml\n0 1.part\n", 0);
    ck_assert(!files.incomplete);
    close_directory();
}
END_TEST

START_TEST(every_difference_has_a_state)
{
    open_directory();
    write_file("a.yaml", "http:\n  include: '*.part'\nb: {include: n.yaml}\nc: {include: n.yaml}\n");
    add_row("a.yaml", "http:\n  include: '*.part'\nb: {include: u.yaml}\n");
    add_equal("1.part", "x: 1\n");
    add_row("2.part", "y: 1\n");
    add_equal("u.yaml", "z: 1\n");
    write_file("3.part", "v: 1\n");
    write_file("n.yaml", "z: 1\n");
    write_file("other.yaml", "z: 1\n");
    expect_states("1 a.yaml\n0 1.part\n2 2.part\n4 u.yaml\n3 3.part\n3 n.yaml\n", 1);
    close_directory();
}
END_TEST

START_TEST(unused_files_need_files_without_errors)
{
    open_directory();
    write_file("a.yaml", "http: {include: none.yaml}\n");
    add_row("a.yaml", "http: {include: u.yaml}\n");
    add_equal("u.yaml", "z: 1\n");
    expect_states("1 a.yaml\n0 u.yaml\n", 1);
    ck_assert(files.incomplete);
    close_directory();
}
END_TEST

START_TEST(without_the_main_file_the_others_are_compared)
{
    open_directory();
    add_row("a.yaml", "http: {include: u.yaml}\n");
    add_equal("u.yaml", "z: 1\n");
    write_file("u.yaml", "");
    expect_states("2 a.yaml\n1 u.yaml\n", 1);
    close_directory();
}
END_TEST

START_TEST(what_is_no_regular_file_is_unreadable)
{
    open_directory();
    add_row("a.yaml", "x: 1\n");
    add_row("pipe", "x: 1\n");
    ck_assert_int_eq(mkdir("a.yaml", 0700), 0);
    ck_assert_int_eq(mkfifo("pipe", 0600), 0);
    expect_states("5 a.yaml\n5 pipe\n", 2);
    close_directory();
}
END_TEST

START_TEST(malformed_rows_are_refused)
{
    static const char *const cases[] = {"", "path\tbytes\tsha256\n", "path\tbytes\n/a\t1\n",
                                        "path\tbytes\tsha256\n/a\n", "path\tbytes\tsha256\n/a\t1\t00\n"};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_directory();
        ck_assert_msg(ctl_files_compare(&files, str_from(cases[i])) == -EPROTO, "%s", cases[i]);
        close_directory();
    }
}
END_TEST

static void expect_output(bool json, const char *expected)
{
    struct buffer out = {0};

    ck_assert_int_eq(ctl_files_print(&files, json, &out), 0);
    ck_assert_msg(str_equal(buffer_str(&out), str_from(expected)), STR_FMT, STR_ARG(buffer_str(&out)));
    buffer_finish(&out);
}

START_TEST(states_are_printed)
{
    struct ctl_file second = {.path = STR("/b\"\x1b\t"), .state = CTL_UNUSED};
    struct ctl_file first = {.path = STR("/a b"), .state = CTL_NEW, .next = &second};

    files = (struct ctl_files){.first = &first, .last = &second};
    expect_output(false, "state\tpath\nnew\t/a b\nunused\t/b\"??\n");
    expect_output(true, "{\"files\": [\n  {\"path\": \"/a b\", \"state\": \"new\"},\n"
                        "  {\"path\": \"/b\\\"\\u001B\\t\", \"state\": \"unused\"}\n]}\n");
}
END_TEST

int main(void)
{
    return run_tests("ctl_files", (const TTest *const[]){
            equal_files_are_unchanged, every_difference_has_a_state, unused_files_need_files_without_errors,
            without_the_main_file_the_others_are_compared, what_is_no_regular_file_is_unreadable,
            malformed_rows_are_refused, states_are_printed, NULL});
}
