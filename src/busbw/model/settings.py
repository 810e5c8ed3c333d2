"""Settings: what a text or an environment sets, who said so, what that replaced, and which may be stored."""

import re
from collections.abc import Iterable
from typing import Literal, Self

from busbw.base.value import Integer, Value

# Weakest first.
Layer = Literal[
    "default", "platform", "topology", "site", "recommended", "etc_conf", "conf", "tuned", "shell", "command_line"
]  # fmt: skip


class Setting(Value, kw_only=True, frozen=True):
    """One choice for one variable."""

    name: str
    # None: make sure that it is unset.
    value: str | None
    layer: Layer
    # Who says so: a file with its line, a rule, an article.
    source: str
    # Why, in one sentence; what it costs; the conditions it holds for.
    reason: str | None = None
    cost: str | None = None
    conditions: str | None = None


# applied: set for the run; already: set so here, or unset where it should be; kept: set to something else here, which
# stays; left_out: it cannot be set in this run.
Standing = Literal["applied", "already", "kept", "left_out"]


class RecommendedSetting(Value, kw_only=True, frozen=True):
    """One recommended setting, and what became of it in a run."""

    setting: Setting
    # As model.recommendation has them.
    need: str
    topic: str
    standing: Standing
    # What is set here already; None: nothing.
    over: Setting | None = None
    # Why it was left out.
    why: str | None = None


class RecommendedLayer(Value, kw_only=True, frozen=True):
    """What is recommended for a run, as a layer under what is set on the host it was planned on."""

    platform: str
    goal: str
    nodes: Integer
    # The one that is measured; None: several.
    collective: str | None = None
    # The version of NCCL it is for.
    nccl: str
    settings: tuple[RecommendedSetting, ...] = ()
    # Beside the settings: how to start such a job, and what could not be told. Nothing of it is applied.
    advice: tuple[str, ...] = ()

    def env(self) -> dict[str, str]:
        """Return the variables that are set for the run."""
        return {
            each.setting.name: each.setting.value
            for each in self.settings
            if each.standing == "applied" and each.setting.value is not None
        }

    def standing(self, standing: Standing) -> tuple[RecommendedSetting, ...]:
        """Return those of which this became."""
        return tuple(each for each in self.settings if each.standing == standing)


class SettingsFile(Value, kw_only=True, frozen=True):
    """A settings file of NCCL as it stands on a host."""

    path: str
    # conf: what NCCL_CONF_FILE names, else .nccl.conf in the home folder; etc_conf: /etc/nccl.conf.
    layer: Literal["conf", "etc_conf"]
    text: str


class JobEnvironment(Value, kw_only=True, frozen=True):
    """What a job finds that starts on a host: its environment and the settings files NCCL reads there."""

    # In words: `this host`, `run 20261121-143012`, `host.tar`.
    where: str
    environment: dict[str, str]
    files: tuple[SettingsFile, ...] = ()
    # The version of the NCCL it would load; None: not known.
    nccl: str | None = None
    # The platform it is; None: not known. And who says so: whoever asked for the run, or a rung of model.detection.
    platform: str | None = None
    platform_from: Literal["asked", "firmware", "metadata", "hardware"] | None = None
    # What the run itself applied of what is recommended; the values are in the environment, too.
    recommended: tuple[RecommendedSetting, ...] = ()
    # Files that these settings name and that are not there; None: nobody looked.
    absent: tuple[str, ...] | None = None
    # What could not be looked at and may set something, a line each.
    unseen: tuple[str, ...] = ()


class PluginExport(Value, kw_only=True, frozen=True):
    """What a plug-in of NCCL puts into the environment when it is loaded, where nobody has set it."""

    by: str
    name: str
    # None: it depends on the machine.
    value: str | None = None
    # The platforms it is known for; empty: see `conditions`.
    platforms: tuple[str, ...] = ()
    # The first version of NCCL for which it does not.
    before: str | None = None
    reason: str | None = None
    conditions: str | None = None
    source: str


class Settings(Value, kw_only=True, frozen=True):
    """Every choice that was made, in the order in which it was made: the last one for a name is in force."""

    history: tuple[Setting, ...] = ()

    def then(self, *later: Setting) -> Self:
        """Return these settings with later choices on top."""
        return type(self)(history=(*self.history, *later))

    def explain(self, name: str) -> tuple[Setting, ...]:
        """Return every choice for `name`, the one in force first; () where nobody chose."""
        return tuple(choice for choice in reversed(self.history) if choice.name == name)

    def in_force(self) -> tuple[Setting, ...]:
        """Return the choice in force for each name, in the order in which the names first came up."""
        last = {choice.name: choice for choice in self.history}
        return tuple(last[name] for name in dict.fromkeys(choice.name for choice in self.history))

    def env(self) -> dict[str, str]:
        """Return the variables to set; those that are to be unset are left out."""
        return {choice.name: choice.value for choice in self.in_force() if choice.value is not None}


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
    if "sshpass" in lower or "login" in lower or "curl" in lower or "redis-cli" in lower:
        text = _OF_PROGRAM.sub(rf"\g<before>{WITHHELD}", text)
    if _may_name_secret(lower):
        text = _NAMED_SECRET.sub(_named, text)
    return text


