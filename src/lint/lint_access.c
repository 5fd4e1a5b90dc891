/*
 * Rules about access.
 */
#include "lint/lint_config.h"

/*
 * Reports `allow` without `deny`, which has no effect: addresses outside all ranges are allowed.
 */
static void check_allow_without_deny(struct lint *lint, const struct lint_place *place)
{
    for (const struct conf_scope_values *values = place->location->values; values; values = values->outer) {
        const struct conf_node *allow = config_find(values, "allow");
        const struct conf_node *deny = config_find(values, "deny");

        if (allow && !deny && !config_has_word(allow, STR("all")))
            lint_report(lint, allow->mark, STR("add deny: all"),
                        "all other addresses are allowed, too: allow without deny has no effect");
        if (allow || deny)
            return;
    }
}

static void status_open(struct lint *lint, const struct lint_place *place)
{
    static const char *const names[] = {"status", "stub_status"};

    for (size_t i = 0; i < 2; i++) {
        const struct conf_node *status = config_find(place->location->values, names[i]);

        if (status && !str_equal(config_text(status), STR("off")) && !config_is_guarded(place->location->values) &&
            config_listens_outside(lint, place->server))
            lint_report(lint, status->mark,
                        STR("allow: [127.0.0.1, ::1], and deny: all; or a listen of its own on 127.0.0.1"),
                        "the status page can be read by all clients");
    }
}

static void password_plain(struct lint *lint, const struct lint_place *place)
{
    const struct conf_node *realm = config_find_inherited(place->location->values, "auth_basic");

    if (realm && !str_equal(config_text(realm), STR("off")) && config_listens(lint, place->server, false) &&
        config_listens_outside(lint, place->server))
        lint_report(lint, realm->mark, STR("use it with HTTPS only: let the plain server redirect"),
                    "passwords are sent in clear text where this server listens without ssl");
}

static void trust_check(struct lint *lint, const struct conf_node *scalar, void *owner)
{
    if (str_ends(scalar->text, STR("/0")))
        lint_report(lint, scalar->mark, STR("list the addresses of the proxies"),
                    "every peer is trusted, so any client can forge its address");
}

static void check_trusted_addresses(struct lint *lint, const struct lint_place *place)
{
    config_each_scalar(lint, config_find_inherited(place->location->values, "set_real_ip_from"), trust_check, NULL);
}

static void cors_all(struct lint *lint, const struct lint_place *place)
{
    const struct conf_node *cors = config_find_inherited(place->location->values, "cors");
    const struct conf_node *origins = conf_map_get(cors, STR("origins"));

    if (config_is_guarded(place->location->values) && config_has_word(origins, STR("*")))
        lint_report(lint, origins->mark, STR("list the origins that need it"),
                    "scripts of all sites can read the responses of this restricted location");
}

const struct lint_rule lint_rules_access[] = {
    {"allow-without-deny", LINT_LOCATION, check_allow_without_deny, "allow without deny has no effect."},
    {"open-status", LINT_LOCATION, status_open, "The status page is open to all clients."},
    {"plain-password", LINT_LOCATION, password_plain, "auth_basic is used without TLS."},
    {"trusts-everybody", LINT_LOCATION, check_trusted_addresses, "Any peer can forge the client's address."},
    {"open-cors", LINT_LOCATION, cors_all,
     "A restricted location can be read by scripts of all origins."},
    {0},
};
