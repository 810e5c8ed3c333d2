/* Fixed work on every CPU given, for some seconds: what busbw's test of noise is held against. No part of busbw.
 *
 *     cc -O3 -pthread -o fwq fwq.c && ./fwq SECONDS CPU...
 *
 * Prints a line for each CPU: its number, repeats, share of the time lost against the least, median and maximum (ns).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile uint64_t sink;
static uint64_t rounds = 100000;
static double seconds;
static pthread_barrier_t start;

struct cpu {
    int number;
    size_t repeats, room;
    uint32_t* took;
};

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void work(void) {
    uint64_t v = sink;
    for (uint64_t i = 0; i < rounds; ++i)
        v = v * 6364136223846793005ULL + 1442695040888963407ULL;
    sink = v;
}

static void* run(void* given) {
    struct cpu* c = given;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(c->number, &set);
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0)
        exit(2);
    pthread_barrier_wait(&start);
    int64_t end = now() + (int64_t)(seconds * 1e9);
    while (c->repeats < c->room) {
        int64_t before = now();
        work();
        int64_t after = now();
        c->took[c->repeats++] = (uint32_t)(after - before);
        if (after >= end)
            break;
    }
    return NULL;
}

static int ascending(const void* a, const void* b) {
    uint32_t x = *(const uint32_t*)a, y = *(const uint32_t*)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char** argv) {
    if (argc < 3)
        return 2;
    seconds = atof(argv[1]);
    int64_t least = INT64_MAX;
    for (int i = 0; i < 50; ++i) {
        int64_t before = now();
        work();
        int64_t took = now() - before;
        if (took < least)
            least = took;
    }
    rounds = (uint64_t)(1e5 / ((double)least / 1e5));
    int count = argc - 2;
    struct cpu* cpus = calloc((size_t)count, sizeof *cpus);
    pthread_t* threads = calloc((size_t)count, sizeof *threads);
    pthread_barrier_init(&start, NULL, (unsigned)count);
    for (int i = 0; i < count; ++i) {
        size_t room = (size_t)(seconds * 1e9 / 1e5) * 2 + 16;
        cpus[i] = (struct cpu){atoi(argv[i + 2]), 0, room, calloc(room, sizeof(uint32_t))};
        pthread_create(&threads[i], NULL, run, &cpus[i]);
    }
    for (int i = 0; i < count; ++i) {
        struct cpu* c = &cpus[i];
        pthread_join(threads[i], NULL);
        qsort(c->took, c->repeats, sizeof *c->took, ascending);
        double total = 0;
        for (size_t j = 0; j < c->repeats; ++j)
            total += c->took[j];
        printf("%d %zu %.6f %u %u\n", c->number, c->repeats, 1 - (double)c->repeats * c->took[0] / total,
               c->took[c->repeats / 2], c->took[c->repeats - 1]);
    }
    return 0;
}
