/* addresses.c - see addresses.h. Reads plan, launch settings and leased ports; decides no port itself. */
#include "command/addresses.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "command/commands_internal.h"
#include "config/peers.h"
#include "config/percent.h"

/* What is known of a component that a word names. */
struct peer {
    const struct roost_component *placed;
    const struct launch_config *launch;
    struct component_commands *component; /* NULL = this run leaves it out */
};

static struct component_commands *find_component(const struct commands *commands,
                                                 struct strview name)
{
    for (int32_t c = 0; c < commands->component_count; c++)
        if (sv_is(name, commands->components[c].name))
            return &commands->components[c];
    return NULL;
}

static bool find_peer(const struct commands *commands, struct strview name, struct peer *out)
{
    const struct roost_plan *plan = commands->options.plan;
    out->component = find_component(commands, name);
    out->launch = config_find_launch_of(commands->options.config, name);
    out->placed = out->component ? out->component->placed : NULL;
    for (size_t i = 0; !out->placed && plan && i < roost_plan_component_count(plan); i++)
        if (sv_is(name, roost_plan_component(plan, i)->name))
            out->placed = roost_plan_component(plan, i);
    return out->placed != NULL;
}

/* --- what a component names --- */

/* Components that one component names: marks by the index of their launch settings. Those without
 * settings have no ports. */
struct marks {
    const struct roost_config *config;
    bool *is_named;
};

static void mark(void *context, struct strview name)
{
    struct marks *marks = context;
    const struct launch_config *found = config_find_launch_of(marks->config, name);
    if (found)
        marks->is_named[found - marks->config->launches] = true;
}

/* Lists of the ports of a component. Of one that the run leaves out they are only shown. */
static bool add_lists(struct commands *commands, struct component_commands *it,
                      const struct launch_config *launch)
{
    struct peer peer;
    if (launch->port_count == 0 || !find_peer(commands, sv_from(launch->component), &peer) ||
        (!peer.component && !commands->options.is_command_optional))
        return true;
    if (peer.component && !peer.component->addresses)
        peer.component->addresses =
            arena_zeroed(&commands->arena, const char *, launch->port_count);
    for (int32_t port = 0; port < launch->port_count; port++) {
        const char *variable = peer_variable(&commands->arena, sv_from(launch->component),
                                             sv_from(launch->ports[port].name));
        if (!variable)
            return false;
        it->lists[it->list_count++] =
            (struct address_list){variable, peer.component, launch->component, port};
    }
    return !peer.component || peer.component->addresses;
}

static bool find_lists(struct commands *commands, struct component_commands *it,
                       struct marks *marks)
{
    struct command_words words = command_words_of(commands, it);
    memset(marks->is_named, 0, (size_t)marks->config->launch_count);
    if (it->launch)
        peers_each(it->launch, mark, marks);
    for (int32_t i = 0; !words.own && i < words.count; i++)
        peers_each_word(command_word(&words, i).text, mark, marks);
    int64_t count = 0;
    for (int32_t l = 0; l < marks->config->launch_count; l++)
        count += marks->is_named[l] ? marks->config->launches[l].port_count : 0;
    it->lists = arena_array(&commands->arena, struct address_list, count);
    for (int32_t l = 0; it->lists && l < marks->config->launch_count; l++)
        if (marks->is_named[l] && !add_lists(commands, it, &marks->config->launches[l]))
            return false;
    return it->lists != NULL;
}

bool addresses_find(struct commands *commands, struct diag *diag)
{
    struct marks marks = {.config = commands->options.config};
    marks.is_named = calloc((size_t)marks.config->launch_count + 1, sizeof *marks.is_named);
    bool is_good = marks.is_named != NULL;
    for (int32_t c = 0; is_good && c < commands->component_count; c++)
        is_good = find_lists(commands, &commands->components[c], &marks);
    free(marks.is_named);
    if (!is_good)
        diag_nomem(diag);
    return is_good;
}

