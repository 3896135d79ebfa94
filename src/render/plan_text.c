/* plan_text.c - a plan as one table: a line for what differs, folded where it does not. */
#include <stdio.h>
#include <string.h>

#include "base/palette.h"
#include "render/plan_rows.h"
#include "render/stream.h"

enum { COLUMNS = 6 };
enum column { COMPONENT, RANKS, NODES, PER_NODE, GROUP, HOLDS };

static const char *const titles[COLUMNS] = {"COMPONENT", "RANKS",      "NODES",
                                            "PER NODE",  "NODE GROUP", "HOLDS"};

struct table {
    struct text *out;
    bool has_color;
    bool has_groups; /* some component is in a group of its own */
    int width;
    int widths[COLUMNS]; /* HOLDS, once settled, has what the others leave */
    int blanks;          /* owed before the next text of this line; none stay at its end */
};

static void range_text(char *out, size_t size, int32_t first, int32_t last)
{
    snprintf(out, size, first == last ? "%d" : "%d-%d", (int)first, (int)last);
}

/* The cells of a row. Component and group names are at most 63 long. */
struct cells {
    char text[GROUP + 1][64];
};

static struct cells cells_of(const struct roost_component *component, const struct plan_row *row,
                             bool is_first)
{
    struct cells cells = {0};
    snprintf(cells.text[COMPONENT], sizeof cells.text[0], "%s", is_first ? component->name : "");
    range_text(cells.text[RANKS], sizeof cells.text[0], row->first_rank, row->last_rank);
    range_text(cells.text[NODES], sizeof cells.text[0], row->first_node, row->last_node);
    snprintf(cells.text[PER_NODE], sizeof cells.text[0], "%d", (int)row->per_node);
    snprintf(cells.text[GROUP], sizeof cells.text[0], "%s", row->label);
    return cells;
}

static void measure(struct table *table, const struct roost_component *component,
                    const struct plan_rows *rows)
{
    for (size_t r = 0; r < rows->count; r++) {
        struct cells cells = cells_of(component, &rows->list[r], r == 0);
        for (int c = 0; c <= GROUP; c++) {
            int len = (int)strlen(cells.text[c]);
            table->widths[c] = len > table->widths[c] ? len : table->widths[c];
        }
        int len = (int)strlen(rows->list[r].holds);
        table->widths[HOLDS] = len > table->widths[HOLDS] ? len : table->widths[HOLDS];
        table->has_groups |= strcmp(rows->list[r].label, "cluster") != 0;
    }
}

static bool is_shown(const struct table *table, int column)
{
    return column != GROUP || table->has_groups;
}

/* Where the last column starts. */
static int indent_of(const struct table *table)
{
    int indent = 0;
    for (int c = 0; c <= GROUP; c++)
        indent += is_shown(table, c) ? table->widths[c] + 2 : 0;
    return indent;
}

/* Long names give way, the longer first, until the table fits or they are as short as their titles. */
static void settle(struct table *table)
{
    enum { HOLDS_WIDTH = 16, HOLDS_NARROWEST = 10 };
    int wanted = table->widths[HOLDS] < HOLDS_WIDTH ? table->widths[HOLDS] : HOLDS_WIDTH;
    while (indent_of(table) + wanted > table->width) {
        int column = table->has_groups && table->widths[GROUP] > table->widths[COMPONENT]
                         ? GROUP
                         : COMPONENT;
        if (table->widths[column] <= (int)strlen(titles[column]))
            break;
        table->widths[column]--;
    }
    int room = table->width - indent_of(table);
    table->widths[HOLDS] = room > HOLDS_NARROWEST ? room : HOLDS_NARROWEST;
}

/* How much of `text` the next line of a cell shows: up to a blank, or behind a mark. */
static size_t cut_length(const char *text, size_t room)
{
    size_t len = strnlen(text, room + 1);
    if (len <= room)
        return len;
    for (size_t cut = room; cut > 0; cut--)
        if (text[cut] == ' ')
            return cut;
    for (size_t cut = room; cut > room / 2; cut--)
        if (strchr(",-_.", text[cut - 1]))
            return cut;
    return room;
}

