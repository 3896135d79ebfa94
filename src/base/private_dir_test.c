/* The permission matrix: everything that can be wrong with a directory, its parents and its files, and
 * what is reported about it; the same once more as another user; and a swapper that must never win. */
#include "base/private_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit.h"

enum { OTHER_UID = 47111 }; /* not 47110, who owns things in the matrix */

static char folder[64]; /* the world of one row */

/* --- small worlds --- */

static int remove_one(const char *path, const struct stat *found, int kind, struct FTW *at)
{
    (void)found, (void)kind, (void)at;
    return remove(path);
}

static void make_world(void)
{
    snprintf(folder, sizeof folder, "/tmp/roost-private-XXXXXX");
    if (!mkdtemp(folder) || chdir(folder) != 0)
        abort();
}

static void remove_world(void)
{
    if (chdir("/") != 0 || nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        abort();
}

static void make_socket(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0)
        abort();
    close(fd);
}

/* One thing of a world: "d PATH MODE" directory, "f PATH MODE" file, "l PATH TARGET" symbolic link,
 * "h PATH TARGET" hard link, "p PATH" fifo, "s PATH" socket, "n PATH" device, "o PATH UID" owner,
 * "g PATH GID" group, "m PATH MODE" mode. False when it takes root and we are not. */
static bool make_thing(const char *step)
{
    char kind, path[64] = "", word[64] = "0";
    if (sscanf(step, " %c %63s %63s", &kind, path, word) < 2)
        abort();
    mode_t mode = (mode_t)strtol(word, NULL, 8);
    int done = kind == 'd'   ? mkdir(path, 0700)
               : kind == 'f' ? mknod(path, S_IFREG | 0600, 0)
               : kind == 'l' ? symlink(word, path)
               : kind == 'h' ? link(word, path)
               : kind == 'p' ? mkfifo(path, 0600)
               : kind == 'n' ? mknod(path, S_IFCHR | 0600, makedev(1, 3))
               : kind == 'o' ? lchown(path, (uid_t)strtol(word, NULL, 10), (gid_t)-1)
               : kind == 'g' ? lchown(path, (uid_t)-1, (gid_t)strtol(word, NULL, 10))
               : kind == 's' ? (make_socket(path), 0)
                             : 0;
    if (done != 0 && errno == EPERM)
        return false;
    if (done == 0 && strchr("dfm", kind))
        done = chmod(path, mode);
    if (done != 0)
        abort();
    return true;
}

static bool make_things(const char *steps)
{
    char copy[256], *rest = copy;
    snprintf(copy, sizeof copy, "%s", steps);
    for (char *step; (step = strsep(&rest, ";"));)
        if (*step && !make_thing(step))
            return false;
    return true;
}

/* --- the matrix --- */

enum what { OPEN, MAKE, CREATE, READ, LOCK };

struct row {
    const char *name, *things;
    enum what what;
    const char *path; /* in the world; of a file: DIR/NAME, DIR being opened unchecked */
    enum roost_code code;
    const char *said, *hint;
};

#define DENIED ROOST_ERR_ACCESS

