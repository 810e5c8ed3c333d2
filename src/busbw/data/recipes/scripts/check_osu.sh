# Proves that the OSU benchmarks run over this MPI, between NODES nodes (2) of the job this runs in, or over HOSTS.
# RUN_OPTIONS: more words for `busbw run`. Exit code 0: proven; 1: not proven.

# shellcheck source=/dev/null
. ./load.sh

nodes=${NODES:-2}
where=(--nodes "$nodes" --ranks-per-node 1)
if [[ -n ${HOSTS:-} ]]; then
    where=(--hosts "$HOSTS" --ranks-per-node 1)
elif [[ $nodes == 1 ]]; then
    where=(--ranks 2)
    run_options=()
fi
read -r -a more <<<"${RUN_OPTIONS:-}"
result=$(mktemp -d "$PWD/check.XXXXXX")

programs_have_mpi() {
    local program libraries
    program=$(find "$PWD/osu" -type f -name osu_latency -print -quit)
    libraries=$(ldd "$program")
    grep -F -e libmpi <<<"$libraries"
}

# 4: no expectation is published; that both programs ran between the ranks is what is to be proven.
measure() {
    local code=0
    busbw run latency bandwidth --backend osu --bin "$PWD/osu" "${where[@]}" "${run_options[@]}" \
        --out "$result/run" "${more[@]}" || code=$?
    if [[ $code == 4 ]]; then
        code=0
    fi
    return "$code"
}

prove "the programs are linked with an MPI" programs_have_mpi
prove "latency and bandwidth between two ranks" measure
printf '\nmeasured: %s\n' "$result"
conclude
