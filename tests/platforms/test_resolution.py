"""From files to a platform: what is inherited, where each value comes from, and what is refused."""

import pytest

from busbw.base.errors import InputError
from busbw.facts.platforms import all_platforms, find_platform, platform_ids
from busbw.model.platform import ResolvedPlatform

from .files import platform_file, site_file

WIKI = '[[sources]]\nid = "wiki"\nreference = "our wiki, page Cluster"\n'
FAMILY = site_file(
    "family/card",
    WIKI + '[gpu]\nmodel = "X1"\nsm = 90\nsource = ["wiki"]\nchecked = 2026-11-20\n'
    '[nvlink]\ngpu_Bps = 450e9\nsource = ["wiki"]\n',
)


def origin(resolved: ResolvedPlatform, path: str) -> tuple[str, tuple[str, ...], str | None]:
    found = next(each for each in resolved.origins if each.path == path)
    return found.file.rsplit("/", 1)[-1], found.source, found.checked


def refusal(*files) -> InputError:
    with pytest.raises(InputError) as refused:
        find_platform("ours", files)
    return refused.value


def test_a_platform_takes_over_what_its_family_says() -> None:
    ours = platform_file("ours", '[gpu]\ncount = 4\nsource = ["wiki"]\nchecked = "2026-10"\n', head=EXTENDS)

    resolved = find_platform("ours", (FAMILY, ours))

    assert (resolved.platform.gpu.model, resolved.platform.gpu.count) == ("X1", 4)
    assert resolved.files == (ours.path, FAMILY.path)
    assert origin(resolved, "gpu.model") == ("card.toml", ("wiki",), "2026-11-20")
    assert origin(resolved, "gpu.count") == ("ours.toml", ("wiki",), "2026-10")


EXTENDS = 'extends = ["family/card"]\n'


def test_a_section_cites_what_its_values_cite_and_is_as_old_as_the_oldest_of_them() -> None:
    ours = platform_file(
        "ours",
        '[gpu]\ncount = 4\nsource = ["list"]\nchecked = "2026-10"\n[[sources]]\nid = "list"\nreference = "a list"\n',
        head=EXTENDS,
    )
    platform = find_platform("ours", (FAMILY, ours)).platform
    assert platform.gpu.source == ("list", "wiki")
    assert platform.gpu.checked == "2026-10"
    # One of its values says no day.
    assert platform.nvlink.checked is None
    assert [each.id for each in platform.sources] == ["wiki", "list"]


def test_only_cited_sources_are_part_of_a_platform() -> None:
    ours = platform_file("ours", '[[sources]]\nid = "other"\nreference = "not cited"\n', head=EXTENDS)
    assert [each.id for each in find_platform("ours", (FAMILY, ours)).platform.sources] == ["wiki"]


def test_a_value_of_the_family_that_is_not_known_here_is_none() -> None:
    ours = platform_file("ours", head=EXTENDS + 'unknown = ["gpu.sm", "nvlink"]\n')
    platform = find_platform("ours", (FAMILY, ours)).platform
    assert platform.gpu.sm is None
    assert platform.nvlink.gpu_Bps is None
    assert platform.gpu.model == "X1"


def test_families_apply_from_left_to_right_and_each_once() -> None:
    common = site_file("family/common", '[gpu]\nmodel = "common"\n[pcie]\nwidth = 16\n[fabric]\nplugin = "common"\n')
    left = site_file("family/left", 'extends = ["family/common"]\n[gpu]\nmodel = "left"\n[fabric]\nplugin = "left"\n')
    right = site_file("family/right", 'extends = ["family/common"]\n[fabric]\nplugin = "right"\n')
    ours = platform_file("ours", head='extends = ["family/left", "family/right"]\n')

    resolved = find_platform("ours", (common, left, right, ours))

    # What `right` shares with `left` does not come back over what `left` says.
    assert resolved.platform.gpu.model == "left"
    assert resolved.platform.fabric.plugin == "right"
    assert resolved.platform.pcie.width == 16
    assert resolved.files == (ours.path, right.path, left.path, common.path)


