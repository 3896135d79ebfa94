/* plan_notes.c - the lines around the table of a plan, each folded at its blanks. */
#include "render/plan_notes.h"

#include <string.h>

#include "base/strview.h"
#include "placement/occupancy.h"

/* A line of prose, folded at its blanks. */
static void put_prose(struct plan_notes *notes, struct text *line)
{
    const char *rest = text_string(line);
    notes->out->has_failed |= !rest;
    for (int indent = 0; rest && *rest; indent = 2) {
        size_t len = cut_length(rest, (size_t)(notes->width > 20 ? notes->width - indent : 20));
        text_repeat(notes->out, ' ', indent);
        text_append(notes->out, rest, len);
        text_char(notes->out, '\n');
        rest += len;
        rest += *rest == ' ';
    }
    text_release(line);
}

/* The models of one vendor's accelerators, each once: "NV_GPU H100, NV_GPU A800", or "NV_GPU" alone. */
static void put_models(struct text *line, const struct roost_cluster *cluster, int vendor,
                       const char **before)
{
    enum { MODELS_MAX = 4 };
    const char *seen[MODELS_MAX] = {NULL};
    int count = 0;
    bool has_more = false;
    for (int32_t n = 0; n < cluster->node_count; n++) {
        const struct cluster_node *node = &cluster->nodes[n];
        if ((int)node->accelerator != vendor ||
            (n > 0 && node->model == node[-1].model && node->accelerator == node[-1].accelerator))
            continue;
        const char *model = node->model ? node->model : "";
        int i = 0;
        while (i < count && strcmp(seen[i], model) != 0)
            i++;
        if (i == count && count < MODELS_MAX)
            seen[count++] = model;
        else
            has_more |= i == count;
    }
    for (int i = 0; i < count; i++) {
        text_printf(line, "%s%s%s", *before, roost_accelerator_type((enum roost_accelerator)vendor),
                    seen[i][0] ? " " : "");
        text_safe(line, sv_from(seen[i]));
        *before = ", ";
    }
    text_puts(line, has_more ? ", ..." : "");
}

void plan_notes_put_summary(struct plan_notes *notes)
{
    const struct roost_cluster *cluster = notes->cluster;
    struct text line = TEXT_INIT;
    text_printf(&line, "%s: %d node%s, %lld accelerator%s",
                roost_plan_mode_word(roost_plan_mode(notes->plan)), (int)cluster->node_count,
                cluster->node_count == 1 ? "" : "s", (long long)cluster->accelerator_count,
                cluster->accelerator_count == 1 ? "" : "s");
    const char *before = " (";
    for (int i = ROOST_ACCELERATOR_NVIDIA; i < ROOST_ACCELERATOR_COUNT; i++)
        put_models(&line, cluster, i, &before);
    text_puts(&line, before[0] == ',' ? ")" : "");
    put_prose(notes, &line);
    text_char(notes->out, '\n');
}

/* How a role's accelerators are used up; what no copy of the model takes is said too. */
static void put_sizes(struct plan_notes *notes, const char *name, int32_t world, int32_t tp,
                      int32_t pp, int32_t cp, int32_t dp)
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
    put_prose(notes, &line);
}

static void put_roles(struct plan_notes *notes)
{
    const struct roost_model_parallel *it = roost_plan_model_parallel(notes->plan);
    if (!it || notes->only)
        return;
    put_sizes(notes, "actor", it->actor_world_size, it->actor_tp_size, it->actor_pp_size,
              it->actor_cp_size, it->actor_dp_size);
    put_sizes(notes, "rollout", it->rollout_world_size, it->rollout_tp_size, it->rollout_pp_size, 1,
              it->rollout_dp_size);
    put_sizes(notes, "inference", it->inference_world_size, it->inference_tp_size,
              it->inference_pp_size, 1, it->inference_dp_size);
    put_sizes(notes, "critic", it->critic_world_size, it->critic_tp_size, it->critic_pp_size,
              it->critic_cp_size, it->critic_dp_size);
    put_sizes(notes, "critic inference", it->critic_inference_world_size,
              it->critic_inference_tp_size, it->critic_inference_pp_size, 1,
              it->critic_inference_dp_size);
}

/* --- accelerators that carry several processes --- */

static const char *name_of(const struct plan_notes *notes, int32_t component)
{
    return roost_plan_component(notes->plan, (size_t)component)->name;
}

/* Several components, or more processes of one than its rule gives each accelerator: the table shows the
 * rule, not what meets. */
static bool is_crowded(const struct plan_notes *notes, const struct crowd *crowds, int32_t at)
{
    const struct crowd *it = &crowds[at];
    if (at == 0 || it->total < 2 || (it->below == 0 && it->count <= notes->shares[it->component]))
        return false;
    for (; notes->only && at > 0; at = crowds[at].below)
        if (list_has(notes->only, name_of(notes, crowds[at].component)))
            return true;
    return !notes->only;
}

