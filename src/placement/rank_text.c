/* rank_text.c - grammar and rules of placement texts. Works on ranges and never expands them to ranks, so
 * that the cost of a hostile text depends only on its length. */
#include "placement/rank_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool read_processes(struct rank_text *text, struct rank_entry *entry, struct strview side,
                           struct diag *diag)
{
    if (sv_is_nocase(sv_trim(side), "all")) {
        diag_error(diag, ROOST_ERR_RANK, entry->at, "'%s': the process side cannot be 'all'",
                   quote(entry->text).text);
        diag_hint(diag, "number the processes, such as 0-3, or leave ':all' out");
        return false;
    }
    if (sv_trim(side).len == 0) {
        diag_error(diag, ROOST_ERR_RANK, entry->at, "'%s' has no process ranks behind its ':'",
                   quote(entry->text).text);
        diag_hint(diag, "leave the ':' out for one process on each resource");
        return false;
    }
    entry->has_processes = text->has_processes = true;
    return rank_range_read(side, place_piece(text->source.at, text->source.text, sv_trim(side)),
                           diag, &entry->processes) == ROOST_OK;
}

static bool read_entry(struct rank_text *text, struct rank_entry *entry, struct diag *diag)
{
    size_t colon = sv_find(entry->text, ':', 0);
    struct strview left = sv_trim(sv_sub(entry->text, 0, colon));
    struct strview right = sv_sub(entry->text, colon + 1, entry->text.len);
    if (sv_find(right, ':', 0) < right.len) {
        diag_error(diag, ROOST_ERR_RANK, entry->at, "'%s' has more than one ':'",
                   quote(entry->text).text);
        diag_hint(diag, "an entry is resources:processes, such as 0-3:0-7");
        return false;
    }
    if (left.len == 0) {
        diag_error(diag, ROOST_ERR_RANK, entry->at, "'%s' has no resource ranks before its ':'",
                   quote(entry->text).text);
        diag_hint(diag, "an entry is resources:processes, such as 0-3:0-7");
        return false;
    }
    entry->is_all = sv_is_nocase(left, "all");
    bool is_good = entry->is_all ||
                   rank_range_read(left, place_piece(text->source.at, text->source.text, left),
                                   diag, &entry->resources) == ROOST_OK;
    if (colon < entry->text.len)
        is_good = read_processes(text, entry, right, diag) && is_good;
    return is_good;
}

/* At least as many as there are entries: commas with something before them, and the last. */
static size_t count_entries(struct strview text)
{
    size_t count = 1;
    for (size_t i = 1; i < text.len; i++)
        count += text.at[i] == ',' && text.at[i - 1] != ',';
    return count;
}

bool rank_text_read(struct arena *arena, struct word source, struct diag *diag,
                    struct rank_text *out)
{
    *out = (struct rank_text){.source = source};
    struct strview text = source.text;
    out->entries = arena_zeroed(arena, struct rank_entry, count_entries(text));
    if (!out->entries) {
        diag_nomem(diag);
        return false;
    }
    bool is_good = true;
    for (size_t from = 0; from <= text.len;) {
        size_t comma = sv_find(text, ',', from);
        struct strview item = sv_trim(sv_sub(text, from, comma));
        from = comma + 1;
        if (item.len == 0)
            continue;
        struct rank_entry *entry = &out->entries[out->count++];
        entry->text = item;
        entry->at = place_piece(source.at, text, item);
        entry->is_bad = !read_entry(out, entry, diag);
        is_good = is_good && !entry->is_bad;
    }
    if (out->count == 0) {
        diag_error(diag, ROOST_ERR_RANK, source.at, "the placement must not be empty");
        diag_hint(diag, "write the ranks to use, such as 0-7, or 'all'");
        return false;
    }
    return is_good;
}

/* What is known behind the entries bound so far. */
struct binding {
    const struct rank_text *text;
    const struct rank_bounds *bounds;
    struct diag *diag;
    const struct rank_entry *before;  /* the last that is well formed */
    const struct rank_entry *highest; /* the one that reaches highest; ones out of order do not */
    bool is_counted;                  /* how many processes came before is known */
    int64_t next;                     /* the process that comes next if all were numbered rightly */
    int64_t written;                  /* and if the last entry is right as it stands */
};

