/* model_settings.h - what model-parallel placement reads outside `cluster`: the sizes of the models
 * and how they are split. */
#ifndef CONFIG_MODEL_SETTINGS_H
#define CONFIG_MODEL_SETTINGS_H

#include "config/reader.h"

/* A number and where it was written; line 0 = it is a default. */
struct setting {
    int32_t value;
    struct place at;
    bool is_broken; /* a fault of it was reported: no reason to say more */
};

/* How one model is split over accelerators. */
struct model_split {
    struct setting tensor, pipeline, context;
};

struct model_settings {
    struct model_split actor, critic, inference, critic_inference;
    struct setting rollout_tensor, rollout_pipeline;
    bool recomputes_logprobs; /* also when it is broken */
    struct place recompute_at;
    bool is_auto;        /* cluster.auto_scheduler */
    bool is_auto_broken; /* a fault of it was reported */
    bool preprocesses;   /* cluster.use_pre_process_policy */
};

/* Reads the settings into the config's arena; what is wrong was reported. NULL without memory. */
struct model_settings *model_settings_read(struct reader *reader);

#endif
