/* The tree of an nginx configuration: blocks, includes, comments and their positions, and errors. */
#include "files.h"

#include "base/buffer.h"
#include "base/limits.h"

#include "../runner.h"

#include <errno.h>
#include <stdio.h>

static void print_tree(const struct nginx_directive *block, struct buffer *out)
{
    for (const struct nginx_directive *child = block->first; child; child = child->next) {
        ck_assert_int_eq(buffer_printf(out, STR_FMT "@%u", STR_ARG(child->name), child->place.line), 0);
        for (size_t i = 0; i < child->count; i++)
            ck_assert_int_eq(buffer_printf(out, " " STR_FMT, STR_ARG(child->words[i])), 0);
        if (child->comments_above.data)
            ck_assert_int_eq(buffer_printf(out, " <" STR_FMT, STR_ARG(child->comments_above)), 0);
        if (child->comment_beside.data)
            ck_assert_int_eq(buffer_printf(out, " >" STR_FMT, STR_ARG(child->comment_beside)), 0);
        ck_assert_int_eq(buffer_append(out, child->block ? STR("{") : STR(";")), 0);
        if (child->block) {
            print_tree(child, out);
            ck_assert_int_eq(buffer_append(out, STR("}")), 0);
        }
    }
    if (block->comments_below.data)
        ck_assert_int_eq(buffer_printf(out, " ." STR_FMT, STR_ARG(block->comments_below)), 0);
}

/* Reads "/n/main" of the files. Ends the printed tree with a NUL. */
static int read_main(const struct memory_file *rows, struct buffer *out)
{
    const struct nginx_files files = memory_files(rows);
    struct nginx_directive *root;
    struct nginx_fault fault;
    struct arena arena;
    int error;

    arena_init(&arena, NULL, 0);
    error = nginx_tree_read(&arena, &files, STR("/n/main"), &root, &fault);
    ck_assert(error == 0 || error == -EINVAL);
    if (error == 0)
        print_tree(root, out);
    else
        ck_assert_int_eq(buffer_printf(out, STR_FMT ":%u: " STR_FMT, STR_ARG(fault.place.file),
                                       fault.place.line, STR_ARG(fault.message)),
                         0);
    ck_assert_int_eq(buffer_append(out, str_of("", 1)), 0);
    arena_reset(&arena);
    return error;
}

static const struct {
    const char *text, *shown;
} trees[] = {
    {"", ""},
    {"a;", "a@1;"},
    {"a b c;\nd { e; f g { } }", "a@1 b c;d@2{e@2;f@2 g{}}"},
    {"# one\n# two\na; # three\nb;", "a@3 <# one\n# two ># three;b@4;"},
    {"a { # in\n b;\n # end\n}\n# last", "a@1 ># in{b@2; .# end} .# last"},
    {"a {\n} # behind\nb;", "a@1 ># behind{}b@3;"},
    {"a # within\n b;\nc;", "a@1 b;c@3 <# within;"},
    {"a; b; # for b\n", "a@1;b@1 ># for b;"},
};

START_TEST(valid_directives_form_a_tree)
{
    const struct memory_file rows[] = {{"/n/main", trees[_i].text}, {NULL, NULL}};
    struct buffer shown = {0};

    ck_assert_int_eq(read_main(rows, &shown), 0);
    ck_assert_str_eq(shown.data, trees[_i].shown);
    buffer_finish(&shown);
}
END_TEST

static const struct {
    const char *text, *shown;
} broken[] = {
    {"a {", "/n/main:1: this block is not closed"},
    {"a {\nb {\n}\n", "/n/main:1: this block is not closed"},
    {"a;\n}", "/n/main:2: unexpected \"}\""},
    {"a { b }", "/n/main:1: \"}\" where \";\" is missing"},
    {"{ }", "/n/main:1: \"{\" without a name before it"},
    {"a;;", "/n/main:1: \";\" without a directive before it"},
    {"a", "/n/main:1: the file ends within a directive"},
    {"a b ", "/n/main:1: the file ends within this directive"},
    {"a 'b", "/n/main:1: the file ends within quotes"},
    {"a 'b'c;", "/n/main:1: something follows a closing quote without a blank"},
    {"include half;", "/n/half:2: this block is not closed"},
    {"include closing;", "/n/closing:1: unexpected \"}\""},
    {"include main;", "/n/main:1: includes are nested too deeply, or there are too many of them"},
};

