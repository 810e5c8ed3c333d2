# Starts a program with the stack on the nodes of the job: sbatch run.sh PROGRAM [ARGUMENTS]. Without one: nccl-tests.
# SRUN_OPTIONS: more words for srun, such as --cpus-per-task=72 --mpi=pmix.

# shellcheck source=/dev/null
. ./load.sh

program=("$@")
if ((${#program[@]} == 0)) && [[ -n $nccl_tests ]]; then
    program=("$nccl_tests" -b 32K -e 8G -f 2 -g 1)
fi
if ((${#program[@]} == 0)); then
    printf 'error: no program is named, and no nccl-tests with MPI was adopted\nhint: sbatch run.sh PROGRAM [ARGUMENTS]\n' >&2
    exit 2
fi
read -r -a more <<<"${SRUN_OPTIONS:-}"
srun --ntasks-per-node="$ranks_per_node" "${srun_options[@]}" "${more[@]}" "${program[@]}"
