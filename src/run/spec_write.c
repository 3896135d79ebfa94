/* spec_write.c - the driver's half of spec.h: writes the commands of a run. The order of the fields is
 * that of spec.c. */
#include "run/spec_write.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "config/config.h"
#include "config/variables.h"
#include "supervise/spec.h"

static bool write_fd(void *ctx, const char *bytes, size_t len)
{
    return file_write(*(int *)ctx, bytes, len);
}

static void put_after(struct text *out, const struct launch_config *launch)
{
    int32_t count = launch ? launch->after_count : 0, len = 0;
    for (int32_t i = 0; i < count; i++)
        len += (int32_t)launch->after[i].text.len + 1;
    spec_put_int(out, count);
    spec_put_int(out, len);
    for (int32_t i = 0; i < count; i++)
        spec_put_string(out, launch->after[i].text);
}

/* The port that `ready` waits for among the requests of a process, 0 = none. */
static int32_t ready_port(const struct commands *commands, const struct launch_config *launch,
                          int32_t first, int32_t count, const int32_t *ports)
{
    if (!launch || launch->ready != READY_PORT || !ports)
        return 0;
    for (int32_t i = first; i < first + count; i++)
        if (commands->ports[i].name && sv_is(launch->ready_what.text, commands->ports[i].name))
            return ports[i];
    return 0;
}

/* The words of the config, as a supervisor knows them. */
static const int32_t restarts[] = {[RESTART_NEVER] = SPEC_RESTART_NEVER,
                                   [RESTART_ALWAYS] = SPEC_RESTART_ALWAYS,
                                   [RESTART_ON_FAILURE] = SPEC_RESTART_ON_FAILURE};
static const int32_t readies[] = {[READY_AT_ONCE] = SPEC_READY_AT_ONCE,
                                  [READY_PORT] = SPEC_READY_PORT,
                                  [READY_FILE] = SPEC_READY_FILE,
                                  [READY_LINE] = SPEC_READY_LINE};

/* Only a forker has to know which variables are of one process. */
static void put_own(struct text *out, const struct commands *commands)
{
    const char *names[VARIABLE_COUNT + 16] = {NULL};
    size_t most = commands->options.forker ? sizeof names / sizeof *names - 1 : 0;
    for (size_t i = 0; i < most && (names[i] = variable_of_one_process((int)i)); i++)
        continue;
    spec_put_list(out, names);
}

/* What is written of the commands. */
struct choice {
    const int32_t *ports;
    const int32_t *only_node;     /* NULL = all */
    const int32_t *agent_of_node; /* NULL = all are one */
    const struct digest *digests; /* with agent_of_node: of all processes */
};

static bool is_chosen(const struct component_commands *component, int32_t rank,
                      const struct choice *choice)
{
    return !choice->only_node || component->placed->cluster_node_rank[rank] == *choice->only_node;
}

static int32_t count_chosen(const struct component_commands *component, const struct choice *choice)
{
    int32_t count = 0;
    for (int32_t rank = 0; rank < component->process_count; rank++)
        count += is_chosen(component, rank, choice);
    return count;
}

/* Requests `first` .. `first` + `count` - 1 are its own, and come at `place` among all that are
 * written. */
static void put_process(struct text *out, const struct commands *commands, int32_t index,
                        int32_t rank, int32_t first, int32_t count, int32_t place,
                        const struct choice *choice)
{
    const struct component_commands *component = &commands->components[index];
    const struct process_command *process = &component->processes[rank];
    spec_put_list(out, process->argv);
    spec_put_list(out, process->env);
    spec_put_string(out, sv_from(process->cwd));
    spec_put_string(out, sv_from(process->ready_what));
    spec_put_int(out, ready_port(commands, component->launch, first, count, choice->ports));
    spec_put_int(out, place);
    spec_put_int(out, count);
    spec_put_int(out, rank);
    spec_put_int(out, 0);
}

