"""Names of hosts as batch systems list them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cost import check_cost

from busbw.base.errors import InputError
from busbw.base.hostlist import MOST_HOSTS, compressed, expand, is_host_name

# Of slurm.conf(5) and of Flux's RFC 29, and what they say it stands for.
DOCUMENTED = (
    ("alpha,beta,gamma", "alpha beta gamma"),
    ("lx[15,18,32-33]", "lx15 lx18 lx32 lx33"),
    ("linux[0000-0002]", "linux0000 linux0001 linux0002"),
    ("rack[0-1]_blade[0-2]", "rack0_blade0 rack0_blade1 rack0_blade2 rack1_blade0 rack1_blade1 rack1_blade2"),
    ("foo[0-4]-eth2", "foo0-eth2 foo1-eth2 foo2-eth2 foo3-eth2 foo4-eth2"),
    ("[1-3,5-6]", "1 2 3 5 6"),
    ("[00-2]", "00 01 02"),
    ("foo[1,1,2,1]", "foo1 foo1 foo2 foo1"),
    ("foo1,foo1,foo1", "foo1 foo1 foo1"),
    ("", ""),
    ("n[0-3,07-12],gpu-[1]", "n0 n1 n2 n3 n07 n08 n09 n10 n11 n12 gpu-1"),
    ("n[098-101]", "n098 n099 n100 n101"),
    ("ip-10-0-0-[9-10].ec2.internal", "ip-10-0-0-9.ec2.internal ip-10-0-0-10.ec2.internal"),
    ("web_[1-2],_n0_,10.0.0.1", "web_1 web_2 _n0_ 10.0.0.1"),
)
LABELS = st.sampled_from(("n", "gpu-", "rack", "a.b", "x_", "node0", ""))
NUMBERS = st.integers(0, 120).flatmap(lambda number: st.integers(1, 4).map(lambda width: f"{number:0{width}d}"))
NAMES = st.lists(LABELS | NUMBERS, min_size=1, max_size=5).map("".join).filter(is_host_name)


@pytest.mark.parametrize(("text", "names"), DOCUMENTED)
def test_a_list_stands_for_the_names_that_its_documentation_says(text: str, names: str) -> None:
    assert expand(text, where="test") == tuple(names.split())


@given(st.lists(NAMES, max_size=30))
def test_compressed_names_expand_to_themselves(names: list[str]) -> None:
    assert expand(compressed(names), where="test") == tuple(names)


@given(
    st.lists(st.tuples(st.sampled_from(("n", "rack0-n", "gpu.")), st.integers(0, 200), st.integers(1, 40)), max_size=4)
)
def test_ranges_are_found_again(ranges: list[tuple[str, int, int]]) -> None:
    names = [f"{prefix}{number}" for prefix, first, count in ranges for number in range(first, first + count)]
    assert expand(compressed(names), where="test") == tuple(names)


def test_many_hosts_are_one_short_line() -> None:
    assert compressed([f"n{number}" for number in range(MOST_HOSTS)]) == "n[0-65535]"
    assert compressed(["n0", "n1", "n3", "login"]) == "n[0-1,3],login"
    assert compressed(["n08", "n09", "n10"]) == "n[08-10]"
    assert compressed(["r1n0", "r1n1", "r2n0"]) == "r1n[0-1],r2n0"
    assert compressed(["n7"]) == "n7"
    assert compressed([]) == ""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("n[0-3", "a bracket that is not closed"),
        ("n0-3]", "brackets that do not pair"),
        ("n[0-[1-2]]", "brackets that do not pair"),
        ("n[]", "neither a number nor a range"),
        ("n[a-c]", "neither a number nor a range"),
        ("n[0-3:2]", "neither a number nor a range"),
        ("n[000x733]", "neither a number nor a range"),
        ("n[3-1]", "a range that runs backwards, 3-1"),
        ("n[9-010]", "a range with two widths, 9-010"),
        ("n0,,n1", "an empty name"),
        (",", "an empty name"),
        ("n0 n1", "cannot be the name of a host"),
        ("-oProxyCommand=x", "cannot be the name of a host"),
        ("n0;id", "cannot be the name of a host"),
        ("$(id)", "cannot be the name of a host"),
        ("n..0", "cannot be the name of a host"),
        ("n0\n", "cannot be the name of a host"),
        ("ñ0", "cannot be the name of a host"),
        ("a" * 254, "cannot be the name of a host"),
        ("a" * 64, "cannot be the name of a host"),
        ("n0-", "cannot be the name of a host"),
        ("n0.-n1", "cannot be the name of a host"),
    ],
)
def test_what_is_no_list_of_hosts_is_refused_with_the_reason(text: str, cause: str) -> None:
    with pytest.raises(InputError, match=cause.replace("[", r"\[")) as refused:
        expand(text, where="--hosts")
    assert refused.value.where == "--hosts"


@pytest.mark.parametrize("text", ["n[0-999999999999]", "n[0-9]" * 12, "n[0-65535],m", "[0-65536]"])
def test_a_list_of_millions_is_refused_before_it_is_expanded(text: str) -> None:
    def refuse() -> None:
        with pytest.raises(InputError, match="more than 65536 hosts"):
            expand(text, where="test")

    check_cost(refuse, most_s=1)


def test_as_many_hosts_as_there_may_be_ranks_are_taken() -> None:
    assert len(expand("n[0-65535]", where="test")) == MOST_HOSTS
