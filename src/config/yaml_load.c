/* yaml_load.c - libyaml events into nodes.
 *
 * Limits are checked as events arrive, before anything is built from them: depth (libyaml itself is
 * quadratic in it), nodes, scalar length, anchors, and the number of nodes that aliases stand for.
 * Invariant: a container's `weight` counts every node a walk through it would meet. */
#include "config/yaml_load.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"
#include "base/utf8.h"
#include "config/yaml_mapping.h"

enum { ANCHORS_MAX = 1024 };

struct anchor {
    struct strview name;
    struct node *node;
};

/* A container that is being read: its children are scratch[first..]. */
struct frame {
    struct node *node;
    size_t first;
};

struct loader {
    struct arena *arena;
    const struct source *source;
    struct diag *diag;
    int32_t line, column; /* of the first byte */
    struct frame frames[TREE_DEPTH_MAX];
    int depth;
    struct node **scratch; /* children of all open containers; never NULL */
    size_t scratch_len, scratch_room;
    struct anchor *anchors;
    size_t anchor_count;
    uint32_t node_count;
    struct node *root;
};

static struct place mark_place(const struct loader *loader, yaml_mark_t mark)
{
    int32_t line = (int32_t)mark.line, column = (int32_t)mark.column;
    return (struct place){.source = loader->source,
                          .line = loader->line + line,
                          .column = line == 0 ? loader->column + column : column + 1,
                          .length = 1};
}

static struct node *add_node(struct loader *loader, enum node_kind kind, const yaml_event_t *event)
{
    struct place at = mark_place(loader, event->start_mark);
    if (++loader->node_count > TREE_NODES_MAX) {
        diag_error(loader->diag, ROOST_ERR_LIMIT, at, "more than %d values in one file",
                   TREE_NODES_MAX);
        diag_hint(loader->diag, "move what roost does not read into another file");
        return NULL;
    }
    struct node *node = arena_zeroed(loader->arena, struct node, 1);
    if (!node) {
        diag_nomem(loader->diag);
        return NULL;
    }
    node->kind = kind;
    node->source = at.source;
    node->line = at.line;
    node->column = at.column;
    node->weight = 1;
    if (loader->depth > 0)
        node->parent = loader->frames[loader->depth - 1].node;
    return node;
}

/* Gives the node to the container that is open, or makes it the root. */
static bool attach(struct loader *loader, struct node *node, struct place at)
{
    if (loader->depth == 0) {
        loader->root = node;
        return true;
    }
    struct node *parent = loader->frames[loader->depth - 1].node;
    assert(parent);
    parent->weight += node->weight;
    if (parent->weight > TREE_NODES_MAX) {
        diag_error(loader->diag, ROOST_ERR_LIMIT, at,
                   "aliases make this stand for more than %d values", TREE_NODES_MAX);
        diag_hint(loader->diag, "use fewer aliases: each counts with all that it stands for");
        return false;
    }
    if (loader->scratch_len == loader->scratch_room) {
        size_t room = loader->scratch_room * 2;
        struct node **scratch = realloc(loader->scratch, room * sizeof *scratch);
        if (!scratch) {
            diag_nomem(loader->diag);
            return false;
        }
        loader->scratch = scratch;
        loader->scratch_room = room;
    }
    assert(loader->scratch);
    loader->scratch[loader->scratch_len++] = node;
    return true;
}

static bool remember_anchor(struct loader *loader, const yaml_char_t *name, struct node *node)
{
    if (!name)
        return true;
    if (!loader->anchors)
        loader->anchors = calloc(ANCHORS_MAX, sizeof *loader->anchors);
    char *copy = arena_copy(loader->arena, sv_from((const char *)name));
    if (!loader->anchors || !copy) {
        diag_nomem(loader->diag);
        return false;
    }
    if (loader->anchor_count == ANCHORS_MAX) {
        diag_error(loader->diag, ROOST_ERR_LIMIT, node_place(node), "more than %d anchors",
                   ANCHORS_MAX);
        diag_hint(loader->diag, "write some values out instead of naming them with '&'");
        return false;
    }
    loader->anchors[loader->anchor_count++] = (struct anchor){sv_from(copy), node};
    return true;
}

