# Builds the image osu.sif from image.def: the OSU micro-benchmarks from their makers' release, with the MPI of the image.
if [[ -e $container_image ]]; then
    printf 'error: %s is there already\n' "$container_image" >&2
    exit 1
fi
archive=osu-micro-benchmarks-$release.tar.gz
if [[ ! -e $archive ]]; then
    curl --fail --silent --show-error --location --output "$archive" \
        "https://mvapich.cse.ohio-state.edu/download/mvapich/$archive"
fi
sha256sum --check --strict <<<"$sha256  $archive"
cp -- "$archive" osu.tar.gz
runtime=apptainer
command -v apptainer >/dev/null || runtime=singularity
"$runtime" build --fakeroot "$container_image" image.def
