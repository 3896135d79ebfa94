/* run_parts_ports.c - the parts of a run lease the ports of their processes, each on its own node. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <roost/port.h>

#include "base/text.h"
#include "run/run_parts_internal.h"
#include "supervise/clock.h"

static int32_t node_of(const struct birth *birth, const struct port_request *request)
{
    return birth->commands->components[request->component].placed->cluster_node_rank[request->rank];
}

/* Requests for ports that a part is to lease. */
static size_t count_wants(const struct parts_birth *it, int32_t part)
{
    const struct commands *commands = it->birth->commands;
    size_t count = 0;
    for (size_t i = 0; i < commands->port_count; i++)
        count += node_of(it->birth, &commands->ports[i]) == it->node_of_part[part];
    return count;
}

bool parts_send_setups(struct parts_birth *it)
{
    struct birth *birth = it->birth;
    const struct commands *commands = birth->commands;
    for (int32_t part = 0; part < it->count; part++) {
        struct {
            struct roost_part_head head;
            struct setup setup;
        } message = {.head = {part, MSG_SETUP}, .setup = birth_setup(birth)};
        struct text wants = TEXT_INIT;
        message.setup.is_part = true;
        message.setup.process_count = 0;
        memset(message.setup.runtime_dir, 0, sizeof message.setup.runtime_dir); /* it has its own */
        for (size_t i = 0; i < commands->port_count; i++) {
            if (node_of(birth, &commands->ports[i]) != it->node_of_part[part])
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
                    placed->cluster_node_rank[rank] == it->node_of_part[part];
        }
        if (!birth_send_file(birth, MSG_PART, &message, sizeof message, parts_file_of(&wants)))
            return false;
    }
    return true;
}

/* The next ports of a part are for its next requests. */
static bool place_ports(struct parts_birth *it, int32_t part, const char *body, size_t len)
{
    const struct commands *commands = it->birth->commands;
    size_t seen = 0, end = it->taken[part] + len / sizeof(int32_t);
    for (size_t i = 0; i < commands->port_count && it->taken[part] < end; i++) {
        if (node_of(it->birth, &commands->ports[i]) != it->node_of_part[part] ||
            seen++ < it->taken[part])
            continue;
        memcpy(&it->birth->ports[i], body, sizeof(int32_t));
        body += sizeof(int32_t);
        it->taken[part]++;
    }
    return it->taken[part] == end;
}

bool parts_take_ports(struct parts_birth *it)
{
    struct birth *birth = it->birth;
    birth->ports = arena_zeroed(it->arena, int32_t, birth->commands->port_count + 1);
    if (!birth->ports) {
        diag_nomem(birth->diag);
        return false;
    }
    it->deadline = clock_ms() + parts_answer_ms(birth);
    for (size_t got = 0; got < birth->commands->port_count;) {
        struct roost_part_head head;
        const char *body;
        size_t len;
        if (!parts_expect(it, MSG_PORTS, &head, &body, &len))
            return false;
        if (head.part < 0 || head.part >= it->count || len < sizeof(int32_t) ||
            !place_ports(it, head.part, body, len)) {
            errno = EPROTO;
            return birth_say_channel(birth);
        }
        got += len / sizeof(int32_t);
    }
    return true;
}

bool parts_say_late(const struct parts_birth *it)
{
    const struct birth *birth = it->birth;
    const char *first = NULL;
    int32_t count = 0;
    for (int32_t part = 0; part < it->count; part++) {
        if (it->taken[part] == count_wants(it, part))
            continue;
        first = first ? first : it->words[part];
        count++;
    }
    diag_error(birth->diag, ROOST_ERR_TIMEOUT, NOWHERE,
               "%d of %d nodes have not leased their ports after %lld seconds; the first is %s",
               (int)count, (int)it->count, (long long)(parts_answer_ms(birth) / 1000), first);
    diag_hint(birth->diag, "see whether that node is busy or stopped, or give it more time");
    return false;
}
