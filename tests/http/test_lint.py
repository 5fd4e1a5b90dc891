"""`sluice lint`: every rule reports a configuration with the fault at the right line, and does not report a similar one without it; and
the four output formats."""
import datetime
import glob
import json
import os
import re
import subprocess

import jsonschema
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kit import server as server_kit

# rule: (a configuration that it reports, line of the finding, words of the message, a configuration that it does not report). {server},
# {tls} and {files} are replaced by the beginning of a server (PIECES).
RULES = {
    'user-root': ('user: root\n{server}', 1, 'rights of root', 'user: nobody\n{server}'),
    'error-log': ('error_log: {{path: stderr, level: debug}}\n{server}', 1, 'level debug', 'error_log: stderr info\n{server}'),
    'no-default-server': ('http:\n  server:\n  - {{listen: 8080, server_name: a, return: 404}}\n'
                          '  - {{listen: 8080, server_name: b, return: 404}}\n', 3, 'is the first one',
                          'http:\n  server:\n  - {{listen: 8080, server_name: a, return: 404}}\n'
                          '  - {{listen: 8080 default_server, server_name: b, return: 404}}\n'),
    'unused-upstream': ('http:\n  upstream:\n    one: {{server: 127.0.0.1:1}}\n  server: {{listen: 8080, return: 404}}\n', 3, '"one"',
                        'http:\n  upstream:\n    one: {{server: 127.0.0.1:1}}\n  server:\n    listen: 8080\n    location:\n'
                        '      /: {{proxy_pass: "http://one/"}}\n'),
    'unused-format': ('http:\n  log_format:\n    mine: $uri\n  server: {{listen: 8080, return: 404}}\n', 3, '"mine"',
                      'http:\n  log_format:\n    mine: $uri\n  access_log: {{path: stdout, format: mine}}\n'
                      '  server: {{listen: 8080, return: 404}}\n'),
    'unused-location': ('{server}      location:\n        /: {{root: www}}\n        "@app": {{return: 200 app}}\n', 6, '@app',
                        '{server}      location:\n        /: {{root: www, try_files: [$uri, "@app"]}}\n        "@app": {{return: 200 app}}\n'),
    'long-timeout': ('{server}      send_timeout: 1h\n', 4, 'connection of an idle client open for 60 minutes', '{server}      send_timeout: 1m\n'),
    'unlimited-body': ('{server}      client_max_body_size: 0\n', 4, 'is not limited', '{server}      client_max_body_size: 1g\n'),
    'weak-cipher': ('{tls}      ssl_ciphers: ECDHE-RSA-AES128-SHA:ECDHE-RSA-AES128-GCM-SHA256\n', 5, 'ECDHE-RSA-AES128-SHA: it is not an AEAD',
                    '{tls}      ssl_ciphers: ECDHE-RSA-AES128-GCM-SHA256\n'),
    'old-protocol': ('{tls}      ssl_protocols: TLSv1.2\n', 5, 'TLS 1.3 is off', '{tls}      ssl_protocols: [TLSv1.2, TLSv1.3]\n'),
    'expired-certificate': ('{files}      ssl_certificate: expired.crt\n      ssl_certificate_key: expired.key\n', 4, 'has expired',
                            '{files}      ssl_certificate: good.crt\n      ssl_certificate_key: good.key\n'),
    'certificate-name': ('{files}      ssl_certificate: other.crt\n      ssl_certificate_key: other.key\n', 4, '"www.example.org"',
                         '{files}      ssl_certificate: good.crt\n      ssl_certificate_key: good.key\n'),
    'self-signed': ('{files}      ssl_certificate: self-signed\n', 4, 'warning for "www.example.org"',
                    '{files}      ssl_certificate: good.crt\n      ssl_certificate_key: good.key\n'),
    'readable-key': ('{files}      ssl_certificate: good.crt\n      ssl_certificate_key: open.key\n', 5, 'all users',
                     '{files}      ssl_certificate: good.crt\n      ssl_certificate_key: good.key\n'),
    'unreachable-location': ('{server}      location:\n        ~ ^/: {{return: 200 a}}\n        /b/: {{return: 200 b}}\n', 6,
                             '"/b/" is never reached: "~ ^/"',
                             '{server}      location:\n        ~ ^/: {{return: 200 a}}\n        ^~ /b/: {{return: 200 b}}\n'
                             '        = /c: {{return: 200 c}}\n'),
    'return-before-locations': ('{server}      return: 301 /b\n      location:\n        /b: {{root: www}}\n', 4, '"/b"',
                                '{server}      location:\n        /: {{return: 301 /b}}\n        /b: {{root: www}}\n'),
    'nothing-answers': ('{server}      location:\n        /a: {{expires: 1h}}\n', 5, '"/a"',
                        '{server}      root: www\n      location:\n        /a: {{expires: 1h}}\n'),
    'loose-regex': ('{server}      location:\n        ~ \\.php: {{return: 404}}\n', 5, 'matches at any place',
                    '{server}      location:\n        ~ \\.php$: {{return: 404}}\n'),
    'loose-name': ('{server}      server_name: ~www\\.example\\.com\n      return: 404\n', 4, 'parts of other names',
                   '{server}      server_name: ~^www\\.example\\.com$\n      return: 404\n'),
    'redirect-loop': ('{tls}      return: 301 https://$host$request_uri\n', 5, 'leads back to this server',
                      '{server}      return: 301 https://$host$request_uri\n'),
    'host-of-client': ('{server}      return: 301 https://$http_host$request_uri\n', 4, 'is not checked',
                       '{server}      return: 301 https://$host$request_uri\n'),
    'alias-slash': ('{server}      location:\n        /a: {{alias: www/}}\n', 5, 'do not both end with a slash',
                    '{server}      location:\n        /a/: {{alias: www/}}\n'),
    'open-autoindex': ('{server}      root: www\n      autoindex: on\n', 5, 'all clients can list',
                       '{server}      root: www\n      location:\n        /a/: {{autoindex: on, deny: all, allow: 10.0.0.0/8}}\n'),
    'root-of-system': ('{server}      root: /etc/\n', 4, 'a directory of the system', '{server}      root: www\n'),
    'sandbox-wide': ('sandbox: on\n{server}      root: www/$host\n', 5, 'all files in "', 'sandbox: on\n{server}      root: www\n'),
    'secret-served': ('{server}      root: .\n', 4, 'contains the configuration',
                      '{files}      root: www\n      ssl_certificate: good.crt\n      ssl_certificate_key: good.key\n'),
    'try-files-last': ('{server}      root: www\n      try_files: [/a, $uri]\n', 5, 'leads back to this location',
                       '{server}      root: www\n      try_files: [$uri, =404]\n'),
    'header-dropped': ('{server}      root: www\n      add_header: X-Frame-Options DENY always\n      location:\n'
                       '        /a: {{add_header: {{x-frame-options: {{value: SAMEORIGIN, always: on}}}}}}\n', 7, 'dropped here',
                       '{server}      root: www\n      add_header: X-Frame-Options DENY always\n      location:\n'
                       '        /a: {{add_header: {{X-Other: 1}}}}\n'),
    'header-not-always': ('{server}      root: www\n      add_header: X-Frame-Options DENY\n', 5, 'not sent with error responses',
                          '{server}      root: www\n      add_header: [X-Frame-Options DENY always, X-Other 1]\n'),
    'header-twice': ('{server}      root: www\n      add_header: Cache-Control no-cache\n      location:\n        /a: {{expires: 1h}}\n', 5,
                     'is sent twice', '{server}      root: www\n      add_header: X-Cache no\n      expires: 1h\n'),
    'weak-hsts': ('{tls}      root: www\n      add_header: Strict-Transport-Security max-age=3600 always\n', 6, 'half a year',
                  '{tls}      root: www\n      add_header: Strict-Transport-Security max-age=31536000 always\n'),
    'allow-without-deny': ('{server}      root: www\n      allow: 10.0.0.0/8\n', 5, 'has no effect',
                           '{server}      root: www\n      allow: 10.0.0.0/8\n      deny: all\n'),
    'open-status': ('{server}      location:\n        = /status: {{status: on}}\n', 5, 'can be read by all clients',
                    '{server}      location:\n        = /status: {{status: on, allow: 127.0.0.1, deny: all}}\n'),
    'plain-password': ('{server}      root: www\n      auth_basic: Members\n      auth_basic_user_file: users\n', 5, 'in clear text',
                       '{tls}      root: www\n      auth_basic: Members\n      auth_basic_user_file: users\n'),
    'trusts-everybody': ('{server}      root: www\n      set_real_ip_from: [10.0.0.0/8, "::/0"]\n', 5, 'every peer is trusted',
                         '{server}      root: www\n      set_real_ip_from: 10.0.0.0/8\n'),
    'proxy-to-anywhere': ('{server}      location:\n        /: {{proxy_pass: "http://$arg_to/"}}\n', 5, '"$arg_to"',
                          '{server}      location:\n        /: {{proxy_pass: "http://127.0.0.1:9/$arg_to"}}\n'),
    'proxy-unverified': ('{server}      location:\n        /: {{proxy_pass: "https://127.0.0.1:9", proxy_ssl_verify: off}}\n', 5,
                         'not verified', '{server}      location:\n        /: {{proxy_pass: "https://127.0.0.1:9"}}\n'),
    'proxy-slash': ('{server}      location:\n        /api: {{proxy_pass: "http://127.0.0.1:9/"}}\n', 5, 'do not both end with a slash',
                    '{server}      location:\n        /api/: {{proxy_pass: "http://127.0.0.1:9/"}}\n        /: {{proxy_pass: "http://127.0.0.1:9"}}\n'),
    'php-unchecked': ('{server}      root: www\n      location:\n        ~ \\.php$: {{fastcgi_pass: "unix:/run/php.sock"}}\n', 6, '/avatar.jpg',
                      '{server}      root: www\n      location:\n'
                      '        ~ \\.php$: {{fastcgi_pass: "unix:/run/php.sock", try_files: $uri =404}}\n'),
    'unknown-upstream': ('http:\n  upstream: {{backend: {{server: 127.0.0.1:9}}}}\n  server:\n    listen: 8080\n    location:\n'
                         '      /a/: {{proxy_pass: "http://backend"}}\n      /: {{proxy_pass: "http://backnd"}}\n', 7, '"backnd"',
                         'http:\n  upstream: {{backend: {{server: 127.0.0.1:9}}}}\n  server:\n    listen: 8080\n    location:\n'
                         '      /a/: {{proxy_pass: "http://backend"}}\n      /: {{proxy_pass: "http://app:9000"}}\n'),
    'cached-cookie': ('http:\n  proxy_cache_path: {{path: cache, keys_zone: "c:1m"}}\n  server:\n    - listen: 8080\n      location:\n'
                      '        /:\n          proxy_pass: http://127.0.0.1:9\n          proxy_cache: c\n'
                      '          proxy_ignore_headers: Set-Cookie\n', 9, 'the cookie of one client',
                      'http:\n  proxy_cache_path: {{path: cache, keys_zone: "c:1m"}}\n  server:\n    - listen: 8080\n      location:\n'
                      '        /:\n          proxy_pass: http://127.0.0.1:9\n          proxy_cache: c\n'
                      '          proxy_ignore_headers: Set-Cookie\n          proxy_hide_header: Set-Cookie\n'),
}
PIECES = {'server': 'http:\n  server:\n    - listen: 8080\n',
          'tls': 'http:\n  server:\n    - listen: 8443 ssl\n      ssl_certificate: self-signed\n',
          'files': 'http:\n  server:\n    - listen: 8443 ssl #name\n'}


