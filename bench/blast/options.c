/* The command line of blast. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blast.h"

static const char HELP[] =
    "usage: blast [OPTIONS] PORT PATH\n"
    "  -a, --address A      address of the server (127.0.0.1)\n"
    "  -c, --connections N  connections; with -H: parallel handshakes (64)\n"
    "  -s, --seconds S      duration in seconds; 0: only connect (5)\n"
    "  -m, --responses N    end after N responses instead\n"
    "  -W, --warmup S       seconds of the same load before the measurement (0)\n"
    "  -r, --rate R         requests per second; latency then counts from the due time of a request\n"
    "  -p, --pipeline N     outstanding requests per connection (1)\n"
    "  -i, --idle N         additional connections without requests\n"
    "  -R, --ramp N         connections to open per second (no limit)\n"
    "  -l, --slow B         each connection reads B bytes per second\n"
    "  -H, --handshakes     a new connection for each request: handshakes are counted\n"
    "  -e, --resume         with -H: each connection resumes a session\n"
    "  -v, --verify         decrypt every record and compare the hash of every body with the first one's\n"
    "  -b, --busy           poll without sleeping, so that the server's CPU time excludes waking the client\n"
    "  -x, --suite NAME     the cipher suite, by its OpenSSL name\n"
    "  -2, --tls12          TLS 1.2 instead of 1.3\n"
    "  -n, --plain          no TLS\n"
    "  -w, --wait           print a line when ready, and begin at the end of standard input\n";

static const struct option LONG[] = {
    {"address", required_argument, NULL, 'a'}, {"connections", required_argument, NULL, 'c'},
    {"seconds", required_argument, NULL, 's'}, {"responses", required_argument, NULL, 'm'},
    {"warmup", required_argument, NULL, 'W'},  {"rate", required_argument, NULL, 'r'},
    {"pipeline", required_argument, NULL, 'p'}, {"idle", required_argument, NULL, 'i'},
    {"ramp", required_argument, NULL, 'R'},    {"slow", required_argument, NULL, 'l'},
    {"handshakes", no_argument, NULL, 'H'},    {"resume", no_argument, NULL, 'e'},
    {"verify", no_argument, NULL, 'v'},        {"busy", no_argument, NULL, 'b'},
    {"suite", required_argument, NULL, 'x'},   {"tls12", no_argument, NULL, '2'},
    {"plain", no_argument, NULL, 'n'},         {"wait", no_argument, NULL, 'w'},
    {NULL, 0, NULL, 0},
};

_Noreturn static void usage(void)
{
    fputs(HELP, stderr);
    exit(2);
}

static double number(const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end != '\0' || !(value >= 0) || value > 1e15)
        usage();
    return value;
}

static void option_read(int letter, struct options *options)
{
    switch (letter) {
    case 'a': options->address = optarg; break;
    case 'c': options->connections = (unsigned)number(optarg); break;
    case 's': options->seconds = number(optarg); break;
    case 'm': options->responses = (uint64_t)number(optarg); break;
    case 'W': options->warmup = number(optarg); break;
    case 'r': options->rate = number(optarg); break;
    case 'p': options->pipeline = (unsigned)number(optarg); break;
    case 'i': options->idle = (unsigned)number(optarg); break;
    case 'R': options->ramp = (unsigned)number(optarg); break;
    case 'l': options->slow = (uint64_t)number(optarg); break;
    case 'H': options->mode = MODE_HANDSHAKES; break;
    case 'e': options->resume = true; break;
    case 'v': options->verify = true; break;
    case 'b': options->busy = true; break;
    case 'x': options->suite = optarg; break;
    case '2': options->tls12 = true; break;
    case 'n': options->plain = true; break;
    case 'w': options->wait = true; break;
    default: usage();
    }
}

void options_read(int argc, char **argv, struct options *out_options)
{
    int letter;
    double port;

    while ((letter = getopt_long(argc, argv, "a:c:s:m:W:r:p:i:R:l:Hevbx:2nw", LONG, NULL)) != -1)
        option_read(letter, out_options);
    if (argc - optind != 2 || out_options->connections == 0 || out_options->connections > 1000000)
        usage();
    port = number(argv[optind]);
    if (port < 1 || port > 65535 || out_options->pipeline < 1 || out_options->pipeline > PIPELINE_MAX)
        usage();
    if (out_options->busy && (out_options->mode == MODE_HANDSHAKES || out_options->slow > 0))
        usage();
    if ((out_options->rate > 0 && out_options->pipeline > 1) || (out_options->resume && out_options->plain)
        || (out_options->mode == MODE_HANDSHAKES && (out_options->slow > 0 || out_options->rate > 0)))
        usage();
    out_options->port = (uint16_t)port;
    out_options->path = argv[optind + 1];
}
