/* The loops of benchmarks/fidelity/bare.c as functions, to be called by turns with busbw's in the same two processes.
 * Each returns what half a round trip, or one message of a window of 64, takes in nanoseconds on this rank. */
#include <mpi.h>
#include <time.h>

enum { window = 64 };

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static int rank_here(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

double latency(char* out, char* in, int size, int calls) {
    const int rank = rank_here(), peer = 1 - rank;
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now_ns();
    for (int call = 0; call < calls; ++call) {
        if (rank == 0) {
            MPI_Send(out, size, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
            MPI_Recv(in, size, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, size, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, size, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
        }
    }
    return (now_ns() - start) / calls / 2;
}

double message_rate(char* out, char* in, int size, int calls) {
    const int rank = rank_here(), peer = 1 - rank;
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now_ns();
    for (int call = 0; call < calls; ++call) {
        MPI_Request requests[window];
        char answer[4] = {0};
        for (int message = 0; message < window; ++message) {
            if (rank == 0)
                MPI_Isend(out, size, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[message]);
            else
                MPI_Irecv(in, size, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[message]);
        }
        MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
        if (rank == 0)
            MPI_Recv(answer, sizeof answer, MPI_BYTE, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(answer, sizeof answer, MPI_BYTE, peer, 2, MPI_COMM_WORLD);
    }
    return (now_ns() - start) / calls / window;
}
