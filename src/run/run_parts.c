/* run_parts.c - the birth of a run on the nodes of a Ray cluster.
 *
 * The supervisor is here; on every node that has a process of the run is a part of it. Each leases the
 * ports of its processes and is sent what they are executed with, which is made of the environment that
 * its node has. */
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
#include "run/run_parts_internal.h"
#include "run/spec_write.h"
#include "supervise/spec.h"
#include "topology/cluster.h"

static bool say_nomem(const struct birth *birth)
{
    diag_nomem(birth->diag);
    return false;
}

/* --- which nodes --- */

static const char *name_node(struct parts_birth *it, int32_t node)
{
    const char *address = it->birth->options->cluster->nodes[node].address;
    char words[128];
    snprintf(words, sizeof words, "node %d (%s)", node, address ? address : "no address");
    return arena_copy(it->arena, sv_from(words));
}

static bool list_parts(struct parts_birth *it)
{
    const struct birth *birth = it->birth;
    const struct roost_cluster *cluster = birth->options->cluster;
    it->node_of_part = arena_zeroed(it->arena, int32_t, cluster->node_count + 1);
    it->part_of_node = arena_array(it->arena, int32_t, cluster->node_count + 1);
    it->words = arena_zeroed(it->arena, const char *, cluster->node_count + 1);
    if (!it->node_of_part || !it->part_of_node || !it->words)
        return say_nomem(birth);
    for (int32_t node = 0; node < cluster->node_count; node++)
        it->part_of_node[node] = -1;
    for (int32_t c = 0; c < birth->commands->component_count; c++) {
        const struct roost_component *placed = birth->commands->components[c].placed;
        for (int32_t rank = 0; rank < placed->world_size; rank++)
            it->part_of_node[placed->cluster_node_rank[rank]] = 0;
    }
    for (int32_t node = 0; node < cluster->node_count; node++) {
        if (it->part_of_node[node] < 0)
            continue;
        if (!cluster->nodes[node].id || !cluster->nodes[node].id[0]) {
            diag_error(birth->diag, ROOST_ERR_USAGE, NOWHERE,
                       "node %d of the plan is no node of a Ray cluster", node);
            diag_hint(birth->diag, "name no cluster, also not in ROOST_CLUSTER, or a snapshot of "
                                   "the one that Ray is on");
            return false;
        }
        it->node_of_part[it->count] = node;
        it->part_of_node[node] = it->count;
        if (!(it->words[it->count++] = name_node(it, node)))
            return say_nomem(birth);
    }
    it->taken = arena_zeroed(it->arena, size_t, it->count + 1);
    return it->taken || say_nomem(birth);
}

/* Folders by their whole paths: a part is somewhere else. */
static bool find_folders(struct parts_birth *it)
{
    const char *name = it->birth->options->config->source.name;
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
    diag_error(it->birth->diag, ROOST_ERR_IO, NOWHERE, "cannot find the working directory: %s",
               strerror(errno));
    diag_hint(it->birth->diag, "run it from a folder that is there, with a shorter path");
    return false;
}

/* --- joining --- */

static int64_t wait_ms(const struct birth *birth)
{
    enum { USUAL = 600000 };
    return birth->options->wait_ms > 0 ? birth->options->wait_ms : USUAL;
}

int64_t parts_answer_ms(const struct birth *birth)
{
    enum { LEAST = 10000 }; /* who waits for nobody still wants to hear those who are there */
    return wait_ms(birth) > LEAST ? wait_ms(birth) : LEAST;
}

int parts_file_of(struct text *text)
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

static bool send_join(struct parts_birth *it)
{
    struct birth *birth = it->birth;
    char python[PATH_MAX];
    struct ray_join join = {.run_id = birth->run->dir.id,
                            .config = birth->options->config,
                            .cluster = birth->options->cluster,
                            .commands = birth->commands,
                            .wait_ms = (int32_t)wait_ms(birth),
                            .view = {birth->options->view, birth->options->view_len},
                            .node_of_part = it->node_of_part,
                            .part_count = it->count};
    if (!ray_find_python(birth->options->python, birth->options->env, python, sizeof python,
                         birth->diag))
        return false;
    struct text json = TEXT_INIT, file = TEXT_INIT;
    ray_join_put(&json, &join);
    const char *words = text_string(&json);
    /* -P: as ask.c asks Ray. */
    spec_put_list(&file, (const char *const[]){python, "-P", "-m", "roost._ray_run", NULL});
    spec_put_list(&file, birth->options->env);
    spec_put_list(&file, it->words);
    spec_put_list(&file, (const char *const[]){words ? words : "", NULL});
    bool is_whole = words != NULL;
    text_release(&json);
    struct setup setup = birth_setup(birth);
    setup.part_count = it->count;
    int fd = parts_file_of(&file);
    if (!is_whole && fd >= 0)
        close(fd);
    return birth_send_file(birth, MSG_SETUP, &setup, sizeof setup, is_whole ? fd : -1);
}

/* What the inbox has of the parts; NULL = nothing. */
static const char *look_inside(const struct roost_run *run, struct roost_part_head *head,
                               size_t *out_len)
{
    if (run->inbox.len < sizeof *head)
        return NULL;
    memcpy(head, run->inbox.body, sizeof *head);
    *out_len = run->inbox.len - sizeof *head;
    return run->inbox.body + sizeof *head;
}