static bool refuse_tag(struct loader *loader, const yaml_event_t *event, const yaml_char_t *tag)
{
    if (!tag)
        return true;
    diag_error(loader->diag, ROOST_ERR_SYNTAX, mark_place(loader, event->start_mark),
               "tag '%s' is not allowed", quote(sv_from((const char *)tag)).text);
    diag_hint(loader->diag, "leave the tag out: roost reads the text as it is written");
    return false;
}

static bool on_scalar(struct loader *loader, const yaml_event_t *event)
{
    struct node *node = add_node(loader, NODE_SCALAR, event);
    if (!node || !refuse_tag(loader, event, event->data.scalar.tag))
        return false;
    if (event->data.scalar.length > TREE_SCALAR_MAX) {
        diag_error(loader->diag, ROOST_ERR_LIMIT, mark_place(loader, event->start_mark),
                   "a text of %zu bytes; at most %d are read", event->data.scalar.length,
                   TREE_SCALAR_MAX);
        diag_hint(loader->diag, "shorten it, or keep it in a file of its own");
        return false;
    }
    struct strview text = {(const char *)event->data.scalar.value, event->data.scalar.length};
    const char *copy = arena_copy(loader->arena, text);
    if (!copy) {
        diag_nomem(loader->diag);
        return false;
    }
    node->text = (struct strview){copy, text.len};
    node->is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->is_quoted = event->data.scalar.style == YAML_SINGLE_QUOTED_SCALAR_STYLE ||
                      event->data.scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    /* To libyaml an anchored scalar starts at its anchor; errors are about the text behind it. */
    if (event->data.scalar.anchor && event->start_mark.line == event->end_mark.line) {
        int32_t width = node->is_plain ? 0 : 2;
        for (size_t i = 0; i < text.len; i++)
            width += ((unsigned char)text.at[i] & 0xc0) != 0x80;
        int32_t written = (int32_t)(event->end_mark.column - event->start_mark.column);
        node->column += written > width ? written - width : 0;
    }
    return remember_anchor(loader, event->data.scalar.anchor, node) &&
           attach(loader, node, node_place(node));
}

static bool on_alias(struct loader *loader, const yaml_event_t *event)
{
    struct strview name = sv_from((const char *)event->data.alias.anchor);
    struct place at = mark_place(loader, event->start_mark);
    for (size_t i = loader->anchor_count; i-- > 0;) {
        if (!sv_equal(loader->anchors[i].name, name))
            continue;
        struct node *node = loader->anchors[i].node;
        for (int d = 0; d < loader->depth; d++) {
            if (loader->frames[d].node == node) {
                diag_error(loader->diag, ROOST_ERR_SYNTAX, at,
                           "alias '*%s' stands inside the value it names", quote(name).text);
                diag_hint(loader->diag, "write the value out here, or put '&%s' before another one",
                          quote(name).text);
                return false;
            }
        }
        return attach(loader, node, at);
    }
    diag_error(loader->diag, ROOST_ERR_SYNTAX, at, "alias '*%s' has no anchor before it",
               quote(name).text);
    diag_hint(loader->diag, "write '&%s' before the value it stands for", quote(name).text);
    return false;
}

static bool on_start(struct loader *loader, const yaml_event_t *event, enum node_kind kind,
                     const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (loader->depth == TREE_DEPTH_MAX) {
        diag_error(loader->diag, ROOST_ERR_LIMIT, mark_place(loader, event->start_mark),
                   "nested more than %d deep", TREE_DEPTH_MAX);
        diag_hint(loader->diag, "take some of the levels out; a '[' or '{' too many makes one");
        return false;
    }
    struct node *node = add_node(loader, kind, event);
    if (!node || !refuse_tag(loader, event, tag) || !remember_anchor(loader, anchor, node))
        return false;
    loader->frames[loader->depth++] = (struct frame){node, loader->scratch_len};
    return true;
}