static const struct row rows[] = {
    /* the directory */
    {"own", "d a 700", OPEN, "a", ROOST_OK, "", ""},
    {"own, less for us", "d a 500", OPEN, "a", ROOST_OK, "", ""},
    {"own, setgid", "d a 2700", OPEN, "a", ROOST_OK, "", ""},
    {"own, sticky", "d a 1700", OPEN, "a", ROOST_OK, "", ""},
    {"slash at the end", "d a 700", OPEN, "a/", ROOST_OK, "", ""},
    {"many slashes", "d a 700;d a/b 700", OPEN, "a///b//", ROOST_OK, "", ""},
    {"there and back", "d a 700;d b 700", OPEN, "a/../b", ROOST_OK, "", ""},
    {"missing", "", OPEN, "a", ROOST_ERR_IO, "No such file", "choose a directory"},
    {"missing parent", "", OPEN, "a/b", ROOST_ERR_IO, "/a': No such file", ""},
    {"made", "", MAKE, "a", ROOST_OK, "", ""},
    {"made with parents", "", MAKE, "a/b/c/d", ROOST_OK, "", ""},
    {"made twice", "d a 700", MAKE, "a", ROOST_OK, "", ""},
    {"readable by others", "d a 704", OPEN, "a", DENIED, "others (mode 0704)", "chmod 700 /"},
    {"searchable by others", "d a 701", OPEN, "a", DENIED, "mode 0701", "chmod 700"},
    {"world-writable", "d a 702", OPEN, "a", DENIED, "mode 0702", "chmod 700"},
    {"world-writable, sticky", "d a 1777", OPEN, "a", DENIED, "mode 1777", "chmod 700"},
    {"group-readable", "d a 740", OPEN, "a", DENIED, "mode 0740", "chmod 700"},
    {"group-writable", "d a 720", MAKE, "a", DENIED, "mode 0720", "chmod 700"},
    {"group-writable, sticky", "d a 1770", MAKE, "a", DENIED, "mode 1770", "chmod 700"},
    {"as mkdir makes it", "d a 755", MAKE, "a", DENIED, "mode 0755", "chmod 700"},
    {"of another", "d a 700;o a 47110", OPEN, "a", DENIED, "to user 47110 (mode 0700)", "your own"},
    {"of another, open to all", "d a 777;o a 47110", MAKE, "a", DENIED, "to user 47110",
     "your own"},
    {"a link", "d a 700;l b a", OPEN, "b", DENIED, "/b' is a symbolic link", "remove the link"},
    {"a link with a slash", "d a 700;l b a", OPEN, "b/", DENIED, "symbolic link", "remove"},
    {"a link to nothing", "l b a", MAKE, "b", DENIED, "symbolic link", "remove the link"},
    {"a link to itself", "l b b", MAKE, "b", DENIED, "symbolic link", "remove the link"},
    {"a link of another", "d a 700;l b a;o b 47110", OPEN, "b", DENIED, "symbolic link", "remove"},
    {"a file", "f a 600", MAKE, "a", DENIED, "not a directory", "remove it"},
    {"a fifo", "p a", MAKE, "a", DENIED, "not a directory", "remove it"},
    {"a socket", "s a", OPEN, "a", DENIED, "not a directory", "remove it"},
    {"a device", "n a", OPEN, "a", DENIED, "not a directory", "remove it"},
    /* its parents */
    {"under a readable parent", "d a 755;d a/b 700", OPEN, "a/b", ROOST_OK, "", ""},
    {"under a world-writable", "d a 702;d a/b 700", OPEN, "a/b", DENIED,
     "written by others (mode 0702)", "chmod go-w /"},
    {"under a group-writable", "d a 770;g a 47110;d a/b 700", OPEN, "a/b", DENIED, "mode 0770",
     "chmod go-w"},
    {"under one of our own group", "d a 770;d a/b 700", OPEN, "a/b", ROOST_OK, "", ""},
    {"under one for others too", "d a 772;d a/b 700", OPEN, "a/b", DENIED, "mode 0772", "go-w"},
    {"under a sticky one", "d a 1777;d a/b 700", OPEN, "a/b", ROOST_OK, "", ""},
    {"made under a sticky one", "d a 1777", MAKE, "a/b/c", ROOST_OK, "", ""},
    {"made under a writable one", "d a 777", MAKE, "a/b/c", DENIED, "mode 0777", "chmod go-w"},
    {"two above", "d a 777;d a/b 700;d a/b/c 700", OPEN, "a/b/c", DENIED, "/a', on the way",
     "go-w"},
    {"under another's", "d a 755;d a/b 700;o a 47110", OPEN, "a/b", DENIED, "belongs to user 47110",
     "your own home"},
    {"under another's sticky", "d a 1777;d a/b 700;o a 47110", OPEN, "a/b", DENIED,
     "belongs to user 47110", "your own home"},
    {"through our link", "d a 700;d a/b 700;l c a", OPEN, "c/b", ROOST_OK, "", ""},
    {"through a link to open", "d a 777;d a/b 700;l c a", OPEN, "c/b", DENIED, "mode 0777", "go-w"},
    {"through a link through open", "d a 777;d a/x 700;d a/x/b 700;l c a/x", OPEN, "c/b", DENIED,
     "/a', on the way", "go-w"},
    {"through another's link", "d a 700;d a/b 700;l c a;o c 47110", OPEN, "c/b", DENIED,
     "symbolic link of user 47110", "name the directory"},
    {"through a link that goes up", "d a 700;d b 700;l a/c ../b;d b/d 700", OPEN, "a/c/d", ROOST_OK,
     "", ""},
    {"through an absolute link", "l c /nowhere", OPEN, "c/x", ROOST_ERR_IO, "'/nowhere': No such",
     ""},
    {"round and round", "l a b;l b a", OPEN, "a/x", DENIED, "Too many levels", ""},
    {"through nothing", "l a b", MAKE, "a/x", ROOST_OK, "", ""},
    {"through a file", "f a 600", MAKE, "a/b", DENIED, "Not a directory", ""},
    {"through a fifo", "p a", OPEN, "a/b", DENIED, "Not a directory", ""},
    {"nothing at all", "", OPEN, "", ROOST_ERR_IO, "No such file", ""},
    {"the root", "", OPEN, "/", DENIED, "'/'", ""},
    /* new files */
    {"new file", "", CREATE, "./x", ROOST_OK, "", ""},
    {"new file over a file", "f x 600", CREATE, "./x", DENIED, "there already", "remove it"},
    {"new file over a link", "f y 600;l x y", CREATE, "./x", DENIED, "there already", "remove it"},
    {"new file over a dead link", "l x y", CREATE, "./x", DENIED, "there already", "remove it"},
    {"new file over a fifo", "p x", CREATE, "./x", DENIED, "there already", "remove it"},
    {"new file over a directory", "d x 700", CREATE, "./x", DENIED, "there already", "remove it"},
    {"new file upstairs", "", CREATE, "./..", DENIED, "'..' is not the name", "no '/'"},
    {"new file here", "", CREATE, "./.", DENIED, "'.' is not the name", "no '/'"},
    {"new file elsewhere", "d a 700", CREATE, ".//a/x", DENIED, "'/a/x' is not the name", "no '/'"},
    {"new file without a name", "", CREATE, "./", DENIED, "'' is not the name", "1 to 255"},
    {"two dots inside a name", "", CREATE, "./a..b", ROOST_OK, "", ""},
    /* files that are there */
    {"file", "f x 600", READ, "./x", ROOST_OK, "", ""},
    {"file, less for us", "f x 400", READ, "./x", ROOST_OK, "", ""},
    {"file missing", "", READ, "./x", ROOST_ERR_IO, "No such file", ""},
    {"file of another", "f x 600;o x 47110", READ, "./x", DENIED, "to user 47110", "remove it"},
    {"file others read", "f x 604", READ, "./x", DENIED, "mode 0604", "chmod 600 /"},
    {"file others write", "f x 602", READ, "./x", DENIED, "mode 0602", "chmod 600"},
    {"file the group reads", "f x 640", READ, "./x", DENIED, "mode 0640", "chmod 600"},
    {"file the group writes", "f x 620", LOCK, "./x", DENIED, "mode 0620", "chmod 600"},
    {"file with two names", "f y 600;h x y", READ, "./x", DENIED, "has 2 names", "remove it"},
    {"link to a file", "f y 600;l x y", READ, "./x", DENIED, "a symbolic link", "remove it"},
    {"link to nothing", "l x y", LOCK, "./x", DENIED, "a symbolic link", "remove it"},
    {"fifo as file", "p x", READ, "./x", DENIED, "a fifo", "remove it"},
    {"fifo as lock", "p x", LOCK, "./x", DENIED, "a fifo", "remove it"},
    {"directory as file", "d x 700", READ, "./x", DENIED, "a directory", "remove it"},
    {"socket as file", "s x", READ, "./x", DENIED, "a socket", "remove it"},
    {"device as file", "n x", READ, "./x", DENIED, "a device", "remove it"},
    {"lock that is missing", "", LOCK, "./x", ROOST_OK, "", ""},
    {"lock that is there", "f x 600", LOCK, "./x", ROOST_OK, "", ""},
    {"file upstairs", "", READ, "./..", DENIED, "'..' is not the name", "no '/'"},
};

