# Starts a program in the image on every node of the job, once: sbatch run.sh PROGRAM [ARGUMENTS]
# SRUN_OPTIONS: more words for srun, such as --ntasks-per-node=4 --mpi=pmix.

# shellcheck source=/dev/null
. ./load.sh

if (($# == 0)); then
    printf 'error: no program is named\nhint: sbatch run.sh PROGRAM [ARGUMENTS]\n' >&2
    exit 2
fi
read -r -a more <<<"${SRUN_OPTIONS:-}"
runtime=apptainer
command -v apptainer >/dev/null || runtime=singularity
# What a container does not see by itself: NCCL's settings, and the topology file that they name.
for file in /etc/nccl.conf "${NCCL_TOPO_FILE:-}"; do
    if [[ -f $file ]]; then
        binds+=(--bind "$file:$file:ro")
    fi
done
srun --ntasks-per-node=1 "${srun_options[@]}" "${more[@]}" \
    "$runtime" exec --nv "${binds[@]}" "$PWD/$container_image" "$@"