static bool check_bounds(struct binding *binding, struct rank_entry *entry)
{
    const struct rank_bounds *bounds = binding->bounds;
    if (entry->is_all)
        entry->resources = (struct rank_range){0, bounds->total - 1};
    if (bounds->total < 0 || entry->resources.last < bounds->total)
        return true;
    int unit_len = (int)strlen(bounds->unit);
    if (bounds->total == 1 && unit_len > 0 && bounds->unit[unit_len - 1] == 's')
        unit_len--; /* 1 accelerator, 1 node */
    diag_error(binding->diag, ROOST_ERR_FIT, entry->at,
               "ranks '%s' reach %d, out of range: node group '%s' has %d %.*s",
               quote(entry->text).text, (int)entry->resources.last, bounds->label,
               (int)bounds->total, unit_len, bounds->unit);
    if (bounds->no_accelerator_hint)
        diag_hint(binding->diag, "%s", bounds->no_accelerator_hint);
    else if (bounds->total > 1)
        diag_hint(binding->diag, "its ranks are 0-%d", (int)bounds->total - 1);
    else
        diag_hint(binding->diag, "its only rank is 0");
    return false;
}

static bool say_again(struct binding *binding, const struct rank_entry *entry,
                      const struct rank_entry *first)
{
    diag_error(binding->diag, ROOST_ERR_RANK, entry->at,
               "Resource ranks must be unique: '%s' names ranks that '%s' before it has",
               quote(entry->text).text, quote(first->text).text);
    diag_hint(binding->diag, "to share a resource, give one entry more processes: 0:0-1");
    return false;
}

static bool is_behind(const struct rank_entry *entry, const struct rank_entry *before,
                      const struct rank_bounds *bounds)
{
    if (bounds->total >= 0 || (!entry->is_all && !before->is_all))
        return entry->resources.first > before->resources.last;
    return before->is_all && entry->resources.first > 0; /* how far "all" goes is not known */
}

/* An entry is held against the one before it, so that one out of order is one fault; behind such a
 * one also against the highest, whose ranks it could name again. */
static bool check_order(struct binding *binding, const struct rank_entry *entry)
{
    const struct rank_entry *before = binding->before, *highest = binding->highest;
    binding->before = entry;
    if (!before || is_behind(entry, before, binding->bounds)) {
        bool is_again = highest && highest != before &&
                        entry->resources.first <= highest->resources.last &&
                        entry->resources.last >= highest->resources.first;
        if (is_again)
            return say_again(binding, entry, highest);
        if (!highest || entry->resources.last > highest->resources.last)
            binding->highest = entry;
        return true;
    }
    if (entry->is_all || entry->resources.last >= before->resources.first)
        return say_again(binding, entry, before);
    diag_error(binding->diag, ROOST_ERR_RANK, entry->at,
               "resource ranks must be in ascending order: '%s' comes after '%s'",
               quote(entry->text).text, quote(before->text).text);
    diag_hint(binding->diag, "write the lower ranks first");
    return false;
}

/* "3" or "0-3", used as range_words(a, b).text inside one expression. */
struct range_words {
    char text[48];
};

static struct range_words range_words(int64_t first, int64_t last)
{
    struct range_words words;
    if (first == last)
        snprintf(words.text, sizeof words.text, "%" PRId64, first);
    else
        snprintf(words.text, sizeof words.text, "%" PRId64 "-%" PRId64, first, last);
    return words;
}

static bool say_too_many(struct binding *binding, const struct rank_entry *entry)
{
    diag_error(binding->diag, ROOST_ERR_LIMIT, entry->at, "'%s' makes more than %d processes",
               quote(entry->text).text, PROCESSES_MAX);
    diag_hint(binding->diag, "write fewer ranks; all components together have no more");
    binding->is_counted = false; /* once is enough */
    return false;
}

/* Whether the count of processes suits the resources; what is not known suits. */
static bool is_divided(const struct rank_entry *entry, const struct rank_bounds *bounds)
{
    int64_t resources = range_size(entry->resources), processes = range_size(entry->processes);
    if (!bounds->is_known || resources < 1)
        return true;
    if (bounds->is_node)
        return processes >= resources;
    return processes % resources == 0 || resources % processes == 0;
}

/* Whether the next entry goes on counting where this one ends. */
static bool is_counted_on(const struct rank_text *text, const struct rank_entry *entry)
{
    const struct rank_entry *next = entry + 1;
    return next < text->entries + text->count && !next->is_bad && next->has_processes &&
           next->processes.first == entry->processes.last + 1;
}

