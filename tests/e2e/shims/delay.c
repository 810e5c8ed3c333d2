// Delays MPI_Allreduce on one rank: DELAY_RANK, in DELAY_PER_CENT of its calls, by DELAY_US microseconds.
// DELAY_HOW is "sleep" (the processor is given away) or "spin" (it is kept); DELAY_WHEN is "before" or "after" the
// call. Preloaded into every process of a run; compiled with the mpicc of the MPI under test.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char* setting(const char* name, const char* otherwise) {
    const char* value = getenv(name);
    return value != NULL ? value : otherwise;
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void wait_ns(int64_t duration_ns) {
    if (strcmp(setting("DELAY_HOW", "sleep"), "sleep") == 0) {
        const struct timespec pause = {0, duration_ns};
        nanosleep(&pause, NULL);
        return;
    }
    const int64_t ends_ns = now_ns() + duration_ns;
    while (now_ns() < ends_ns) {
    }
}

// Whether this call is one of those to delay. The seed is fixed: every run delays the same calls.
static int is_chosen(void) {
    static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % 100 < strtoull(setting("DELAY_PER_CENT", "5"), NULL, 10);
}

int MPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm communicator) {
    static int own_rank = -1;
    if (own_rank < 0) {
        PMPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
    }
    const int delayed = own_rank == atoi(setting("DELAY_RANK", "-1")) && is_chosen();
    const int64_t duration_ns = 1000 * strtoll(setting("DELAY_US", "200"), NULL, 10);
    const int before = strcmp(setting("DELAY_WHEN", "before"), "before") == 0;
    if (delayed && before) {
        wait_ns(duration_ns);
    }
    const int result = PMPI_Allreduce(send, receive, count, type, op, communicator);
    if (delayed && !before) {
        wait_ns(duration_ns);
    }
    return result;
}
