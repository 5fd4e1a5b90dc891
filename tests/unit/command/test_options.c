#include "command/options.h"

#include "../runner.h"

#include <errno.h>
#include <stdio.h>

static int parse(const char *line, struct options *out, char *error)
{
    static char space[512];
    static char *argv[32];
    int argc = 1;
    char *rest = space;
    char *word;

    snprintf(space, sizeof(space), "%s", line);
    argv[0] = (char *)(uintptr_t) "sluice";
    while ((word = strsep(&rest, " ")))
        if (*word)
            argv[argc++] = word;
    argv[argc] = NULL;
    return options_parse(argc, argv, out, error, 256);
}

static const struct {
    const char *line;
    enum command command;
    const char *conf, *prefix, *error_log, *overlay, *signal, *directory, *directive, *input, *output;
    unsigned port;
    bool quiet, json, report, no_benchmark;
    unsigned seconds;
    const char *certificate, *key, *acme, *acme_directory;
    bool spa, autoindex, open_to_network;
    bool once;
    unsigned interval_s;
    const char *url;
} good[] = {
    {"", COMMAND_RUN},
    {"-c a.yaml", COMMAND_RUN, .conf = "a.yaml"},
    {"-ca.yaml -p /srv -e stderr", COMMAND_RUN, .conf = "a.yaml", .prefix = "/srv", .error_log = "stderr"},
    {"-g daemon:off", COMMAND_RUN, .overlay = "daemon:off"},
    {"-t", COMMAND_TEST},
    {"-tq", COMMAND_TEST, .quiet = true},
    {"-tqc a", COMMAND_TEST, .quiet = true, .conf = "a"},
    {"-T", COMMAND_TEST_PRINT},
    {"-t -T", COMMAND_TEST_PRINT},
    {"-T -t", COMMAND_TEST_PRINT},
    {"-v", COMMAND_VERSION},
    {"--version", COMMAND_VERSION},
    {"-V", COMMAND_BUILD},
    {"-h", COMMAND_USAGE},
    {"-?", COMMAND_USAGE},
    {"--help", COMMAND_USAGE},
    {"-V -h", COMMAND_USAGE},
    {"-s quit", COMMAND_SIGNAL, .signal = "quit"},
    {"-sreload -c x", COMMAND_SIGNAL, .signal = "reload", .conf = "x"},
    {"-s stop", COMMAND_SIGNAL, .signal = "stop"},
    {"-s reopen", COMMAND_SIGNAL, .signal = "reopen"},
    {"serve", COMMAND_SERVE},
    {"serve /tmp --port 9", COMMAND_SERVE, .directory = "/tmp", .port = 9},
    {"serve --port=65535 x", COMMAND_SERVE, .directory = "x", .port = 65535},
    {"serve -- -odd", COMMAND_SERVE, .directory = "-odd"},
    {"serve --help", COMMAND_USAGE},
    {"serve --spa x --autoindex --open-to-network", COMMAND_SERVE, .directory = "x", .spa = true, .autoindex = true,
     .open_to_network = true},
    {"serve --cert a.pem --key=b.key", COMMAND_SERVE, .certificate = "a.pem", .key = "b.key"},
    {"serve --acme a.test --acme-directory=https://ca.test/dir", COMMAND_SERVE, .acme = "a.test",
     .acme_directory = "https://ca.test/dir"},
    {"serve --cert=a=b", COMMAND_SERVE, .certificate = "a=b"},
    {"docs", COMMAND_DOCS},
    {"docs 8081", COMMAND_DOCS, .port = 8081},
    {"docs -h", COMMAND_USAGE},
    {"doctor", COMMAND_DOCTOR},
    {"doctor --json", COMMAND_DOCTOR, .json = true},
    {"doctor --json -c a.yaml", COMMAND_DOCTOR, .json = true, .conf = "a.yaml"},
    {"doctor --report", COMMAND_DOCTOR, .report = true},
    {"doctor --report -", COMMAND_DOCTOR, .report = true, .output = "-"},
    {"doctor --report a.md --no-benchmark", COMMAND_DOCTOR, .report = true, .output = "a.md", .no_benchmark = true},
    {"doctor --no-benchmark --report", COMMAND_DOCTOR, .report = true, .no_benchmark = true},
    {"doctor --report --seconds 120", COMMAND_DOCTOR, .report = true, .seconds = 120},
    {"doctor --seconds=1 --report=-a.md", COMMAND_DOCTOR, .report = true, .seconds = 1, .output = "-a.md"},
    {"doctor --report --help", COMMAND_USAGE, .report = true},
    {"schema", COMMAND_SCHEMA},
    {"help", COMMAND_HELP},
    {"help listen", COMMAND_HELP, .directive = "listen"},
    {"import nginx.conf", COMMAND_IMPORT, .input = "nginx.conf"},
    {"import -o a.yaml nginx.conf --report -p /srv", COMMAND_IMPORT, .input = "nginx.conf", .output = "a.yaml",
     .prefix = "/srv", .report = true},
    {"fmt a.yaml b.yaml", COMMAND_FMT},
    {"fmt -w a.yaml", COMMAND_FMT},
    {"fmt --check -", COMMAND_FMT},
    {"fmt --diff a.yaml", COMMAND_FMT},
    {"fmt -d -", COMMAND_FMT},
    {"fmt -h", COMMAND_USAGE},
    {"ctl workers", COMMAND_CTL},
    {"ctl --json -c a.yaml cache purge one /x", COMMAND_CTL, .json = true, .conf = "a.yaml"},
    {"ctl workers --json", COMMAND_CTL, .json = true},
    {"ctl -h", COMMAND_USAGE},
    {"lint", COMMAND_LINT},
    {"lint --format json a.yaml", COMMAND_LINT, .conf = "a.yaml"},
    {"lint --format=sarif", COMMAND_LINT},
    {"explain http://a/ -c a.yaml", COMMAND_EXPLAIN, .conf = "a.yaml", .url = "http://a/"},
    {"explain -ca.yaml --format json /b", COMMAND_EXPLAIN, .conf = "a.yaml", .url = "/b"},
    {"top", COMMAND_TOP},
    {"top http://a/ --once --json", COMMAND_TOP, .json = true, .once = true, .url = "http://a/"},
    {"top --interval 5 --once", COMMAND_TOP, .once = true, .interval_s = 5},
    {"top --interval=3600", COMMAND_TOP, .interval_s = 3600},
    {"top -h", COMMAND_USAGE},
    {"import nginx.conf -oa.yaml", COMMAND_IMPORT, .input = "nginx.conf", .output = "a.yaml"},
};

