"""The options of a command line, told from the program it starts, and slips of the pen among its settings."""

import re
from collections.abc import Iterator
from functools import cache

import msgspec

from busbw.env.reading.context import NAME, Context
from busbw.env.reading.spelled import Field


class Grammar(msgspec.Struct, frozen=True):
    """Which options of a command take what."""

    valued: frozenset[str] = frozenset()
    # Options of two values.
    paired: frozenset[str] = frozenset()
    # Where this is not empty, an option of two dashes that is not among these takes a value.
    flags: frozenset[str] = frozenset()
    # Options of one letter whose value may follow without a space.
    glued: str = ""


class Option(msgspec.Struct, frozen=True):
    """One option with its values; `name` is as written, without `=VALUE`."""

    name: str
    at: int
    values: tuple[Field, ...] = ()


def letters_of_option(name: str) -> str:
    """Return an option without the signs between its words: `bindto` of `--bind-to`, `--bind_to` and `-BindTo`."""
    return name.replace("-", "").replace("_", "").lower()


@cache
def _letters_of_valued(grammar: Grammar) -> frozenset[str]:
    """Return the letters of the options of several words that take a value."""
    return frozenset(letters_of_option(name) for name in grammar.valued if "-" in name.lstrip("-"))


class Arguments:
    """Goes through a command's options; `at` is the place of the next argument, and of the program in the end."""

    def __init__(self, fields: list[Field], start: int, grammar: Grammar) -> None:
        self.fields = fields
        self.at = start
        self._grammar = grammar
        # Whether some of the options are not known.
        self.is_open = False

    @property
    def rest(self) -> list[Field]:
        """What has not been gone through."""
        return self.fields[self.at :]

    def options(self) -> Iterator[Option]:
        """Yield the options up to the first argument that is none."""
        while self.at < len(self.fields):
            field = self.fields[self.at]
            if field.is_open:
                self.is_open = True
                self.at += 1
                continue
            if field.text == "--":
                self.at += 1
                return
            if not field.text.startswith("-") or field.text == "-":
                return
            yield self._option(field)

    def _option(self, field: Field) -> Option:
        at = field.start
        self.at += 1
        grammar = self._grammar
        name, equals, _ = field.text.partition("=")
        if field.text in grammar.paired:
            return Option(field.text, at, self._take(2))
        if field.text in grammar.valued:
            return Option(field.text, at, self._take(1))
        short = field.text[:2]
        if not field.text.startswith("--") and len(field.text) > 2 and short[1] in grammar.glued:
            return Option(short, at, (field.behind(2),))
        if equals:
            return Option(name, at, (field.behind(len(name) + 1),))
        takes_value = bool(grammar.flags) and field.text.startswith("--") and field.text not in grammar.flags
        # `--bindto core` is an error of its own; what follows is not the program for that.
        if takes_value or letters_of_option(field.text) in _letters_of_valued(grammar):
            return Option(field.text, at, self._take(1))
        return Option(field.text, at)

    def _take(self, count: int) -> tuple[Field, ...]:
        values = tuple(self.fields[self.at : self.at + count])
        self.at += len(values)
        return values


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Open MPI 4 and 5 (mpirun, prterun), MPICH's Hydra, Intel MPI and HPE's PALS: where they mean different things by one
# name, they take as many values.
MPIRUN = Grammar(
    paired=_set("--mca -mca --gmca -gmca --omca --omcaom --prtemca --pmixmca --ompimca -genv --genv -env --env-pair"),
    valued=_set(
        "-np --np -n --n -c -N --npernode -npernode --npersocket -npersocket --ntasks-per-node -ppn --ppn -perhost "
        "-hostfile --hostfile -machinefile --machinefile -f -H --host -host --hosts -hosts --map-by -map-by --bind-to "
        "-bind-to --rank-by -rank-by -x --wdir -wdir --wd -wd --path -path --prefix -prefix --output --timeout "
        "--output-filename -output-filename --tune -tune --am -am --rankfile -rankfile -rf --cpu-set --cpu-list "
        "--cpus-per-proc -cpus-per-proc --cpus-per-rank -cpus-per-rank --slot-list --stdin -stdin -s --xterm --app "
        "--appfile --configfile -configfile --preload-files --pset --personality --display --runtime-options "
        "--default-hostfile --dvm-uri --max-restarts --num-connect-retries --report-uri --default-hostfile "
        "-genvlist --genvlist -envlist --envlist -bootstrap --bootstrap -launcher --launcher -launcher-exec "
        "-bootstrap-exec -iface --iface -rmk --rmk -outfile-pattern -errfile-pattern -membind -usize -hostname "
        "--cpu-bind --depth -d --line-buffer --mem-bind --gpu-bind --env --pmi"
    ),
)
# MVAPICH2 2.3.7, src/pm/mpirun/mpirun_params.c; getopt_long_only takes one dash and two. Others are of
# mpiexec.mpirun_rsh.
MPIRUN_RSH = Grammar(
    paired=_set("-env --env"),
    valued=_set(
        "-np --np -n --n -ppn --ppn -hostfile --hostfile -f --f -machinefile --machinefile -launcher --launcher "
        "-sg --sg -config --config -spawnfile --spawnfile -dpmspawn --dpmspawn -sparehosts --sparehosts"
    ),
)
SRUN = Grammar(
    glued="nNctpAJoeiwxmCdDGqMTrOsXZWLQ",
    valued=_set("-n -N -c -t -p -A -J -o -e -i -w -x -m -C -d -D -G -q -M -T -r -L -S -B -b -W -P -F"),
    flags=_set(
        "--exclusive --label --unbuffered --verbose --quiet --overlap --exact --whole --pty --multi-prog --no-kill "
        "--kill-on-bad-exit --no-allocate --overcommit --oversubscribe --share --preserve-env --disable-status "
        "--contiguous --spread-job --propagate --use-min-nodes --reboot --help --usage --version --test-only "
        "--container-writable --container-readonly --no-container-writable --container-mount-home "
        "--no-container-mount-home --container-remap-root --no-container-remap-root --container-entrypoint "
        "--no-container-entrypoint --external-launcher --parsable --send-libs --compress --bcast --nice "
        "--resv-ports --get-user-env --interactive --hold --ignore-pbs --requeue --no-requeue --wait-all-nodes "
        "--parsable --wait --stepmgr --no-bell --no-shell --immediate"
    ),
)
DOCKER = Grammar(
    glued="evlmnpuwh",
    valued=_set("-e -v -l -m -p -u -w -h -a -c -H"),
    flags=_set(
        "--detach --interactive --tty --rm --privileged --init --read-only --oom-kill-disable --no-healthcheck "
        "--publish-all --sig-proxy --disable-content-trust --help --quiet --env-host --replace --tls-verify "
        "--no-hosts --rmi --systemd --latest --http-proxy --passwd --no-deps --service-ports --build --use-aliases "
        "--no-TTY --tls --debug"
    ),
)
APPTAINER = Grammar(
    glued="B",
    valued=_set("-B -H -o -S -W -h --config"),
    flags=_set(
        "--nv --nvccli --rocm --cleanenv --contain --containall --writable --writable-tmpfs --fakeroot --userns --ipc "
        "--pid --uts --net --no-home --no-init --no-privs --keep-privs --no-umask --no-eval --unsquash --sharens "
        "--allow-setuid --compat --disable-cache --no-https --passphrase --help --vm --silent --quiet --debug "
        "--verbose --nocolor --boot --no-tmp-sandbox --no-setgroups --no-compat --underlay --no-https --nohttps "
        "--apply-cgroups-none --oci --no-oci --no-pid --writable-cache"
    ),
)
ENROOT = Grammar(valued=_set("-c --conf -e --env -m --mount"), glued="em")
CHARLIECLOUD = Grammar(valued=_set("-b --bind -c --cd -g --gid -j --join-ct -u --uid -m --mount"), glued="b")
JSRUN = Grammar(
    glued="nracgEb",
    valued=_set(
        "-n -r -a -c -g -E -b -d -m -l -K -p -h -k -o -e -t -P -M -D -U -X -A -f --env --nrs --rs_per_host "
        "--tasks_per_rs --cpu_per_rs --gpu_per_rs --memory_per_rs --latency_priority --bind "
        "--launch_distribution --np --rs_per_socket --env_eval --env_no_propagate --smpiargs --stdio_mode "
        "--stdio_input --stdio_stdout --stdio_stderr --chdir --use_resources --erf_input --erf_output "
        "--appfile --exit_on_error"
    ),
)
APRUN = Grammar(valued=_set("-n -N -d -S -e -cc -j -L -l -p -r -a -m"), glued="nNdeSj")
FLUX = Grammar(
    glued="nNcgto",
    valued=_set("-n -N -c -g -t -o -q -B --env --setopt --setattr --queue --nodes --ntasks --cores-per-task"),
)
SSH = Grammar(valued=_set("-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -P -p -R -S -W -w -f -x -u"), glued="lpoiw")
TORCHRUN = Grammar(
    valued=_set("-m"),
    flags=_set("--standalone --no-python --no_python --run-path --run_path --use-env --use_env --help --dynamic"),
)


