// Four GPUs of one process, their communicators and an exchange between them, over the stand-ins of tests/standin.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "communicators.hpp"
#include "gate.hpp"
#include "heartbeat.hpp"
#include "nccl_exchange.hpp"
#include "nccl_loops.hpp"
#include "nccl_verify.hpp"
#include "nvrtc.hpp"

namespace busbw::checks {

inline constexpr int world_ranks = 4;
inline constexpr int world_group = 2;
inline constexpr nanoseconds per_second = 1'000'000'000;

// The libraries as a user would name them.
struct Libraries {
    Libraries(const std::string& folder, const std::string& nccl_folder)
        : cuda{folder + "/libcuda.so.1"},
          nccl{folder + "/" + nccl_folder + "/libnccl.so.2"},
          code{Nvrtc{folder + "/libnvrtc.so.13"}.compile(kernel_source(), 90)} {}
    CudaApi cuda;
    NcclApi nccl;
    std::vector<char> code;
};

// Without kernels the host fills and compares. `step`: how long the GPUs may take for one sample.
class World {
   public:
    World(const Libraries& with, bool has_kernels, nanoseconds step = 20 * per_second)
        : nccl_{&with.nccl}, gpus_{make_gpus(with, has_kernels)}, all_{join(with.nccl)} {
        std::vector<int> nodes;
        std::vector<int> places;
        for (int rank = 0; rank < world_ranks; ++rank) {
            nodes.push_back(rank / world_group);
            places.push_back(rank % world_group);
        }
        intra_ = all_->split(nodes, places);
        rail_ = all_->split(places, nodes);
        bench_.gate = &gate_;
        bench_.step = step;
        for (auto& words : words_) {
            bench_.beats.emplace_back(std::as_writable_bytes(std::span{words}));
        }
    }

    [[nodiscard]] const NcclApi& nccl() const { return *nccl_; }
    [[nodiscard]] const Gpu& gpu(int rank) const { return *gpus_.at(static_cast<std::size_t>(rank)); }
    [[nodiscard]] Communicators& all() const { return *all_; }
    [[nodiscard]] const NcclBench& bench() const { return bench_; }
    [[nodiscard]] NcclMember member(int rank) const {
        const auto at = static_cast<std::size_t>(rank);
        return {gpus_[at].get(), all_->of(at), intra_->of(at), rail_->of(at), rank, nullptr, nullptr, nullptr};
    }
    [[nodiscard]] std::uint64_t word_of(int rank, Heartbeat::Word word) const {
        return words_.at(static_cast<std::size_t>(rank)).at(word);
    }
    void abort() const {
        intra_->abort();
        rail_->abort();
        all_->abort();
    }

   private:
    static std::vector<std::unique_ptr<Gpu>> make_gpus(const Libraries& with, bool has_kernels) {
        std::vector<std::unique_ptr<Gpu>> gpus;
        for (int rank = 0; rank < world_ranks; ++rank) {
            const std::span<const char> code{with.code};
            gpus.push_back(std::make_unique<Gpu>(with.cuda, rank, has_kernels ? code : code.first(0)));
        }
        return gpus;
    }
    [[nodiscard]] std::unique_ptr<Communicators> join(const NcclApi& nccl) const {
        std::vector<const Gpu*> gpus;
        std::ranges::transform(gpus_, std::back_inserter(gpus), [](const auto& gpu) { return gpu.get(); });
        NcclUniqueId id;
        nccl.check(nccl.get_unique_id(&id), "ncclGetUniqueId");
        return std::make_unique<Communicators>(nccl, std::move(gpus), id, world_ranks, 0, ConfigFields{});
    }

    const NcclApi* nccl_;
    std::vector<std::unique_ptr<Gpu>> gpus_;
    std::unique_ptr<Communicators> all_;
    std::unique_ptr<Communicators> intra_;
    std::unique_ptr<Communicators> rail_;
    NoGate gate_;
    std::array<std::array<std::uint64_t, 8>, world_ranks> words_{};
    NcclBench bench_{};
};

// How an exchange lies in memory: `shift` elements off, in `slots` places one behind the other.
struct Layout {
    std::size_t shift = 0;
    std::size_t slots = 1;
};

// An exchange on buffers of exactly the bytes that it says it needs: a byte more is an error of the stand-ins.
class Held {
   public:
    Held(const World& world, const NcclShape& shape, const Layout& layout = {}) {
        const std::size_t size = with_type(shape.type, [](auto element) { return sizeof element; });
        NcclFootprint most{};
        for (int rank = 0; rank < world_ranks; ++rank) {
            const NcclFootprint need = nccl_footprint(shape, rank);
            most = {std::max(most.send, need.send), std::max(most.receive, need.receive),
                    std::max(most.scratch, need.scratch)};
        }
        const std::size_t guard = (guard_bytes + size - 1) / size;
        const Rotation rotation{layout.slots, most.send * size, (most.receive + guard) * size, most.scratch * size};
        std::vector<NcclMember> members;
        for (int rank = 0; rank < world_ranks; ++rank) {
            NcclMember member = world.member(rank);
            const auto memory = [&](std::size_t stride) {
                const std::size_t bytes = layout.slots * stride + layout.shift * size;
                memory_.push_back(std::make_unique<GpuMemory>(*member.gpu, std::max<std::size_t>(bytes, 1), nullptr));
                return memory_.back()->data();
            };
            member.send = memory(rotation.send_stride);
            member.receive = memory(rotation.receive_stride);
            member.scratch = memory(rotation.scratch_stride);
            members.push_back(member);
        }
        exchange_ = std::make_unique<NcclExchange>(world.nccl(), shape, std::move(members), rotation, layout.shift);
    }
    [[nodiscard]] const NcclExchange& exchange() const { return *exchange_; }

   private:
    std::vector<std::unique_ptr<GpuMemory>> memory_;
    std::unique_ptr<NcclExchange> exchange_;
};

}  // namespace busbw::checks
