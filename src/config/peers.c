/* peers.c - see peers.h. The check of a config and the launch both read words through here, so what
 * passes the one has a value in the other. */
#include "config/peers.h"

#include <stdlib.h>

#include "config/percent.h"
#include "config/sections.h"

bool peer_is_meant(struct strview name)
{
    return sv_find(name, '.', 0) < name.len;
}

/* Takes what follows the last dot off the end of *name; all of it when there is no dot. */
static struct strview take_last(struct strview *name)
{
    size_t at = name->len;
    while (at > 0 && name->at[at - 1] != '.')
        at--;
    struct strview last = sv_sub(*name, at, name->len);
    *name = sv_sub(*name, 0, at > 0 ? at - 1 : 0);
    return last;
}

static bool is_number(struct strview text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
    return text.len > 0;
}

bool peer_read(struct strview name, struct peer_word *out)
{
    struct strview last = take_last(&name), before = name, middle = take_last(&before);
    struct peer_word word = {.kind = PEER_HOST, .component = before, .rank = middle};
    if (!sv_is(last, "host") || !is_number(middle)) { /* a port may be called host, too */
        word.port = last;
        word.kind = PEER_ADDRESSES;
        word.rank = SV("");
        if (sv_is(middle, "port")) {
            word.kind = PEER_PORT;
            word.rank = take_last(&word.component);
        } else if (!sv_is(middle, "addresses")) {
            return false;
        }
    }
    if (!is_name(word.component) || (word.kind != PEER_ADDRESSES && !is_number(word.rank)) ||
        (word.kind != PEER_HOST && word.port.len == 0))
        return false;
    *out = word;
    return true;
}

int32_t peer_find_port(const struct launch_config *launch, struct strview name)
{
    for (int32_t i = 0; launch && i < launch->port_count; i++)
        if (sv_is(name, launch->ports[i].name))
            return i;
    return -1;
}

static void say_no_port(const struct launch_config *launch, const struct peer_word *word,
                        struct place at, struct diag *diag)
{
    diag_error(diag, ROOST_ERR_REFERENCE, at, "component '%s' has no port '%s'",
               quote(word->component).text, quote(word->port).text);
    if (!diag_wants_hint(diag))
        return;
    int32_t count = launch ? launch->port_count : 0;
    const char **names = calloc((size_t)count + 1, sizeof *names);
    for (int32_t i = 0; names && i < count; i++)
        names[i] = launch->ports[i].name;
    const char *near = names ? nearest_word(word->port, names) : NULL;
    if (near)
        diag_hint(diag, "did you mean '%s'?", near);
    else
        diag_hint(diag, "add it: roost.launch.%s.ports: {%s: 1}", quote(word->component).text,
                  quote(word->port).text);
    free(names);
}

void peer_check(const struct roost_config *config, struct strview name, struct place at,
                struct diag *diag)
{
    struct peer_word word;
    if (!peer_read(name, &word)) {
        diag_error(diag, ROOST_ERR_REFERENCE, at, "'%%{%s}' is not a word for another component",
                   quote(name).text);
        diag_hint(diag, "write %%{rollout.0.host}, %%{rollout.0.port.http} or "
                        "%%{rollout.addresses.http}");
        return;
    }
    if (!config_has_component(config, word.component)) {
        config_say_not_placed(config, word.component, at, diag);
        return;
    }
    if (word.kind == PEER_HOST)
        return;
    const struct launch_config *launch = config_find_launch_of(config, word.component);
    if (peer_find_port(launch, word.port) < 0)
        say_no_port(launch, &word, at, diag);
}

/* --- variables --- */

static char *put_capitals(char *at, struct strview name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool is_small = c >= 'a' && c <= 'z';
        bool is_plain = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        *at++ = (char)(is_small ? c - ('a' - 'A') : is_plain ? c : '_');
    }
    return at;
}

const char *peer_variable(struct arena *arena, struct strview component, struct strview port)
{
    static const char prefix[] = "ROOST_ADDRESSES_";
    char *name = arena_array(arena, char, sizeof prefix + component.len + 1 + port.len);
    if (!name)
        return NULL;
    memcpy(name, prefix, sizeof prefix - 1);
    char *at = put_capitals(name + sizeof prefix - 1, component);
    *at++ = '_';
    *put_capitals(at, port) = '\0';
    return name;
}