static const struct {
    const char *line;
    const char *error;
} bad[] = {
    {"-x", "invalid option: \"-x\""},
    {"-tx", "invalid option: \"-x\""},
    {"--frob", "invalid option: \"--frob\""},
    {"-c", "option \"-c\" requires a file name"},
    {"-t -p", "option \"-p\" requires a directory"},
    {"-g", "option \"-g\" requires directives"},
    {"-s", "option \"-s\" requires a signal name"},
    {"-s hup", "invalid option: \"-s hup\""},
    {"-t -s quit", "cannot be combined"},
    {"-V -t", "cannot be combined"},
    {"-t extra", "invalid option: \"extra\""},
    {"-", "invalid option: \"-\""},
    {"serv", "did you mean \"serve\""},
    {"docter", "did you mean \"doctor\""},
    {"sluice.yaml", "unknown command \"sluice.yaml\""},
    {"serve a b", "\"b\" is a second one"},
    {"serve --port", "requires a number"},
    {"serve --port 0", "invalid port \"0\""},
    {"serve --port=70000", "invalid port \"70000\""},
    {"serve --port 8x", "invalid port \"8x\""},
    {"serve -x", "invalid option of serve"},
    {"serve --spa=yes", "option \"--spa\" takes no value"},
    {"serve --spaces", "invalid option of serve: \"--spaces\""},
    {"serve --sp", "invalid option of serve: \"--sp\""},
    {"serve --cert", "option \"--cert\" requires a file name"},
    {"serve --key=", "option \"--key\" requires a file name"},
    {"docs x", "invalid port \"x\""},
    {"docs 65536", "invalid port \"65536\""},
    {"docs 1 2", "\"2\" is a second one"},
    {"docs --port", "invalid option of docs"},
    {"doctor x", "invalid argument of doctor"},
    {"doctor --json=1", "invalid argument of doctor"},
    {"doctor --reports", "invalid argument of doctor"},
    {"doctor --report a.md b.md", "invalid argument of doctor: \"b.md\""},
    {"doctor --report=", "the report has an empty file name"},
    {"doctor --report --seconds", "a number from 1 to 120"},
    {"doctor --report --seconds 0", "a number from 1 to 120"},
    {"doctor --report --seconds=121", "a number from 1 to 120"},
    {"doctor --seconds 1s --report", "a number from 1 to 120"},
    {"doctor --seconds 5", "option \"--seconds\" requires \"--report\""},
    {"doctor --no-benchmark", "option \"--no-benchmark\" requires \"--report\""},
    {"doctor --report --no-benchmark --seconds 5", "excludes \"--seconds\""},
    {"doctor --json --report", "\"--report\" excludes \"--json\""},
    {"doctor --report -c a.yaml", "\"--report\" excludes \"-c\""},
    {"schema x", "takes no argument"},
    {"help a b", "\"b\" is a second one"},
    {"import a b", "\"b\" is a second one"},
    {"import -o", "option \"-o\" of import requires a path"},
    {"fmt -x", "invalid option of fmt: \"-x\""},
    {"fmt -w --check a", "one of"},
    {"fmt --diff --check a", "one of"},
    {"fmt -w -d a", "one of"},
    {"fmt a -w", "precede its files"},
    {"fmt -w -", "\"-\" is the standard input"},
    {"lint --format", "requires a name"},
    {"lint --format xml", "invalid format \"xml\""},
    {"lint -x", "invalid option of lint"},
    {"lint a b", "\"b\" is a second one"},
    {"explain a b", "\"b\" is a second one"},
    {"explain --format gcc", "text or json"},
    {"explain -x", "invalid option: \"-x\""},
    {"top a b", "top takes one URL, and \"b\" is a second one"},
    {"top -x", "invalid option of top: \"-x\""},
    {"top --once=1", "invalid option of top"},
    {"top --interval", "requires a number of seconds"},
    {"top --interval 0", "invalid interval \"0\""},
    {"top --interval=3601", "from 1 to 3600"},
    {"top --interval 1s", "invalid interval \"1s\""},
    {"ctl -x", "invalid option of ctl: \"-x\""},
    {"ctl -s", "option \"-s\" of ctl requires the path of a socket"},
    {"ctl cache --json purge", "precede or follow its command (\"purge\")"},
    {"ctl -c", "option \"-c\" requires a file name"},
    {"import a -x", "invalid argument of import: \"-x\""},
};

