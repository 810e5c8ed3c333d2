# Starts a program in the image on the nodes of the job: sbatch run.sh PROGRAM [ARGUMENTS].
# SRUN_OPTIONS: more words for srun, such as --ntasks-per-node=4 --mpi=pmix.

# shellcheck source=/dev/null
. ./load.sh

if (($# == 0)); then
    printf 'error: no program is named\nhint: sbatch run.sh PROGRAM [ARGUMENTS]\n' >&2
    exit 2
fi
read -r -a more <<<"${SRUN_OPTIONS:-}"
if [[ $container_image == *.sqsh || $container_image == *.squashfs ]]; then
    options=(--container-image="$container_image")
    if ((${#mounts[@]} > 0)); then
        options+=(--container-mounts="$(IFS=,; printf %s "${mounts[*]}")")
    fi
    srun --ntasks-per-node=1 "${srun_options[@]}" "${more[@]}" "${options[@]}" "$@"
    exit
fi
runtime=apptainer
command -v apptainer >/dev/null || runtime=singularity
inside=("$runtime" exec --nv)
for mount in "${mounts[@]}"; do
    inside+=(--bind "$mount")
done
srun --ntasks-per-node=1 "${srun_options[@]}" "${more[@]}" "${inside[@]}" "$container_image" "$@"
