/*
 * gRPC as a gateway protocol: HTTP/2, and errors of this server as a gRPC status.
 */
#include "grpc.h"

#include "modules/gateway/h2/stream.h"

#include <errno.h>

int grpc_target_parse(struct str text, struct gateway_target *out_target)
{
    bool secure = str_starts(text, STR("grpcs://"));
    struct str rest = secure ? str_skip(text, 8) : str_starts(text, STR("grpc://")) ? str_skip(text, 7) : text;
    bool local = str_starts(rest, STR("unix:"));

    if (str_empty(rest) || str_find(rest, '?') >= 0)
        return -EINVAL;
    if (local ? secure || !str_starts(rest, STR("unix:/")) : str_find(rest, '/') >= 0)
        return -EINVAL;
    *out_target = (struct gateway_target){.https = secure, .authority = rest};
    return 0;
}

static bool is_grpc(const struct exchange *x)
{
    struct str type = headers_value(&x->request.headers, STR("Content-Type"));
    struct str rest = str_skip(type, 16);

    return str_starts(type, STR("application/grpc")) &&
           (str_empty(rest) || rest.data[0] == '+' || rest.data[0] == ';' || rest.data[0] == ' ');
}

/* https://grpc.github.io/grpc/core/md_doc_http-grpc-status-mapping.html; 504 has a code of its own. */
static struct str status_code(int status)
{
    static const struct {
        int status;
        struct str code;
    } codes[] = {{400, {"13", 2}}, {401, {"16", 2}}, {403, {"7", 1}},  {404, {"12", 2}}, {413, {"8", 1}},
                 {429, {"14", 2}}, {500, {"13", 2}}, {502, {"14", 2}}, {503, {"14", 2}}, {504, {"4", 1}}};

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (codes[i].status == status)
            return codes[i].code;
    }
    return STR("2"); /* UNKNOWN */
}

/* The gRPC status of a stream that the server has reset (gRPC over HTTP/2, "Errors"). */
static struct str reset_code(const struct exchange *x, int status)
{
    switch (x->response.reset_code) {
    case H2_CANCEL:
        return STR("1");
    case H2_ENHANCE_YOUR_CALM:
        return STR("8");
    default:
        return status_code(status);
    }
}

/* A response without body and trailers ("Trailers-Only"): status 200, and the gRPC status among the header fields. */
static bool respond_grpc_status(struct gateway_request *p, int status)
{
    struct response *response = &p->x->response;
    struct arena *arena = &p->x->arena;

    if (!is_grpc(p->x))
        return false;
    (void)exchange_error_response(p->x, 204);
    response->status = 200;
    response->headers.count = 0;
    response->body = body_empty();
    return headers_add(&response->headers, arena, STR("Content-Type"), STR("application/grpc")) == 0 &&
           headers_add(&response->headers, arena, STR("grpc-status"), reset_code(p->x, status)) == 0 &&
           headers_add(&response->headers, arena, STR("grpc-message"), status_reason(status)) == 0;
}

const struct gateway grpc_gateway = {
    .name = "grpc",
    .scheme = "grpc",
    .tls_scheme = "grpcs",
    .streams = &gateway_http2_streams,
    .parse = grpc_target_parse,
    .write_head = proxy_write_head,
    .respond_error = respond_grpc_status,
};
