// Reading a configuration by its size, as NCCL does.
#include "nccl_config.hpp"

#include <array>
#include <climits>
#include <cstring>

namespace standin::nccl {
namespace {

constexpr unsigned right_magic = 0xcafebeef;
constexpr int undefined = INT_MIN;

// The newest that is known; `size` says how much of it is there. Versions added members at its end only, but for the
// two in 2.26 and 2.27 that fill what was padding.
struct Layout {
    std::size_t size;
    unsigned magic, version;
    int blocking, cga_cluster_size, min_ctas, max_ctas;
    const char* net_name;
    int split_share, traffic_class;
    const char* name;
    int collnet_enable, cta_policy, shrink_share, nvls_ctas;
    int channels_per_net_peer, nvlink_centric_schedule;
    int graph_usage_mode, rma_contexts;
    int most_p2p_peers;
    int graph_stream_ordering;
    int launch_order_implicit, rma_signals, rma_eager_init, host_cft_mode;
    int nvls_host_mode;
};

struct Era {
    int first_version;
    std::size_t bytes;
};

constexpr std::size_t up_to_eight(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

// The size of the structure from each version on.
constexpr std::array eras = {
    Era{21700, up_to_eight(offsetof(Layout, traffic_class))},
    Era{22700, up_to_eight(offsetof(Layout, channels_per_net_peer))},
    Era{22800, up_to_eight(offsetof(Layout, graph_usage_mode))},
    Era{22902, up_to_eight(offsetof(Layout, most_p2p_peers))},
    Era{23003, up_to_eight(offsetof(Layout, graph_stream_ordering))},
    Era{23007, up_to_eight(offsetof(Layout, launch_order_implicit))},
    Era{23102, up_to_eight(offsetof(Layout, nvls_host_mode))},
    Era{23203, sizeof(Layout)},
};
static_assert(eras[0].bytes == 48 && eras[2].bytes == 80 && eras.back().bytes == 120);

// Zero before the first.
std::size_t size_in(int of_version) {
    std::size_t bytes = 0;
    for (const Era& era : eras) {
        bytes = era.first_version <= of_version ? era.bytes : bytes;
    }
    return bytes;
}

Layout all_undefined() {
    Layout layout{};
    auto* const words = reinterpret_cast<unsigned char*>(&layout);
    for (std::size_t at = offsetof(Layout, blocking); at + sizeof(int) <= sizeof layout; at += sizeof(int)) {
        std::memcpy(words + at, &undefined, sizeof undefined);
    }
    layout.net_name = nullptr;
    layout.name = nullptr;
    return layout;
}

void check_range(int value, int least, int most, const char* name) {
    if (value != undefined && (value < least || value > most)) {
        throw Problem{invalid_argument,
                      "Invalid config " + std::string(name) + " attribute value " + std::to_string(value)};
    }
}

void check(const Layout& layout) {
    check_range(layout.blocking, 0, 1, "blocking");
    check_range(layout.cga_cluster_size, 0, INT_MAX, "cgaClusterSize");
    check_range(layout.min_ctas, 1, INT_MAX, "minCTAs");
    check_range(layout.max_ctas, 1, INT_MAX, "maxCTAs");
    if (layout.min_ctas > layout.max_ctas) {  // so it is in NCCL when only the least is given, too
        throw Problem{invalid_argument, "Invalid config min/max channels attribute value " +
                                            std::to_string(layout.min_ctas) + "/" + std::to_string(layout.max_ctas)};
    }
    check_range(layout.split_share, 0, 1, "splitShare");
    check_range(layout.collnet_enable, 0, 1, "collnetEnable");
    check_range(layout.cta_policy, 0, 2, "CTAPolicy");
    check_range(layout.shrink_share, 0, 1, "shrinkShare");
    check_range(layout.nvls_ctas, 1, INT_MAX, "nvlsCTAs");
    check_range(layout.channels_per_net_peer, 1, 64, "nChannelsPerNetPeer");
    check_range(layout.nvlink_centric_schedule, 0, 1, "nvlinkCentricSched");
}

}  // namespace

Config read_config(const void* given) {
    if (given == nullptr) {
        return {};
    }
    std::size_t size = 0;
    std::memcpy(&size, given, sizeof size);
    expect(size <= size_in(version), invalid_argument, "ncclConfig_t is larger than this version knows");
    Layout layout = all_undefined();
    std::memcpy(static_cast<void*>(&layout), given, size);
    expect(layout.magic == right_magic, invalid_argument,
           "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
    if (size != size_in(static_cast<int>(layout.version))) {
        throw Problem{invalid_argument, "ncclConfig_t of version " + std::to_string(layout.version) +
                                            " does not have " + std::to_string(size) + " bytes"};
    }
    // Up to 2.26 nobody filled what is traffic_class today, and likewise after it.
    if (layout.version < 22700) {
        layout.name = nullptr;
        layout.collnet_enable = layout.cta_policy = layout.shrink_share = layout.nvls_ctas = undefined;
    }
    if (layout.version < 22800) {
        layout.channels_per_net_peer = layout.nvlink_centric_schedule = undefined;
    }
    check(layout);
    return {.blocking = layout.blocking != 0, .name = layout.name == nullptr ? "" : layout.name};
}

}  // namespace standin::nccl