static int act(const struct row *row, struct roost_error *err)
{
    if (row->what == OPEN || row->what == MAKE)
        return private_dir_open(row->path, row->what == MAKE, err);
    int dir = open(".", O_RDONLY | O_DIRECTORY);
    const char *name = strchr(row->path, '/') + 1;
    int fd = row->what == CREATE ? private_file_create(dir, name, err)
             : row->what == READ ? private_file_open(dir, name, O_RDONLY, NULL, err)
                                 : private_file_open(dir, name, O_RDWR | O_CREAT, NULL, err);
    close(dir);
    return fd;
}

static int open_files(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* What is wrong with this row's outcome, or NULL. */
static const char *judge(const struct row *row, int fd, const struct roost_error *err)
{
    struct stat found;
    if (err->code != row->code)
        return "another code";
    if ((fd >= 0) != (row->code == ROOST_OK))
        return "a descriptor without success, or the other way round";
    if (!strstr(err->message, row->said) || !strstr(err->hint, row->hint))
        return "other words";
    if (fd < 0)
        return err->hint[0] ? NULL : "no cure";
    if (fstat(fd, &found) != 0 || (found.st_mode & 077) || found.st_uid != geteuid())
        return "an open directory or file";
    if (!(fcntl(fd, F_GETFD) & FD_CLOEXEC))
        return "inherited by children";
    return NULL;
}

/* False after it reported which row is wrong: a child must not leave through cmocka. */
static bool run_matrix(void)
{
    mode_t mask = umask(0); /* what is made is private whatever the mask */
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct roost_error err;
        struct row row = rows[i];
        make_world();
        if (!make_things(row.things)) /* takes root: somebody else's directory is root's then */
            row = (struct row){row.name, "", OPEN, "/usr", DENIED, "belongs to user 0", "your own"};
        int before = open_files();
        int fd = act(&row, &err);
        const char *wrong = judge(&row, fd, &err);
        if (fd >= 0)
            close(fd);
        if (!wrong && open_files() != before)
            wrong = "a descriptor left open";
        remove_world();
        if (wrong) {
            fprintf(stderr, "# '%s': %s\n#   said: %s: %s\n#   hint: %s\n", row.name, wrong,
                    roost_code_word(err.code), err.message, err.hint);
            return false;
        }
    }
    umask(mask);
    return true;
}

