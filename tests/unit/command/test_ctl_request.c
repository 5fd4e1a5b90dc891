#include "command/ctl.h"

#include "../runner.h"

#include <errno.h>

#define WORDS(...) ((char *const[]){(char *)(uintptr_t)"", __VA_ARGS__} + 1)
#define W(text)    ((char *)(uintptr_t)(text))

START_TEST(commands_are_found)
{
    char error[256] = "";
    const struct ctl_verb *verb = ctl_find(WORDS(W("workers")), 1, error, sizeof(error));

    ck_assert_ptr_nonnull(verb);
    ck_assert_str_eq(verb->noun, "workers");
    ck_assert_ptr_null(verb->verb);
    for (verb = ctl_verbs; verb->noun; verb++)
        ck_assert_msg(verb->help && verb->help[0], "%s", verb->noun);
}
END_TEST

/* A noun alone, and the same noun with an argument or with a verb. */
START_TEST(nouns_may_have_several_commands)
{
    char error[256] = "";

    ck_assert_ptr_null(ctl_find(WORDS(W("log-level")), 1, error, sizeof(error))->method);
    ck_assert_str_eq(ctl_find(WORDS(W("log-level"), W("debug")), 2, error, sizeof(error))->method, "PATCH");
    ck_assert_ptr_null(ctl_find(WORDS(W("ticket-keys")), 1, error, sizeof(error))->method);
    ck_assert_str_eq(ctl_find(WORDS(W("ticket-keys"), W("rotate")), 2, error, sizeof(error))->method, "POST");
    ck_assert(!ctl_find(WORDS(W("configuration")), 1, error, sizeof(error))->diff);
    ck_assert(ctl_find(WORDS(W("configuration"), W("diff")), 2, error, sizeof(error))->diff);
}
END_TEST

