/* worker.c - a process of a test's run that does what its arguments say, one after the other.
 *
 * "@2:exit=3" is done by rank 2 alone. A test hears of it through named pipes ("say=PIPE"), and knows
 * by the end of a held pipe ("hold=PIPE") that a worker and all it ever forked are gone. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <netinet/in.h>

extern char **environ;

static const char *env(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "-";
}

static void die(const char *what)
{
    dprintf(2, "%s: %s\n", what, strerror(errno));
    _exit(99);
}

static int open_or_die(const char *path, int flags)
{
    int fd = open(path, flags, 0600);
    if (fd < 0)
        die(path);
    return fd;
}

/* --- telling --- */

static void say(const char *pipe)
{
    int fd = open_or_die(pipe, O_WRONLY);
    dprintf(fd, "%s/%s %d %s\n", env("ROOST_COMPONENT"), env("RANK"), (int)getpid(),
            env("MASTER_PORT"));
    close(fd);
}

static void print_environment(void)
{
    for (char **it = environ; *it; it++) {
        fputs(*it, stdout);
        fputc('\0', stdout);
    }
    fflush(stdout);
}

static void print_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char link[256] = "";
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == dirfd(dir))
            continue;
        if (readlinkat(dirfd(dir), entry->d_name, link, sizeof link - 1) < 0)
            die("readlink");
        printf("%s %s\n", entry->d_name, link);
    }
    closedir(dir);
    fflush(stdout);
}

static void print_start(void)
{
    char cwd[4096];
    struct rlimit files;
    mode_t mask = umask(0);
    umask(mask);
    getrlimit(RLIMIT_NOFILE, &files);
    printf("cwd %s\numask %04o\nfiles %lld %lld\nleads %d %d\n", getcwd(cwd, sizeof cwd), mask,
           (long long)files.rlim_cur, (long long)files.rlim_max, getsid(0) == getpid(),
           getpgrp() == getpid());
    FILE *status = fopen("/proc/self/status", "re");
    char line[256];
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "SigBlk", 6) == 0 || strncmp(line, "SigIgn", 6) == 0)
            fputs(line, stdout);
    if (status)
        fclose(status);
    fflush(stdout);
}

static void on_signal(int number)
{
    dprintf(1, "got %d\n", number);
}

static void on_last_signal(int number)
{
    dprintf(1, "got %d\n", number);
    _exit(0);
}

/* --- being difficult --- */

static void rest(void)
{
    for (;;)
        pause();
}

/* No variable of it is to be found in /proc any more, the run's id neither. */
static void hide(void)
{
    for (char **it = environ; *it; it++)
        memset(*it, 0, strlen(*it));
    rest();
}

/* Nobody but root reads its /proc. */
static void lock_up(void)
{
    prctl(PR_SET_DUMPABLE, 0);
    rest();
}

/* Forks and exits, over and over: whoever reads its number reads that of a dead process. It ends by itself
 * after some fifteen seconds: a test that fails must not keep a core busy for ever, nor fill the table of
 * processes with the dead of a parent that was stopped. */
static void run_away(void)
{
    for (char **it = environ; *it; it++)
        memset(*it, 0, strlen(*it));
    for (int i = 0; i < 15000; i++) {
        if (fork() > 0)
            _exit(0);
        if (i % 20 == 0)
            usleep(20000);
    }
    _exit(0);
}

/* A grandchild in a session of its own, which ignores what it can and then does that. */
static void leave_daemon(void (*life)(void))
{
    pid_t child = fork();
    if (child == 0) {
        setsid();
        if (fork() == 0) {
            signal(SIGTERM, SIG_IGN);
            signal(SIGINT, SIG_IGN);
            life();
        }
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

/* A program that is root's takes the rights it has: whoever started it may not kill it then. */
static void become_root(const char *pipe)
{
    if (setresuid(0, 0, 0) != 0)
        die("setresuid");
    say(pipe);
    rest();
}

/* Starts this program once more, from a file that is root's, as a daemon that cannot be killed. */
static void leave_root(const char *argument)
{
    char path[4096], pipe[4096];
    if (sscanf(argument, "%4095[^:]:%4095s", path, pipe) != 2)
        die("root");
    pid_t child = fork();
    if (child == 0) {
        setsid();
        char word[4200];
        snprintf(word, sizeof word, "rule=%s", pipe);
        if (fork() == 0) {
            execl(path, path, word, NULL);
            die(path);
        }
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void leave_child(void)
{
    if (fork() == 0)
        for (;;)
            pause();
}

/* Forks as fast as it can, and so do its children; each says so when it may not for the first time. */
static void explode(const char *pipe)
{
    for (;;)
        if (fork() < 0)
            break;
    say(pipe);
    for (;;)
        (void)!fork();
}

static void count_life(const char *argument)
{
    char path[4096];
    int lives, code;
    struct stat info;
    if (sscanf(argument, "%d:%d:%4095s", &lives, &code, path) != 3)
        die("until");
    int fd = open_or_die(path, O_WRONLY | O_CREAT | O_APPEND);
    if (write(fd, ".", 1) != 1 || fstat(fd, &info) != 0)
        die(path);
    close(fd);
    if (info.st_size < lives)
        _exit(code);
}

static void fill(const char *count)
{
    char block[4096];
    memset(block, 'x', sizeof block);
    for (long long left = atoll(count); left > 0; left -= (long long)sizeof block)
        if (write(1, block, sizeof block) < 0)
            _exit(errno);
}

/* Takes memory, a page at a time, until there is so much of it or somebody stops it. */
static void eat(const char *count)
{
    size_t size = (size_t)atoll(count);
    volatile char *bytes =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; bytes != MAP_FAILED && i < size; i += 4096)
        bytes[i] = 1;
}

static void bind_port(const char *port, bool is_listening)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)atoi(port)),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
        die("bind");
    if (is_listening && listen(fd, 8) != 0)
        die("listen");
}

