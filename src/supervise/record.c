/* record.c - the text of exit records. The supervisor writes them as lives end (records.c). Other
 * processes read them only to learn which were written before a supervisor was killed. */
#include "supervise/record.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "json/json_writer.h"

struct record_name record_name(const char *component, const struct roost_event *event)
{
    struct record_name name = {.rank = event->rank, .life = event->life, .pid = event->pid};
    snprintf(name.component, sizeof name.component, "%s", component);
    return name;
}

int record_compare(const struct record_name *left, const struct record_name *right)
{
    int order = strcmp(left->component, right->component);
    if (order != 0)
        return order;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    if (left->life != right->life)
        return left->life < right->life ? -1 : 1;
    return left->pid < right->pid ? -1 : left->pid > right->pid;
}

/* The line begins with the name, of which record_find() and record_read_name() know the bytes. */
static struct json_writer put_name(struct text *out, const char *component,
                                   const struct roost_event *event)
{
    struct json_writer json = json_writer_on(out, JSON_COMPACT);
    json_open_object(&json);
    json_put_string(json_key(&json, "component"), component);
    json_put_int(json_key(&json, "rank"), event->rank);
    json_put_int(json_key(&json, "life"), event->life);
    json_put_int(json_key(&json, "pid"), event->pid);
    return json;
}

void record_put_life(struct text *out, const char *component, const struct roost_event *event)
{
    bool is_code = event->exit_code >= 0, is_signal = !is_code && event->signal > 0;
    struct json_writer json = put_name(out, component, event);
    json_put_count(json_key(&json, "code"), is_code ? event->exit_code : -1);
    json_put_count(json_key(&json, "signal"), is_signal ? event->signal : -1);
    json_put_bool(json_key(&json, "core"), event->has_core);
    json_put_string(json_key(&json, "reason"), roost_end_word(event->end));
    json_put_seconds(json_key(&json, "started"), event->started_at);
    json_put_seconds(json_key(&json, "ended"), event->ended_at);
    json_close(&json);
    text_char(out, '\n');
}

/* The last record, and no other, begins so. */
static const char end_start[] = "{\"end\":true,";

static struct json_writer put_end(struct text *out, bool has_failed)
{
    struct json_writer json = json_writer_on(out, JSON_COMPACT);
    json_open_object(&json);
    json_put_bool(json_key(&json, "end"), true);
    json_put_bool(json_key(&json, "failed"), has_failed);
    return json;
}

int record_status(const struct roost_event *end)
{
    if (end->code != ROOST_OK)
        return roost_code_exit(end->code);
    if (end->signal > 0)
        return 128 + end->signal;
    return end->exit_code < 0 || end->exit_code > 127 ? 1 : end->exit_code;
}

void record_put_end(struct text *out, bool has_failed, const struct roost_event *end)
{
    struct json_writer json = put_end(out, has_failed);
    if (end->component < 0 && end->signal > 0)
        json_put_int(json_key(&json, "signal"), end->signal);
    json_put_int(json_key(&json, "status"), record_status(end));
    json_put_seconds(json_key(&json, "ended"), end->ended_at);
    json_close(&json);
    text_char(out, '\n');
}

void record_put_crash(struct text *out)
{
    struct json_writer json = put_end(out, true);
    json_put_bool(json_key(&json, "crashed"), true);
    json_close(&json);
    text_char(out, '\n');
}

bool record_is_end(struct strview line)
{
    return line.len >= sizeof end_start - 1 &&
           memcmp(line.at, end_start, sizeof end_start - 1) == 0;
}

static bool read_reason(const char *word, enum roost_end *out)
{
    for (enum roost_end end = ROOST_END_EXITED; end <= ROOST_END_LOST; end++)
        if (strcmp(word, roost_end_word(end)) == 0) {
            *out = end;
            return true;
        }
    return false;
}

/* The rest of a record, after its name. */
static bool read_rest(const char *rest, struct roost_event *event)
{
    char digits[12], core[8], reason[32];
    int64_t value;
    bool is_code =
        sscanf(rest, ",\"code\":%11[0-9],\"signal\":null,\"core\":%7[a-z],\"reason\":\"%31[a-z-]\"",
               digits, core, reason) == 3;
    if (!is_code &&
        sscanf(rest, ",\"code\":null,\"signal\":%11[0-9],\"core\":%7[a-z],\"reason\":\"%31[a-z-]\"",
               digits, core, reason) != 3)
        return false;
    if (number_parse(sv_from(digits), INT32_MAX, &value) != NUMBER_OK ||
        !read_reason(reason, &event->end))
        return false;
    event->exit_code = is_code ? (int32_t)value : -1;
    event->signal = is_code ? 0 : (int32_t)value;
    event->has_core = strcmp(core, "true") == 0;
    return true;
}

bool record_find(struct strview records, const char *component, struct roost_event *event)
{
    struct text name = TEXT_INIT;
    char rest[128];
    (void)put_name(&name, component, event);
    text_char(&name, ','); /* in front of what follows the name */
    const char *at = name.has_failed || records.len == 0
                         ? NULL
                         : memmem(records.at, records.len, name.bytes, name.len);
    if (at) {
        at += name.len - 1;
        size_t left = (size_t)(records.at + records.len - at);
        size_t len = left < sizeof rest - 1 ? left : sizeof rest - 1;
        memcpy(rest, at, len);
        rest[len] = '\0';
    }
    text_release(&name);
    return at && read_rest(rest, event);
}

bool record_read_outcome(struct strview line, struct record_name *out, enum record_outcome *how)
{
    char rest[128];
    struct roost_event event;
    const char *at = line.len ? memmem(line.at, line.len, ",\"code\":", 8) : NULL;
    size_t len = at ? (size_t)(line.at + line.len - at) : 0;
    len = len < sizeof rest - 1 ? len : sizeof rest - 1;
    if (len > 0)
        memcpy(rest, at, len);
    rest[len] = '\0';
    if (!at || !record_read_name(line, out))
        return false;
    if (strstr(rest, "\"reason\":\"lost\"")) { /* with neither a code nor a signal */
        *how = RECORD_LOST;
        return true;
    }
    if (!read_rest(rest, &event))
        return false;
    *how = event.end == ROOST_END_EXITED   ? event.exit_code == 0 ? RECORD_DONE : RECORD_FAILED
           : event.end == ROOST_END_KILLED ? RECORD_KILLED
                                           : RECORD_FAILED;
    return true;
}

bool record_read_name(struct strview line, struct record_name *out)
{
    char text[128], rank[12], life[12], pid[12];
    int64_t numbers[3];
    size_t len = line.len < sizeof text - 1 ? line.len : sizeof text - 1;
    struct record_name name;
    memcpy(text, line.at, len);
    text[len] = '\0';
    if (sscanf(text,
               "{\"component\":\"%63[^\"]\",\"rank\":%11[0-9],\"life\":%11[0-9],\"pid\":%11[0-9],",
               name.component, rank, life, pid) != 4)
        return false;
    if (number_parse(sv_from(rank), INT32_MAX, &numbers[0]) != NUMBER_OK ||
        number_parse(sv_from(life), INT32_MAX, &numbers[1]) != NUMBER_OK ||
        number_parse(sv_from(pid), INT32_MAX, &numbers[2]) != NUMBER_OK)
        return false;
    name.rank = (int32_t)numbers[0];
    name.life = (int32_t)numbers[1];
    name.pid = (int32_t)numbers[2];
    *out = name;
    return true;
}
