"""The shared file system fills up while ranks of several hosts write: what was stored stays, and nothing is left."""

from .mpi import under
from .several import BYTES, SIZES, Several

SPACE_BYTES = 256 * 1024


@under()
def test_a_full_file_system_fails_the_run_and_space_lets_it_go_on(several: Several) -> None:
    with several.lab.small_file_system(SPACE_BYTES) as folder:
        directory = folder / "run"
        filler = folder / "filler"
        several.start("run", "all_reduce", *SIZES, *several.way, "-o", directory)
        several.wait_for("ended by")
        try:
            with filler.open("wb", buffering=0) as file:
                while file.write(b"x" * 4096):
                    pass
        except OSError:
            pass

        code = several.finish()

        assert code == 3, several.said
        assert "No space left on device" in several.err + several.out, several.said
        several.check_nothing_left()
        filler.unlink()
        several.start("run", "--resume", directory)
        assert several.finish(150) in {0, 1, 4}, several.said
        several.start("show", directory, "--json")
        several.finish()
        assert all(f'"size_bytes":{size}' in several.out.replace(" ", "") for size in BYTES[:1]), several.said
        several.check_nothing_left()
