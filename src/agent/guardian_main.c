/* guardian_main.c - what the roost program does when it is started as a guardian.
 *
 * The only place that knows all three processes that a guardian can watch: the supervisor of a run on this
 * machine, the supervisor of a run on several nodes, and an agent on one of those nodes. */
#include <roost/engine/program.h>

#include <string.h>

#include "agent/agent.h"
#include "agent/agent_dir.h"
#include "agent/host_agents.h"
#include "supervise/guardian.h"
#include "supervise/lost.h"
#include "supervise/supervisor.h"

static const struct host *choose_host(const struct setup *setup)
{
    return setup->agent_count > 0 ? &host_agents : &host_here;
}

static int be_supervisor(int guardian, struct cgroup *cgroup)
{
    return supervisor_main(guardian, cgroup, choose_host);
}

/* The driver records the end of the run, if it lives. */
static void record_lost(bool is_killed)
{
    if (is_killed)
        lost_record(GUARDIAN_RUN_DIR, LOST_END_OPEN);
}

static void remove_folder(bool is_killed)
{
    (void)is_killed;
    agent_dir_remove(GUARDIAN_RUN_DIR);
}

int roost_guardian_main(int argc, char **argv)
{
    static const struct guarded supervisor = {.main = be_supervisor, .clean = record_lost};
    static const struct guarded agent = {
        .main = agent_main, .clean = remove_folder, .is_detached = true, .keeps_socket = true};
    bool is_agent = argc == 3 && strcmp(argv[2], "agent") == 0;
    if (argc != 2 && !is_agent)
        return 2;
    return guardian_run(is_agent ? &agent : &supervisor, argv[0], strcmp(argv[1], "cgroup") == 0);
}
