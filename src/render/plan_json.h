/* plan_json.h - plan_json.c for those who have more to say of each process, or of a cluster. */
#ifndef RENDER_PLAN_JSON_H
#define RENDER_PLAN_JSON_H

#include <roost/render.h>

#include "json/json_writer.h"

/* Writes further members of a process's object. Called in the order of the document; may be NULL. */
struct plan_json_more {
    void (*put)(void *ctx, struct json_writer *json, const struct roost_component *component,
                int32_t rank);
    void *ctx;
};

/* The members "nodes" and "node_groups" of an object that tells of a cluster. */
void render_put_cluster(struct json_writer *json, const struct roost_cluster *cluster);

/* As roost_render_plan_json, with `more` about every process. */
enum roost_code render_plan_json(const struct roost_plan *plan, const struct roost_cluster *cluster,
                                 const char *component, const struct plan_json_more *more,
                                 roost_write_fn write, void *ctx) ROOST_MUST_USE;

#endif