def lint(*arguments, cwd=None):
    return subprocess.run([server_kit.SLUICE, 'lint', *map(str, arguments)], capture_output=True, text=True, check=False, cwd=cwd,
                          stdin=subprocess.DEVNULL, timeout=60 * server_kit.PATIENCE)


def certificate(folder, name, host, days):
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    start = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=400)
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key()).serial_number(1) \
        .not_valid_before(start).not_valid_after(start + datetime.timedelta(days=400 + days)) \
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), False).sign(key, hashes.SHA256())
    (folder / f'{name}.crt').write_bytes(made.public_bytes(serialization.Encoding.PEM))
    path = folder / f'{name}.key'
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    path.chmod(0o600)
    return path


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('lint')
    (folder / 'www').mkdir()
    (folder / 'users').write_text('')
    good = certificate(folder, 'good', 'www.example.org', 30)
    certificate(folder, 'expired', 'www.example.org', -1)
    certificate(folder, 'other', 'www.example.com', 30)
    (folder / 'open.key').write_bytes(good.read_bytes())
    (folder / 'open.key').chmod(0o644)
    return folder


def found(folder, text):
    """The findings of `sluice lint` as parsed JSON, and the exit status."""
    path = folder / 'sluice.yaml'
    text = text.format(**PIECES)
    path.write_text(text.replace(' #name', '') + ('      server_name: www.example.org\n' if '#name' in text else ''))
    done = lint('--format', 'json', path)
    assert done.stderr == '', done.stderr
    return json.loads(done.stdout), done.returncode