void peers_each_word(struct strview text, peer_visit visit, void *context)
{
    struct piece piece;
    struct peer_word word;
    while (percent_next(&text, &piece))
        if (piece.kind == PIECE_NAME && peer_read(piece.text, &word))
            visit(context, word.component);
}

void peers_each(const struct launch_config *launch, peer_visit visit, void *context)
{
    for (int32_t i = 0; i < launch->after_count; i++)
        visit(context, launch->after[i].text);
    for (int32_t i = 0; i < launch->command_count; i++)
        peers_each_word(launch->command[i].text, visit, context);
    for (int32_t i = 0; i < launch->env_count; i++)
        peers_each_word(launch->env[i].value.text, visit, context);
}

/* The names that a component's variables may have: each port of a peer takes NAME and NAME_FILE. */
struct names {
    const struct roost_config *config;
    const struct launch_config **peers;
    int32_t peer_count, room;
    bool has_failed;
};

struct taken {
    const char *name;
    const struct launch_config *peer;
    int32_t port;
};

static void collect(void *context, struct strview component)
{
    struct names *it = context;
    const struct launch_config *peer = config_find_launch_of(it->config, component);
    for (int32_t i = 0; i < it->peer_count; i++)
        if (it->peers[i] == peer)
            return;
    if (!peer || it->has_failed)
        return;
    if (it->peer_count == it->room) {
        int32_t room = it->room ? 2 * it->room : 8;
        const struct launch_config **grown = reallocarray(it->peers, (size_t)room, sizeof *grown);
        it->has_failed = !grown;
        if (!grown)
            return;
        it->peers = grown;
        it->room = room;
    }
    it->peers[it->peer_count++] = peer;
}

static int by_name(const void *a, const void *b)
{
    const struct taken *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    if (order != 0)
        return order;
    return left->peer != right->peer ? (left->peer < right->peer ? -1 : 1)
                                     : (left->port > right->port) - (left->port < right->port);
}

static const char *with_file(struct arena *arena, const char *name)
{
    size_t len = strlen(name);
    char *longer = arena_array(arena, char, len + sizeof "_FILE");
    if (!longer)
        return NULL;
    memcpy(longer, name, len);
    memcpy(longer + len, "_FILE", sizeof "_FILE");
    return longer;
}

static bool take_names(const struct names *it, struct taken *out, struct arena *arena)
{
    for (int32_t i = 0; i < it->peer_count; i++) {
        const struct launch_config *peer = it->peers[i];
        for (int32_t port = 0; port < peer->port_count; port++) {
            const char *name =
                peer_variable(arena, sv_from(peer->component), sv_from(peer->ports[port].name));
            const char *file = name ? with_file(arena, name) : NULL;
            if (!file)
                return false;
            *out++ = (struct taken){name, peer, port};
            *out++ = (struct taken){file, peer, port};
        }
    }
    return true;
}

void peers_check_names(const struct roost_config *config, const struct launch_config *launch,
                       struct diag *diag)
{
    struct names names = {.config = config};
    struct arena arena = ARENA_INIT;
    peers_each(launch, collect, &names);
    size_t count = 0;
    for (int32_t i = 0; i < names.peer_count; i++)
        count += 2 * (size_t)names.peers[i]->port_count;
    struct taken *taken = arena_array(&arena, struct taken, count);
    bool is_good = !names.has_failed && taken && take_names(&names, taken, &arena);
    if (!is_good)
        diag_nomem(diag);
    else if (count > 0)
        qsort(taken, count, sizeof *taken, by_name);
    for (size_t i = 1; is_good && i < count; i++) {
        const struct taken *a = &taken[i - 1], *b = &taken[i];
        if (strcmp(a->name, b->name) != 0)
            continue;
        diag_error(diag, ROOST_ERR_NAME, launch->at,
                   "port '%s' of '%s' and port '%s' of '%s' would both be told by %s",
                   a->peer->ports[a->port].name, a->peer->component, b->peer->ports[b->port].name,
                   b->peer->component, quote(sv_from(a->name)).text);
        diag_hint(diag, "give one of the ports, or of the components, another name");
        break;
    }
    arena_release(&arena);
    free(names.peers);
}
