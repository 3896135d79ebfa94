/* logs_list.h - which components and ranks a run directory holds. */
#ifndef CLI_SCREEN_LOGS_LIST_H
#define CLI_SCREEN_LOGS_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* The state of a directory when it was read. The count of links reveals directories made within the same
 * tick of the clock, on file systems that count them. */
struct logs_stamp {
    struct timespec changed;
    nlink_t links;
};

struct logs_component {
    char name[64];
    int32_t *ranks; /* rising */
    int32_t rank_count, rank_room;
    struct logs_stamp stamp;
};

struct logs_list {
    struct logs_component *components; /* in natural order: a2 before a10 */
    int32_t count, room;
    struct logs_stamp stamp;
};

/* Reads the directory. Lists only components: directories with a valid name. False without memory; the list
 * is then incomplete. */
bool logs_list_read(struct logs_list *list, int run_dir);
void logs_list_release(struct logs_list *list);

/* Whether the directory has changed since it was read. Cheap. */
bool logs_list_is_stale(const struct logs_list *list, int run_dir);

#endif