@pytest.mark.parametrize('rule', RULES)
def test_each_rule_reports_its_fault_only(folder, rule):
    bad, line, words, good = RULES[rule]
    output, status = found(folder, bad)
    spoken = [finding for finding in output if finding['rule'] == rule]
    assert [finding['line'] for finding in spoken] == [line], output
    assert words in spoken[0]['message'] and spoken[0]['hint'] and spoken[0]['level'] == 'warning' and status == 1
    assert spoken[0]['column'] > 0 and spoken[0]['file'] == str(folder / 'sluice.yaml')
    output, _ = found(folder, good)
    assert [finding for finding in output if finding['rule'] in (rule, 'load')] == []


def test_every_rule_has_a_test_case(folder):
    (folder / 'sluice.yaml').write_text('http: {server: {listen: 8080, return: 404}}\n')
    sarif = json.loads(lint('--format=sarif', folder / 'sluice.yaml').stdout)
    rules = {rule['id'] for rule in sarif['runs'][0]['tool']['driver']['rules']}
    assert rules == {'load', 'open-cors', *RULES}
    assert len(rules) >= 30


# (rule, location): correct configurations that the rule must not report.
SILENT = [
    ('proxy-slash', '/: {{proxy_pass: "http://unix:/run/app.sock"}}'), ('proxy-slash', '/: {{proxy_pass: "unix:/run/app.sock"}}'),
    ('proxy-slash', '/a/: {{proxy_pass: "http://unix:/run/app.sock:/b/"}}'),
    ('proxy-to-anywhere', '/: {{proxy_pass: "http://$hostname:9"}}'),
    ('unknown-upstream', '/: {{proxy_pass: "http://localhost/"}}'), ('unknown-upstream', '/: {{proxy_pass: "http://[::1]/"}}'),
    ('unknown-upstream', '/: {{proxy_pass: "unix:/run/app.sock"}}'), ('unknown-upstream', '/: {{proxy_pass: "http://app.test/x"}}'),
    ('loose-regex', '~ /\\.ht: {{deny: all}}'), ('loose-regex', '~ \\.git: {{deny: all}}'), ('loose-regex', '~ ^/v1\\.0: {{return: 200 a}}'),
    ('nothing-answers', '~ /\\.: {{deny: all}}'),
    ('php-unchecked', '~ \\.php$: {{fastcgi_pass: 127.0.0.1:9000, fastcgi_param: SCRIPT_FILENAME /srv/index.php}}'),
    ('php-unchecked', '~ \\.php$: {{fastcgi_pass: 127.0.0.1:9000, fastcgi_param: [A b, {{SCRIPT_FILENAME: /srv/index.php}}]}}'),
    ('php-unchecked', '~ \\.php$: {{fastcgi_pass: 127.0.0.1:9000, when: {{"!-f $document_root$uri": {{return: 404}}}}}}'),
    ('php-unchecked', '= /index.php: {{fastcgi_pass: 127.0.0.1:9000}}'), ('php-unchecked', '/: {{fastcgi_pass: 127.0.0.1:9000}}'),
    ('unreachable-location', '~ ^/a: {{return: 200 a}}\n        ~* ^/a: {{return: 200 b}}'),
]
# (rule, location): further configurations that the rule must report.
SPOKEN = [
    ('unknown-upstream', '/: {{proxy_pass: "http://app/x"}}'),
    ('proxy-slash', '/a: {{proxy_pass: "http://unix:/run/app.sock:/b/"}}'), ('proxy-to-anywhere', '/: {{proxy_pass: "http://${{host}}:9"}}'),
    ('proxy-to-anywhere', '/: {{proxy_pass: "http://a.$http_x"}}'), ('loose-regex', '~ ^/a/.+\\.php: {{return: 200 a}}'),
    ('php-unchecked', '~ [^/]\\.php(/|$): {{fastcgi_pass: 127.0.0.1:9000, fastcgi_split_path_info: ^(.+?\\.php)(/.*)$}}'),
    ('php-unchecked', '~ \\.php$: {{fastcgi_pass: 127.0.0.1:9000, fastcgi_param: SCRIPT_FILENAME /srv$uri}}'),
    ('unreachable-location', '~* ^/a: {{return: 200 a}}\n        ~ ^/a: {{return: 200 b}}'),
]


