#include "nccl_group.hpp"

namespace busbw {

NcclGroup::NcclGroup(const NcclApi& nccl, nccl_comm comm) : nccl_{&nccl}, comm_{comm} {
    nccl.check(nccl.group_start(), "ncclGroupStart", comm);
    is_open_ = true;
}

NcclGroup::~NcclGroup() {
    if (is_open_) {
        nccl_->group_end();
    }
}

void NcclGroup::use(const Gpu& gpu) const {
    try {
        gpu.use();
    } catch (const std::runtime_error&) {
        // Some GPUs would begin what the others never come to. NCCL drops a group after a call that it refuses, and no
        // other way is documented: it refuses one without a communicator.
        nccl_->broadcast(nullptr, nullptr, 0, 0, 0, nullptr, nullptr);
        throw;
    }
}

void NcclGroup::end() {
    // An end that fails has closed the group too.
    is_open_ = false;
    nccl_->check(nccl_->group_end(), "ncclGroupEnd", comm_);
}

}  // namespace busbw
