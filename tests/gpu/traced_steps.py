"""Steps of one of two processes, traced by PyTorch's profiler, and what they took without it, as JSON.

Started with the process's number, the address where both meet, and the file of its trace. A step is a long product of
matrices with a sum of all processes beside it, in the group "data", then an exchange with nothing beside it, in the
group "experts".
"""

import json
import os
import sys
import time

STEPS, WARM_UP = 8, 4
SUMMED_BYTES, EXCHANGED_BYTES = 64 * 2**20, 32 * 2**20
SIDE = 8192
# Much longer than a sum, so that the sum ends first.
PRODUCTS = 4


def main() -> None:
    """Run the steps twice, without and with the profiler."""
    import torch
    import torch.distributed as dist

    rank, address, file = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    assert (os.environ["NCCL_NVLS_ENABLE"], os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"]) == ("0", "1")
    assert os.environ["NVSHMEM_DISABLE_NVLS"] == "1"
    torch.cuda.set_device(rank)
    device = torch.device("cuda", rank)
    dist.init_process_group("nccl", init_method=address, rank=rank, world_size=2, device_id=device)
    data = dist.new_group([0, 1], group_desc="data")
    experts = dist.new_group([0, 1], group_desc="experts")
    matrix = torch.randn(SIDE, SIDE, device=device, dtype=torch.bfloat16)
    product = torch.empty_like(matrix)
    summed = torch.ones(SUMMED_BYTES // 2, device=device, dtype=torch.bfloat16)
    sent = torch.ones(EXCHANGED_BYTES // 2, device=device, dtype=torch.bfloat16)
    got = torch.empty_like(sent)

    def step() -> None:
        work = dist.all_reduce(summed, group=data, async_op=True)
        for _ in range(PRODUCTS):
            torch.mm(matrix, matrix, out=product)
        work.wait()
        dist.all_to_all_single(got, sent, group=experts)

    def exchanges(count: int) -> float:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(count):
            dist.all_to_all_single(got, sent, group=experts)
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e-3 / count

    def timed() -> float:
        dist.barrier()
        torch.cuda.synchronize()
        begin_s = time.perf_counter()
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin_s) / STEPS

    for _ in range(2):
        step_s, exchange_s = timed(), exchanges(20)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA],
        schedule=torch.profiler.schedule(wait=0, warmup=WARM_UP, active=STEPS),
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(file),
    ) as profiler:
        for _ in range(WARM_UP + STEPS):
            step()
            profiler.step()
        torch.cuda.synchronize()
    print(json.dumps({"step_s": step_s, "exchange_s": exchange_s, "torch": torch.__version__}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
