/* processes.c - WorkerManager: the processes that a run has, as the run itself knows them, and the lists of
 * workers.
 *
 * The driver of a run names every process before the first one starts, and reports when each begins and
 * ends. A worker that has registered itself is known by its own record (workers.c) for as long as that
 * lasts. A process that has ended stays known until its run is over. */
#include <stdlib.h>

#include "base/address.h"
#include "registry/registry_internal.h"

/* The state of an entry is its `put_by`. */
enum { WAITING, RUNNING, ENDED, STATE_COUNT };
static const char *const state_words[] = {
    [WAITING] = "waiting", [RUNNING] = "running", [ENDED] = "ended"};

const char *process_state_word(const struct table_entry *entry)
{
    return state_words[entry->put_by];
}

static bool say_processes(struct request *request, const char *what)
{
    diag_error(request->diag, ROOST_ERR_USAGE, NOWHERE, "not processes of a run: %s", what);
    diag_hint(request->diag, "write {\"actor:0\": {\"address\": \"actor:0\", \"rank\": 0}}");
    return false;
}

/* Reads the address and the record of each process; keeps them only when `is_kept`. */
static bool read_processes(struct request *request, struct json_reader *reader, bool is_kept)
{
    struct json_event event = json_next(reader, request->diag);
    if (event.kind != JSON_OBJECT)
        return event.kind != JSON_FAILED && say_processes(request, "it must be an object");
    while ((event = json_next(reader, request->diag)).kind == JSON_KEY) {
        char address[ADDRESS_MAX + 1];
        struct strview key = {address, event.text.len};
        struct text record = TEXT_INIT;
        struct json_writer json = json_writer_on(&record, JSON_COMPACT);
        if (!worker_address_read(event.text, NULL, request->diag))
            return false;
        memcpy(address, event.text.at, key.len); /* an address is no longer than that */
        event = json_next(reader, request->diag);
        bool is_good = event.kind == JSON_OBJECT
                           ? json_put_value(&json, reader, event, request->diag)
                           : say_processes(request, "a record must be an object");
        const char *bytes = is_good ? text_string(&record) : NULL;
        if (is_good && !bytes) {
            diag_nomem(request->diag);
            is_good = false;
        }
        struct strview value = {bytes, record.len};
        struct table *processes = &request->registry->processes;
        is_good = is_good && (!is_kept || request_keep(request, processes, key, value, false));
        if (is_good && is_kept)
            table_find(processes, key)->put_by = WAITING;
        text_release(&record);
        if (!is_good)
            return false;
    }
    return event.kind == JSON_OBJECT_END;
}

static bool add_processes(struct request *request)
{
    /* Twice: nothing is kept of a request that is wrong further down. */
    for (int turn = 0; turn < 2; turn++) {
        struct json_reader *reader =
            json_reader_from_text("processes", request->args[0].json, NULL);
        bool is_good = reader && read_processes(request, reader, turn == 1);
        json_reader_free(reader);
        if (!reader)
            diag_nomem(request->diag);
        if (!is_good)
            return false;
    }
    json_put_null(&request->answer);
    return true;
}

/* --- states --- */

static bool read_state(struct request *request, int *out)
{
    struct strview word;
    if (!request_text(request, 0, "the state", &word))
        return false;
    for (*out = 0; *out < STATE_COUNT; (*out)++)
        if (sv_is(word, state_words[*out]))
            return true;
    diag_error(request->diag, ROOST_ERR_USAGE, NOWHERE, "a process cannot be '%s'",
               quote(word).text);
    diag_hint(request->diag, "a process is waiting, running or ended");
    return false;
}

/* Reads the addresses and, when `is_kept`, sets the state of those that are processes of the run. */
static bool read_addresses(struct request *request, struct json_reader *reader, int state,
                           bool is_kept)
{
    struct table *processes = &request->registry->processes;
    struct json_event event = json_next(reader, request->diag);
    if (event.kind != JSON_ARRAY)
        return event.kind != JSON_FAILED && say_processes(request, "addresses must be an array");
    while ((event = json_next(reader, request->diag)).kind == JSON_STRING) {
        struct table_entry *entry = is_kept ? table_find(processes, event.text) : NULL;
        if (entry && entry->put_by != state) {
            entry->put_by = state;
            processes->changes++;
        }
    }
    return event.kind == JSON_ARRAY_END ||
           (event.kind != JSON_FAILED && say_processes(request, "an address must be a text"));
}

