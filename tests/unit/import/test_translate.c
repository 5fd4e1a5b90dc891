/* The translation of nginx's directives: the YAML, the notes, and that the loader accepts the YAML. */
#include "files.h"

#include "import/import.h"
#include "site/configuration.h"
#include "site/core.h"

#include <check.h>
#include <stdio.h>

struct hearing {
    struct import *import;
    bool changed;
};

static void check_errors(void *owner, const struct configuration *configuration, const struct conf_errors *errors)
{
    struct hearing *hearing = owner;

    for (unsigned i = 0; i < errors->count; i++) {
        const struct conf_error *error = &errors->items[i];
        int result = error->warning ? 0 : import_reject(hearing->import, error->mark.line, error->message);

        ck_assert_msg(result >= 0, "line %u: " STR_FMT, error->mark.line, STR_ARG(error->message));
        hearing->changed |= result == 1;
    }
}

/* Translates as the command does. Ends the YAML and the list with a NUL. */
static void translate(const struct memory_file *rows, struct buffer *yaml, struct buffer *list)
{
    const struct nginx_files files = memory_files(rows);
    const struct import_source source = {.path = STR("/etc/nginx/nginx.conf"),
                                         .files = &files,
                                         .schema = configuration_schema(),
                                         .media_type = core_type_built_in};
    struct hearing hearing = {.changed = true};
    struct nginx_fault fault = {0};
    struct log log = {0};
    struct arena arena;

    arena_init(&arena, NULL, 0);
    ck_assert_msg(import_read(&arena, &source, &hearing.import, &fault) == 0, "%u: " STR_FMT,
                  fault.place.line, STR_ARG(fault.message));
    for (unsigned round = 0; hearing.changed && round < 50; round++) {
        struct configuration_source loaded = {.test_only = true, .report = check_errors, .owner = &hearing};
        struct buffer diagnostics = {0};

        buffer_consume(yaml, yaml->length);
        ck_assert_int_eq(import_print(hearing.import, false, yaml), 0);
        loaded.text = buffer_str(yaml);
        hearing.changed = false;
        configuration_destroy(configuration_load(&loaded, &log, &diagnostics));
        buffer_finish(&diagnostics);
    }
    ck_assert(!hearing.changed);
    ck_assert_int_eq(import_list(hearing.import, "", list), 0);
    ck_assert_int_eq(buffer_append(yaml, str_of("", 1)), 0);
    ck_assert_int_eq(buffer_append(list, str_of("", 1)), 0);
    arena_reset(&arena);
}

/* Copies the text from the line of the key to the end of its indented block, without the indentation of that line. */
static void block_of(const char *yaml, const char *key, char *into, size_t size)
{
    const char *at = strstr(yaml, key);
    size_t indent = 0, length = 0;

    ck_assert_msg(at, "no \"%s\" in:\n%s", key, yaml);
    at += strspn(at, " ");
    while (at - indent > yaml && at[-1 - (ptrdiff_t)indent] != '\n')
        indent++;
    at = strchr(at, '\n') + 1;
    while (*at && strspn(at, " ") > indent) {
        size_t line = strcspn(at, "\n") + 1;

        ck_assert_uint_lt(length + line, size);
        memcpy(into + length, at + indent + 2, line - indent - 2);
        length += line - indent - 2;
        at += line;
    }
    into[length] = '\0';
}

#define LOST                                                                                                 \
    "# It was not carried over, so requests get 503 here. Replace this placeholder.\n"

/* The placeholder of a directive that was not carried over; in a server, and in a location of a server. */
#define PLACEHOLDER_IN_LINE(line, text, kind, value)                                                         \
    "# /etc/nginx/nginx.conf:" line ": " text "\n" LOST "import_lost_" kind ": " value "\n"
#define PLACEHOLDER(text, kind, value) PLACEHOLDER_IN_LINE("3", text, kind, value)
#define INNER_PLACEHOLDER(text, kind, value)                                                                 \
    "    # /etc/nginx/nginx.conf:3: " text "\n    " LOST "    import_lost_" kind ": " value "\n"

