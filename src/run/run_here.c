/* run_here.c - the start of a run on this machine, in its driver: ports from the supervisor, the registry
 * server, the commands of all processes. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <roost/port.h>

#include "base/file.h"
#include "run/registry_server_start.h"
#include "run/run_news.h"
#include "run/run_start.h"
#include "run/spec_write.h"

/* --- ports --- */

static bool send_setup(struct run_start *start)
{
    const struct commands *commands = start->commands;
    struct setup setup = run_start_setup(start);
    setup.want_count = (int32_t)commands->port_count;
    int file = memfd_create("roost-wants", MFD_CLOEXEC);
    for (size_t i = 0; file >= 0 && i < commands->port_count; i++) {
        struct roost_port_want want = {.count = commands->ports[i].count,
                                       .is_handed = commands->ports[i].is_handed};
        if (!file_write(file, &want, sizeof want)) {
            close(file);
            file = -1;
        }
    }
    return run_start_send_file(start, MSG_SETUP, &setup, sizeof setup, file);
}

static bool take_ports(struct run_start *start)
{
    size_t got = 0, count = start->commands->port_count;
    start->ports = arena_array(&start->run->arena, int32_t, count + 1);
    if (!start->ports) {
        diag_nomem(start->diag);
        return false;
    }
    while (got < count) {
        if (!run_start_expect(start, MSG_PORTS))
            return false;
        size_t more = start->run->inbox.len / sizeof *start->ports;
        if (more == 0 || more > count - got) {
            errno = EPROTO;
            return run_start_report_socket(start);
        }
        memcpy(start->ports + got, start->run->inbox.body, more * sizeof *start->ports);
        got += more;
    }
    return true;
}

/* --- managers --- */

/* Starts the registry server of a namespace that is the run's own. It starts up while the driver prepares the
 * rest. */
static bool start_managers(struct run_start *start)
{
    struct roost_run *run = start->run;
    if (start->namespace_lock < 0)
        return true; /* another run, or Ray, has them */
    struct roost_registry_server_options options = {.program = start->options->program,
                                                    .view = start->options->view,
                                                    .view_len = start->options->view_len,
                                                    .leases_master_port = true,
                                                    .port_base = start->options->port_base};
    struct registry_server_place place = {.runtime = start->runtime,
                                          .runtime_dir = start->runtime_dir,
                                          .lock = start->namespace_lock,
                                          .name_space = start->name_space,
                                          .run_id = run->dir.id};
    struct text lines = TEXT_INIT;
    if (run_news_put_processes(start, &lines)) {
        place.lines = (struct strview){lines.bytes, lines.len};
        run->server = registry_server_spawn(&options, &place, start->diag);
    }
    text_release(&lines);
    return run->server && run_news_open(start);
}

static bool meet_managers(struct run_start *start)
{
    return !start->run->server || registry_server_meet(start->run->server, start->diag);
}

/* --- the steps --- */

static bool make_processes(struct run_start *start)
{
    struct roost_run *run = start->run;
    struct run_values values = {.run_id = run->dir.id,
                                .name_space = start->name_space,
                                .master_addr = "127.0.0.1",
                                .ports = start->ports};
    return commands_fill(start->commands, &values, start->diag);
}

static bool start_here(struct run_start *start)
{
    /* The ports of processes come before that of the managers: it is the same one in every run. */
    return send_setup(start) && take_ports(start) && start_managers(start) &&
           make_processes(start) && run_start_describe(start) && meet_managers(start) &&
           run_start_send_file(start, MSG_START, "", 0,
                               spec_write(start->commands, start->ports, NULL));
}

const struct run_host run_here = {.engine = "local", .start = start_here};