# `NAME=VALUE` and `"NAME": "VALUE"`, the whole of it in quotes or the value alone, and `--name VALUE`.
_QUOTED_WHOLE = re.compile(
    r"""(?P<quote>["'])-{0,2}(?P<name>[\w.-]{1,80})[=:] ?(?P<value>(?:(?!(?P=quote)).){1,4000})(?P=quote)"""
)
_GIVEN = re.compile(
    r"""(?<![\w$.-])-{0,2}(?P<name>[A-Za-z_][\w.-]{0,80})["']?[ \t]?[=:][ \t]?(?P<value>"[^"]*"?|'[^']*'?|[^\s"',;]+)"""
)
_AFTER_OPTION = re.compile(r"""(?<!\S)--?(?P<name>[A-Za-z][\w-]{2,80})[ \t]+(?P<value>"[^"]*"?|'[^']*'?|[^\s-]\S*)""")
# Programs whose option of one letter takes a password.
_OF_PROGRAM = re.compile(
    r"""(?P<before>(?<![\w.-])(?:
        sshpass(?:[ \t]+-[^p\s]\S{0,100}){0,4}[ \t]+-p[ \t]*
        |(?:docker|podman|nerdctl|helm|buildah|skopeo)(?:[ \t]+[^\s;|&]{1,200}){0,4}?[ \t]+login
            (?:[ \t]+[^\s;|&]{1,200}){0,8}?[ \t]+-p[ \t]*
        |curl(?:[ \t]+[^\s;|&]{1,200}){0,12}?[ \t]+(?:-u|--user)[= \t]{0,4}["']?[^\s:;|&"'$]{1,100}:
        |redis-cli(?:[ \t]+[^\s;|&]{1,200}){0,8}?[ \t]+-a[ \t]+
    ))(?P<value>"[^"]*"?|'[^']*'?|[^\s"';|&$]+)""",
    re.VERBOSE,
)
_FOLDERS = {"PWD", "OLDPWD", "KEY", "KEYS"}


def masked(text: str) -> str:
    """Return a line with an asterisk for each character of a token, a password or a key, so that columns stay."""
    spans = [(found.end("before"), found.end() - 1) for found in _ADDRESS.finditer(text)]
    spans += [found.span() for found in _TOKEN.finditer(text)]
    spans += [(found.end("before"), found.end()) for found in _BEARER.finditer(text)]
    spans += [found.span("value") for found in _OF_PROGRAM.finditer(text)]
    for pattern in (_QUOTED_WHOLE, _GIVEN, _AFTER_OPTION):
        spans += [found.span("value") for found in pattern.finditer(text) if _is_secret(found["name"], found["value"])]
    characters = list(text)
    for start, end in spans:
        characters[start:end] = [sign if sign in "\"'" else "*" for sign in text[start:end]]
    return "".join(characters)


def _is_secret(name: str, value: str) -> bool:
    """Whether what a name is given is a secret, and no reference to one."""
    plain_name = name.replace("-", "_").replace(".", "_").upper()
    is_named = _SECRET.search(plain_name) is not None and plain_name not in _FOLDERS
    return is_named and not is_allowed(name) and value.lstrip("\"'")[:1] not in {"$", "`", "<", "{", ""}


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
    # A sentence about tokens is not a secret: without a sign between them, only an option takes a value.
    if match["between"].isspace() and not _OPTION.search(match.string, max(0, match.start() - 90), match.start()):
        return match[0]
    return f"{match['name']}{match['between']}{WITHHELD}"


# How a setting is written: decides who sees it, and how it is quoted.
Form = Literal[
    "environment",  # captured, or the output of env
    "nccl_conf",
    "shell",  # NAME=value, seen by nobody but the shell
    "export",
    "prefix",  # NAME=value command
    "mpirun",  # -x NAME=value, --mca mca_base_env_list, -genv, -env
    "mca",  # --mca NAME VALUE, as OMPI_MCA_NAME
    "srun",  # --export=NAME=value
    "container",  # --env, -e, APPTAINERENV_NAME
    "manifest",  # env of a Kubernetes container
    "dockerfile",
    "apptainer",
    "modulefile",
    "table",  # a list of devices that a program keeps for a machine, whose name is the target
]


class Arm(Value, kw_only=True, frozen=True):
    """One way through an `if`, a `case`, a loop, a function or an `&&` list."""

    # Counts the constructs of a text in the order in which they begin.
    construct: Integer
    # Counts the ways through it.
    arm: Integer