START_TEST(unknown_commands_are_rejected)
{
    static const struct {
        char *const words[6];
        size_t count;
        const char *error;
    } cases[] = {
        {{NULL}, 0, "takes a command"},
        {{W("frob")}, 1, "ctl has no command \"frob\""},
        {{W("")}, 1, "ctl has no command \"\""},
        {{W("workers"), W("frob")}, 2, "\"workers\" has no command \"frob\""},
        {{W("upstreams"), W("frob")}, 2, "\"upstreams\" has no command \"frob\""},
        {{W("upstreams"), W("down"), W("app")}, 3, "\"upstreams down\" takes 2 arguments, found 1"},
        {{W("upstreams"), W("add"), W("app")}, 3, "\"upstreams add\" takes 2 arguments, found 1"},
        {{W("upstreams"), W("add"), W("app"), W("a"), W("frob=1")}, 5, "\"upstreams add\" has no option \"frob=1\""},
        {{W("upstreams"), W("add"), W("app"), W("a"), W("weight")}, 5, "has no option \"weight\""},
        {{W("upstreams"), W("add"), W("app"), W("a"), W("backup=1")}, 5, "has no option \"backup=1\""},
        {{W("upstreams"), W("add"), W("app"), W("a"), W("weight=1"), W("weight=2")}, 6, "\"weight=2\", or has it t"},
        {{W("upstreams"), W("remove"), W("app"), W("a"), W("weight=1")}, 5, "takes 2 arguments, found 3"},
        {{W("caches"), W("entries")}, 2, "\"caches entries\" takes 1 argument, found 0"},
        {{W("caches"), W("entries"), W("one"), W("frob=1")}, 4, "\"caches entries\" has no option \"frob=1\""},
        {{W("caches"), W("entries"), W("one"), W("prefix")}, 4, "\"caches entries\" has no option \"prefix\""},
        {{W("log-level"), W("debug"), W("now")}, 3, "\"log-level\" takes 1 argument, found 2"},
        {{W("ticket-keys"), W("frob")}, 2, "\"ticket-keys\" has no command \"frob\""},
        {{W("ticket-keys"), W("rotate"), W("now")}, 3, "\"ticket-keys rotate\" takes 0 arguments, found 1"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char error[256] = "";

        ck_assert_ptr_null(ctl_find(cases[i].words, cases[i].count, error, sizeof(error)));
        ck_assert_msg(strstr(error, cases[i].error), "%s", error);
    }
}
END_TEST

static const struct ctl_verb two_arguments = {
    "things", "put", "PATCH", NULL, "\"fixed\": true", {{"server"}, {"weight", true}}, "help"};
static const struct ctl_verb with_options = {
    "things", "add", "POST", NULL, NULL, {{"server"}}, "help", {{"weight", true}, {"time"}, {"backup", .word = true}}};
static const struct ctl_verb one_argument = {"level", NULL, "POST", "/v1/deep/level", NULL, {{"level"}}, "help"};
static const struct ctl_verb no_argument = {"keys", "rotate", "POST", "/v1/keys", NULL, {{NULL}}, "help"};
static const struct ctl_verb plain = {.noun = "things", .help = "help"};

static void assert_request(const struct ctl_verb *verb, char *const *words, size_t count, bool table,
                           const char *expected)
{
    struct buffer out = {0};

    ck_assert_int_eq(ctl_request_print(verb, words, count, table, &out), 0);
    ck_assert_int_eq(buffer_append(&out, str_of("", 1)), 0);
    ck_assert_str_eq(out.data, expected);
    buffer_finish(&out);
}

START_TEST(requests_have_a_json_object)
{
    assert_request(&plain, WORDS(W("things")), 1, true, "GET /v1/things?format=table HTTP/1.0\r\n\r\n");
    assert_request(&two_arguments, WORDS(W("things"), W("put"), W("[::1]:80\"\n"), W("12")), 4, false,
                   "PATCH /v1/things?format=json HTTP/1.0\r\nContent-Type: application/json\r\n"
                   "Content-Length: 55\r\n\r\n{\"fixed\": true, \"server\": \"[::1]:80\\\"\\n\", \"weight\": 12}");
    assert_request(&two_arguments, WORDS(W("things"), W("put"), W(""), W("012")), 4, false,
                   "PATCH /v1/things?format=json HTTP/1.0\r\nContent-Type: application/json\r\n"
                   "Content-Length: 46\r\n\r\n{\"fixed\": true, \"server\": \"\", \"weight\": \"012\"}");
    assert_request(&with_options, WORDS(W("things"), W("add"), W("a")), 3, false,
                   "POST /v1/things?format=json HTTP/1.0\r\nContent-Type: application/json\r\n"
                   "Content-Length: 15\r\n\r\n{\"server\": \"a\"}");
    assert_request(&with_options,
                   WORDS(W("things"), W("add"), W("a"), W("backup"), W("time=1=\""), W("weight=3")), 6, false,
                   "POST /v1/things?format=json HTTP/1.0\r\nContent-Type: application/json\r\n"
                   "Content-Length: 60\r\n\r\n"
                   "{\"server\": \"a\", \"backup\": true, \"time\": \"1=\\\"\", \"weight\": 3}");
    assert_request(&one_argument, WORDS(W("level"), W("7")), 2, true,
                   "POST /v1/deep/level?format=table HTTP/1.0\r\nContent-Type: application/json\r\n"
                   "Content-Length: 14\r\n\r\n{\"level\": \"7\"}");
    assert_request(&no_argument, WORDS(W("keys"), W("rotate")), 2, true,
                   "POST /v1/keys?format=table HTTP/1.0\r\nContent-Type: application/json\r\n"
                   "Content-Length: 2\r\n\r\n{}");
}
END_TEST

START_TEST(arguments_of_a_get_are_in_its_query)
{
    char error[256] = "";
    char *const all[] = {W("caches"), W("entries"), W("one"), W("cursor=17"), W("prefix=/a b&=\xc3\xa4%\n~")};
    const struct ctl_verb *verb = ctl_find(all, 5, error, sizeof(error));

    ck_assert_msg(verb != NULL, "%s", error);
    assert_request(verb, all, 5, true,
                   "GET /v1/caches/entries?format=table&cache=one&cursor=17&prefix=%2Fa%20b%26%3D%C3%A4%25%0A~"
                   " HTTP/1.0\r\n\r\n");
    assert_request(verb, all, 3, false, "GET /v1/caches/entries?format=json&cache=one HTTP/1.0\r\n\r\n");
    ck_assert_ptr_eq(ctl_find(WORDS(W("caches"), W("entries"), W("a=b"), W("prefix=")), 4, error, sizeof(error)), verb);
    assert_request(verb, WORDS(W("caches"), W("entries"), W("a=b"), W("prefix=")), 4, false,
                   "GET /v1/caches/entries?format=json&cache=a%3Db&prefix= HTTP/1.0\r\n\r\n");
}
END_TEST

START_TEST(responses_are_parsed)
{
    struct str missing = STR("HTTP/1.1 404 Not Found\r\ncontent-length:  3 \r\n\r\nabc");
    struct str body = STR("");
    int status = 0;

    ck_assert_int_eq(ctl_response_parse(missing, &status, &body), 0);
    ck_assert_int_eq(status, 404);
    ck_assert(str_equal(body, STR("abc")));
    ck_assert_int_eq(ctl_response_parse(STR("HTTP/1.0 200 OK\r\nA: b\r\nContent-Length: 0\r\n\r\n"), &status,
                                        &body), 0);
    ck_assert_int_eq(status, 200);
    ck_assert(str_empty(body));
}
END_TEST

START_TEST(incomplete_responses_are_rejected)
{
    static const char *const cases[] = {
        "",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n",
        "HTTP/1.1 200 OK\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nabc",
        "HTTP/1.1 2x0 OK\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 100 OK\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.\r\n\r\n",
        "SSH-2.0 200 OK\r\nContent-Length: 3\r\n\r\nabc",
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct str body = STR("untouched");
        int status = 7;

        ck_assert_msg(ctl_response_parse(str_from(cases[i]), &status, &body) == -EPROTO, "%s", cases[i]);
        ck_assert_int_eq(status, 7);
        ck_assert(str_equal(body, STR("untouched")));
    }
}
END_TEST

int main(void)
{
    return run_tests("ctl_request", (const TTest *const[]){
            commands_are_found, nouns_may_have_several_commands, unknown_commands_are_rejected,
            requests_have_a_json_object, arguments_of_a_get_are_in_its_query,
            responses_are_parsed, incomplete_responses_are_rejected, NULL});
}
