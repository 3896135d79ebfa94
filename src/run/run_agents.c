/* run_agents.c - the start of a run on the nodes of a Ray cluster, in its driver.
 *
 * The supervisor runs here, and an agent on every node that has a process of the run. Each agent leases
 * the ports of its processes. The driver then sends it what they are executed with, made from the
 * environment of its node. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/ray_ask.h"
#include "base/text.h"
#include "config/config.h"
#include "run/run_agents_internal.h"
#include "run/run_news.h"
#include "run/spec_write.h"
#include "supervise/spec.h"
#include "topology/cluster.h"

static bool report_nomem(const struct run_start *start)
{
    diag_nomem(start->diag);
    return false;
}

/* --- which nodes --- */

static const char *name_node(struct agents_start *it, int32_t node)
{
    const char *address = it->start->options->cluster->nodes[node].address;
    char words[128];
    snprintf(words, sizeof words, "node %d (%s)", node, address ? address : "no address");
    return arena_copy(it->arena, sv_from(words));
}

static bool list_agents(struct agents_start *it)
{
    const struct run_start *start = it->start;
    const struct roost_cluster *cluster = start->options->cluster;
    it->node_of_agent = arena_zeroed(it->arena, int32_t, cluster->node_count + 1);
    it->agent_of_node = arena_array(it->arena, int32_t, cluster->node_count + 1);
    it->words = arena_zeroed(it->arena, const char *, cluster->node_count + 1);
    if (!it->node_of_agent || !it->agent_of_node || !it->words)
        return report_nomem(start);
    for (int32_t node = 0; node < cluster->node_count; node++)
        it->agent_of_node[node] = -1;
    for (int32_t c = 0; c < start->commands->component_count; c++) {
        const struct roost_component *placed = start->commands->components[c].placed;
        for (int32_t rank = 0; rank < placed->world_size; rank++)
            it->agent_of_node[placed->cluster_node_rank[rank]] = 0;
    }
    for (int32_t node = 0; node < cluster->node_count; node++) {
        if (it->agent_of_node[node] < 0)
            continue;
        if (!cluster->nodes[node].id || !cluster->nodes[node].id[0]) {
            diag_error(start->diag, ROOST_ERR_USAGE, NOWHERE,
                       "node %d of the plan has no Ray node id", node);
            diag_hint(start->diag,
                      "drop --cluster and ROOST_CLUSTER, or pass a snapshot of the live cluster "
                      "(`roost probe --engine ray --json`)");
            return false;
        }
        it->node_of_agent[it->count] = node;
        it->agent_of_node[node] = it->count;
        if (!(it->words[it->count++] = name_node(it, node)))
            return report_nomem(start);
    }
    it->taken = arena_zeroed(it->arena, size_t, it->count + 1);
    return it->taken || report_nomem(start);
}

/* Folders by their whole paths: an agent is somewhere else. */
static bool find_folders(struct agents_start *it)
{
    const char *name = it->start->options->config->source.name;
    const char *slash = strrchr(name, '/');
    size_t len = slash ? (size_t)(slash - name) : 0;
    if (getcwd(it->home, sizeof it->home)) {
        int wrote = name[0] == '/'
                        ? snprintf(it->config_dir, sizeof it->config_dir, "%.*s/", (int)len, name)
                        : snprintf(it->config_dir, sizeof it->config_dir, "%s/%.*s", it->home,
                                   (int)len, name);
        if (wrote < (int)sizeof it->config_dir)
            return true;
        errno = ENAMETOOLONG;
    }
    diag_error(it->start->diag, ROOST_ERR_IO, NOWHERE, "cannot find the working directory: %s",
               strerror(errno));
    diag_hint(it->start->diag, "run it from a folder that is there, with a shorter path");
    return false;
}

/* --- joining --- */

static int64_t wait_ms(const struct run_start *start)
{
    enum { USUAL = 600000 };
    return start->options->agents.wait_ms > 0 ? start->options->agents.wait_ms : USUAL;
}

int64_t agents_answer_ms(const struct run_start *start)
{
    enum {
        LEAST = 10000
    }; /* also for a caller that does not wait for nodes: those that are there may answer */
    return wait_ms(start) > LEAST ? wait_ms(start) : LEAST;
}

