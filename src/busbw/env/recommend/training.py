"""Training: what a job in a container under Slurm needs beside its variables."""

from busbw.env.recommend.case import Case
from busbw.model.recommendation import LaunchAdvice, Recommended


def launch(case: Case, settings: tuple[Recommended, ...]) -> tuple[LaunchAdvice, ...]:
    """Return how the settings get into the containers of a training job."""
    if case.goal != "training" or not settings:
        return ()
    names = ",".join(each.name for each in settings)
    advice = [
        LaunchAdvice(
            option=f"srun --container-env={names}",
            reason="what the image sets for these names goes before the job's environment otherwise",
            source=("interconnect-article",),
        )
    ]
    file = next((each.value for each in settings if each.name == "NCCL_TOPO_FILE"), None)
    if file is not None:
        advice.append(
            LaunchAdvice(
                option=f"srun --container-mounts={file}",
                reason="NCCL says nothing when the file is missing in the container",
                source=("interconnect-article", "pinning-article"),
            )
        )
    return tuple(advice)
