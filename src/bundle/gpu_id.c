/* gpu_id.c - sorts numbers by value, however long; ids that the node lists by their place in that list; all
 * others by bytes. Refuses nothing: an id of an unknown form is still an id. */
#include "bundle/gpu_id.h"

enum { DIGITS_MAX = 19 }; /* every number of so many digits fits 64 bits */

/* Digits behind an optional sign, leading zeros dropped; false when it is not a number. */
static bool take_digits(struct strview id, struct strview *out)
{
    size_t at = id.len > 0 && (id.at[0] == '-' || id.at[0] == '+');
    size_t first = at;
    for (size_t i = at; i < id.len; i++)
        if (id.at[i] < '0' || id.at[i] > '9')
            return false;
    while (at < id.len && id.at[at] == '0')
        at++;
    *out = sv_sub(id, at, id.len);
    return id.len > first;
}

static struct gpu_key number_key(struct strview digits, bool is_negative)
{
    if (digits.len > DIGITS_MAX)
        return (struct gpu_key){.kind = is_negative ? GPU_BELOW : GPU_ABOVE, .text = digits};
    uint64_t value = 0;
    for (size_t i = 0; i < digits.len; i++)
        value = value * 10 + (uint64_t)(digits.at[i] - '0');
    if (is_negative && value > 0)
        return (struct gpu_key){.kind = GPU_NEGATIVE, .value = UINT64_MAX - value};
    return (struct gpu_key){.kind = GPU_NUMBER, .value = value};
}

/* The place of `id` in the list, or false. */
static bool find_listed(struct strview id, struct strview visible, uint64_t *out)
{
    uint64_t place = 0;
    for (size_t from = 0; from < visible.len; place++) {
        size_t comma = sv_find(visible, ',', from);
        if (sv_equal(sv_trim(sv_sub(visible, from, comma)), id)) {
            *out = place;
            return true;
        }
        from = comma + 1;
    }
    return false;
}

struct gpu_key gpu_key_read(struct strview id, struct strview visible)
{
    struct strview digits;
    struct gpu_key key = {.kind = GPU_LISTED};
    if (take_digits(id, &digits))
        return number_key(digits, id.at[0] == '-');
    if (find_listed(id, visible, &key.value))
        return key;
    return (struct gpu_key){.kind = GPU_TEXT, .text = id};
}

int gpu_key_compare(const struct gpu_key *a, const struct gpu_key *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->value != b->value)
        return a->value < b->value ? -1 : 1;
    if (a->kind == GPU_TEXT)
        return sv_compare(a->text, b->text);
    int order = a->text.len != b->text.len ? (a->text.len < b->text.len ? -1 : 1)
                                           : sv_compare(a->text, b->text);
    return a->kind == GPU_BELOW ? -order : order;
}
