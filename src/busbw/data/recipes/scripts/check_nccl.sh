# Proves what the recipe promises, over NODES nodes (2) of the job this runs in, or over HOSTS (a host file or a list).
# RUN_OPTIONS: more words for `busbw run`. Exit code 0: proven; 1: not proven.

# shellcheck source=/dev/null
. ./load.sh

nodes=${NODES:-2}
where=(--nodes "$nodes")
if [[ -n ${HOSTS:-} ]]; then
    where=(--hosts "$HOSTS")
elif [[ $nodes == 1 ]]; then
    where=()
    run_options=()
fi
read -r -a more <<<"${RUN_OPTIONS:-}"
on_platform=()
if [[ -n $platform ]]; then
    on_platform=(--platform "$platform")
fi
if [[ -n $container_image ]]; then
    runtime=apptainer
    command -v apptainer >/dev/null || runtime=singularity
    run_options+=(--container "$runtime" --image "$PWD/$container_image")
fi
result=$(mktemp -d "$PWD/check.XXXXXX")

# 1 and 4 of busbw run are verdicts on what was measured; judge gives them below, with the platform in mind.
measure() {
    local code=0
    NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH \
        busbw run all_reduce --backend native-nccl "${where[@]}" "${run_options[@]}" \
        -b 1M -e 1G -f 4 --time-limit 120 --out "$result/run" "${more[@]}" || code=$?
    if [[ $code == 1 || $code == 4 ]]; then
        code=0
    fi
    return "$code"
}

# Prints the first line of NCCL that matches; 1 where none does.
logged() {
    grep -E -m 1 -e "$1" "$result/nccl.log"
}

no_sockets() {
    logged 'Using network ' && ! logged 'Using network Socket'
}

prove "all_reduce runs" measure
if ((${#unproven[@]} > 0)); then
    conclude || exit
fi
cat "$result"/run/raw/launcher.*.std* >"$result/nccl.log"

if [[ -n $nccl_version ]]; then
    prove "NCCL $nccl_version is what ran" logged "NCCL version ${nccl_version//./[.]}([^0-9.]|\$)"
else
    prove "NCCL says which version ran" logged 'NCCL version [0-9]'
fi
if [[ -n $network ]]; then
    prove "the network is $network" logged "Using network $network"
elif [[ $nodes == 1 ]]; then
    printf '\n== the network\nnot used by one node: NODES=2 proves it\n'
else
    prove "the network is not TCP" no_sockets
fi
if declare -F prove_adopted >/dev/null; then
    prove_adopted
fi
prove "NCCL's log has no complaint" busbw doctor "${on_platform[@]}" "$result/nccl.log"
if [[ -n $platform ]]; then
    printf '\n== what is possible at best\n'
    busbw limit --platform "$platform" --nodes "$nodes" --collective all_reduce || true
fi
prove "the bandwidth is what it should be" busbw judge "$result/run" "${on_platform[@]}"
printf '\nmeasured: %s\n' "$result"
conclude