static void check_text(const char *line, const char *got, const char *expected)
{
    if (expected)
        ck_assert_msg(got && strcmp(got, expected) == 0, "%s: %s, not %s", line, got, expected);
    else
        ck_assert_msg(!got, "%s: %s", line, got);
}

START_TEST(reads_command_lines)
{
    char error[256] = "";
    struct options options;

    ck_assert_msg(parse(good[_i].line, &options, error) == 0, "%s: %s", good[_i].line, error);
    ck_assert_msg(options.command == good[_i].command, "%s: command %d", good[_i].line, options.command);
    check_text(good[_i].line, options.conf, good[_i].conf);
    check_text(good[_i].line, options.prefix, good[_i].prefix);
    check_text(good[_i].line, options.error_log, good[_i].error_log);
    check_text(good[_i].line, options.overlay, good[_i].overlay);
    check_text(good[_i].line, options.signal, good[_i].signal);
    check_text(good[_i].line, options.directory, good[_i].directory);
    check_text(good[_i].line, options.directive, good[_i].directive);
    check_text(good[_i].line, options.input, good[_i].input);
    check_text(good[_i].line, options.output, good[_i].output);
    ck_assert_uint_eq(options.port, good[_i].port);
    ck_assert_int_eq(options.quiet, good[_i].quiet);
    ck_assert_int_eq(options.json, good[_i].json);
    ck_assert_int_eq(options.report, good[_i].report);
    ck_assert_int_eq(options.no_benchmark, good[_i].no_benchmark);
    ck_assert_uint_eq(options.seconds, good[_i].seconds);
    check_text(good[_i].line, options.certificate, good[_i].certificate);
    check_text(good[_i].line, options.key, good[_i].key);
    check_text(good[_i].line, options.acme, good[_i].acme);
    check_text(good[_i].line, options.acme_directory, good[_i].acme_directory);
    ck_assert_int_eq(options.spa, good[_i].spa);
    ck_assert_int_eq(options.autoindex, good[_i].autoindex);
    ck_assert_int_eq(options.open_to_network, good[_i].open_to_network);
    ck_assert_int_eq(options.once, good[_i].once);
    ck_assert_uint_eq(options.interval_s, good[_i].interval_s);
    check_text(good[_i].line, options.url, good[_i].url);
}
END_TEST

