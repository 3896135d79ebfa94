/* completion_zsh.c - the completion script for zsh: a call of _arguments for every command. */
#include "cli/completion.h"

static const char helpers[] =
    "_roost_configs() { _files -g '*.(yaml|yml)(-.)' \"$@\" }\n"
    "_roost_runs() { _roost_ps '' \"$@\" }\n"
    "_roost_all_runs() { _roost_ps --all \"$@\" }\n"
    "_roost_ps() {\n"
    "  local -a runs\n"
    "  runs=(${(f)\"$(roost ps --quiet $=1 2> /dev/null)\"})\n"
    "  shift\n"
    "  compadd \"$@\" -- $runs\n"
    "}\n"
    "# What follows a config: overrides, and behind -- a command line of its own.\n"
    "_roost_rest() {\n"
    "  local at=${words[(i)--]}\n"
    "  if (( at < CURRENT )); then\n"
    "    shift $at words\n"
    "    (( CURRENT -= at ))\n"
    "    _normal\n"
    "  else\n"
    "    _message 'key=value'\n"
    "  fi\n"
    "}\n\n";

/* ":X:_roost_x", the part of a specification that says what a value is. */
static void put_value(struct text *out, const char *name, bool takes_ended_runs)
{
    const struct argument_kind *kind = find_argument_kind(sv_from(name));
    text_printf(out, ":%s:", name);
    if (kind->source == COMPLETE_CONFIGS)
        text_puts(out, "_roost_configs");
    else if (kind->source == COMPLETE_RUNS)
        text_puts(out, takes_ended_runs ? "_roost_all_runs" : "_roost_runs");
    else if (kind->source == COMPLETE_FILES)
        text_printf(out, "_roost_%s", kind->name);
    else if (kind->words[0])
        text_printf(out, "(%s)", kind->words);
    else
        text_char(out, ' ');
}

static void put_option(struct text *out, const struct command *command,
                       const struct cli_option *option)
{
    const char *sign = option->argument ? "=" : "";
    char letter = option_letter(command, option);
    text_puts(out, "      ");
    if (letter)
        text_printf(out, "'(-%c --%s)'{-%c%s,--%s%s}'[", letter, option->name, letter,
                    option->argument ? "+" : "", option->name, sign);
    else
        text_printf(out, "'--%s%s[", option->name, sign);
    put_escaped(out, option->help, "[]\\", "'\\''");
    text_char(out, ']');
    if (option->argument)
        put_value(out, option->argument, false);
    text_puts(out, "' \\\n");
}

static void put_command(struct text *out, const struct command *command)
{
    const struct argument_kind *operand = command_operand_kind(command);
    text_printf(out, "    %s)\n      _arguments -S \\\n", command->name);
    for (const struct cli_option *it = command->options; it->name; it++)
        put_option(out, command, it);
    if (operand->name) {
        text_puts(out, "      '1");
        put_value(out, operand->name, command->takes_ended_runs);
        text_puts(out, "' \\\n");
    }
    if (operand->source == COMPLETE_CONFIGS)
        text_puts(out, "      '*:key=value:_roost_rest' \\\n");
    text_puts(out, "      '(- *)'{-h,--help}'[show this help]' ;;\n");
}

void completion_zsh(struct text *out)
{
    text_puts(out, "#compdef roost\n# What zsh completes for roost. Made by `roost completion "
                   "zsh`.\n\n");
    text_puts(out, helpers);
    for (const struct argument_kind *it = argument_kinds; it->name; it++)
        if (it->source == COMPLETE_FILES)
            text_printf(out,
                        "_roost_%s() { _alternative 'words:word:(%s)' 'files:file:_files' }\n\n",
                        it->name, it->words);
    text_puts(out, "_roost_commands() {\n  local -a names\n  names=(\n");
    for (const struct command *const *it = commands; *it; it++) {
        text_printf(out, "    '%s:", (*it)->name);
        put_escaped(out, (*it)->summary, "\\:", "'\\''");
        text_puts(out, "'\n");
    }
    text_puts(out, "    'help:show the help of a command'\n  )\n"
                   "  _describe -t commands 'command' names\n}\n\n"
                   "_roost() {\n  local curcontext=$curcontext state line\n"
                   "  typeset -A opt_args\n  _arguments -C \\\n"
                   "    '(- *)'{-h,--help}'[show the help]' \\\n"
                   "    '(- *)--version[show the version]' \\\n"
                   "    '1:command:_roost_commands' \\\n    '*::argument:->arguments' && return\n"
                   "  [[ $state == arguments ]] || return\n"
                   "  case $words[1] in\n"
                   "    help)\n      _arguments '1:command:_roost_commands' ;;\n");
    for (const struct command *const *it = commands; *it; it++)
        put_command(out, *it);
    text_puts(out,
              "  esac\n}\n\n"
              "# Found by compinit this file is the function; read by a shell it declares it.\n"
              "if [[ $funcstack[1] == _roost ]]; then\n  _roost \"$@\"\nelse\n"
              "  compdef _roost roost\nfi\n");
}
