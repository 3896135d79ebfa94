/* expand.c - see expand.h; the grammar is in config/percent.h. */
#include "command/expand.h"

#include "command/addresses.h"
#include "config/peers.h"

static void put_name(struct text *out, struct strview name, const struct value_source *source)
{
    enum variable variable;
    bool is_count;
    if (peer_is_meant(name)) {
        addresses_put(out, source->commands, source->values, name);
        return;
    }
    if (variable_find(name, &variable)) {
        put_variable(out, source, variable);
        return;
    }
    int32_t port = percent_find_port(source->launch, name, &is_count);
    if (port >= 0 && is_count)
        text_int(out, source->launch->ports[port].count);
    else if (port >= 0)
        put_port(out, source, port);
}

void expand_text(struct text *out, struct strview text, const struct value_source *source)
{
    struct piece piece;
    while (percent_next(&text, &piece)) {
        if (piece.kind == PIECE_NAME)
            put_name(out, piece.text, source);
        else
            text_put(out, piece.text);
    }
}

/* The first type of the set, as a user knows it. */
static const char *type_of(uint32_t types)
{
    int type = 0;
    while (!(types & 1U << type))
        type++;
    return roost_accelerator_type((enum roost_accelerator)type);
}

void expand_check(const struct commands *commands, const struct word *word, const char *component,
                  uint32_t types, struct diag *diag)
{
    addresses_check(commands, word, diag);
    struct strview text = word->text;
    struct piece piece;
    while (percent_next(&text, &piece)) {
        enum variable variable;
        if (piece.kind != PIECE_NAME || !variable_find(piece.text, &variable))
            continue;
        uint32_t missing = types & ~variable_types(variable);
        if (!missing)
            continue;
        diag_error(diag, ROOST_ERR_HARDWARE, word->at,
                   "'%%{%s}' has no value on nodes of type %s, where component '%s' has processes",
                   variable_name(variable), type_of(missing), component);
        diag_hint(diag, "every process has %%{VISIBLE_DEVICES} and %%{LOCAL_ACCELERATOR_RANK}");
    }
}
