"""The jobs whose recommendations are kept word for word."""

from typing import Any

from busbw.api.recommendations import recommendation
from busbw.model.recommendation import Recommendation

JOBS: dict[str, dict[str, Any]] = {
    "ndv5-nvlink-check": {"name": "azure-nd-h100-v5", "goal": "nvlink-check", "nccl": "2.26.5"},
    "ndv4-nvlink-check": {"name": "azure-ndv4", "goal": "nvlink-check", "nccl": "2.26.5"},
    "ndv5-nic-check": {"name": "azure-nd-h100-v5", "goal": "nic-check", "nccl": "2.26.5"},
    "ndv4-nic-check": {"name": "azure-ndv4", "goal": "nic-check", "nccl": "2.26.5"},
    "ndv5-several-nodes": {"name": "azure-nd-h100-v5", "nodes": 4, "nccl": "2.26.5"},
    "ndv5-sharp": {
        "name": "azure-nd-h100-v5",
        "nodes": 4,
        "goal": "sharp",
        "collective": "all_reduce",
        "nccl": "2.26.5",
    },
    "ndv5-pinning": {"name": "azure-nd-h100-v5", "nccl": "2.25.1", "follow": "pinning-article"},
    "ndv4-pinning": {"name": "azure-ndv4", "nccl": "2.25.1", "follow": "pinning-article"},
    "ndv5-training": {"name": "azure-nd-h100-v5", "nodes": 64, "goal": "training", "nccl": "2.26.5"},
    "ndv5-hanging-nccl": {"name": "azure-nd-h100-v5", "nccl": "2.30.3"},
    "ndv4-old-nccl": {"name": "azure-ndv4", "nccl": "2.16.2"},
    "oci-gpu4": {"name": "oci-bm-gpu4-8", "nccl": "2.32.3"},
    "oci-b4": {"name": "oci-bm-gpu-b4-8", "nccl": "2.32.3"},
    "oci-gm4-article": {"name": "oci-bm-gpu-gm4-8", "follow": "oci-article", "nccl": "2.20.5"},
    "oci-h100": {"name": "oci-bm-gpu-h100-8", "nccl": "2.32.3"},
    "isambard": {"name": "isambard-ai-phase2", "nccl": "2.27.7"},
    "isambard-cscs": {"name": "isambard-ai-phase2", "nccl": "2.27.7", "follow": "cscs-nccl"},
    "alps": {"name": "alps-gh200", "nccl": "2.28.9", "collective": "sendrecv"},
    "aws-p5": {"name": "aws-p5", "nccl": "2.32.3"},
    "coreweave-sharp": {"name": "coreweave-h100", "goal": "sharp", "nccl": "2.32.3"},
    "a3-mega-gke": {"name": "gcp-a3-mega", "follow": "gke", "nccl": "2.32.3"},
    "gb200": {"name": "gb200-nvl72", "nccl": "2.32.3", "nodes": 36},
}


def recommended(job: str) -> Recommendation:
    """Return the recommendation for one of the jobs."""
    return recommendation(**JOBS[job])
