# Builds the OSU micro-benchmarks into the folder osu, from their makers' release, with the MPI at hand.
# CUDA_HOME: with buffers on GPUs. An archive that lies here already is taken.

# shellcheck source=/dev/null
. ./load.sh

archive=osu-micro-benchmarks-$release.tar.gz
if [[ ! -e $archive ]]; then
    curl --fail --silent --show-error --location --output "$archive" \
        "https://mvapich.cse.ohio-state.edu/download/mvapich/$archive"
fi
sha256sum --check --strict <<<"$sha256  $archive"

options=(CC="$cc" CXX="$cxx" --prefix="$PWD/osu")
if [[ -n ${CUDA_HOME:-} ]]; then
    options+=(--enable-cuda --with-cuda="$CUDA_HOME")
    if [[ -n $cuda_arch ]]; then
        options+=("NVCCFLAGS=-gencode=arch=compute_$cuda_arch,code=sm_$cuda_arch")
    fi
fi
rm -rf -- source osu
mkdir -- source
tar -xf "$archive" -C source --strip-components=1
cd source
./configure "${options[@]}"
make -j "$(nproc)"
make install
