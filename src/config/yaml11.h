/* yaml11.h - what other readers make of a plain scalar.
 *
 * roost takes a scalar's text as it is. OmegaConf, which reads the same file in RLinf, types plain
 * scalars by YAML 1.1: `1:0` is 60, `010` is 8, `yes` is true. Where that changes the meaning, users
 * are told. */
#ifndef CONFIG_YAML11_H
#define CONFIG_YAML11_H

#include "config/tree.h"

enum yaml11_kind { YAML11_TEXT, YAML11_NULL, YAML11_BOOL, YAML11_INT, YAML11_FLOAT };

struct yaml11 {
    enum yaml11_kind kind;
    char as_text[32]; /* what Python's str() gives for it: "60", "True", "None"; "" for text, for
                         floats and for integers beyond 64 bits */
};

/* How OmegaConf reads the plain scalar `text`. */
struct yaml11 yaml11_read(struct strview text);

/* Warns when another reader sees a different text in this scalar. Quoted scalars never differ. */
void yaml11_warn(const struct node *scalar, struct diag *diag);

/* The same for a scalar that is read as a number or ranks: `007` is 7 to everyone. */
void yaml11_warn_number(const struct node *scalar, struct diag *diag);

#endif
