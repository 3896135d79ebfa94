/* replay.c - runs a fuzz target over kept inputs, without a fuzzer: replay_<target> FILE... */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        return 1;
    }
    size_t size = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = malloc(size ? size : 1);
    if (!data || fread(data, 1, size, file) != size) {
        perror(path);
        return 1;
    }
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (replay(argv[i]) != 0)
            return 1;
    printf("%d inputs\n", argc - 1);
    return 0;
}
