/* percent.c - the grammar of %{NAME}. The check and the launch both read texts through here, so what
 * passes the one has a value in the other. */
#include "config/percent.h"

#include "config/peers.h"
#include "config/variables.h"

bool percent_is_used(struct strview text)
{
    for (size_t i = 0; i + 1 < text.len; i++)
        if (text.at[i] == '%' && (text.at[i + 1] == '%' || text.at[i + 1] == '{'))
            return true;
    return false;
}

bool percent_next(struct strview *text, struct piece *out)
{
    struct strview all = *text;
    if (all.len == 0)
        return false;
    size_t at = 0;
    while (at + 1 < all.len &&
           !(all.at[at] == '%' && (all.at[at + 1] == '%' || all.at[at + 1] == '{')))
        at++;
    if (at + 1 >= all.len) {
        *out = (struct piece){PIECE_TEXT, all};
        *text = sv_sub(all, all.len, all.len);
    } else if (at > 0) {
        *out = (struct piece){PIECE_TEXT, sv_sub(all, 0, at)};
        *text = sv_sub(all, at, all.len);
    } else if (all.at[1] == '%') {
        *out = (struct piece){PIECE_TEXT, sv_sub(all, 0, 1)};
        *text = sv_sub(all, 2, all.len);
    } else {
        size_t close = sv_find(all, '}', 2);
        bool is_open = close == all.len;
        *out = (struct piece){is_open ? PIECE_OPEN : PIECE_NAME, sv_sub(all, 2, close)};
        *text = sv_sub(all, is_open ? all.len : close + 1, all.len);
    }
    return true;
}

static char to_upper(char c)
{
    return (char)(c >= 'a' && c <= 'z' ? c - ('a' - 'A') : c);
}

/* What is left of `name` behind the port's name in capitals; false when it starts otherwise. */
static bool skip_port(struct strview name, const char *port, struct strview *rest)
{
    size_t len = strlen(port);
    if (name.len < len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (name.at[i] != to_upper(port[i]))
            return false;
    *rest = sv_sub(name, len, name.len);
    return true;
}

int32_t percent_find_port(const struct launch_config *launch, struct strview name, bool *is_count)
{
    if (!launch || !sv_starts(name, "ROOST_PORT_"))
        return -1;
    name = sv_sub(name, strlen("ROOST_PORT_"), name.len);
    for (int32_t i = 0; i < launch->port_count; i++) {
        struct strview rest;
        if (!skip_port(name, launch->ports[i].name, &rest))
            continue;
        *is_count = sv_is(rest, "_COUNT");
        if (rest.len == 0 || *is_count)
            return i;
    }
    return -1;
}

const char *percent_port_variable(struct arena *arena, struct strview port, bool is_count)
{
    static const char prefix[] = "ROOST_PORT_", suffix[] = "_COUNT";
    char *name = arena_array(arena, char, port.len + sizeof prefix + sizeof suffix);
    if (!name)
        return NULL;
    memcpy(name, prefix, sizeof prefix - 1);
    char *at = name + sizeof prefix - 1;
    for (size_t i = 0; i < port.len; i++)
        *at++ = to_upper(port.at[i]);
    memcpy(at, is_count ? suffix : "", is_count ? sizeof suffix : 1);
    return name;
}

static void check_name(const struct launch_config *launch, struct strview name, struct place at,
                       struct diag *diag)
{
    enum variable variable;
    bool is_count;
    if (variable_find(name, &variable) || percent_find_port(launch, name, &is_count) >= 0)
        return;
    if (sv_starts(name, "ROOST_PORT_")) {
        diag_error(diag, ROOST_ERR_REFERENCE, at, "'%%{%s}' names a port that is not among 'ports'",
                   quote(name).text);
        diag_hint(diag, "add the port: ports: {name: 1} gives ROOST_PORT_NAME");
    } else {
        diag_error(diag, ROOST_ERR_REFERENCE, at, "'%%{%s}' is not a variable that roost sets",
                   quote(name).text);
        diag_hint(diag, "RANK, WORLD_SIZE and LOCAL_RANK are some that are; a percent sign is "
                        "%%%%");
    }
}

void percent_check(const struct roost_config *config, const struct launch_config *launch,
                   const struct word *word, struct diag *diag)
{
    struct strview rest = word->text;
    struct piece piece;
    while (percent_next(&rest, &piece)) {
        if (piece.kind == PIECE_NAME && peer_is_meant(piece.text))
            peer_check(config, piece.text, word->at, diag);
        else if (piece.kind == PIECE_NAME)
            check_name(launch, piece.text, word->at, diag);
        if (piece.kind != PIECE_OPEN)
            continue;
        diag_error(diag, ROOST_ERR_SYNTAX, word->at, "'%s' has a '%%{' without its '}'",
                   quote(word->text).text);
        diag_hint(diag, "write %%{NAME}, or %%%%{ for the characters themselves");
    }
}
