/* fuzz_launchspec.c - any bytes, as what a supervisor is told to run. */
#include <sys/mman.h>
#include <unistd.h>

#include "supervise/spec.h"
#include "tests/fuzz/check.h"

/* Reads what the supervisor would read, to the last byte. */
static size_t walk(const struct spec_list *list)
{
    size_t len = 0;
    const char *string = list->first;
    for (uint32_t i = 0; i < list->count; i++, string = spec_next(string))
        len += strlen(string) + 1;
    return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct spec spec;
    int fd = memfd_create("spec", MFD_CLOEXEC);
    CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    if (!spec_open(&spec, fd))
        return 0;
    int32_t first = 0;
    for (int32_t c = 0; c < spec.component_count; c++) {
        const struct spec_component *component = &spec.components[c];
        CHECK(component->first_process == first);
        CHECK(walk(&component->base_env) == component->base_env.len);
        CHECK(walk(&component->after) == component->after.len);
        CHECK(walk(&component->forker) == component->forker.len);
        CHECK(walk(&component->own) == component->own.len);
        first += component->process_count;
    }
    CHECK(first == spec.process_count);
    for (int32_t p = 0; p < spec.process_count; p++) {
        const struct spec_process *process = &spec.processes[p];
        CHECK(process->argv.count > 0 && walk(&process->argv) == process->argv.len);
        CHECK(walk(&process->env) == process->env.len);
        CHECK(strlen(process->cwd) + strlen(process->ready_what) < size);
    }
    spec_release(&spec);
    return 0;
}
