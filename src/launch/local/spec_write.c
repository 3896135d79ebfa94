/* spec_write.c - the driver's half of spec.h; the order of the fields is that of spec.c. */
#include "launch/local/spec_write.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "launch/local/spec.h"

static bool write_fd(void *ctx, const char *bytes, size_t len)
{
    return file_write(*(int *)ctx, bytes, len);
}

static void put_after(struct text *out, const struct launch_config *launch)
{
    int32_t count = launch ? launch->after_count : 0, len = 0;
    for (int32_t i = 0; i < count; i++)
        len += (int32_t)launch->after[i].text.len + 1;
    spec_put_int(out, count);
    spec_put_int(out, len);
    for (int32_t i = 0; i < count; i++)
        spec_put_string(out, launch->after[i].text);
}

/* The port that `ready` waits for among the requests of a process, 0 = none. */
static int32_t ready_port(const struct commands *commands, const struct launch_config *launch,
                          int32_t first, int32_t count, const int32_t *ports)
{
    if (!launch || launch->ready != READY_PORT)
        return 0;
    for (int32_t i = first; i < first + count; i++)
        if (commands->ports[i].name && sv_is(launch->ready_what.text, commands->ports[i].name))
            return ports[i];
    return 0;
}

static void put_component(struct text *out, const struct commands *commands, int32_t index,
                          const int32_t *ports)
{
    const struct component_commands *component = &commands->components[index];
    const struct launch_config *launch = component->launch;
    spec_put_string(out, sv_from(component->name));
    spec_put_list(out, component->base_env);
    put_after(out, launch);
    spec_put_list(out, commands->options.forker);
    spec_put_int(out, launch ? (int32_t)launch->restart : RESTART_NEVER);
    spec_put_int(out, launch ? launch->restart_max : 0);
    spec_put_int(out, launch ? (int32_t)launch->ready : READY_AT_ONCE);
    spec_put_int(out, launch ? launch->ready_timeout : 0);
    spec_put_int(out, component->process_count);
    int32_t next = component->first_port;
    for (int32_t rank = 0; rank < component->process_count; rank++) {
        const struct process_command *process = &component->processes[rank];
        int32_t first = next;
        while (next < (int32_t)commands->port_count && commands->ports[next].component == index &&
               commands->ports[next].rank == rank)
            next++;
        spec_put_list(out, process->argv);
        spec_put_list(out, process->env);
        spec_put_string(out, sv_from(process->cwd));
        spec_put_string(out, sv_from(process->ready_what));
        spec_put_int(out, ready_port(commands, launch, first, next - first, ports));
        spec_put_int(out, first);
        spec_put_int(out, next - first);
    }
}

int spec_write(const struct commands *commands, const int32_t *ports)
{
    int fd = memfd_create("roost-spec", MFD_CLOEXEC);
    if (fd < 0)
        return -1;
    struct text out = {.flush = write_fd, .ctx = &fd};
    int32_t process_count = 0;
    for (int32_t i = 0; i < commands->component_count; i++)
        process_count += commands->components[i].process_count;
    spec_put_int(&out, commands->component_count);
    spec_put_int(&out, process_count);
    for (int32_t i = 0; i < commands->component_count; i++)
        put_component(&out, commands, i, ports);
    bool is_good = text_finish(&out);
    int error = errno;
    text_release(&out);
    if (is_good)
        return fd;
    close(fd);
    errno = error ? error : ENOMEM;
    return -1;
}
