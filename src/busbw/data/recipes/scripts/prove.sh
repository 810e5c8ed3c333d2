
unproven=()

# prove WHAT COMMAND...: runs the command and remembers whether it failed.
prove() {
    local what=$1 code=0
    shift
    printf '\n== %s\n' "$what"
    "$@" || code=$?
    if ((code != 0)); then
        printf 'not proven: exit code %d\n' "$code"
        unproven+=("$what")
    fi
}

# Says what was not proven, and fails where there is anything.
conclude() {
    if ((${#unproven[@]} > 0)); then
        printf '\nnot proven:\n'
        printf '  %s\n' "${unproven[@]}"
        return 1
    fi
    printf '\nproven\n'
}
