/* section_launch.c - roost.launch: how each component's processes are started. Checked as far as a
 * config alone can be; nothing here looks at the machine. */
#include <stdio.h>

#include "config/peers.h"
#include "config/percent.h"
#include "config/sections.h"
#include "config/variables.h"

/* A word of a command. Errors name its program when it cannot be run, so that one must not be secret. */
static bool read_command_word(struct reader *reader, const struct node *item, bool is_program,
                              struct word *out)
{
    return (!is_program || want_open(reader, item, "the program of 'command'")) &&
           read_process_word(reader, item, "each word of 'command'", out);
}

static void read_command(struct reader *reader, const struct node *node, struct launch_config *out)
{
    if (node->kind != NODE_SEQUENCE || node->count == 0) {
        diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(node),
                   node->kind == NODE_SCALAR
                       ? "'command' must be a list of words; roost runs no shell"
                       : "'command' must be a list with at least a program");
        diag_hint(reader->diag, "write [./train, --rank, \"%%{RANK}\"]");
        return;
    }
    out->command = read_array(reader, struct word, node->count);
    for (int32_t i = 0; out->command && i < node->count; i++) {
        const struct node *item = read_value(reader, node->items[i]);
        if (item && read_command_word(reader, item, i == 0, &out->command[out->command_count]))
            out->command_count++;
    }
    if (out->command_count > 0 && out->command[0].text.len == 0) {
        diag_error(reader->diag, ROOST_ERR_SCHEMA, out->command[0].at,
                   "'command' starts with an empty word, not with a program");
        diag_hint(reader->diag, "write [./train, --rank, \"%%{RANK}\"]");
    }
}

static void read_env(struct reader *reader, const struct node *node, struct launch_config *out)
{
    if (!want_mapping(reader, node, "'env'"))
        return;
    out->env = read_array(reader, struct env_var, node->count);
    for (int32_t i = 0; out->env && i < node->count; i++) {
        const struct node *key = node->pairs[i].key;
        struct env_var var = {.name = {.text = key->text, .at = node_place(key)}};
        const struct node *value = read_value(reader, node->pairs[i].value);
        if (!value || !read_process_word(reader, value, "the value of a variable", &var.value))
            continue;
        if (!is_variable_name(key->text)) {
            diag_error(reader->diag, ROOST_ERR_NAME, var.name.at,
                       "'%s' cannot be the name of an environment variable", quote(key->text).text);
            diag_hint(reader->diag, "use letters, digits and _, with no digit at the start");
        } else if (is_roost_variable(key->text)) {
            diag_error(reader->diag, ROOST_ERR_NAME, var.name.at,
                       "'%s' is set by roost for every process and cannot be set here",
                       quote(key->text).text);
            diag_hint(reader->diag, "use it as %%{%s} in a command, or choose another name",
                      quote(key->text).text);
        } else {
            out->env[out->env_count++] = var;
        }
    }
}

/* A number, or a mapping with a number and how the ports reach the process. */
static bool read_port(struct reader *reader, const struct node *node, struct port_want *out)
{
    enum { PORTS_MAX = 4096 };
    const struct node *count = node;
    out->is_handed = false;
    out->count = 1;
    if (node->kind == NODE_MAPPING) {
        want_keys(reader, node, KEYS("count", "hand_over"), "a port");
        const struct node *handed = read_key(reader, node, "hand_over");
        if (handed)
            read_bool(reader, handed, "'hand_over'", &out->is_handed);
        count = read_key(reader, node, "count");
    }
    return !count || read_int(reader, count, "the number of ports", 1, PORTS_MAX, &out->count);
}

/* Two ports must not give a variable the same name: HTTP and http, or http and http_count. */
static bool is_port_apart(struct reader *reader, const struct launch_config *launch,
                          const struct node *key)
{
    for (int i = 0; i < 2; i++) {
        bool is_count = i == 1;
        const char *variable = percent_port_variable(reader->arena, key->text, is_count);
        if (!variable) {
            diag_nomem(reader->diag);
            return false;
        }
        int32_t other = percent_find_port(launch, sv_from(variable), &is_count);
        if (other < 0)
            continue;
        diag_error(reader->diag, ROOST_ERR_NAME, node_place(key),
                   "ports '%s' and '%s' would both be told by %s", quote(key->text).text,
                   launch->ports[other].name, quote(sv_from(variable)).text);
        diag_hint(reader->diag, "give one of them another name");
        return false;
    }
    return true;
}

