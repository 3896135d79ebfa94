/* address.c - inet_pton parses addresses; this file defines their order. */
#include "base/address.h"

#include <arpa/inet.h>
#include <string.h>

static bool parse(int family, struct strview text, unsigned char *out)
{
    char copy[INET6_ADDRSTRLEN];
    if (text.len >= sizeof copy || memchr(text.at, '\0', text.len))
        return false;
    memcpy(copy, text.at, text.len);
    copy[text.len] = '\0';
    return inet_pton(family, copy, out) == 1;
}

struct address address_read(struct strview text)
{
    struct address address = {.kind = ADDRESS_NONE};
    if (text.len == 0)
        return address;
    struct strview inner = text;
    if (text.len > 2 && text.at[0] == '[' && text.at[text.len - 1] == ']')
        inner = sv_sub(text, 1, text.len - 1);
    size_t zone = sv_find(inner, '%', 0);
    if (parse(AF_INET, text, address.bytes)) {
        address.kind = ADDRESS_IPV4;
    } else if (parse(AF_INET6, sv_sub(inner, 0, zone), address.bytes)) {
        static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
        address.kind = ADDRESS_IPV6;
        address.text = sv_sub(inner, zone, inner.len);
        if (memcmp(address.bytes, mapped, sizeof mapped) == 0) {
            memmove(address.bytes, address.bytes + 12, 4);
            memset(address.bytes + 4, 0, 12);
            address.kind = ADDRESS_IPV4;
        }
    } else {
        address.kind = ADDRESS_NAME;
        address.text = text;
    }
    return address;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The run of digits at *at, leading zeros skipped; *at moves behind it. */
static struct strview take_number(struct strview text, size_t *at)
{
    while (*at < text.len && text.at[*at] == '0')
        ++*at;
    size_t start = *at;
    while (*at < text.len && is_digit(text.at[*at]))
        ++*at;
    return sv_sub(text, start, *at);
}

int natural_compare(struct strview a, struct strview b)
{
    size_t i = 0, k = 0;
    while (i < a.len && k < b.len) {
        if (is_digit(a.at[i]) && is_digit(b.at[k])) {
            struct strview left = take_number(a, &i), right = take_number(b, &k);
            if (left.len != right.len)
                return left.len < right.len ? -1 : 1;
            int order = sv_compare(left, right);
            if (order)
                return order;
        } else if (a.at[i] != b.at[k]) {
            return (unsigned char)a.at[i] < (unsigned char)b.at[k] ? -1 : 1;
        } else {
            i++;
            k++;
        }
    }
    if (i < a.len || k < b.len)
        return i < a.len ? 1 : -1;
    return sv_compare(a, b); /* 01 and 1 are not the same name */
}

int address_compare(const struct address *a, const struct address *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    int order = memcmp(a->bytes, b->bytes, sizeof a->bytes);
    return order ? order : natural_compare(a->text, b->text);
}
