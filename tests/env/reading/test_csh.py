"""Scripts of csh and tcsh: settings on the ways that their own words make."""

from busbw.env.reading import read
from busbw.model.settings import Assignment, SettingsReading, exclude_each_other

SCRIPT = """\
#!/bin/tcsh
#SBATCH --nodes=2
set here = /data/run
setenv NCCL_TOPO_FILE $here/topo.xml
if ( $?FAST && ( $N > 1 ) ) then
  setenv NCCL_ALGO Tree
else if ( -f "$here/ring" ) then
  setenv NCCL_ALGO Ring
else
  setenv NCCL_ALGO NVLS
endif
switch ($MODE)
  case check*:
    setenv NCCL_DEBUG INFO
    breaksw
  default:
    setenv NCCL_DEBUG WARN
endsw
if ( $N == 1 ) setenv NCCL_IB_DISABLE 1
foreach n (1 2)
  srun -N $n ./app
end
while ( $i < 3 )
  @ i++
end
unsetenv NCCL_P2P_LEVEL
srun ./app
done_here:
exit 0
"""


def reading() -> SettingsReading:
    return read(SCRIPT, "job.csh")


def of(name: str) -> list[Assignment]:
    return [each for each in reading().assignments if each.name == name]


def test_a_script_is_known_by_its_first_line_and_by_its_name() -> None:
    assert read(SCRIPT, "job").language == "csh"
    assert read("setenv NCCL_DEBUG INFO\n", "job.tcsh").language == "csh"
    assert read("#!/bin/bash\nexport A=1\n", "job").language == "shell"


def test_all_of_it_is_read() -> None:
    assert (reading().unread, reading().slips) == ((), ())
    assert [launch.line for launch in reading().launches] == [21, 27]


def test_settings_stand_where_they_are_written() -> None:
    assert [(each.value, each.line, each.column) for each in of("NCCL_TOPO_FILE")] == [("/data/run/topo.xml", 4, 8)]
    assert [(each.value, each.line) for each in of("NCCL_IB_DISABLE")] == [("1", 19)]
    assert [each.unsets for each in of("NCCL_P2P_LEVEL")] == [True]


def test_settings_of_different_branches_exclude_each_other() -> None:
    first, second, third = of("NCCL_ALGO")
    checked, usual = of("NCCL_DEBUG")

    assert exclude_each_other(first.arms, second.arms)
    assert exclude_each_other(second.arms, third.arms)
    assert exclude_each_other(checked.arms, usual.arms)
    assert of("NCCL_IB_DISABLE")[0].arms != ()


def test_what_is_torn_is_read_as_far_as_it_goes() -> None:
    torn = read("#!/bin/csh\nif ( $x\nsetenv NCCL_DEBUG INFO\nforeach\ncase\nendsw\nset\n", "job")

    assert [each.name for each in torn.assignments] == ["NCCL_DEBUG"]
