/* ray_ask.c - starts Python, reads what it prints, waits for its end. Runs in the driver. Knows nothing
 * about the question. */
#include "agent/ray_ask.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "command/environment.h"
#include "supervise/spawn.h"
#include "json/json_reader.h"

enum { WORDS_MAX = 16, ANSWER_MAX = 1 << 30 };

static void report_python(const char *python, const char *step, int error, struct diag *diag)
{
    diag_error(diag, ROOST_ERR_ENGINE, NOWHERE, "cannot %s '%s' to ask Ray: %s", step, python,
               strerror(error));
    diag_hint(diag, "set ROOST_PYTHON to a Python that has roost and ray");
}

/* The interpreter that stands where the program does: both were installed together. */
static bool find_beside(char *out, size_t size)
{
    ssize_t len = readlink("/proc/self/exe", out, size - 1);
    if (len <= 0)
        return false;
    out[len] = '\0';
    char *slash = strrchr(out, '/');
    size_t folder = slash ? (size_t)(slash - out) + 1 : 0;
    errno = ENAMETOOLONG;
    return snprintf(out + folder, size - folder, "python3") < (int)(size - folder);
}

static bool is_program(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

/* A bare name is looked up in the absolute folders of PATH alone: an empty or a relative one would run what
 * happens to lie in the current folder. */
static bool find_in_path(const char *name, const char *path, char *out, size_t size)
{
    for (; path; path = strchr(path, ':') ? strchr(path, ':') + 1 : NULL) {
        int len = (int)strcspn(path, ":");
        if (path[0] == '/' && snprintf(out, size, "%.*s/%s", len, path, name) < (int)size &&
            is_program(out))
            return true;
    }
    return false;
}

bool ray_find_python(const char *python, const char *const *env, char *out, size_t size,
                     struct diag *diag)
{
    bool is_beside = !python || !python[0];
    if (is_beside || strchr(python, '/')) {
        errno = ENAMETOOLONG;
        if (is_beside ? find_beside(out, size) : snprintf(out, size, "%s", python) < (int)size)
            return true;
        report_python(is_beside ? "python3" : python, "find", errno, diag);
        return false;
    }
    const char *path = environment_find(env, "PATH");
    if (find_in_path(python, path ? path : "/usr/local/bin:/usr/bin:/bin", out, size))
        return true;
    diag_error(diag, ROOST_ERR_ENGINE, NOWHERE,
               "ROOST_PYTHON is '%s', and no absolute folder of PATH has a program of that name",
               python);
    diag_hint(diag,
              "set ROOST_PYTHON to the path of a Python that has roost and ray ('./%s' for one in "
              "the current folder)",
              python);
    return false;
}

/* Everything from the descriptor; false without memory, or for more than anybody prints. */
static bool read_all(int fd, struct text *out)
{
    char chunk[1 << 16];
    for (;;) {
        ssize_t got = read(fd, chunk, sizeof chunk);
        if (got == 0)
            return !out->has_failed;
        if (got < 0 && errno != EINTR)
            return false;
        if (got > 0)
            text_put(out, (struct strview){chunk, (size_t)got});
        if (out->len > ANSWER_MAX)
            return false;
    }
}

static enum roost_code code_of(struct strview word)
{
#define X(name, text, status)                                                                      \
    if (sv_is(word, text))                                                                         \
        return ROOST_ERR_##name;
    ROOST_ERROR_MAP(X)
#undef X
    return ROOST_ERR_ENGINE;
}

bool ray_report_answer(struct strview text, struct diag *diag)
{
    struct diag quiet = diag_start(NULL, NULL);
    struct json_reader *json = json_reader_from_text("the answer", text, NULL);
    struct roost_error err = {.code = ROOST_ERR_ENGINE};
    char hint[sizeof err.message] = "";
    bool has_message = false;
    struct json_event event =
        json ? json_next(json, &quiet) : (struct json_event){.kind = JSON_FAILED};
    if (event.kind == JSON_OBJECT && (event = json_next(json, &quiet)).kind == JSON_KEY &&
        sv_is(event.text, "error") && json_next(json, &quiet).kind == JSON_OBJECT) {
        while ((event = json_next(json, &quiet)).kind == JSON_KEY) {
            bool is_code = sv_is(event.text, "code"), is_message = sv_is(event.text, "message"),
                 is_hint = sv_is(event.text, "hint");
            event = json_next(json, &quiet);
            if (event.kind != JSON_STRING)
                break;
            if (is_code)
                err.code = code_of(event.text);
            else if (is_message)
                has_message = snprintf(err.message, sizeof err.message, "%.*s", (int)event.text.len,
                                       event.text.at) > 0;
            else if (is_hint)
                snprintf(hint, sizeof hint, "%.*s", (int)event.text.len, event.text.at);
        }
    }
    json_reader_free(json);
    if (!has_message)
        return false;
    diag_error(diag, err.code, NOWHERE, "%s", err.message);
    if (hint[0])
        diag_hint(diag, "%s", hint);
    return true;
}

static void report_end(int status, const char *python, struct strview text, struct diag *diag)
{
    if (ray_report_answer(text, diag))
        return;
    diag_error(diag, ROOST_ERR_ENGINE, NOWHERE, "'%s' could not ask Ray: it ended with %s %d",
               python, WIFSIGNALED(status) ? "signal" : "status",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    diag_hint(diag, "set ROOST_PYTHON to a Python that has roost and ray");
}

/* Waits for the child of this pid alone. */
static int reap(const struct spawned *spawned)
{
    int status = 0;
    while (waitpid(spawned->pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(spawned->pidfd);
    return status;
}

char *ray_ask(const struct ray_question *question, struct diag *diag)
{
    char python[PATH_MAX];
    /* -P: a module of the current folder never runs in the place of Ray's or ours. */
    const char *argv[WORDS_MAX + 5] = {python, "-P", "-m", question->module};
    for (int i = 0; question->words && question->words[i] && i < WORDS_MAX; i++)
        argv[4 + i] = question->words[i];
    if (!ray_find_python(question->python, question->env, python, sizeof python, diag))
        return NULL;
    int ends[2], null = spawn_null(diag);
    if (null < 0)
        return NULL;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        report_python(python, "start", errno, diag);
        close(null);
        return NULL;
    }
    struct spawn spawn = {.paths = (const char *const[]){python, NULL},
                          .argv = (char *const *)(uintptr_t)argv,
                          .env = (char *const *)(uintptr_t)question->env,
                          .fd = {null, ends[1], 2}};
    struct spawned spawned = spawn_process(&spawn);
    close(null);
    close(ends[1]);
    if (spawned.failed != SPAWN_OK) {
        close(ends[0]);
        report_python(python, spawn_step_word(spawned.failed), spawned.error, diag);
        return NULL;
    }
    struct text answer = TEXT_INIT;
    bool is_whole = read_all(ends[0], &answer);
    close(ends[0]);
    int status = reap(&spawned);
    char *text = is_whole ? strdup(answer.len ? text_string(&answer) : "") : NULL;
    if (!text) {
        diag_nomem(diag);
    } else if (status != 0) {
        report_end(status, python, sv_from(text), diag);
        free(text);
        text = NULL;
    }
    text_release(&answer);
    return text;
}
