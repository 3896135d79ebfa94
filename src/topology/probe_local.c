/* probe_local.c - this machine as a cluster of one node. Finds NVIDIA accelerators by their device files
 * and guesses nothing about other hardware. */
#include <dirent.h>
#include <sched.h>
#include <unistd.h>

#include "base/number.h"
#include "topology/cluster.h"

/* /dev/nvidia0, /dev/nvidia1, ...; nvidiactl and nvidia-uvm are not accelerators. */
static int32_t count_nvidia(const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return 0;
    int32_t count = 0;
    int64_t index;
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct strview name = sv_from(entry->d_name);
        count += sv_starts(name, "nvidia") && count < CLUSTER_ACCELERATORS_MAX &&
                 number_parse(sv_sub(name, 6, name.len), ROOST_RANK_MAX, &index) == NUMBER_OK;
    }
    closedir(dir);
    return count;
}

bool topology_from_local(struct roost_cluster *cluster, struct diag *diag)
{
    char host[256] = "";
    cpu_set_t cpus;
    struct cluster_node *node = arena_zeroed(&cluster->arena, struct cluster_node, 1);
    if (!node || gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    char *id = node ? arena_copy(&cluster->arena, sv_from(host)) : NULL;
    if (!id) {
        diag_nomem(diag);
        return false;
    }
    node->id = host[0] ? id : NULL;
    node->address = "127.0.0.1";
    node->num_cpus = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : -1;
    node->explicit_rank = 0;
    node->accelerator_count = count_nvidia("/dev");
    node->accelerator = node->accelerator_count ? ROOST_ACCELERATOR_NVIDIA : ROOST_ACCELERATOR_NONE;
    cluster->nodes = node;
    cluster->node_count = 1;
    return true;
}
