
# HPC-X from modules, or from the folder HPCX_HOME that it was unpacked to: its MPI, UCX and plug-in of NCCL.
load_hpcx() {
    local strict=$-
    set +eu
    # shellcheck source=/dev/null
    . "$HPCX_HOME/hpcx-init.sh" && hpcx_load
    local code=$?
    if [[ $strict == *e* ]]; then set -e; fi
    if [[ $strict == *u* ]]; then set -u; fi
    return "$code"
}
if ((${#modules[@]} == 0)); then
    if [[ ! -r ${HPCX_HOME:-}/hpcx-init.sh ]]; then
        printf 'error: HPCX_HOME is not the folder of HPC-X, with its hpcx-init.sh\n' >&2
        return 1
    fi
    load_hpcx || return 1
fi
unset -f load_hpcx
