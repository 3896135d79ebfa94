/* json_value.h - a JSON value as text of one line, to be kept and handed on unread. */
#ifndef REGISTRY_JSON_VALUE_H
#define REGISTRY_JSON_VALUE_H

#include "base/json_reader.h"
#include "base/text.h"

/* Writes the value that `first`, the last token of the reader, begins; reads to its end. Numbers stay as
 * they were written. False after a fault, which was said. */
bool json_value_copy(struct json_reader *reader, struct json_token first, struct text *out,
                     struct diag *diag);

#endif
