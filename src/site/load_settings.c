/*
 * Converts a scope's settings (sizes, timeouts, sendfile) to those of session and wire, and selects the modules to
 * call. The settings of the default server apply until a request has selected its server and location.
 */
#include "base/limits.h"
#include "build_options.h"
#include "site/core.h"
#include "site/load.h"
#include "site/module_interface.h"
#include "site/when.h"

static struct session_settings session_of(const struct core_site *site, const struct core_http2 *http2)
{
    return (struct session_settings){
        .header_buffer_size = (size_t)site->client_header_buffer_size,
        .large_header_size = (size_t)site->large_header_size,
        .head_max = (size_t)(site->large_header_count * site->large_header_size),
        .max_headers = (unsigned)site->max_headers,
        .body_buffer_size = (size_t)site->client_body_buffer_size,
        .keepalive_requests = (unsigned)site->keepalive_requests,
        .keepalive = site->keepalive_timeout_ms != 0,
        .underscores_in_headers = site->underscores_in_headers,
        .merge_slashes = site->merge_slashes,
        .http2 = {.enabled = http2->enabled,
                  .max_concurrent_streams = (unsigned)http2->max_concurrent_streams,
                  .body_preread_size = (uint32_t)http2->body_preread_size,
                  .chunk_size = (uint32_t)http2->chunk_size,
                  .header_timeout_ms = site->client_header_timeout_ms,
                  .body_timeout_ms = site->client_body_timeout_ms,
                  .send_timeout_ms = site->send_timeout_ms,
                  .min_rate = site->client_min_rate},
        .server_header = site->server_tokens ? STR("sluice/" SLUICE_VERSION) : STR("sluice"),
    };
}

static uint64_t lingering_ms(const struct core_site *site)
{
    if (site->lingering_close == 0)
        return 0;
    return site->lingering_timeout_ms < site->lingering_time_ms ? site->lingering_timeout_ms
                                                                : site->lingering_time_ms;
}

/*
 * Selects the modules that are not idle in this location; requests call no others. `control`: the location of the
 * control socket, which has modules of its own. Returns true if one of them may switch protocols.
 */
static bool location_select_modules(struct location *location, bool control)
{
    bool responds = false, upgrades = false;

    for (unsigned i = 0; module_table[i] && i < LIMIT_MODULES; i++) {
        const struct module *module = module_table[i];
        uint64_t bit = UINT64_C(1) << i;

        if (module->finish && (!module->finishes || module->finishes(location->module_conf[i])))
            location->finishing |= bit;
        if (module->control != control || (module->idle && module->idle(location->module_conf[i])))
            continue;
        location->handlers |= module->handler ? bit : 0;
        location->rules |= module->server_rule != SERVER_RULE_NONE ? bit : 0;
        responds |= module->server_rule == SERVER_RULE_RESPONDS;
        upgrades |= module->upgrades && module->upgrades(location->module_conf[i]);
        location->filtering |= module->filter ? bit : 0;
    }
    if (!responds)
        location->rules = 0;
    return upgrades;
}

/* Returns true if a module of the location, or of one inside, may switch protocols. */
static bool location_set_settings(struct location *location, const struct core_ssl *ssl, bool control)
{
    const struct core_site *site = location->site;
    bool upgrades;

    location->session = session_of(site, conf_scope_group(location->values, CORE_HTTP2));
    location->wire = (struct wire_settings){
        .sendfile = site->sendfile,
        .block_size = (size_t)(site->output_buffer_count * site->output_buffer_size),
        .record_size = (size_t)ssl->buffer_size,
        .small_records = ssl->small_records,
        .lingering_ms = lingering_ms(site),
        .delay = !site->tcp_nodelay,
        .reset_timed_out = site->reset_timedout_connection,
    };
    upgrades = location_select_modules(location, control);
    for (size_t i = 0; i < location->inner_count; i++)
        upgrades |= location_set_settings(location->inner[i], ssl, control);
    for (size_t i = 0; i < location->when_block_count; i++) {
        struct location *merged = location->when_blocks[i].location;

        if (merged) /* NULL: its conditions were invalid */
            upgrades |= location_set_settings(merged, ssl, control);
    }
    for (size_t i = 0; i < location->pattern_count; i++)
        upgrades |= location_set_settings(location->patterns[i], ssl, control);
    return upgrades;
}

void load_settings(const struct virtual_server *server, const struct core_ssl *ssl)
{
    server->root->session.http2.connect_protocol = location_set_settings(server->root, ssl, server->control);
}
