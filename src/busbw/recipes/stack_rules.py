"""What is wrong with a stack that somebody built, before it runs: held against itself, against NCCL and a platform."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from busbw.facts.recipes import FabricStack, Plugin, from_source, recipe_versions
from busbw.facts.rules import finding
from busbw.model.finding import Finding, counts_of
from busbw.model.host import NET, Adoption, BuiltFile, BuiltStack, Linked
from busbw.model.recommendation import Machine
from busbw.recipes.versions import is_misfit, numbers

# They come with the driver, which nodes without GPUs do not have.
_OF_DRIVER = ("libcuda.so", "libnvidia-ml.so", "libnvidia-ptxjitcompiler.so")
_OF_ONE_NODE = ("/tmp/", "/var/tmp/", "/dev/shm/", "/run/", "/local/")  # noqa: S108 - looked for, not written
_ROLES = {
    "nccl": "NCCL",
    "plugin": "the plug-in",
    "nccl-tests": "nccl-tests",
    "libfabric": "libfabric",
    "provider": "the provider of libfabric",
    "mpi": "MPI",
    "hwloc": "hwloc",
    "cudart": "the CUDA runtime",
    "other": "it",
}
_KINDS = {"ncclTunerPlugin": "tuner", "ncclProfiler": "profiler", "ncclCollNetPlugin": "CollNet"}
_MOST_NAMED = 6
# What every library and program needs on a host with glibc.
_FIRST = "libc.so.6"


def adoption(stack: BuiltStack, machine: Machine) -> Adoption:
    """Return a stack with everything that is wrong with it on a machine, and what its files do not tell."""
    rules = (
        _missing,
        _cut_off,
        _versions,
        _elsewhere,
        _twice,
        _folders,
        _links,
        _plugins,
        _networks,
        _gpus,
        _processors,
    )
    found = [each for rule in rules for each in rule(stack, machine)]
    found += [*_misfits(stack, machine), *_requirements(stack), *_builds(stack)]
    order = {"error": 0, "warn": 1, "note": 2}
    found.sort(key=lambda each: (order[each.severity], each.code))
    return Adoption(
        platform=machine.id,
        stack=stack,
        findings=tuple(found),
        counts=counts_of(found),
        cannot_tell=tuple(_cannot_tell(stack, machine)),
    )


def fabric_stack(machine: Machine) -> FabricStack | None:
    """Return what a machine's fabric needs of a stack; None: nothing beyond NCCL."""
    return next((each for each in from_source().fabric if machine.fabric in each.kinds), None)


def _file(file: BuiltFile) -> str:
    return file.path.rpartition("/")[2]


def _links_of(stack: BuiltStack) -> Iterator[tuple[BuiltFile, Linked]]:
    for file in stack.files:
        for link in file.needs:
            yield file, link


def _missing(stack: BuiltStack, machine: Machine) -> Iterator[Finding]:
    """Yield each name that nothing provides, once, with all that need it."""
    need = fabric_stack(machine)
    users: dict[str, list[str]] = defaultdict(list)
    for file, link in _links_of(stack):
        # libfabric goes on without a provider that cannot be loaded.
        is_spare = file.role == "provider" and (need is None or need.provider not in file.providers)
        is_other = _is_for_another(file, machine) or _is_of_another_host(file, stack)
        if link.path is None and not link.name.startswith(_OF_DRIVER) and not is_spare and not is_other:
            users[link.name].append(_file(file))
    for name, of in users.items():
        yield finding(
            "STACK001",
            evidence=_searched(stack),
            fix=f"install what has {name} in the image, or bind its folder: --bind HERE:INSIDE"
            if stack.image is not None
            else f"load the module that has {name}, or set LD_LIBRARY_PATH to its folder, and adopt again",
            look=f"find / -xdev -name '{name}*' 2>/dev/null",
            name=name,
            users=_listed(of),
        )