class Assignment(Value, kw_only=True, frozen=True):
    """One variable set once. Lines and columns count from 1, columns in characters."""

    name: str
    # As the shell would pass it, where nothing has to be run to know; None: unset, or not known. `${NAME:-default}`
    # counts as its default where nothing before it sets NAME. A carriage return at its end is left out: see Slip.
    value: str | None
    # As it is written, with its quotes.
    written: str
    form: Form
    file: str
    line: Integer
    column: Integer
    # Column of the value.
    value_column: Integer | None = None
    # Line of the value where it is another than that of the name, as in a manifest.
    value_line: Integer | None = None
    # The value holds $VARIABLES or commands that are not known here.
    computed: bool = False
    # Whether it is unset rather than set.
    unsets: bool = False
    # The command whose processes see it, by its number in Reading.launches; None: everything after it.
    launch: Integer | None = None
    # The values it may have where branches before it decide; `value` is None then.
    alternatives: tuple[str, ...] = ()
    # What it is conditional on, outermost first; (): always.
    arms: tuple[Arm, ...] = ()
    # The file that the text it stands in is written to: `cat > /etc/nccl.conf <<EOF`; None: the file read.
    target: str | None = None


class LaunchCommand(Value, kw_only=True, frozen=True):
    """One command that starts ranks; `other`: one that has settings of its own, such as `NAME=value make`."""

    kind: Literal["mpirun", "srun", "torchrun", "container", "other"]
    # Open MPI, MPICH, Intel MPI..., where the options tell.
    family: str | None = None
    argv: tuple[str, ...]
    file: str
    line: Integer
    column: Integer
    # Names it passes on to the ranks by name or with a value; `ALL` and patterns as written.
    forwards: tuple[str, ...] = ()
    # Whether ranks on other nodes see the whole environment without being told.
    forwards_all: bool | None = None
    # The launch that starts this one, by its number: `mpirun ... apptainer exec ...`.
    within: Integer | None = None
    # Where the program begins in argv, behind the launcher's own options; None: not told, or none.
    program: Integer | None = None
    # It holds $VARIABLES that are not known here, so it may pass on and set more than is said.
    computed: bool = False
    arms: tuple[Arm, ...] = ()
    target: str | None = None


class UnreadPart(Value, kw_only=True, frozen=True):
    """A part that could not be read, and why."""

    file: str
    line: Integer
    column: Integer
    reason: str
    # Whether the shell itself refuses the text because of it.
    is_rejected: bool = False


# space_after_equals: NAME= value, which sets NAME to nothing and runs, or passes on, `value`.
# space_before_equals: NAME =value, which runs NAME.
# lost_line_end: a backslash before a space where a line was to go on, or a line that begins with an option.
# typographic: quotes, dashes or spaces of a word processor.
# carriage_return: lines end as on Windows, and the shell takes the end as part of what it reads.
# comma_in_list: a list of NAME=value is cut at the commas of a value.
# option_equals: `--mca NAME=VALUE`, which takes two words.
# not_a_string: a manifest's value without quotes that is not a string.
# text_for_mapping: NAME=VALUE where a manifest wants a mapping of names to values.
# not_shown: `export` where the environment ends with the command, as in a Dockerfile's RUN.
SlipKind = Literal[
    "space_after_equals",
    "space_before_equals",
    "lost_line_end",
    "typographic",
    "carriage_return",
    "comma_in_list",
    "option_equals",
    "not_a_string",
    "not_shown",
    "text_for_mapping",
    "two_in_one",
    "no_blank",
]


class Slip(Value, kw_only=True, frozen=True):
    """What reads well to a person and otherwise to the machine. What stands behind it is read as it was meant."""

    kind: SlipKind
    file: str
    line: Integer
    column: Integer
    # As it stands there.
    written: str
    # The variable it is about, and the value that was probably meant.
    name: str | None = None
    meant: str | None = None
    # How often it occurs in the file.
    count: Integer = 1


class SettingsReading(Value, kw_only=True, frozen=True):
    """Everything one text sets and starts."""

    file: str
    # environment, nccl.conf, shell, slurm, csh, dockerfile, apptainer, kubernetes, json, modulefile, systemd, python,
    # notebook, toml, markdown.
    language: str
    assignments: tuple[Assignment, ...] = ()
    launches: tuple[LaunchCommand, ...] = ()
    unread: tuple[UnreadPart, ...] = ()
    slips: tuple[Slip, ...] = ()
    # The text's lines, for showing where something stands.
    lines: tuple[str, ...] = ()
    # First and last lines of parts that may be only spoken of: nothing shows that what they set is ever in force.
    spoken: tuple[tuple[Integer, Integer], ...] = ()
    # The scripts of a page, each by itself; the page sets nothing beside them.
    parts: "tuple[SettingsReading, ...]" = ()

    def is_spoken(self, line: int) -> bool:
        """Whether nothing shows that what stands in a line is in force."""
        return any(first <= line <= last for first, last in self.spoken)

    @property
    def count(self) -> int:
        """How many settings it has, with those of its parts."""
        return len(self.assignments) + sum(part.count for part in self.parts)


def exclude_each_other(one: tuple[Arm, ...], other: tuple[Arm, ...]) -> bool:
    """Whether two places stand on different ways through one construct, so that no run passes both."""
    if one == other:
        return False
    ways = {arm.construct: arm.arm for arm in one}
    return any(ways.get(arm.construct, arm.arm) != arm.arm for arm in other)