int agents_file_of(struct text *text)
{
    int file = text->has_failed ? -1 : memfd_create("roost-text", MFD_CLOEXEC);
    errno = text->has_failed ? ENOMEM : errno;
    for (size_t done = 0; file >= 0 && done < text->len;) {
        ssize_t more = write(file, text->bytes + done, text->len - done);
        if (more <= 0) {
            close(file);
            file = -1;
        }
        done += more > 0 ? (size_t)more : 0;
    }
    text_release(text);
    return file;
}

static bool send_join(struct agents_start *it)
{
    struct run_start *start = it->start;
    char python[PATH_MAX];
    struct ray_join join = {.run_id = start->run->dir.id,
                            .config = start->options->config,
                            .cluster = start->options->cluster,
                            .commands = start->commands,
                            .wait_ms = (int32_t)wait_ms(start),
                            .view = {start->options->view, start->options->view_len},
                            .node_of_agent = it->node_of_agent,
                            .agent_count = it->count};
    if (!ray_find_python(start->options->agents.python, start->options->env, python, sizeof python,
                         start->diag))
        return false;
    struct text json = TEXT_INIT, file = TEXT_INIT;
    ray_join_put(&json, &join);
    const char *words = text_string(&json);
    /* -P: as ask.c asks Ray. */
    spec_put_list(&file, (const char *const[]){python, "-P", "-m", "roost._ray.bridge", NULL});
    spec_put_list(&file, start->options->env);
    spec_put_list(&file, it->words);
    spec_put_list(&file, (const char *const[]){words ? words : "", NULL});
    bool is_whole = words != NULL;
    text_release(&json);
    struct setup setup = run_start_setup(start);
    setup.agent_count = it->count;
    int fd = agents_file_of(&file);
    if (!is_whole && fd >= 0)
        close(fd);
    return run_start_send_file(start, MSG_SETUP, &setup, sizeof setup, is_whole ? fd : -1);
}

/* What the inbox has of the agents; NULL = nothing. */
static const char *look_inside(const struct roost_run *run, struct roost_agent_head *head,
                               size_t *out_len)
{
    if (run->inbox.len < sizeof *head)
        return NULL;
    memcpy(head, run->inbox.body, sizeof *head);
    *out_len = run->inbox.len - sizeof *head;
    return run->inbox.body + sizeof *head;
}

/* Reports the refusal of an agent or the bridge; false. */
static bool report_refused(struct agents_start *it, const struct roost_agent_head *head,
                           const char *body, size_t len)
{
    struct diag *diag = it->start->diag;
    struct roost_error err;
    const char *node = head->agent >= 0 && head->agent < it->count ? it->words[head->agent] : "Ray";
    if (head->type == MSG_REFUSED && len == sizeof err) {
        memcpy(&err, body, sizeof err);
        diag_error(diag, err.code, NOWHERE, "%s: %.400s", node, err.message);
        if (err.hint[0])
            diag_hint(diag, "%s", err.hint);
    } else if (head->type == ROOST_AGENT_REFUSED &&
               ray_report_answer((struct strview){body, len}, diag)) {
        return false;
    } else if (head->type == ROOST_AGENT_GONE && head->agent < 0) {
        diag_error(diag, ROOST_ERR_ENGINE, NOWHERE, "%.*s", (int)(len < 400 ? len : 400), body);
    } else {
        diag_error(diag, ROOST_ERR_ENGINE, NOWHERE, "the agent on %s is lost: %.*s", node,
                   (int)(len < 400 ? len : 400), head->type == ROOST_AGENT_GONE ? body : "");
        diag_hint(diag, "`ray status` lists the nodes");
    }
    return false;
}

bool agents_expect(struct agents_start *it, int32_t type, struct roost_agent_head *head,
                   const char **out_body, size_t *out_len)
{
    bool is_late;
    for (;;) {
        if (!run_start_expect_until(it->start, MSG_AGENT, it->deadline, &is_late))
            return is_late && agents_report_late(it);
        *out_body = look_inside(it->start->run, head, out_len);
        if (*out_body && head->type == type)
            return true;
        if (it->start->run->inbox.fd >= 0)
            close(it->start->run->inbox.fd);
        if (*out_body && (head->type == ROOST_AGENT_REFUSED || head->type == ROOST_AGENT_GONE ||
                          head->type == MSG_REFUSED))
            return report_refused(it, head, *out_body, *out_len);
    }
}