def test_files_of_the_same_name_are_laid_over_each_other() -> None:
    system = platform_file("ours", "[gpu]\ncount = 8\nsm = 90\n")
    user = site_file("ours", "[gpu]\ncount = 4\n", "/home/me/.config/busbw/platforms")

    resolved = find_platform("ours", (system, user))

    assert (resolved.platform.gpu.count, resolved.platform.gpu.sm) == (4, 90)
    assert resolved.files == (user.path, system.path)
    assert platform_ids((system, user)).count("ours") == 1


def test_a_site_lays_its_file_over_a_family_too() -> None:
    over = site_file("family/card", "[gpu]\nsm = 100\n", "/home/me/.config/busbw/platforms")
    ours = platform_file("ours", head=EXTENDS)
    assert find_platform("ours", (FAMILY, over, ours)).platform.gpu.sm == 100


def test_a_platform_that_extends_another_is_recognised_and_called_by_its_own_file_alone() -> None:
    cloud = site_file("family/cloud", '[match]\nservice = "aws"\n')
    first = platform_file("first", '[match]\nskus = ["x"]\n[gpu]\ncount = 8\n', head='extends = ["family/cloud"]\n')
    ours = platform_file("ours", '[match]\nhostnames = ["blue*"]\n', head='extends = ["first"]\n')
    platform = find_platform("ours", (cloud, first, ours)).platform
    assert platform.id == "ours"
    assert platform.names == ("Ours",)
    assert platform.gpu.count == 8
    assert platform.match.skus == ()
    # What a family knows of the cloud holds for all its machines.
    assert platform.match.service == "aws"


def test_a_site_can_take_a_value_out_of_a_platform() -> None:
    first = platform_file("ours", "[gpu]\ncount = 8\nsm = 90\n")
    over = site_file("ours", 'unknown = ["gpu.sm"]\n', "/home/me/.config/busbw/platforms")
    resolved = find_platform("ours", (first, over))
    assert (resolved.platform.gpu.count, resolved.platform.gpu.sm) == (8, None)


def test_a_setting_can_be_unset() -> None:
    text = '[[settings]]\nname = "NCCL_P2P_DISABLE"\nscope = "nccl"\nunset = true\n'
    assert find_platform("ours", (platform_file("ours", text),)).platform.settings[0].value is None


def test_days_may_be_written_as_days() -> None:
    ours = platform_file("ours", "[gpu]\ncount = 1\nchecked = 2026-11-21\n")
    assert find_platform("ours", (ours,)).platform.gpu.checked == "2026-11-21"


def test_a_circle_names_its_way() -> None:
    first = platform_file("ours", head='extends = ["family/a"]\n')
    a = site_file("family/a", 'extends = ["family/b"]\n')
    b = site_file("family/b", 'extends = ["ours"]\n')
    refused = refusal(first, a, b)
    assert refused.cause == "a circle: ours extends family/a extends family/b extends ours"
    assert refused.where == b.path


def test_a_missing_family_names_the_way_to_it() -> None:
    a = site_file("family/a", 'extends = ["family/gone"]\n')
    refused = refusal(platform_file("ours", head='extends = ["family/a"]\n'), a)
    assert "ours extends family/a extends family/gone" in refused.cause
    assert refused.where == a.path


