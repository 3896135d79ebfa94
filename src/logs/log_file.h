/* log_file.h - where the log of a stream is, and the one way to open it for reading.
 *
 * <run directory>/<component>/<rank>/stdout.log and stderr.log. A run directory is its user's own, but
 * workers run as that user, so nothing below it is trusted: every step is opened from the one before,
 * no symbolic link is followed, and only regular files are read. */
#ifndef LOGS_LOG_FILE_H
#define LOGS_LOG_FILE_H

#include <stdint.h>
#include <sys/stat.h>

enum log_stream { LOG_STDOUT, LOG_STDERR, LOG_STREAMS };

/* "stdout.log" or "stderr.log". */
const char *log_file_name(enum log_stream stream);

/* Opens the directory of a rank (O_PATH). A descriptor of the caller's, or -1 with *out_errno set.
 * A component that is not a name (strview.h) is ENOENT. */
int log_dir_open(int run_dir, const char *component, int32_t rank, int *out_errno);

/* Opens a log for reading and fills *out_info. A descriptor of the caller's, or -1 with *out_errno set;
 * something that is not a regular file is ELOOP (a link) or EINVAL. */
int log_file_open(int run_dir, const char *component, int32_t rank, enum log_stream stream,
                  struct stat *out_info, int *out_errno);

/* What is there under that name, without opening it. 0, or an errno. */
int log_file_look(int run_dir, const char *component, int32_t rank, enum log_stream stream,
                  struct stat *out_info);

#endif
