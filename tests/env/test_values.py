"""How NCCL, UCX, libfabric, plug-ins, CUDA and MPI understand a value, by version."""

import pytest

from busbw.env.values import LONGEST, read_value
from busbw.env.values_c import leading_integer, meant_bytes
from busbw.facts.envvars import variable
from busbw.model.envvar import ValueReading

OLD, BEFORE_232, NEW = (2, 20, 5), (2, 31, 2), (2, 32, 3)


def understood(name: str, text: str, version: tuple[int, ...] | None = None) -> ValueReading:
    return read_value(variable(name), text, version)


@pytest.mark.parametrize(
    ("text", "value", "rest"),
    [
        ("8", 8, ""),
        (" 8", 8, ""),
        ("8M", 8, "M"),
        ("0x10", 16, ""),
        ("010", 8, ""),
        ("08", 0, "8"),
        ("-2", -2, ""),
        ("+3 # three", 3, " # three"),
        ("1e6", 1, "e6"),
        ("9223372036854775807", 2**63 - 1, ""),
    ],
)
def test_the_integer_a_text_begins_with_is_read_as_c_reads_it(text: str, value: int, rest: str) -> None:
    number = leading_integer(text)

    assert number is not None
    assert (number.value, number.rest) == (value, rest)


@pytest.mark.parametrize("text", ["", "true", "M8", "-", " ", "x10"])
def test_a_text_without_digits_at_its_beginning_is_no_number(text: str) -> None:
    assert leading_integer(text) is None


@pytest.mark.parametrize(
    ("text", "bytes_"), [("8M", 8 << 20), ("512 KiB", 512 << 10), ("1.5g", 3 << 29), ("1e6", 10**6), ("8Q", None)]
)
def test_a_suffix_is_what_a_person_means_by_it(text: str, bytes_: int | None) -> None:
    assert meant_bytes(text) == bytes_


def test_nccl_takes_no_suffix_and_says_what_was_meant() -> None:
    found = understood("NCCL_BUFFSIZE", "8M")

    assert found.value == "8"
    assert found.kind == "other value"
    assert found.problem == "NCCL reads 8, not 8 MiB: 'M' is not looked at"
    assert found.instead == "8388608"


def test_a_plain_number_is_fine_everywhere() -> None:
    for name, text in [
        ("NCCL_BUFFSIZE", "8388608"),
        ("NCCL_BUFFSIZE", "0x800000"),
        ("NCCL_IB_TIMEOUT", "22"),
        ("NCCL_NET_GDR_LEVEL", "5"),
        ("NCCL_P2P_DISABLE", "1"),
        ("NCCL_NVLS_ENABLE", "0"),
        ("NCCL_CUMEM_ENABLE", "-2"),
        ("NCCL_IB_GID_INDEX", "-1"),
        ("NCCL_MIN_NCHANNELS", "32"),
        ("NCCL_MAX_CTAS", "-2147483648"),
    ]:
        assert understood(name, text).problem is None, (name, text)


def test_true_is_zero_until_2_31_and_ignored_since_2_32() -> None:
    before = understood("NCCL_GDRCOPY_ENABLE", "true", BEFORE_232)
    since = understood("NCCL_NVLS_ENABLE", "true", NEW)

    assert (before.value, before.kind, before.instead) == ("0", "other value", "1")
    assert (since.value, since.kind, since.instead) == ("2", "ignored", "1")


def test_false_happens_to_be_read_as_meant_until_2_31() -> None:
    assert understood("NCCL_NVLS_ENABLE", "false", BEFORE_232).kind == "odd"
    assert understood("NCCL_NVLS_ENABLE", "false", NEW).kind == "ignored"


@pytest.mark.parametrize(("text", "value", "meant"), [("022", "18", "22"), ("08", "0", "8")])
def test_a_leading_zero_is_octal(text: str, value: str, meant: str) -> None:
    found = understood("NCCL_IB_TIMEOUT", text)

    assert (found.value, found.kind, found.instead) == (value, "other value", meant)


@pytest.mark.parametrize("text", ["0", "00", "01", "1 "])
def test_zeros_that_change_nothing_and_spaces_behind_numbers_are_fine(text: str) -> None:
    assert understood("NCCL_SHM_DISABLE", text).problem is None