def _is_for_another(file: BuiltFile, machine: Machine) -> bool:
    """Whether a file is for another processor than the platform's: that is said, and nothing of what it needs."""
    return machine.processor is not None and file.machine != machine.processor


def _is_of_another_host(file: BuiltFile, stack: BuiltStack) -> bool:
    """Whether this host has no library for a file's processor, not even the first that every one needs."""
    return stack.image is None and any(link.name == _FIRST and link.path is None for link in file.needs)


def _cut_off(stack: BuiltStack, _machine: Machine) -> Iterator[Finding]:
    for file in stack.files:
        if file.lacking_bytes:
            yield finding(
                "STACK009",
                evidence=file.path,
                fix="copy or install it again; quota and free space first",
                look=f"readelf -l {file.path}",
                file=_file(file),
                size_bytes=file.size_bytes,
                whole_bytes=file.size_bytes + file.lacking_bytes,
            )


def _searched(stack: BuiltStack) -> str:
    path = f", {_listed(stack.library_path)}" if stack.library_path else ""
    return f"looked in RPATH and RUNPATH{path}, the loader's cache"


def _versions(stack: BuiltStack, _machine: Machine) -> Iterator[Finding]:
    seen: set[tuple[str | None, tuple[str, ...]]] = set()
    for file, link in _links_of(stack):
        if link.lacking and (link.path, link.lacking) not in seen:
            seen.add((link.path, link.lacking))
            of_system = link.name.startswith(("libc.so", "libstdc++", "libm.so", "libgcc_s"))
            yield finding(
                "STACK002",
                evidence=f"{_file(file)} wants {', '.join(link.lacking)}; {link.by} leads to {link.path}",
                fix="build it on this system, or in the image that it runs in, with a compiler that is not newer"
                if of_system
                else f"put the folder of the {link.name} that it was linked with first: it has {link.lacking[-1]}",
                look=f"readelf -V {file.path}",
                name=link.path or link.name,
                versions=", ".join(link.lacking),
            )


def _elsewhere(stack: BuiltStack, _machine: Machine) -> Iterator[Finding]:
    """Yield where a copy from elsewhere is loaded although one was given."""
    given: dict[str, list[BuiltFile]] = defaultdict(list)
    for file in stack.files:
        if file.given and file.soname is not None:
            given[file.soname].append(file)
    for file, link in _links_of(stack):
        of_name = given.get(link.name, [])
        if link.path is not None and of_name and link.path not in [each.path for each in of_name]:
            yield finding(
                "STACK003",
                evidence=f"{link.by} leads to {link.path}; given is {of_name[0].path}",
                fix="link it again with the RPATH of the given one, or take the RPATH out: patchelf --remove-rpath",
                look=f"readelf -d {file.path}",
                user=_file(file),
                name=link.name,
            )


def _twice(stack: BuiltStack, _machine: Machine) -> Iterator[Finding]:
    """Yield each name of which two different files lie in folders that are searched."""
    copies: dict[str, list[BuiltFile]] = defaultdict(list)
    for file in stack.files:
        name = file.soname or _file(file)
        # Files are found by their names; a library may call itself otherwise.
        is_named = name in [path.rpartition("/")[2] for path in (file.path, *file.links)]
        if file.role != "nccl-tests" and is_named and stack.rank(file) < len(stack.library_path):
            copies[name].append(file)
    for name, files in copies.items():
        if len({(each.version, each.size_bytes) for each in files}) > 1:
            ordered = sorted(files, key=stack.rank)
            told = "; ".join(f"{each.path}, {each.version or 'version unknown'}" for each in ordered)
            yield finding(
                "STACK004",
                evidence=f"{told}: the first is loaded",
                fix="name only the folders of the copy that is meant, the others out of LD_LIBRARY_PATH",
                name=name,
                times="twice" if len(files) == 2 else f"{len(files)} times",
            )


