"""`flux run` inside an instance of Flux. Never run here: written from its manual.

Options and templates: https://flux-framework.readthedocs.io/projects/flux-core/en/latest/man1/flux-run.html,
shell options: https://flux-framework.readthedocs.io/projects/flux-core/en/latest/man7/flux-shell-options.html
"""

from busbw.base.cpus import format_cpu_list
from busbw.base.errors import InputError
from busbw.base.hostlist import compressed
from busbw.measure.launchers import hosts, variables
from busbw.measure.launchers.hosts import cpus_of_ranks, one_each
from busbw.measure.launchers.launcher import BatchSystem, Launchers, RankLauncher, words_of_job
from busbw.measure.launchers.variables import Option, processes_of_each_host, step
from busbw.model.launch import Allocation, Start
from busbw.model.machine import MpiLibrary
from busbw.model.plan import Job
from busbw.model.request import Request

name = "flux"

# The shell of a job and its plug-ins set these.
_OWN = ("FLUX_", "PMI_")
# Replaced in the words of a program and in paths, not in the environment that flux run itself has
# (github.com/flux-framework/flux-core/pull/6506).
_TEMPLATE = "{{"
# Brokers run a command on all of their hosts, and each host looks whether it is meant.
_IF_MEANT = 'case "$(uname -n)" in {names}) exec "$@" ;; esac'


def job(start: Start) -> Job:
    """Return the command that starts the ranks as one job. Raises InputError for what Flux cannot do."""
    program = _program(start)
    each = processes_of_each_host(start, name, "--ranks-per-node N")
    _check_texts(start)
    options: tuple[Option, ...] = (
        *_where(start, each),
        *_binding(start),
        *(((f"--setopt=pmi={_pmi(start.mpi)}",),) if start.mpi is not None else ()),
        # A rank that fails ends the job at once; by itself Flux waits for 30 s.
        ("--setopt=exit-on-error",),
        (f"--cwd={start.directory}",),
    )
    # Plug-ins for MVAPICH put a folder of Flux first in LD_LIBRARY_PATH.
    before = variables.adjusting(start, extended=True)
    return step(start, name, (program, "run"), options, refused=_OWN, before=before)


def visit(start: Start) -> Job:
    """Return the command that starts the program once on each host, beside the job of the ranks, which has all cores.

    `flux exec` asks the brokers and takes no resources; only the owner of an instance may.
    Raises InputError as `job` does.
    """
    each = one_each(start)
    short = (host.partition(".")[0] for host in each.placement.hosts)
    names = "|".join(f"{host}|{host}.*" for host in dict.fromkeys(short))
    argv = ("exec", "--noinput", "--rank=all", "sh", "-c", _IF_MEANT.format(names=names), "sh")
    return Job(
        argv=(_program(start), *argv, *each.program.argv),
        env=each.program.env,
        timeout_s=hosts.VISIT_S,
        stall_s=hosts.VISIT_S,
    )


def _program(start: Start) -> str:
    if start.launcher_program is None:
        raise InputError("there is no flux here", hint="start it inside an instance of Flux, or take --launcher mpirun")
    return start.launcher_program


def _check_texts(start: Start) -> None:
    """Raise InputError for what Flux would replace, and for bytes that its job, which is JSON, cannot hold."""
    for word in (*start.program.argv, start.directory):
        if _TEMPLATE in word:
            raise InputError(
                "flux replaces what stands in {{...}}",
                where=word[:200],
                hint="start a script that has this word in it, in a folder of another name",
            )
        _check_utf8(word, word[:200])
    for variable, value in start.program.env:
        _check_utf8(value, variable)


def _check_utf8(text: str, where: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError("a job of Flux is JSON, which has no bytes that are no UTF-8", where=where) from error


def _where(start: Start, each: int) -> tuple[Option, ...]:
    """Return the nodes, whole ones, and how many tasks each of them has; a core for each task where that is asked."""
    hosts = start.placement.hosts
    nodes = (f"--nodes={len(hosts)}",)
    is_named = start.placement.is_spread and start.hosts_are_named
    named = ((f"--requires=hosts:{compressed(hosts)}",),) if is_named else ()
    if start.placement.binding == "core" and not start.placement.oversubscribed:
        return nodes, (f"--ntasks={each * len(hosts)}",), ("--cores-per-task=1",), *_gpus_of_tasks(start, each), *named
    gpus = ((f"--gpus-per-node={start.gpus_per_host}",),) if start.gpus_per_host is not None else ()
    return nodes, (f"--tasks-per-node={each}",), ("--exclusive",), *gpus, *named


def _gpus_of_tasks(start: Start, each: int) -> tuple[Option, ...]:
    """Return the GPUs as `flux run` counts them beside cores: by task. All tasks of a node see all of them."""
    if start.gpus_per_host is None:
        return ()
    if start.gpus_per_host % each:
        raise InputError(
            f"{start.gpus_per_host} GPUs of a node cannot be shared out among {each} tasks with a core each",
            hint="--bind-to none, or masks",
        )
    return ((f"--gpus-per-task={start.gpus_per_host // each}",),)


def _binding(start: Start) -> tuple[Option, ...]:
    placement = start.placement
    # Said outright, as a site may have set another: every task sees all GPUs that the job has on its node.
    gpus = (("--setopt=gpu-affinity=on",),) if start.gpus_per_host is not None else ()
    if placement.binding == "default":
        return gpus
    if placement.oversubscribed or placement.binding == "none":
        return ("--setopt=cpu-affinity=off",), *gpus
    if placement.binding == "masks":
        lists = ";".join(format_cpu_list(cpus) for cpus in cpus_of_ranks(start))
        return (f"--setopt=cpu-affinity=map:{lists}",), *gpus
    if placement.binding == "core":
        return ("--setopt=cpu-affinity=per-task",), *gpus
    raise InputError("flux binds to cores and to CPUs by number, not to NUMA nodes", hint="--bind-to masks")


def _pmi(mpi: MpiLibrary) -> str:
    """Return what introduces the ranks to each other.

    Open MPI 5 knows PMIx alone, which the plug-in flux-pmix brings; Open MPI 4 knows Flux only where it was built so.
    MPICH and its kin speak PMI-1 (github.com/flux-framework/flux-docs, faqs.rst).
    """
    return "pmix" if mpi.family == "Open MPI" else "simple"


def _why_not(_request: Request, _allocation: Allocation, mpi: MpiLibrary, _there: Launchers) -> str | None:
    if mpi.family == "Open MPI":
        return (
            "Open MPI needs its plug-in flux-pmix, and busbw cannot tell whether that is there; if so, --launcher flux"
        )
    return None


LAUNCHER = RankLauncher(
    name=name,
    job=job,
    system=BatchSystem("flux", "Flux", "flux alloc first, or take --launcher mpirun"),
    program="flux",
    is_tried=False,
    why_not=_why_not,
    visit=visit,
    words=words_of_job(job),
)
