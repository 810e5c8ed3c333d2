
# shellcheck source=/dev/null
if [[ -e $(dirname -- "${BASH_SOURCE[0]}")/env_vars.sh ]]; then
    . "$(dirname -- "${BASH_SOURCE[0]}")/env_vars.sh"
fi
