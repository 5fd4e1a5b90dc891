/*
 * Error pages in HTML, JSON or text, by the client's Accept header; HTML by default. The HTML page is readable without
 * its style.
 */
#include "server/error_body.h"

#include "http/accept.h"
#include "server/page/page.h"
#include "server/variables.h"
#include "site/core.h"

/* Returns the sentence of the page that describes the status. */
static const char *status_sentence(int status)
{
    static const struct {
        int status;
        const char *text;
    } sentences[] = {
        {400, "The server could not understand this request."},
        {401, "This page requires a user name and a password."},
        {403, "Access to this page is denied."},
        {404, "This server has no page at this address."},
        {405, "This page does not support the method of the request."},
        {408, "The request took too long to arrive."},
        {412, "The page does not meet the conditions of the request."},
        {413, "The request is larger than this server accepts."},
        {414, "The address is longer than this server accepts."},
        {416, "The page does not have the requested part."},
        {417, "The server does not support an expectation of the request."},
        {421, "This connection was made for another site. Close it, and open this page again."},
        {425, "This request was received before the connection was complete. Send it again."},
        {429, "Too many requests from this address; wait a moment and try again."},
        {431, "The head of the request is longer than this server accepts."},
        {STATUS_CERTIFICATE_BAD, "This page requires a certificate, and the certificate that was sent is not "
                                 "accepted."},
        {STATUS_CERTIFICATE_ABSENT, "This page requires a certificate, and none was sent."},
        {500, "The server failed to process the request."},
        {501, "The server does not support this kind of request."},
        {502, "The upstream server sent no valid response."},
        {503, "The server is busy; try again in a moment."},
        {504, "The upstream server took too long to respond."},
        {505, "The server does not support this version of HTTP."},
    };

    for (size_t i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++) {
        if (sentences[i].status == status)
            return sentences[i].text;
    }
    if (status < 400)
        return "The page has moved.";
    return status < 500 ? "The request cannot be answered." : "The server could not answer this request.";
}

/* The contents of a page. */
struct error_page_values {
    int status;
    struct str reason;
    const char *sentence;
    struct str id; /* request id; empty for redirects, which are no errors */
};

static struct str make_html(struct arena *arena, const struct error_page_values *values)
{
    struct str id = STR("");

    if (values->id.length)
        id = arena_printf(arena, "<p><small>Request <code>" STR_FMT "</code></small></p>\n", STR_ARG(values->id));
    return arena_printf(arena,
                        STR_FMT "<title>%d " STR_FMT "</title>\n<body class=\"error\">\n"
                        "<h1><b>%d</b> " STR_FMT "</h1>\n<p>%s</p>\n" STR_FMT "</body>\n</html>\n",
                        STR_ARG(page_start), values->status, STR_ARG(values->reason), values->status,
                        STR_ARG(values->reason), values->sentence, STR_ARG(id));
}

/* Needs no escaping, because the text contains no data of the request. */
static struct str make_json(struct arena *arena, const struct error_page_values *values)
{
    return arena_printf(arena,
                        "{\"status\":%d,\"title\":\"" STR_FMT "\",\"detail\":\"%s\",\"request_id\":\"" STR_FMT
                        "\"}\n",
                        values->status, STR_ARG(values->reason), values->sentence, STR_ARG(values->id));
}

static struct str make_text(struct arena *arena, const struct error_page_values *values)
{
    return arena_printf(arena, "%d " STR_FMT "\n%s\n%s" STR_FMT "%s", values->status, STR_ARG(values->reason),
                        values->sentence, values->id.length ? "Request " : "", STR_ARG(values->id),
                        values->id.length ? "\n" : "");
}

static const struct form {
    enum error_format format;
    const char *type;         /* media type compared with Accept */
    const char *content_type; /* Content-Type of the response */
    struct str (*make)(struct arena *arena, const struct error_page_values *values);
} forms[] = {
    {ERROR_HTML, "text/html", "text/html; charset=utf-8", make_html},
    {ERROR_JSON, "application/json", "application/json", make_json},
    {ERROR_JSON, "application/problem+json", "application/problem+json", make_json},
    {ERROR_TEXT, "text/plain", "text/plain; charset=utf-8", make_text},
};

#define FORMS (sizeof(forms) / sizeof(forms[0]))

/* Returns the form with the highest weight in Accept; among equal weights the first one. */
static const struct form *choose_form(const struct request_state *request, enum error_format configured)
{
    const struct form *best = &forms[0];
    unsigned max = 0;

    for (size_t i = 0; i < FORMS; i++) {
        unsigned weight = configured == ERROR_AUTO
                              ? accept_weight(&request->x->request.headers, str_from(forms[i].type))
                              : forms[i].format == configured;

        if (weight > max) {
            max = weight;
            best = &forms[i];
        }
    }
    return best;
}

static int describe_error(struct exchange *x, const struct form *form, enum error_format configured)
{
    struct headers *fields = &x->response.headers;
    int error = headers_set(fields, &x->arena, STR("Content-Type"), str_from(form->content_type));

    if (x->response.status < 400)
        return error;
    if (error == 0 && configured == ERROR_AUTO)
        error = headers_add(fields, &x->arena, STR("Vary"), STR("Accept"));
    if (error == 0 && form->format == ERROR_HTML)
        error = exchange_set_security_policy(x, page_policy);
    return error;
}

void error_body_make(struct request_state *request)
{
    struct exchange *x = request->x;
    enum error_format configured = (enum error_format)request->location->site->error_page_format;
    const struct form *form = x->response.status < 400 ? &forms[0] : choose_form(request, configured);
    int shown = error_response_status(x->response.status);
    struct error_page_values values = {.status = shown,
                                       .reason = status_reason(shown),
                                       .sentence = status_sentence(x->response.status),
                                       .id = STR("")};
    struct str page;

    if (values.status >= 400)
        values.id = variable_request_id(x);
    page = form->make(&x->arena, &values);
    x->response.body = page.data ? body_bytes(&x->arena, page) : NULL;
    if (x->response.body && describe_error(x, form, configured) < 0)
        x->response.close_after = true;
}

int error_response_status(int status)
{
    return status == STATUS_CERTIFICATE_BAD || status == STATUS_CERTIFICATE_ABSENT ? 400 : status;
}
