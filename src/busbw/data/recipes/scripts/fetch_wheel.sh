# Fetches the wheel into the folder wheelhouse: run it on a machine with network, and bring the folder over.
# ARCH: the processor of the machine it is for (this one's). PYTHON: the Python to use (python3).
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"

arch=${ARCH:-$(uname -m)}
"${PYTHON:-python3}" -m pip download --disable-pip-version-check --no-deps --only-binary :all: --dest wheelhouse \
    --platform "manylinux2014_$arch" --platform "manylinux_2_18_$arch" --platform "manylinux_2_27_$arch" \
    "$wheel==$nccl_version"
