"""The configuration of each server as a file server or a proxy: one worker, no keep-alive limit, no access log."""
import os

from . import model

NGINX = '''
daemon off; worker_processes 1; worker_rlimit_nofile 20000; pid {folder}/nginx-{port}.pid; error_log {folder}/nginx.log;
events {{ worker_connections 19000; }}
http {{
  sendfile on; access_log off; open_file_cache max=1000; keepalive_timeout 1h; keepalive_requests 1000000000;
  ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate {folder}/crt; ssl_certificate_key {folder}/key; {ktls}
  ssl_session_cache off; ssl_session_tickets on;
{site}
}}
'''
NGINX_FILES = '  server {{ listen 127.0.0.1:{port}{ssl} backlog=4096; root {folder}/www; }}'
NGINX_PROXY = '''  upstream origin {{ server 127.0.0.1:{origin}; keepalive 256; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{port}{ssl} backlog=4096; location / {{
    proxy_pass http://origin; proxy_http_version 1.1; proxy_max_temp_file_size 0;
    proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_header; proxy_read_timeout 1h; }} }}
  map $http_upgrade $connection_header {{ default upgrade; '' ''; }}'''
H2O = '''
num-threads: 1
max-connections: 19000
http1-request-timeout: 3600
error-log: /dev/null
listen:
  host: 127.0.0.1
  port: {port}
{ssl}
hosts:
  default:
    paths:
      /:
        file.dir: {folder}/www
'''
H2O_SSL = '''  ssl:
    certificate-file: {folder}/crt
    key-file: {folder}/key
    ocsp-update-interval: 0
    cipher-suite: ECDHE-ECDSA-AES128-GCM-SHA256'''
LIGHTTPD = '''
server.modules = ( {modules} )
server.document-root = "{folder}/www"
server.bind = "127.0.0.1"
server.port = {port}
server.max-fds = 20000
server.max-connections = 19000
server.max-keep-alive-requests = 1000000000
server.max-keep-alive-idle = 3600
server.errorlog = "{folder}/lighttpd.log"
server.network-backend = "sendfile"
{ssl}
'''
LIGHTTPD_SSL = '''ssl.engine = "enable"
ssl.pemfile = "{folder}/pem"
ssl.openssl.ssl-conf-cmd = ("MinProtocol" => "TLSv1.2", "Options" => "{ktls_sign}KTLS")'''
CADDY = '''
{{
  admin off
  auto_https off
  servers {{
    protocols h1
  }}
}}
{scheme}://localhost:{port}, {scheme}://127.0.0.1:{port} {{
  bind 127.0.0.1
{ssl}  root * {folder}/www
  file_server
}}
'''
HAPROXY = '''
global
  nbthread 1
  maxconn {maxconn}
  tune.bufsize 65536
defaults
  mode {mode}
  timeout client 1h
  timeout server 1h
  timeout connect 5s
  timeout tunnel 1h
  timeout http-keep-alive 1h
{options}frontend site
  bind 127.0.0.1:{port}{ssl}
{content}
'''
HAPROXY_PROXY = '''  default_backend origin
backend origin
{reuse}  server origin 127.0.0.1:{origin}'''
SLUICE_STREAM = '''
worker_processes: 1
pid: {folder}/sluice-{port}.pid
error_log: {{path: {folder}/sluice-{port}.log, level: warn}}
events: {{use: {loop}, worker_connections: 19000}}
stream:
  server:
    - listen: 127.0.0.1:{port}
      proxy_pass: 127.0.0.1:{origin}
{directives}'''
HAPROXY_FILES = ('1k', '4k', '10k', '16k', '32k')
SLUICE = '''
{main}worker_processes: 1
pid: {folder}/sluice-{port}.pid
error_log: {{path: {folder}/sluice-{port}.log, level: warn}}
events: {{use: {loop}, worker_connections: 19000}}
http:
  log_format: {{bench: '$tls_path $tls_path_reason $bytes_zero_copy $body_bytes_sent'}}
  access_log: {log}
  keepalive_timeout: 1h
  keepalive_requests: 1000000000
{upstream}  server:
    - listen: 127.0.0.1:{port}{ssl}
      {site}
{directives}'''
SLUICE_UPSTREAM = '''  upstream:
    origin: {{server: "127.0.0.1:{origin}", keepalive: 256, keepalive_requests: 1000000000}}
'''
PROGRAMS = {'nginx': 'nginx', 'h2o': 'h2o', 'lighttpd': 'lighttpd', 'caddy': 'caddy', 'haproxy': 'haproxy', 'nghttpd': 'nghttpd'}
MAIN_DIRECTIVES = ('sandbox',)        # overrides of sluice that belong to the main scope
KTLS = {'sluice', 'nginx', 'lighttpd'}
ROLES = {'proxy': {'sluice', 'nginx', 'haproxy'}, 'tcp': {'sluice', 'haproxy'}}


