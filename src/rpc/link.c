/* link.c - the socket to one rank: its lives, and its requests that wait for an answer.
 * Keeps: a request is in exactly one slot until it is answered or its life ends. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rpc/links_internal.h"

enum {
    SLOTS_FIRST = 4,
    SLOTS_KEPT = 64,    /* a table that is larger is given back when it is empty */
    CLOSE_GRACE = 1000, /* ms */
};

/* --- slots --- */

bool link_reserve(struct link *link)
{
    if (link->slot_used < link->slot_cap)
        return true;
    uint32_t cap = link->slot_cap ? 2 * link->slot_cap : SLOTS_FIRST;
    cap = cap > SLOT_NONE ? SLOT_NONE : cap;
    if (cap <= link->slot_cap)
        return false;
    struct slot *slots = realloc(link->slots, cap * sizeof *slots);
    if (!slots)
        return false;
    for (uint32_t i = link->slot_cap; i < cap; i++)
        slots[i] = (struct slot){.index = i + 1 < cap ? i + 1 : SLOT_NONE};
    link->slot_free = link->slot_cap;
    link->slots = slots;
    link->slot_cap = cap;
    return true;
}

uint64_t link_ask(struct link *link, struct roost_call *call, size_t index)
{
    uint32_t number = link->slot_free;
    struct slot *slot = &link->slots[number];
    link->slot_free = slot->index;
    link->slot_used++;
    link->links->asked++;
    *slot = (struct slot){call, ++link->sequence, (uint32_t)index, true};
    call->outcomes[index].slot = number;
    return link->sequence << SLOT_BITS | number;
}

struct slot *link_slot(struct link *link, uint64_t id)
{
    uint64_t number = id & SLOT_NONE, sequence = id >> SLOT_BITS;
    if (number >= link->slot_cap || sequence == 0 || link->slots[number].sequence != sequence)
        return NULL;
    return &link->slots[number];
}

void link_free_slot(struct link *link, struct slot *slot)
{
    *slot = (struct slot){.index = link->slot_free};
    link->slot_free = (uint32_t)(slot - link->slots);
    link->links->asked--;
    if (--link->slot_used == 0 && link->slot_cap > SLOTS_KEPT) {
        free(link->slots);
        link->slots = NULL;
        link->slot_cap = 0;
    }
}

/* Every request that waits gets its outcome. */
static void lose_slots(struct link *link, const char *why)
{
    for (uint32_t i = 0; i < link->slot_cap; i++)
        if (link->slots[i].sequence && link->slots[i].call)
            call_lose(link->slots[i].call, link->slots[i].index,
                      link->slots[i].is_unsent ? ROOST_OUTCOME_NOT_RUN : ROOST_OUTCOME_UNKNOWN,
                      why);
    free(link->slots);
    link->slots = NULL;
    link->links->asked -= link->slot_used;
    link->slot_cap = link->slot_used = 0;
}

/* --- lives --- */

static void timer_fired(struct timer *timer)
{
    struct link *link = (struct link *)((char *)timer - offsetof(struct link, timer));
    if (link->is_deaf)
        link_cut(link, "it closed its socket");
    else
        link_flush(link);
}

void link_init(struct link *link, struct links *links, int32_t rank)
{
    *link = (struct link){.links = links, .rank = rank, .fd = -1, .timer.fire = timer_fired};
}

void link_end(struct link *link, const char *why)
{
    struct links *links = link->links;
    link->state = LINK_ENDED;
    if (link->fd >= 0) {
        /* Closing it does not end that where a fork of this process has it, too: its hang-up would be news
         * for ever. */
        (void)links_watch(links, EPOLL_CTL_DEL, link->fd, 0, (struct mark){0, 0});
        close(link->fd);
    }
    link->fd = -1;
    link->epoch++;
    timers_unset(&links->timers, &link->timer);
    char *words = copy_words(why);
    free(link->why);
    link->why = words;
    free(link->body);
    link->body = NULL;
    link->body_len = link->body_cap = 0;
    link->is_kept = link->is_deaf = link->is_closed = link->is_watched_out = false;
    link->in = (struct frame_decoder){0};
    link_drop_out(link);
    link_drop_regions(link);
    lose_slots(link, why);
    links->has_changed = true;
}

void link_cut(struct link *link, const char *why)
{
    struct links *links = link->links;
    links->counts.cut++;
    link_end(link, why);
    if (links->options.on_cut)
        links->options.on_cut(links->options.context, link->rank, link->life, why);
}

void link_deafen(struct link *link)
{
    if (link->is_deaf)
        return;
    link->is_deaf = true;
    link_drop_out(link);
    int32_t grace = link->links->options.close_grace_ms;
    if (grace < 0)
        link_cut(link, "it closed its socket");
    else
        links_set_timer(link->links, &link->timer, timers_deadline(grace ? grace : CLOSE_GRACE));
    link->links->has_changed = true;
}
