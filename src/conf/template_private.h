/*
 * The parts of a template, shared by template.c (evaluation) and template_compile.c.
 */
#ifndef CONF_TEMPLATE_PRIVATE_H
#define CONF_TEMPLATE_PRIVATE_H

#include "conf/template.h"

struct template_part {
    struct str text;                                /* a constant, or the parameter of the variable */
    const struct variable *variable;
    const void *(*subject)(const void *subject);    /* `part` of the variable's table */
};

struct template {
    struct str text;
    struct template_part *parts;
    size_t count;
    bool constant;
};

#endif