static bool set_process_state(struct request *request)
{
    int state;
    if (!read_state(request, &state))
        return false;
    for (int turn = 0; turn < 2; turn++) {
        struct json_reader *reader =
            json_reader_from_text("addresses", request->args[1].json, NULL);
        bool is_good = reader && read_addresses(request, reader, state, turn == 1);
        json_reader_free(reader);
        if (!reader)
            diag_nomem(request->diag);
        if (!is_good)
            return false;
    }
    json_put_null(&request->answer);
    return true;
}

/* --- what is known --- */

/* The record of a process with its state as the last member. */
static void put_process(struct json_writer *json, const struct table_entry *entry)
{
    struct text record = TEXT_INIT;
    struct strview value = table_value(entry);
    text_put(&record, sv_sub(value, 0, value.len - 1));
    text_printf(&record, "%s\"state\":\"%s\"}", value.len > 2 ? "," : "",
                process_state_word(entry));
    const char *bytes = text_string(&record);
    if (bytes)
        json_put_raw(json, (struct strview){bytes, record.len});
    else
        json->out->has_failed = true;
    text_release(&record);
}

void worker_put_info(struct json_writer *json, const struct registry *registry,
                     struct strview address)
{
    const struct table_entry *own = table_find(&registry->workers, address);
    const struct table_entry *process = own ? NULL : table_find(&registry->processes, address);
    if (process)
        put_process(json, process);
    else
        json_put_raw(json, own ? table_value(own) : SV("null"));
}

struct names {
    struct strview *items;
    size_t count;
};

static struct strview root_of(struct strview address)
{
    return sv_sub(address, 0, sv_find(address, ':', 0));
}

static bool is_wanted(struct strview address, const struct strview *group)
{
    return !group || sv_equal(root_of(address), *group);
}

static int by_address(const void *a, const void *b)
{
    return natural_compare(*(const struct strview *)a, *(const struct strview *)b);
}

/* The addresses of all workers, or of those of one group, sorted and each once; false without memory. */
static bool list_addresses(const struct registry *registry, const struct strview *group,
                           struct names *out)
{
    const struct table *const tables[] = {&registry->workers, &registry->processes};
    *out = (struct names){0};
    out->items = calloc(tables[0]->count + tables[1]->count + 1, sizeof *out->items);
    if (!out->items)
        return false;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (size_t b = 0; b < tables[t]->bucket_count; b++)
            for (const struct table_entry *it = tables[t]->buckets[b]; it; it = it->next) {
                struct strview address = {it->key, it->key_len};
                if (is_wanted(address, group) && !(t && table_find(tables[0], address)))
                    out->items[out->count++] = address;
            }
    qsort(out->items, out->count, sizeof *out->items, by_address);
    return true;
}

static bool get_workers(struct request *request)
{
    struct strview group;
    struct names names;
    if (!request_text(request, 0, "the name", &group) || !group_name_check(group, request->diag))
        return false;
    if (!list_addresses(request->registry, &group, &names)) {
        diag_nomem(request->diag);
        return false;
    }
    json_open_array(&request->answer);
    for (size_t i = 0; i < names.count; i++)
        worker_put_info(&request->answer, request->registry, names.items[i]);
    json_close(&request->answer);
    free(names.items);
    return true;
}

static bool get_group_names(struct request *request)
{
    struct names names;
    if (!list_addresses(request->registry, NULL, &names)) {
        diag_nomem(request->diag);
        return false;
    }
    for (size_t i = 0; i < names.count; i++)
        names.items[i] = root_of(names.items[i]);
    qsort(names.items, names.count, sizeof *names.items, by_address);
    json_open_array(&request->answer);
    for (size_t i = 0; i < names.count; i++)
        if (i == 0 || !sv_equal(names.items[i], names.items[i - 1]))
            json_put_view(&request->answer, names.items[i]);
    json_close(&request->answer);
    free(names.items);
    return true;
}

const struct call process_calls[] = {
    {"WorkerManager.add_processes", 1, add_processes},
    {"WorkerManager.set_process_state", 2, set_process_state},
    {"WorkerManager.get_workers", 1, get_workers},
    {"WorkerManager.get_group_names", 0, get_group_names},
    {NULL, 0, NULL},
};
