/* bundles_text.c - placement groups as two tables: what each role sees, and where engines are. */
#include <stdio.h>
#include <string.h>

#include <roost/render.h>

#include "base/amount.h"
#include "base/palette.h"
#include "base/strview.h"
#include "render/bundles_rows.h"
#include "render/stream.h"

enum { COLUMNS = 8, CELL = 96 };
enum column { MODEL, TYPE, ENGINES, RANKS, SLOTS, NODES, GPUS, ADDRESS };

static const char *const titles[COLUMNS] = {"MODEL", "TYPE",  "ENGINES", "RANKS",
                                            "SLOTS", "NODES", "GPUS",    "ADDRESS"};

struct table {
    struct text *out;
    const struct roost_layout *layout;
    bool has_color;
    int widths[COLUMNS];
};

struct cells {
    char text[COLUMNS][CELL];
};

static void put_range(char *out, int32_t first, int32_t last)
{
    if (last < first)
        snprintf(out, CELL, "-");
    else
        snprintf(out, CELL, first == last ? "%d" : "%d-%d", (int)first, (int)last);
}

/* Parts of an engine may share a node that has more GPUs than num_gpus_per_node says. */
static bool has_node_for_each(const struct roost_engines *it, const struct bundles_row *row)
{
    for (int32_t p = row->first_part + 1; p <= row->last_part; p++)
        if (it->node_rank[p] > 0 && it->machine[p] == it->machine[p - 1])
            return false;
    return true;
}

static void fill_gpus(struct cells *cells, const struct roost_layout *layout,
                      const struct bundles_row *row)
{
    const struct roost_engines *it = &layout->engines;
    int32_t each = row->group->gpus_per_engine, per_node = layout->num_gpus_per_node;
    char *out = cells->text[GPUS];
    if (row->group->first_slot < 0) {
        snprintf(out, CELL, each < 0 ? "?" : "%d", (int)each);
    } else if (row->last_part < 0) {
        snprintf(out, CELL, "-");
    } else if (each > per_node) {
        snprintf(out, CELL, has_node_for_each(it, row) ? "%d over %d nodes" : "%d in %d parts",
                 (int)each, (int)(each / per_node));
    } else {
        int32_t last = row->last_part;
        int32_t end = it->local_gpu[last] + each - 1, first = it->local_gpu[row->first_part];
        put_range(out, first, end);
        size_t len = strlen(out);
        if (end - first + 1 > each)
            snprintf(out + len, CELL - len, ", %d each", (int)each);
    }
}

static void fill_cells(struct cells *cells, const struct roost_layout *layout,
                       const struct bundles_row *row)
{
    const struct roost_engines *it = &layout->engines;
    const struct roost_server_group *group = row->group;
    bool has_parts = row->last_part >= row->first_part;
    snprintf(cells->text[MODEL], CELL, "%s", group->model);
    snprintf(cells->text[TYPE], CELL, "%s", roost_worker_type_word(group->type));
    put_range(cells->text[ENGINES], row->first_engine, row->last_engine);
    put_range(cells->text[RANKS], has_parts ? it->rank[row->first_part] : 0,
              has_parts ? it->rank[row->last_part] : -1);
    int32_t first = has_parts ? it->first_slot[row->first_engine] : group->first_slot;
    put_range(cells->text[SLOTS], first,
              has_parts ? it->first_slot[row->last_engine] + group->gpus_per_engine - 1
              : group->first_slot < 0 ? -2
                                      : first + group->num_gpus - 1);
    put_range(cells->text[NODES], has_parts ? it->machine[row->first_part] : 0,
              has_parts ? it->machine[row->last_part] : -1);
    fill_gpus(cells, layout, row);
    snprintf(cells->text[ADDRESS], CELL, "%s",
             layout->engines.address ? quote(sv_from(it->address[row->first_engine])).text : "");
}

/* Nothing is left hanging behind the last column. */
static void put_cells(struct table *table, const struct cells *cells, int color)
{
    int last = table->layout->engines.address ? ADDRESS : GPUS;
    for (int c = 0; c <= last; c++) {
        if (c == MODEL && color)
            text_printf(table->out, "\033[38;5;%dm", color);
        text_printf(table->out, "%-*s", c == last ? 0 : table->widths[c], cells->text[c]);
        text_puts(table->out, c == MODEL && color ? "\033[0m" : "");
        text_puts(table->out, c == last ? "" : "  ");
    }
}

static void put_header(struct table *table)
{
    struct cells cells = {0};
    for (int c = 0; c < COLUMNS; c++)
        snprintf(cells.text[c], CELL, "%s", titles[c]);
    text_puts(table->out, table->has_color ? "\033[2m" : "");
    put_cells(table, &cells, 0);
    text_puts(table->out, table->has_color ? "\033[0m\n" : "\n");
}

/* Two passes: the first measures, the second writes. */
static void put_engines(struct table *table)
{
    for (int c = 0; c < COLUMNS; c++)
        table->widths[c] = (int)strlen(titles[c]);
    for (int pass = 0; pass < 2; pass++) {
        struct bundles_row row;
        struct cells cells;
        size_t group = 0;
        int32_t engine = 0;
        if (pass == 1)
            put_header(table);
        while (bundles_next_row(table->layout, &group, &engine, &row)) {
            fill_cells(&cells, table->layout, &row);
            for (int c = 0; c < COLUMNS && pass == 0; c++) {
                int len = (int)strlen(cells.text[c]);
                table->widths[c] = len > table->widths[c] ? len : table->widths[c];
            }
            if (pass == 0)
                continue;
            size_t index = (size_t)(row.group - table->layout->groups);
            put_cells(table, &cells, table->has_color ? palette_of_index(index) : 0);
            text_char(table->out, '\n');
        }
    }
}

