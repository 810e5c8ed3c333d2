# Proves that the OSU benchmarks in the image run between two nodes of the job this runs in.
# MPI_START: what srun starts the MPI of the image with (pmix). Exit code 0: proven; 1: not proven.

# shellcheck source=/dev/null
. ./load.sh

runtime=apptainer
command -v apptainer >/dev/null || runtime=singularity
result=$(mktemp -d "$PWD/check.XXXXXX")

# osu PROGRAM...: one rank on each of two nodes, which busbw then reads and holds against each other.
osu() {
    srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --mpi="${MPI_START:-pmix}" "$runtime" exec --nv "$PWD/$container_image" "$@" \
        | tee "$result/$1.txt"
}

# Two programs of one rank each would print two tables, and neither is of a network.
one_table() {
    [[ $(grep -c -e '^# OSU MPI' "$result/$1.txt") == 1 ]]
}

for program in osu_latency osu_bw; do
    prove "$program runs between two nodes" osu "$program"
    prove "$program ran once, over two ranks" one_table "$program"
done
prove "busbw reads the result" busbw import "$result" -o "$result.import"
printf '\nmeasured: %s\n' "$result"
conclude
