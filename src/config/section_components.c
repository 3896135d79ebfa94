/* section_components.c - cluster.component_placement: which names share which placement text, in
 * which node groups. The text itself is the business of placement/. */
#include "base/number.h"
#include "config/sections.h"
#include "config/yaml11.h"

enum { COMPONENTS_MAX = 4096 };

static const struct component *find_component(const struct reader *reader, struct strview name)
{
    for (int32_t i = 0; i < reader->config->component_count; i++)
        if (sv_is(name, reader->config->components[i].name))
            return &reader->config->components[i];
    return NULL;
}

static bool add_component(struct reader *reader, const struct node *key, struct strview name,
                          int32_t rule)
{
    struct place at = place_piece(node_place(key), key->text, name);
    if (!is_name(name)) {
        if (name.len == 0)
            diag_error(reader->diag, ROOST_ERR_NAME, at, "'%s' has an empty component name",
                       quote(key->text).text);
        else
            diag_error(reader->diag, ROOST_ERR_NAME, at, "'%s' cannot be a component name",
                       quote(name).text);
        diag_hint(reader->diag,
                  "a name is 1 to 63 of A-Z a-z 0-9 _ . - and does not start with . or -");
        return false;
    }
    if (is_run_file(name)) {
        diag_error(reader->diag, ROOST_ERR_NAME, at,
                   "'%s' cannot be a component name: a run keeps a file of that name in its folder",
                   quote(name).text);
        diag_hint(reader->diag, "choose another name");
        return false;
    }
    const struct component *before = find_component(reader, name);
    if (before) {
        diag_error(reader->diag, ROOST_ERR_NAME, at,
                   "component '%s' is placed twice (multiple placements); the first is at %s",
                   quote(name).text, place_full_name(before->at).text);
        diag_hint(reader->diag, "keep '%s' in one place", quote(name).text);
        return false;
    }
    const char *copy = read_copy(reader, name);
    if (copy)
        reader->config->components[reader->config->component_count++] =
            (struct component){copy, at, rule};
    return copy != NULL;
}

static bool add_names(struct reader *reader, const struct node *key, int32_t rule)
{
    yaml11_warn(key, reader->diag);
    bool is_good = true;
    for (size_t from = 0; from <= key->text.len;) {
        size_t comma = sv_find(key->text, ',', from);
        is_good =
            add_component(reader, key, sv_trim(sv_sub(key->text, from, comma)), rule) && is_good;
        from = comma + 1;
    }
    return is_good;
}

static bool add_label(struct reader *reader, struct placement_rule *rule, struct strview label,
                      struct place at)
{
    if (!is_name(label)) {
        diag_error(reader->diag, ROOST_ERR_NAME, at, "'%s' cannot be the label of a node group",
                   quote(label).text);
        diag_hint(reader->diag, "separate several labels by commas: \"a800,4090\"");
        return false;
    }
    const char *copy = read_copy(reader, label);
    if (copy)
        rule->labels[rule->label_count++] = (struct word){.text = sv_from(copy), .at = at};
    return copy != NULL;
}

static bool say_no_label(struct reader *reader, const struct node *node)
{
    diag_error(reader->diag, ROOST_ERR_NAME, node_place(node), "'node_group' must not be empty");
    diag_hint(reader->diag, "name a node group, or leave the key out for the whole cluster");
    return false;
}

/* One label, several in one text, or a list. */
static bool read_labels(struct reader *reader, const struct node *node, struct placement_rule *rule)
{
    if (node_is_null(node))
        return say_no_label(reader, node);
    size_t room = node->kind == NODE_SEQUENCE ? (size_t)node->count : 1;
    if (node->kind == NODE_SCALAR)
        for (size_t i = 0; i < node->text.len; i++)
            room += node->text.at[i] == ',';
    rule->labels = read_array(reader, struct word, room);
    if (!rule->labels)
        return false;
    if (!want_open(reader, node, "a label"))
        return false;
    if (node->kind == NODE_SCALAR) {
        yaml11_warn(node, reader->diag);
        bool is_good = true;
        for (size_t from = 0; from <= node->text.len;) {
            size_t comma = sv_find(node->text, ',', from);
            struct strview label = sv_trim(sv_sub(node->text, from, comma));
            struct place at = place_piece(node_place(node), node->text, label);
            is_good = add_label(reader, rule, label, at) && is_good;
            from = comma + 1;
        }
        return is_good;
    }
    if (node->kind != NODE_SEQUENCE) {
        diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(node),
                   "'node_group' must be a label or a list of labels, not a mapping");
        diag_hint(reader->diag, "write node_group: a800, or [a800, \"4090\"] for several");
        return false;
    }
    if (node->count == 0)
        return say_no_label(reader, node);
    bool is_good = true;
    for (int32_t i = 0; i < node->count; i++) {
        struct word label;
        const struct node *item = read_value(reader, node->items[i]);
        is_good = item && read_word(reader, item, "a label", &label) &&
                  add_label(reader, rule, sv_trim(label.text), label.at) && is_good;
        if (item && item->kind == NODE_SCALAR)
            yaml11_warn(item, reader->diag);
    }
    return is_good;
}