/* The supervisor of several nodes has no use for what only its agents need. */
static void put_outline(struct text *out, const struct component_commands *component, int32_t rank,
                        const struct choice *choice, const struct digest *digest)
{
    spec_put_list(out, (const char *const[]){component->name, NULL});
    spec_put_list(out, (const char *const[]){digest->text, NULL});
    spec_put_string(out, SV(""));
    spec_put_string(out, SV(""));
    for (int i = 0; i < 3; i++)
        spec_put_int(out, 0);
    spec_put_int(out, rank);
    spec_put_int(out, choice->agent_of_node[component->placed->cluster_node_rank[rank]]);
}

static void put_component(struct text *out, const struct commands *commands, int32_t index,
                          const struct choice *choice, int32_t *place)
{
    const struct component_commands *component = &commands->components[index];
    const struct digest *digests = choice->digests;
    for (int32_t before = 0; digests && before < index; before++)
        digests += commands->components[before].process_count;
    const struct launch_config *launch = component->launch;
    spec_put_string(out, sv_from(component->name));
    spec_put_list(out, choice->agent_of_node ? NULL : component->base_env);
    spec_put_list(out, choice->agent_of_node ? NULL : component->long_env);
    put_after(out, launch);
    spec_put_list(out, commands->options.forker);
    put_own(out, commands);
    spec_put_int(out, launch ? restarts[launch->restart] : SPEC_RESTART_NEVER);
    spec_put_int(out, launch ? launch->restart_max : 0);
    spec_put_int(out, launch ? readies[launch->ready] : SPEC_READY_AT_ONCE);
    spec_put_int(out, launch ? launch->ready_timeout : 0);
    spec_put_int(out, launch && launch->is_service);
    spec_put_int(out, count_chosen(component, choice));
    int32_t next = component->first_port;
    for (int32_t rank = 0; rank < component->process_count; rank++) {
        int32_t first = next;
        while (next < (int32_t)commands->port_count && commands->ports[next].component == index &&
               commands->ports[next].rank == rank)
            next++;
        if (!is_chosen(component, rank, choice))
            continue;
        if (choice->agent_of_node)
            put_outline(out, component, rank, choice, &digests[rank]);
        else
            put_process(out, commands, index, rank, first, next - first, *place, choice);
        *place += next - first;
    }
}

static int write_choice(const struct commands *commands, const struct choice *choice)
{
    int fd = memfd_create("roost-spec", MFD_CLOEXEC);
    if (fd < 0)
        return -1;
    struct text out = {.flush = write_fd, .ctx = &fd};
    int32_t process_count = 0, place = 0;
    for (int32_t i = 0; i < commands->component_count; i++)
        process_count += count_chosen(&commands->components[i], choice);
    spec_put_int(&out, commands->component_count);
    spec_put_int(&out, process_count);
    for (int32_t i = 0; i < commands->component_count; i++)
        put_component(&out, commands, i, choice, &place);
    bool is_good = text_finish(&out);
    int error = errno;
    text_release(&out);
    if (is_good)
        return fd;
    close(fd);
    errno = error ? error : ENOMEM;
    return -1;
}

int spec_write(const struct commands *commands, const int32_t *ports, const int32_t *only_node)
{
    return write_choice(commands, &(struct choice){.ports = ports, .only_node = only_node});
}

int spec_write_outline(const struct commands *commands, const int32_t *agent_of_node,
                       const struct digest *digests)
{
    return write_choice(commands,
                        &(struct choice){.agent_of_node = agent_of_node, .digests = digests});
}

void spec_digest(const struct commands *commands, int32_t only_node, struct digest *out)
{
    struct choice choice = {.only_node = &only_node};
    for (int32_t c = 0; c < commands->component_count; c++) {
        const struct component_commands *component = &commands->components[c];
        for (int32_t rank = 0; rank < component->process_count; rank++, out++) {
            const struct process_command *process = &component->processes[rank];
            if (is_chosen(component, rank, &choice))
                *out =
                    digest_planned(process->argv, process->env, process->cwd ? process->cwd : "");
        }
    }
}
