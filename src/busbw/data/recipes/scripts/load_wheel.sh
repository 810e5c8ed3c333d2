
# NCCL of the folder `env` goes before every other.
load_wheel() {
    local folder
    for folder in "$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"/env/lib/python3*/site-packages/nvidia/nccl/lib; do
        if [[ -e $folder/libnccl.so.2 ]]; then
            export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
            return
        fi
    done
    printf 'error: there is no NCCL in the folder env\nhint: bash install.sh\n' >&2
    return 1
}
load_wheel || return 1
unset -f load_wheel
