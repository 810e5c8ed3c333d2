// Makes one rank, FAIL_RANK, end or hang in an MPI_Allreduce of FAIL_COUNT elements, the FAIL_CALL-th of them.
// FAIL_HOW is "exit" (with FAIL_CODE, past MPI_Finalize), "segv", "hang" or "spin" (for ever; FAIL_WHEN "before" or
// "after" the exchange). Preloaded into every process of a run; compiled with the mpicc of the MPI under test.
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char* setting(const char* name, const char* otherwise) {
    const char* value = getenv(name);
    return value != NULL ? value : otherwise;
}

static void fail(void) {
    const char* how = setting("FAIL_HOW", "exit");
    if (strcmp(how, "exit") == 0) {
        _exit(atoi(setting("FAIL_CODE", "0")));
    }
    if (strcmp(how, "segv") == 0) {
        // Open MPI catches the signal to print a trace; what kills for real is the default.
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
    if (strcmp(how, "spin") == 0) {
        for (volatile int turns = 0;; turns = !turns) {
        }
    }
    for (;;) {
        pause();
    }
}

int MPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm communicator) {
    static int own_rank = -1;
    static int calls = 0;
    if (own_rank < 0) {
        PMPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
    }
    calls += count == atoi(setting("FAIL_COUNT", "-1"));
    const int due = own_rank == atoi(setting("FAIL_RANK", "-1")) && calls == atoi(setting("FAIL_CALL", "1")) &&
                    count == atoi(setting("FAIL_COUNT", "-1"));
    const int before = strcmp(setting("FAIL_WHEN", "before"), "before") == 0;
    if (due && before) {
        fail();
    }
    const int result = PMPI_Allreduce(send, receive, count, type, op, communicator);
    if (due && !before) {
        fail();
    }
    return result;
}
