"""Makefiles: what is exported to recipes, the recipes themselves, and neighbours that are left alone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.env.lint import lint
from busbw.env.reading import read
from busbw.env.rules.subject import CheckContext

MAKEFILE = """\
NP ?= 8
PORTS = mlx5_0,$(SECOND)
SECOND := mlx5_1
export NCCL_IB_HCA = $(PORTS)  # both
export UCX_TLS := "rc,cuda"
NCCL_ALGO = Ring
export NCCL_NET_PLUGIN = $(shell find-plugin)
ifeq ($(FAST),1)
export NCCL_PROTO = LL
else
export NCCL_PROTO = Simple
endif

run: app
\t@mpirun -np $(NP) -x NCCL_IB_HCA \\
\t  -x NCCL_DEBUG=INFO ./app $$HOME
\t-export NCCL_NVLS_ENABLE=0
test: export NCCL_PROTO=LL128
test:
\tfor n in 1 2; do srun -n $$n ./app; done
"""


def codes(text: str, name: str = "Makefile") -> list[str]:
    return [each.code for each in lint(read(text, name), CheckContext()) if each.is_serious]


def test_settings_and_recipes_are_read_at_their_places():
    found = [(each.name, each.value, each.form, each.line) for each in read(MAKEFILE, "src/Makefile").assignments]

    assert ("NCCL_IB_HCA", "mlx5_0,mlx5_1", "export", 4) in found
    assert ("UCX_TLS", '"rc,cuda"', "export", 5) in found
    assert ("NCCL_ALGO", "Ring", "shell", 6) in found
    assert ("NCCL_NET_PLUGIN", None, "export", 7) in found
    assert ("NCCL_DEBUG", "INFO", "mpirun", 16) in found
    started = [each for each in read(MAKEFILE, "Makefile").launches if each.kind != "other"]
    assert [(each.kind, each.line) for each in started] == [("mpirun", 15), ("srun", 20)]
    assert started[0].argv[:3] == ("mpirun", "-np", "8")


def test_arms_and_targets_do_not_contradict_each_other():
    assert "ENV068" not in codes(MAKEFILE)
    assert "ENV068" in codes("export NCCL_ALGO = Ring\nexport NCCL_ALGO = Tree\n")


PAIRS = {
    "quotes are part of a value": ('export NCCL_NET = "IB"\n', "export NCCL_NET = IB\n", "ENV030"),
    "what is not exported": (
        "NCCL_IB_HCA = mlx5_0\na:\n\tsrun ./a\n",
        "NCCL_IB_HCA = m\nexport\na:\n\tsrun ./a\n",
        "ENV102",
    ),
    "a line of its own": ("a:\n\texport NCCL_DEBUG=WARN\n", "a:\n\texport NCCL_DEBUG=WARN; srun ./a\n", "ENV011"),
    "an option in a recipe": ("a:\n\t@srun --ntask 4 ./a\n", "a:\n\t@srun --ntasks $(NP) ./a\n", "ENV110"),
}


@pytest.mark.parametrize(("wrong", "right", "code"), PAIRS.values(), ids=PAIRS)
def test_a_slip_is_told_and_its_neighbour_is_not(wrong: str, right: str, code: str):
    assert code in codes(wrong)
    assert code not in codes(right)


@pytest.mark.parametrize("name", ["Makefile", "GNUmakefile", "a.mk", "Makefile.am", "Makefile.in", "sub/makefile"])
def test_makefiles_are_known_by_their_names(name: str):
    assert read("export NCCL_DEBUG = WARN\n", name).language == "makefile"


def test_what_make_would_ask_others_for_is_not_known():
    reading = read("A = $(B)\nB = $(A)\nexport NCCL_DEBUG = $(A)\ninclude other.mk\nexport X != date\n", "Makefile")

    assert [(each.name, each.value) for each in reading.assignments if each.form == "export"] == [
        ("NCCL_DEBUG", None),
        ("X", None),
    ]
    assert any("other.mk" in each.reason for each in reading.unread)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(["export A=", "$(", "${X}", "$$", "ifeq", "else", "endif", "a:", "\t", "\\", "\n", "#", "b"])
    )
)
def test_any_text_is_read(parts: list[str]):
    read(" ".join(parts), "Makefile")
