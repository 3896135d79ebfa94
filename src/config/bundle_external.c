/* bundle_external.c - roost.groups.rollout_external_engine_addrs: engines that run already. Their
 * GPUs are taken as written: planning asks nobody. */
#include "base/address.h"
#include "base/number.h"
#include "config/bundle_settings.h"
#include "config/sections.h"

/* "host:port", "[fe80::1]:port", each with or without "http://". */
static bool is_engine_address(struct strview text)
{
    int64_t port = 0;
    if (sv_starts(text, "http://"))
        text = sv_sub(text, 7, text.len);
    size_t colon = sv_find(text, ':', 0);
    if (text.len && text.at[0] == '[') {
        size_t end = sv_find(text, ']', 0);
        if (address_read(sv_sub(text, 0, end + 1)).kind != ADDRESS_IPV6)
            return false;
        colon = end + 1;
    }
    struct strview host = sv_sub(text, 0, colon), digits = sv_sub(text, colon + 1, text.len);
    for (size_t i = 0; i < host.len; i++)
        if ((unsigned char)host.at[i] <= ' ' || host.at[i] == '/' || host.at[i] == '@')
            return false;
    for (size_t i = 0; i < digits.len; i++)
        if (digits.at[i] < '0' || digits.at[i] > '9')
            return false;
    return host.len > 0 && colon < text.len && text.at[colon] == ':' &&
           number_parse(digits, 65535, &port) == NUMBER_OK && port > 0;
}

static bool read_address(struct reader *reader, const struct node *node,
                         struct bundle_external *out)
{
    struct word word;
    if (!read_word(reader, node, "the address of an engine", &word))
        return false;
    if (!is_engine_address(word.text)) {
        diag_error(reader->diag, ROOST_ERR_SCHEMA, word.at, "'%s' is not the address of an engine",
                   quote(word.text).text);
        diag_hint(reader->diag, "write host:port or http://host:port, IPv6 as [fe80::1]:port");
        return false;
    }
    out->address = read_copy(reader, word.text);
    return out->address != NULL;
}

static bool read_engine(struct reader *reader, const struct node *item, struct bundle_external *out)
{
    if (item->kind == NODE_SCALAR)
        return read_address(reader, item, out);
    if (!want_mapping(reader, item, "an external engine"))
        return false;
    want_keys(reader, item, KEYS("address", "num_gpus", "worker_type"), "an external engine");
    const struct node *node = read_key(reader, item, "address");
    if (!node) {
        say_missing(reader, item, "address", "an external engine");
        return false;
    }
    bool is_good = read_address(reader, node, out);
    node = read_key(reader, item, "num_gpus");
    if (node)
        bundle_read_count(reader, node, "num_gpus", 1, BUNDLE_GPUS_MAX, &out->num_gpus);
    node = read_key(reader, item, "worker_type");
    if (node)
        is_good = bundle_read_type(reader, node, &out->type) && is_good;
    return is_good;
}

void bundle_read_external(struct reader *reader, const struct node *list,
                          struct bundle_settings *out)
{
    out->external_at = node_place(list);
    if (!want_sequence(reader, list, "'rollout_external_engine_addrs'")) {
        out->is_broken = true;
        return;
    }
    out->external = read_array(reader, struct bundle_external, list->count);
    for (int32_t i = 0; out->external && i < list->count; i++) {
        const struct node *item = read_value(reader, list->items[i]);
        if (item && read_engine(reader, item, &out->external[out->external_count]))
            out->external_count++;
        else
            out->is_broken = true;
    }
}
