// What shall go wrong, as STANDIN_FAULT says it: "kind=sleep,rank=2,every=20,us=200;kind=exit,rank=0,call=9,code=7".
// Kinds: sleep, hang, exit, signal and error inside the call; gpusleep, gpuhang and wrong on the stream. A fault is
// for the call-th call of a rank, or for every every-th, or for all; calls are counted from 1 for each rank of the
// world, over all its communicators, and only calls of collectives, sends and receives.
#pragma once

#include "nccl_task.hpp"

namespace standin::nccl {

// Counts a call of `world_rank` and does to it what its faults do to the caller: it may sleep, never return, end the
// process, or throw Problem. Returns what they do to the stream.
StreamFault count_call(int world_rank);

}  // namespace standin::nccl
