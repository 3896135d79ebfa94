/* completion.c - the words that all completion scripts share: which values an argument takes. */
#include "cli/completion.h"

#include <string.h>

const struct argument_kind argument_kinds[] = {
    {"CONFIG", "", COMPLETE_CONFIGS},
    {"ENGINE", "local ray", COMPLETE_NOTHING},
    {"MODE", "hybrid model-parallel", COMPLETE_NOTHING},
    {"RUN", "", COMPLETE_RUNS},
    {"SHELL", "bash zsh fish", COMPLETE_NOTHING},
    {"WHEN", "auto always never", COMPLETE_NOTHING},
    {"X", "local", COMPLETE_FILES},
    {NULL, "", COMPLETE_NOTHING},
};

const struct argument_kind *find_argument_kind(struct strview name)
{
    const struct argument_kind *it = argument_kinds;
    while (it->name && !sv_is(name, it->name))
        it++;
    return it;
}

const struct argument_kind *command_operand_kind(const struct command *command)
{
    const struct argument_kind *kind = find_argument_kind(sv_from(""));
    for (const char *at = command->usage; *at && !kind->name;) {
        at += strspn(at, "[] ");
        size_t len = strcspn(at, "[] ");
        kind = find_argument_kind((struct strview){at, len});
        at += len;
    }
    return kind;
}

void put_escaped(struct text *out, const char *text, const char *specials, const char *quote)
{
    for (; *text; text++) {
        if (*text == '\'') {
            text_puts(out, quote);
            continue;
        }
        if (strchr(specials, *text))
            text_char(out, '\\');
        text_char(out, *text);
    }
}