@pytest.mark.parametrize('rule, location', SILENT + SPOKEN)
def test_nginx_habits_are_reported(folder, rule, location):
    output, _ = found(folder, '{server}      location:\n        ' + location + '\n')
    assert 'load' not in [finding['rule'] for finding in output], output
    assert (rule in [finding['rule'] for finding in output]) == ((rule, location) in SPOKEN), output


def test_keys_below_the_root_are_reported(folder):
    output, _ = found(folder, '{files}      root: .\n      ssl_certificate: good.crt\n      ssl_certificate_key: good.key\n')
    assert [(finding['line'], 'in the directory that' in finding['message']) for finding in output] == [(4, False), (6, True)], output


def test_condition_is_not_another_location(folder):
    output, _ = found(folder, '{server}      when: {{$arg_a: {{return: 405}}}}\n      location:\n        ~ ^/a$: {{return: 200 a}}\n')
    assert output == []


def test_cors_does_not_bypass_access_rules(folder):
    text = '{{server}}      root: www\n      deny: all\n      cors: {{{{origins: "{}"}}}}\n'
    output, _ = found(folder, text.format('*'))
    assert 'open-cors' in [finding['rule'] for finding in output], output
    output, _ = found(folder, text.format('https://a.example.org'))
    assert output == []


def test_includes_are_followed(folder):
    (folder / 'site.inc').write_text('server:\n  - listen: 8080\n    root: /etc\n')
    output, _ = found(folder, 'http:\n  include: site.inc\n')
    assert [(os.path.basename(finding['file']), finding['line'], finding['rule']) for finding in output] == [('site.inc', 3, 'root-of-system')]