static const struct {
    const char *nginx; /* in a server */
    const char *yaml;  /* in that server, after its listen and its return */
    const char *noted; /* "": no notes; else a part of the list */
} servers[] = {
    {"root /srv/www;", "root: /srv/www\n", ""},
    {"root html;", "root: /usr/share/nginx/html\n", ""},
    {"root $document_root/x;", "root: $document_root/x\n", ""},
    {"index index.html index.htm;", "index: index.html index.htm\n", ""},
    {"server_name a.test *.b.test;\nserver_name c.test;", "server_name: a.test *.b.test c.test\n", ""},
    {"server_name _;", "server_name: _\n", ""},
    {"# above\nindex a; # behind", "# above\nindex: a # behind\n", ""},
    {"keepalive_timeout 65;", "keepalive_timeout: 65s\n", ""},
    {"keepalive_timeout 65 60;", "keepalive_timeout: 65s\n", "with another meaning here (1)"},
    {"client_max_body_size 10M;", "client_max_body_size: 10M\n", ""},
    {"server_tokens off;", "server_tokens: off\n", ""},
    {"status_zone a;\nlocation / { status_zone b; }", "status_zone: a\nlocation:\n  /:\n    status_zone: b\n", ""},
    {"add_header X-A \"b c\" always;\nadd_header X-B $Host;",
     "add_header:\n  - X-A \"b c\" always\n  - X-B $host\n", ""},
    {"add_header X-A \"b; \n   c\";", "add_header: X-A \"b; c\"\n", ""},
    {"add_header X-A \"say \\\"b\\\" c\";", "add_header: X-A \"say \\\"b\\\" c\"\n", ""},
    {"error_page 500 502 /50x.html;\nerror_page 404 = @x;\nlocation @x { return 204; }",
     "error_page:\n  - 500 502 /50x.html\n  - 404 = @x\nlocation:\n  '@x':\n    return: 204\n", ""},
    {"expires 3600;", "expires: 3600\n", ""},
    {"rewrite ^/a/(\\d+)$ /b?$1 last;", "rewrite: ^/a/(\\d+)$ /b?$1 last\n", ""},
    {"rewrite \"^/a{2}$\" /b permanent;", "rewrite: ^/a{2}$ /b permanent\n", ""},
    {"set $a 'x y';", "set: $a \"x y\"\n", ""},
    {"try_files $uri $uri/ /index.php?$args;", "try_files: $uri $uri/ /index.php?$args\n", ""},
    {"tcp_nopush on;", "", "not carried over, because it is not needed (1)"},
    {"frobnicate 7;", PLACEHOLDER("frobnicate 7", "access", "frobnicate") "# not carried over: frobnicate 7\n",
     "ANSWERED WITH 503 UNTIL IT IS REPLACED: sluice has no directive of that name"},
    {"more_set_headers a;\nssi on;", "# not carried over: more_set_headers a\n# not carried over: ssi on\n",
     "sluice has no directive of that name"},
    {"ssi on;", "# not carried over: ssi on\n", "no server-side includes"},
    {"log_format x y;", "# not carried over: log_format x y\n", "in sluice it is not allowed in server"},
    {"client_max_body_size lots;", "# not carried over: client_max_body_size lots\n", "'lots' is not a size"},
    {"include none.conf;",
     PLACEHOLDER("include none.conf", "access", "'include'") "# not carried over: include none.conf\n",
     "the file does not exist or cannot be read"},
    {"include snippets/fastcgi_params;", "# not carried over: include snippets/fastcgi_params\n",
     "the file does not exist or cannot be read"},
    {"allow 10.1.2.3/8;\ndeny all;\nallow 192.0.2.1;", "allow: 10.0.0.0/8\ndeny: all\n",
     "the rule in line 4 already covers this range"},
    {"deny 10.0.0.1;\nallow 10.0.0.0/8;\nallow 10.2.0.0/16;\ndeny all;",
     "deny:\n  - 10.0.0.1\n  - all\nallow: 10.0.0.0/8\n", "the rule in line 4 already covers this range"},
    {"location = /a { return 200 \"x y\"; }", "location:\n  = /a:\n    return: 200 \"x y\"\n", ""},
    {"location /a { }\nlocation ~* \\.(a|b)$ { }\nlocation ^~/c { }",
     "location:\n  /a: {}\n  ~* \\.(a|b)$: {}\n  ^~ /c: {}\n", ""},
    {"location /a { location /a/b { autoindex on; } }",
     "location:\n  /a:\n    location:\n      /a/b:\n        autoindex: on\n", ""},
    {"location /a { }\nlocation /a { }", "location:\n  /a: {}\n  # not carried over: location /a { }\n",
     "is a duplicate"},
    {"location /a { alias x/; }", "location:\n  /a:\n    alias: /usr/share/nginx/x/\n", ""},
    {"location ^~ /a/ { alias /x; }", "location:\n  ^~ /a/:\n    alias: /x\n",
     "nginx joins \"/x\" and the path after \"/a/\" without a slash"},
    {"location /a { internal; }", "location:\n  /a:\n    internal: on\n", ""},
    {"location /a { proxy_pass http://127.0.0.1:9; proxy_set_header Host $host; }",
     "location:\n  /a:\n    proxy_pass: http://127.0.0.1:9\n    proxy_set_header: Host $host\n", ""},
    {"location /a { proxy_pass https://127.0.0.1:9; }",
     "location:\n  /a:\n    proxy_pass: https://127.0.0.1:9\n    proxy_ssl_verify: off # as in nginx: the server's "
     "certificate is not verified; on is better\n",
     ""},
    {"location /a { limit_except GET POST { deny all; } }",
     "location:\n  /a:\n    limit_except:\n      GET POST:\n        deny: all\n", ""},
    {"location /a { if ($args) { return 400; } limit_except GET { deny all; } }",
     "location:\n  /a:\n    when:\n      $args:\n        return: 400\n    limit_except:\n      GET:\n"
     "        deny: all\n",
     "in sluice no if is evaluated for the other methods"},
    {"ssl_session_cache shared:SSL:10m;\nssl_dhparam dh.pem;\nssl_conf_command Options KTLS;",
     "ssl_session_cache: shared:SSL:10m\nssl_dhparam: /etc/nginx/dh.pem\nssl_conf_command: Options KTLS\n", ""},
    {"gunzip on;\ngunzip_buffers 32 4k;\ngzip_static always;", "gunzip: on\ngzip_static: always\n",
     "the sizes of memory areas cannot be set"},
    /* if */
    {"if ($host = a.test) { return 301 https://b.test$request_uri; }",
     "when:\n  $host = a.test:\n    return: 301 https://b.test$request_uri\n", ""},
    {"if ($request_method !~ ^(GET|HEAD)$ ) { return 405; }",
     "when:\n  $request_method !~ ^(GET|HEAD)$:\n    return: 405\n", ""},
    {"if ($args) { return 400; }\nif (!-f $request_filename) { return 410; }",
     "when:\n  $args:\n    return: 400\n  '!-f $request_filename':\n    return: 410\n", ""},
    {"if ($http_x = \"\") { return 400; }", "when:\n  $http_x = \"\":\n    return: 400\n", ""},
    {"if ($http_x ~ \"a b\") { return 400; }", "when:\n  $http_x ~ \"a b\":\n    return: 400\n", ""},
    {"if ($args ~ a) { set $x 1; }\nif ($args ~ b) { set $x 2; }",
     "set:\n  - $x $import_if_1\n  - $x $import_if_2\n", ""},
    {"if (-f /a) { set $x 1; }\nif ($args ~ b) { set $x 2; }",
     PLACEHOLDER("if (-f /a)", "access", "if") "set: $x $import_if_1\n# not carried over: if (-f /a) { }\n",
     "ANSWERED WITH 503"},
    {"set $x 0;\nif ($nowhere) { set $x 1; }\nif ($x) { return 403; }",
     PLACEHOLDER_IN_LINE("4", "if ($nowhere)", "access", "if")
     "set:\n  - $x 0\n  # not carried over: if ($nowhere) { }\nwhen:\n  $x:\n    return: 403\n",
     "ANSWERED WITH 503"},
    {"if ($args ~ a) { set $x 1; }", "when:\n  $args ~ a:\n    set: $x 1\n", ""},
    {"if (-x /a) { return 400; }",
     PLACEHOLDER("if (-x /a)", "access", "if") "# not carried over: if (-x /a) { }\n", "there is no such condition"},
    {"location / { if ($args) { rewrite ^ /b? break; break; } }",
     "location:\n  /:\n    when:\n      $args:\n        rewrite: ^ /b? break\n", "(1)"},
    {"if ($args) { set $x 1; }\nlocation / { if ($host) { return 400; } }",
     "set: $x $import_if_1\nlocation:\n  /:\n    when:\n      $host:\n        return: 400\n", ""},
    {"location / { if ($args) { return 400; } rewrite ^/a /b; }",
     "location:\n  /:\n    rewrite: ^/a /b\n    when:\n      $args:\n        rewrite: []\n        return: "
     "400\n",
     ""},
    {"if ($args) { rewrite ^ /b last; }", "when:\n  $args:\n    rewrite: ^ /b last\n", ""},
    {"if ($args) { rewrite ^ /b break; }",
     PLACEHOLDER("if ($args)", "access", "if") "# not carried over: if ($args) { }\n", "with last"},
    {"if ($args) { rewrite ^/a /b last; }",
     PLACEHOLDER("if ($args)", "access", "if") "# not carried over: if ($args) { }\n", "with last"},
    {"if ($args) { rewrite ^ /b redirect; }", "when:\n  $args:\n    rewrite: ^ /b redirect\n", ""},
    {"if (!-e $request_filename) { rewrite ^(.*)$ /b last; }",
     "when:\n  '!-e $request_filename':\n    rewrite: ^(.*)$ /b last\n", ""},
    {"location / { if ($args) { break; } set $a b; }",
     "location:\n  /:\n" INNER_PLACEHOLDER("if ($args)", "access", "if")
     "    set: $a b\n    # not carried over: if ($args) { }\n",
     "there is no break that skips"},
    {"deny 10.0.0.0/99;",
     PLACEHOLDER("deny 10.0.0.0/99", "access", "deny") "# not carried over: deny 10.0.0.0/99\n",
     "ANSWERED WITH 503 UNTIL IT IS REPLACED: "},
    {"rewrite ^/a /b;\nif ($args) { return 400; }", "rewrite: ^/a /b\nwhen:\n  $args:\n    return: 400\n",
     "in sluice it is evaluated before the rewrite in line 3"},
    {"rewrite ^/a /b;\nif (!-f $request_filename) { return 400; }",
     PLACEHOLDER_IN_LINE("4", "if (!-f $request_filename)", "access", "if")
     "rewrite: ^/a /b\n# not carried over: if (!-f $request_filename) { }\n", "when precedes rewrite"},
    {"location / { if ($args) { add_header X-A b; } try_files /a =404; }",
     "location:\n  /:\n    try_files: /a =404\n    when:\n      $args:\n        add_header: X-A b\n",
     "nginx ignores try_files if this is true"},
    {"location /a/ { proxy_pass http://127.0.0.1:9; }",
     "location:\n  /a/:\n    proxy_pass: http://127.0.0.1:9\n  # nginx adds this redirect to a location that "
     "passes requests on.\n  "
     "= /a:\n    return: 301 /a/$is_args$args\n",
     ""},
    {"location /a/ { proxy_pass http://127.0.0.1:9; }\nlocation = /a { return 204; }",
     "location:\n  /a/:\n    proxy_pass: http://127.0.0.1:9\n  = /a:\n    return: 204\n", ""},
    {"location / { rewrite ^/a /b; set $c $1; }", "location:\n  /:\n    rewrite: ^/a /b\n    set: $c $1\n",
     "all set directives precede when and rewrite"},
    {"location / { return 204; rewrite ^ /b; }", "location:\n  /:\n    return: 204\n",
     "never reached: line 3 ends the rewrite rules"},
    {"location / { return 204; deny all; }", "location:\n  /:\n    return: 204\n    deny: all\n",
     "sluice checks access rules before return"},
    /* A directive that responds or restricts access is lost: the server responds with 503. */
    {"location / { root /app; uwsgi_pass unix:/x; }",
     "location:\n  /:\n" INNER_PLACEHOLDER("uwsgi_pass unix:/x", "handler",
                                    "uwsgi_pass") "    root: /app\n    # not carried over: uwsgi_pass unix:/x\n",
     "ANSWERED WITH 503 UNTIL IT IS REPLACED: use HTTP or FastCGI between sluice and the application"},
    {"auth_jwt \"closed\";",
     PLACEHOLDER("auth_jwt closed", "access", "auth_jwt") "# not carried over: auth_jwt closed\n",
     "ANSWERED WITH 503"},
    {"location / { auth_jwt off; auth_delay 1s; }",
     "location:\n  /:\n" INNER_PLACEHOLDER("auth_jwt off", "access", "auth_jwt")
     "    # not carried over: auth_jwt off\n    # not carried over: auth_delay 1s\n",
     "ANSWERED WITH 503"},
    {"location / { if ($nowhere) { return 403; } if ($nowhere) { add_header X y; } }",
     "location:\n  /:\n" INNER_PLACEHOLDER("if ($nowhere)", "access", "if")
     "    # not carried over: if ($nowhere) { }\n    # not carried over: if ($nowhere) { }\n",
     "ANSWERED WITH 503"},
    {"location / { if ($nowhere) { add_header X y; } }",
     "location:\n  /: {}\n    # not carried over: if ($nowhere) { }\n", "unknown variable $nowhere"},
    {"location ~ ( { deny all; }",
     PLACEHOLDER("location ~ (", "access", "location") "# not carried over: location ~ ( { }\n", "ANSWERED WITH 503"},
    {"location / { limit_except GET { auth_ldap on; } }",
     "location:\n  /:\n    limit_except:\n      GET:\n        # /etc/nginx/nginx.conf:3: auth_ldap on\n        " LOST
     "        import_lost_access: auth_ldap\n        # not carried over: auth_ldap on\n",
     "ANSWERED WITH 503"},
    {"location / { deny 10.0.0.0/99; deny 10.0.0.0/88; }",
     "location:\n  /:\n    import_lost_access:\n      # /etc/nginx/nginx.conf:3: deny 10.0.0.0/99\n      " LOST
     "      - deny\n      # /etc/nginx/nginx.conf:3: deny 10.0.0.0/88\n      " LOST
     "      - deny\n    # not carried over: deny 10.0.0.0/99\n    # not carried over: deny 10.0.0.0/88\n",
     "ANSWERED WITH 503"},
    {"location / { content_by_lua_file a; }",
     "location:\n  /:\n" INNER_PLACEHOLDER("content_by_lua_file a", "handler",
                                    "content_by_lua_file") "    # not carried over: content_by_lua_file a\n",
     "ANSWERED WITH 503"},
    {"location / { content_by_lua_block { ngx.say(\"}\") -- } it's\n local a = {[[}]], "
     "'\\'}', [==[}]]]==]} --[[ } ]] } }",
     "location:\n  /:\n" INNER_PLACEHOLDER("content_by_lua_block", "handler", "content_by_lua_block")
     "    # not carried over: content_by_lua_block { }\n",
     "ANSWERED WITH 503"},
    {"access_by_lua_file a;\nlog_by_lua_file b;\nsub_filter a b;",
     PLACEHOLDER("access_by_lua_file a", "access", "access_by_lua_file")
     "# not carried over: access_by_lua_file a\n# not carried over: log_by_lua_file b\n"
     "# not carried over: sub_filter a b\n",
     "ANSWERED WITH 503"},
    {"location / { proxy_pass http://127.0.0.1:9; proxy_ignore_headers Expires; proxy_ignore_headers Vary; }",
     "location:\n  /:\n    proxy_pass: http://127.0.0.1:9\n    proxy_ignore_headers: Expires Vary\n", ""},
    {"gzip_proxied expired;\ngzip_proxied auth;", "gzip_proxied: expired auth\n", ""},
    {"proxy_set_header Content-Length \"\";\nproxy_set_header X-A b;", "proxy_set_header: X-A b\n",
     "not carried over, because it is not needed (1)"},
    {"location \"/a b/$c/\" { proxy_pass http://127.0.0.1:9; }",
     "location:\n  /a b/$c/:\n    proxy_pass: http://127.0.0.1:9\n  # nginx adds this redirect to a location that "
     "passes requests on.\n  = /a b/$c:\n    return: 301 /a%20b/$$c/$is_args$args\n",
     ""},
    {"location / { return 200 \"a;b\"; }", "location:\n  /:\n    return: 200 a;b\n", ""},
    /* inheritance */
    {"add_header X-A b;\nlocation / { add_header X-C d; }",
     "add_header: X-A b\nlocation:\n  /:\n    add_header: X-C d\n",
     "in nginx this replaces the directives of outer scopes, such as X-A in line 3"},
    {"add_header X-A b;\nlocation / { add_header X-A d; }",
     "add_header: X-A b\nlocation:\n  /:\n    add_header: X-A d\n", ""},
    /* logs */
    {"access_log logs/a.log;", "access_log: /usr/share/nginx/logs/a.log combined\n", ""},
    {"access_log off;", "access_log: off\n", ""},
    {"access_log /a main \"if=$Uri x\";", "access_log: /a main \"if=$uri x\"\n", ""},
    {"access_log /$host.log;", "# not carried over: access_log /$host.log\n", "a log has one name"},
    {"error_log /e.log warn;", "", "it applies to all servers in sluice"},
    {"ssl_protocols TLSv1 TLSv1.2 TLSv1.3;", "ssl_protocols: TLSv1.2 TLSv1.3\n", "RFC 8996"},
    {"ssl_protocols SSLv3;", "# not carried over: ssl_protocols SSLv3\n", "RFC 8996"},
};

