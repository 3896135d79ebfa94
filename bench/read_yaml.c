/* read_yaml.c - the least that any reader of a config does: its events, through libyaml. The peer
 * that bench/check_speed measures `roost check` against. Prints the number of events. */
#include <stdbool.h>
#include <stdio.h>
#include <yaml.h>

int main(int argc, char **argv)
{
    yaml_parser_t parser;
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!file || !yaml_parser_initialize(&parser)) {
        fprintf(stderr, "usage: read_yaml FILE\n");
        return 2;
    }
    yaml_parser_set_input_file(&parser, file);
    long events = 0;
    for (bool is_done = false; !is_done; events++) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            fprintf(stderr, "read_yaml: %s\n", parser.problem);
            return 2;
        }
        is_done = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    fclose(file);
    printf("%ld events\n", events);
    return 0;
}
