// A group of NCCL calls: what is called between its start and its end happens together at the end.
#pragma once

#include "gpu.hpp"
#include "nccl_api.hpp"

namespace busbw {

// Begun by its constructor. Left without `end`, as by an exception, the group is closed all the same, and its errors
// stay unsaid: what was thrown says more. NCCL does nothing of a group in which one of its own calls failed.
class NcclGroup {
   public:
    // `comm`: whose last words belong to an error; may be null. Throws std::runtime_error.
    explicit NcclGroup(const NcclApi& nccl, nccl_comm comm = nullptr);
    NcclGroup(const NcclGroup&) = delete;
    NcclGroup& operator=(const NcclGroup&) = delete;
    ~NcclGroup();

    // Makes `gpu` current for the calls that follow; if that fails, the end of this group does nothing either.
    void use(const Gpu& gpu) const;

    // Closes the group, which does what was called. Throws std::runtime_error with NCCL's words.
    void end();

   private:
    const NcclApi* nccl_;
    nccl_comm comm_;
    bool is_open_ = false;
};

}  // namespace busbw
