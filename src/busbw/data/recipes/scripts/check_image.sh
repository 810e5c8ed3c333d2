# Proves that the stack in an image is what runs, over the nodes of this job. The image needs no busbw: nccl-tests in it is
# what is measured. PROGRAM: another all_reduce_perf, built with MPI, as the image sees it. SRUN_OPTIONS: more words for srun.
# Exit code 0: proven; 1: not proven.

# shellcheck source=/dev/null
. ./load.sh

program=${PROGRAM:-$nccl_tests}
read -r -a more <<<"${SRUN_OPTIONS:-}"
result=$(mktemp -d "$PWD/check.XXXXXX")
inside=()
options=()
if [[ $container_image == *.sqsh || $container_image == *.squashfs ]]; then
    options=(--container-image="$container_image")
    if ((${#mounts[@]} > 0)); then
        options+=(--container-mounts="$(IFS=,; printf %s "${mounts[*]}")")
    fi
else
    runtime=apptainer
    command -v apptainer >/dev/null || runtime=singularity
    inside=("$runtime" exec --nv)
    for mount in "${mounts[@]}"; do
        inside+=(--bind "$mount")
    done
    inside+=("$container_image")
fi

# in_image RANKS COMMAND...: starts so many on every node of the job.
in_image() {
    local ranks=$1
    shift
    srun --ntasks-per-node="$ranks" "${srun_options[@]}" "${more[@]}" "${options[@]}" "${inside[@]}" "$@"
}

# Prints what the loader in the image does not find.
nothing_missing() {
    # shellcheck disable=SC2016 # the shell in the image expands it
    in_image 1 sh -c 'for file; do
        test -e "$file" || { echo "$(uname -n): there is no $file"; exit 1; }
        if ldd "$file" 2>/dev/null | grep -F "not found"; then echo "$(uname -n): $file"; exit 1; fi
    done' sh "${inside_files[@]}"
}

measure() {
    if [[ -z $program ]]; then
        printf 'there is no nccl-tests with MPI in the image\nhint: PROGRAM=/path/in/the/image/all_reduce_perf sbatch check.sh\n'
        return 1
    fi
    NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH \
        in_image "$ranks_per_node" "$program" -b 1M -e 1G -f 4 -g 1 >"$result/nccl.log" 2>&1 || {
        tail -n 20 -- "$result/nccl.log"
        return 1
    }
}

# Prints the first line of NCCL that matches; 1 where none does.
logged() {
    grep -E -m 1 -e "$1" "$result/nccl.log"
}

prove "every node finds what the files in the image need" nothing_missing
prove "all_reduce runs in the image" measure
if [[ -s $result/nccl.log ]]; then
    if [[ -n $nccl_version ]]; then
        prove "NCCL $nccl_version is what ran" logged "NCCL version ${nccl_version//./[.]}([^0-9.]|\$)"
    fi
    if [[ -n $network ]]; then
        prove "the network is $network" logged "Using network $network"
    fi
    if [[ -n $plugin_version ]]; then
        prove "the plug-in is aws-ofi-nccl $plugin_version" logged "aws-ofi-nccl (git-)?${plugin_version//./[.]}([^0-9.]|\$)"
    fi
    if [[ -n $provider ]]; then
        prove "libfabric's provider is $provider" logged "[Ss]elected [Pp]rovider is ${provider}([^a-z0-9]|\$)"
    fi
    prove "NCCL's log has no complaint" busbw doctor --platform "$platform" "$result/nccl.log"
    prove "the bandwidth is what it should be" busbw judge "$result/nccl.log" --platform "$platform"
fi
printf '\nmeasured: %s\n' "$result"
conclude