def _folders(stack: BuiltStack, _machine: Machine) -> Iterator[Finding]:
    """Yield folders that are not there, are those of one node, or depend on where a program starts."""
    for file in stack.files:
        for folder in dict.fromkeys((*file.rpath, *file.runpath)):
            if folder in file.absent:
                yield finding(
                    "STACK005",
                    evidence=f"{'RUNPATH' if folder in file.runpath else 'RPATH'} of {file.path}",
                    fix="adopt the build where it was installed to, or link it again with the folder that it is in now",
                    look=f"readelf -d {file.path}",
                    file=_file(file),
                    folder=folder,
                )
            elif not folder.startswith(("/", "$")):
                yield finding(
                    "STACK007",
                    evidence=f"{'RUNPATH' if folder in file.runpath else 'RPATH'} of {file.path}",
                    fix="link it again with the whole path, or with $ORIGIN",
                    look=f"readelf -d {file.path}",
                    file=_file(file),
                    folder=folder,
                )
    local = [
        each for each in dict.fromkeys((*stack.places, *stack.library_path)) if f"{each}/".startswith(_OF_ONE_NODE)
    ]
    if local and stack.image is None:
        yield finding(
            "STACK006",
            evidence=_listed(local),
            fix="install the stack on a file system that all nodes share, and adopt it there",
            look=f"df --output=fstype,target {local[0]}",
            folder=next(each for each in _OF_ONE_NODE if f"{local[0]}/".startswith(each)).rstrip("/"),
        )


def _links(stack: BuiltStack, _machine: Machine) -> Iterator[Finding]:
    for line in stack.unread:
        path, _, why = line.partition(": ")
        if why == "it leads to no file":
            yield finding("STACK008", evidence=why, fix=f"install it again, or remove {path}", path=path)


def _plugins(stack: BuiltStack, _machine: Machine) -> Iterator[Finding]:
    nccl = stack.loaded("nccl")
    for file in stack.files:
        if file.role != "plugin":
            continue
        if not file.interfaces and file.lacking_bytes:
            continue
        if not file.interfaces:
            yield finding(
                "STACK011",
                evidence=f"{file.path} exports no ncclNetPlugin_vN, ncclTunerPlugin_vN, ncclProfiler_vN",
                fix="build it again as its makers say: the names are hidden or stripped, or it is no plug-in",
                look=f"nm -D --defined-only {file.path}",
                file=_file(file),
            )
        elif file.networks and nccl is not None and nccl.networks and nccl.common_interface(file) is None:
            yield finding(
                "STACK010",
                evidence=f"NCCL {nccl.version or ''} asks for {nccl.span}; {file.path} has {file.span}",
                fix=_newer_plugin(nccl, file),
                look=f"nm -D --defined-only {file.path} | grep -o 'ncclNetPlugin_v.*'",
                file=_file(file),
            )
        if nccl is not None and nccl.networks:
            yield from _other_kinds(nccl, file)
    plugin = stack.network_plugin()
    if plugin is not None and not _is_of_another_host(plugin, stack):
        for link in (each for each in plugin.opens if each.path is None):
            yield finding(
                "STACK016",
                evidence=f"{plugin.path} opens {link.name} by this name; {_searched(stack)}",
                fix=f"add CUDA's folder with {link.name} to LD_LIBRARY_PATH; "
                f"where only {link.name}.NUMBER is installed, make a link of that name beside it",
                look=f"find / -xdev -name '{link.name}*' 2>/dev/null",
                file=_file(plugin),
                name=link.name,
            )
    if plugin is not None and not plugin.is_usual_plugin:
        yield finding(
            "STACK014",
            evidence=f"{plugin.path}; there is no libnccl-net.so beside it that leads to it",
            fix=f"NCCL_NET_PLUGIN={plugin.path}",
            file=_file(plugin),
        )


