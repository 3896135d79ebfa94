/* command.c - one option table drives parsing and help. getopt_long does the splitting; what it is
 * too generous about (abbreviations) is refused here. */
#include "cli/command.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/strview.h"
#include "cli/output.h"

enum { OPTIONS_MAX = 32, FIRST_OPTION = 256 };

/* The program looks names up here; help, man page and shell completion are made from it. */
const struct command *const commands[] = {&cmd_check, &cmd_plan,       &cmd_groups,  &cmd_probe,
                                          &cmd_run,   &cmd_ps,         &cmd_logs,    &cmd_stop,
                                          &cmd_prune, &cmd_completion, &cmd_version, NULL};

const char *option_value(const struct invocation *invocation, const char *name)
{
    const struct cli_option *options = invocation->command->options;
    for (size_t i = 0; options[i].name; i++)
        if (strcmp(options[i].name, name) == 0)
            return invocation->values[i];
    return NULL;
}

const char *invocation_env(const struct invocation *invocation, const char *name)
{
    size_t len = strlen(name);
    for (char *const *it = invocation->env; *it; it++)
        if (strncmp(*it, name, len) == 0 && (*it)[len] == '=' && (*it)[len + 1])
            return *it + len + 1;
    return NULL;
}

bool option_is_on(const struct invocation *invocation, const char *name)
{
    return option_value(invocation, name) != NULL;
}

/* --- options that are more than a text --- */

/* As milliseconds; -1 when it is not a number of seconds. */
static int32_t read_seconds(const char *text)
{
    enum { MOST = 86400 };
    struct strview whole = sv_from(text), fraction = {0};
    size_t point = sv_find(whole, '.', 0);
    int64_t seconds, thousandths = 0;
    if (point < whole.len) {
        fraction = sv_sub(whole, point + 1, whole.len);
        whole.len = point;
        if (fraction.len == 0 || fraction.len > 3 || fraction.at[0] == '+' ||
            number_parse(fraction, 999, &thousandths) != NUMBER_OK)
            return -1;
        for (size_t i = fraction.len; i < 3; i++)
            thousandths *= 10;
    }
    if (number_parse(whole, MOST, &seconds) != NUMBER_OK)
        return -1;
    return (int32_t)(seconds * 1000 + thousandths);
}

int option_seconds(const struct invocation *invocation, const char *name, int32_t *out_ms)
{
    const char *text = option_value(invocation, name);
    *out_ms = text ? read_seconds(text) : -1;
    if (text && *out_ms < 0)
        return output_refuse(invocation, "--%s is a number of seconds, not '%s'", name,
                             quote(sv_from(text)).text);
    return 0;
}

int option_ranks(const struct invocation *invocation, struct arena *arena, struct rankset *out,
                 const struct rankset **out_ranks)
{
    const char *text = option_value(invocation, "ranks");
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    *out_ranks = NULL;
    *out = (struct rankset){0};
    if (!text)
        return 0;
    if (rankset_read(out, arena, sv_from(text), NOWHERE, &diag) != ROOST_OK)
        return output_refuse(invocation, "--ranks: %s", err.message);
    *out_ranks = out;
    return 0;
}

char **split_names(const char *text, size_t *out_count)
{
    size_t len = strlen(text), count = 1;
    for (const char *at = text; *at; at++)
        count += *at == ',';
    char **names = malloc((count + 1) * sizeof *names + len + 1);
    if (!names)
        return NULL;
    char *copy = (char *)(names + count + 1);
    memcpy(copy, text, len + 1);
    for (size_t i = 0; i < count; i++) {
        names[i] = copy;
        copy += strcspn(copy, ",");
        *copy++ = '\0';
    }
    names[count] = NULL;
    *out_count = count;
    return names;
}

/* --- parsing and help --- */

static void fill_table(const struct command *command, struct option *out)
{
    size_t i = 0;
    for (; command->options[i].name; i++)
        out[i] = (struct option){command->options[i].name,
                                 command->options[i].argument ? required_argument : no_argument,
                                 NULL, FIRST_OPTION + (int)i};
    out[i++] = (struct option){"help", no_argument, NULL, 'h'};
    out[i] = (struct option){0};
}

static int refuse_option(const struct command *command, const char *word)
{
    const char *names[OPTIONS_MAX + 2] = {"help"};
    for (size_t i = 0; command->options[i].name; i++)
        names[i + 1] = command->options[i].name;
    struct strview name = sv_from(word);
    while (name.len && name.at[0] == '-')
        name = sv_sub(name, 1, name.len);
    name.len = sv_find(name, '=', 0);
    const char *near = nearest_word(name, names);
    for (size_t i = 0; name.len > 1 && names[i];
         i++) /* a beginning is what was meant most likely */
        if (strncmp(names[i], name.at, name.len) == 0)
            near = names[i];
    if (near)
        return output_usage("'%s' is not an option of 'roost %s'; did you mean '--%s'?",
                            quote(sv_from(word)).text, command->name, near);
    return output_usage("'%s' is not an option of 'roost %s'; see 'roost %s --help'",
                        quote(sv_from(word)).text, command->name, command->name);
}

/* A parse under way. */
struct parse {
    const struct command *command;
    const char *values[OPTIONS_MAX];
    const char **operands;
    size_t operand_count;
    size_t trailing_at; /* the operand after "--", where the command takes trailing arguments */
    bool has_trailing;
    bool wants_help;
};