def test_a_number_too_large_for_64_bits_leaves_the_default() -> None:
    found = understood("NCCL_IB_TIMEOUT", "9" * 400)

    assert (found.value, found.kind) == ("20", "ignored")


def test_typed_switches_take_words_since_2_30_only() -> None:
    assert understood("NCCL_SET_THREAD_NAME", "TRUE", (2, 30, 7)).value == "1"
    assert understood("NCCL_SET_THREAD_NAME", "TRUE", OLD).value == "0"
    assert understood("NCCL_SET_THREAD_NAME", "yes", (2, 30, 7)).kind == "ignored"
    assert understood("NCCL_NVLS_ENABLE", "TRUE", (2, 30, 7)).value == "0"


@pytest.mark.parametrize(
    ("name", "text", "version", "value"),
    [
        ("NCCL_MIN_NCHANNELS", "48", OLD, "32"),
        ("NCCL_MIN_NCHANNELS", "128", NEW, "64"),
        ("NCCL_SOCKET_NTHREADS", "32", NEW, "16"),
        ("NCCL_NTHREADS", "1024", NEW, "512"),
        ("NCCL_NTHREADS", "32", NEW, "64"),
    ],
)
def test_numbers_beyond_a_limit_become_the_limit(name: str, text: str, version: tuple[int, ...], value: str) -> None:
    found = understood(name, text, version)

    assert (found.value, found.kind) == (value, "clipped")


def test_48_channels_are_fine_since_2_25() -> None:
    assert understood("NCCL_MIN_NCHANNELS", "48", (2, 25, 1)).problem is None


def test_threads_that_are_no_multiple_of_32_become_the_maximum() -> None:
    assert understood("NCCL_NTHREADS", "500").value == "512"


@pytest.mark.parametrize("text", ["0", "32", "100"])
def test_an_ib_timeout_of_0_or_from_32_on_is_no_limit(text: str) -> None:
    assert understood("NCCL_IB_TIMEOUT", text).value == "no limit"


def test_a_fifo_that_is_no_power_of_two_is_ignored() -> None:
    assert understood("NCCL_WORK_FIFO_BYTES", "1000000").kind == "ignored"


def test_a_number_outside_what_a_variable_knows_is_told() -> None:
    assert understood("NCCL_CROSS_NIC", "3").kind == "out of range"
    assert understood("NCCL_IB_RETRY_CNT", "8").kind == "out of range"
    assert understood("NCCL_IB_TC", "256").kind == "out of range"


@pytest.mark.parametrize("name", ["NCCL_P2P_LEVEL", "NCCL_NET_GDR_LEVEL"])
def test_levels_are_names_in_capitals_or_old_numbers(name: str) -> None:
    assert understood(name, "PHB").value == "PHB"
    assert [understood(name, number).value for number in "012345"] == ["LOC", "PIX", "PXB", "PHB", "SYS", "SYS"]
    assert understood(name, "99999").value == "SYS"
    small = understood(name, "phb")
    assert (small.kind, small.instead) == ("ignored", "PHB")
    assert understood(name, "NVLINK").kind == "ignored"


def test_a_level_is_known_from_its_version_on() -> None:
    assert understood("NCCL_P2P_LEVEL", "C2C", (2, 25, 1)).kind == "ignored"
    assert understood("NCCL_P2P_LEVEL", "C2C", (2, 26, 2)).value == "C2C"
    assert understood("NCCL_NET_GDR_LEVEL", "P2C", (2, 26, 2)).kind == "ignored"
    assert understood("NCCL_NET_GDR_LEVEL", "P2C", (2, 27, 3)).value == "P2C"


def test_peer_to_peer_is_turned_off_by_1_alone() -> None:
    assert understood("NCCL_P2P_DISABLE", "0").problem is None
    assert understood("NCCL_P2P_DISABLE", "2").kind == "ignored"
    assert understood("NCCL_P2P_DISABLE", "true").instead == "1"