/* Writes what fits of a cell, and moves `rest` on to what goes below it. */
static void put_cell(struct table *table, int column, const char **rest, bool is_first)
{
    if (!is_shown(table, column))
        return;
    /* The rest of a name is set in, so that it does not look like another. */
    int inset = is_first || column == HOLDS ? 0 : 1;
    int len = (int)cut_length(*rest, (size_t)(table->widths[column] - inset));
    int blanks = table->widths[column] - len;
    int before = column == PER_NODE ? blanks : inset;
    if (len > 0) {
        text_repeat(table->out, ' ', table->blanks + before);
        text_append(table->out, *rest, (size_t)len);
    }
    table->blanks = len > 0 ? blanks - before + 2 : table->blanks + table->widths[column] + 2;
    *rest += len;
    *rest += **rest == ' ';
}

/* One row; what is too long for its column goes on below itself. */
static void put_row(struct table *table, const char *rest[COLUMNS], int color)
{
    bool is_first = true, is_done = false;
    while (!is_done) {
        bool is_painted = table->has_color && rest[COMPONENT][0];
        table->blanks = 0;
        if (is_painted)
            text_printf(table->out, "\033[38;5;%dm", color);
        put_cell(table, COMPONENT, &rest[COMPONENT], is_first);
        if (is_painted)
            text_puts(table->out, "\033[0m");
        for (int c = RANKS; c <= HOLDS; c++)
            put_cell(table, c, &rest[c], is_first);
        text_char(table->out, '\n');
        is_first = false;
        is_done = !rest[COMPONENT][0] && !(table->has_groups && rest[GROUP][0]) && !rest[HOLDS][0];
    }
}

static void put_header(struct table *table)
{
    if (table->has_color)
        text_puts(table->out, "\033[2m");
    table->blanks = 0;
    for (int c = 0; c < COLUMNS; c++) {
        const char *title = titles[c];
        put_cell(table, c, &title, true);
    }
    text_puts(table->out, table->has_color ? "\033[0m\n" : "\n");
}

static void put_rows(struct table *table, const struct roost_component *component,
                     const struct plan_rows *rows)
{
    int color = palette_of_name(component->name);
    for (size_t r = 0; r < rows->count; r++) {
        struct cells cells = cells_of(component, &rows->list[r], r == 0);
        const char *rest[COLUMNS] = {[HOLDS] = rows->list[r].holds};
        for (int c = 0; c <= GROUP; c++)
            rest[c] = cells.text[c];
        put_row(table, rest, color);
    }
}

/* A line of prose, folded at its blanks. */
static void put_prose(struct table *table, struct text *line)
{
    const char *rest = text_string(line);
    table->out->has_failed |= !rest;
    for (int indent = 0; rest && *rest; indent = 2) {
        size_t len = cut_length(rest, (size_t)(table->width > 20 ? table->width - indent : 20));
        text_repeat(table->out, ' ', indent);
        text_append(table->out, rest, len);
        text_char(table->out, '\n');
        rest += len;
        rest += *rest == ' ';
    }
    text_release(line);
}

/* "2 nodes, 16 accelerators (NV_GPU, AMD_GPU)" */
static void put_summary(struct table *table, const struct roost_plan *plan,
                        const struct roost_cluster *cluster)
{
    struct text line = TEXT_INIT;
    bool is_there[ROOST_ACCELERATOR_KUNLUN + 1] = {false};
    for (int32_t n = 0; n < cluster->node_count; n++)
        is_there[cluster->nodes[n].accelerator] = true;
    text_printf(&line, "%s: %d node%s, %lld accelerator%s",
                roost_plan_mode_word(roost_plan_mode(plan)), (int)cluster->node_count,
                cluster->node_count == 1 ? "" : "s", (long long)cluster->accelerator_count,
                cluster->accelerator_count == 1 ? "" : "s");
    const char *before = " (";
    for (int i = ROOST_ACCELERATOR_NVIDIA; i <= ROOST_ACCELERATOR_KUNLUN; i++) {
        if (!is_there[i])
            continue;
        text_printf(&line, "%s%s", before, roost_accelerator_type((enum roost_accelerator)i));
        before = ", ";
    }
    text_puts(&line, before[0] == ',' ? ")" : "");
    put_prose(table, &line);
    text_char(table->out, '\n');
}

