# Installs NVIDIA's package of NCCL with the system's package manager, as root, on each node. NVIDIA's repository must be
# set up: see NVIDIA's installation guide of NCCL.

# Prints the newest of the versions on standard input that is the release asked for.
pick() {
    grep -E -e "^([0-9]+:)?${nccl_version//./[.]}-[0-9]+[+]cuda${cuda//./[.]}([^0-9]|\$)" | sort -V | tail -n 1
}

if command -v apt-get >/dev/null; then
    apt-get update
    there=$(apt-cache madison libnccl2 | cut -d '|' -f 2 | tr -d ' ')
    version=$(pick <<<"$there" || true)
    install=(apt-get install -y "libnccl2=$version")
elif command -v dnf >/dev/null; then
    there=$(dnf --quiet --showduplicates list libnccl | tr -s ' ' | cut -d ' ' -f 2)
    version=$(pick <<<"$there" || true)
    install=(dnf install -y "libnccl-$version")
else
    printf 'error: neither apt-get nor dnf is here\n' >&2
    exit 1
fi
if [[ -z $version ]]; then
    printf 'error: no repository has NCCL %s for CUDA %s; there is:\n%s\n' "$nccl_version" "$cuda" "$there" >&2
    exit 1
fi
"${install[@]}"