def _other_kinds(nccl: BuiltFile, file: BuiltFile) -> Iterator[Finding]:
    """Yield what a plug-in has beside a network, and this NCCL does not ask for in any of its versions."""
    for prefix, kind in _KINDS.items():
        has = [each for each in file.interfaces if each.startswith(f"{prefix}_v")]
        asked = [each for each in nccl.interfaces if each.startswith(f"{prefix}_v")]
        if has and asked and not set(has) & set(asked):
            yield finding(
                "STACK015",
                evidence=f"NCCL {nccl.version or ''} asks for {_listed(asked)}; {file.path} has {_listed(has)}",
                fix="take a release of the plug-in that is for this NCCL, or the other way round",
                look=f"nm -D --defined-only {file.path}",
                file=_file(file),
                kind=kind,
            )


def _newer_plugin(nccl: BuiltFile, plugin: BuiltFile) -> str:
    newest_of_nccl = max(int(each.rpartition("_v")[2]) for each in nccl.networks)
    newest_of_plugin = max(int(each.rpartition("_v")[2]) for each in plugin.networks)
    which = "a newer plug-in" if newest_of_plugin < newest_of_nccl else "an older plug-in, or a newer NCCL"
    return f"take {which}: busbw recipe show from-source lists which interfaces the releases have"


def _networks(stack: BuiltStack, machine: Machine) -> Iterator[Finding]:
    need = fabric_stack(machine)
    if need is None or (stack.loaded("nccl") is None and stack.network_plugin() is None):
        return
    plugin = stack.network_plugin()
    if plugin is None and any(each.role == "plugin" and each.lacking_bytes for each in stack.files):
        return
    if plugin is None:
        yield finding(
            "STACK012",
            evidence=f"{machine.id} has {machine.fabric}; no file that was given or found exports {NET}_vN",
            fix=f"give the folder of {need.plugin} too; busbw recipe show from-source --platform {machine.id}",
            fabric=machine.fabric or "",
        )
        return
    link = next((each for each in plugin.needs if each.name.startswith("libfabric.so")), None)
    libfabric = next((each for each in stack.files if link is not None and each.path == link.path), None)
    if libfabric is None or need.provider is None:
        return
    if need.provider not in libfabric.providers:
        yield finding(
            "STACK013",
            evidence=f"{libfabric.path}, {libfabric.version or 'version unknown'}, taken by {link.by if link else ''}; "
            f"its providers, of those that are known here: {', '.join(libfabric.providers) or 'none'}",
            fix=f"build the plug-in with the libfabric of the fabric: {need.libfabric}",
            look=f"fi_info -p {need.provider}",
            provider=need.provider,
        )
    # Without the provider it is another libfabric that has to be taken.
    elif libfabric.has_cuda is False and machine.sm is not None:
        yield finding(
            "STACK017",
            evidence=f"{libfabric.path}, {libfabric.version or 'version unknown'}: it calls no function of CUDA",
            fix=f"take the libfabric of the fabric ({need.libfabric}), or configure it with --with-cuda",
            look=f"strings {libfabric.path} | grep -x cudaMemcpy",
            file=_file(libfabric),
        )


def _gpus(stack: BuiltStack, machine: Machine) -> Iterator[Finding]:
    if machine.sm is None:
        return
    # A release that does not go with the machine is not to be built again.
    is_unfit = any(each.code == "STACK030" for each in _misfits(stack, machine))
    unfit = stack.loaded("nccl") if is_unfit else None
    for file in stack.files:
        if file is unfit:
            continue
        able = [each for each in file.code if each.runs_on(machine.sm)]
        has = ", ".join(map(str, file.code))
        option = f"-gencode=arch=compute_{machine.sm},code=sm_{machine.sm}"
        if file.code and not able:
            yield finding(
                "STACK020",
                evidence=f"{file.path} has code for {has}",
                fix=f"build it again with NVCC_GENCODE={option}",
                file=_file(file),
                sm=machine.sm,
            )
        elif able and all(each.kind == "ptx" for each in able):
            yield finding(
                "STACK021",
                evidence=f"{file.path} has code for {has}",
                fix=f"build it again with NVCC_GENCODE={option}",
                file=_file(file),
                sm=machine.sm,
            )


