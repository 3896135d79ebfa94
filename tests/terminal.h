/* terminal.h - a tiny terminal for tests, written from ECMA-48 and not from the filter it judges.
 *
 * It keeps a grid of cells and counts what a line of a worker must never do: `moves` (the cursor goes
 * anywhere but to the right and to the next line), `controls` (anything else that a terminal obeys: titles,
 * modes, other sequences, 8-bit controls) and `leaks` (a line that ends with a colour or font in force). */
#ifndef TESTS_TERMINAL_H
#define TESTS_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TERMINAL_ROWS = 64, TERMINAL_COLUMNS = 200 };

struct terminal {
    char cells[TERMINAL_ROWS][TERMINAL_COLUMNS + 1]; /* what is not ASCII is '?' */
    int row, column;
    int moves, controls, leaks;
    bool is_styled; /* a reset (SGR 0) undoes it */
    int font;       /* a reset does not */
    enum { TERMINAL_TEXT, TERMINAL_ESCAPE, TERMINAL_CSI, TERMINAL_STRING } state;
    char words[256]; /* of a CSI sequence */
    size_t word_count;
};

static inline void terminal_put(struct terminal *it, char c)
{
    if (it->column < TERMINAL_COLUMNS) {
        for (int i = (int)strlen(it->cells[it->row]); i < it->column; i++)
            it->cells[it->row][i] = ' ';
        it->cells[it->row][it->column] = c;
    }
    it->column++;
}

static inline void terminal_newline(struct terminal *it)
{
    it->leaks += it->is_styled || it->font != 0;
    it->column = 0;
    if (it->row + 1 < TERMINAL_ROWS) {
        it->row++;
        return;
    }
    memmove(it->cells[0], it->cells[1], sizeof it->cells - sizeof it->cells[0]);
    memset(it->cells[TERMINAL_ROWS - 1], 0, sizeof it->cells[0]);
}

/* Select graphic rendition: its numbers, as xterm and the Linux console read them. */
static inline void terminal_sgr(struct terminal *it)
{
    const char *at = it->words;
    int skip = 0;
    bool is_kind = false;
    do {
        long number = strtol(at, NULL, 10);
        if (is_kind) {
            skip = number == 5 ? 1 : number == 2 ? 3 : 0;
            if (number == 2 && *(at + strcspn(at, ";:")) == ':')
                skip = 4;
            is_kind = false;
        } else if (skip > 0) {
            skip--;
        } else if (number == 0) {
            it->is_styled = false;
        } else if (number >= 10 && number <= 20) {
            it->font = (int)number - 10;
        } else {
            it->is_styled = true;
            is_kind = number == 38 || number == 48 || number == 58;
        }
        it->controls += number > 255; /* more than a byte may mean another number */
        at += strcspn(at, ";:");
    } while (*at++);
}

static inline void terminal_csi(struct terminal *it, char final)
{
    it->words[it->word_count] = '\0';
    it->state = TERMINAL_TEXT;
    if (final == 'm' && strspn(it->words, "0123456789;:") == it->word_count) {
        terminal_sgr(it);
    } else if (final == 'K' && it->word_count == 0) {
        it->moves++;
        it->cells[it->row][it->column < TERMINAL_COLUMNS ? it->column : TERMINAL_COLUMNS] = '\0';
        if (it->column == 0)
            memset(it->cells[it->row], 0, sizeof it->cells[0]);
    } else if (final == 'A' && it->word_count == 0) {
        it->moves++;
        it->row -= it->row > 0;
    } else {
        it->controls++;
    }
}

static inline void terminal_byte(struct terminal *it, unsigned char byte)
{
    if (byte == '\n' && it->state == TERMINAL_TEXT) {
        terminal_newline(it);
    } else if (byte == '\r') {
        it->moves++;
        it->column = 0;
    } else if (byte == 0x1b) {
        it->controls += it->state != TERMINAL_TEXT;
        it->state = TERMINAL_ESCAPE;
    } else if (byte < 0x20 && byte != '\t') {
        it->controls++;
    } else if (it->state == TERMINAL_ESCAPE) {
        it->state = byte == '[' ? TERMINAL_CSI : TERMINAL_TEXT;
        it->controls += byte != '[';
        it->word_count = 0;
    } else if (it->state == TERMINAL_CSI && byte >= 0x40) {
        terminal_csi(it, (char)byte);
    } else if (it->state == TERMINAL_CSI) {
        it->controls += it->word_count + 1 >= sizeof it->words;
        if (it->word_count + 1 < sizeof it->words)
            it->words[it->word_count++] = (char)byte;
    } else if (byte == 0x7f) {
        it->controls++;
    } else {
        terminal_put(it, byte < 0x80 ? (char)byte : '?');
    }
}

/* UTF-8 as terminals read it: a lead byte and its followers. A byte of 0x80-0x9f that follows no lead byte,
 * and U+0080-U+009F, are 8-bit controls. */
static inline void terminal_write(struct terminal *it, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        size_t more = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc2 ? 1 : 0;
        if (byte >= 0x80 && more == 0)
            it->controls++;
        if (byte == 0xc2 && i + 1 < len && (unsigned char)bytes[i + 1] < 0xa0)
            it->controls++;
        terminal_byte(it, byte);
        for (; more > 0; more--) {
            if (i + 1 >= len || ((unsigned char)bytes[i + 1] & 0xc0) != 0x80) {
                it->controls++;
                break;
            }
            i++;
        }
    }
}

/* Nothing but text, colours that end with their lines, and newlines. */
static inline bool terminal_is_calm(const struct terminal *it)
{
    return it->moves == 0 && it->controls == 0 && it->leaks == 0 && it->state == TERMINAL_TEXT;
}

#endif
