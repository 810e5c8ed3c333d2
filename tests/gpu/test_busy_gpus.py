"""A GPU that another process loads is named, and the run is not judged by it."""


def test_the_gpu_that_runs_other_work_is_named_and_no_other(run, loaded: int) -> None:
    found = run("all_reduce", "--ranks", "2", "-b", "1K", "-e", "1K", "--time-limit", "3", "--min-samples", "30")
    named = [one for one in found.run["findings"] if one["code"] == "RUN027"]
    assert len(named) == 1
    assert f"GPU {loaded} on " in named[0]["title"]
    assert f"GPU {1 - loaded} on " not in named[0]["title"]
    assert found.run["verdict"]["outcome"] == "cannot_tell"
    assert found.run["verdict"]["sentence"].startswith(f"cannot tell: GPU {loaded} on ")


def test_idle_gpus_are_not_accused(run) -> None:
    found = run("all_reduce", "--ranks", "2", "-b", "1K", "-e", "1K", "--time-limit", "2", "--min-samples", "30")
    assert [one for one in found.run["findings"] if one["code"] == "RUN027"] == []
