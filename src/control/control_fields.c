/*
 * The fields of a request: its body is a JSON object, and each member is checked against the table of the resource.
 */
#include "control/control.h"

#include "control/json_object.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* Prints names with commas: fields (with `fields`), else choices. */
static const char *print_names(const struct control_field *fields, const char *const *choices, char text[256])
{
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; fields ? fields[i].name != NULL : choices[i] != NULL; i++) {
        int added = snprintf(text + length, 256 - length, "%s%s", i > 0 ? ", " : "",
                             fields ? fields[i].name : choices[i]);

        if (added < 0 || (size_t)added >= 256 - length)
            break;
        length += (size_t)added;
    }
    return text;
}

static int refuse_name(struct control_call *call, struct str name)
{
    const struct control_field *fields = call->resource->fields;
    char names[256];

    return control_fail(call, 400, "there is no field \"" STR_FMT "\"; %s takes %s", STR_ARG(str_slice(name, 0, 64)),
                        call->resource->path, fields->name ? print_names(fields, NULL, names) : "none");
}

static int refuse_value(struct control_call *call, const struct control_field *field)
{
    char names[256];

    switch (field->type) {
    case CONTROL_TEXT:
        return control_fail(call, 400, "the field \"%s\" is a text that is not empty", field->name);
    case CONTROL_NUMBER:
        return control_fail(call, 400, "the field \"%s\" is a number from %" PRIu64 " to %" PRIu64, field->name,
                            field->low, field->high);
    case CONTROL_SWITCH:
        return control_fail(call, 400, "the field \"%s\" is true or false", field->name);
    case CONTROL_CHOICE:
        break;
    }
    return control_fail(call, 400, "the field \"%s\" is one of %s", field->name,
                        print_names(NULL, field->choices, names));
}

static bool find_choice(const struct control_field *field, struct str text, uint64_t *out_index)
{
    for (size_t i = 0; field->choices[i]; i++) {
        if (str_equal(text, str_from(field->choices[i]))) {
            *out_index = i;
            return true;
        }
    }
    return false;
}

static bool read_value(const struct control_field *field, const struct json_member *member, struct control_value *out)
{
    out->given = true;
    out->text = member->text;
    switch (field->type) {
    case CONTROL_TEXT:
        return member->kind == JSON_TEXT && !str_empty(member->text);
    case CONTROL_NUMBER:
        return member->kind == JSON_NUMBER && str_to_u64(member->text, &out->number) == 0 &&
               out->number >= field->low && out->number <= field->high;
    case CONTROL_SWITCH:
        out->number = str_equal(member->text, STR("true"));
        return member->kind == JSON_SWITCH;
    case CONTROL_CHOICE:
        break;
    }
    return member->kind == JSON_TEXT && find_choice(field, member->text, &out->number);
}

static int read_member(struct control_call *call, const struct json_member *member)
{
    const struct control_field *fields = call->resource->fields;

    for (size_t i = 0; fields[i].name && i < CONTROL_FIELDS_MAX; i++) {
        if (!str_equal(member->name, str_from(fields[i].name)))
            continue;
        return read_value(&fields[i], member, &call->values[i]) ? 200 : refuse_value(call, &fields[i]);
    }
    return refuse_name(call, member->name);
}

int control_fields_read(struct control_call *call, struct str body)
{
    const struct control_field *fields = call->resource->fields;
    struct json_object object = {.count = 0};
    struct json_fault fault;
    int error = str_empty(body) ? 0 : json_object_parse(&call->x->arena, body, &object, &fault);
    int status = 200;

    if (error < 0)
        return error == -ENOMEM ? control_fail(call, 500, "out of memory")
                                : control_fail(call, 400, "the body is not a JSON object: %s at byte %zu",
                                               fault.reason, fault.at);
    for (size_t i = 0; i < object.count && status == 200; i++)
        status = read_member(call, &object.members[i]);
    for (size_t i = 0; status == 200 && fields[i].name; i++) {
        if (fields[i].required && !call->values[i].given)
            status = control_fail(call, 400, "the field \"%s\" is missing", fields[i].name);
    }
    return status;
}
