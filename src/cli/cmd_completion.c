/* cmd_completion.c - roost completion: a script that makes a shell complete roost's words. */
#include <string.h>

#include "cli/completion.h"
#include "cli/output.h"

static const struct {
    const char *name;
    void (*put)(struct text *out);
} shells[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};

static int print_script(void (*put)(struct text *out))
{
    struct text out = TEXT_INIT;
    put(&out);
    const char *script = text_string(&out);
    enum roost_code code = script ? ROOST_OK : ROOST_ERR_MEMORY;
    if (script && !output_write(&output_stdout, script, out.len))
        code = ROOST_ERR_IO;
    text_release(&out);
    return output_status(code, 0);
}

static int run(const struct invocation *invocation)
{
    if (invocation->operand_count == 0)
        return output_usage("'roost completion' needs a shell: bash, zsh or fish");
    if (invocation->operand_count > 1)
        return output_usage("'roost completion' takes one shell, not also '%s'",
                            quote(sv_from(invocation->operands[1])).text);
    const char *shell = invocation->operands[0];
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(shell, shells[i].name) == 0)
            return print_script(shells[i].put);
    return output_usage("there is no completion for '%s': the shell is bash, zsh or fish",
                        quote(sv_from(shell)).text);
}

static const struct cli_option options[] = {{0}};

const struct command cmd_completion = {
    .name = "completion",
    .summary = "print a completion script for a shell",
    .usage = "SHELL",
    .details =
        "Prints a completion script for SHELL (bash, zsh or fish). The Tab key then completes\n"
        "commands, options, their values, configs and the ids of runs. To turn it on, run\n"
        "eval \"$(roost completion bash)\" in bash, the same with zsh in zsh (after compinit), or\n"
        "roost completion fish | source in fish. An installed roost has these scripts where\n"
        "shells look for them.",
    .examples = "eval \"$(roost completion bash)\"",
    .options = options,
    .run = run,
};
