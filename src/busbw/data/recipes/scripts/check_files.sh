
# Compares what was examined, "SIZE PATH" each, with what is here.
same_files() {
    local line code=0
    for line in "${examined[@]}"; do
        if [[ $(stat -L -c %s -- "${line#* }" 2>/dev/null) != "${line%% *}" ]]; then
            printf '%s: %s is not as it was examined\n' "$(uname -n)" "${line#* }"
            code=1
        fi
    done
    return "$code"
}

# Prints what the loader does not find on this host, of what was examined.
nothing_missing() {
    local line missing code=0
    for line in "${examined[@]}"; do
        if missing=$(ldd "${line#* }" 2>/dev/null | grep -F 'not found'); then
            printf '%s: %s\n%s\n' "$(uname -n)" "${line#* }" "$missing"
            code=1
        fi
    done
    return "$code"
}

# Starts a function once on every node of the job; outside of a job, here.
on_every_node() {
    local text
    text="$(declare -p examined); $(declare -f "$1")"
    if [[ -n ${SLURM_JOB_ID:-} ]]; then
        srun --ntasks-per-node=1 bash -c "$text; $1"
    else
        "$1"
    fi
}

# Called by the check, after the measurement: what the plug-in says of itself.
prove_adopted() {
    if [[ -n $plugin_version ]]; then
        prove "the plug-in is aws-ofi-nccl $plugin_version" logged "aws-ofi-nccl (git-)?${plugin_version//./[.]}([^0-9.]|\$)"
    fi
    if [[ -n $provider ]]; then
        prove "libfabric's provider is $provider" logged "[Ss]elected [Pp]rovider is ${provider}([^a-z0-9]|\$)"
    fi
}

# shellcheck source=/dev/null
. ./load.sh
prove "every node has the files that were examined" on_every_node same_files
prove "every node finds what they need" on_every_node nothing_missing
