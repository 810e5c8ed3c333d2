"""What a result says of the settings that were recommended for it."""

from tests.judge.explaining.gpu_runs import make_point

from busbw.model.settings import RecommendedLayer, RecommendedSetting, Setting
from busbw.show.recommended import layer_lines, layer_rows, layer_words


def setting(name, value, standing, topic="affinity", **fields):
    own = Setting(name=name, value=value, layer="recommended", source="s", reason="More of it. And a second sentence.")
    return RecommendedSetting(setting=own, need=fields.pop("need", "helps"), topic=topic, standing=standing, **fields)


LAYER = RecommendedLayer(
    platform="azure-nd-h100-v5",
    goal="bandwidth",
    nodes=2,
    nccl="2.28.9",
    settings=(
        setting(
            "NCCL_TOPO_FILE", "/t.xml", "left_out", topic="topology", why="nothing is at /t.xml on the planning host"
        ),
        setting("NCCL_MIN_CTAS", "24", "applied", topic="channels"),
        setting("NCCL_ALGO", "Ring", "applied", topic="algorithm", need="check_first"),
        setting(
            "NCCL_IB_HCA",
            "^mlx5_an0:1",
            "kept",
            topic="nics",
            over=Setting(name="NCCL_IB_HCA", value="=mlx5_0", layer="etc_conf", source="/etc/nccl.conf:2"),
        ),
        setting("CUDA_DEVICE_ORDER", "PCI_BUS_ID", "already"),
        setting("NCCL_PROTO", None, "already"),
    ),
    advice=("--bind-to numa: close to the GPU",),
)


def test_the_line_counts_what_became_of_them():
    assert layer_words(LAYER) == (
        "recommended for azure-nd-h100-v5, goal bandwidth (2 nodes, NCCL 2.28.9): "
        "2 applied, 2 already so, 1 kept as set here, 1 not applied"
    )


def test_each_setting_says_what_it_is_for_or_why_it_was_not_applied():
    assert layer_rows(LAYER) == (
        ("applied", 'NCCL_MIN_CTAS = "24"', "More of it", ""),
        ("applied", 'NCCL_ALGO = "Ring"', "More of it (check first)", ""),
        ("already so", 'CUDA_DEVICE_ORDER = "PCI_BUS_ID"', "More of it", ""),
        ("already so", "NCCL_PROTO unset", "More of it", ""),
        ("kept as set here", 'NCCL_IB_HCA = "^mlx5_an0:1"', '"=mlx5_0" of /etc/nccl.conf:2 stays', ""),
        ("not applied", 'NCCL_TOPO_FILE = "/t.xml"', "nothing is at /t.xml on the planning host", ""),
    )
    assert list(layer_lines(LAYER))[-1] == "  beside the settings: --bind-to numa: close to the GPU"


def test_what_nccl_says_it_used_stands_beside_the_settings_that_are_about_it():
    measured = (
        make_point(0, 2**20, 1e-4, chosen=("RING", "LL")),
        make_point(1, 2**30, 1e-2, chosen=("RING", "SIMPLE")),
    )
    seen = {row[1].partition(" ")[0]: row[3] for row in layer_rows(LAYER, measured)}

    assert seen["NCCL_MIN_CTAS"] == "24 channels"
    assert seen["NCCL_ALGO"] == "ring ll, ring simple"
    assert (seen["CUDA_DEVICE_ORDER"], seen["NCCL_IB_HCA"]) == ("", "")


def test_where_nccl_says_nothing_nothing_is_seen():
    assert {row[3] for row in layer_rows(LAYER, (make_point(0, 2**20, 1e-4, chosen=None),))} == {""}
