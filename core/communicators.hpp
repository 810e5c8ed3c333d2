// The NCCL communicators of this process's GPUs, one for each, all of one group of ranks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpu.hpp"
#include "nccl_api.hpp"

namespace busbw {

class Communicators {
   public:
    // Joins `gpus` as ranks first, first + 1, ... of `ranks`. Blocks until every rank has come. Throws
    // std::runtime_error with NCCL's words.
    Communicators(const NcclApi& nccl, std::vector<const Gpu*> gpus, const NcclUniqueId& id, int ranks, int first,
                  const ConfigFields& fields);
    Communicators(const Communicators&) = delete;
    Communicators& operator=(const Communicators&) = delete;
    ~Communicators();

    // The ranks that gave the same color, ordered by key; one color and one key for each GPU. Every rank must call it.
    [[nodiscard]] std::unique_ptr<Communicators> split(const std::vector<int>& colors,
                                                       const std::vector<int>& keys) const;

    // Tells NCCL of memory that will be used: as a plain buffer, or as a symmetric window, for which every rank must
    // call this with equal sizes. `memories`: one for each GPU. It stays registered until this is destroyed.
    void register_buffers(const std::vector<const GpuMemory*>& memories);
    void register_windows(const std::vector<const GpuMemory*>& memories);

    // Gives everything up at once, with whatever is under way.
    void abort() noexcept;

    [[nodiscard]] nccl_comm of(std::size_t gpu) const { return comms_.at(gpu); }
    // What NCCL says of them; empty when nothing is wrong.
    [[nodiscard]] std::string words() const;

   private:
    Communicators(const NcclApi& nccl, std::vector<const Gpu*> gpus);

    // Calls `make` for each GPU, current by then, in one group. When that fails, none is left.
    template <class Make>
    void make_all(const Make& make);

    const NcclApi* nccl_;
    std::vector<const Gpu*> gpus_;
    std::vector<nccl_comm> comms_;
    struct Registered {
        std::size_t gpu;
        void* handle;
        nccl_window window;
    };
    std::vector<Registered> registered_;
};

}  // namespace busbw