@pytest.mark.parametrize("text", ["WARN", "warn", "Info", "VERSION", "TRACE"])
def test_levels_of_the_log_have_any_case(text: str) -> None:
    assert understood("NCCL_DEBUG", text).value == text.upper()


@pytest.mark.parametrize(
    ("text", "meant"), [("debug", "INFO"), ("1", "INFO"), ("error", "WARN"), ("loud", None), ("WARNING", "WARN")]
)
def test_any_other_word_turns_the_log_off(text: str, meant: str | None) -> None:
    found = understood("NCCL_DEBUG", text)

    assert (found.value, found.kind, found.instead) == ("none", "ignored", meant)


def test_attn_came_with_2_32() -> None:
    assert understood("NCCL_DEBUG", "ATTN", NEW).value == "ATTN"
    assert understood("NCCL_DEBUG", "ATTN", BEFORE_232).kind == "ignored"


def test_one_unknown_subsystem_spoils_the_list_since_2_30_only() -> None:
    assert understood("NCCL_DEBUG_SUBSYS", "INIT,FOO", (2, 28, 9)).value == "INIT"
    assert understood("NCCL_DEBUG_SUBSYS", "INIT,FOO", (2, 30, 7)).value == "INIT,BOOTSTRAP,ENV"
    assert understood("NCCL_DEBUG_SUBSYS", "^init, coll", (2, 30, 7)).problem is None
    assert understood("NCCL_DEBUG_SUBSYS", "INIT,RAS", (2, 23, 4)).kind == "other value"


@pytest.mark.parametrize("name", ["NCCL_SOCKET_FAMILY", "NCCL_IB_ADDR_FAMILY"])
def test_address_families_are_spelled_exactly(name: str) -> None:
    assert understood(name, "AF_INET6").problem is None
    assert understood(name, "af_inet").instead == "AF_INET"
    assert understood(name, "IPv6").kind == "ignored"


def test_policies_have_any_case_and_a_number_where_they_take_one() -> None:
    assert understood("NCCL_NETDEVS_POLICY", "max:2").problem is None
    assert understood("NCCL_NETDEVS_POLICY", "MAX:0").value == "AUTO"
    assert understood("NCCL_NETDEVS_POLICY", "2").kind == "ignored"
    assert understood("NCCL_CTA_POLICY", "efficiency|zero").value == "ZERO"
    assert understood("NCCL_CTA_POLICY", "2").value == "ZERO"
    assert understood("NCCL_CTA_POLICY", "ZERO", (2, 28, 9)).instead == "2"
    assert understood("NCCL_NET_MERGE_LEVEL", "sys").value == "LOC"


def test_a_network_has_the_name_that_its_plugin_reports() -> None:
    assert understood("NCCL_NET", "AWS Libfabric").problem is None
    assert understood("NCCL_NET", "socket").problem is None
    assert understood("NCCL_NET", "gIB").problem is None
    assert understood("NCCL_NET", "efa").instead == "AWS Libfabric"


def test_the_plugin_for_libfabric_answers_to_three_names() -> None:
    assert understood("NCCL_NET", "OFI").problem is None
    assert understood("NCCL_NET", "Libfabric").problem is None


def test_an_empty_name_is_no_network() -> None:
    assert understood("NCCL_NET", "").kind == "fails"


def test_nccl_does_not_expand_a_tilde() -> None:
    assert understood("NCCL_TOPO_FILE", "~/topo.xml").kind == "other value"
    assert understood("NCCL_TOPO_FILE", "/opt/microsoft/ndv5/topo.xml").problem is None


def test_a_factor_was_an_integer_until_2_30() -> None:
    assert understood("NCCL_RAS_TIMEOUT_FACTOR", "0.5", (2, 30, 7)).value == "0"
    assert understood("NCCL_RAS_TIMEOUT_FACTOR", "0.5", (2, 31, 2)).problem is None


def test_quotation_marks_are_part_of_a_value() -> None:
    for text in ('"INFO"', "'INFO'", "\u201cINFO\u201d"):
        found = understood("NCCL_DEBUG", text)
        assert (found.value, found.instead) == ("none", "INFO")
        assert found.problem is not None
        assert found.problem.startswith("the quotation marks are part of the value")


