# Under sbatch this is a copy somewhere else, and the folder is where the job was submitted.
here=$(dirname -- "${BASH_SOURCE[0]}")
if [[ ! -e $here/load.sh ]]; then
    here=${SLURM_SUBMIT_DIR:-$PWD}
fi
cd -- "$here"