TEST(everything_wrong_with_a_directory_or_file_is_refused_with_its_cure)
{
    assert_true(ROWS(rows) >= 60);
    assert_true(run_matrix());
}

static int wait_for(pid_t child)
{
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* Without root's powers the kernel refuses first; the words must still be ours. */
TEST(another_user_gets_the_same_answers_and_no_way_in)
{
    struct roost_error err;
    make_world();
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setgid(OTHER_UID) != 0 || setuid(OTHER_UID) != 0))
            _exit(2);
        bool is_other = geteuid() == OTHER_UID;
        int fd = private_dir_open(is_other ? folder : "/root", false, &err);
        _exit(fd < 0 && err.code == DENIED && strstr(err.message, "belongs to user 0") ? 0 : 1);
    }
    assert_int_equal(wait_for(child), 0);
    remove_world();
    child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setgid(OTHER_UID) != 0 || setuid(OTHER_UID) != 0))
            _exit(2);
        _exit(run_matrix() ? 0 : 1);
    }
    assert_int_equal(wait_for(child), 0);
}

TEST(a_path_that_is_too_long_is_refused)
{
    char path[2 * PATH_MAX];
    struct roost_error err;
    memset(path, 'a', sizeof path);
    path[0] = '/';
    for (size_t len = 200; len < sizeof path; len += 100) {
        path[len] = '\0';
        if (len > NAME_MAX)
            assert_true(private_dir_open(path, true, &err) < 0 && err.code == ROOST_ERR_IO);
        path[len] = 'a';
    }
}

TEST(a_directory_inside_a_checked_one_is_opened_by_its_name)
{
    struct roost_error err;
    make_world();
    int dir = private_dir_open(folder, false, &err);
    int inner = private_dir_open_in(dir, "actor", true, &err);
    assert_true(dir >= 0 && inner >= 0);
    assert_true(private_dir_open_in(dir, "rollout", false, &err) < 0 && err.code == ROOST_ERR_IO);
    assert_true(private_dir_open_in(dir, "..", true, &err) < 0 && err.code == DENIED);
    assert_true(private_dir_open_in(dir, "a/b", true, &err) < 0 && err.code == DENIED);
    assert_int_equal(symlink("actor", "link"), 0);
    assert_true(private_dir_open_in(dir, "link", true, &err) < 0 && err.code == DENIED);
    close(inner);
    close(dir);
    remove_world();
}

