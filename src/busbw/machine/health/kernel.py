"""How the kernel is set: NUMA balancing, frequency of the CPUs, the clock, the CPUs of this process."""

from busbw.base.cpus import format_cpu_list
from busbw.machine.health.node import Node, fault, fine, found, skipped, unknown
from busbw.model.host_check import HostCheck


def numa_balancing(node: Node) -> HostCheck:
    """Check that the kernel does not move pages between NUMA nodes by itself."""
    name, look = "NUMA balancing", "cat /proc/sys/kernel/numa_balancing"
    if len([numa for numa in node.hardware.numa if numa.cpus]) == 1:
        return skipped(name, "one NUMA node", look=look)
    value = node.state.numa_balancing
    if value is None:
        return unknown(name, "the kernel does not say", look=look)
    if value == 0:
        return fine(name, "off", look=look)
    fix = "sudo sysctl kernel.numa_balancing=0, and the same in /etc/sysctl.d to keep it"
    evidence = f"kernel.numa_balancing = {value}"
    return found(name, fault("HOST004", evidence=evidence, fix=fix, look=look, confidence="possible"), look=look)


def cpu_frequency(node: Node) -> HostCheck:
    """Check that the CPUs are not told to save power."""
    name, look = "CPU governor", "cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
    governor = node.state.governor
    if governor is None and node.hardware.hypervisor is not None:
        return skipped(name, "a virtual machine: the frequency is the hypervisor's", look=look)
    if governor is None:
        return unknown(name, "the kernel does not say", look=look)
    if governor == "performance":
        return fine(name, governor, look=look)
    fix = "sudo cpupower frequency-set -g performance"
    evidence = f"CPU 0 has the governor {governor}"
    return found(
        name,
        fault("HOST005", governor=governor, evidence=evidence, fix=fix, look=look, confidence="possible"),
        look=look,
    )


def clock(node: Node) -> HostCheck:
    """Check that the clock follows others: logs of several nodes are put in order by it."""
    name, look = "clock", "timedatectl show -p NTPSynchronized"
    synchronised = node.state.clock_synchronised
    if synchronised is None:
        return unknown(name, "timedatectl does not say", look=look)
    if synchronised:
        return fine(name, "synchronised", look=look)
    evidence, fix = "NTPSynchronized = no", "start chronyd or systemd-timesyncd; a hypervisor may do it unseen"
    return found(name, fault("HOST006", evidence=evidence, fix=fix, look=look, confidence="possible"), look=look)


def allowed_cpus(node: Node) -> HostCheck:
    """Check that this process may use every CPU."""
    name, look = "CPUs of this process", "taskset -cp $$"
    allowed, every = node.state.allowed_cpus, node.hardware.cpus
    if not allowed or not every:
        return unknown(name, "the kernel does not say which CPUs there are, or which are allowed", look=look)
    if set(every) <= set(allowed):
        return fine(name, f"all {len(every)}", look=look)
    evidence = f"allowed {format_cpu_list(allowed)} of {format_cpu_list(every)}"
    fix = "in a job: ask for whole nodes; in a container: --cpuset-cpus; see `busbw topo masks --here`"
    made = fault(
        "HOST007", few=len(allowed), many=len(every), evidence=evidence, fix=fix, look=look, confidence="possible"
    )
    return found(name, made, look=look)
