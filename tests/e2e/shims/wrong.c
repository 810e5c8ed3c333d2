// Flips one bit, WRONG_BIT, in one element, WRONG_INDEX, of what MPI_Allreduce and MPI_Alltoall give one rank,
// WRONG_RANK. Only exchanges of at least WRONG_COUNT elements are touched, so that an MPI's own use of them stays
// right. Preloaded into every process of a run; compiled with the mpicc of the MPI under test.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdlib.h>

static int number(const char* name, int otherwise) {
    const char* value = getenv(name);
    return value != NULL ? atoi(value) : otherwise;
}

static void spoil(void* receive, int count, MPI_Datatype type) {
    static int own_rank = -1;
    int bytes = 0;
    if (own_rank < 0) {
        PMPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
    }
    if (own_rank != number("WRONG_RANK", -1) || count < number("WRONG_COUNT", 2048)) {
        return;
    }
    PMPI_Type_size(type, &bytes);
    const int bit = number("WRONG_BIT", 0);
    ((unsigned char*)receive)[(size_t)number("WRONG_INDEX", 0) * (size_t)bytes + bit / 8] ^=
        (unsigned char)(1 << bit % 8);
}

int MPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm communicator) {
    const int result = PMPI_Allreduce(send, receive, count, type, op, communicator);
    spoil(receive, count, type);
    return result;
}

int MPI_Alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
                 MPI_Datatype receive_type, MPI_Comm communicator) {
    const int result = PMPI_Alltoall(send, send_count, send_type, receive, receive_count, receive_type, communicator);
    spoil(receive, receive_count, receive_type);
    return result;
}
