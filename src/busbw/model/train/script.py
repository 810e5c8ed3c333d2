"""The job of a training run for Slurm: its script, the CPUs of each process in both ways, and what was found in it."""

from busbw.base.value import Integer, Value
from busbw.model.finding import Checked
from busbw.model.launch import LaunchLine


class CpuMasks(Value, kw_only=True, frozen=True):
    """One way to give the processes of a node their CPUs, as srun's --cpu-bind=mask_cpu takes it."""

    # As `--cpus` of `busbw launch`.
    sharing: str
    cpus_each: Integer
    # For srun's mask_cpu, one for each process.
    masks: tuple[str, ...]
    why: str
    chosen: bool


class TrainScript(Value, kw_only=True, frozen=True):
    """What `busbw train script` made."""

    schema: Integer = 1
    workload: str
    platform: str
    gpus: Integer
    nodes: Integer
    dtype: str
    # Where it lies, and what submits it.
    directory: str
    submit: str
    line: LaunchLine
    # Variables that the program's own scripts read.
    environment: tuple[tuple[str, str], ...]
    masks: tuple[CpuMasks, ...]
    # What `busbw env lint` says of the job's script.
    checked: Checked