static void check_word(const struct commands *commands, const struct peer_word *word,
                       struct strview name, struct place at, struct diag *diag)
{
    struct peer peer;
    int64_t rank = 0;
    if (!find_peer(commands, word->component, &peer))
        return; /* the config was told so */
    if (!peer.component && !commands->options.is_command_optional) {
        diag_error(diag, ROOST_ERR_USAGE, at,
                   "'%%{%s}' needs component '%s', which this run leaves out", quote(name).text,
                   peer.placed->name);
        diag_hint(diag, "run component '%s' too", peer.placed->name);
    } else if (word->kind != PEER_ADDRESSES &&
               (number_parse(word->rank, ROOST_RANK_MAX, &rank) != NUMBER_OK ||
                rank >= peer.placed->world_size)) {
        diag_error(diag, ROOST_ERR_FIT, at, "'%%{%s}' names rank %s, but component '%s' has %d %s",
                   quote(name).text, quote(word->rank).text, peer.placed->name,
                   (int)peer.placed->world_size,
                   peer.placed->world_size == 1 ? "process" : "processes");
        diag_hint(diag, "ranks are 0 to %d", (int)peer.placed->world_size - 1);
    }
}

void addresses_check(const struct commands *commands, const struct word *word, struct diag *diag)
{
    struct strview text = word->text;
    struct piece piece;
    struct peer_word peer;
    while (percent_next(&text, &piece))
        if (piece.kind == PIECE_NAME && peer_read(piece.text, &peer))
            check_word(commands, &peer, piece.text, word->at, diag);
}

/* --- their values --- */

static const char *host_of(const struct commands *commands, const struct run_values *values,
                           const struct peer *peer, int32_t rank)
{
    int32_t node = peer->placed->cluster_node_rank[rank];
    const char *host =
        values->master_addr ? values->master_addr : commands->options.cluster->nodes[node].address;
    return !values->ports ? "<host>" : host ? host : "";
}

static void put_port_of(struct text *out, const struct run_values *values, const struct peer *peer,
                        int32_t rank, int32_t port)
{
    if (values->ports)
        text_int(out, values->ports[peer->component->first_port + 1 +
                                    rank * peer->launch->port_count + port]);
    else
        text_puts(out, "<port>");
}

/* An address with colons of its own stands in brackets, as in a URL. */
static void put_address(struct text *out, const struct commands *commands,
                        const struct run_values *values, const struct peer *peer, int32_t rank,
                        int32_t port)
{
    const char *host = host_of(commands, values, peer, rank);
    bool has_colons = strchr(host, ':') != NULL;
    text_puts(out, has_colons ? "[" : "");
    text_puts(out, host);
    text_puts(out, has_colons ? "]:" : ":");
    put_port_of(out, values, peer, rank, port);
}

static void put_list(struct text *out, const struct commands *commands,
                     const struct run_values *values, const struct peer *peer, int32_t port)
{
    enum { SHOWN = 8 };
    const char *made =
        peer->component && peer->component->addresses ? peer->component->addresses[port] : NULL;
    if (made) {
        text_puts(out, made);
        return;
    }
    int32_t count = peer->placed->world_size, end = !values->ports && count > SHOWN ? SHOWN : count;
    for (int32_t rank = 0; rank < end; rank++) {
        if (rank)
            text_char(out, ',');
        put_address(out, commands, values, peer, rank, port);
    }
    if (end < count)
        text_puts(out, ",...");
}

void addresses_put(struct text *out, const struct commands *commands,
                   const struct run_values *values, struct strview name)
{
    struct peer_word word;
    struct peer peer;
    int64_t rank = 0;
    if (!peer_read(name, &word) || !find_peer(commands, word.component, &peer))
        return;
    (void)number_parse(word.rank, ROOST_RANK_MAX, &rank);
    int32_t port = peer_find_port(peer.launch, word.port);
    switch (word.kind) {
    case PEER_HOST: text_puts(out, host_of(commands, values, &peer, (int32_t)rank)); break;
    case PEER_PORT: put_port_of(out, values, &peer, (int32_t)rank, port); break;
    case PEER_ADDRESSES: put_list(out, commands, values, &peer, port); break;
    }
}

void addresses_put_list(struct text *out, const struct commands *commands,
                        const struct run_values *values, const struct address_list *list)
{
    struct peer peer;
    if (find_peer(commands, sv_from(list->of), &peer))
        put_list(out, commands, values, &peer, list->port);
}

