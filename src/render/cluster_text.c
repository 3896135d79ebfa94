/* cluster_text.c - a cluster as a table: one line per node. */
#include <stdio.h>
#include <string.h>

#include "render/stream.h"
#include "topology/cluster.h"

enum { COLUMNS = 5, CELL_MAX = 80 };

struct row {
    char cells[COLUMNS][CELL_MAX];
};

static const struct row titles = {{"NODE", "ADDRESS", "ID", "CPUS", "ACCELERATORS"}};

static struct row row_of(const struct cluster_node *node, int32_t rank)
{
    struct row row = {0};
    snprintf(row.cells[0], CELL_MAX, "%d", (int)rank);
    snprintf(row.cells[1], CELL_MAX, "%s", node->address ? node->address : "-");
    snprintf(row.cells[2], CELL_MAX, "%.12s", node->id ? node->id : "-");
    if (node->num_cpus >= 0)
        snprintf(row.cells[3], CELL_MAX, "%d", (int)node->num_cpus);
    else
        snprintf(row.cells[3], CELL_MAX, "-");
    if (node->accelerator_count == 0)
        snprintf(row.cells[4], CELL_MAX, "none");
    else
        snprintf(row.cells[4], CELL_MAX, "%d %s%s%.40s", (int)node->accelerator_count,
                 roost_accelerator_type(node->accelerator), node->model ? " " : "",
                 node->model ? node->model : "");
    return row;
}

static void measure(int *widths, const struct row *row)
{
    for (int c = 0; c < COLUMNS; c++) {
        int len = (int)strlen(row->cells[c]);
        widths[c] = len > widths[c] ? len : widths[c];
    }
}

static void put_row(struct text *out, const int *widths, const struct row *row)
{
    for (int c = 0; c < COLUMNS; c++)
        text_printf(out, "%-*s%s", c + 1 < COLUMNS ? widths[c] : 0, row->cells[c],
                    c + 1 < COLUMNS ? "  " : "\n");
}

enum roost_code roost_render_cluster_text(const struct roost_cluster *cluster, roost_write_fn write,
                                          void *ctx)
{
    struct stream stream;
    int widths[COLUMNS] = {0};
    measure(widths, &titles);
    for (int32_t n = 0; n < cluster->node_count; n++) {
        struct row row = row_of(&cluster->nodes[n], n);
        measure(widths, &row);
    }
    stream_start(&stream, write, ctx);
    put_row(&stream.text, widths, &titles);
    for (int32_t n = 0; n < cluster->node_count; n++) {
        struct row row = row_of(&cluster->nodes[n], n);
        put_row(&stream.text, widths, &row);
    }
    return stream_end(&stream);
}
