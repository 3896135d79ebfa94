/* render.h - plans and reports as text and JSON. Pure: the same value gives the same bytes. */
#ifndef ROOST_RENDER_H
#define ROOST_RENDER_H

#include <roost/bundle.h>
#include <roost/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes bytes as they are made; false stops the rendering. */
typedef bool (*roost_write_fn)(void *ctx, const char *bytes, size_t len);

struct roost_text_style {
    int width;      /* columns of the terminal; 0 = 80 */
    bool has_color; /* use colours */
};

/* One JSON document with everything a plan knows. `component` limits it to one (NULL = all) and must
 * exist. ROOST_ERR_IO when `write` refused, ROOST_ERR_MEMORY without memory. */
ROOST_API enum roost_code roost_render_plan_json(const struct roost_plan *plan,
                                                 const struct roost_cluster *cluster,
                                                 const char *component, roost_write_fn write,
                                                 void *ctx) ROOST_MUST_USE;

/* The same as a table for people; rows that differ only in their ranks are folded. */
ROOST_API enum roost_code roost_render_plan_text(const struct roost_plan *plan,
                                                 const struct roost_cluster *cluster,
                                                 const char *component,
                                                 const struct roost_text_style *style,
                                                 roost_write_fn write, void *ctx) ROOST_MUST_USE;

/* Placement groups: one JSON document, or tables for people in which engines that look alike are
 * folded. */
ROOST_API enum roost_code roost_render_groups_json(const struct roost_bundles *bundles,
                                                   roost_write_fn write, void *ctx) ROOST_MUST_USE;
ROOST_API enum roost_code roost_render_groups_text(const struct roost_bundles *bundles,
                                                   const struct roost_text_style *style,
                                                   roost_write_fn write, void *ctx) ROOST_MUST_USE;

/* Every entry with its line, a caret and the cure. */
ROOST_API enum roost_code roost_render_report_text(const struct roost_report *report,
                                                   const struct roost_text_style *style,
                                                   roost_write_fn write, void *ctx) ROOST_MUST_USE;

/* {"roost": 1, "ok": ..., "errors": [...], "warnings": [...]} */
ROOST_API enum roost_code roost_render_report_json(const struct roost_report *report,
                                                   roost_write_fn write, void *ctx) ROOST_MUST_USE;

/* The nodes of a cluster as a table, a line a node. */
ROOST_API enum roost_code roost_render_cluster_text(const struct roost_cluster *cluster,
                                                    roost_write_fn write, void *ctx) ROOST_MUST_USE;

/* A cluster as a snapshot: {"roost": 1, "cluster": {"nodes": [...], "node_groups": [...]}}, from which
 * roost_cluster_new reads the same nodes. */
ROOST_API enum roost_code roost_render_cluster_json(const struct roost_cluster *cluster,
                                                    roost_write_fn write, void *ctx) ROOST_MUST_USE;

/* A cluster as the managers of a run on this machine tell it: the nodes and groups of a snapshot and the
 * config, which may be NULL, with what was put over it. It is the `view` of a run and of a keeper. */
ROOST_API enum roost_code roost_render_view_json(const struct roost_cluster *cluster,
                                                 const struct roost_config *config,
                                                 roost_write_fn write, void *ctx) ROOST_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