def test_inherited_values_are_reported_once(folder):
    output, _ = found(folder, '{server}      send_timeout: 1h\n      root: www\n      location: {{/a: {{}}, /b: {{}}, /c: {{location: {{/c/d: {{}}}}}}}}\n')
    assert [finding['rule'] for finding in output] == ['long-timeout']


def test_configuration_without_findings(folder):
    (folder / 'sluice.yaml').write_text('http: {server: {listen: 8080, root: www}}\n')
    done = lint(folder / 'sluice.yaml')
    assert (done.returncode, done.stdout, done.stderr) == (0, '', '')


def test_invalid_configuration(folder):
    path = folder / 'sluice.yaml'
    path.write_text('http: {server: {listen: 8080, rot: /etc}}\n')
    done = lint(path)
    assert done.returncode == 2 and 'unknown directive \'rot\' in server [load]' in done.stdout
    done = lint('--format', 'json', path)
    assert [(finding['level'], finding['rule']) for finding in json.loads(done.stdout)] == [('error', 'load')]
    assert lint(folder / 'absent.yaml').returncode == 2


BAD = 'http:\n  server:\n    - listen: 8080\n      root: /etc # "all"\n      send_timeout: 1h\n'


def test_text_format(folder):
    path = folder / 'sluice.yaml'
    path.write_text(BAD)
    done = lint(path)
    assert done.returncode == 1
    assert done.stdout.startswith(f'{path}:4:13: warning: "/etc" is a directory of the system: all files that the server can read are served '
                                  '[root-of-system]\n    4 |       root: /etc # "all"\n      |             ^\n      hint: ')


