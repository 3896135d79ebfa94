/* run_agents_ports.c - in the driver: the agents of a run lease the ports of their processes, each on
 * its own node, and send the numbers here. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <roost/port.h>

#include "base/text.h"
#include "run/run_agents_internal.h"
#include "supervise/clock.h"

static int32_t node_of(const struct run_start *start, const struct port_request *request)
{
    return start->commands->components[request->component].placed->cluster_node_rank[request->rank];
}

/* Requests for ports that an agent is to lease. */
static size_t count_wants(const struct agents_start *it, int32_t agent)
{
    const struct commands *commands = it->start->commands;
    size_t count = 0;
    for (size_t i = 0; i < commands->port_count; i++)
        count += node_of(it->start, &commands->ports[i]) == it->node_of_agent[agent];
    return count;
}

bool agents_send_setups(struct agents_start *it)
{
    struct run_start *start = it->start;
    const struct commands *commands = start->commands;
    for (int32_t agent = 0; agent < it->count; agent++) {
        struct {
            struct roost_agent_head head;
            struct setup setup;
        } message = {.head = {agent, MSG_SETUP}, .setup = run_start_setup(start)};
        struct text wants = TEXT_INIT;
        message.setup.process_count = 0;
        memset(message.setup.runtime_dir, 0, sizeof message.setup.runtime_dir); /* it has its own */
        for (size_t i = 0; i < commands->port_count; i++) {
            if (node_of(start, &commands->ports[i]) != it->node_of_agent[agent])
                continue;
            struct roost_port_want want = {.count = commands->ports[i].count,
                                           .is_handed = commands->ports[i].is_handed};
            text_append(&wants, (const char *)&want, sizeof want);
            message.setup.want_count++;
        }
        for (int32_t c = 0; c < commands->component_count; c++) {
            const struct roost_component *placed = commands->components[c].placed;
            for (int32_t rank = 0; rank < placed->world_size; rank++)
                message.setup.process_count +=
                    placed->cluster_node_rank[rank] == it->node_of_agent[agent];
        }
        if (!run_start_send_file(start, MSG_AGENT, &message, sizeof message,
                                 agents_file_of(&wants)))
            return false;
    }
    return true;
}

/* The next ports of an agent are for its next requests. */
static bool place_ports(struct agents_start *it, int32_t agent, const char *body, size_t len)
{
    const struct commands *commands = it->start->commands;
    size_t seen = 0, end = it->taken[agent] + len / sizeof(int32_t);
    for (size_t i = 0; i < commands->port_count && it->taken[agent] < end; i++) {
        if (node_of(it->start, &commands->ports[i]) != it->node_of_agent[agent] ||
            seen++ < it->taken[agent])
            continue;
        memcpy(&it->start->ports[i], body, sizeof(int32_t));
        body += sizeof(int32_t);
        it->taken[agent]++;
    }
    return it->taken[agent] == end;
}

bool agents_take_ports(struct agents_start *it)
{
    struct run_start *start = it->start;
    start->ports = arena_zeroed(it->arena, int32_t, start->commands->port_count + 1);
    if (!start->ports) {
        diag_nomem(start->diag);
        return false;
    }
    it->deadline = clock_ms() + agents_answer_ms(start);
    for (size_t got = 0; got < start->commands->port_count;) {
        struct roost_agent_head head;
        const char *body;
        size_t len;
        if (!agents_expect(it, MSG_PORTS, &head, &body, &len))
            return false;
        if (head.agent < 0 || head.agent >= it->count || len < sizeof(int32_t) ||
            !place_ports(it, head.agent, body, len)) {
            errno = EPROTO;
            return run_start_report_socket(start);
        }
        got += len / sizeof(int32_t);
    }
    return true;
}

bool agents_report_late(const struct agents_start *it)
{
    const struct run_start *start = it->start;
    const char *first = NULL;
    int32_t count = 0;
    for (int32_t agent = 0; agent < it->count; agent++) {
        if (it->taken[agent] == count_wants(it, agent))
            continue;
        first = first ? first : it->words[agent];
        count++;
    }
    diag_error(start->diag, ROOST_ERR_TIMEOUT, NOWHERE,
               "%d of %d nodes have not leased their ports after %lld seconds; the first is %s",
               (int)count, (int)it->count, (long long)(agents_answer_ms(start) / 1000), first);
    diag_hint(start->diag, "see whether that node is busy or stopped, or give it more time");
    return false;
}
