"""A stack that somebody built, and what must hold before one is: as pages that can be pasted into a ticket."""

from collections.abc import Iterable, Iterator

from rich.text import Text

from busbw.base.text import listed, printable
from busbw.facts.recipes import OVER_VERBS, FabricStack, FromSource, NetInterfaces, VersionSet
from busbw.model.finding import Checked, HeldAgainst
from busbw.model.host import Adoption, BuiltFile, BuiltStack, Linked
from busbw.show.lines import say
from busbw.show.text.findings import checked_text
from busbw.show.text.terminal import console

_NAMES = {
    "nccl": "NCCL",
    "plugin": "plug-in",
    "nccl-tests": "nccl-tests",
    "libfabric": "libfabric",
    "provider": "provider",
    "mpi": "MPI",
    "hwloc": "hwloc",
    "cudart": "CUDA runtime",
    "other": "library",
}
_ORDER = list(_NAMES)
_LABEL = 14
# What every program links, and that tells nothing.
_PLAIN = (
    "libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so", "libgcc_s", "libstdc++", "libutil.so", "libz.so",
    "libatomic.so",
)  # fmt: skip


def adoption_text(found: Adoption) -> None:
    """Print what was found, what each part loads, the findings with what to do, and what its files do not tell."""
    out = console()
    where = f" in {found.stack.image}" if found.stack.image is not None else ""
    say(out, Text(printable(f"{found.platform}: {', '.join(found.stack.places)}{where}"), style="bold"))
    for label, words in _parts(found.stack):
        say(out, Text(printable(f"{label:<{_LABEL}}{words}")), indent=2, hang=_LABEL)
    out.print()
    if found.cannot_tell:
        out.print(Text("cannot tell", style="bold"))
        for each in found.cannot_tell:
            say(out, Text(printable(each)), indent=2)
        out.print()
    if not found.stack.files:
        return
    if not found.findings:
        say(out, Text(printable(f"nothing wrong before it runs; held against {found.platform}")))
        return
    name = found.stack.image or ", ".join(found.stack.places)
    checked_text(
        Checked(
            files=(name,),
            held_against=HeldAgainst(name=found.platform, kind="platform"),
            findings=found.findings,
            counts=found.counts,
        )
    )


def _parts(stack: BuiltStack) -> Iterator[tuple[str, str]]:
    for source in stack.sources:
        of = f" of {source.manager}" if source.manager is not None else ""
        yield source.kind, f"{source.name}{of}  {source.file}"
    tests = [each for each in stack.files if each.role == "nccl-tests"]
    others = [each for each in stack.files if each.role != "nccl-tests"]
    for file in sorted(others, key=lambda each: (_ORDER.index(each.role), not each.given, each.path)):
        yield from _part(file, stack)
    if tests:
        names = listed((each.path.rpartition("/")[2] for each in tests), most=3)
        version, folder = tests[0].version or "version not said", tests[0].path.rpartition("/")[0]
        yield _NAMES["nccl-tests"], f"{version}  {folder}: {names}"
        yield from _details(tests[0])
    for place, folder in enumerate(stack.library_path):
        yield "" if place else "search path", folder


def _part(file: BuiltFile, stack: BuiltStack) -> Iterator[tuple[str, str]]:
    cuda = f" for CUDA {file.cuda}" if file.cuda is not None else ""
    name = "aws-ofi-nccl " if file.role == "plugin" and file.version is not None else ""
    found = "" if file.given else "  (found through the others)"
    yield _NAMES[file.role], f"{name}{file.version or 'version not said'}{cuda}  {file.path}{found}"
    if file.role == "nccl" and file.networks:
        yield "", f"asks plug-ins for {file.span}"
    if file.role == "plugin" and file.interfaces:
        yield "", _plugin(file, stack)
    if file.providers:
        yield "", f"among its providers: {', '.join(file.providers)}"
    yield from _details(file)


def _plugin(file: BuiltFile, stack: BuiltStack) -> str:
    nccl = stack.loaded("nccl")
    has = file.span
    if has == "none":
        return f"has {', '.join(file.interfaces)}"
    is_asked = nccl is not None and file.machine == nccl.machine and file == stack.network_plugin()
    taken = nccl.common_interface(file) if nccl is not None and is_asked else None
    return f"has {has}{f'; NCCL takes {taken}' if taken is not None else ''}"


