"""What is in force: the shell before NCCL's settings files, and these as NCCL reads them."""

from hypothesis import given
from hypothesis import strategies as st

from busbw.env.layers import LONGEST_BYTES, conf_lines, exports_of, layers, settings_paths
from busbw.env.reading import read
from busbw.model.settings import JobEnvironment, SettingsFile

NEWEST, BEFORE_COMMENTS, BEFORE_RETURNS = (2, 32, 3), (2, 25, 1), (2, 29, 7)
OWN = "/home/u/.nccl.conf"


def surroundings(
    environment: dict[str, str] | None = None, *, own: str = "", etc: str = "", platform: str | None = None
) -> JobEnvironment:
    files = (
        SettingsFile(path=OWN, layer="conf", text=own),
        SettingsFile(path="/etc/nccl.conf", layer="etc_conf", text=etc),
    )
    return JobEnvironment(where="a host", environment=environment or {}, files=files, platform=platform)


def pairs(text: str, nccl: tuple[int, ...] = NEWEST) -> list[tuple[str, str]]:
    return [(line.name, line.value) for line in conf_lines(text, nccl)]


def test_the_shell_wins_over_the_own_file_and_that_over_the_one_of_the_host() -> None:
    settings = layers(surroundings({"A": "shell"}, own="A=own\nB=own\n", etc="A=etc\nB=etc\nC=etc\n"), NEWEST)
    assert settings.env() == {"A": "shell", "B": "own", "C": "etc"}
    assert [(each.layer, each.value, each.source) for each in settings.explain("A")] == [
        ("shell", "shell", "the environment of a host"),
        ("conf", "own", f"{OWN}:1"),
        ("etc_conf", "etc", "/etc/nccl.conf:1"),
    ]


def test_the_files_may_be_given_in_any_order() -> None:
    found = surroundings(own="A=own", etc="A=etc")
    turned = JobEnvironment(where="a host", environment={}, files=tuple(reversed(found.files)))
    assert layers(turned, NEWEST).env() == {"A": "own"}


def test_of_two_lines_in_one_file_the_first_counts() -> None:
    settings = layers(surroundings(own="A=1\nB=2\nA=3\n"), NEWEST)
    assert [(each.value, each.source) for each in settings.explain("A")] == [("1", f"{OWN}:1"), ("3", f"{OWN}:3")]


def test_a_variable_that_the_shell_sets_to_nothing_keeps_the_files_out() -> None:
    assert layers(surroundings({"A": ""}, own="A=1"), NEWEST).env() == {"A": ""}


def test_a_line_is_taken_as_it_stands() -> None:
    text = 'A = 1 # why\nNCCL_SOCKET_IFNAME==ens1f0\nQ="x y"\nexport B=2\nE=\nno equals sign\n=nothing\n\n'
    assert pairs(text) == [
        ("A ", " 1 # why"),
        ("NCCL_SOCKET_IFNAME", "=ens1f0"),
        ("Q", '"x y"'),
        ("export B", "2"),
        ("E", ""),
    ]


def test_comments_are_variables_before_2_26_2() -> None:
    assert pairs("#A=1\n #B=2\n") == [(" #B", "2")]
    assert pairs("#A=1\n", BEFORE_COMMENTS) == [("#A", "1")]
    assert pairs("#A=1\n", (2, 26)) == []


def test_a_carriage_return_is_part_of_the_value_before_2_30_3() -> None:
    assert pairs("A=1\r\n") == [("A", "1")]
    assert pairs("A=1\r\n", BEFORE_RETURNS) == [("A", "1\r")]


def test_names_and_values_are_cut_where_nccl_cuts_them() -> None:
    lines = list(conf_lines(f"A={'x' * 1500}\n{'N' * 1500}=1\nB={'y' * LONGEST_BYTES}\n", NEWEST))
    assert [(len(line.name), len(line.value), line.cut) for line in lines] == [
        (1, LONGEST_BYTES, True),
        (LONGEST_BYTES, 1, True),
        (1, LONGEST_BYTES, False),
    ]


def test_the_rest_of_a_very_long_line_counts_as_a_line_since_2_30_3() -> None:
    text = "A=" + "x" * 4093 + "B=2\n"
    assert [name for name, _ in pairs(text)] == ["A", "B"]
    assert [name for name, _ in pairs(text, BEFORE_RETURNS)] == ["A"]


@given(st.text(), st.sampled_from([NEWEST, BEFORE_COMMENTS, BEFORE_RETURNS]))
def test_any_text_is_read_and_nothing_is_longer_than_nccl_takes(text: str, nccl: tuple[int, ...]) -> None:
    for line in conf_lines(text, nccl):
        assert line.name
        assert "=" not in line.name
        assert "\n" not in line.value
        assert len(line.value.encode("utf-8", "surrogatepass")) <= LONGEST_BYTES + 2


def test_the_own_file_is_the_one_that_the_environment_names_since_2_23_4() -> None:
    environment = {"NCCL_CONF_FILE": "~/mine.conf"}
    assert settings_paths(environment, home="/home/u", nccl=NEWEST) == (
        ("conf", "~/mine.conf"),
        ("etc_conf", "/etc/nccl.conf"),
    )
    assert settings_paths(environment, home="/home/u", nccl=(2, 22, 3))[0] == ("conf", OWN)
    assert settings_paths({"NCCL_CONF_FILE": ""}, home="/home/u", nccl=NEWEST)[0] == ("conf", OWN)
    assert settings_paths({}, home=None, nccl=NEWEST) == (("etc_conf", "/etc/nccl.conf"),)


def test_what_a_plugin_sets_is_weaker_than_everything_that_somebody_wrote() -> None:
    alone = layers(surroundings(platform="aws-p5en"), NEWEST)
    assert alone.env()["NCCL_BUFFSIZE"] == "8388608"
    assert alone.env()["NCCL_NETDEVS_POLICY"] == "max:1"
    written = layers(surroundings(etc="NCCL_BUFFSIZE=1048576", platform="aws-p5en"), NEWEST)
    assert [each.layer for each in written.explain("NCCL_BUFFSIZE")] == ["etc_conf", "site"]


def test_a_plugin_sets_nothing_on_other_platforms_and_nothing_that_the_version_does_not_read() -> None:
    assert layers(surroundings(platform="azure-nd-h100-v5"), NEWEST).env() == {}
    assert layers(surroundings(), NEWEST).env() == {}
    assert "NCCL_NETDEVS_POLICY" not in layers(surroundings(platform="aws-p5en"), (2, 27, 7)).env()


def test_the_version_is_the_one_found_where_none_is_asked_for() -> None:
    old = JobEnvironment(where="a host", environment={}, files=surroundings(own="#A=1").files, nccl="2.22.3")
    assert layers(old).env() == {"#A": "1"}
    assert layers(surroundings(own="#A=1")).env() == {}


def test_what_plugins_are_known_to_set_is_said_even_where_the_value_depends() -> None:
    assert [each.value for each in exports_of("NCCL_TOPO_FILE")] == [None]
    assert exports_of("NCCL_DEBUG") == ()


@given(st.text(alphabet='AB=# "\n\t', max_size=60))
def test_a_settings_file_is_linted_as_what_nccl_makes_of_it(text: str) -> None:
    # A line without a name does nothing, and is taken down so that it can be pointed at.
    linted = [(each.name, each.value) for each in read(text, "nccl.conf", "nccl.conf").assignments if each.name]
    assert linted == pairs(text)