def test_gcc_format(folder):
    path = folder / 'sluice.yaml'
    path.write_text(BAD)
    lines = lint('--format', 'gcc', path).stdout.splitlines()
    assert len(lines) == 2
    for line, number, rule in zip(lines, (4, 5), ('root-of-system', 'long-timeout')):
        assert re.fullmatch(rf'{re.escape(str(path))}:{number}:\d+: warning: .+ \[{rule}\]', line)


SARIF = {  # members that SARIF 2.1.0 requires of a log, and that code hosts require of a result
    'type': 'object', 'required': ['version', 'runs', '$schema'],
    'properties': {
        'version': {'const': '2.1.0'},
        'runs': {'type': 'array', 'minItems': 1, 'items': {
            'type': 'object', 'required': ['tool', 'results'],
            'properties': {
                'tool': {'required': ['driver'], 'properties': {'driver': {
                    'required': ['name', 'rules'], 'properties': {'rules': {'type': 'array', 'items': {
                        'required': ['id', 'shortDescription'], 'properties': {'shortDescription': {'required': ['text']}}}}}}}},
                'columnKind': {'enum': ['utf16CodeUnits', 'unicodeCodePoints']},
                'results': {'type': 'array', 'items': {
                    'type': 'object', 'required': ['message', 'ruleId', 'level', 'locations'],
                    'properties': {
                        'message': {'required': ['text'], 'properties': {'text': {'type': 'string', 'minLength': 1}}},
                        'level': {'enum': ['none', 'note', 'warning', 'error']},
                        'locations': {'type': 'array', 'minItems': 1, 'items': {'required': ['physicalLocation'], 'properties': {
                            'physicalLocation': {'required': ['artifactLocation', 'region'], 'properties': {
                                'artifactLocation': {'required': ['uri']},
                                'region': {'required': ['startLine', 'startColumn'], 'properties': {
                                    'startLine': {'type': 'integer', 'minimum': 1},
                                    'startColumn': {'type': 'integer', 'minimum': 1}}}}}}}}}}}}}}}}


def test_sarif_format(folder):
    path = folder / 'sluice.yaml'
    path.write_text(BAD)
    log = json.loads(lint('--format', 'sarif', path).stdout)
    jsonschema.Draft7Validator(SARIF).validate(log)
    results = log['runs'][0]['results']
    assert [result['ruleId'] for result in results] == ['root-of-system', 'long-timeout']
    known = {rule['id'] for rule in log['runs'][0]['tool']['driver']['rules']}
    assert all(result['ruleId'] in known for result in results)


def test_sarif_names_files_as_uris(folder):
    path = folder / 'a b.yaml'
    path.write_text(BAD)
    log = json.loads(lint('--format', 'sarif', path).stdout)
    places = {result['locations'][0]['physicalLocation']['artifactLocation']['uri'] for result in log['runs'][0]['results']}
    assert places == {str(path).replace(' ', '%20')}


def test_shipped_configurations():
    """lint reports nothing in the default configuration and the examples, except for known findings."""
    conf = os.path.join(os.path.dirname(__file__), '../../conf')
    meant = {'application.yaml': ['open-autoindex'], 'certbot.yaml': ['self-signed'], 'include.yaml': ['no-default-server', 'sandbox-wide']}
    for path in [os.path.join(conf, 'sluice.yaml'), *sorted(glob.glob(os.path.join(conf, 'examples', '*.yaml')))]:
        done = subprocess.run([server_kit.SLUICE, 'lint', '--format', 'json', path], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, env={**os.environ, 'APP': '127.0.0.1:3000'})
        output = [finding['rule'] for finding in json.loads(done.stdout)]
        assert output == meant.get(os.path.basename(path), []), (path, output)


@pytest.mark.parametrize('arguments, output', [(['--format', 'xml', 'a'], 'invalid format "xml"'), (['--format'], 'requires a name'),
                                             (['a', 'b'], 'one file'), (['-x'], 'invalid option of lint')])
def test_invalid_arguments(arguments, output):
    done = lint(*arguments)
    assert done.returncode == 1 and output in done.stderr