TEST(base_paths_follow_the_environment_that_is_given)
{
    char own[40];
    snprintf(own, sizeof own, "/tmp/roost-%u", geteuid());
    const struct {
        const char *name, *env[3], *runtime, *state;
    } table[] = {
        {"all", {"XDG_RUNTIME_DIR=/run/u", "XDG_STATE_HOME=/s"}, "/run/u/roost", "/s/roost/runs"},
        {"home", {"HOME=/home/a"}, own, "/home/a/.local/state/roost/runs"},
        {"none", {NULL}, own, NULL},
        {"relative", {"XDG_RUNTIME_DIR=run", "XDG_STATE_HOME=s"}, own, NULL},
        {"empty", {"XDG_RUNTIME_DIR=", "HOME="}, own, NULL},
        {"look-alikes", {"XDG_RUNTIME_DIRX=/x", "XHOME=/x"}, own, NULL},
    };
    for (size_t i = 0; i < ROWS(table); i++) {
        char out[64] = "untouched";
        assert_true(private_dir_runtime(out, sizeof out, table[i].env));
        CHECK_TEXT(table[i].name, out, table[i].runtime);
        snprintf(out, sizeof out, "untouched");
        CHECK_FACT(table[i].name,
                   private_dir_state(out, sizeof out, table[i].env) == (table[i].state != NULL));
        CHECK_TEXT(table[i].name, out, table[i].state ? table[i].state : "untouched");
    }
    char small[8] = "as is";
    assert_false(private_dir_runtime(small, sizeof small, NULL));
    assert_string_equal(small, "as is");
}

/* --- the swapper --- */

/* Exchanges two names of the world for as long as it is told; exits when done. */
static pid_t start_swapper(const char *a, const char *b, long swaps)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    for (long i = 0; i < swaps; i++)
        if (renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) != 0)
            _exit(1);
    _exit(0);
}

/* Opens `row` again and again until the swapper is done; counts what was not `wanted`. */
static long count_wins(pid_t swapper, const struct row *row, ino_t wanted, long *out_opens)
{
    long wins = 0;
    int status = 0;
    while (waitpid(swapper, &status, WNOHANG) == 0) {
        struct roost_error err;
        struct stat found;
        int fd = act(row, &err);
        (*out_opens)++;
        if (fd < 0)
            continue;
        wins += fstat(fd, &found) != 0 || found.st_ino != wanted;
        close(fd);
    }
    assert_int_equal(status, 0);
    return wins;
}

TEST(a_swapper_never_wins)
{
    const struct {
        const char *name, *things, *a, *b, *wanted;
        struct row row;
    } races[] = {
        {"directory and link",
         "d a 700;d trap 700;l b trap",
         "a",
         "b",
         "a",
         {.what = OPEN, .path = "a"}},
        {"directory and open one", "d a 700;d b 777", "a", "b", "a", {.what = OPEN, .path = "a"}},
        {"parent and open one",
         "d a 700;d a/x 700;d b 777;d b/x 700",
         "a",
         "b",
         "a/x",
         {.what = OPEN, .path = "a/x"}},
        {"parent and link to open",
         "d a 700;d a/x 700;d t 777;d t/x 700;l b t",
         "a",
         "b",
         "a/x",
         {.what = MAKE, .path = "a/x"}},
        {"file and link",
         "f a 600;f trap 600;l b trap",
         "a",
         "b",
         "a",
         {.what = READ, .path = "./a"}},
        {"file and hard link",
         "f a 600;f trap 600;h b trap",
         "a",
         "b",
         "a",
         {.what = LOCK, .path = "./a"}},
        {"file and fifo", "f a 600;p b", "a", "b", "a", {.what = READ, .path = "./a"}},
    };
    const char *soak = getenv("ROOST_SOAK");
    long swaps = soak && *soak == '1' ? 100000 : 10000, opens = 0;
    for (size_t i = 0; i < ROWS(races); i++) {
        struct stat wanted;
        make_world();
        assert_true(make_things(races[i].things));
        assert_int_equal(stat(races[i].wanted, &wanted), 0);
        pid_t swapper = start_swapper(races[i].a, races[i].b, swaps);
        long wins = count_wins(swapper, &races[i].row, wanted.st_ino, &opens);
        CHECK_FACT(races[i].name, wins == 0);
        remove_world();
    }
    assert_true(opens > 100);
}

RUN_TESTS(cmocka_unit_test(everything_wrong_with_a_directory_or_file_is_refused_with_its_cure),
          cmocka_unit_test(another_user_gets_the_same_answers_and_no_way_in),
          cmocka_unit_test(a_path_that_is_too_long_is_refused),
          cmocka_unit_test(a_directory_inside_a_checked_one_is_opened_by_its_name),
          cmocka_unit_test(base_paths_follow_the_environment_that_is_given),
          cmocka_unit_test(a_swapper_never_wins))
