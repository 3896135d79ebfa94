/* completion_bash.c - the completion script for bash: one table of words, then what reads it.
 * An entry of the table is 'WORD|help' or 'WORD ARGUMENT|help'. bash shows words only, so the help is
 * part of what is listed, and never of what is inserted. */
#include <stdio.h>

#include "cli/completion.h"

static void put_entry(struct text *out, const char *word, const char *argument, const char *help)
{
    text_printf(out, "            '%s%s%s|", word, argument ? " " : "", argument ? argument : "");
    put_escaped(out, help, "", "'\\''");
    text_puts(out, "'\n");
}

static void put_commands(struct text *out)
{
    text_puts(out, "    '')\n        options=(\n");
    for (const struct command *const *it = commands; *it; it++)
        put_entry(out, (*it)->name, NULL, (*it)->summary);
    text_puts(out, "        ) ;;\n    help)\n        operand=COMMANDS ;;\n");
}

static void put_command(struct text *out, const struct command *command)
{
    const struct argument_kind *operand = command_operand_kind(command);
    text_printf(out, "    %s)\n        operand='%s%s'\n", command->name,
                operand->name ? operand->name : "", command->takes_ended_runs ? " --all" : "");
    if (command->takes_trailing)
        text_puts(out, "        rest=COMMAND\n");
    text_puts(out, "        options=(\n");
    for (const struct cli_option *it = command->options; it->name; it++) {
        char word[64], letter[] = {'-', option_letter(command, it), '\0'};
        snprintf(word, sizeof word, "--%s", it->name);
        if (letter[1])
            put_entry(out, letter, it->argument, it->help);
        put_entry(out, word, it->argument, it->help);
    }
    put_entry(out, "--help", NULL, "show this help");
    text_puts(out, "        ) ;;\n");
}

static const char files[] =
    "        compopt -o filenames 2> /dev/null\n"
    "        mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -f -- "
    "\"$current\") ;;\n";

static const char configs[] =
    "        compopt -o filenames 2> /dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -f -X '!*.yaml' -- \"$current\"\n"
    "            compgen -f -X '!*.yml' -- \"$current\"; compgen -d -- \"$current\")\n"
    "        (( ${#COMPREPLY[@]} )) || mapfile -t COMPREPLY < <(compgen -f -- \"$current\") ;;\n";

static const char runs[] =
    "        # shellcheck disable=SC2086 # nothing, or --all\n"
    "        while read -r word; do\n"
    "            [[ $word == \"$current\"* ]] && COMPREPLY+=(\"$word\")\n"
    "        done < <(\"${COMP_WORDS[0]}\" ps --quiet ${1#RUN} 2> /dev/null) ;;\n";

static void put_kind(struct text *out, const struct argument_kind *kind)
{
    text_printf(out, "    %s)\n", kind->source == COMPLETE_RUNS ? "RUN | 'RUN --all'" : kind->name);
    if (kind->words[0])
        text_printf(out, "        _roost_words %s%s\n", kind->words,
                    kind->source == COMPLETE_NOTHING ? " ;;" : "");
    if (kind->source == COMPLETE_FILES)
        text_puts(out, files);
    else if (kind->source == COMPLETE_CONFIGS)
        text_puts(out, configs);
    else if (kind->source == COMPLETE_RUNS)
        text_puts(out, runs);
}

static const char words_of[] =
    "# Completes to those of the entries that begin as what is typed.\n"
    "_roost_words()\n"
    "{\n"
    "    local entry word line\n"
    "    local -a lines=()\n"
    "    for entry; do\n"
    "        word=${entry%%|*}\n"
    "        word=${word%% *}\n"
    "        [[ $word == \"$current\"* ]] || continue\n"
    "        COMPREPLY+=(\"$word\")\n"
    "        line=$word\n"
    "        [[ $entry != *'|'* ]] || printf -v line '%-14s  (%s)' \"$word\" \"${entry#*|}\"\n"
    "        lines+=(\"${line:0:${COLUMNS:-80} - 4}\")\n"
    "    done\n"
    "    # Where words are listed, not inserted, they come with their help.\n"
    "    case ${COMP_TYPE:-9} in\n"
    "    33 | 63 | 64) (( ${#lines[@]} < 2 )) || COMPREPLY=(\"${lines[@]}\") ;;\n"
    "    esac\n"
    "}\n\n";

static const char main_of[] =
    "_roost()\n"
    "{\n"
    "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local operand='' rest='' has_sign='' entry i\n"
    "    local -a options=()\n"
    "    COMPREPLY=()\n"
    "    if (( COMP_CWORD == 1 )); then\n"
    "        _roost_table ''\n"
    "        _roost_words \"${options[@]}\" 'help|show the help of a command' \\\n"
    "            '--help|show the help' '--version|show the version'\n"
    "        return\n"
    "    fi\n"
    "    _roost_table \"${COMP_WORDS[1]}\"\n"
    "    for (( i = 2; i < COMP_CWORD; i++ )); do\n"
    "        [[ ${COMP_WORDS[i]} == -- ]] || continue\n"
    "        if [[ -z $rest ]]; then\n"
    "            _roost_offer \"$operand\"\n"
    "        elif (( i + 1 == COMP_CWORD )); then\n"
    "            mapfile -t COMPREPLY < <(compgen -c -- \"$current\")\n"
    "        else\n"
    "            compopt -o filenames 2> /dev/null\n"
    "            mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
    "        fi\n"
    "        return\n"
    "    done\n"
    "    # bash splits --name=value at the sign.\n"
    "    if [[ $current == = ]]; then\n"
    "        has_sign=yes current=\n"
    "    elif [[ $before == = ]]; then\n"
    "        has_sign=yes before=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    fi\n"
    "    for entry in \"${options[@]}\"; do\n"
    "        entry=${entry%%|*}\n"
    "        if [[ $entry == \"$before \"* ]]; then\n"
    "            _roost_offer \"${entry#* }\"\n"
    "            return\n"
    "        fi\n"
    "    done\n"
    "    if [[ -n $has_sign ]]; then\n"
    "        return\n"
    "    elif [[ $current == -* ]]; then\n"
    "        _roost_words \"${options[@]}\"\n"
    "    else\n"
    "        _roost_offer \"$operand\"\n"
    "    fi\n"
    "}\n\n"
    "complete -F _roost roost\n";

void completion_bash(struct text *out)
{
    text_puts(out, "# What bash completes for roost. Made by `roost completion bash`.\n\n"
                   "# What may follow a command: its operand, its options.\n"
                   "_roost_table()\n{\n    case $1 in\n");
    put_commands(out);
    for (const struct command *const *it = commands; *it; it++)
        put_command(out, *it);
    text_puts(out, "    esac\n}\n\n");
    text_puts(out, words_of);
    text_puts(out, "# Completes what stands for an argument in the help.\n"
                   "_roost_offer()\n{\n    local word\n    case $1 in\n");
    for (const struct argument_kind *it = argument_kinds; it->name; it++)
        put_kind(out, it);
    text_puts(out, "    COMMANDS)\n        _roost_table ''\n"
                   "        _roost_words \"${options[@]}\" ;;\n    esac\n}\n\n");
    text_puts(out, main_of);
}