class Prefix(msgspec.Struct, frozen=True):
    """A program that starts what follows its options, and how many other arguments stand before and behind those."""

    grammar: Grammar = Grammar()
    before: int = 0
    behind: int = 0


PREFIXES: dict[str, Prefix] = {
    "nohup": Prefix(),
    "setsid": Prefix(),
    "time": Prefix(Grammar(valued=_set("-f -o --format --output"))),
    "nice": Prefix(Grammar(valued=_set("-n --adjustment"))),
    "ionice": Prefix(Grammar(valued=_set("-c -n --class --classdata"))),
    "chrt": Prefix(behind=1),
    "timeout": Prefix(Grammar(valued=_set("-k -s --signal --kill-after")), behind=1),
    "taskset": Prefix(behind=1),
    "numactl": Prefix(
        Grammar(
            valued=_set(
                "-C -N -m -i -p -P -w --physcpubind --cpunodebind --membind --interleave --preferred --localalloc-on"
            ),
            glued="CNmipP",
        )
    ),
    "stdbuf": Prefix(Grammar(valued=_set("-i -o -e"), glued="ioe")),
    "exec": Prefix(Grammar(valued=_set("-a"))),
    "command": Prefix(),
    "builtin": Prefix(),
    "xargs": Prefix(Grammar(valued=_set("-I -n -P -d -L -s -a -E"), glued="InPdL")),
    "strace": Prefix(Grammar(valued=_set("-o -e -p -s -u -E"))),
    "ltrace": Prefix(Grammar(valued=_set("-o -e -p -s -u"))),
    "perf": Prefix(Grammar(valued=_set("-e -o -F -p -g -C")), before=1),
    "nsys": Prefix(
        Grammar(valued=_set("-o -t -s -b -c -d -y -w -f -x -n --output --trace --sample --delay --duration")), before=1
    ),
    "ncu": Prefix(Grammar(valued=_set("-o -k -c -s --set --section --metrics --kernel-name --launch-count"))),
    "compute-sanitizer": Prefix(Grammar(valued=_set("--tool --log-file"))),
    "gdb": Prefix(Grammar(valued=_set("-ex -x"))),
    "catchsegv": Prefix(),
    "flock": Prefix(Grammar(valued=_set("-w -E")), behind=1),
    "watch": Prefix(Grammar(valued=_set("-n"))),
    "sshpass": Prefix(Grammar(valued=_set("-f -d -p -P"), glued="fdpP")),
    "doas": Prefix(Grammar(valued=_set("-u -C"))),
}
SUDO = Grammar(valued=_set("-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir"), glued="u")
ENV = Grammar(valued=_set("-u --unset -C --chdir -S --split-string"), glued="uS")