@pytest.mark.parametrize(
    ("text", "cause", "where"),
    [
        ("[gpu]\nsmm = 1\n", "unknown key 'smm'; maybe: sm", "ours.toml: gpu"),
        ("[gpu]\nqqqq = 1\n", "unknown key 'qqqq'", "ours.toml: gpu"),
        ("[[numa]]\nid = 0\ncpu = '1'\n", "unknown key 'cpu'; maybe: cpus", "ours.toml: numa[0]"),
        ("[nvlnk]\n", "unknown key 'nvlnk'; maybe: nvlink", "ours.toml"),
        ('[gpu]\n"a\\nb" = 1\n', "unknown key 'a\\nb'", "ours.toml: gpu"),
        ("[gpu]\ncount = -1\n", "-1 is less than nothing", "ours.toml: gpu.count"),
        ("[[variants]]\nsku = 'a'\nnic_bps = -1e9\n", "-1e+09 is less than nothing", "ours.toml: variants[0].nic_bps"),
        ('[gpu]\nsm = "a"\n', "expected `int | null`, got `str`", "ours.toml: gpu.sm"),
        ("[gpu]\nsm = 1.5\n", "got `float`", "ours.toml: gpu.sm"),
        ("nonsense = 1\n", "unknown key 'nonsense'", "ours.toml"),
        ("gpu = 3\n", "not a table", "ours.toml: gpu"),
        ("numa = 3\n", "not a list", "ours.toml: numa"),
        ("numa = [3]\n", "not a table", "ours.toml: numa[0]"),
        ('[[numa]]\ncpus = "0"\n', "entry 1 has no id", "ours.toml: numa"),
        ("[[numa]]\nid = 0\n[[numa]]\nid = 0\n", "0 stands twice", "ours.toml: numa"),
        ("[[nics]]\nnuma = 0\n", "entry 1 has no name or bus_id", "ours.toml: nics"),
        ("[[published]]\ntest = 1\n", "expected `str`", "ours.toml: published[0].test"),
        ("[match.dmi]\nsys_vendor = 1\n", "expected `str`", "ours.toml: match.dmi"),
        ("[nic]\nport_bps = inf\n", "inf is not a number", "ours.toml: nic"),
        ("[nic]\nport_bps = nan\n", "nan is not a number", "ours.toml: nic"),
        ("[gpu]\nsm = 99999999999999999999\n", "too large", "ours.toml: gpu"),
        ('[gpu]\ncount = 1\nsource = "wiki"\n', "`source` is not a list", "ours.toml: gpu"),
        ('[gpu]\ncount = 1\nsource = ["nowhere"]\n', "'nowhere' is cited and declared nowhere", "ours.toml: gpu.count"),
        ('[gpu]\ncount = 1\nchecked = "yesterday"\n', "`checked` is not a day", "ours.toml: gpu"),
        ('[[settings]]\nname = "A"\nscope = "nccl"\n', "missing required field `value`", "ours.toml: settings[0]"),
        ('[[settings]]\nname = "A"\nscope = "nccl"\nunset = false\n', "either `unset", "settings[0]"),
        ('[[settings]]\nname = "A"\nscope = "nccl"\nunset = true\nvalue = "1"\n', "either `unset", "settings[0]"),
        ('[gpu]\nsource = ["a"]\nsm = 1\n[[sources]]\nid = "a"\n', "missing required field `reference`", "sources[a]"),
        (
            '[gpu]\nsource = ["a"]\nsm = 1\n[[sources]]\nid = "a"\nreference = "b"\nchecked = "2026"\n',
            "unknown field `checked`",
            "ours.toml: sources[a]",
        ),
        ("[a\n", "not valid TOML", "ours.toml"),
        ("a." * 300 + "a = 1\n", "more than 200 dots", "ours.toml:4"),
        ("x = " + "[" * 2000, "not valid TOML", "ours.toml"),
        ("x = " + "9" * 5000, "not valid TOML", "ours.toml"),
        ("status = 0x" + "f" * 5000, "too large", "ours.toml: status"),
        ('[[numa]]\nid = 0\ncpus = "0-"\n', "'0-' is not a list of CPUs", "ours.toml: numa[0].cpus"),
        (
            '[[numa]]\nid = 0\ncpus = "0-3"\n[[numa]]\nid = 1\ncpus = "3-5"\n',
            "CPU 3 is on NUMA node 0 and on 1",
            "ours.toml: numa[1].cpus",
        ),
        ('[gpu]\ncount = 1\n[[gpus]]\ngpu = 0\nbus_id = "1:0"\n', "not a PCI address", "ours.toml: gpus[0].bus_id"),
        ("[[gpus]]\ngpu = 0\n", "1 are listed, and gpu.count is 0", "ours.toml: gpus"),
        ("[[numa]]\nid = 0\n[gpu]\ncount = 1\n[[gpus]]\ngpu = 0\nnuma = 4\n", "no NUMA node 4", "gpus[0].numa"),
        ('[gpu]\ncount = 1\n[[gpus]]\ngpu = 0\nparent = "x"\n', "no switch x", "ours.toml: gpus[0].parent"),
        (
            '[[switches]]\nbus_id = "ffff:ff:01.0"\nnuma = 0\nparent = "ffff:ff:01.0"\n',
            "in a circle",
            "ours.toml: switches[0].parent",
        ),
        ('[gpu]\ncount = 1\n[[gpus]]\ngpu = 0\nnics = ["b"]\n[[nics]]\nname = "a"\n', "no NIC b", "gpus[0].nics"),
    ],
)  # fmt: skip
def test_what_is_not_as_it_has_to_be_is_refused_with_file_and_key(text: str, cause: str, where: str) -> None:
    refused = refusal(platform_file("ours", text))
    assert cause in refused.cause
    assert where.rsplit("/", 1)[-1] in (refused.where or "")


