/* run_news.c - see run_news.h. Never waits: managers that are stopped must not stop the run. */
#include "run/run_news.h"

#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>

#include <roost/engine/agent.h>

#include "base/text.h"
#include "config/config.h"
#include "run/registry_server_start.h"
#include "topology/cluster.h"
#include "json/json_writer.h"

enum {
    LINE_MAX_BYTES = 256 * 1024, /* of a request that names processes */
    BODY_MAX = 24 * 1024,        /* of a message with states: there is room for one more address */
    NOTHING = 0,
    RUNNING,
    ENDED,
};

/* --- which processes --- */

static void open_call(struct json_writer *json, const char *call)
{
    json_open_object(json);
    json_put_string(json_key(json, "call"), call);
    json_open_array(json_key(json, "args"));
}

static void close_call(struct json_writer *json, struct text *out)
{
    json_close(json);
    json_close(json);
    text_char(out, '\n');
}

static void put_ports(struct json_writer *json, const struct run_start *start,
                      const struct component_commands *it, int32_t rank)
{
    int32_t count = it->launch ? it->launch->port_count : 0;
    json_open_object(json_key(json, "ports"));
    for (int32_t port = 0; port < count; port++)
        json_put_int(json_key(json, it->launch->ports[port].name),
                     start->ports[it->first_port + 1 + rank * count + port]);
    json_close(json);
}

/* The numbers of its accelerators in the cluster. */
static void put_accelerators(struct json_writer *json, const struct run_start *start,
                             const struct roost_component *it, int32_t rank)
{
    const struct roost_cluster *cluster = start->options->cluster;
    int32_t node = it->cluster_node_rank[rank];
    int64_t first = 0;
    json_open_array(json_key(json, "available_accelerators"));
    if (roost_component_holds_accelerators(it, cluster, rank)) {
        for (int32_t n = 0; n < node; n++)
            first += cluster->nodes[n].accelerator_count;
        for (int32_t i = it->first_hardware[rank]; i < it->first_hardware[rank + 1]; i++)
            json_put_int(json, first + it->hardware[i]);
    }
    json_close(json);
}

/* The members of roost.WorkerInfo, and `ports`. */
static void put_process(struct json_writer *json, const struct run_start *start,
                        const struct component_commands *component, int32_t rank)
{
    const struct roost_component *it = component->placed;
    const struct cluster_node *node = &start->options->cluster->nodes[it->cluster_node_rank[rank]];
    const char *host = start->host->brings_namespace ? node->address : "127.0.0.1";
    char address[128];
    snprintf(address, sizeof address, "%s:%d", component->name, (int)rank);
    json_open_object(json_key(json, address));
    json_put_string(json_key(json, "address"), address);
    json_put_int(json_key(json, "rank"), rank);
    json_put_int(json_key(json, "group_world_size"), it->world_size);
    json_put_int(json_key(json, "cluster_node_rank"), it->cluster_node_rank[rank]);
    json_put_string(json_key(json, "accelerator_type"),
                    roost_accelerator_type((enum roost_accelerator)it->accelerator[rank]));
    json_put_string(json_key(json, "accelerator_model"), node->model ? node->model : "");
    json_put_int(json_key(json, "accelerator_rank"), it->local_accelerator_rank[rank]);
    json_put_string(json_key(json, "node_ip"), host ? host : "");
    json_put_int(json_key(json, "node_port"), rank == 0 ? start->ports[component->first_port] : 0);
    put_accelerators(json, start, it, rank);
    put_ports(json, start, component, rank);
    json_close(json);
}

bool run_news_put_processes(const struct run_start *start, struct text *out)
{
    struct json_writer json;
    bool is_open = false;
    size_t from = 0;
    for (int32_t c = 0; c < start->commands->component_count; c++)
        for (int32_t rank = 0; rank < start->commands->components[c].process_count; rank++) {
            if (!is_open) {
                from = out->len;
                json = json_writer_on(out, JSON_COMPACT);
                open_call(&json, "WorkerManager.add_processes");
                json_open_object(&json);
            }
            put_process(&json, start, &start->commands->components[c], rank);
            is_open = out->len - from < LINE_MAX_BYTES;
            if (!is_open) {
                json_close(&json);
                close_call(&json, out);
            }
        }
    if (is_open) {
        json_close(&json);
        close_call(&json, out);
    }
    if (out->has_failed)
        diag_nomem(start->diag);
    return !out->has_failed;
}

/* --- how they are doing --- */

bool run_news_open(struct run_start *start)
{
    struct roost_run *run = start->run;
    run->news = arena_zeroed(&run->arena, struct run_news, 1);
    if (run->news)
        run->news->state_of_process = arena_zeroed(&run->arena, uint8_t, run->process_count + 1);
    if (run->news && run->news->state_of_process)
        return true;
    diag_nomem(start->diag);
    return false;
}