def test_a_space_or_a_carriage_return_around_a_word_is_told() -> None:
    assert understood("NCCL_SOCKET_IFNAME", "eth0 ").instead == "eth0"
    assert understood("NCCL_P2P_LEVEL", " NVL").instead == "NVL"
    returned = understood("NCCL_IB_HCA", "mlx5_0\r")
    assert returned.problem is not None
    assert returned.problem.startswith("the carriage return")
    assert understood("NCCL_IB_TIMEOUT", "22\r").problem is None


def test_ucx_takes_suffixes_and_words_and_refuses_the_rest() -> None:
    assert understood("UCX_RNDV_THRESH", "8k").value == "8192"
    assert understood("UCX_RNDV_THRESH", "16kb").value == "16384"
    assert understood("UCX_RNDV_THRESH", "inf").value == "inf"
    assert understood("UCX_RNDV_THRESH", "8KiB").kind == "fails"
    assert understood("UCX_MEMTYPE_CACHE", "no").value == "n"
    assert understood("UCX_MEMTYPE_CACHE", "false").instead == "n"
    assert understood("UCX_IB_PCI_RELAXED_ORDERING", "yes").value == "on"
    assert understood("UCX_LOG_LEVEL", "INFO").problem is None
    assert understood("UCX_TLS", "rc,cuda_copy,self").problem is None
    assert understood("UCX_MAX_RNDV_RAILS", "two").kind == "fails"


def test_libfabric_takes_no_suffixes() -> None:
    assert understood("FI_MR_CACHE_MAX_SIZE", "1G").value == "1"
    assert understood("FI_MR_CACHE_MAX_SIZE", "-1").problem is None
    assert understood("FI_CXI_DISABLE_HOST_REGISTER", "yes").value == "1"
    assert understood("FI_CXI_DISABLE_HOST_REGISTER", "y").kind == "ignored"
    assert understood("FI_EFA_ENABLE_SHM_TRANSFER", "true").value == "0"
    assert understood("FI_CXI_RX_MATCH_MODE", "Hybrid").instead == "hybrid"


@pytest.mark.parametrize(
    ("name", "text"), [("FI_EFA_MTU_SIZE", "8928"), ("FI_EFA_TX_MIN_CREDITS", "0"), ("FI_EFA_IFACE", "")]
)
def test_some_settings_of_efa_end_the_process(name: str, text: str) -> None:
    assert understood(name, text).kind == "fails"


def test_aws_ofi_nccl_reads_all_of_a_value_or_does_not_start() -> None:
    assert understood("OFI_NCCL_PROTOCOL", "rdma").value == "RDMA"
    assert understood("OFI_NCCL_PROTOCOL", "tcp").kind == "fails"
    assert understood("OFI_NCCL_CQ_SIZE", "8k").instead == "8192"
    assert understood("OFI_NCCL_NIC_DUP_CONNS", "-1").kind == "fails"
    assert understood("OFI_NCCL_DISABLE_DMABUF", "yes").kind == "fails"
    assert understood("OFI_NCCL_DISABLE_DMABUF", "1").value == "1"


def test_cuda_sees_the_gpus_before_the_first_entry_that_names_none() -> None:
    assert understood("CUDA_VISIBLE_DEVICES", "0,1,2,3").problem is None
    assert understood("CUDA_VISIBLE_DEVICES", "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6").problem is None
    assert understood("CUDA_VISIBLE_DEVICES", "0,1,x,3").value == "0,1"
    assert understood("CUDA_VISIBLE_DEVICES", "0,0").value == "no GPU"
    assert understood("CUDA_VISIBLE_DEVICES", "").problem is None
    assert understood("CUDA_DEVICE_ORDER", "pci_bus_id").instead == "PCI_BUS_ID"


def test_a_list_of_components_is_excluded_as_a_whole_or_not_at_all() -> None:
    assert understood("OMPI_MCA_btl", "^openib").problem is None
    assert understood("OMPI_MCA_btl", "tcp,^openib").kind == "fails"


def test_a_very_long_value_is_not_looked_at() -> None:
    assert understood("NCCL_IB_HCA", "x" * (LONGEST + 1)).value is None