/* A part, or the bridge, says no. */
static bool say_refused(struct parts_birth *it, const struct roost_part_head *head,
                        const char *body, size_t len)
{
    struct diag *diag = it->birth->diag;
    struct roost_error err;
    const char *node = head->part >= 0 && head->part < it->count ? it->words[head->part] : "Ray";
    if (head->type == MSG_REFUSED && len == sizeof err) {
        memcpy(&err, body, sizeof err);
        diag_error(diag, err.code, NOWHERE, "%s: %.400s", node, err.message);
        if (err.hint[0])
            diag_hint(diag, "%s", err.hint);
    } else if (head->type == ROOST_PART_REFUSED &&
               ray_say_answer((struct strview){body, len}, diag)) {
        return false;
    } else if (head->type == ROOST_PART_GONE && head->part < 0) {
        diag_error(diag, ROOST_ERR_ENGINE, NOWHERE, "%.*s", (int)(len < 400 ? len : 400), body);
    } else {
        diag_error(diag, ROOST_ERR_ENGINE, NOWHERE, "the part of the run on %s is lost: %.*s", node,
                   (int)(len < 400 ? len : 400), head->type == ROOST_PART_GONE ? body : "");
        diag_hint(diag, "`ray status` lists the nodes");
    }
    return false;
}

bool parts_expect(struct parts_birth *it, int32_t type, struct roost_part_head *head,
                  const char **out_body, size_t *out_len)
{
    bool is_late;
    for (;;) {
        if (!birth_expect_until(it->birth, MSG_PART, it->deadline, &is_late))
            return is_late && parts_say_late(it);
        *out_body = look_inside(it->birth->run, head, out_len);
        if (*out_body && head->type == type)
            return true;
        if (it->birth->run->inbox.fd >= 0)
            close(it->birth->run->inbox.fd);
        if (*out_body && (head->type == ROOST_PART_REFUSED || head->type == ROOST_PART_GONE ||
                          head->type == MSG_REFUSED))
            return say_refused(it, head, *out_body, *out_len);
    }
}

static bool take_joined(struct parts_birth *it)
{
    struct birth *birth = it->birth;
    struct roost_part_head head;
    const char *body;
    size_t len;
    struct stat info;
    if (!parts_expect(it, ROOST_PART_JOINED, &head, &body, &len))
        return false;
    int fd = birth->run->inbox.fd;
    void *map = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 0)
        map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (map == MAP_FAILED) {
        errno = EPROTO;
        return birth_say_channel(birth);
    }
    bool is_good =
        ray_joined_read(&it->joined, it->arena, (struct strview){map, (size_t)info.st_size},
                        it->count, birth->diag);
    (void)munmap(map, (size_t)info.st_size);
    if (is_good)
        snprintf(birth->name_space, sizeof birth->name_space, "%s", it->joined.name_space);
    return is_good;
}

/* --- commands --- */

/* What the part starts; -1 after saying why, or with errno. */
static int write_commands(struct parts_birth *it, int32_t part)
{
    struct birth *birth = it->birth;
    struct launch_options wanted = birth->commands->options;
    wanted.env = it->joined.env_of_part[part];
    wanted.home = it->home;
    wanted.config_dir = it->config_dir;
    /* What is wrong with them was said of the same commands before. */
    struct diag quiet = diag_start(NULL, NULL);
    struct run_values values = {.run_id = birth->run->dir.id,
                                .name_space = birth->name_space,
                                .ports = birth->ports,
                                .only_node = &it->node_of_part[part]};
    struct commands *commands = commands_new(&wanted, &quiet);
    int file = -1;
    errno = ENOMEM;
    if (commands && commands_fill(commands, &values, &quiet)) {
        spec_digest(commands, *values.only_node, it->digests);
        file = spec_write(commands, birth->ports, values.only_node);
    }
    commands_free(commands);
    return file;
}

/* Each part gets its own, one after the other: those of one node are in memory at a time. */
static bool send_commands(struct parts_birth *it)
{
    int64_t count = 0;
    for (int32_t c = 0; c < it->birth->commands->component_count; c++)
        count += it->birth->commands->components[c].process_count;
    it->digests = arena_zeroed(it->arena, struct digest, count + 1);
    if (!it->digests)
        return say_nomem(it->birth);
    for (int32_t part = 0; part < it->count; part++) {
        struct roost_part_head head = {part, MSG_START};
        if (!birth_send_file(it->birth, MSG_PART, &head, sizeof head, write_commands(it, part)))
            return false;
    }
    return true;
}

/* For who asks the run where a process of it is. */
static bool note_nodes(struct parts_birth *it)
{
    struct roost_run *run = it->birth->run;
    run->node_of_process = arena_zeroed(it->arena, const char *, run->process_count + 1);
    if (!run->node_of_process)
        return say_nomem(it->birth);
    for (int32_t c = 0; c < run->component_count; c++) {
        const int32_t *node_of_rank = it->birth->commands->components[c].placed->cluster_node_rank;
        for (int32_t rank = 0; rank < run->components[c].world_size; rank++)
            run->node_of_process[run->components[c].first + rank] =
                it->words[it->part_of_node[node_of_rank[rank]]];
    }
    return true;
}

bool birth_on_ray(struct birth *birth)
{
    /* The bridge waits for nodes within limits of its own, and says so. */
    struct parts_birth it = {.birth = birth, .arena = &birth->run->arena, .deadline = INT64_MAX};
    return list_parts(&it) && note_nodes(&it) && find_folders(&it) && send_join(&it) &&
           take_joined(&it) && parts_send_setups(&it) && parts_take_ports(&it) &&
           send_commands(&it) && birth_describe(birth) &&
           birth_send_file(birth, MSG_START, "", 0,
                           spec_write_outline(birth->commands, it.part_of_node, it.digests));
}
