# Installs NVIDIA's wheel of NCCL into the folder env beside this script; from the folder wheelhouse where there is one.
# PYTHON: the Python to use (python3).
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"

from=()
if [[ -d wheelhouse ]]; then
    from=(--no-index --find-links wheelhouse)
fi
"${PYTHON:-python3}" -m venv env
env/bin/python -m pip install --disable-pip-version-check --only-binary :all: "${from[@]}" "$wheel==$nccl_version"

# The library is asked itself: it opens without a GPU.
env/bin/python - "$nccl_version" <<'END'
import ctypes, glob, sys

asked = sys.argv[1]
major, minor, patch = (int(part) for part in asked.split(".")[:3])
found = glob.glob(sys.prefix + "/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2")
if len(found) != 1:
    sys.exit(f"error: {len(found)} libnccl.so.2 were installed, not one")
code = ctypes.c_int()
ctypes.CDLL(found[0]).ncclGetVersion(ctypes.byref(code))
if code.value != major * 10000 + minor * 100 + patch:
    sys.exit(f"error: {found[0]} says version {code.value}, and {asked} was asked for")
print(f"NCCL {asked}: {found[0]}")
END