static bool on_end(struct loader *loader)
{
    struct frame *frame = &loader->frames[loader->depth - 1];
    struct node *node = frame->node;
    assert(loader->scratch);
    struct node **children = loader->scratch + frame->first;
    size_t count = loader->scratch_len - frame->first;
    if (node->kind == NODE_SEQUENCE) {
        node->items = arena_array(loader->arena, struct node *, count);
        if (!node->items) {
            diag_nomem(loader->diag);
            return false;
        }
        if (count)
            memcpy(node->items, children, count * sizeof *node->items);
        node->count = (int32_t)count;
    } else if (!yaml_close_mapping(loader->arena, node, children, count / 2, loader->diag)) {
        return false;
    }
    loader->scratch_len = frame->first;
    loader->depth--;
    /* Merged pairs count like written ones, so that merges of merges stay bounded. */
    return attach(loader, node, node_place(node));
}

/* Handles one event; false stops the reading. *is_done turns true at the end of the stream. */
static bool on_event(struct loader *loader, const yaml_event_t *event, bool *is_done)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT: return on_scalar(loader, event);
    case YAML_ALIAS_EVENT: return on_alias(loader, event);
    case YAML_SEQUENCE_START_EVENT:
        return on_start(loader, event, NODE_SEQUENCE, event->data.sequence_start.anchor,
                        event->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return on_start(loader, event, NODE_MAPPING, event->data.mapping_start.anchor,
                        event->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: return on_end(loader);
    case YAML_DOCUMENT_START_EVENT:
        if (!loader->root)
            return true;
        diag_error(loader->diag, ROOST_ERR_SYNTAX, mark_place(loader, event->start_mark),
                   "a second document starts here; a config is one document");
        diag_hint(loader->diag, "remove the '---' line, or put what follows it into another file");
        return false;
    case YAML_STREAM_END_EVENT: *is_done = true; return true;
    default: return true;
    }
}

static void say_parser_error(struct loader *loader, const yaml_parser_t *parser,
                             struct strview text)
{
    if (parser->error == YAML_MEMORY_ERROR) {
        diag_nomem(loader->diag);
        return;
    }
    const char *problem = parser->problem ? parser->problem : "cannot be read as YAML";
    struct place at = mark_place(loader, parser->problem_mark);
    struct place end =
        source_place(loader->source, (size_t)(text.at + text.len - loader->source->text.at), 1);
    if (at.line > end.line) /* behind a text without a last line end libyaml starts one more line */
        at = end;
    if (parser->context)
        diag_error(loader->diag, ROOST_ERR_SYNTAX, at, "%s, %s", problem, parser->context);
    else
        diag_error(loader->diag, ROOST_ERR_SYNTAX, at, "%s", problem);
    struct strview line = source_line(loader->source, at.line);
    if (memchr(line.at, '\t', line.len))
        diag_hint(loader->diag, "YAML does not take tabs for indentation; use spaces");
    else if (parser->context && strstr(parser->context, "quoted"))
        diag_hint(loader->diag, "the quotes open at line %d",
                  (int)loader->line + (int)parser->context_mark.line);
    else if (parser->context &&
             (strstr(parser->context, "mapping") || strstr(parser->context, "simple key")))
        diag_hint(loader->diag, "check the indentation and the ':' around line %d",
                  (int)loader->line + (int)parser->context_mark.line);
    else if (parser->context && strstr(parser->context, "flow sequence"))
        diag_hint(loader->diag, "put ',' between the entries, and close the '[' of line %d",
                  (int)loader->line + (int)parser->context_mark.line);
    else if (strstr(problem, "cannot start any token") ||
             (parser->context &&
              (strstr(parser->context, "alias") || strstr(parser->context, "anchor"))))
        diag_hint(loader->diag, "put the value in quotes");
    else
        diag_hint(loader->diag, "check the indentation, quotes and brackets of this line and the "
                                "one before");
}

