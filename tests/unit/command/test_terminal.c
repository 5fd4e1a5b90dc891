#include "command/terminal.h"

#include "../runner.h"

static const struct {
    struct terminal_environment environment;
    bool colours;
    const char *pager;
} cases[] = {
    {{.term = "xterm"}, true, "less -FRX"},
    {{.term = "xterm", .no_color = "1"}, false, "less -FRX"},
    {{.term = "xterm", .no_color = ""}, true, "less -FRX"},
    {{.term = "xterm", .pager = "more"}, true, "more"},
    {{.term = "xterm", .pager = "more", .sluice_pager = "most"}, true, "most"},
    {{.term = "xterm", .pager = "more", .sluice_pager = ""}, true, NULL},
    {{.term = "xterm", .pager = ""}, true, NULL},
    {{.term = "xterm", .pager = "cat"}, true, NULL},
    {{.term = "dumb", .pager = "more"}, false, NULL},
    {{.term = ""}, false, NULL},
    {{.pager = "more"}, false, NULL},
};

START_TEST(environment_decides)
{
    const char *pager = terminal_pager(&cases[_i].environment);

    ck_assert_int_eq(terminal_colours(&cases[_i].environment), cases[_i].colours);
    ck_assert_pstr_eq(pager, cases[_i].pager);
}
END_TEST

static const struct {
    const char *text, *highlighted;
} texts[] = {
    {"", ""},
    {"root\n", "\033[1mroot\033[m\n"},
    {"root", "\033[1mroot\033[m\n"},
    {"core: user pid\n\nssl: acme\n", "\033[1mcore\033[m: user pid\n\n\033[1mssl\033[m: acme\n"},
    {"  where     http\n", "  \033[36mwhere\033[m     http\n"},
    {"  A sentence with a: colon.\n", "  A sentence with a: colon.\n"},
    {"  word\n", "  word\n"},
    {"  word and more\n", "  word and more\n"},
    {"   where    http\n", "   where    http\n"},
    {"  where ", "  where \n"},
    {"  \n", "  \n"},
};

START_TEST(headings_and_labels)
{
    struct buffer made = {0};

    ck_assert_int_eq(terminal_highlight(str_from(texts[_i].text), &made), 0);
    ck_assert(str_equal(buffer_str(&made), str_from(texts[_i].highlighted)));
    buffer_finish(&made);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, environment_decides, 0, sizeof(cases) / sizeof(cases[0]));
    tcase_add_loop_test(tcase, headings_and_labels, 0, sizeof(texts) / sizeof(texts[0]));
}

int main(void)
{
    return run_suite("terminal", add_tests);
}
