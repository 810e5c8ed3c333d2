
# Module systems, and the files of their modules, name variables that are not set.
load_modules() {
    local strict=$- file module code=0
    set +eu
    for file in /etc/profile.d/lmod.sh /etc/profile.d/modules.sh /usr/share/lmod/lmod/init/bash; do
        if ! command -v module >/dev/null && [[ -r $file ]]; then
            # shellcheck source=/dev/null
            . "$file"
        fi
    done
    for module in "$@"; do
        module load "$module"
        # What `module load` returns differs between module systems.
        case :${LOADEDMODULES:-}: in
            *:"$module":* | *:"$module"/*) ;;
            *)
                printf 'error: the module %s was not loaded\n' "$module" >&2
                code=1
                ;;
        esac
    done
    if [[ $strict == *e* ]]; then set -e; fi
    if [[ $strict == *u* ]]; then set -u; fi
    return "$code"
}
load_modules "${modules[@]}" || return 1
unset -f load_modules
