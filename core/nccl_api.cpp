#include "nccl_api.hpp"

#include <algorithm>
#include <stdexcept>

namespace busbw {
namespace {

constexpr int oldest = 21800;
// The last version whose configuration is known in full; later ones accept it as it is.
constexpr unsigned newest_config = 23007;

struct Field {
    const char* name;
    int since;
    int NcclConfig::* member;
};
constexpr Field fields_known[] = {
    {"blocking", 21800, &NcclConfig::blocking},
    {"cgaClusterSize", 21800, &NcclConfig::cga_cluster_size},
    {"minCTAs", 21800, &NcclConfig::min_ctas},
    {"maxCTAs", 21800, &NcclConfig::max_ctas},
    {"splitShare", 21800, &NcclConfig::split_share},
    {"trafficClass", 22600, &NcclConfig::traffic_class},
    {"collnetEnable", 22700, &NcclConfig::collnet_enable},
    {"CTAPolicy", 22700, &NcclConfig::cta_policy},
    {"shrinkShare", 22700, &NcclConfig::shrink_share},
    {"nvlsCTAs", 22700, &NcclConfig::nvls_ctas},
    {"nChannelsPerNetPeer", 22800, &NcclConfig::channels_per_net_peer},
    {"nvlinkCentricSched", 22800, &NcclConfig::nvlink_centric_sched},
    {"graphUsageMode", 22900, &NcclConfig::graph_usage_mode},
    {"numRmaCtx", 22900, &NcclConfig::num_rma_ctx},
    {"maxP2pPeers", 23003, &NcclConfig::max_p2p_peers},
    {"graphStreamOrdering", 23007, &NcclConfig::graph_stream_ordering},
};

// sizeof(ncclConfig_t) of each version: up to and with its last member, rounded to the alignment of a pointer.
std::size_t config_size(int version) {
    const auto up_to = [](std::size_t end) { return (end + alignof(void*) - 1) / alignof(void*) * alignof(void*); };
    if (version < 22600) {
        return up_to(offsetof(NcclConfig, traffic_class));
    }
    if (version < 22700) {
        return up_to(offsetof(NcclConfig, traffic_class) + sizeof(int));
    }
    if (version < 22800) {
        return up_to(offsetof(NcclConfig, channels_per_net_peer));
    }
    if (version < 22900) {
        return up_to(offsetof(NcclConfig, graph_usage_mode));
    }
    if (version < 23003) {
        return up_to(offsetof(NcclConfig, max_p2p_peers));
    }
    if (version < 23007) {
        return up_to(offsetof(NcclConfig, graph_stream_ordering));
    }
    return sizeof(NcclConfig);
}

std::string spelled(int version) {
    return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
           std::to_string(version % 100);
}

}  // namespace

NcclApi::NcclApi(const std::string& path) : library{path} {
    library.find(get_version, "ncclGetVersion");
    check(get_version(&version), "ncclGetVersion");
    if (version < oldest) {
        throw std::runtime_error(library.path() + " is NCCL " + spelled(version) +
                                 ", and 2.18 is the oldest that works");
    }
    library.find(get_unique_id, "ncclGetUniqueId");
    library.find(comm_init_rank_config, "ncclCommInitRankConfig");
    library.find(comm_split, "ncclCommSplit");
    library.find(comm_destroy, "ncclCommDestroy");
    library.find(comm_abort, "ncclCommAbort");
    library.find(comm_get_async_error, "ncclCommGetAsyncError");
    library.find(get_error_string, "ncclGetErrorString");
    library.find(get_last_error, "ncclGetLastError");
    library.find(red_op_create_premulsum, "ncclRedOpCreatePreMulSum");
    library.find(red_op_destroy, "ncclRedOpDestroy");
    library.find(all_reduce, "ncclAllReduce");
    library.find(all_gather, "ncclAllGather");
    library.find(reduce_scatter, "ncclReduceScatter");
    library.find(broadcast, "ncclBroadcast");
    library.find(reduce, "ncclReduce");
    library.find(send, "ncclSend");
    library.find(recv, "ncclRecv");
    library.find(group_start, "ncclGroupStart");
    library.find(group_end, "ncclGroupEnd");
    library.find_if_there(mem_alloc, "ncclMemAlloc");
    library.find_if_there(mem_free, "ncclMemFree");
    library.find_if_there(comm_register, "ncclCommRegister");
    library.find_if_there(comm_deregister, "ncclCommDeregister");
    library.find_if_there(reset_debug, "ncclResetDebugInit");
    library.find_if_there(window_register, "ncclCommWindowRegister");
    library.find_if_there(window_deregister, "ncclCommWindowDeregister");
    library.find_if_there(alltoall, alltoall_name);
    if (alltoall == nullptr) {
        // msccl-executor-nccl runs the algorithms of MSCCL in it, and in no sends and receives of ours.
        alltoall_name = "ncclAllToAll";
        library.find_if_there(alltoall, alltoall_name);
    }
    library.find_if_there(gather, "ncclGather");
    library.find_if_there(scatter, "ncclScatter");
}

void NcclApi::check(nccl_result result, const char* call, nccl_comm comm) const {
    if (result == nccl_success || result == nccl_in_progress) {
        return;
    }
    std::string words = std::string(call) + ": " + get_error_string(result);
    const char* last = get_last_error(comm);
    if (last != nullptr && *last != '\0') {
        words += std::string("; NCCL's last words: ") + last;
    }
    throw std::runtime_error(words);
}

bool NcclApi::has_failed(nccl_comm comm) const noexcept {
    nccl_result asynchronous = nccl_success;
    return comm_get_async_error(comm, &asynchronous) == nccl_success && asynchronous != nccl_success &&
           asynchronous != nccl_in_progress;
}

std::string NcclApi::words_about(nccl_comm comm) const {
    nccl_result asynchronous = nccl_success;
    std::string words;
    if (comm_get_async_error(comm, &asynchronous) == nccl_success && asynchronous != nccl_success) {
        words = std::string("asynchronous error: ") + get_error_string(asynchronous);
    }
    const char* last = get_last_error(comm);
    if (last != nullptr && *last != '\0') {
        words += (words.empty() ? "" : "; ") + std::string("last words: ") + last;
    }
    return words;
}

NcclConfig make_config(const NcclApi& nccl, const ConfigFields& fields) {
    NcclConfig config{.size = config_size(nccl.version),
                      .version = std::min(static_cast<unsigned>(nccl.version), newest_config)};
    if (nccl.version >= 22700) {
        config.comm_name = "busbw";
    }
    for (const auto& [name, value] : fields) {
        const auto* field = std::find_if(std::begin(fields_known), std::end(fields_known),
                                         [&](const Field& known) { return name == known.name; });
        if (field == std::end(fields_known)) {
            throw std::invalid_argument("ncclConfig_t has no field " + name);
        }
        if (nccl.version < field->since) {
            throw std::invalid_argument("NCCL " + spelled(nccl.version) + " has no field " + name +
                                        " yet; it came with " + spelled(field->since));
        }
        config.*(field->member) = value;
    }
    return config;
}

std::vector<std::string> config_fields(int version) {
    std::vector<std::string> names;
    for (const Field& field : fields_known) {
        if (field.since <= version) {
            names.emplace_back(field.name);
        }
    }
    return names;
}

nccl_type type_number(DataType type, int version) {
    switch (type) {
        case DataType::int8: return 0;
        case DataType::uint8: return 1;
        case DataType::int32: return 2;
        case DataType::uint32: return 3;
        case DataType::int64: return 4;
        case DataType::uint64: return 5;
        case DataType::float16: return 6;
        case DataType::float32: return 7;
        case DataType::float64: return 8;
        case DataType::bfloat16: return 9;
        case DataType::float8e4m3: return version >= 22400 ? 10 : -1;
        case DataType::float8e5m2: return version >= 22400 ? 11 : -1;
        case DataType::int16:
        case DataType::uint16: return -1;
    }
    throw std::invalid_argument("unknown data type");
}

nccl_op operation_number(Operation operation) {
    switch (operation) {
        case Operation::sum: return 0;
        case Operation::prod: return 1;
        case Operation::max: return 2;
        case Operation::min: return 3;
        case Operation::avg: return 4;
        case Operation::mulsum: break;
    }
    throw std::invalid_argument("mulsum is made for each communicator");
}

}  // namespace busbw