def _processors(stack: BuiltStack, machine: Machine) -> Iterator[Finding]:
    """Yield one finding for each kind of processor that files are for and the machine does not have."""
    others: dict[str, list[BuiltFile]] = defaultdict(list)
    for file in stack.files:
        if file.given and _is_for_another(file, machine):
            others[file.machine or "another processor"].append(file)
    for processor, files in others.items():
        yield finding(
            "STACK022",
            evidence=_listed(each.path for each in files),
            fix=f"build it on a node of {machine.id}, or take the package for {machine.processor}",
            look=f"readelf -h {files[0].path}",
            files=f"{_file(files[0])} is" if len(files) == 1 else f"{len(files)} files are",
            machine=processor,
            platform=machine.id,
            processor=machine.processor or "",
        )


_OPTION = re.compile(r"--(nccl|cuda)\b")


def _misfits(stack: BuiltStack, machine: Machine) -> Iterator[Finding]:
    nccl = stack.loaded("nccl")
    if nccl is None or nccl.version is None:
        return
    cuda = numbers(nccl.cuda)[0] if nccl.cuda is not None else None
    for misfit in recipe_versions().misfit:
        if not misfit.recipes and is_misfit(misfit, machine, nccl=nccl.version, cuda=cuda):
            code = "STACK030" if misfit.severity == "error" else "STACK031"
            found = finding(
                code,
                evidence=f"NCCL {nccl.version}{f', CUDA {nccl.cuda}' if nccl.cuda else ''}: {nccl.path}",
                # What others recipes are asked for by option is taken as a package here.
                fix=f"take {_OPTION.sub(lambda name: name[1].upper(), misfit.instead)}"
                if misfit.instead is not None
                else "see the text",
                text=misfit.text,
            )
            yield replace(found, source=misfit.source)


def _requirements(stack: BuiltStack) -> Iterator[Finding]:
    """Yield what the plug-in's makers ask for and is older here."""
    plugin = stack.network_plugin()
    if plugin is None or plugin.version is None:
        return
    known = _known_release(plugin.version)
    for name, least, file in (
        ("NCCL", known.nccl_since if known else None, stack.loaded("nccl")),
        ("libfabric", known.libfabric_since if known else None, _libfabric_of(stack, plugin)),
    ):
        version = file.version if file is not None else None
        if least is not None and version is not None and numbers(version)[:3] < numbers(least):
            found = finding(
                "STACK032",
                evidence=f"{plugin.path} loads {file.path if file else ''}",
                fix=f"take {name} {least} or later",
                plugin=f"aws-ofi-nccl {plugin.version}",
                name=name,
                least=least,
                version=version,
            )
            yield replace(found, source=known.source if known else None)


def _known_release(version: str) -> Plugin | None:
    """Return what is known of a release of the plug-in, or of the last one before it in its series."""
    series = numbers(version)[:2]
    earlier = [
        each
        for each in recipe_versions().plugin
        if numbers(each.version)[:2] == series and numbers(each.version)[:3] <= numbers(version)[:3]
    ]
    return max(earlier, key=lambda each: numbers(each.version)[:3], default=None)


def _libfabric_of(stack: BuiltStack, plugin: BuiltFile) -> BuiltFile | None:
    paths = {each.path for each in plugin.needs if each.name.startswith("libfabric.so")}
    return next((each for each in stack.files if each.path in paths), None)