/* "actor, reward, 2 env": the crowd's first components. */
static void put_crowd(const struct plan_notes *notes, struct text *line, const struct crowd *crowds,
                      int32_t top)
{
    enum { SHOWN = 8 };
    int depth = 0;
    for (int32_t at = top; at > 0; at = crowds[at].below)
        depth++;
    for (int i = 0; i < depth && i < SHOWN; i++) {
        int32_t at = top;
        for (int above = depth - 1; above > i; above--)
            at = crowds[at].below;
        text_puts(line, i ? ", " : "");
        if (crowds[at].count > 1)
            text_printf(line, "%d ", (int)crowds[at].count);
        text_puts(line, name_of(notes, crowds[at].component));
    }
    text_puts(line, depth > SHOWN ? ", ..." : "");
}

static void put_range(struct text *out, int32_t first, int32_t last)
{
    text_printf(out, first == last ? "%d" : "%d-%d", (int)first, (int)last);
}

/* The accelerators of a node that have crowd `crowd`; returns how many. */
static int32_t put_units(struct text *line, const int32_t *crowd_of, int32_t count, int32_t crowd)
{
    const char *before = "";
    int32_t found = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t last = i;
        if (crowd_of[i] != crowd)
            continue;
        while (last + 1 < count && crowd_of[last + 1] == crowd)
            last++;
        text_puts(line, before);
        put_range(line, i, last);
        before = ",";
        found += last - i + 1;
        i = last;
    }
    return found;
}

/* One line for every crowd on the nodes from `first` to `last`, which look alike. False once there are
 * more lines than anybody reads. */
static bool put_shared_on(struct plan_notes *notes, const struct occupancy *occupancy,
                          int32_t first, int32_t last, int *lines)
{
    enum { LINES_MAX = 12 };
    const int32_t *crowd_of = occupancy->crowd_of + occupancy->first_of_node[first];
    int32_t count = notes->cluster->nodes[first].accelerator_count;
    for (int32_t i = 0; i < count; i++) {
        int32_t seen = 0;
        while (crowd_of[seen] != crowd_of[i])
            seen++;
        if (seen < i || !is_crowded(notes, occupancy->crowds, crowd_of[i]))
            continue;
        struct text line = TEXT_INIT;
        if ((*lines)++ == LINES_MAX) {
            text_puts(&line, "shared: ...");
            put_prose(notes, &line);
            return false;
        }
        text_puts(&line, first == last ? "shared: node " : "shared: nodes ");
        put_range(&line, first, last);
        text_puts(&line, ": ");
        bool is_one = put_units(&line, crowd_of, count, crowd_of[i]) == 1 && first == last;
        text_printf(&line, " by %d processes%s (", (int)occupancy->crowds[crowd_of[i]].total,
                    is_one ? "" : " each");
        put_crowd(notes, &line, occupancy->crowds, crowd_of[i]);
        text_char(&line, ')');
        put_prose(notes, &line);
    }
    return true;
}

static bool is_alike(const struct plan_notes *notes, const struct occupancy *occupancy, int32_t a,
                     int32_t b)
{
    int32_t count = notes->cluster->nodes[a].accelerator_count;
    return count == notes->cluster->nodes[b].accelerator_count &&
           memcmp(occupancy->crowd_of + occupancy->first_of_node[a],
                  occupancy->crowd_of + occupancy->first_of_node[b],
                  (size_t)count * sizeof *occupancy->crowd_of) == 0;
}

static void put_shared(struct plan_notes *notes, const struct occupancy *occupancy)
{
    int lines = 0;
    int32_t last;
    for (int32_t first = 0; first < notes->cluster->node_count; first = last + 1) {
        last = first;
        while (last + 1 < notes->cluster->node_count && is_alike(notes, occupancy, first, last + 1))
            last++;
        if (!put_shared_on(notes, occupancy, first, last, &lines))
            return;
    }
}

static void put_idle(struct plan_notes *notes, const struct occupancy *occupancy)
{
    if (notes->only || occupancy->idle == 0)
        return;
    struct text line = TEXT_INIT;
    text_printf(&line, "idle: %d of %d accelerator%s (", (int)occupancy->idle,
                (int)occupancy->total, occupancy->total == 1 ? "" : "s");
    occupancy_put_idle(&line, occupancy, notes->cluster);
    text_char(&line, ')');
    put_prose(notes, &line);
}

bool plan_notes_put(struct plan_notes *notes)
{
    text_char(notes->out, '\n');
    put_roles(notes);
    int64_t processes = 0;
    for (size_t c = 0; c < roost_plan_component_count(notes->plan); c++) {
        const struct roost_component *component = roost_plan_component(notes->plan, c);
        if (notes->only && !list_has(notes->only, component->name))
            continue;
        processes += component->world_size;
        if (component->isolate_accelerator)
            continue;
        struct text line = TEXT_INIT;
        text_printf(&line, "%s: not isolated, every process sees all accelerators of its node",
                    component->name);
        put_prose(notes, &line);
    }
    struct occupancy occupancy;
    bool is_good = occupancy_init(&occupancy, notes->plan, notes->cluster);
    if (is_good && occupancy.total > 0) {
        put_shared(notes, &occupancy);
        put_idle(notes, &occupancy);
    }
    occupancy_release(&occupancy);
    text_printf(notes->out, "%lld process%s\n", (long long)processes, processes == 1 ? "" : "es");
    return is_good;
}
