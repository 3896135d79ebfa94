/* sweep.c - reads /proc to find whom to end. A pid is only ever signalled while it cannot have been
 * reused: our own children until we reap them, others through a pidfd that is opened first and whose
 * owner is then looked at again. */
#include "launch/local/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "launch/local/clock.h"
#include "launch/local/proc.h"

typedef void (*pid_fn)(void *ctx, pid_t pid);

static void each_process(pid_fn visit, void *ctx)
{
    DIR *proc = opendir("/proc");
    if (!proc)
        return;
    for (struct dirent *entry; (entry = readdir(proc));) {
        int64_t pid;
        if (number_parse(sv_from(entry->d_name), INT32_MAX, &pid) == NUMBER_OK)
            visit(ctx, (pid_t)pid);
    }
    closedir(proc);
}

static void kill_if_child(void *ctx, pid_t pid)
{
    (void)ctx;
    if (pid > 1 && proc_stat(pid).parent == getpid())
        (void)kill(pid, SIGKILL);
}

/* One round over the children that there are now. */
static void kill_children(void)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *list = fopen(path, "re");
    if (!list) { /* a kernel without this file, or no descriptor left */
        each_process(kill_if_child, NULL);
        return;
    }
    char *word = NULL;
    size_t room = 0;
    int64_t pid;
    while (getdelim(&word, &room, ' ', list) > 0) {
        word[strcspn(word, " \n")] = '\0';
        if (number_parse(sv_from(word), INT32_MAX, &pid) == NUMBER_OK && pid > 1)
            (void)kill((pid_t)pid, SIGKILL);
    }
    free(word);
    fclose(list);
}

bool sweep_descendants(int64_t timeout_ms)
{
    int64_t deadline = clock_ms() + timeout_ms;
    for (;;) {
        siginfo_t info = {0};
        int result;
        while ((result = waitid(P_ALL, 0, &info, WEXITED | WNOHANG)) == 0 && info.si_pid != 0)
            info.si_pid = 0;
        if (result != 0 && errno == ECHILD)
            return true;
        if (clock_ms() > deadline)
            return false;
        kill_children();
        clock_pause_ms(1); /* the dead leave within a tick of the scheduler */
    }
}

struct token_search {
    const char *token;
    int32_t found;
};

static bool has_token(pid_t pid, const struct token_search *search)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    FILE *file =
        fd >= 0 && fstat(fd, &info) == 0 && info.st_uid == geteuid() ? fdopen(fd, "r") : NULL;
    if (!file) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    char *entry = NULL;
    size_t room = 0;
    bool is_found = false;
    while (!is_found && getdelim(&entry, &room, '\0', file) > 0)
        is_found = strcmp(entry, search->token) == 0;
    free(entry);
    fclose(file);
    return is_found;
}

static void kill_if_token(void *ctx, pid_t pid)
{
    struct token_search *search = ctx;
    if (pid <= 1 || pid == getpid() || !has_token(pid, search))
        return;
    int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0)
        return;
    if (has_token(pid, search) && pidfd_send_signal(pidfd, SIGKILL, NULL, 0) == 0)
        search->found++;
    close(pidfd);
}

int32_t sweep_token(const char *token, int64_t timeout_ms)
{
    int64_t deadline = clock_ms() + timeout_ms;
    int32_t total = 0;
    for (int quiet = 0;;) {
        struct token_search search = {.token = token};
        each_process(kill_if_token, &search);
        total += search.found;
        /* Once more after a round that found any, for what they forked meanwhile; and twice in any case:
         * a process that is between two programs shows no environment. */
        quiet = search.found ? 0 : quiet + 1;
        if (quiet == 2 || clock_ms() > deadline)
            return total;
        clock_pause_ms(2);
    }
}