def _builds(stack: BuiltStack) -> Iterator[Finding]:
    tests = [each for each in stack.files if each.role == "nccl-tests"]
    without = [each for each in tests if not any("mpi" in link.name.lower() for link in each.needs)]
    if without and len(without) == len(tests):
        yield finding(
            "STACK033",
            evidence=f"{without[0].path} and {len(without) - 1} more need no libmpi"
            if len(without) > 1
            else f"{without[0].path} needs no libmpi",
            fix="build nccl-tests again with MPI=1 and MPI_HOME",
            look=f"readelf -d {without[0].path}",
            file=_file(without[0]),
        )
    cudas = dict(sorted(_cudas(stack)))
    if len(cudas) > 1:
        (first, one), (second, other) = list(cudas.items())[:2]
        yield finding("STACK034", evidence=f"{one}; {other}", first=first, second=second)


def _cudas(stack: BuiltStack) -> Iterator[tuple[int, str]]:
    """Yield major versions of CUDA, each with who has it."""
    for file, link in _links_of(stack):
        match = re.match(r"libcudart\.so\.(\d+)", link.name)
        if match is not None:
            yield int(match[1]), f"{file.path} needs {link.name}"
    for file in stack.files:
        if file.cuda is not None:
            yield numbers(file.cuda)[0], f"{file.path} is for CUDA {file.cuda}"


def _cannot_tell(stack: BuiltStack, machine: Machine) -> Iterator[str]:
    of_driver = sorted({link.name for _file, link in _links_of(stack) if _is_of_driver(link)})
    if of_driver:
        yield f"{', '.join(of_driver)}: part of the driver, which is not on this host; check.sh finds it on the nodes"
    if stack.loaded("nccl") is None and stack.network_plugin() is not None:
        yield "which NCCL will load the plug-in: none was given; name its folder too, as that of a Python wheel"
    for file in stack.files:
        if file.given and file.role in ("nccl", "libfabric") and file.version is None:
            yield f"which release {file.path} is: it does not say"
        if file.role in ("nccl", "nccl-tests") and not file.code and file.given and not file.lacking_bytes:
            yield f"for which GPUs {file.path} is: it has no code of NVIDIA's compiler in it"
    foreign = [each for each in stack.files if _is_of_another_host(each, stack) and not _is_for_another(each, machine)]
    if foreign:
        names = _listed(_file(each) for each in foreign)
        verb = "loads" if len(foreign) == 1 else "load"
        yield f"what {names} {verb}: this host has no libraries for {foreign[0].machine or 'another processor'}"
    yield from _linked_in(stack, machine)
    if machine.sm is None and machine.id != "generic":
        what = (
            "it has AMD's"
            if machine.has_amd_gpus
            else "their capability is not known"
            if machine.gpus
            else "it has none"
        )
        yield f"whether the code fits the GPUs of {machine.id}: {what}"
    yield from (each for each in stack.unread if not each.endswith("leads to no file"))


def _linked_in(stack: BuiltStack, machine: Machine) -> Iterator[str]:
    """Yield what is not loaded as a library of its own, so that no search path changes it."""
    tests = [each for each in stack.files if each.role == "nccl-tests" and each.given]
    whole = [each for each in tests if each.needs and not any("nccl" in link.name for link in each.needs)]
    if whole:
        names = _listed(map(_file, whole))
        verb = "measures" if len(whole) == 1 else "measure"
        yield f"which NCCL {names} {verb}: it is linked in, and LD_LIBRARY_PATH changes nothing"
    plugin, need = stack.network_plugin(), fabric_stack(machine)
    if plugin is None or need is None or need.provider is None or not plugin.needs or _is_for_another(plugin, machine):
        return
    if not any(link.name.startswith("libfabric.so") for link in plugin.needs):
        why = "it needs no libfabric.so, so one is linked in or opened later"
        yield f"whether {_file(plugin)} goes over {need.provider}: {why}"


def _is_of_driver(link: Linked) -> bool:
    return link.path is None and link.name.startswith(_OF_DRIVER)


def _listed(names: Iterable[str]) -> str:
    every = list(dict.fromkeys(names))
    more = len(every) - _MOST_NAMED
    return ", ".join(every[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
