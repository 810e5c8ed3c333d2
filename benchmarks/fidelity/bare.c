/* What a C programmer would write to time one exchange: a barrier, then calls back to back, again and again.
 * usage: bare latency|message_rate|all_reduce|alltoall SIZE_BYTES REPEATS
 * As many calls a repeat as fit into 0.5 ms, at most 1000: busbw's own rule, so that both meet the machine's noise
 * alike. Prints one line: the median over the repeats of the mean time of one exchange, in nanoseconds (half a round
 * trip for latency, one message of a window of 64 for message_rate), averaged over the ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { window = 64 };

/* A window of messages under way at once, and an answer when all have come. */
static void messages(char* memory, int size, int peer, int sends) {
    MPI_Request requests[window];
    char answer[4] = {0};
    for (int message = 0; message < window; ++message) {
        if (sends)
            MPI_Isend(memory, size, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[message]);
        else
            MPI_Irecv(memory, size, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[message]);
    }
    MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
    if (sends)
        MPI_Recv(answer, sizeof answer, MPI_BYTE, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(answer, sizeof answer, MPI_BYTE, peer, 2, MPI_COMM_WORLD);
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static int ascending(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

/* Memory as busbw gets it: what differs must be the loop. */
static void* buffer(size_t size) {
    void* memory = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        exit(1);
    memset(memory, 0, size);
    return memory;
}

static int calls_for(double call_ns) {
    const double calls = 0.5e6 / call_ns + 0.5;
    return calls < 1 ? 1 : calls > 1000 ? 1000 : (int)calls;
}

int main(int argc, char** argv) {
    if (argc != 4)
        return 2;
    const char* kind = argv[1];
    const int size = atoi(argv[2]), repeats = atoi(argv[3]);
    int rank, ranks, calls = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    /* As busbw does: no buffer is smaller than 1 MiB. */
    const size_t room = size < 1 << 20 ? 1 << 20 : size;
    char *out = buffer(room), *in = buffer(room);
    double* times = malloc(repeats * sizeof *times);
    const int peer = rank < ranks / 2 ? rank + ranks / 2 : rank - ranks / 2;
    const int messages_a_call = !strcmp(kind, "latency") ? 2 : !strcmp(kind, "message_rate") ? window : 1;
    const int floats = size / 4, part = size / 4 / ranks;
    for (int repeat = -20; repeat < repeats; ++repeat) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = now_ns();
        if (!strcmp(kind, "latency")) {
            for (int call = 0; call < calls; ++call) {
                if (rank < ranks / 2) {
                    MPI_Send(out, floats, MPI_FLOAT, peer, 1, MPI_COMM_WORLD);
                    MPI_Recv(in, floats, MPI_FLOAT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                } else {
                    MPI_Recv(in, floats, MPI_FLOAT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                    MPI_Send(out, floats, MPI_FLOAT, peer, 1, MPI_COMM_WORLD);
                }
            }
        } else if (!strcmp(kind, "message_rate")) {
            for (int call = 0; call < calls; ++call)
                messages(rank < ranks / 2 ? out : in, size, peer, rank < ranks / 2);
        } else if (!strcmp(kind, "all_reduce")) {
            for (int call = 0; call < calls; ++call)
                MPI_Allreduce(out, in, floats, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        } else {
            for (int call = 0; call < calls; ++call)
                MPI_Alltoall(out, part, MPI_FLOAT, in, part, MPI_FLOAT, MPI_COMM_WORLD);
        }
        const double mine = (now_ns() - start) / calls;
        double total = 0;
        MPI_Allreduce(&mine, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (repeat == -2)
            calls = calls_for(total / ranks);
        if (repeat >= 0)
            times[repeat] = total / ranks / messages_a_call;
    }
    qsort(times, repeats, sizeof *times, ascending);
    if (rank == 0)
        printf("%.3f\n", times[repeats / 2]);
    MPI_Finalize();
    return 0;
}