/* How a role's accelerators are used up; what no copy of the model takes is said too. */
static void put_sizes(struct table *table, const char *name, int32_t world, int32_t tp, int32_t pp,
                      int32_t cp, int32_t dp)
{
    if (world == 0)
        return;
    struct text line = TEXT_INIT;
    text_printf(&line, "%s: %d accelerator%s = tensor %d x pipeline %d", name, (int)world,
                world == 1 ? "" : "s", (int)tp, (int)pp);
    if (cp > 1)
        text_printf(&line, " x context %d", (int)cp);
    text_printf(&line, " x data %d", (int)dp);
    int64_t left = world - (int64_t)dp * tp * pp * cp;
    if (left > 0)
        text_printf(&line, " + %lld left over", (long long)left);
    put_prose(table, &line);
}

static void put_notes(struct table *table, const struct roost_plan *plan, const char *only)
{
    text_char(table->out, '\n');
    const struct roost_model_parallel *it = roost_plan_model_parallel(plan);
    if (it && !only) {
        put_sizes(table, "actor", it->actor_world_size, it->actor_tp_size, it->actor_pp_size,
                  it->actor_cp_size, it->actor_dp_size);
        put_sizes(table, "rollout", it->rollout_world_size, it->rollout_tp_size,
                  it->rollout_pp_size, 1, it->rollout_dp_size);
        put_sizes(table, "inference", it->inference_world_size, it->inference_tp_size,
                  it->inference_pp_size, 1, it->inference_dp_size);
        put_sizes(table, "critic", it->critic_world_size, it->critic_tp_size, it->critic_pp_size,
                  it->critic_cp_size, it->critic_dp_size);
        put_sizes(table, "critic inference", it->critic_inference_world_size,
                  it->critic_inference_tp_size, it->critic_inference_pp_size, 1,
                  it->critic_inference_dp_size);
    }
    int64_t processes = 0;
    for (size_t c = 0; c < roost_plan_component_count(plan); c++) {
        const struct roost_component *component = roost_plan_component(plan, c);
        if (only && strcmp(only, component->name) != 0)
            continue;
        processes += component->world_size;
        if (component->isolate_accelerator)
            continue;
        struct text line = TEXT_INIT;
        text_printf(&line, "%s: not isolated, every process sees all accelerators of its node",
                    component->name);
        put_prose(table, &line);
    }
    text_printf(table->out, "%lld process%s\n", (long long)processes, processes == 1 ? "" : "es");
}

/* Two passes: the first measures, the second writes. */
static bool put_table(struct table *table, const struct roost_plan *plan,
                      const struct roost_cluster *cluster, const char *only)
{
    for (int c = 0; c < COLUMNS; c++)
        table->widths[c] = (int)strlen(titles[c]);
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1) {
            settle(table);
            put_header(table);
        }
        for (size_t i = 0; i < roost_plan_component_count(plan); i++) {
            const struct roost_component *component = roost_plan_component(plan, i);
            struct plan_rows rows;
            if (only && strcmp(only, component->name) != 0)
                continue;
            bool is_good = plan_rows_init(&rows, component, cluster);
            if (is_good && pass == 0)
                measure(table, component, &rows);
            else if (is_good)
                put_rows(table, component, &rows);
            plan_rows_release(&rows);
            if (!is_good)
                return false;
        }
    }
    return true;
}

enum roost_code roost_render_plan_text(const struct roost_plan *plan,
                                       const struct roost_cluster *cluster, const char *component,
                                       const struct roost_text_style *style, roost_write_fn write,
                                       void *ctx)
{
    struct stream stream;
    stream_start(&stream, write, ctx);
    struct table table = {.out = &stream.text,
                          .has_color = style && style->has_color,
                          .width = style && style->width ? style->width : 80};
    put_summary(&table, plan, cluster);
    if (!put_table(&table, plan, cluster, component))
        stream.text.has_failed = true;
    put_notes(&table, plan, component);
    return stream_end(&stream);
}
