/* A libnccl.so.2 with a fault planted in ncclAllReduce; everything else is the real library's, which this is linked to.
   BUSBW_FAULT: wrong (a byte of the result), sleep (200 us before one call in twenty), exit, hang. BUSBW_FAULT_RANK: on
   which rank. BUSBW_FAULT_CALL: from which call on, counted from 1. Built by tests/gpu/conftest.py with REAL set. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int (*all_reduce)(const void*, void*, size_t, int, int, void*, void*);
typedef int (*set_bytes)(unsigned long long, unsigned char, size_t, void*);

static int is_mine(void) {
    const char* rank = getenv("OMPI_COMM_WORLD_RANK");
    const char* fault = getenv("BUSBW_FAULT_RANK");
    if (rank == NULL) {
        rank = getenv("RANK");
    }
    return rank != NULL && fault != NULL && strcmp(rank, fault) == 0;
}

int ncclAllReduce(const void* from, void* into, size_t count, int type, int operation, void* comm, void* stream) {
    static all_reduce real;
    static set_bytes set;
    static long calls;
    static long first;
    static const char* fault;
    if (real == NULL) {
        real = (all_reduce)dlsym(dlopen(REAL, RTLD_NOW | RTLD_NOLOAD), "ncclAllReduce");
        set = (set_bytes)dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemsetD8Async");
        fault = is_mine() ? getenv("BUSBW_FAULT") : NULL;
        first = getenv("BUSBW_FAULT_CALL") != NULL ? atol(getenv("BUSBW_FAULT_CALL")) : 1;
    }
    calls += 1;
    if (fault == NULL || calls < first) {
        return real(from, into, count, type, operation, comm, stream);
    }
    if (strcmp(fault, "exit") == 0) {
        _exit(7);
    }
    if (strcmp(fault, "hang") == 0) {
        for (;;) {
            pause();
        }
    }
    if (strcmp(fault, "sleep") == 0 && calls % 20 == 0) {
        usleep(200);
    }
    int result = real(from, into, count, type, operation, comm, stream);
    if (strcmp(fault, "wrong") == 0) {
        set((unsigned long long)into + 5, 0x55, 1, stream);
    }
    return result;
}