/* Listens on ::1 with a queue that is full: who connects there waits. Without IPv6 it does nothing. */
static void fill_queue(const char *port)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6,
                                   .sin6_port = htons((uint16_t)atoi(port)),
                                   .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return;
    if (listen(fd, 0) != 0)
        die("listen");
    for (int i = 0; i < 3; i++) {
        int other = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(other, (struct sockaddr *)&address, sizeof address);
    }
}

/* Stands at another process's grave without letting its parent near. */
static void seize(const char *pipe)
{
    char line[64];
    int fd = open_or_die(pipe, O_RDWR);
    ssize_t len = read(fd, line, sizeof line - 1);
    line[len > 0 ? len : 0] = '\0';
    if (ptrace(PTRACE_SEIZE, atoi(line), NULL, NULL) != 0)
        die("ptrace");
}

/* --- steps --- */

static void step(const char *word, const char *argument)
{
    if (strcmp(word, "say") == 0) {
        say(argument);
    } else if (strcmp(word, "bomb") == 0) {
        explode(argument);
    } else if (strcmp(word, "hold") == 0) {
        (void)open_or_die(argument, O_WRONLY);
    } else if (strcmp(word, "read") == 0) { /* waits until somebody writes into the pipe */
        char byte;
        int fd = open_or_die(argument, O_RDWR);
        if (read(fd, &byte, 1) < 0)
            die(argument);
        close(fd);
    } else if (strcmp(word, "out") == 0 || strcmp(word, "err") == 0) {
        dprintf(word[0] == 'o' ? 1 : 2, "%s\n", argument);
    } else if (strcmp(word, "touch") == 0) {
        close(open_or_die(argument, O_WRONLY | O_CREAT));
        utimensat(AT_FDCWD, argument, NULL, 0); /* as touch(1) does */
    } else if (strcmp(word, "ignore") == 0) {
        signal(atoi(argument), SIG_IGN);
    } else if (strcmp(word, "trap") == 0) {
        signal(atoi(argument), on_signal);
    } else if (strcmp(word, "last") == 0) {
        signal(atoi(argument), on_last_signal);
    } else if (strcmp(word, "raise") == 0) {
        signal(atoi(argument), SIG_DFL); /* a sanitizer's own handler would exit instead */
        kill(getpid(), atoi(argument));
    } else if (strcmp(word, "exit") == 0) {
        _exit(atoi(argument));
    } else if (strcmp(word, "until") == 0) {
        count_life(argument);
    } else if (strcmp(word, "fill") == 0) {
        fill(argument);
    } else if (strcmp(word, "eat") == 0) {
        eat(argument);
    } else if (strcmp(word, "bind") == 0) {
        bind_port(argument, false);
    } else if (strcmp(word, "serve") == 0) {
        bind_port(argument, true);
    } else if (strcmp(word, "clog") == 0) {
        fill_queue(argument);
    } else if (strcmp(word, "listen") == 0) {
        if (listen(atoi(argument), 8) != 0)
            die("listen");
    } else if (strcmp(word, "unlink") == 0) {
        if (unlink(argument) != 0)
            die(argument);
    } else if (strcmp(word, "fifo") == 0) {
        if (mkfifo(argument, 0600) != 0)
            die(argument);
    } else if (strcmp(word, "link") == 0) { /* at stdout.log, to the argument */
        if (symlink(argument, env("LINK")) != 0)
            die(env("LINK"));
    } else if (strcmp(word, "root") == 0) {
        leave_root(argument);
    } else if (strcmp(word, "rule") == 0) {
        become_root(argument);
    } else if (strcmp(word, "seize") == 0) {
        seize(argument);
    } else {
        die(word);
    }
}

static void plain_step(const char *word)
{
    if (strcmp(word, "pause") == 0)
        rest();
    else if (strcmp(word, "spin") == 0)
        for (volatile unsigned long i = 0;; i++)
            continue;
    else if (strcmp(word, "stop") == 0)
        kill(getpid(), SIGSTOP);
    else if (strcmp(word, "abort") == 0)
        abort();
    else if (strcmp(word, "daemon") == 0)
        leave_daemon(rest);
    else if (strcmp(word, "hidden") == 0)
        leave_daemon(hide);
    else if (strcmp(word, "locked") == 0)
        leave_daemon(lock_up);
    else if (strcmp(word, "chain") == 0)
        leave_daemon(run_away);
    else if (strcmp(word, "child") == 0)
        leave_child();
    else if (strcmp(word, "environment") == 0)
        print_environment();
    else if (strcmp(word, "descriptors") == 0)
        print_descriptors();
    else if (strcmp(word, "start") == 0)
        print_start();
    else
        die(word);
}

int main(int argc, char **argv)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    for (int i = 1; i < argc; i++) {
        char *word = argv[i];
        if (word[0] == '@') {
            char *colon = strchr(word, ':');
            if (!colon || atoi(word + 1) != atoi(env("RANK")))
                continue;
            word = colon + 1;
        }
        char *equals = strchr(word, '=');
        if (equals) {
            *equals = '\0';
            step(word, equals + 1);
        } else {
            plain_step(word);
        }
    }
    return 0;
}
