/* plan_text.c - a plan as one table: a line for what differs, folded where it does not. */
#include <stdio.h>
#include <string.h>

#include "base/palette.h"
#include "render/plan_notes.h"
#include "render/plan_rows.h"
#include "render/stream.h"

enum { COLUMNS = 7 };
enum column { COMPONENT, RANKS, NODES, PER_NODE, GROUP, RESOURCES, HOLDS };

static const char *const titles[COLUMNS] = {"COMPONENT",  "RANKS",     "NODES", "PER NODE",
                                            "NODE GROUP", "RESOURCES", "HOLDS"};

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

/* The cells of a row. Component and group names are at most 63 long, a range of ranks 21. */
struct cells {
    char text[RESOURCES + 1][PLAN_ROW_RANGES * 24 + 32];
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
    struct text resources = text_fixed(cells.text[RESOURCES], sizeof cells.text[0]);
    plan_row_put_resources(&resources, row);
    text_string(&resources);
    return cells;
}

static void measure(struct table *table, const struct roost_component *component,
                    const struct plan_rows *rows)
{
    for (size_t r = 0; r < rows->count; r++) {
        struct cells cells = cells_of(component, &rows->list[r], r == 0);
        for (int c = 0; c <= RESOURCES; c++) {
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
    for (int c = 0; c <= RESOURCES; c++)
        indent += is_shown(table, c) ? table->widths[c] + 2 : 0;
    return indent;
}

/* Long cells give way, the longest first, until the table fits or they are as short as their titles. */
static void settle(struct table *table)
{
    enum { HOLDS_WIDTH = 16, HOLDS_NARROWEST = 10 };
    int wanted = table->widths[HOLDS] < HOLDS_WIDTH ? table->widths[HOLDS] : HOLDS_WIDTH;
    while (indent_of(table) + wanted > table->width) {
        int column = -1;
        for (int c = 0; c <= RESOURCES; c++)
            if (is_shown(table, c) && table->widths[c] > (int)strlen(titles[c]) &&
                (c == COMPONENT || c == GROUP || c == RESOURCES) &&
                (column < 0 || table->widths[c] > table->widths[column]))
                column = c;
        if (column < 0)
            break;
        table->widths[column]--;
    }
    int room = table->width - indent_of(table);
    table->widths[HOLDS] = room > HOLDS_NARROWEST ? room : HOLDS_NARROWEST;
}

size_t cut_length(const char *text, size_t room)
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
    int inset = is_first || column >= RESOURCES ? 0 : 1;
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
        is_done = true;
        for (int c = 0; c < COLUMNS; c++)
            is_done &= !is_shown(table, c) || !rest[c][0];
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
        for (int c = 0; c <= RESOURCES; c++)
            rest[c] = cells.text[c];
        put_row(table, rest, color);
    }
}

/* Two passes: the first measures, the second writes. shares[i] = how many processes of component i share
 * an accelerator by its own rule. */
static bool put_table(struct table *table, const struct roost_plan *plan,
                      const struct roost_cluster *cluster, const char *only, int32_t *shares)
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
            if (only && !list_has(only, component->name))
                continue;
            bool is_good = plan_rows_init(&rows, component, cluster);
            if (is_good && pass == 0)
                measure(table, component, &rows);
            else if (is_good)
                put_rows(table, component, &rows);
            for (size_t r = 0; r < rows.count; r++)
                if (rows.list[r].share > shares[i])
                    shares[i] = rows.list[r].share;
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
    struct arena scratch = ARENA_INIT;
    struct table table = {.out = &stream.text,
                          .has_color = style && style->has_color,
                          .width = style && style->width ? style->width : 80};
    int32_t *shares = arena_zeroed(&scratch, int32_t, roost_plan_component_count(plan));
    struct plan_notes notes = {&stream.text, table.width, plan, cluster, component, shares};
    plan_notes_put_summary(&notes);
    if (!shares || !put_table(&table, plan, cluster, component, shares) || !plan_notes_put(&notes))
        stream.text.has_failed = true;
    arena_release(&scratch);
    return stream_end(&stream);
}
