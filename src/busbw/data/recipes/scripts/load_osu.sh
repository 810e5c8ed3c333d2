
# The programs that build.sh has installed.
load_osu() {
    local folder
    for folder in "$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"/osu/libexec/osu-micro-benchmarks/mpi/*/; do
        export PATH=${folder%/}:$PATH
    done
}
load_osu
unset -f load_osu
