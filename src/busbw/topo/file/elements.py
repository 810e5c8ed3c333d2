"""The elements and attributes that NCCL knows in a topology file, and the limits of its reader.

From NCCL's src/graph/xml.{h,cc} and topo.cc at v2.30.7; older limits from the tags named.
"""

ROOT = "system"
VERSION = 1
# Of files with what only RCCL knows: AMD's processor, and XGMI links.
RCCL_VERSION = 2
CHILDREN: dict[str, tuple[str, ...]] = {
    "system": ("cpu",),
    "cpu": ("pci", "nic"),
    "pci": ("pci", "gpu", "nic", "pcilink"),
    "gpu": ("nvlink", "c2c"),
    "nic": ("net",),
    "net": (),
    "nvlink": (),
    "c2c": (),
    "pcilink": (),
}
# What RCCL, AMD's variant, keeps beyond that (its src/graph/xml.cc); NCCL ignores it and all it holds.
RCCL_CHILDREN = {"gpu": ("xgmi",)}
# `keep` is NCCL's own mark while it merges files; a file may hold it, to no effect.
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "system": ("version", "name"),
    "cpu": ("host_hash", "numaid", "affinity", "arch", "vendor", "familyid", "modelid"),
    "pci": (
        "busid", "class", "vendor", "device", "subsystem_vendor", "subsystem_device", "link_speed", "link_width",
    ),
    "gpu": ("dev", "sm", "rank", "gdr", "mlopart", "keep"),
    "nic": (),
    "net": (
        "name", "dev", "latency", "speed", "port", "guid", "maxconn", "gdr", "coll", "net", "gin", "rma", "rail",
        "plane", "keep",
    ),
    "nvlink": ("target", "count", "tclass"),
    "c2c": ("bw", "count"),
    "pcilink": ("target",),
}  # fmt: skip

# NCCL's buffers hold 255 characters and an end; its reader gives up when it has stored 254, the delimiter among them.
MOST_VALUE_BYTES = 253
MOST_ELEMENT_NAME_BYTES = 253
MOST_ATTRIBUTE_NAME_BYTES = 254
MOST_ATTRIBUTES = 16
# The array holds 256, and the reader refuses to read on, even a closing tag, once the last is taken. Up to 2.20: 1024.
MOST_ELEMENTS = 255
# 2.29 and newer; 128 from 2.21 to 2.28; 32 up to 2.20.
MOST_CHILDREN = 640
OLDER_MOST_CHILDREN = ((32, "2.20"), (128, "2.28"))
