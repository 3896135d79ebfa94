/* render.h - writes plans, bundles, reports and clusters as text and JSON. Pure: the same value gives the
 * same bytes. */
#ifndef ROOST_RENDER_H
#define ROOST_RENDER_H

#include <roost/bundle.h>
#include <roost/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Receives the bytes piece by piece; false stops the rendering. */
typedef bool (*roost_write_fn)(void *ctx, const char *bytes, size_t len);

struct roost_text_style {
    int width;      /* columns of the terminal; 0 = 80 */
    bool has_color; /* use colours */
};

/* One JSON document with everything that the plan holds. `component` (NULL = all) selects some, which must
 * exist: a name, or names with commas between ("actor,rollout"). ROOST_ERR_IO: `write` returned false. ROOST_ERR_MEMORY: there is not enough memory. */
ROOST_API enum roost_code roost_render_plan_json(const struct roost_plan *plan,
                                                 const struct roost_cluster *cluster,
                                                 const char *component, roost_write_fn write,
                                                 void *ctx) ROOST_MUST_USE;

/* The same as a table. Rows that differ only in their ranks are folded into one. Below it stand the
 * accelerators that carry several processes, and those that carry none. */
ROOST_API enum roost_code roost_render_plan_text(const struct roost_plan *plan,
                                                 const struct roost_cluster *cluster,
                                                 const char *component,
                                                 const struct roost_text_style *style,
                                                 roost_write_fn write, void *ctx) ROOST_MUST_USE;

/* Placement groups as one JSON document, or as tables. The tables fold engines that look alike. */
ROOST_API enum roost_code roost_render_bundles_json(const struct roost_bundles *bundles,
                                                    roost_write_fn write, void *ctx) ROOST_MUST_USE;
ROOST_API enum roost_code roost_render_bundles_text(const struct roost_bundles *bundles,
                                                    const struct roost_text_style *style,
                                                    roost_write_fn write, void *ctx) ROOST_MUST_USE;

/* Every entry with its source line, a caret and the hint. */
ROOST_API enum roost_code roost_render_report_text(const struct roost_report *report,
                                                   const struct roost_text_style *style,
                                                   roost_write_fn write, void *ctx) ROOST_MUST_USE;

/* {"roost": 1, "ok": ..., "errors": [...], "warnings": [...]} */
ROOST_API enum roost_code roost_render_report_json(const struct roost_report *report,
                                                   roost_write_fn write, void *ctx) ROOST_MUST_USE;

/* The nodes of a cluster as a table, one line per node. */
ROOST_API enum roost_code roost_render_cluster_text(const struct roost_cluster *cluster,
                                                    roost_write_fn write, void *ctx) ROOST_MUST_USE;

/* A cluster as a snapshot: {"roost": 1, "cluster": {"nodes": [...], "node_groups": [...]}}, from which
 * roost_cluster_new reads the same nodes. */
ROOST_API enum roost_code roost_render_cluster_json(const struct roost_cluster *cluster,
                                                    roost_write_fn write, void *ctx) ROOST_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
