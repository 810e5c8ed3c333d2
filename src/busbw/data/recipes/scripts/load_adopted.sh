
# What was adopted goes before every other of its name.
load_adopted() {
    local folder
    for folder in "${library_path[@]}"; do
        if [[ ! -d $folder ]]; then
            printf 'error: there is no %s on %s\n' "$folder" "$(uname -n)" >&2
            return 1
        fi
    done
    if ((${#library_path[@]} > 0)); then
        folder=$(IFS=:; printf %s "${library_path[*]}")
        export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    fi
    if [[ -n $net_plugin ]]; then
        export NCCL_NET_PLUGIN=$net_plugin
    fi
}
load_adopted || return 1
unset -f load_adopted