static bool is_open(const struct roost_run *run)
{
    return run->news && run->news->state_of_process;
}

void run_news_note(struct roost_run *run, int32_t process, const struct roost_event *event)
{
    struct run_news *news = run->news;
    if (!is_open(run) || process < 0 ||
        (event->kind != ROOST_EVENT_STARTED && event->kind != ROOST_EVENT_ENDED))
        return;
    news->state_of_process[process] = event->kind == ROOST_EVENT_STARTED ? RUNNING : ENDED;
    bool is_first = news->first == news->end;
    news->first = is_first || process < news->first ? process : news->first;
    news->end = is_first || process >= news->end ? process + 1 : news->end;
}

/* One request with as many processes of that state as have room; the number of those that it took. */
static int32_t put_states(const struct roost_run *run, int state, int32_t from, struct text *out,
                          int32_t *out_next)
{
    struct json_writer json = json_writer_on(out, JSON_COMPACT);
    int32_t count = 0, c = 0, process = from;
    open_call(&json, "WorkerManager.set_process_state");
    json_put_string(&json, state == RUNNING ? "running" : "ended");
    json_open_array(&json);
    for (; process < run->news->end && out->len < BODY_MAX; process++) {
        while (process >= run->components[c].first + run->components[c].world_size)
            c++;
        if (run->news->state_of_process[process] != state)
            continue;
        char address[128];
        snprintf(address, sizeof address, "%s:%d", run->components[c].name,
                 (int)(process - run->components[c].first));
        json_put_string(&json, address);
        count++;
    }
    json_close(&json);
    close_call(&json, out);
    *out_next = process;
    return count;
}

static enum socket_pair_result tell(const struct roost_run *run, const struct text *lines)
{
    if (run->server)
        return registry_server_tell(run->server, lines->bytes, lines->len);
    struct roost_agent_head head = {-1, ROOST_AGENT_TELL};
    struct {
        struct roost_agent_head head;
        char body[SOCKET_PAIR_BODY_MAX - sizeof head];
    } message = {.head = head};
    if (lines->len > sizeof message.body)
        return SOCKET_PAIR_FAILED;
    memcpy(message.body, lines->bytes, lines->len);
    return socket_pair_send(run->socket, MSG_AGENT, &message, sizeof head + lines->len, -1);
}

static int other_end(const struct roost_run *run)
{
    return run->server ? registry_server_socket(run->server) : run->socket;
}

/* Watches the other end for room in the descriptor that a caller polls, or no longer. */
static void watch(struct roost_run *run, bool is_waiting)
{
    if (run->news->is_waiting == is_waiting || run->events < 0)
        return;
    run->news->is_waiting = is_waiting;
    struct epoll_event wanted = {.events = EPOLLOUT};
    if (!run->server) { /* the socket is watched for events, too */
        wanted.events = is_waiting ? EPOLLIN | EPOLLOUT : EPOLLIN;
        (void)epoll_ctl(run->events, EPOLL_CTL_MOD, run->socket, &wanted);
        return;
    }
    (void)epoll_ctl(run->events, is_waiting ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, other_end(run),
                    &wanted);
}

/* Tells of all processes in one state; false when there is no room now. */
static bool flush_state(struct roost_run *run, int state, bool *out_is_over)
{
    struct run_news *news = run->news;
    for (int32_t from = news->first, next; from < news->end; from = next) {
        struct text lines = TEXT_INIT;
        int32_t count = put_states(run, state, from, &lines, &next);
        enum socket_pair_result result =
            count == 0            ? SOCKET_PAIR_OK
            : text_string(&lines) ? tell(run, &lines)
                                  : SOCKET_PAIR_AGAIN; /* no memory: later, there may be some */
        text_release(&lines);
        if (result == SOCKET_PAIR_AGAIN)
            return false;
        *out_is_over = *out_is_over || result != SOCKET_PAIR_OK;
        for (int32_t p = from; p < next; p++)
            if (news->state_of_process[p] == state)
                news->state_of_process[p] = NOTHING;
    }
    return true;
}

void run_news_flush(struct roost_run *run)
{
    struct run_news *news = run->news;
    if (!is_open(run) || news->first == news->end)
        return;
    bool is_over = false;
    bool is_told = flush_state(run, RUNNING, &is_over) && flush_state(run, ENDED, &is_over);
    watch(run, !is_told);
    if (is_told)
        news->first = news->end = 0;
    if (is_over)
        news->state_of_process = NULL;
}

struct pollfd run_news_poll(const struct roost_run *run)
{
    bool is_waiting = is_open(run) && run->news->is_waiting;
    return (struct pollfd){is_waiting ? other_end(run) : -1, POLLOUT, 0};
}
