/* group_name.c - in the driver: reserves the name of a worker group with the managers. They forget the
 * name when this process ends, however it ends. A fork of this process keeps the connection open, so
 * the name is also given back by a request. */
#include "run/group_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "json/json_writer.h"

enum { ANSWER_MS = 10000 };

static const char *name_of(const struct roost_run_options *options)
{
    if (options->single.placed || !options->plan)
        return options->single.name;
    return options->component_count == 1 ? options->components[0]
                                         : roost_plan_component(options->plan, 0)->name;
}

/* The arguments are the name and, unless it is 0, `pid`. */
static enum roost_code ask(const struct group_name *name, const char *call, pid_t pid,
                           char **out_answer, struct roost_error *err)
{
    struct text request = TEXT_INIT;
    struct json_writer json = json_writer_on(&request, JSON_COMPACT);
    json_open_object(&json);
    json_put_string(json_key(&json, "call"), call);
    json_open_array(json_key(&json, "args"));
    json_put_string(&json, name->text);
    if (pid)
        json_put_int(&json, pid);
    json_close(&json);
    json_close(&json);
    const char *line = text_string(&request);
    enum roost_code code = line ? roost_registry_client_call(name->holder, line, request.len,
                                                             ANSWER_MS, out_answer, err)
                                : diag_nomem(&(struct diag){.err = err});
    text_release(&request);
    return code;
}

/* The process that has the name; 0 = this one has it now, -1 = the managers cannot answer. */
static long reserve(const struct group_name *name, struct roost_error *err)
{
    static const char value[] = "{\"value\":";
    char *answer = NULL;
    if (ask(name, "WorkerManager.reserve_group", getpid(), &answer, err) != ROOST_OK || !answer)
        return -1;
    bool is_value = strncmp(answer, value, sizeof value - 1) == 0;
    long holder = is_value ? strtol(answer + sizeof value - 1, NULL, 10) : 0;
    roost_answer_free(answer);
    return holder;
}

bool group_name_take(struct group_name *name, const struct roost_run_options *options,
                     struct roost_error *err)
{
    static const char *const no_env[] = {NULL};
    const char *wanted = name_of(options);
    struct roost_error why;
    struct diag diag = diag_start(NULL, err);
    *name = (struct group_name){0};
    if (!options->name_space || roost_group_name_check(wanted, &why) != ROOST_OK)
        return true; /* the start of the run reports an invalid name */
    snprintf(name->text, sizeof name->text, "%s", wanted);
    name->holder =
        roost_registry_client_open(options->env ? options->env : no_env, options->name_space, &why);
    if (!name->holder && why.code == ROOST_ERR_ENGINE)
        return true;
    long holder = name->holder ? reserve(name, &why) : -1;
    if (holder == 0)
        return true;
    roost_registry_client_close(name->holder);
    name->holder = NULL;
    if (holder < 0) {
        (void)diag_again(&diag, &why);
        return false;
    }
    diag_error(&diag, ROOST_ERR_ENGINE, NOWHERE,
               "group '%s' is running already in namespace '%s': process %ld launched it", wanted,
               options->name_space, holder);
    diag_hint(&diag, "give this one another name, or close that one first");
    return false;
}

void group_name_give(struct group_name *name)
{
    char *answer = NULL;
    if (!name->holder)
        return;
    if (ask(name, "WorkerManager.release_group", 0, &answer, NULL) == ROOST_OK)
        roost_answer_free(answer);
    roost_registry_client_close(name->holder);
    name->holder = NULL;
}
