/* launch.c - plans a config and runs it on this machine: what `roost run` does, without its screen.
 *
 * Usage:  launch CONFIG [CLUSTER]        for example: launch bandit.yaml 1x3
 * Build:  cc launch.c $(pkg-config --cflags --libs roost) -o launch */
#include <inttypes.h>
#include <roost/roost.h>
#include <stdio.h>
#include <stdlib.h>

extern char **environ;

static int complain(const struct roost_error *err)
{
    if (err->line > 0)
        fprintf(stderr, "%s:%d:%d: ", err->file, (int)err->line, (int)err->column);
    fprintf(stderr, "%s\n", err->message);
    if (err->hint[0])
        fprintf(stderr, "  %s\n", err->hint);
    return roost_code_exit(err->code);
}

static void print_event(const struct roost_run *run, const struct roost_event *event)
{
    const char *name = event->component < 0 ? "" : roost_run_component(run, event->component);
    switch (event->kind) {
    case ROOST_EVENT_STARTED: printf("%s/%" PRId32 " started\n", name, event->rank); break;
    case ROOST_EVENT_READY: printf("%s is ready\n", name); break;
    case ROOST_EVENT_ENDED:
        printf("%s/%" PRId32 " %s", name, event->rank, roost_end_word(event->end));
        if (event->exit_code >= 0)
            printf(" with %" PRId32, event->exit_code);
        printf("\n");
        break;
    case ROOST_EVENT_PROBLEM: printf("problem: %s\n", event->message); break;
    default: break;
    }
}

/* Everything that was started is gone when this returns, and also when this program is killed. */
static int run_plan(const struct roost_run_options *options)
{
    struct roost_error err;
    struct roost_event event;
    struct roost_run *run = roost_run_start(options, NULL, &err);
    if (!run)
        return complain(&err);
    while (roost_run_next(run, -1, &event))
        print_event(run, &event);
    int status = roost_run_status(run, NULL);
    printf("ended with %d; logs are in %s\n", status, roost_run_dir(run));
    roost_run_free(run);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: launch CONFIG [CLUSTER]\n");
        return 2;
    }
    struct roost_error err;
    struct roost_config_options reading = {.path = argv[1]};
    struct roost_config *config = roost_config_load(&reading, NULL, &err);
    struct roost_cluster_options choice = {.text = argc > 2 ? argv[2] : NULL, .config = config};
    struct roost_cluster *cluster = config ? roost_cluster_new(&choice, NULL, &err) : NULL;
    struct roost_plan *plan = cluster ? roost_plan_new(config, cluster, NULL, NULL, &err) : NULL;
    struct roost_run_options options = {.config = config,
                                        .cluster = cluster,
                                        .plan = plan,
                                        .env = (const char *const *)environ,
                                        .program =
                                            getenv("ROOST_PROGRAM")}; /* or the installed one */
    int status = plan ? run_plan(&options) : complain(&err);
    roost_plan_free(plan);
    roost_cluster_free(cluster);
    roost_config_free(config);
    return status;
}
