/* completion_fish.c - the completion script for fish: one `complete` for every word. */
#include "cli/completion.h"

static const char helpers[] =
    "# Whether the command is one of these; without any, whether there is none yet.\n"
    "function __roost_at\n"
    "    set -l words (commandline -opc)\n"
    "    if test (count $argv) -eq 0\n"
    "        test (count $words) -eq 1\n"
    "    else\n"
    "        test (count $words) -gt 1; and contains -- $words[2] $argv\n"
    "    end\n"
    "end\n\n"
    "# The ids of runs; --all: also of those that have ended.\n"
    "function __roost_runs\n"
    "    roost ps --quiet $argv 2>/dev/null\n"
    "end\n\n"
    "complete -c roost -f\n";

static void put_help(struct text *out, const char *help)
{
    text_puts(out, " -d '");
    put_escaped(out, help, "\\", "\\'");
    text_puts(out, "'\n");
}

static void put_option(struct text *out, const struct command *command,
                       const struct cli_option *option)
{
    char letter = option_letter(command, option);
    text_printf(out, "complete -c roost -n '__roost_at %s'", command->name);
    if (letter)
        text_printf(out, " -s %c", letter);
    text_printf(out, " -l %s", option->name);
    if (option->argument) {
        const struct argument_kind *kind = find_argument_kind(sv_from(option->argument));
        bool has_files = kind->source == COMPLETE_FILES || kind->source == COMPLETE_CONFIGS;
        text_puts(out, has_files ? " -r -F" : " -x");
        if (kind->words[0])
            text_printf(out, " -a '%s'", kind->words);
    }
    put_help(out, option->help);
}

static void put_operand(struct text *out, const struct command *command)
{
    const struct argument_kind *kind = command_operand_kind(command);
    if (!kind->name)
        return;
    text_printf(out, "complete -c roost -n '__roost_at %s'", command->name);
    if (kind->source == COMPLETE_CONFIGS)
        text_puts(out, " -k -a '(__fish_complete_suffix .yaml)'\n");
    else if (kind->source == COMPLETE_RUNS)
        text_printf(out, " -a '(__roost_runs%s)'\n", command->takes_ended_runs ? " --all" : "");
    else
        text_printf(out, "%s -a '%s'\n", kind->source == COMPLETE_FILES ? " -F" : "", kind->words);
}

void completion_fish(struct text *out)
{
    text_puts(out, "# What fish completes for roost. Made by `roost completion fish`.\n\n");
    text_puts(out, helpers);
    for (const struct command *const *it = commands; *it; it++) {
        text_printf(out, "complete -c roost -n __roost_at -a %s", (*it)->name);
        put_help(out, (*it)->summary);
    }
    text_puts(out, "complete -c roost -n __roost_at -a help -d 'show the help of a command'\n"
                   "complete -c roost -n __roost_at -l version -d 'show the version'\n"
                   "complete -c roost -s h -l help -d 'show the help'\n"
                   "complete -c roost -n '__roost_at help' -a '");
    for (const struct command *const *it = commands; *it; it++)
        text_printf(out, "%s%s", it == commands ? "" : " ", (*it)->name);
    text_puts(out, "'\n");
    for (const struct command *const *it = commands; *it; it++) {
        put_operand(out, *it);
        for (const struct cli_option *option = (*it)->options; option->name; option++)
            put_option(out, *it, option);
    }
}