static bool make_lists(struct commands *commands, const struct run_values *values)
{
    struct text made = TEXT_INIT;
    for (int32_t c = 0; c < commands->component_count; c++) {
        struct component_commands *it = &commands->components[c];
        struct peer peer = {it->placed, it->launch, it};
        for (int32_t port = 0; it->addresses && port < it->launch->port_count; port++) {
            made.len = 0;
            put_list(&made, commands, values, &peer, port);
            it->addresses[port] =
                made.has_failed
                    ? NULL
                    : arena_copy(&commands->arena, (struct strview){made.bytes, made.len});
            if (!it->addresses[port]) {
                text_release(&made);
                return false;
            }
        }
    }
    text_release(&made);
    return true;
}

static const char *join_entry(struct arena *arena, const char *variable, const char *value)
{
    size_t name_len = strlen(variable), len = strlen(value);
    char *entry = arena_array(arena, char, name_len + 1 + len + 1);
    if (!entry)
        return NULL;
    memcpy(entry, variable, name_len);
    entry[name_len] = '=';
    memcpy(entry + name_len + 1, value, len + 1);
    return entry;
}

static bool share_lists(struct commands *commands, struct component_commands *it)
{
    size_t count = 0, kept = 0, long_kept = 0;
    while (it->base_env && it->base_env[count])
        count++;
    size_t room = count + (size_t)it->list_count + 1;
    const char **base = arena_array(&commands->arena, const char *, room);
    const char **longer = arena_array(&commands->arena, const char *, (size_t)it->list_count + 1);
    if (!base || !longer)
        return false;
    for (; kept < count; kept++)
        base[kept] = it->base_env[kept];
    for (int32_t i = 0; i < it->list_count; i++) {
        const struct address_list *list = &it->lists[i];
        const char *value = list->component->addresses[list->port];
        const char *entry = join_entry(&commands->arena, list->variable, value);
        if (!entry)
            return false;
        if (strlen(value) > ADDRESSES_MAX)
            longer[long_kept++] = entry;
        else
            base[kept++] = entry;
    }
    base[kept] = NULL;
    longer[long_kept] = NULL;
    it->base_env = base;
    it->long_env = longer;
    return true;
}

/* A word of a command or a variable cannot hold a list that is too long. */
static void check_length(const struct commands *commands, const struct word *word,
                         struct diag *diag)
{
    struct strview text = word->text;
    struct piece piece;
    struct peer_word peer;
    while (percent_next(&text, &piece)) {
        if (piece.kind != PIECE_NAME || !peer_read(piece.text, &peer) ||
            peer.kind != PEER_ADDRESSES)
            continue;
        const struct component_commands *other = find_component(commands, peer.component);
        const char *list =
            other ? other->addresses[peer_find_port(other->launch, peer.port)] : NULL;
        if (!list || strlen(list) <= ADDRESSES_MAX)
            continue;
        diag_error(diag, ROOST_ERR_LIMIT, word->at,
                   "'%%{%s}' is a list of %d addresses: %zu bytes, more than a word may have (%d)",
                   quote(piece.text).text, (int)other->process_count, strlen(list), ADDRESSES_MAX);
        diag_hint(diag, "let the process read the file that ROOST_ADDRESSES_..._FILE names");
    }
}

bool addresses_fill(struct commands *commands, const struct run_values *values, struct diag *diag)
{
    size_t errors = diag->errors;
    bool is_good = make_lists(commands, values);
    for (int32_t c = 0; is_good && c < commands->component_count; c++) {
        struct component_commands *it = &commands->components[c];
        struct command_words words = command_words_of(commands, it);
        for (int32_t i = 0; i < words.count; i++) {
            struct word word = command_word(&words, i);
            check_length(commands, &word, diag);
        }
        for (int32_t i = 0; it->launch && i < it->launch->env_count; i++)
            check_length(commands, &it->launch->env[i].value, diag);
        is_good = it->list_count == 0 || share_lists(commands, it);
    }
    if (!is_good)
        diag_nomem(diag);
    return is_good && diag->errors == errors;
}