def unsupported_reason(setup, load, ktls_works):
    """The reason why the server does not support the setup under this load; '': supported."""
    if setup.transport == 'ktls' and setup.server not in KTLS:
        return f'{setup.server} has no kTLS here'
    if setup.transport == 'ktls' and not ktls_works:
        return 'this kernel has no TLS'
    if setup.server == model.OPENSSL:
        return '' if load.kind in model.HANDSHAKES else 'OpenSSL alone performs only handshakes'
    if setup.server not in ROLES.get(setup.role, PROGRAMS.keys() | {'sluice'}):
        return f'{setup.server} has no configuration for this'
    if setup.server == 'haproxy' and setup.role == 'files' and load.size not in HAPROXY_FILES:
        return 'haproxy serves no files, only small responses from memory'
    return ''


def nginx(setup, folder, port, origin=0, **_):
    ssl = '' if setup.transport == 'plain' else ' ssl http2' if ('http2', 'on') in setup.overrides else ' ssl'
    site = NGINX_PROXY if setup.role == 'proxy' else NGINX_FILES
    return NGINX.format(folder=folder, port=port, site=site.format(folder=folder, port=port, ssl=ssl, origin=origin),
                        ktls='ssl_conf_command Options KTLS;' if setup.transport == 'ktls' else ''), ['-p', folder, '-c']


def h2o(setup, folder, port, **_):
    return H2O.format(folder=folder, port=port, ssl='' if setup.transport == 'plain' else H2O_SSL.format(folder=folder)), ['-c']


def nghttpd(setup, folder, port, **_):
    """nghttpd has no configuration file: the path at the end of the command line is that of an empty list of media types."""
    arguments = ['-n', '1', '-d', f'{folder}/www', '-a', '127.0.0.1', str(port)]
    return '', [*arguments, *(['--no-tls'] if setup.transport == 'plain' else [f'{folder}/key', f'{folder}/crt']), '--mime-types-file']


def lighttpd(setup, folder, port, **_):
    ssl = '' if setup.transport == 'plain' else LIGHTTPD_SSL.format(folder=folder, ktls_sign='' if setup.transport == 'ktls' else '-')
    return LIGHTTPD.format(folder=folder, port=port, ssl=ssl, modules='"mod_openssl"' if ssl else ''), ['-D', '-f']


def caddy(setup, folder, port, **_):
    ssl = '' if setup.transport == 'plain' else f'  tls {folder}/crt {folder}/key\n'
    return CADDY.format(folder=folder, port=port, ssl=ssl, scheme='https' if ssl else 'http'), \
        ['run', '--adapter', 'caddyfile', '--config']


def haproxy(setup, folder, port, origin=0, **_):
    content = HAPROXY_PROXY.format(origin=origin, reuse='  http-reuse always\n' if setup.role == 'proxy' else '') if origin else \
        haproxy_files(folder)
    mode, maxconn = ('tcp', 4900) if setup.role == 'tcp' else ('http', 9900)       # splice needs two more descriptors per connection
    return HAPROXY.format(port=port, maxconn=maxconn, mode=mode, ssl='' if setup.transport == 'plain' else f' ssl crt {folder}/pem',
                          options=''.join(f'  {name} {value}\n' for name, value in setup.overrides), content=content), ['-f']


def haproxy_files(folder):
    return '\n'.join(f'  http-request return status 200 content-type application/octet-stream file {folder}/www/{name} '
                        f'if {{ path /{name} }}' for name in HAPROXY_FILES
                     if os.path.exists(f'{folder}/www/{name}'))


def sluice(setup, folder, port, log='', origin=0, **_):
    if setup.role == 'tcp':
        return stream(setup, folder, port, origin)
    lines = [f'{name}: {value}' for name, value in setup.overrides if name not in ('listen', *MAIN_DIRECTIVES)]
    if setup.transport != 'plain':
        lines += [f'ssl_certificate: {folder}/crt', f'ssl_certificate_key: {folder}/key']
        if not any(name == 'ssl_ktls' for name, _ in setup.overrides):
            lines.append(f'ssl_ktls: {"on" if setup.transport == "ktls" else "off"}')
    site = 'location: {/: {proxy_pass: "http://origin", proxy_read_timeout: 1h}}' if origin else f'root: {folder}/www'
    main = ''.join(f'{name}: {value}\n' for name, value in setup.overrides if name in MAIN_DIRECTIVES)
    text = SLUICE.format(main=main, folder=folder, port=port, loop=setup.loop or 'auto', ssl='' if setup.transport == 'plain' else ' ssl',
                         site=site, upstream=SLUICE_UPSTREAM.format(origin=origin) if origin else '',
                         log=f'{{path: {log}, format: bench}}' if log else 'off',
                         directives=''.join(f'      {line}\n' for line in lines))
    return text, ['-c']


def stream(setup, folder, port, origin):
    """sluice as a TCP proxy."""
    return SLUICE_STREAM.format(folder=folder, port=port, loop=setup.loop or 'auto', origin=origin,
                         directives=''.join(f'      {name}: {value}\n' for name, value in setup.overrides)), ['-c']


CONFIGURATIONS = {'nginx': nginx, 'h2o': h2o, 'lighttpd': lighttpd, 'caddy': caddy, 'haproxy': haproxy, 'nghttpd': nghttpd, 'sluice': sluice}
