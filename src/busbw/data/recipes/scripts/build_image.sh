# Builds the image busbw.sif from image.def. BUSBW_SOURCE: the source of busbw, of the version that the host has.
: "${BUSBW_SOURCE:?names the folder with the source of busbw, of the version that the host has}"
if [[ -e $container_image ]]; then
    printf 'error: %s is there already\n' "$container_image" >&2
    exit 1
fi
runtime=apptainer
command -v apptainer >/dev/null || runtime=singularity
rm -rf -- busbw-source
mkdir -- busbw-source
tar -C "$BUSBW_SOURCE" --exclude=./.git --exclude=./build -cf - . | tar -C busbw-source -xf -
"$runtime" build --fakeroot "$container_image" image.def
