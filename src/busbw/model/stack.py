"""A stack that somebody built: libraries and programs as their files say, with what the loader would make of them."""

from typing import Literal

from busbw.base.value import Integer, Value
from busbw.model.finding import Finding, FindingCounts

# What plug-ins for networks export, before the number of the interface.
NET = "ncclNetPlugin"

# plugin: of NCCL, for networks, tuning or profiling; provider: of libfabric, in a file of its own.
Role = Literal["nccl", "plugin", "nccl-tests", "libfabric", "provider", "mpi", "hwloc", "cudart", "other"]
# Who said where a library is; given folder: one that load.sh puts into LD_LIBRARY_PATH.
FoundBy = Literal["RPATH", "given folder", "LD_LIBRARY_PATH", "RUNPATH", "loader's cache", "default folder", "path"]


class DeviceCode(Value, kw_only=True, frozen=True):
    """Code for GPUs of one architecture."""

    # Compute capability times ten.
    sm: Integer
    # ptx: the driver compiles it when the program starts.
    kind: Literal["machine", "ptx"]
    # a: only this very GPU runs it; f: only its family.
    suffix: Literal["", "a", "f"] = ""

    def __str__(self) -> str:
        """Return it as the compiler's options have it: `sm_90a`, `compute_90`."""
        return f"{'sm' if self.kind == 'machine' else 'compute'}_{self.sm}{self.suffix}"

    def runs_on(self, sm: int) -> bool:
        """Whether a GPU takes it. Machine code runs on later minor versions of its GPU, PTX on every later one."""
        is_same_major = self.sm // 10 == sm // 10
        if self.suffix == "a":
            return self.sm == sm
        if self.kind == "machine" or self.suffix == "f":
            return is_same_major and self.sm <= sm
        return self.sm <= sm


class Linked(Value, kw_only=True, frozen=True):
    """One library that another one needs, and what the loader would take for it."""

    name: str
    # None: nothing here provides it.
    path: str | None = None
    by: FoundBy | None = None
    # Versions of symbols that are wanted of it and that it does not have.
    lacking: tuple[str, ...] = ()
    # Files of this name that come later in the search, and differ.
    hidden: tuple[str, ...] = ()


class BuiltPackage(Value, kw_only=True, frozen=True):
    """What a site's package manager says of a folder."""

    manager: Literal["Spack", "EasyBuild"]
    name: str
    version: str
    # The folder that it was installed into.
    prefix: str
    # Compiler, variants, toolchain: as the manager names them.
    details: str | None = None
    # Where that stands.
    file: str


class BuiltFile(Value, kw_only=True, frozen=True):
    """One library or program of a stack."""

    role: Role
    path: str
    # Its release as the file says it; None: it does not.
    version: str | None = None
    # The CUDA that an NCCL was built for.
    cuda: str | None = None
    # As `uname -m` says it; None: another one.
    machine: Literal["x86_64", "aarch64"] | None
    soname: str | None = None
    # Names under which NCCL finds a plug-in, as it exports them; of NCCL: those that it asks for.
    interfaces: tuple[str, ...] = ()
    # Of libfabric: the providers of fabrics that busbw knows platforms with.
    providers: tuple[str, ...] = ()
    code: tuple[DeviceCode, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    # Folders of RPATH and RUNPATH that are not there.
    absent: tuple[str, ...] = ()
    needs: tuple[Linked, ...] = ()
    # Whether it is in a folder that was given, and not one that was found through another.
    given: bool = True
    size_bytes: Integer = 0
    package: BuiltPackage | None = None

    @property
    def networks(self) -> tuple[str, ...]:
        """Return the interfaces for networks, the newest first."""
        return tuple(each for each in self.interfaces if each.startswith(f"{NET}_v"))

    @property
    def span(self) -> str:
        """Return the interfaces for networks as `ncclNetPlugin v6 to v10`."""
        versions = sorted(int(each.rpartition("_v")[2]) for each in self.networks)
        if not versions:
            return "none"
        if len(versions) == versions[-1] - versions[0] + 1 > 1:
            return f"{NET} v{versions[0]} to v{versions[-1]}"
        return f"{NET} {', '.join(f'v{each}' for each in versions)}"

    def common_interface(self, plugin: "BuiltFile") -> str | None:
        """Return the interface for networks that this NCCL takes of a plug-in; None: they have none in common."""
        asked = set(self.networks)
        return next((each for each in plugin.networks if each in asked), None)


class BuiltStack(Value, kw_only=True, frozen=True):
    """What was found in some folders or in an image, and what would be loaded with it."""

    # As given: folders, or the image.
    places: tuple[str, ...]
    # None: on this host.
    image: str | None = None
    files: tuple[BuiltFile, ...]
    packages: tuple[BuiltPackage, ...] = ()
    # Folders for LD_LIBRARY_PATH, in order.
    library_path: tuple[str, ...] = ()
    # What could not be read, and why.
    unread: tuple[str, ...] = ()

    def rank(self, file: BuiltFile) -> int:
        """Return the place of a file's folder in the search path; what is elsewhere comes last."""
        folder = file.path.rpartition("/")[0]
        return self.library_path.index(folder) if folder in self.library_path else len(self.library_path)

    def loaded(self, role: Role) -> BuiltFile | None:
        """Return the file of a role that programs would load: the first given one, else the first that was found."""
        of_role = [each for each in self.files if each.role == role]
        return next(iter(sorted(of_role, key=lambda each: (not each.given, self.rank(each)))), None)

    def network_plugin(self) -> BuiltFile | None:
        """Return the plug-in for networks that NCCL would load; None: there is none."""
        having = [each for each in self.files if each.role == "plugin" and each.networks]
        ordered = sorted(having, key=lambda each: (not each.path.endswith("/libnccl-net.so"), self.rank(each)))
        return next(iter(ordered), None)


class Adoption(Value, kw_only=True, frozen=True):
    """A stack, what is wrong with it, and what could not be told before it runs."""

    platform: str
    stack: BuiltStack
    findings: tuple[Finding, ...]
    counts: FindingCounts
    cannot_tell: tuple[str, ...] = ()