START_TEST(ctl_keeps_the_words_and_the_socket)
{
    char error[256] = "";
    struct options options;

    ck_assert_int_eq(parse("ctl -s/run/a.sock upstreams drain app 127.0.0.1:1 --json", &options, error), 0);
    ck_assert_str_eq(options.socket, "/run/a.sock");
    ck_assert_uint_eq(options.file_count, 4);
    ck_assert_str_eq(options.files[0], "upstreams");
    ck_assert_str_eq(options.files[3], "127.0.0.1:1");
    ck_assert_int_eq(parse("ctl workers -s /run/b.sock", &options, error), 0);
    ck_assert_str_eq(options.socket, "/run/b.sock");
    ck_assert_uint_eq(options.file_count, 1);
}
END_TEST

START_TEST(rejects_command_lines)
{
    char error[256] = "";
    struct options options = {.port = 77};

    ck_assert_msg(parse(bad[_i].line, &options, error) == -EINVAL, "%s", bad[_i].line);
    ck_assert_msg(strstr(error, bad[_i].error), "%s: %s", bad[_i].line, error);
    ck_assert_uint_eq(options.port, 77);
}
END_TEST

START_TEST(long_arguments_are_truncated)
{
    char word[1024];
    char error[256];
    char *argv[] = {(char *)(uintptr_t) "sluice", word, NULL};
    struct options options;

    memset(word, 'x', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    ck_assert_int_eq(options_parse(2, argv, &options, error, sizeof(error)), -EINVAL);
    ck_assert_uint_lt(strlen(error), sizeof(error));
}
END_TEST

START_TEST(usage_is_short)
{
    unsigned lines = 0;

    for (const char *at = options_usage(); (at = strchr(at, '\n')); at++)
        lines++;
    ck_assert_uint_le(lines, 40);
}
END_TEST

START_TEST(finds_the_configuration)
{
    static const struct {
        const char *line;
        const char *path;
    } cases[] = {
        {"-c a.yaml", "a.yaml"},
        {"-c a.yaml -p /srv", "/srv/a.yaml"},
        {"-c /a.yaml -p /srv", "/a.yaml"},
        {"-p /srv", "/srv/conf/sluice.yaml"},
        {"-c - -p /srv", "-"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct options options;
        char error[256];
        char path[64];

        ck_assert_int_eq(parse(cases[i].line, &options, error), 0);
        ck_assert_str_eq(options_conf_path(&options, path, sizeof(path)), cases[i].path);
        ck_assert_ptr_null(options_conf_path(&options, path, 1));
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, reads_command_lines, 0, (int)(sizeof(good) / sizeof(good[0])));
    tcase_add_loop_test(tcase, rejects_command_lines, 0, (int)(sizeof(bad) / sizeof(bad[0])));
    tcase_add_test(tcase, ctl_keeps_the_words_and_the_socket);
    tcase_add_test(tcase, long_arguments_are_truncated);
    tcase_add_test(tcase, usage_is_short);
    tcase_add_test(tcase, finds_the_configuration);
}

int main(void)
{
    return run_suite("options", add_tests);
}