/* What another reader handed on as a number may have been a resource and a process. */
static void warn_base60(struct reader *reader, const struct node *scalar)
{
    int64_t number;
    if (!reader->is_composed || !scalar->is_plain || scalar->secret ||
        number_parse(scalar->text, ROOST_RANK_MAX, &number) != NUMBER_OK || number < 60)
        return;
    diag_warn(
        reader->diag, ROOST_WARN_READING, node_place(scalar),
        "%lld is what YAML readers make of %lld:%lld; if that is what the file says, resource "
        "and process were lost",
        (long long)number, (long long)(number / 60), (long long)(number % 60));
    diag_hint(reader->diag, "write \"%lld:%lld\" in quotes there", (long long)(number / 60),
              (long long)(number % 60));
}

static bool read_placement_text(struct reader *reader, const struct node *node, struct word *out)
{
    if (node->kind == NODE_SCALAR) {
        yaml11_warn_number(node, reader->diag);
        warn_base60(reader, node);
        *out = (struct word){node->text, node_place(node), node->secret};
        return true;
    }
    diag_error(reader->diag, ROOST_ERR_RANK, node_place(node),
               "Invalid rank format: a placement is one text, not %s",
               node->kind == NODE_SEQUENCE ? "a list" : "a mapping");
    diag_hint(reader->diag, "write ranks and ranges with commas: 0-3,5");
    return false;
}

/* A fault of one part hides none of the other: see has_text and has_labels. */
static void read_rule(struct reader *reader, const struct node *value, struct placement_rule *rule)
{
    if (value->kind != NODE_MAPPING) {
        rule->has_labels = true;
        rule->has_text = read_placement_text(reader, value, &rule->text);
        return;
    }
    /* An unknown key may be meant for the node group. */
    rule->has_labels =
        want_keys(reader, value, KEYS("node_group", "placement"), "a component's placement");
    struct node *written = node_get(value, SV("node_group"));
    const struct node *labels = written ? read_value(reader, written) : NULL;
    if (written)
        rule->has_labels = labels && read_labels(reader, labels, rule) && rule->has_labels;
    struct node *text = node_get(value, SV("placement"));
    if (!text) {
        say_missing(reader, value, "placement", "a component's placement");
        return;
    }
    const struct node *resolved = read_value(reader, text);
    rule->has_text = resolved && read_placement_text(reader, resolved, &rule->text);
}

void section_components(struct reader *reader, const struct node *placement)
{
    if (!want_mapping(reader, placement, "'component_placement'"))
        return;
    size_t names = 0;
    for (int32_t i = 0; i < placement->count; i++) {
        struct strview key = placement->pairs[i].key->text;
        for (size_t k = 0; k < key.len; k++)
            names += key.at[k] == ',';
        names++;
    }
    if (names > COMPONENTS_MAX) {
        diag_error(reader->diag, ROOST_ERR_LIMIT, node_place(placement), "more than %d components",
                   COMPONENTS_MAX);
        diag_hint(reader->diag,
                  "join components of equal placement under one key: 'actor,critic: 0-7'");
        return;
    }
    struct roost_config *config = reader->config;
    config->rules = read_array(reader, struct placement_rule, placement->count);
    config->components = read_array(reader, struct component, names);
    if (!config->rules || !config->components)
        return;
    for (int32_t i = 0; i < placement->count; i++) {
        struct placement_rule *rule = &config->rules[config->rule_count];
        const struct node *value = read_value(reader, placement->pairs[i].value);
        if (value)
            read_rule(reader, value, rule);
        rule->is_broken = !add_names(reader, placement->pairs[i].key, config->rule_count) ||
                          !rule->has_text || !rule->has_labels;
        config->rule_count++;
    }
}
