/* line_reader.c - finds lines, and the newest state of each line. */
#include "logs/line_reader.h"

#include <stdio.h>
#include <string.h>

#include "base/palette.h"

enum {
    AFTER_CR =
        1, /* a cut line was ended by a carriage return: a newline behind it ends the same line */
    IN_CUT = 2, /* the line was cut: the rest of it is not shown */
    IN_BAR = 4, /* this line has had a carriage return */
    /* A state that is older than so many bytes of blanks is forgotten, so that bytes to keep are few. */
    BLANK_MAX = 2 * LOG_LINE_MAX,
};

static const char CUT_MARK[] = " [... cut at 64 KiB]";

size_t line_label(char out[LINE_LABEL_MAX], const char *component, int32_t rank, bool has_color)
{
    int len = has_color ? snprintf(out, LINE_LABEL_MAX, "\x1b[38;5;%dm[%.63s/%d]" FILTER_RESET " ",
                                   palette_of_name(component), component, rank)
                        : snprintf(out, LINE_LABEL_MAX, "[%.63s/%d] ", component, rank);
    return (size_t)len;
}

static const char *find_end_of_line(const char *at, const char *end)
{
    while (at < end && *at != '\n' && *at != '\r')
        at++;
    return at;
}

/* What comes before a line: the rest of a cut line, the newline that belongs to its carriage return,
 * carriage returns with nothing before them. False when nothing is left. */
static bool skip_to_line(struct line_reader *it)
{
    while (it->at < it->end) {
        if (it->memo & IN_CUT) {
            it->at = find_end_of_line(it->at, it->end);
            if (it->at == it->end)
                return false;
            it->memo = *it->at++ == '\r' ? AFTER_CR : 0;
        } else if ((it->memo & AFTER_CR) && *it->at == '\n') {
            it->memo = 0;
            it->at++;
        } else if (*it->at == '\r') {
            it->memo |= IN_BAR;
            it->at++;
        } else {
            it->memo &= ~(uint32_t)AFTER_CR;
            return true;
        }
    }
    return false;
}

/* A state that is too long: its start, without a character or a sequence cut in two. */
static enum line_kind read_cut(struct line_reader *it, char **out)
{
    const char *limit = it->at + LOG_LINE_MAX;
    (void)filter_line(it->at, filter_whole(it->at, limit), it->has_color, out);
    memcpy(*out, CUT_MARK, sizeof CUT_MARK - 1);
    *out += sizeof CUT_MARK - 1;
    it->memo = IN_CUT;
    it->at = limit;
    return LINE_WHOLE;
}

static bool is_blank(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at == end;
}

struct state {
    const char *at, *end;
};

/* Whether the text [at, end) takes the place of the state before it. Blanks only wipe a bar. True stays
 * true when the text grows, so a text that is not complete can be asked for, too. */
static bool replaces(const struct state *state, const char *at, const char *end)
{
    if (end - state->at > BLANK_MAX)
        return true;
    return end > at && (!is_blank(at, end) || is_blank(state->at, state->end));
}

struct strview line_newest_state(const char *at, const char *end)
{
    const char *stop = find_end_of_line(at, end);
    struct state state = {at, stop};
    while (stop < end) {
        at = stop + 1;
        stop = find_end_of_line(at, end);
        if (replaces(&state, at, stop))
            state = (struct state){at, stop};
    }
    return (struct strview){state.at, (size_t)(state.end - state.at)};
}

/* A line whose first state ends at `stop` with a carriage return. */
static enum line_kind read_bar(struct line_reader *it, const char *stop, char **out)
{
    struct state state = {it->at, stop};
    for (;;) {
        const char *at = stop + 1;
        stop = find_end_of_line(at, it->end);
        if (stop - at > LOG_LINE_MAX) {
            it->at = at;
            return read_cut(it, out);
        }
        if (replaces(&state, at, stop))
            state = (struct state){at, stop};
        if (stop == it->end || *stop == '\n')
            break;
    }
    bool is_whole = stop < it->end || it->is_end;
    bool is_gone = stop == it->end && state.at == state.end; /* forgotten, and nothing came since */
    (void)filter_line(state.at, state.end, it->has_color, out);
    it->at = stop < it->end ? stop + 1 : it->is_end ? it->end : state.at;
    it->memo = is_whole ? 0 : IN_BAR;
    return is_gone ? LINE_NONE : is_whole ? LINE_WHOLE : LINE_OPEN;
}

enum line_kind line_read(struct line_reader *it, char **out)
{
    if (!skip_to_line(it))
        return LINE_NONE;
    char *start = *out;
    size_t left = (size_t)(it->end - it->at);
    const char *limit = left > LOG_LINE_MAX ? it->at + LOG_LINE_MAX : it->end;
    const char *stop = filter_line(it->at, limit, it->has_color, out);
    if (stop < it->end && *stop == '\n') {
        it->memo = 0;
        it->at = stop + 1;
        return LINE_WHOLE;
    }
    bool is_open = stop == it->end && !it->is_end;
    if (is_open && (it->memo & IN_BAR))
        return LINE_OPEN;
    if (stop == it->end) {
        it->at = is_open ? it->at : it->end;
        it->memo = is_open ? it->memo : 0;
        *out = is_open ? start : *out;
        return is_open ? LINE_NONE : LINE_WHOLE;
    }
    *out = start;
    return *stop == '\r' ? read_bar(it, stop, out) : read_cut(it, out);
}