static bool say_misnumbered(struct binding *binding, const struct rank_entry *entry)
{
    int64_t next = binding->next, last = next + range_size(entry->processes) - 1;
    struct strview left = sv_trim(sv_sub(entry->text, 0, sv_find(entry->text, ':', 0)));
    bool is_before = next > entry->processes.first;
    /* Who took the comma for part of a list counted the processes of the entries before it, too. */
    bool is_list = range_size(entry->processes) == next + range_size(entry->resources);
    if (range_size(entry->resources) > 0 && (is_list || !is_divided(entry, binding->bounds)))
        last = next + range_size(entry->resources) - 1;
    const char *rest =
        is_counted_on(binding->text, entry) ? ", and count on from there behind it" : "";
    diag_error(binding->diag, ROOST_ERR_RANK, entry->at,
               "Process ranks must be in ascending order and continuous from 0: '%s' starts at %d "
               "where %" PRId64 " is next",
               quote(entry->text).text, (int)entry->processes.first, next);
    if (is_before)
        diag_hint(binding->diag,
                  "a comma ends an entry, so those before it have processes %s of their own; "
                  "write %s:%s%s",
                  range_words(0, next - 1).text, quote(left).text, range_words(next, last).text,
                  rest);
    else
        diag_hint(binding->diag, "write %s:%s%s", quote(left).text, range_words(next, last).text,
                  rest);
    return false;
}

/* Numbers the processes that are not written, and checks those that are. Entries behind a wrong one
 * may count on from it or from what would be right: only another slip is another fault. */
static bool check_processes(struct binding *binding, struct rank_entry *entry, bool is_there)
{
    int64_t size = range_size(entry->has_processes ? entry->processes : entry->resources);
    bool is_good = true;
    if (!entry->has_processes) {
        if (!binding->is_counted)
            return true;
        if (binding->next + size > PROCESSES_MAX && is_there)
            return say_too_many(binding, entry);
        if (binding->next + size > PROCESSES_MAX) {
            binding->is_counted = false; /* that many ranks are not even there */
            return true;
        }
        entry->processes =
            (struct rank_range){(int32_t)binding->next, (int32_t)(binding->next + size - 1)};
        binding->written += size;
    } else {
        if (binding->is_counted && entry->processes.first != binding->next &&
            entry->processes.first != binding->written)
            is_good = say_misnumbered(binding, entry);
        else if (entry->processes.last >= PROCESSES_MAX)
            return say_too_many(binding, entry);
        binding->written = (int64_t)entry->processes.last + 1;
    }
    binding->next = binding->is_counted ? binding->next + size : binding->written;
    binding->is_counted = true;
    return is_good;
}

static bool check_counts(const struct rank_entry *entry, const struct rank_bounds *bounds,
                         struct diag *diag)
{
    int64_t resources = range_size(entry->resources), processes = range_size(entry->processes);
    if (!entry->has_processes || is_divided(entry, bounds))
        return true;
    if (bounds->is_node) {
        diag_error(diag, ROOST_ERR_RANK, entry->at,
                   "'%s' spreads %" PRId64 " process%s over %" PRId64
                   " nodes, but a process runs on one node",
                   quote(entry->text).text, processes, processes == 1 ? "" : "es", resources);
        diag_hint(diag, "give it at least one process a node");
        return false;
    }
    diag_error(diag, ROOST_ERR_RANK, entry->at,
               "'%s' maps %" PRId64 " resources to %" PRId64
               " processes: one count must be a multiple of the other",
               quote(entry->text).text, resources, processes);
    int64_t near = processes < resources ? resources : processes / resources * resources;
    diag_hint(diag, "%" PRId64 " processes would do: ranks %d-%" PRId64, near,
              (int)entry->processes.first, entry->processes.first + near - 1);
    return false;
}

static bool bind_entry(struct binding *binding, struct rank_entry *entry)
{
    bool is_sized = !entry->is_all || binding->bounds->total >= 0;
    bool is_there = check_bounds(binding, entry);
    /* Order and numbers are wrong whatever the cluster is. */
    bool is_good = check_order(binding, entry) && is_there;
    if (!entry->has_processes && !is_sized) {
        binding->is_counted = false; /* how many processes this makes is not known */
        return is_good;
    }
    if (!check_processes(binding, entry, is_there))
        return false; /* with a cure that makes the count right, too */
    /* Ranks that are not there will be others, and so will be their count. */
    return (!is_there || check_counts(entry, binding->bounds, binding->diag)) && is_good;
}

bool rank_text_bind(struct rank_text *text, const struct rank_bounds *bounds, struct diag *diag)
{
    struct binding binding = {.text = text, .bounds = bounds, .diag = diag, .is_counted = true};
    bool is_good = true;
    for (int32_t i = 0; i < text->count; i++) {
        struct rank_entry *entry = &text->entries[i];
        if (entry->is_bad)
            binding.is_counted = false;
        else
            entry->is_bad = !bind_entry(&binding, entry);
        is_good = is_good && !entry->is_bad;
    }
    return is_good;
}

int64_t rank_text_processes(const struct rank_text *text)
{
    return text->count ? (int64_t)text->entries[text->count - 1].processes.last + 1 : 0;
}