/* The case is in line 3, after "listen" in line 2. */
START_TEST(directives_in_a_server_are_translated)
{
    char text[2048], got[4096];
    struct buffer yaml = {0};
    struct buffer list = {0};

    snprintf(text, sizeof(text), "http { server {\nlisten 8081;\n%s\n} }", servers[_i].nginx);
    const struct memory_file rows[] = {{"/etc/nginx/nginx.conf", text}, {NULL, NULL}};

    translate(rows, &yaml, &list);
    block_of(yaml.data, "  server:", got, sizeof(got));
    {
        const char *listen = strstr(got, "listen: 8081\n");
        char shown[4096] = "";
        size_t length = 0;

        ck_assert_msg(strncmp(got, "- listen: 8081\n", 15) == 0 || strncmp(got, "-\n  # /etc", 10) == 0, "%s",
                      yaml.data);
        ck_assert(listen);
        for (const char *line = got[1] == ' ' ? got + 15 : got + 2; *line; line += strcspn(line, "\n") + 1) {
            size_t rest = strcspn(line, "\n") + 1;

            ck_assert_msg(strncmp(line, "  ", 2) == 0, "%s", got);
            if (line + 2 == listen)
                continue;
            memcpy(shown + length, line + 2, rest - 2);
            length += rest - 2;
        }
        shown[length] = '\0';
        ck_assert_str_eq(shown, servers[_i].yaml);
    }
    if (servers[_i].noted[0])
        ck_assert_msg(strstr(list.data, servers[_i].noted), "no \"%s\" in:\n%s", servers[_i].noted,
                      list.data);
    else
        ck_assert_str_eq(list.data, "");
    buffer_finish(&yaml);
    buffer_finish(&list);
}
END_TEST

