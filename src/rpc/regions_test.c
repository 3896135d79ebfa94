/* regions_test.c - shared memory is written by one, read by many, used again, and bounded. */
#include "rpc/regions.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit.h"

enum { KIB = 1024, MIB = 1024 * 1024 };

static struct regions regions;

TEST(who_is_given_a_region_can_read_it_and_not_change_it)
{
    struct stat file;
    regions_init(&regions, 0, 0);
    struct region *region = regions_take(&regions, 200 * KIB);
    assert_non_null(region);
    assert_true(region->size >= 200 * KIB);
    region->at[200 * KIB - 1] = 'x';
    assert_int_equal(fstat(region->fd, &file), 0);
    assert_int_equal(file.st_size, (off_t)region->size);
    char *view = mmap(NULL, region->size, PROT_READ, MAP_SHARED, region->fd, 0);
    assert_true(view != MAP_FAILED);
    assert_int_equal(view[200 * KIB - 1], 'x');
    region->at[0] = 'y';
    assert_int_equal(view[0], 'y'); /* the same memory */
    assert_true(mmap(NULL, region->size, PROT_WRITE, MAP_SHARED, region->fd, 0) == MAP_FAILED);
    assert_int_equal(mprotect(view, region->size, PROT_READ | PROT_WRITE), -1);
    assert_int_equal(write(region->fd, "z", 1), -1);
    assert_int_equal(ftruncate(region->fd, 0), -1);
    assert_int_equal(ftruncate(region->fd, 100 * MIB), -1);
    assert_int_equal(errno, EPERM);
    munmap(view, region->size);
    regions_release(&regions);
}

TEST(a_region_is_used_again_when_the_last_use_is_over)
{
    regions_init(&regions, 0, 0);
    struct region *first = regions_take(&regions, 300 * KIB);
    uint32_t id = first->id;
    first->uses += 2; /* two receivers */
    regions_drop(&regions, first, 1);
    struct region *second = regions_take(&regions, 300 * KIB);
    assert_true(second != first);
    regions_drop(&regions, first, 1);
    assert_true(regions_take(&regions, 300 * KIB) != first);
    regions_drop(&regions, first, 1);
    assert_ptr_equal(regions_take(&regions, 290 * KIB), first);
    assert_int_equal(first->id, id);
    assert_int_equal(first->uses, 1);
    regions_release(&regions);
}

TEST(a_small_payload_does_not_take_a_large_region)
{
    regions_init(&regions, 0, 0);
    struct region *large = regions_take(&regions, 20 * MIB);
    regions_drop(&regions, large, 1);
    struct region *small = regions_take(&regions, 100 * KIB);
    assert_true(small != large && small->size < MIB);
    assert_ptr_equal(regions_take(&regions, 20 * MIB), large);
    regions_release(&regions);
}

TEST(what_is_in_use_has_a_limit_but_one_may_be_of_any_size)
{
    regions_init(&regions, 4 * MIB, 0);
    struct region *huge = regions_take(&regions, 10 * MIB);
    assert_non_null(huge);
    assert_null(regions_take(&regions, 100 * KIB));
    assert_null(regions_surplus(&regions)); /* none is idle */
    regions_drop(&regions, huge, 1);
    struct region *part = regions_take(&regions, 2 * MIB);
    assert_non_null(part);
    assert_ptr_equal(regions_surplus(&regions), huge);
    region_free(huge);
    assert_non_null(regions_take(&regions, 2 * MIB));
    assert_null(regions_take(&regions, 100 * KIB));
    regions_release(&regions);
}

TEST(what_is_idle_has_a_limit_and_the_oldest_goes_first)
{
    regions_init(&regions, 0, 3 * MIB);
    struct region *a = regions_take(&regions, MIB), *b = regions_take(&regions, MIB);
    struct region *c = regions_take(&regions, MIB), *d = regions_take(&regions, MIB);
    uint32_t ids[] = {a->id, b->id, c->id, d->id};
    assert_true(ids[0] && ids[0] != ids[1] && ids[1] != ids[2] && ids[2] != ids[3]);
    regions_drop(&regions, d, 1);
    regions_drop(&regions, c, 1);
    regions_drop(&regions, b, 1);
    assert_null(regions_surplus(&regions));
    regions_drop(&regions, a, 1);
    struct region *oldest = regions_surplus(&regions);
    assert_ptr_equal(oldest, a);
    region_free(oldest);
    assert_null(regions_surplus(&regions));
    assert_int_equal(regions.count, 3);
    regions_release(&regions);
}

TEST(there_are_not_more_regions_than_a_process_has_descriptors_to_spare)
{
    struct region *region = NULL;
    int count = 0;
    regions_init(&regions, 0, 0);
    while (count < 1000 && (region = regions_take(&regions, 1)))
        count++;
    assert_int_equal(count, 64);
    assert_null(region);
    regions_release(&regions);
}

TEST(a_size_that_cannot_be_had_is_none)
{
    regions_init(&regions, 0, 0);
    assert_null(regions_take(&regions, SIZE_MAX));
    assert_null(regions_take(&regions, SIZE_MAX / 2));
    assert_int_equal(regions.count, 0);
    regions_release(&regions);
}

RUN_TESTS(cmocka_unit_test(who_is_given_a_region_can_read_it_and_not_change_it),
          cmocka_unit_test(a_region_is_used_again_when_the_last_use_is_over),
          cmocka_unit_test(a_small_payload_does_not_take_a_large_region),
          cmocka_unit_test(what_is_in_use_has_a_limit_but_one_may_be_of_any_size),
          cmocka_unit_test(what_is_idle_has_a_limit_and_the_oldest_goes_first),
          cmocka_unit_test(there_are_not_more_regions_than_a_process_has_descriptors_to_spare),
          cmocka_unit_test(a_size_that_cannot_be_had_is_none))