def test_the_file_that_is_named_is_the_one_that_says_it() -> None:
    wrong = site_file("family/card", '[gpu]\nsm = "ninety"\n')
    refused = refusal(wrong, platform_file("ours", "[gpu]\ncount = 1\n", head=EXTENDS))
    assert refused.where == f"{wrong.path}: gpu.sm"


@pytest.mark.parametrize("extends", ['"family/card"', '["../../etc/passwd"]', '["Family/Card"]', "[1]", '["sources"]'])
def test_extends_is_a_list_of_names(extends: str) -> None:
    assert "`extends` is not a list" in refusal(platform_file("ours", head=f"extends = {extends}\n")).cause


@pytest.mark.parametrize("unknown", ['"gpu"', "[1]"])
def test_unknown_is_a_list_of_paths(unknown: str) -> None:
    assert "`unknown` is not a list" in refusal(platform_file("ours", head=f"unknown = {unknown}\n")).cause


def test_a_file_and_its_id_have_the_same_name() -> None:
    refused = refusal(platform_file("ours", head='id = "others"\n'))
    assert refused.cause == "the id is 'others' and the file is called ours.toml"
    assert find_platform("ours", (platform_file("ours", head='id = "ours"\n'),)).platform.id == "ours"


def test_a_family_has_no_id() -> None:
    family = site_file("family/card", 'id = "card"\n')
    assert refusal(family, platform_file("ours", head=EXTENDS)).cause == "a family has no id"


def test_a_file_name_that_is_no_id_is_refused() -> None:
    with pytest.raises(InputError, match="cannot be the name of a platform"):
        platform_ids((site_file("Our Cluster", ""),))


def test_a_site_declares_sources_for_all_its_files() -> None:
    shared = site_file("sources", WIKI)
    ours = platform_file("ours", '[gpu]\ncount = 1\nsource = ["wiki"]\n')
    assert find_platform("ours", (shared, ours)).platform.sources[0].reference == "our wiki, page Cluster"
    assert "sources" not in platform_ids((shared, ours))


def test_a_long_chain_of_families_ends() -> None:
    chain = [site_file(f"family/f{place}", f'extends = ["family/f{place + 1}"]\n') for place in range(150)]
    last = site_file("family/f150", "[gpu]\nsm = 1\n")
    ours = platform_file("ours", head='extends = ["family/f0"]\n')
    assert find_platform("ours", (*chain, last, ours)).platform.gpu.sm == 1


def test_all_platforms_hold_the_sites_own() -> None:
    ours = platform_file("ours", "[gpu]\ncount = 1\n")
    found = {platform.id: platform for platform in all_platforms((ours,))}
    assert found["ours"].gpu.count == 1
    assert list(found) == sorted(found)
