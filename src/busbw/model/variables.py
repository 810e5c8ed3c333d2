"""Variables that may be kept and shown: what decides how fast an exchange is stays, all else is withheld."""

import re
from collections.abc import Iterable

# Whole families of variables that libraries of the interconnect read.
ALLOWED_PREFIXES = (
    "NCCL_", "RCCL_", "MSCCL", "TORCH_NCCL_", "UCX_", "UCC_", "HCOLL_", "SHARP_", "FI_", "OFI_NCCL_", "GDRCOPY_",
    "OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_", "I_MPI_", "MPICH_", "MV2_", "MVP_", "MPIR_CVAR_", "CRAY_", "NVSHMEM_",
    "ROC_SHMEM_", "OMP_", "KMP_", "GOMP_", "HSA_", "RDMAV_", "IBV_", "MLX4_", "MLX5_", "PSM2_", "PSM3_", "EFA_",
)  # fmt: skip
ALLOWED_NAMES = frozenset(
    {
        "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MODULE_LOADING",
        "CUDA_VERSION", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_MAX_HW_QUEUES",
        "SLURM_JOB_ID", "SLURM_JOB_NUM_NODES", "SLURM_JOB_NODELIST", "SLURM_NNODES", "SLURM_NTASKS", "SLURM_NPROCS",
        "SLURM_NTASKS_PER_NODE", "SLURM_GPUS_PER_NODE", "SLURM_CPU_BIND", "SLURM_MPI_TYPE", "WORLD_SIZE", "RANK",
        "LOCAL_RANK", "CUDA_LAUNCH_BLOCKING", "CUDA_SCALE_LAUNCH_QUEUES", "CUBLAS_WORKSPACE_CONFIG",
        "PYTORCH_CUDA_ALLOC_CONF", "TORCH_DISTRIBUTED_DEBUG", "TORCH_CPP_LOG_LEVEL", "GLOO_SOCKET_IFNAME",
        "TP_SOCKET_IFNAME", "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "HYDRA_IFACE",
        "HYDRA_BOOTSTRAP", "SLURM_GPU_BIND", "SLURM_CPUS_PER_TASK", "SLURM_GPUS_PER_TASK", "APPTAINER_CLEANENV",
        "APPTAINER_CONTAINALL", "MELLANOX_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_IMEX_CHANNELS",
        "MALLOC_ARENA_MAX", "MKL_NUM_THREADS",
    }
)  # fmt: skip
# Their names speak of keys, and mean those of memory regions and caches.
_NO_SECRETS = frozenset({"OFI_NCCL_MR_KEY_SIZE", "FI_CXI_PROV_KEY_CACHE"})
WITHHELD = "<withheld>"
# NCCL_IB_PKEY, a partition's number, is none.
_SECRET = re.compile(
    r"TOKEN|SECRET|PASSW|PWD|CREDENTIAL|PRIVATE|API_?KEY|(?:^|_)KEYS?(?:$|_)|AUTH|COOKIE|JWT|SIGNATURE", re.IGNORECASE
)
_NAMED_SECRET = re.compile(
    r"(?P<name>(?i:token|secret|passw|api[_-]?key|access[_-]?key|credential|signature)[\w-]{0,80}+)"
    r"""(?P<between>["']?\s?[:=]\s?|\s)(?P<value>"(?:[^"\\]|\\.)*+"?|'[^']*+'?|[^\s"',;]++)"""
)
_OPTION = re.compile(r"(?:^|\s)--?[\w-]{0,80}$")
# A name before the host is kept unless it is as long as a token.
_ADDRESS = re.compile(r"(?P<before>://)(?:[^/\s:@]{0,200}:[^/\s@]{1,500}|[^/\s:@]{20,500})@")
_GITHUB = re.compile(r"gh[pousr]_")
# Tokens that say by their beginning whose they are: GitHub, GitLab, Hugging Face, OpenAI and Anthropic, Slack, AWS,
# Google, NVIDIA, and JSON web tokens.
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:gh[pousr]_\w{20,300}|github_pat_\w{20,300}|glpat-[\w-]{16,300}|hf_[A-Za-z0-9]{16,300}"
    r"|sk-[\w-]{20,300}|xox[abeoprs]-[\w-]{10,300}|A(?:KIA|SIA)[A-Z0-9]{16}|AIza[\w-]{30,50}|nvapi-[\w-]{20,300}"
    r"|eyJ[\w-]{8,4000}\.[\w-]{8,4000}(?:\.[\w-]{0,4000})?)",
    re.ASCII,
)
_BEARER = re.compile(r"(?i)\b(?P<before>bearer |basic )[\w.~+/=-]{8,4000}")


def is_allowed(name: str) -> bool:
    """Whether a variable's value may be kept."""
    if name in _NO_SECRETS:
        return True
    return (name.startswith(ALLOWED_PREFIXES) or name in ALLOWED_NAMES) and _SECRET.search(name) is None


def kept(assignments: Iterable[str]) -> tuple[tuple[tuple[str, str], ...], int]:
    """Return the allowed ones of `NAME=value` texts, sorted by name, and how many were withheld."""
    found: dict[str, str] = {}
    withheld = 0
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if equals and is_allowed(name):
            found[name] = plain(value)
        else:
            withheld += 1
    return tuple(sorted(found.items())), withheld


def plain(text: str) -> str:
    """Return a text without the tokens, passwords and keys in it."""
    if "://" in text:
        text = _ADDRESS.sub(rf"\g<before>{WITHHELD}@", text)
    if _may_hold_token(text):
        text = _TOKEN.sub(WITHHELD, text)
    lower = text.lower()
    if "bearer " in lower or "basic " in lower:
        text = _BEARER.sub(rf"\g<before>{WITHHELD}", text)
    if _may_name_secret(lower):
        text = _NAMED_SECRET.sub(_named, text)
    return text


def _may_name_secret(lower: str) -> bool:
    # One by one: every line comes here, and a loop over the words takes five times as long.
    return (
        "key" in lower
        or "token" in lower
        or "secret" in lower
        or "passw" in lower
        or "credential" in lower
        or "signature" in lower
    )


def _may_hold_token(text: str) -> bool:
    """Whether one of the beginnings of tokens is in a line."""
    return (
        ("_" in text and ("hf_" in text or "github_pat_" in text))
        or ("gh" in text and _GITHUB.search(text) is not None)
        or ("-" in text and ("sk-" in text or "xox" in text or "glpat-" in text or "nvapi-" in text))
        or ("A" in text and ("AKIA" in text or "ASIA" in text or "AIza" in text))
        or "eyJ" in text
    )


def _named(match: re.Match[str]) -> str:
    # A sentence about tokens is no secret: without a sign between them, only an option takes a value.
    if match["between"].isspace() and not _OPTION.search(match.string, max(0, match.start() - 90), match.start()):
        return match[0]
    return f"{match['name']}{match['between']}{WITHHELD}"