static void read_ports(struct reader *reader, const struct node *node, struct launch_config *out)
{
    enum { NAMES_MAX = 256 };
    if (!want_mapping(reader, node, "'ports'"))
        return;
    if (node->count > NAMES_MAX) {
        diag_error(reader->diag, ROOST_ERR_LIMIT, node_place(node),
                   "more than %d names of ports for one component", NAMES_MAX);
        diag_hint(reader->diag, "ask for several ports under one name: ports: {http: 16}");
        return;
    }
    out->ports = read_array(reader, struct port_want, node->count);
    for (int32_t i = 0; out->ports && i < node->count; i++) {
        const struct node *key = node->pairs[i].key;
        const struct node *value = read_value(reader, node->pairs[i].value);
        struct port_want *port = &out->ports[out->port_count];
        if (!is_variable_name(key->text)) {
            diag_error(reader->diag, ROOST_ERR_NAME, node_place(key),
                       "'%s' cannot name a port: it becomes part of ROOST_PORT_<NAME>",
                       quote(key->text).text);
            diag_hint(reader->diag, "use letters, digits and _");
            continue;
        }
        if (!value || !read_port(reader, value, port) || !is_port_apart(reader, out, key))
            continue;
        port->name = read_copy(reader, key->text);
        if (port->name)
            out->port_count++;
    }
}

static void read_restart(struct reader *reader, const struct node *node, struct launch_config *out)
{
    if (node->kind == NODE_SCALAR && sv_is(node->text, "never")) {
        out->restart = RESTART_NEVER;
    } else if (node->kind == NODE_SCALAR && sv_is(node->text, "always")) {
        out->restart = RESTART_ALWAYS;
    } else if (node->kind == NODE_MAPPING && node->count == 1 &&
               sv_is(node->pairs[0].key->text, "on-failure")) {
        const struct node *value = read_value(reader, node->pairs[0].value);
        if (value && read_int(reader, value, "'on-failure'", 1, ROOST_RANK_MAX, &out->restart_max))
            out->restart = RESTART_ON_FAILURE;
    } else {
        diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(node),
                   "'restart' must be never, always or {on-failure: N}");
        diag_hint(reader->diag, "write restart: {on-failure: 3}");
    }
}

static void read_after(struct reader *reader, const struct node *node, struct launch_config *out)
{
    if (!want_sequence(reader, node, "'after'"))
        return;
    out->after = read_array(reader, struct word, node->count);
    for (int32_t i = 0; out->after && i < node->count; i++) {
        const struct node *item = read_value(reader, node->items[i]);
        if (item && read_word(reader, item, "a name in 'after'", &out->after[out->after_count]))
            out->after_count++;
    }
}

static void read_ready(struct reader *reader, const struct node *node, struct launch_config *out)
{
    static const char *const keys[] = {"port", "file", "line"};
    if (!want_mapping(reader, node, "'ready'"))
        return;
    want_keys(reader, node, KEYS("port", "file", "line", "timeout"), "ready");
    int found = 0;
    for (int i = 0; i < 3; i++) {
        const struct node *value = read_key(reader, node, keys[i]);
        if (!value)
            continue;
        found++;
        if (read_word(reader, value, "what 'ready' waits for", &out->ready_what))
            out->ready = (enum ready_kind)(READY_PORT + i);
    }
    if (found != 1) {
        diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(node),
                   "'ready' waits for exactly one of port, file and line");
        diag_hint(reader->diag, "keep one, such as ready: {port: http}");
    } else if (out->ready != READY_AT_ONCE && out->ready_what.text.len == 0) {
        diag_error(reader->diag, ROOST_ERR_SCHEMA, out->ready_what.at,
                   "'ready' waits for an empty text, which is always there");
        diag_hint(reader->diag, "write a part of the line, or the path of the file, to wait for");
    } else if (out->ready == READY_PORT && peer_find_port(out, out->ready_what.text) < 0) {
        diag_error(reader->diag, ROOST_ERR_REFERENCE, out->ready_what.at,
                   "'ready' waits for port '%s', which is not among 'ports'",
                   quote(out->ready_what.text).text);
        diag_hint(reader->diag, "add it: ports: {%s: 1}", quote(out->ready_what.text).text);
    }
    const struct node *timeout = read_key(reader, node, "timeout");
    out->ready_timeout = 60;
    if (timeout)
        read_int(reader, timeout, "'timeout'", 1, 86400, &out->ready_timeout);
}

