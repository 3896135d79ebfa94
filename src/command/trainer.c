/* trainer.c - the variables of one trainer of a placement group.
 *
 * A list of names and values in which a later value replaces an earlier one. The order: defaults, switches,
 * the variables for offloading and replaying, the user's variables, and last the trainer's own ranks. */
#include <roost/engine/trainer.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/number.h"
#include "base/text.h"
#include "config/variables.h"

#define SWITCH "RAY_EXPERIMENTAL_NOSET_"

enum { VARIABLE_MAX = 32 }; /* beside the user's */

struct entry {
    struct strview name, value;
};

struct list {
    struct arena arena;
    struct entry *entries;
    size_t count;
};

static void set(struct list *list, struct strview name, struct strview value)
{
    size_t at = 0;
    while (at < list->count && !sv_equal(list->entries[at].name, name))
        at++;
    list->entries[at] = (struct entry){name, value};
    if (at == list->count)
        list->count++;
}

static void set_words(struct list *list, const char *name, const char *value)
{
    set(list, sv_from(name), sv_from(value));
}

static struct strview name_of(const char *text)
{
    return (struct strview){text, strcspn(text, "=")};
}

static struct strview value_of(const char *text)
{
    size_t len = strcspn(text, "=");
    return sv_from(text + len + (text[len] == '='));
}

/* The driver's value of a variable, else the default. */
static void set_default(struct list *list, const char *const *env, const char *name,
                        const char *value)
{
    struct strview found = sv_from(value);
    for (; env && *env; env++)
        if (sv_is(name_of(*env), name))
            found = value_of(*env);
    set(list, sv_from(name), found);
}

/* Ray hides devices of an actor from it, but trainers of a node have to see each other's. */
static void set_switches(struct list *list)
{
    static const char *const switches[] = {
        SWITCH "ASCEND_RT_VISIBLE_DEVICES", SWITCH "CUDA_VISIBLE_DEVICES",
        SWITCH "HABANA_VISIBLE_MODULES",    SWITCH "HIP_VISIBLE_DEVICES",
        SWITCH "MUSA_VISIBLE_DEVICES",      SWITCH "NEURON_RT_VISIBLE_CORES",
        SWITCH "ONEAPI_DEVICE_SELECTOR",    SWITCH "ROCR_VISIBLE_DEVICES",
        SWITCH "TPU_VISIBLE_CHIPS",
    };
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        set_words(list, switches[i], "1");
}

static bool is_of_rank(struct strview name)
{
    return sv_is(name, "RANK") || sv_is(name, "WORLD_SIZE") || sv_is(name, "LOCAL_RANK") ||
           sv_is(name, "MASTER_ADDR") || sv_is(name, "MASTER_PORT");
}

static void set_own(struct list *list, const char *text, struct diag *diag)
{
    struct strview name = name_of(text);
    if (!is_variable_name(name)) {
        diag_error(diag, ROOST_ERR_NAME, NOWHERE,
                   "train_env_vars: '%s' cannot be the name of an environment variable",
                   quote(name).text);
        diag_hint(diag, "use letters, digits and _, with no digit at the start");
    } else if (is_of_rank(name) || is_own_variable(name)) {
        diag_error(diag, ROOST_ERR_NAME, NOWHERE,
                   "train_env_vars: '%s' is set by roost for each trainer", quote(name).text);
        diag_hint(diag, "leave it out; num_nodes, num_gpus_per_node and the share decide ranks");
    } else if (sv_starts(name, SWITCH)) {
        diag_warn(diag, ROOST_WARN_SWITCH, NOWHERE,
                  "train_env_vars: '%s' decides which devices Ray shows to a trainer",
                  quote(name).text);
        diag_hint(diag, "leave it out, so that LOCAL_RANK counts the devices that a trainer sees");
    }
    set(list, name, value_of(text));
}