/* --- roles --- */

enum { ROLES = 3 };

struct role {
    const char *name;
    char slots[CELL], ranks[CELL];
    const struct roost_share *share;
};

/* Placeholders keep the ranks they would have had, so those of engines may have gaps. */
static void put_ranks(char *out, const struct roost_engines *it)
{
    size_t len = 0;
    for (int32_t p = 0, end; p < it->part_count && len < CELL; p = end) {
        char range[CELL];
        for (end = p + 1; end < it->part_count && it->rank[end] == it->rank[end - 1] + 1;)
            end++;
        put_range(range, it->rank[p], it->rank[end - 1]);
        len += (size_t)snprintf(out + len, CELL - len, p ? ", %s" : "%s", range);
    }
    if (len >= CELL)
        snprintf(out, CELL, "%d in %d-%d", (int)it->part_count, (int)it->rank[0],
                 (int)it->rank[it->part_count - 1]);
}

static void add_role(struct role *role, const char *name, int32_t first, int32_t count,
                     const struct roost_share *share)
{
    role->name = name;
    role->share = share;
    put_range(role->slots, first, first + count - 1);
    put_range(role->ranks, 0, share->world_size - 1);
}

static int larger(int width, const char *text)
{
    return (int)strlen(text) > width ? (int)strlen(text) : width;
}

static void put_roles(struct table *table)
{
    const struct roost_layout *layout = table->layout;
    const char *dim = table->has_color ? "\033[2m" : "", *end = table->has_color ? "\033[0m" : "";
    struct role roles[ROLES];
    int count = 0, slots = (int)strlen("SLOTS"), ranks = (int)strlen("RANKS");
    add_role(&roles[count++], "actor", 0, layout->actor.world_size, &layout->actor);
    if (layout->has_critic)
        add_role(&roles[count++], "critic", 0, layout->critic.world_size, &layout->critic);
    if (layout->row != ROOST_LAYOUT_TRAIN_ONLY)
        add_role(&roles[count++], "rollout", layout->rollout.first, layout->rollout.count,
                 &layout->rollout);
    if (layout->row != ROOST_LAYOUT_TRAIN_ONLY && layout->engines.part_count > 0)
        put_ranks(roles[count - 1].ranks, &layout->engines);
    for (int i = 0; i < count; i++) {
        slots = larger(slots, roles[i].slots);
        ranks = larger(ranks, roles[i].ranks);
    }
    text_printf(table->out, "%s%-7s  %-*s  %-*s  %s%s\n", dim, "ROLE", slots, "SLOTS", ranks,
                "RANKS", "OF A GPU", end);
    for (int i = 0; i < count; i++)
        text_printf(table->out, "%-7s  %-*s  %-*s  %s\n", roles[i].name, slots, roles[i].slots,
                    ranks, roles[i].ranks, amount_text(roles[i].share->gpu_each).text);
    text_char(table->out, '\n');
}

/* --- ports --- */

/* What a part of each kind asks of its machine; kinds with the same answer are one line. */
static void put_ports(struct text *out, const struct roost_layout *layout)
{
    const struct roost_engines *it = &layout->engines;
    int32_t most = 0, dist = it->part_count ? it->dist_ports[0] : 0;
    bool has_boot = false, has_parts = false, shares_nodes = false;
    for (int32_t p = 0; p < it->part_count; p++) {
        has_boot |= it->boot_ports[p] > 0;
        has_parts |= it->node_rank[p] > 0;
        shares_nodes |= it->node_rank[p] > 0 && it->machine[p] == it->machine[p - 1];
    }
    for (int32_t n = 0; n < layout->machine_count; n++)
        most = layout->machines[n].port_count > most ? layout->machines[n].port_count : most;
    if (it->part_count == 0)
        return;
    text_printf(out, "ports of a rank: server, nccl, dist_init %d%s\n", (int)dist,
                has_boot ? "; of prefill also bootstrap" : "");
    if (has_parts)
        text_printf(out, "engines %s have dist_init on their first rank only\n",
                    shares_nodes ? "in several parts" : "over several nodes");
    text_printf(out, "ports of a node: %d at most, from %d on\n", (int)most,
                (int)layout->port_base);
}

static void put_notes(struct text *out, const struct roost_layout *layout)
{
    if (layout->group_count)
        text_char(out, '\n');
    put_ports(out, layout);
    for (size_t g = 0; g < layout->group_count; g++) {
        if (!layout->groups[g].needs_offload)
            continue;
        text_puts(out, "engines on the actor's slots are offloaded while it trains\n");
        break;
    }
    if (!layout->has_machines)
        text_printf(out, "no cluster was named: nodes are counted as %d GPUs each\n",
                    (int)layout->num_gpus_per_node);
}

enum roost_code roost_render_bundles_text(const struct roost_bundles *bundles,
                                          const struct roost_text_style *style,
                                          roost_write_fn write, void *ctx)
{
    const struct roost_layout *layout = roost_bundles_layout(bundles);
    struct stream stream;
    stream_start(&stream, write, ctx);
    struct table table = {
        .out = &stream.text, .layout = layout, .has_color = style && style->has_color};
    text_printf(&stream.text, "%s%s: %d GPU%s, %s CPUs; rollout from slot %d\n\n",
                roost_layout_row_word(layout->row), layout->is_seed ? " (profile seed)" : "",
                (int)layout->num_gpus, layout->num_gpus == 1 ? "" : "s",
                amount_text(layout->num_cpus).text, (int)layout->rollout_offset);
    put_roles(&table);
    if (layout->group_count)
        put_engines(&table);
    else
        text_puts(&stream.text, "no engines\n");
    put_notes(&stream.text, layout);
    return stream_end(&stream);
}
