/* bandit.c - a reinforcement-learning job small enough to read: which of three levers pays best?
 *
 * One program, three components. An env owns a machine with three levers; a rollout pulls them as the
 * actor's policy says; the actor learns from what all rollouts report. They find each other by the
 * variables that roost sets (ROOST_RUN_ID, RANK, WORLD_SIZE) and speak over abstract Unix sockets, which
 * vanish with them.
 *
 * Run:  roost run examples/bandit.yaml */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { LEVERS = 3, STEPS = 5, PULLS = 40, GOODBYE = -1 };

/* What goes back and forth: a lever to pull, or what pulling brought. */
struct message {
    int lever;
    int pulls[LEVERS];
    int wins[LEVERS];
};

static const char *word(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "0";
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* --- talking --- */

static socklen_t name_of(struct sockaddr_un *out, const char *component, int rank)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    int len = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "bandit/%s/%s/%d",
                       word("ROOST_RUN_ID"), component, rank);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static int open_door(const char *component, int rank)
{
    struct sockaddr_un name;
    socklen_t len = name_of(&name, component, rank);
    int door = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (door < 0 || bind(door, (struct sockaddr *)&name, len) != 0)
        fail("cannot open my door");
    return door;
}

static void tell(int door, const char *component, int rank, const struct message *message)
{
    struct sockaddr_un name;
    socklen_t len = name_of(&name, component, rank);
    if (sendto(door, message, sizeof *message, 0, (struct sockaddr *)&name, len) < 0)
        fail("cannot tell the others");
}

static struct message hear(int door)
{
    struct message message;
    if (recv(door, &message, sizeof message, 0) != (ssize_t)sizeof message)
        fail("cannot hear the others");
    return message;
}

/* The same numbers in every run: an example should not surprise. */
static double chance(unsigned *state)
{
    *state = *state * 1103515245u + 12345u;
    return (double)(*state >> 16 & 0x7fff) / 0x8000;
}

/* --- components --- */

static void be_env(int rank)
{
    static const double pays[LEVERS] = {0.2, 0.5, 0.8};
    unsigned state = 7u + (unsigned)rank;
    int door = open_door("env", rank);
    printf("open: %d levers, one of them pays best\n", LEVERS);
    for (;;) {
        struct message message = hear(door);
        if (message.lever == GOODBYE)
            return;
        message.wins[message.lever] = chance(&state) < pays[message.lever];
        tell(door, "rollout", rank, &message);
    }
}

/* Pulls the lever that the policy likes, and every fourth time another one. */
static struct message play(int door, int rank, int liked, unsigned *state)
{
    struct message result = {0};
    for (int i = 0; i < PULLS; i++) {
        struct message pull = {.lever = i % 4 ? liked : (int)(chance(state) * LEVERS)};
        tell(door, "env", rank, &pull);
        result.wins[pull.lever] += hear(door).wins[pull.lever];
        result.pulls[pull.lever]++;
    }
    return result;
}

static void be_rollout(int rank)
{
    unsigned state = 99u + (unsigned)rank;
    int door = open_door("rollout", rank);
    printf("ready: I have accelerator %s and play with env/%d\n", word("VISIBLE_DEVICES"), rank);
    for (;;) {
        struct message policy = hear(door);
        if (policy.lever == GOODBYE) {
            tell(door, "env", rank, &policy);
            return;
        }
        struct message result = play(door, rank, policy.lever, &state);
        tell(door, "actor", 0, &result);
    }
}

static void be_actor(int rollouts)
{
    struct message total = {0};
    int door = open_door("actor", 0);
    int liked = 0;
    for (int step = 1; step <= STEPS; step++) {
        int pulls = 0, wins = 0;
        for (int r = 0; r < rollouts; r++)
            tell(door, "rollout", r, &(struct message){.lever = liked});
        for (int r = 0; r < rollouts; r++) {
            struct message result = hear(door);
            for (int l = 0; l < LEVERS; l++) {
                total.pulls[l] += result.pulls[l];
                total.wins[l] += result.wins[l];
                pulls += result.pulls[l];
                wins += result.wins[l];
            }
        }
        for (int l = 0; l < LEVERS; l++)
            if (total.wins[l] * total.pulls[liked] > total.wins[liked] * total.pulls[l])
                liked = l;
        printf("step %d: %2d of %d pulls paid; lever %d looks best\n", step, wins, pulls, liked);
    }
    for (int r = 0; r < rollouts; r++)
        tell(door, "rollout", r, &(struct message){.lever = GOODBYE});
}

int main(int argc, char **argv)
{
    int rank = atoi(word("RANK"));
    const char *role = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(role, "env") == 0)
        be_env(rank);
    else if (strcmp(role, "rollout") == 0)
        be_rollout(rank);
    else if (strcmp(role, "actor") == 0 && argc == 3)
        be_actor(atoi(argv[2]));
    else
        fprintf(stderr, "usage: bandit env | rollout | actor ROLLOUTS\n");
    return role[0] ? 0 : 2;
}