/* What libyaml would refuse with a byte offset only is refused here with a line and a column. */
static bool check_characters(struct loader *loader, struct strview text)
{
    const char *end = text.at + text.len;
    for (const char *at = text.at; at < end;) {
        unsigned char c = (unsigned char)*at;
        if ((c >= 0x20 && c < 0x7f) || c == '\n' || c == '\t' || c == '\r') {
            at++;
            continue;
        }
        uint32_t code = 0;
        size_t len = utf8_next(at, end, &code);
        bool is_printable = len > 1 && (code == 0x85 || code >= 0xa0) && code != 0xfeff &&
                            code != 0xfffe && code != 0xffff;
        if (is_printable) {
            at += len;
            continue;
        }
        size_t offset = (size_t)(at - loader->source->text.at);
        struct place place = source_place(loader->source, offset, 1);
        if (len == 0)
            diag_error(loader->diag, ROOST_ERR_SYNTAX, place, "byte 0x%02x is not UTF-8", c);
        else
            diag_error(loader->diag, ROOST_ERR_SYNTAX, place,
                       "character U+%04X is not allowed in YAML", (unsigned)code);
        if (c == 0xff || c == 0xfe)
            diag_hint(loader->diag, "the file may be UTF-16; save it as UTF-8");
        else if (len == 0)
            diag_hint(loader->diag, "save the file as UTF-8");
        else
            diag_hint(loader->diag, "remove this character");
        return false;
    }
    return true;
}

/* libyaml compares each %TAG with all before it; as tags are refused anyway, a few are enough. */
static bool check_directives(struct loader *loader, struct strview text)
{
    enum { DIRECTIVES_MAX = 64 };
    static const char word[] = "%TAG";
    const char *at = text.at, *end = text.at + text.len;
    for (int count = 0; (at = memmem(at, (size_t)(end - at), word, strlen(word))); at++) {
        if (++count <= DIRECTIVES_MAX)
            continue;
        size_t offset = (size_t)(at - loader->source->text.at);
        diag_error(loader->diag, ROOST_ERR_LIMIT, source_place(loader->source, offset, 4),
                   "more than %d %%TAG directives", DIRECTIVES_MAX);
        diag_hint(loader->diag, "remove the %%TAG lines: roost reads no tags");
        return false;
    }
    return true;
}

static bool read_events(struct loader *loader, struct strview text)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        diag_nomem(loader->diag);
        return false;
    }
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.at, text.len);
    bool is_done = false, is_good = true;
    while (!is_done && is_good) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            say_parser_error(loader, &parser, text);
            is_good = false;
            break;
        }
        is_good = on_event(loader, &event, &is_done);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return is_good;
}

struct node *yaml_load(struct arena *arena, const struct source *source, struct strview text,
                       int32_t line, int32_t column, struct diag *diag)
{
    enum { FIRST_ROOM = 64 };
    struct loader loader = {
        .arena = arena, .source = source, .diag = diag, .line = line, .column = column};
    if (sv_starts(text, "\xef\xbb\xbf"))
        text = sv_sub(text, 3, text.len);
    loader.scratch = calloc(FIRST_ROOM, sizeof *loader.scratch);
    loader.scratch_room = FIRST_ROOM;
    if (!loader.scratch) {
        diag_nomem(diag);
        return NULL;
    }
    bool is_good = check_characters(&loader, text) && check_directives(&loader, text) &&
                   read_events(&loader, text);
    if (is_good && !loader.root) {
        diag_error(diag, ROOST_ERR_SYNTAX,
                   (struct place){.source = source, .line = line, .column = column},
                   "there is nothing in it");
        diag_hint(diag, "write 'key: value' lines; a config starts with 'cluster:'");
    }
    free(loader.scratch);
    free(loader.anchors);
    return is_good ? loader.root : NULL;
}

struct node *yaml_load_named(struct arena *arena, struct source *source, struct place at,
                             size_t limit, const char *cure, struct diag *diag)
{
    struct roost_error found;
    struct diag quiet = diag_start(NULL, &found);
    char how[ROOST_ERROR_HINT_MAX];
    if (!file_read_named(arena, source->name, at, limit, diag, &source->text))
        return NULL;
    struct node *root = yaml_load(arena, source, source->text, 1, 1, &quiet);
    if (root && root->kind == NODE_MAPPING)
        return root;
    if (root)
        found = (struct roost_error){
            .code = ROOST_ERR_SCHEMA, .line = root->line, .column = root->column};
    snprintf(how, sizeof how, "'roost check %s' shows the line", quote(sv_from(source->name)).text);
    file_refuse_content(source->name, &found, root ? "a mapping" : "YAML that roost reads",
                        root ? cure : how, diag);
    return NULL;
}
