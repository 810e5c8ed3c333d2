// The part of NCCL that busbw calls, looked up at run time in whatever libnccl.so.2 the user has, 2.18 and later. What
// a version does not have is null. Types and constants are those of nccl.h (2.18.3 to 2.30.7).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda_api.hpp"
#include "element.hpp"

namespace busbw {

using nccl_result = int;
using nccl_comm = struct nccl_comm_handle*;
using nccl_window = struct nccl_window_handle*;
using nccl_type = int;
using nccl_op = int;
struct NcclUniqueId {
    std::array<char, 128> bytes{};
};
inline constexpr nccl_result nccl_success = 0;
inline constexpr nccl_result nccl_in_progress = 7;
inline constexpr int nccl_window_symmetric = 1;
inline constexpr std::size_t nccl_window_alignment = 4096;

// ncclConfig_t as it grew: a library reads as much of it as `size` says, so each version is given what it knows.
// Members that are not set hold NCCL_CONFIG_UNDEF_INT or a null pointer.
struct NcclConfig {
    static constexpr int undefined = -2147483647 - 1;
    std::size_t size;
    unsigned magic = 0xcafebeef;
    unsigned version;
    int blocking = undefined;
    int cga_cluster_size = undefined;
    int min_ctas = undefined;
    int max_ctas = undefined;
    const char* net_name = nullptr;
    int split_share = undefined;
    int traffic_class = undefined;
    const char* comm_name = nullptr;
    int collnet_enable = undefined;
    int cta_policy = undefined;
    int shrink_share = undefined;
    int nvls_ctas = undefined;
    int channels_per_net_peer = undefined;
    int nvlink_centric_sched = undefined;
    int graph_usage_mode = undefined;
    int num_rma_ctx = undefined;
    int max_p2p_peers = undefined;
    int graph_stream_ordering = undefined;
};

// (member in NCCL's own spelling, value).
using ConfigFields = std::vector<std::pair<std::string, int>>;

struct NcclApi {
    // Throws std::runtime_error when `path` is no NCCL, or one before 2.18.
    explicit NcclApi(const std::string& path);

    LoadedLibrary library;
    int version = 0;  // 22809 for 2.28.9

    nccl_result (*get_version)(int*);
    nccl_result (*get_unique_id)(NcclUniqueId*);
    nccl_result (*comm_init_rank_config)(nccl_comm*, int, NcclUniqueId, int, NcclConfig*);
    nccl_result (*comm_split)(nccl_comm, int, int, nccl_comm*, NcclConfig*);
    nccl_result (*comm_destroy)(nccl_comm);
    nccl_result (*comm_abort)(nccl_comm);
    nccl_result (*comm_get_async_error)(nccl_comm, nccl_result*);
    const char* (*get_error_string)(nccl_result);
    const char* (*get_last_error)(nccl_comm);
    nccl_result (*red_op_create_premulsum)(nccl_op*, void*, nccl_type, int, nccl_comm);
    nccl_result (*red_op_destroy)(nccl_op, nccl_comm);
    nccl_result (*all_reduce)(const void*, void*, std::size_t, nccl_type, nccl_op, nccl_comm, cuda_stream);
    nccl_result (*all_gather)(const void*, void*, std::size_t, nccl_type, nccl_comm, cuda_stream);
    nccl_result (*reduce_scatter)(const void*, void*, std::size_t, nccl_type, nccl_op, nccl_comm, cuda_stream);
    nccl_result (*broadcast)(const void*, void*, std::size_t, nccl_type, int, nccl_comm, cuda_stream);
    nccl_result (*reduce)(const void*, void*, std::size_t, nccl_type, nccl_op, int, nccl_comm, cuda_stream);
    nccl_result (*send)(const void*, std::size_t, nccl_type, int, nccl_comm, cuda_stream);
    nccl_result (*recv)(void*, std::size_t, nccl_type, int, nccl_comm, cuda_stream);
    nccl_result (*group_start)();
    nccl_result (*group_end)();
    // 2.19
    nccl_result (*mem_alloc)(void**, std::size_t);
    nccl_result (*mem_free)(void*);
    nccl_result (*comm_register)(nccl_comm, void*, std::size_t, void**);
    nccl_result (*comm_deregister)(nccl_comm, void*);
    // 2.24; outside of the documented interface, so a later version may lack it
    void (*reset_debug)();
    // 2.27
    nccl_result (*window_register)(nccl_comm, void*, std::size_t, nccl_window*, int);
    nccl_result (*window_deregister)(nccl_comm, nccl_window);
    // 2.28
    nccl_result (*alltoall)(const void*, void*, std::size_t, nccl_type, nccl_comm, cuda_stream);
    const char* alltoall_name = "ncclAlltoAll";  // as this library spells it
    nccl_result (*gather)(const void*, void*, std::size_t, nccl_type, int, nccl_comm, cuda_stream);
    nccl_result (*scatter)(const void*, void*, std::size_t, nccl_type, int, nccl_comm, cuda_stream);

    // Throws std::runtime_error with the call and NCCL's own words; `comm` may be null.
    void check(nccl_result result, const char* call, nccl_comm comm = nullptr) const;

    // Whether NCCL noticed by itself that a communicator is broken.
    [[nodiscard]] bool has_failed(nccl_comm comm) const noexcept;

    // What NCCL says of a communicator in trouble: its asynchronous error and its last words; empty when nothing.
    [[nodiscard]] std::string words_about(nccl_comm comm) const;
};

// Returns a configuration of the size that this version knows, with `fields` set. Throws std::invalid_argument for a
// field that is not known, or that this version does not have yet.
NcclConfig make_config(const NcclApi& nccl, const ConfigFields& fields);

// The names of the fields that this version has, in NCCL's order.
std::vector<std::string> config_fields(int version);

// NCCL's number for a data type, -1 when this version has none, or never had (16-bit integers).
nccl_type type_number(DataType type, int version);
// NCCL's number for a built-in operation; `mulsum` is made for each communicator.
nccl_op operation_number(Operation operation);

}  // namespace busbw
