/* lease_file.c - writes and reads the file of one holder. Pure text. The reader accepts only what the writer
 * writes: a half-understood file could let two runs lease the same port. */
#include "port/lease_file.h"

#include "base/number.h"

void lease_file_start(struct text *text, const struct lease_holder *holder)
{
    text_printf(text, "roost ports 1\nrun %s\npid %d\n", holder->owner[0] ? holder->owner : "-",
                holder->pid);
}

void lease_file_block(struct text *text, int32_t first, int32_t count)
{
    text_printf(text, "ports %d %d\n", first, count);
}

void lease_file_end(struct text *text)
{
    text_puts(text, "end\n");
}

/* Takes a line off the text; false without one. */
static bool next_line(struct strview *text, struct strview *out)
{
    size_t end = sv_find(*text, '\n', 0);
    if (end == text->len)
        return false;
    *out = sv_sub(*text, 0, end);
    *text = sv_sub(*text, end + 1, text->len);
    return true;
}

/* Digits alone: no sign, blanks or leading zero, which number_parse would take. */
static bool read_number(struct strview text, int64_t max, int32_t *out)
{
    int64_t value;
    if (text.len == 0 || text.at[0] < '1' || text.at[0] > '9' || text.at[text.len - 1] == ' ' ||
        text.at[text.len - 1] == '\t' || number_parse(text, max, &value) != NUMBER_OK)
        return false;
    *out = (int32_t)value;
    return true;
}

static bool read_block(struct strview line, uint16_t mark, struct lease_holder *out,
                       uint16_t *holder_of_port)
{
    int32_t first, count;
    if (!sv_starts(line, "ports "))
        return false;
    line = sv_sub(line, 6, line.len);
    size_t gap = sv_find(line, ' ', 0);
    if (gap == line.len || !read_number(sv_sub(line, 0, gap), PORT_MAX, &first) ||
        !read_number(sv_sub(line, gap + 1, line.len), PORT_COUNT - first, &count))
        return false;
    for (int32_t port = first; port < first + count; port++) {
        if (holder_of_port[port] == mark)
            return false; /* twice in one file */
        holder_of_port[port] = mark;
    }
    out->port_count += count;
    return true;
}

static bool read_owner(struct strview line, struct lease_holder *out)
{
    if (!sv_starts(line, "run "))
        return false;
    struct strview owner = sv_sub(line, 4, line.len);
    if (sv_is(owner, "-"))
        return true;
    if (!is_name(owner) || owner.len >= sizeof out->owner)
        return false;
    memcpy(out->owner, owner.at, owner.len);
    out->owner[owner.len] = '\0';
    return true;
}

bool lease_file_read(struct strview text, uint16_t mark, struct lease_holder *out,
                     uint16_t *holder_of_port)
{
    struct strview line;
    *out = (struct lease_holder){.pid = -1};
    if (!next_line(&text, &line) || !sv_is(line, "roost ports 1") || !next_line(&text, &line) ||
        !read_owner(line, out) || !next_line(&text, &line) || !sv_starts(line, "pid ") ||
        !read_number(sv_sub(line, 4, line.len), INT32_MAX, &out->pid))
        return false;
    while (next_line(&text, &line)) {
        if (sv_is(line, "end"))
            return text.len == 0;
        if (!read_block(line, mark, out, holder_of_port))
            return false;
    }
    return false;
}