static void read_bind(struct reader *reader, const struct node *node, struct launch_config *out)
{
    if (!want_mapping(reader, node, "'bind'"))
        return;
    want_keys(reader, node, KEYS("cpu", "memory"), "bind");
    const struct node *value = read_key(reader, node, "cpu");
    if (value)
        read_word(reader, value, "'cpu'", &out->bind_cpu);
    value = read_key(reader, node, "memory");
    if (value)
        read_word(reader, value, "'memory'", &out->bind_memory);
}

static void read_local_rank(struct reader *reader, const struct node *node,
                            struct launch_config *out)
{
    static const char *const rules[] = {"rlinf", "torchrun", "zero", "device"};
    for (int i = 0; node->kind == NODE_SCALAR && i < 4; i++) {
        if (sv_is(node->text, rules[i])) {
            out->local_rank = (enum local_rank_rule)i;
            return;
        }
    }
    diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(node),
               "'local_rank' must be rlinf, torchrun, zero or device");
    diag_hint(reader->diag, "leave it out for rlinf");
}

/* What a key does; ports come before ready, which looks at them. */
static void read_keys(struct reader *reader, const struct node *node, struct launch_config *out)
{
    static const struct {
        const char *key;
        void (*read)(struct reader *, const struct node *, struct launch_config *);
    } keys[] = {
        {"command", read_command}, {"env", read_env},
        {"ports", read_ports},     {"restart", read_restart},
        {"after", read_after},     {"ready", read_ready},
        {"bind", read_bind},       {"local_rank", read_local_rank},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct node *value = read_key(reader, node, keys[i].key);
        if (value)
            keys[i].read(reader, value, out);
    }
    const struct node *cwd = read_key(reader, node, "cwd");
    if (cwd)
        read_word(reader, cwd, "'cwd'", &out->cwd);
    const struct node *service = read_key(reader, node, "service");
    if (service)
        read_bool(reader, service, "'service'", &out->is_service);
    const struct node *isolate = read_key(reader, node, "isolate");
    bool is_isolated = true;
    if (isolate && read_bool(reader, isolate, "'isolate'", &is_isolated))
        out->is_shared = !is_isolated;
}

void section_launch(struct reader *reader, const struct node *launch)
{
    struct roost_config *config = reader->config;
    if (!want_mapping(reader, launch, "'launch'"))
        return;
    config->launches = read_array(reader, struct launch_config, launch->count);
    for (int32_t i = 0; config->launches && i < launch->count; i++) {
        const struct node *key = launch->pairs[i].key;
        const struct node *value = read_value(reader, launch->pairs[i].value);
        if (!config_has_component(config, key->text)) {
            config_say_not_placed(config, key->text, node_place(key), reader->diag);
            continue;
        }
        if (!value || !want_mapping(reader, value, "the launch settings of a component"))
            continue;
        want_keys(reader, value,
                  KEYS("command", "env", "cwd", "ports", "restart", "after", "ready", "bind",
                       "service", "isolate", "local_rank"),
                  "roost.launch");
        struct launch_config *out = &config->launches[config->launch_count];
        out->component = read_copy(reader, key->text);
        out->at = node_place(key);
        if (!out->component)
            return;
        config->launch_count++;
        read_keys(reader, value, out);
        for (int32_t k = 0; k < out->after_count; k++)
            if (!config_has_component(config, out->after[k].text))
                config_say_not_placed(config, out->after[k].text, out->after[k].at, reader->diag);
    }
    launch_check_words(reader);
    launch_check_order(reader);
}
