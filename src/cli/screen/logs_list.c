/* logs_list.c - reads names of directories and puts them in order. Trusts none of them. */
#include "cli/screen/logs_list.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "base/strview.h"

enum { ROOM_FIRST = 16 };

/* The directory below `from`, not through a link; NULL when there is none. */
static DIR *open_directory(int from, const char *name, struct stat *out_info)
{
    int fd = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    DIR *dir = fstat(fd, out_info) == 0 ? fdopendir(fd) : NULL;
    if (!dir)
        close(fd);
    return dir;
}

static struct logs_stamp stamp_of(const struct stat *info)
{
    return (struct logs_stamp){.changed = info->st_mtim, .links = info->st_nlink};
}

static bool has_changed(const struct logs_stamp *stamp, const struct stat *info)
{
    return info->st_nlink != stamp->links || info->st_mtim.tv_sec != stamp->changed.tv_sec ||
           info->st_mtim.tv_nsec != stamp->changed.tv_nsec;
}

static bool add_rank(struct logs_component *it, int32_t rank)
{
    if (it->rank_count == it->rank_room) {
        int32_t room = it->rank_room ? it->rank_room * 2 : ROOM_FIRST;
        int32_t *grown = realloc(it->ranks, (size_t)room * sizeof *grown);
        if (!grown)
            return false;
        it->ranks = grown;
        it->rank_room = room;
    }
    it->ranks[it->rank_count++] = rank;
    return true;
}

static int by_number(const void *a, const void *b)
{
    int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
    return (left > right) - (left < right);
}

/* Digits as roost writes them: no sign, no zero in front. */
static bool read_rank(const char *name, int32_t *out)
{
    int64_t value;
    if (name[0] < '0' || name[0] > '9' || (name[0] == '0' && name[1] != '\0') ||
        number_parse(sv_from(name), INT32_MAX, &value) != NUMBER_OK)
        return false;
    *out = (int32_t)value;
    return true;
}

static bool read_component(struct logs_component *it, DIR *dir)
{
    const struct dirent *entry;
    int32_t rank;
    while ((entry = readdir(dir)))
        if (read_rank(entry->d_name, &rank) && !add_rank(it, rank))
            return false;
    if (it->rank_count > 0)
        qsort(it->ranks, (size_t)it->rank_count, sizeof *it->ranks, by_number);
    return true;
}

static bool add_component(struct logs_list *list, int run_dir, const char *name)
{
    struct stat info;
    DIR *dir = is_name(sv_from(name)) ? open_directory(run_dir, name, &info) : NULL;
    if (!dir)
        return true;
    if (list->count == list->room) {
        int32_t room = list->room ? list->room * 2 : ROOM_FIRST;
        void *grown = realloc(list->components, (size_t)room * sizeof *list->components);
        if (!grown) {
            closedir(dir);
            return false;
        }
        list->components = grown;
        list->room = room;
    }
    struct logs_component *it = &list->components[list->count++];
    *it = (struct logs_component){.stamp = stamp_of(&info)};
    memcpy(it->name, name, strlen(name) + 1);
    bool is_good = read_component(it, dir);
    closedir(dir);
    return is_good;
}

static int by_name(const void *a, const void *b)
{
    return strverscmp(((const struct logs_component *)a)->name,
                      ((const struct logs_component *)b)->name);
}

bool logs_list_read(struct logs_list *list, int run_dir)
{
    struct stat info;
    const struct dirent *entry;
    bool is_good = true;
    DIR *dir = open_directory(run_dir, ".", &info);
    if (!dir)
        return true;
    list->stamp = stamp_of(&info);
    while (is_good && (entry = readdir(dir)))
        is_good = add_component(list, run_dir, entry->d_name);
    closedir(dir);
    if (list->count > 0)
        qsort(list->components, (size_t)list->count, sizeof *list->components, by_name);
    return is_good;
}

void logs_list_release(struct logs_list *list)
{
    for (int32_t i = 0; i < list->count; i++)
        free(list->components[i].ranks);
    free(list->components);
    *list = (struct logs_list){0};
}

bool logs_list_is_stale(const struct logs_list *list, int run_dir)
{
    struct stat info;
    if (fstat(run_dir, &info) == 0 && has_changed(&list->stamp, &info))
        return true;
    for (int32_t i = 0; i < list->count; i++)
        if (fstatat(run_dir, list->components[i].name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            has_changed(&list->components[i].stamp, &info))
            return true;
    return false;
}
