/* ports.c - the ports that each part will ask for, as offsets: how many and in what order. A plan has no
 * port numbers; the engine counts from the machine's own base.
 *
 * All parts on a machine share one sequence of offsets, whatever their model or virtual node, so that two
 * parts never ask for the same port. */
#include "bundle/bundles.h"

enum { RAY_FIRST = 10002, RAY_LAST = 19999, PORT_LAST = 65535 };

struct offsets {
    int32_t *server, *nccl, *boot, *dist;
};

/* The parts from..to-1 of a server group, all on one machine: first the ports of each, then the
 * blocks, as the reference does. */
static void count_run(struct job *job, int32_t from, int32_t to, const struct offsets *out)
{
    const struct roost_engines *engines = &job->layout->engines;
    int32_t *next = &job->machines[engines->machine[from]].port_count;
    for (int32_t p = from; p < to; p++) {
        out->server[p] = (*next)++;
        out->nccl[p] = (*next)++;
        out->boot[p] = *next;
        *next += engines->boot_ports[p];
    }
    for (int32_t p = from; p < to; p++) {
        out->dist[p] = *next;
        *next += engines->dist_ports[p];
    }
}

static bool check_machine(struct job *job, int32_t node)
{
    int32_t base = job->layout->port_base, wanted = job->machines[node].port_count;
    if (wanted <= PORT_LAST + 1 - base)
        return true;
    diag_error(job->diag, ROOST_ERR_LIMIT, job_place(job, &job->settings->port_base),
               "parts on node %d want %d ports from %d on, beyond %d", (int)node, (int)wanted,
               (int)base, PORT_LAST);
    diag_hint(job->diag, "lower port_base or dist_init_ports, or use larger engines");
    return false;
}

/* Ray gives these ports to its own workers, so another may be there first. */
static void warn_ray(struct job *job, int32_t most)
{
    int32_t base = job->layout->port_base;
    if (most == 0 || base > RAY_LAST || base + most <= RAY_FIRST)
        return;
    const struct bundle_settings *in = job->settings;
    diag_warn(job->diag, ROOST_WARN_PORTS, in->port_base.is_set ? in->port_base.at : in->profile_at,
              "ports from %d on reach into %d-%d, which Ray gives to its own workers", (int)base,
              RAY_FIRST, RAY_LAST);
    diag_hint(job->diag, "set port_base to 20000, or start Ray with other worker ports");
}

static bool alloc(struct job *job, struct offsets *out)
{
    struct roost_engines *engines = &job->layout->engines;
    int32_t **columns[] = {&out->server, &out->nccl, &out->boot, &out->dist};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (!(*columns[i] = job_array(job, int32_t, engines->part_count)))
            return false;
    engines->server_at = out->server;
    engines->nccl_at = out->nccl;
    engines->boot_at = out->boot;
    engines->dist_at = out->dist;
    return true;
}

bool job_count_ports(struct job *job)
{
    const struct roost_engines *engines = &job->layout->engines;
    struct offsets offsets = {0};
    if (!alloc(job, &offsets))
        return false;
    for (size_t g = 0; g < job->layout->group_count && !job->settled.is_external; g++) {
        const struct roost_server_group *group = &job->groups[g];
        int32_t part = engines->first_part[group->first_engine];
        int32_t end = engines->first_part[group->first_engine + group->engine_count];
        while (part < end) {
            int32_t to = part + 1;
            while (to < end && engines->machine[to] == engines->machine[part])
                to++;
            count_run(job, part, to, &offsets);
            part = to;
        }
    }
    int32_t most = 0;
    for (int32_t n = 0; n < job->layout->machine_count; n++) {
        if (!check_machine(job, n))
            return false;
        most = job->machines[n].port_count > most ? job->machines[n].port_count : most;
    }
    warn_ray(job, most);
    return true;
}