def _details(file: BuiltFile) -> Iterator[tuple[str, str]]:
    if file.code:
        yield "", f"code for {', '.join(map(str, file.code))}"
    for link in file.needs:
        if not link.name.startswith(_PLAIN):
            yield "", f"{link.name} -> {_link(link)}"
    if file.package is not None:
        of = file.package
        details = f" ({of.details})" if of.details is not None else ""
        module = f"; module {of.module}" if of.module is not None else ""
        yield "", f"built by {of.manager}: {of.name} {of.version}{details}{module}"


def _link(link: Linked) -> str:
    return f"{link.path} ({link.by})" if link.path is not None else "not found"


def from_source_text(known: FromSource) -> None:
    """Print what must hold before a build, each fact with its source."""
    out = console()
    of = f" for {known.platform}" if known.platform is not None else ""
    say(out, Text(printable(f"from-source{of}: {known.title}"), style="bold"))
    say(out, Text(printable(known.about)))
    for title, rows in _sections(known):
        every = list(rows)
        if every:
            out.print()
            out.print(Text(title, style="bold"))
        for row, source in every:
            say(out, Text(printable(f"{row} ({source})" if source else row)), indent=2)
    out.print()
    platform = f" --platform {known.platform}" if known.platform is not None else ""
    say(out, Text(f"then: busbw recipe adopt PREFIX...{platform}"))


def _sections(known: FromSource) -> Iterator[tuple[str, Iterable[tuple[str, str]]]]:
    yield "which versions go together", ((_together(each), each.source) for each in known.set)
    yield "the newest that are known", ((f"{each.name} {each.version}", each.source) for each in known.newest)
    yield (
        "interfaces for networks: NCCL asks for, its plug-in has; one in common is enough",
        ((_interfaces(each), each.source) for each in known.interface),
    )
    yield "what the fabric needs", _needs(known)
    tools = [(f"{each.what}: {each.value}. {each.why}", each.source) for each in known.toolchain]
    if known.platform is not None and not tools:
        tools = [(f"not known of {known.platform}: ask the site, or look at its modules", "")]
    yield "compilers, modules and folders of the platform", tools
    if known.sm is not None:
        words = f"sm_{known.sm}: code=sm_{known.sm} for compute_{known.sm} in NVCC_GENCODE of NCCL and of nccl-tests"
        yield "architecture of the GPU", [(words, "busbw platform show")]
    yield (
        "options of each project's own build",
        (
            (f"{each.project}, {each.option}: {each.decides}. Otherwise: {each.wrong}", each.source)
            for each in known.option
        ),
    )
    yield "what else goes wrong", ((each.text, each.source) for each in known.pitfall)
    yield "how it is built, their makers say", ((f"{each.project}: {each.at}", "") for each in known.instructions)


def _needs(known: FromSource) -> Iterator[tuple[str, str]]:
    yield from ((_needed(each), each.source) for each in known.fabric)
    if known.fabric_kind in OVER_VERBS:
        words = "NCCL goes over verbs itself: the libibverbs of the host, and no plug-in; SHARP takes one of HPC-X"
        yield (
            f"{known.fabric_kind}: {words}",
            "NVIDIA/nccl, src/transport/net_ib; NVIDIA, HPC-X, NCCL-RDMA-SHARP Plugins",
        )


def _together(each: VersionSet) -> str:
    parts = ", ".join(f"{name} {value}" for name, value in each.parts.items())
    return f"{each.where}: {parts}; {each.result}{f'. {each.why}' if each.why else ''}"


def _needed(each: FabricStack) -> str:
    provider = f", libfabric with the provider {each.provider}" if each.provider else ""
    return f"{' and '.join(each.kinds)}: {each.plugin}{provider}{f': {each.libfabric}' if each.libfabric else ''}"


def _interfaces(each: NetInterfaces) -> str:
    return f"{each.of} {each.releases}: v{each.least} to v{each.most}"
