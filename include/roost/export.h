/* export.h - which symbols the shared library shows: those marked ROOST_API, no others. */
#ifndef ROOST_EXPORT_H
#define ROOST_EXPORT_H

#if defined(__GNUC__)
#define ROOST_API __attribute__((visibility("default")))
#define ROOST_MUST_USE __attribute__((warn_unused_result))
#else
#define ROOST_API
#define ROOST_MUST_USE
#endif

/* Ranks and counts are int32_t; this is the largest rank. */
#define ROOST_RANK_MAX INT32_C(2147483647)

#endif