START_TEST(invalid_blocks_are_rejected_with_file_and_line)
{
    const struct memory_file rows[] = {
        {"/n/main", broken[_i].text}, {"/n/half", "a;\nb {"}, {"/n/closing", "}"}, {NULL, NULL}};
    struct buffer shown = {0};

    ck_assert_int_eq(read_main(rows, &shown), -EINVAL);
    ck_assert_str_eq(shown.data, broken[_i].shown);
    buffer_finish(&shown);
}
END_TEST

START_TEST(included_files_are_inserted_in_order)
{
    static const struct memory_file rows[] = {
        {"/n/main",
         "a;\n# above\ninclude conf.d/*;\nb { include /x/y; }\ninclude none;\ninclude none/*;\nc;"},
        {"/n/conf.d/1", "# of one\none;\n# end of one"},
        {"/n/conf.d/2", "two;"},
        {"/x/y", "\ninner;"},
        {NULL, NULL}};
    struct buffer shown = {0};

    ck_assert_int_eq(read_main(rows, &shown), 0);
    ck_assert_str_eq(shown.data,
                     "a@1;one@2 <# above\n# of one;two@1 <# end of one;b@4{inner@2;}include@5 none;c@7;");
    buffer_finish(&shown);
}
END_TEST

START_TEST(missing_main_file_is_rejected)
{
    static const struct memory_file rows[] = {{NULL, NULL}};
    struct buffer shown = {0};

    ck_assert_int_eq(read_main(rows, &shown), -EINVAL);
    ck_assert_str_eq(shown.data, "/n/main:0: the file cannot be read");
    buffer_finish(&shown);
}
END_TEST

/* The greatest permitted depth of nested blocks, and one more. */
START_TEST(depth_is_limited)
{
    for (unsigned blocks = LIMIT_IMPORT_DEPTH - 1; blocks <= LIMIT_IMPORT_DEPTH; blocks++) {
        struct buffer text = {0};
        struct buffer shown = {0};

        for (unsigned i = 0; i < blocks; i++)
            ck_assert_int_eq(buffer_append(&text, STR("a{")), 0);
        for (unsigned i = 0; i < blocks; i++)
            ck_assert_int_eq(buffer_append(&text, STR("}")), 0);
        ck_assert_int_eq(buffer_append(&text, str_of("", 1)), 0);
        const struct memory_file rows[] = {{"/n/main", text.data}, {NULL, NULL}};

        ck_assert_int_eq(read_main(rows, &shown), blocks < LIMIT_IMPORT_DEPTH ? 0 : -EINVAL);
        if (blocks == LIMIT_IMPORT_DEPTH)
            ck_assert_str_eq(shown.data, "/n/main:1: blocks are nested too deeply");
        buffer_finish(&text);
        buffer_finish(&shown);
    }
}
END_TEST

START_TEST(directory_of_a_path_ends_before_its_last_slash)
{
    ck_assert(str_equal(nginx_directory(STR("/etc/nginx/nginx.conf")), STR("/etc/nginx")));
    ck_assert(str_equal(nginx_directory(STR("/nginx.conf")), STR("/")));
    ck_assert(str_equal(nginx_directory(STR("nginx.conf")), STR(".")));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, valid_directives_form_a_tree, 0, (int)(sizeof(trees) / sizeof(trees[0])));
    tcase_add_loop_test(tcase, invalid_blocks_are_rejected_with_file_and_line,
                        0, (int)(sizeof(broken) / sizeof(broken[0])));
    tcase_add_test(tcase, included_files_are_inserted_in_order);
    tcase_add_test(tcase, missing_main_file_is_rejected);
    tcase_add_test(tcase, depth_is_limited);
    tcase_add_test(tcase, directory_of_a_path_ends_before_its_last_slash);
}

int main(void)
{
    return run_suite("import_tree", add_tests);
}