static const struct cli_option *find_option(const struct command *command, const char *name)
{
    const struct cli_option *it = command->options;
    while (it->name && strcmp(it->name, name) != 0)
        it++;
    return it;
}

/* "+:h" and the short form of every option. */
static void fill_letters(const struct command *command, char out[OPTIONS_MAX * 2 + 4])
{
    size_t len = 3;
    memcpy(out, "+:h", len);
    for (const struct option_letter *it = command->letters; it && it->letter; it++) {
        out[len++] = it->letter;
        if (find_option(command, it->name)->argument)
            out[len++] = ':';
    }
    out[len] = '\0';
}

/* The option whose short form this is, -1 = none. */
static int find_letter(const struct command *command, int letter)
{
    for (const struct option_letter *it = command->letters; it && it->letter; it++)
        if (it->letter == letter)
            return (int)(find_option(command, it->name) - command->options);
    return -1;
}

static int keep_value(struct parse *parse, int option)
{
    if (parse->values[option])
        return output_usage("option '--%s' is given twice", parse->command->options[option].name);
    parse->values[option] = optarg ? optarg : "";
    return 0;
}

/* Takes one option that getopt found at `word`. Returns 0 or an exit status. */
static int take_option(struct parse *parse, int found, int index, const struct option *table,
                       const char *word)
{
    if (found == '?')
        return refuse_option(parse->command, word);
    if (found == ':')
        return output_usage("option '%s' of 'roost %s' needs a value", quote(sv_from(word)).text,
                            parse->command->name);
    if (found == 'h' && strcmp(word, "-h") == 0) {
        parse->wants_help = true;
        return 0;
    }
    if (found < FIRST_OPTION && find_letter(parse->command, found) >= 0)
        return keep_value(parse, find_letter(parse->command, found));
    size_t len = strcspn(word + 2, "=");
    if (strlen(table[index].name) != len || strncmp(word + 2, table[index].name, len) != 0)
        return refuse_option(parse->command, word);
    if (found == 'h') {
        parse->wants_help = true;
        return 0;
    }
    return keep_value(parse, found - FIRST_OPTION);
}

static int parse_words(struct parse *parse, int argc, char **argv)
{
    struct option table[OPTIONS_MAX + 2];
    char letters[OPTIONS_MAX * 2 + 4];
    fill_table(parse->command, table);
    fill_letters(parse->command, letters);
    optind = 1;
    while (optind < argc) {
        int at = optind, index = 0;
        int found = getopt_long(argc, argv, letters, table, &index);
        if (found != -1) {
            int status = take_option(parse, found, index, table, argv[at]);
            if (status)
                return status;
            continue;
        }
        bool is_rest = optind > at && strcmp(argv[optind - 1], "--") == 0;
        if (is_rest && parse->command->takes_trailing) {
            parse->has_trailing = true;
            parse->trailing_at = parse->operand_count;
        }
        do {
            if (optind < argc)
                parse->operands[parse->operand_count++] = argv[optind++];
        } while (is_rest && optind < argc);
    }
    return 0;
}

int command_run(const struct command *command, int argc, char **argv, char *const *env)
{
    struct parse parse = {.command = command};
    parse.operands = calloc((size_t)argc + 1, sizeof *parse.operands);
    if (!parse.operands)
        return output_status(ROOST_ERR_MEMORY, EXIT_SYSTEM);
    int status = parse_words(&parse, argc, argv);
    if (status == 0 && parse.wants_help) {
        command_help(command);
    } else if (status == 0) {
        struct invocation invocation = {
            .command = command,
            .values = parse.values,
            .operands = parse.operands,
            .operand_count = parse.has_trailing ? parse.trailing_at : parse.operand_count,
            .trailing = parse.operands + parse.trailing_at,
            .trailing_count = parse.has_trailing ? parse.operand_count - parse.trailing_at : 0,
            .has_trailing = parse.has_trailing,
            .env = env,
        };
        status = command->run(&invocation);
    }
    free(parse.operands);
    return status;
}

char option_letter(const struct command *command, const struct cli_option *option)
{
    for (const struct option_letter *it = command->letters; it && it->letter; it++)
        if (strcmp(it->name, option->name) == 0)
            return it->letter;
    return 0;
}

/* A title and its lines, set in; nothing for NULL. */
static void put_lines(const char *title, const char *lines)
{
    if (!lines)
        return;
    printf("\n%s\n", title);
    for (const char *line = lines; *line;) {
        int len = (int)strcspn(line, "\n");
        printf("  %.*s\n", len, line);
        line += len + (line[len] == '\n');
    }
}

void command_help(const struct command *command)
{
    printf("usage: roost %s%s%s\n\n%s\n\noptions:\n", command->name, command->usage[0] ? " " : "",
           command->usage, command->details);
    for (const struct cli_option *it = command->options; it->name; it++) {
        char left[64];
        char letter[8] = "";
        if (option_letter(command, it))
            snprintf(letter, sizeof letter, "-%c, ", option_letter(command, it));
        snprintf(left, sizeof left, "%s--%s%s%s", letter, it->name, it->argument ? " " : "",
                 it->argument ? it->argument : "");
        printf("  %-28s %s\n", left, it->help);
    }
    printf("  %-28s %s\n", "-h, --help", "show this help");
    put_lines("exit status:",
              command->exits ? command->exits : "0 done, 2 wrong usage, 5 the system failed");
    put_lines("examples:", command->examples);
}
