#include "communicators.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "nccl_group.hpp"

namespace busbw {

Communicators::Communicators(const NcclApi& nccl, std::vector<const Gpu*> gpus)
    : nccl_{&nccl}, gpus_{std::move(gpus)}, comms_(gpus_.size(), nullptr) {}

Communicators::Communicators(const NcclApi& nccl, std::vector<const Gpu*> gpus, const NcclUniqueId& id, int ranks,
                             int first, const ConfigFields& fields)
    : Communicators{nccl, std::move(gpus)} {
    NcclConfig config = make_config(nccl, fields);
    make_all([&](std::size_t gpu) {
        nccl.check(nccl.comm_init_rank_config(&comms_[gpu], ranks, id, first + static_cast<int>(gpu), &config),
                   "ncclCommInitRankConfig");
    });
}

template <class Make>
void Communicators::make_all(const Make& make) {
    try {
        NcclGroup group{*nccl_};
        for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
            group.use(*gpus_[gpu]);
            make(gpu);
        }
        group.end();
    } catch (const std::runtime_error&) {
        abort();  // to be destroyed a communicator must have been joined by every rank
        throw;
    }
}

Communicators::~Communicators() {
    for (const Registered& one : registered_) {
        if (comms_[one.gpu] == nullptr) {
            continue;
        }
        if (one.window != nullptr) {
            nccl_->window_deregister(comms_[one.gpu], one.window);
        } else {
            nccl_->comm_deregister(comms_[one.gpu], one.handle);
        }
    }
    try {
        // Ranks of one process must be destroyed together: each waits for the others.
        NcclGroup group{*nccl_};
        for (nccl_comm comm : comms_) {
            if (comm != nullptr) {
                nccl_->comm_destroy(comm);
            }
        }
        group.end();
    } catch (const std::runtime_error&) {
        return;  // nobody is left to be told
    }
}

std::unique_ptr<Communicators> Communicators::split(const std::vector<int>& colors,
                                                    const std::vector<int>& keys) const {
    if (colors.size() != gpus_.size() || keys.size() != gpus_.size()) {
        throw std::invalid_argument("a split needs one color and one key for each GPU");
    }
    std::unique_ptr<Communicators> part{new Communicators{*nccl_, gpus_}};
    part->make_all([&](std::size_t gpu) {
        nccl_->check(nccl_->comm_split(comms_[gpu], colors[gpu], keys[gpu], &part->comms_[gpu], nullptr),
                     "ncclCommSplit", comms_[gpu]);
    });
    return part;
}

void Communicators::register_buffers(const std::vector<const GpuMemory*>& memories) {
    if (nccl_->comm_register == nullptr) {
        throw std::runtime_error("registered buffers came with NCCL 2.19; this one has none");
    }
    for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
        gpus_[gpu]->use();
        void* handle = nullptr;
        nccl_->check(nccl_->comm_register(comms_[gpu], memories.at(gpu)->data(), memories.at(gpu)->size(), &handle),
                     "ncclCommRegister", comms_[gpu]);
        registered_.push_back({gpu, handle, nullptr});
    }
}

void Communicators::register_windows(const std::vector<const GpuMemory*>& memories) {
    if (nccl_->window_register == nullptr) {
        throw std::runtime_error("symmetric windows came with NCCL 2.27; this one has none");
    }
    if (memories.size() != gpus_.size()) {
        throw std::invalid_argument("a window needs memory of each GPU");
    }
    std::vector<nccl_window> windows(gpus_.size(), nullptr);
    NcclGroup group{*nccl_};
    for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
        group.use(*gpus_[gpu]);
        nccl_->check(nccl_->window_register(comms_[gpu], memories[gpu]->data(), memories[gpu]->size(), &windows[gpu],
                                            nccl_window_symmetric),
                     "ncclCommWindowRegister", comms_[gpu]);
    }
    group.end();
    for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
        if (windows[gpu] != nullptr) {
            registered_.push_back({gpu, nullptr, windows[gpu]});
        }
    }
    // NCCL answers null where it cannot make a window, and measures without one: that must not look like one.
    if (std::ranges::find(windows, nullptr) != windows.end()) {
        throw std::runtime_error("NCCL made no symmetric window of these buffers; see its log with NCCL_DEBUG=INFO");
    }
}

void Communicators::abort() noexcept {
    for (nccl_comm& comm : comms_) {
        if (comm != nullptr) {
            nccl_->comm_abort(comm);
            comm = nullptr;
        }
    }
}

std::string Communicators::words() const {
    std::string all;
    for (nccl_comm comm : comms_) {
        if (comm == nullptr) {
            continue;
        }
        const std::string one = nccl_->words_about(comm);
        if (!one.empty() && all.find(one) == std::string::npos) {
            all += (all.empty() ? "" : "; ") + one;
        }
    }
    return all;
}

}  // namespace busbw
