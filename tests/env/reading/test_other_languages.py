"""Files in languages that are not read are refused by their name, rather than read as scripts."""

import pytest

from busbw.base.errors import InputError
from busbw.env.reading import read


@pytest.mark.parametrize("name", ["test.toml", "main.tf", "configure.ac", "a.ini", "X.CU", "os/CMakeLists.txt"])
def test_a_file_in_another_language_is_refused(name: str):
    with pytest.raises(InputError, match=r"by its name it is .*, which is not read"):
        read('NCCL_IB_TC = "41"\n' if name != "test.toml" else 'title = "of NCCL_IB_TC"\n', name)


def test_a_table_of_variables_in_toml_is_read_by_its_keys():
    reading = read('[env]\nNCCL_IB_TC = 41\n"NCCL_ALGO" = "Ring" # a remark\nwarm_up = "5"\n', "test.toml")

    assert [(each.name, each.value, each.line) for each in reading.assignments] == [
        ("NCCL_IB_TC", "41", 2),
        ("NCCL_ALGO", "Ring", 3),
    ]


def test_it_is_read_where_its_language_is_given():
    assert read("export NCCL_IB_TC=41\n", "job.py", "shell").assignments[0].value == "41"


@pytest.mark.parametrize("name", ["job", "job.txt", "job.sub", "Dockerfile.rocm", "a.nccl", "stdin", "makefile.sh"])
def test_any_other_name_is_read(name: str):
    assert read("#!/bin/sh\nexport NCCL_IB_TC=41\n", name)