/* Where the GPU stands among the visible devices; its number where they are not listed. */
static bool find_local_rank(const struct roost_trainer *trainer, int64_t *out, struct diag *diag)
{
    struct strview visible = sv_from(trainer->visible), id = sv_from(trainer->gpu_id);
    int64_t position = 0;
    for (size_t from = 0; visible.len > 0 && from <= visible.len; position++) {
        size_t end = sv_find(visible, ',', from);
        if (sv_equal(sv_trim(sv_sub(visible, from, end)), id)) {
            *out = position;
            return true;
        }
        from = end + 1;
    }
    if (id.len > 0 && number_parse(id, ROOST_RANK_MAX, out) == NUMBER_OK && *out >= 0)
        return true;
    diag_error(diag, ROOST_ERR_RANK, NOWHERE,
               "rank %d: GPU id '%s' is neither a number nor among the node's visible devices '%s'",
               trainer->rank, quote(id).text, quote(visible).text);
    return false;
}

static struct strview number_text(struct list *list, int64_t value)
{
    char digits[48];
    struct text text = text_fixed(digits, sizeof digits);
    text_int(&text, value);
    return sv_from(arena_copy(&list->arena, (struct strview){text.bytes, text.len}));
}

static void set_ranks(struct list *list, const struct roost_trainer *trainer, struct diag *diag)
{
    int64_t local_rank = 0;
    if (!find_local_rank(trainer, &local_rank, diag))
        return;
    set(list, SV("RANK"), number_text(list, trainer->rank));
    set(list, SV("WORLD_SIZE"), number_text(list, trainer->world_size));
    set(list, SV("LOCAL_RANK"), number_text(list, local_rank));
    set(list, SV("MASTER_ADDR"), sv_from(trainer->master_addr));
    set(list, SV("MASTER_PORT"), number_text(list, trainer->master_port));
}

static void fill(struct list *list, const struct roost_trainer *trainer, struct diag *diag)
{
    set_words(list, "RAY_USE_UVLOOP", "0"); /* async actors stall with it now and then */
    set_default(list, trainer->env, "NCCL_CUMEM_ENABLE", "0"); /* as inference engines have it */
    set_default(list, trainer->env, "NVTE_FP8_BLOCK_SCALING_FP32_SCALES", "1");
    set_switches(list);
    if (trainer->preload) {
        set_words(list, "LD_PRELOAD", trainer->preload);
        set_words(list, "TMS_INIT_ENABLE", "1");
        set_words(list, "TMS_INIT_ENABLE_CPU_BACKUP", "1");
    }
    if (trainer->is_replaying)
        set_words(list, "ENABLE_ROUTING_REPLAY", "1");
    for (const char *const *text = trainer->own; text && *text; text++)
        set_own(list, *text, diag);
    if (trainer->rank >= 0)
        set_ranks(list, trainer, diag);
}

/* Hands all of it on; false without memory. */
static bool hand_on(struct list *list, roost_variable_fn take, void *ctx)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct entry *entry = &list->entries[i];
        char *name = arena_copy(&list->arena, entry->name);
        char *value = arena_copy(&list->arena, entry->value);
        if (!name || !entry->value.at || !value || !take(ctx, name, value))
            return false;
    }
    return true;
}

enum roost_code roost_trainer_variables(const struct roost_trainer *trainer, roost_variable_fn take,
                                        void *ctx, struct roost_report *report,
                                        struct roost_error *err)
{
    struct diag diag = diag_start(report, err);
    struct list list = {ARENA_INIT, NULL, 0};
    size_t most = VARIABLE_MAX;
    for (const char *const *text = trainer->own; text && *text; text++)
        most++;
    list.entries = arena_array(&list.arena, struct entry, most);
    if (list.entries)
        fill(&list, trainer, &diag);
    else
        diag_nomem(&diag);
    if (diag.first == ROOST_OK && !hand_on(&list, take, ctx))
        diag_nomem(&diag);
    arena_release(&list.arena);
    return diag.first;
}
