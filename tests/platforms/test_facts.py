"""The shipped platforms say what the collected facts say; where they do not, the reason stands here."""

import pytest

from busbw.facts.platforms import find_platform

from . import facts

FILES = sorted(facts.DIRECTORY.glob("*.yaml"))
_SCRIPT = "a script that sets many variables is not a setting"
_HCOLL = dict.fromkeys(
    ("setting OMPI --mca coll=^hcoll", "setting OMPI_MCA_coll is not in the facts"),
    "the option as the variable it sets",
)
_TUNER = {
    "setting NCCL_TUNER_PLUGIN=/opt/amazon/ofi-nccl/lib/<arch>-linux-gnu/libnccl-ofi-tuner.so": (
        "these machines have one architecture: the path is a real one"
    )
}
_P5 = [f"0000:{bus}:00.0" for bus in ("53", "64", "75", "86", "97", "a8", "b9", "ca")]
_B4_MASK = {
    f"{what} of NUMA 7: {(*range(112, 128), *range(240, 252))!r} in the facts, "
    f"{(*range(112, 128), *range(240, 256))!r} here": "the mask in the vendor's file is a digit short"
    for what in ("mask", "CPUs")
}
_P5_GPUS = dict.fromkeys(
    (
        f"gpu_pci of NUMA 0: {_P5[:2]!r} in the facts, {_P5[:4]!r} here",
        f"gpu_pci of NUMA 1: [] in the facts, {_P5[4:]!r} here",
    ),
    "published later",
)
# Differences that are meant: the text as `facts.differences` gives it, and why.
MEANT: dict[str, dict[str, str]] = {
    "alps-gh200": dict.fromkeys(
        (
            "setting FI_CXI_RDZV_GET_MIN / _THRESHOLD / _EAGER_SIZE=0",
            "setting FI_CXI_RDZV_GET_MIN is not in the facts",
            "setting FI_CXI_RDZV_THRESHOLD is not in the facts",
            "setting FI_CXI_RDZV_EAGER_SIZE is not in the facts",
        ),
        "three variables, which the facts name in one line",
    ),
    **dict.fromkeys(("aws-p4d", "aws-p4de", "aws-p5e", "aws-p5en"), _TUNER),
    "aws-p5": {**_TUNER, **_P5_GPUS},
    "azure-nd-h100-v5": {
        "published (10.0, 'GB/s', 'stated') is not in the facts": "a gain, which the facts have no row for",
    },
    "azure-ndm-a100-v4": dict.fromkeys(
        (f"published ({gain}, 'stated') is not in the facts" for gain in ("6.7, 'x'", "1.9, 'x'", "40.0, '%'")),
        "gains, which the facts have no rows for",
    ),
    "azure-nc-a100-v4": {"GPU count: {4} in the facts, {1, 2, 4} here": "the smaller sizes stand as variants"},
    "coreweave-h100": {
        "name: 'HGX H100 InfiniBand node'": "many sites have such a node: the name would not tell CoreWeave's",
        "NUMA ids: [] in the facts, [0, 1] here": "the facts have them in the GPU map only",
    },
    "gb200-nvl72": {
        "provider: 'nvidia (several clouds)' in the facts, 'nvidia' here": "the clouds are among the names",
        **dict.fromkeys(
            ("name: 'OCI BM.GPU.GB200.4'", "name: 'Azure ND GB200 v6 (no topology file)'"),
            "platforms of their own: their networks, names and CPUs differ",
        ),
    },
    "gcp-a3-high": {
        "NUMA ids: [] in the facts, [0, 1] here": "the facts have them in other words",
        "setting NCCL_GPUDIRECTTCPX_SOCKET_IFNAME=eth1..eth4": "written out",
        "setting NCCL_GPUDIRECTTCPX_TX_BINDINGS=nic1,nic2:8-21,112-125;nic3,nic4:60-73,164-177": "written out",
        "setting NCCL_GPUDIRECTTCPX_RX_BINDINGS=nic1,nic2:22-35,126-139;nic3,nic4:74-87,178-191": "written out",
    },
    "gcp-a3-mega": {
        "setting NCCL_FASTRAK_IFNAME=the eight data NICs": "written out",
        "setting NCCL_TUNER_CONFIG_PATH=<lib>/a3plus_tuner_config.textproto": "written out",
        "setting NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE=<lib>/a3plus_guest_config.textproto": "written out",
    },
    "gcp-a3-ultra": {"setting (script)=source /usr/local/gib/scripts/set_nccl_env.sh": _SCRIPT},
    "nvidia-dgx-a100": {"GPU memory: 40000000000 in the facts, None here": "40 or 80 GB: they stand as variants"},
    "oci-bm-gpu4-8": _HCOLL,
    "oci-bm-gpu-b4-8": {**_HCOLL, **_B4_MASK},
    "oci-bm-gpu-gm4-8": {**_HCOLL, **_B4_MASK},
    "oci-bm-gpu-h100-8": {
        "setting NCCL_NET_PLUGIN=HPC-X sharp plugin path if present, else none": "a rule, not a value",
    },
}


@pytest.mark.skipif(not FILES, reason=f"the collected facts are not at {facts.DIRECTORY}: nothing to compare with")
@pytest.mark.parametrize("name", [path.stem for path in FILES] or [""])
def test_a_platform_agrees_with_the_collected_facts(name: str) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed, which reads the collected facts")
    # The loader that makes dates of days would not compare.
    collected = yaml.load((facts.DIRECTORY / f"{name}.yaml").read_text(), Loader=yaml.CSafeLoader)
    found = facts.differences(collected, find_platform(name).platform)
    meant = MEANT.get(name, {})
    assert [each for each in found if each not in meant] == []
    assert [each for each in meant if each not in found] == []