static bool take_joined(struct agents_start *it)
{
    struct run_start *start = it->start;
    struct roost_agent_head head;
    const char *body;
    size_t len;
    struct stat info;
    if (!agents_expect(it, ROOST_AGENT_JOINED, &head, &body, &len))
        return false;
    int fd = start->run->inbox.fd;
    void *map = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 0)
        map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (map == MAP_FAILED) {
        errno = EPROTO;
        return run_start_report_socket(start);
    }
    bool is_good =
        ray_joined_read(&it->joined, it->arena, (struct strview){map, (size_t)info.st_size},
                        it->count, start->diag);
    (void)munmap(map, (size_t)info.st_size);
    if (is_good)
        snprintf(start->name_space, sizeof start->name_space, "%s", it->joined.name_space);
    return is_good;
}

/* --- commands --- */

/* What the agent starts; -1 after reporting why, or with errno. */
static int write_commands(struct agents_start *it, int32_t agent)
{
    struct run_start *start = it->start;
    struct launch_options wanted = start->commands->options;
    wanted.env = it->joined.env_of_agent[agent];
    wanted.home = it->home;
    wanted.config_dir = it->config_dir;
    /* Mistakes in them were reported when the same commands were made before. */
    struct diag quiet = diag_start(NULL, NULL);
    struct run_values values = {.run_id = start->run->dir.id,
                                .name_space = start->name_space,
                                .ports = start->ports,
                                .only_node = &it->node_of_agent[agent]};
    struct commands *commands = commands_new(&wanted, &quiet);
    int file = -1;
    errno = ENOMEM;
    if (commands && commands_fill(commands, &values, &quiet)) {
        spec_digest(commands, *values.only_node, it->digests);
        file = spec_write(commands, start->ports, values.only_node);
    }
    commands_free(commands);
    return file;
}

/* Each agent gets its own, one after the other: only the commands of one node are in memory at a time. */
static bool send_commands(struct agents_start *it)
{
    int64_t count = 0;
    for (int32_t c = 0; c < it->start->commands->component_count; c++)
        count += it->start->commands->components[c].process_count;
    it->digests = arena_zeroed(it->arena, struct digest, count + 1);
    if (!it->digests)
        return report_nomem(it->start);
    for (int32_t agent = 0; agent < it->count; agent++) {
        struct roost_agent_head head = {agent, MSG_START};
        if (!run_start_send_file(it->start, MSG_AGENT, &head, sizeof head,
                                 write_commands(it, agent)))
            return false;
    }
    return true;
}

/* For roost_run_node. */
static bool note_nodes(struct agents_start *it)
{
    struct roost_run *run = it->start->run;
    run->node_of_process = arena_zeroed(it->arena, const char *, run->process_count + 1);
    if (!run->node_of_process)
        return report_nomem(it->start);
    for (int32_t c = 0; c < run->component_count; c++) {
        const int32_t *node_of_rank = it->start->commands->components[c].placed->cluster_node_rank;
        for (int32_t rank = 0; rank < run->components[c].world_size; rank++)
            run->node_of_process[run->components[c].first + rank] =
                it->words[it->agent_of_node[node_of_rank[rank]]];
    }
    return true;
}

/* Before anything starts: its processes are known to those that ask for them. */
static bool send_processes(struct agents_start *it)
{
    struct roost_agent_head head = {-1, ROOST_AGENT_TELL};
    struct text lines = TEXT_INIT;
    if (!run_news_put_processes(it->start, &lines) || !run_news_open(it->start)) {
        text_release(&lines);
        return false;
    }
    return run_start_send_file(it->start, MSG_AGENT, &head, sizeof head, agents_file_of(&lines));
}

static bool start_on_agents(struct run_start *start)
{
    /* The bridge waits for nodes within limits of its own, and reports when they are over. */
    struct agents_start it = {.start = start, .arena = &start->run->arena, .deadline = INT64_MAX};
    return list_agents(&it) && note_nodes(&it) && find_folders(&it) && send_join(&it) &&
           take_joined(&it) && agents_send_setups(&it) && agents_take_ports(&it) &&
           send_commands(&it) && send_processes(&it) && run_start_describe(start) &&
           run_start_send_file(start, MSG_START, "", 0,
                               spec_write_outline(start->commands, it.agent_of_node, it.digests));
}

const struct run_host run_on_agents = {
    .engine = "ray", .brings_namespace = true, .shows_errors = true, .start = start_on_agents};