# What stands behind a `= ` and is not a program: a list for NCCL_IB_HCA, a number, a word in capitals, a device.
_VALUE = re.compile(r"[=^].*|[\d.]+[kKmMgG]?|[A-Z][A-Z0-9,_-]*|[a-z]{2,}[a-z_]*\d+(?:[:,].*)?|hsn|true|false")
# Variables of the interconnect: nobody sets one of these to nothing for a program that has no slash in its name.
FAMILIES = ("NCCL_", "UCX_", "FI_", "OFI_NCCL_", "SHARP_", "OMPI_MCA_", "RCCL_", "MSCCL_", "MSCCLPP_", "HCOLL_")
# What stands further away was not meant to follow.
_WIDEST_GAP = 8


def is_cut_off(field: Field, following: Field | None) -> bool:
    """Whether `NAME=` was meant to go on with what follows it."""
    return (
        field.text.endswith("=")
        and not field.is_quoted
        and NAME.fullmatch(field.text[:-1]) is not None
        and following is not None
        and 0 < following.start - field.end <= _WIDEST_GAP
        and (following.is_quoted or _VALUE.fullmatch(following.text) is not None)
    )


def is_cut_off_alone(field: Field, following: Field) -> bool:
    """Whether `NAME= word`, a whole command, was meant as one assignment."""
    name = field.text.removesuffix("=")
    is_family = name.startswith(FAMILIES) and "/" not in following.text and not following.text.startswith("-")
    return is_cut_off(field, following) or (field.text.endswith("=") and not field.is_quoted and is_family)


def note_space_after(context: Context, field: Field, following: Field) -> None:
    """Take down that a value stands behind a space."""
    context.ledger.slip(
        "space_after_equals",
        field.start,
        f"{field.text} {context.shown(following)}",
        name=field.text[:-1],
        meant=context.shown(following),
    )


def note_space_before(context: Context, fields: list[Field]) -> bool:
    """Take down `NAME =VALUE` and `NAME = VALUE`; False where a command is none of these."""
    name, equals = fields[0].text, context.shown(fields[1]) if len(fields) > 1 else ""
    if not equals.startswith("=") or not re.fullmatch(r"[A-Z_][A-Z0-9_]{2,}", name):
        return False
    meant = equals[1:] or (context.shown(fields[2]) if len(fields) > 2 else "")
    context.ledger.slip("space_before_equals", fields[0].start, f"{name} {equals}", name=name, meant=meant)
    return True
