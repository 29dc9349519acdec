// The signposts that the library uses, for type checks.
#pragma once
#include <stdbool.h>
#include <stdint.h>

typedef struct os_log_s* os_log_t;
typedef uint64_t os_signpost_id_t;
#define OS_SIGNPOST_ID_NULL ((os_signpost_id_t)0)
#define OS_LOG_CATEGORY_POINTS_OF_INTEREST "PointsOfInterest"

#ifdef __cplusplus
extern "C" {
#endif
os_log_t os_log_create(const char* subsystem, const char* category);
bool os_signpost_enabled(os_log_t log);
os_signpost_id_t os_signpost_id_generate(os_log_t log);
void os_signpost_stub(os_log_t log, os_signpost_id_t id, const char* name, ...);
#ifdef __cplusplus
}
#endif
// The name must be a literal.
#define os_signpost_interval_begin(log, id, name, ...) os_signpost_stub(log, id, "" name, ##__VA_ARGS__)
#define os_signpost_interval_end(log, id, name, ...) os_signpost_stub(log, id, "" name, ##__VA_ARGS__)