static const struct {
    const char *nginx, *key, *yaml, *noted;
} others[] = {
    {"user www-data; worker_processes 2; events { worker_connections 768; debug_connection ::1; debug_connection a.b; "
     "} http { server { return 204; } }",
     "events:", "worker_connections: 768\ndebug_connection:\n  - '::1'\n  # not carried over: debug_connection a.b\n",
     "is not an address or a range of addresses"},
    {"http { map $http_upgrade $kind { default upgrade; '' close; ~^a$ b; } server { return 204; } }",
     "  map:", "$http_upgrade $kind:\n  default: upgrade\n  '': close\n  ~^a$: b\n", ""},
    {"http { map $host $x { hostnames; *.a.test 1; } server { return 204; } }",
     "  map:", "$host $x:\n  hostnames: on\n  '*.a.test': 1\n", ""},
    {"http { geo $x { default 0; 10.1.2.3/8 1; } server { return 204; } }",
     "  geo:", "$x:\n  default: 0\n  10.0.0.0/8: 1\n", ""},
    {"http { geo $x { ranges; 10.0.0.0-10.0.0.9 1; } server { return 204; } }", "http:",
     "# Defaults of nginx that differ from sluice's: delete those that you do not need.\n"
     "absolute_redirect: on\ncharset: off\ndefault_type: text/plain\ndisable_symlinks: off\nhttp2: off\n"
     "# not carried over: geo $x { }\nserver:\n  - listen: 80\n    return: 204\n",
     "it has \"ranges\""},
    {"http { server { if ($m = \"a.B\") { set $x 1; } if ($m != '') { set $x \"${x}2\"; } if ($m) { set $x 3; } "
     "return 204; } "
     "map $host $m { default 1; } }",
     "  map:",
     "$host $m:\n  default: 1\n# /etc/nginx/nginx.conf:1: variables that the if sets.\n$m $import_if_1:\n  default: "
     "$x\n"
     "  ~^a\\.B\\z: 1\n# /etc/nginx/nginx.conf:1: variables that the if sets.\n$m $import_if_2:\n  default: ${x}2\n  "
     "'': $x\n"
     "# /etc/nginx/nginx.conf:1: variables that the if sets.\n$m $import_if_3:\n  default: 3\n  '': $x\n  0: $x\n",
     ""},
    {"http { server { listen 127.0.0.1:85 ssl; ssl_certificate none.pem; ssl_certificate_key none.key; return 204; } "
     "server { listen 127.0.0.1:85; server_name b; return 204; } }",
     "  server:",
     "- listen: 127.0.0.1:85 ssl\n  ssl_certificate: /etc/nginx/none.pem\n  ssl_certificate_key: "
     "/etc/nginx/none.key\n  return: 204\n- ssl_certificate: /etc/nginx/none.pem\n  ssl_certificate_key: "
     "/etc/nginx/none.key\n  listen: 127.0.0.1:85 ssl\n  server_name: b\n  return: 204\n",
     "but it does not load on this machine"},
    {"http { server { listen 127.0.0.1:85; return 204; } server { listen 127.0.0.1:85 proxy_protocol; server_name b; "
     "return 204; } }",
     "  server:",
     "- listen: 127.0.0.1:85 proxy_protocol\n  return: 204\n- listen: 127.0.0.1:85 proxy_protocol\n  server_name: "
     "b\n  return: 204\n",
     ""},
    {"pid /p; http { server { return 204; } } stream { map $nowhere $x { a b; } server { listen 86; proxy_timeout 1s; "
     "proxy_pass $x; } }",
     "http:",
     "# Defaults of nginx that differ from sluice's: delete those that you do not need.\n"
     "absolute_redirect: on\ncharset: off\ndefault_type: text/plain\ndisable_symlinks: off\nhttp2: off\n"
     "server:\n  - listen: 80\n    return: 204\n",
     "stream\n      no server in it could be carried over"},
    {"http { server { location / { proxy_pass http://127.0.0.1:9; } } proxy_set_header Via mine; }",
     "  proxy_set_header:",
     "- Via $http_via\n- Forwarded $http_forwarded\n- X-Forwarded-For $http_x_forwarded_for\n"
     "- X-Forwarded-Host $http_x_forwarded_host\n- X-Forwarded-Port $http_x_forwarded_port\n"
     "- X-Forwarded-Proto $http_x_forwarded_proto\n- X-Forwarded-Server $http_x_forwarded_server\n"
     "- X-Real-IP $http_x_real_ip\n- Via mine\n",
     ""},
    {"http { types { text/html html htm; text/x-a a b; } server { return 204; } }",
     "  types:", "text/x-a: a b\n", ""},
    {"http { geo $x { include none; 10.0.0.0/8 1; } server { if ($x) { return 403; } } }", "  server:",
     "-\n  # /etc/nginx/nginx.conf:1: if ($x)\n  " LOST
     "  import_lost_access: if\n  listen: 80\n  # not carried over: if ($x) { }\n",
     "without this line the variable would be wrong"},
    {"http { map $uri $x { ~( 1; } server { if ($x) { return 403; } } }", "  server:",
     "-\n  # /etc/nginx/nginx.conf:1: if ($x)\n  " LOST
     "  import_lost_access: if\n  listen: 80\n  # not carried over: if ($x) { }\n",
     "missing closing parenthesis"},
    {"http { server { listen 443 quic; return 204; } }", "  server:",
     "-\n  # /etc/nginx/nginx.conf:1: listen 443 quic\n  " LOST
     "  import_lost_access: listen\n  # not carried over: listen 443 quic\n  return: 204\n",
     "HTTP/3 is not supported"},
    {"stream { server { listen 86; js_access x; proxy_pass 127.0.0.1:9; } }", "  server:",
     "-\n  # /etc/nginx/nginx.conf:1: js_access x\n  " LOST
     "  import_lost_access: js_access\n  listen: 86\n  # not carried over: js_access x\n  proxy_pass: 127.0.0.1:9\n",
     "ANSWERED WITH 503"},
    {"http { types { include none; text/x-a a; } server { return 204; } }", "  types:",
     "# not carried over: include none\ntext/x-a: a\n", "the file does not exist or cannot be read"},
    {"http { upstream include { server 127.0.0.1:9; } server { return 204; } }", "  upstream:",
     "'include':\n  server: 127.0.0.1:9\n", ""},
    {"http { log_format a '$remote_addr ' \"$status\"; log_format j escape=json '{\"a\":\"$uri\"}'; server { "
     "return 204; } }",
     "  log_format:", "a: $remote_addr $status\nj:\n  escape: json\n  format: '{\"a\":\"$uri\"}'\n", ""},
    {"http { upstream b { server 127.0.0.1:9 weight=2 fail_timeout=5; server 127.0.0.1:8 backup; keepalive "
     "8; least_conn; } server { return 204; } "
     "}",
     "  upstream:",
     "b:\n  server:\n    - 127.0.0.1:9 weight=2 fail_timeout=5s\n    - 127.0.0.1:8 backup\n  keepalive: 8\n  "
     "least_conn: on\n",
     ""},
    {"http { server { listen [::]:81 ipv6only=on default_server reuseport; listen *:82; listen 127.0.0.1; "
     "listen localhost:83 "
     "backlog=9; return 204; } }",
     "  server:",
     "- listen:\n    - '[::]:81 default_server'\n    - 82\n    - 127.0.0.1:80\n    - 127.0.0.1:83 "
     "backlog=9\n  return: 204\n",
     ""},
    {"http { server { listen 443 quic; listen 84 http2; return 204; } }", "  server:",
     "-\n  # not carried over: listen 443 quic\n  listen: 84\n  http2: on\n  return: 204\n", "HTTP/3 is not supported"},
    {"http { server { return 301 https://$host; location / { root /x; } } }", "  server:",
     "- listen: 80\n  return: 301 https://$host\n", "never reached: line"},
    {"http { server { resolver 127.0.0.1 valid=30; return 204; } }", "http:",
     "# Defaults of nginx that differ from sluice's: delete those that you do not need.\n"
     "absolute_redirect: on\ncharset: off\ndefault_type: text/plain\ndisable_symlinks: off\nhttp2: off\n"
     "server:\n  - listen: 80\n    return: 204\nresolver: 127.0.0.1 valid=30s\n",
     "in sluice it is set in http"},
    {"http { otel_exporter { endpoint 127.0.0.1:4317; } server { return 204; } }", "  server:",
     "- listen: 80\n  return: 204\n", "write otel_exporter: {endpoint: \"http://HOST:4318\"}"},
    {"stream { upstream b { server 127.0.0.1:9;} server { listen 86; proxy_pass b; proxy_timeout 5; status_zone s; } }",
     "stream:",
     "# Defaults of nginx that differ from sluice's: delete those that you do not need.\n"
     "proxy_half_close: off\nupstream:\n  b:\n    server: 127.0.0.1:9\nserver:\n  - listen: 86\n    "
     "proxy_pass: b\n    proxy_timeout: 5s\n    status_zone: s\n", ""},
    {"stream { map $ssl_preread_server_name $to { hostnames; *.a.test b; default 127.0.0.1:8; } geo $in { default n; "
     "10.0.0.0/8 y; } upstream b { server 127.0.0.1:9; } server { listen 86; ssl_preread on; proxy_pass $to; } }",
     "  map:",
     "$ssl_preread_server_name $to:\n  hostnames: on\n  '*.a.test': b\n  default: 127.0.0.1:8\n", ""},
    {"stream { geo $in { default n; 10.0.0.0/8 y; } server { listen 86; return $in; } }", "  geo:",
     "$in:\n  default: n\n  10.0.0.0/8: y\n", ""},
    {"http { server { listen 85 ssl; ssl_certificate none.pem; ssl_certificate_key none.key; return 204; } }",
     "  server:",
     "- listen: 85 ssl\n  ssl_certificate: /etc/nginx/none.pem\n  ssl_certificate_key: /etc/nginx/none.key\n "
     " return: 204\n",
     "but it does not load on this machine"},
};

START_TEST(directives_in_other_scopes_are_translated)
{
    const struct memory_file rows[] = {{"/etc/nginx/nginx.conf", others[_i].nginx}, {NULL, NULL}};
    struct buffer yaml = {0};
    struct buffer list = {0};
    char got[4096];

    translate(rows, &yaml, &list);
    block_of(yaml.data, others[_i].key, got, sizeof(got));
    ck_assert_str_eq(got, others[_i].yaml);
    if (others[_i].noted[0])
        ck_assert_msg(strstr(list.data, others[_i].noted), "no \"%s\" in:\n%s", others[_i].noted, list.data);
    else
        ck_assert_str_eq(list.data, "");
    buffer_finish(&yaml);
    buffer_finish(&list);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import_translate");
    TCase *tcase = tcase_create("translate");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_loop_test(tcase, directives_in_a_server_are_translated, 0, (int)(sizeof(servers) / sizeof(servers[0])));
    tcase_add_loop_test(tcase, directives_in_other_scopes_are_translated, 0, (int)(sizeof(others) / sizeof(others[0])));
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
