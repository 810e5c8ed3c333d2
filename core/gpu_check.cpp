#include "gpu_check.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "portable/kernel_arguments.hpp"

namespace busbw {
namespace {

// Without kernels data pass through host memory in pieces of this size.
constexpr std::size_t piece_bytes = 16UL << 20;

std::string kernel(const char* what, DataType type) {
    return std::string(what) + "_" + std::string(data_type_names[static_cast<std::size_t>(type)]);
}

std::size_t size_of(DataType type) {
    return with_type(type, [](auto element) { return sizeof element; });
}

void to_gpu(const Gpu& gpu, const std::vector<std::byte>& from, std::byte* into, std::size_t size) {
    gpu.cuda().check(gpu.cuda().copy_to_device(address_of(into), from.data(), size, gpu.stream()), "cuMemcpyHtoDAsync");
    gpu.wait();
}

void to_host(const Gpu& gpu, const std::byte* from, std::vector<std::byte>& into, std::size_t size) {
    gpu.cuda().check(gpu.cuda().copy_to_host(into.data(), address_of(from), size, gpu.stream()), "cuMemcpyDtoHAsync");
    gpu.wait();
}

void add(Mismatch& all, const Mismatch& part, std::size_t offset) {
    if (part.wrong > 0 && all.wrong == 0) {
        all = part;
        all.index += offset;
    } else {
        all.wrong += part.wrong;
    }
}

// One piece of a segment, copied to the host and compared there.
Mismatch compare_piece(const Gpu& gpu, const Pattern& pattern, const std::byte* output, const Segment& piece,
                       std::vector<std::byte>& space) {
    const std::size_t size = size_of(pattern.type);
    to_host(gpu, output + piece.at * size, space, piece.count * size);
    const std::array<Segment, 1> moved{{{0, piece.count, piece.source, piece.source_at}}};
    return compare(pattern, space.data(), moved);
}

Mismatch compare_segment_on_host(const Gpu& gpu, const Pattern& pattern, const std::byte* output,
                                 const Segment& segment) {
    const std::size_t most = piece_bytes / size_of(pattern.type);
    std::vector<std::byte> space(std::min(most, segment.count) * size_of(pattern.type));
    Mismatch all;
    for (std::size_t done = 0; done < segment.count; done += most) {
        const Segment piece{segment.at + done, std::min(most, segment.count - done), segment.source,
                            segment.source_at + done};
        add(all, compare_piece(gpu, pattern, output, piece, space), piece.at);
    }
    return all;
}

Mismatch compare_segment(const Gpu& gpu, const Pattern& pattern, const std::byte* output, const Segment& segment,
                         const GpuMemory& counters) {
    std::vector<std::byte> words(2 * sizeof(std::uint64_t));
    auto* const count = reinterpret_cast<unsigned long long*>(counters.data());
    std::fill_n(words.begin(), sizeof(std::uint64_t), std::byte{0});
    std::fill(words.begin() + sizeof(std::uint64_t), words.end(), std::byte{0xFF});
    to_gpu(gpu, words, counters.data(), words.size());
    gpu.launch(kernel("compare", pattern.type),
               CompareArguments{output, segment.at, segment.count, segment.source_at, pattern.seed, segment.source,
                                pattern.ranks, static_cast<int>(pattern.operation), count, count + 1},
               segment.count, gpu.stream());
    to_host(gpu, counters.data(), words, words.size());
    std::uint64_t wrong = 0;
    std::uint64_t place = 0;
    std::copy_n(words.begin(), sizeof wrong, reinterpret_cast<std::byte*>(&wrong));
    std::copy_n(words.begin() + sizeof wrong, sizeof place, reinterpret_cast<std::byte*>(&place));
    if (wrong == 0) {
        return {};
    }
    // The host says what stands there and what should: one element is copied and compared again.
    std::vector<std::byte> space(size_of(pattern.type));
    const Segment one{place, 1, segment.source, segment.source_at + (place - segment.at)};
    Mismatch first = compare_piece(gpu, pattern, output, one, space);
    if (first.wrong == 0) {
        throw std::runtime_error("the GPU calls element " + std::to_string(place) +
                                 " wrong and the host calls it right");
    }
    first.wrong = wrong;
    first.index = place;
    return first;
}

}  // namespace

void fill_on(const Gpu& gpu, const Pattern& pattern, int rank, std::size_t first, std::byte* into, std::size_t count) {
    gpu.use();
    if (gpu.has_kernels()) {
        gpu.launch(
            kernel("fill", pattern.type),
            FillArguments{into, first, count, pattern.seed, rank, pattern.ranks, static_cast<int>(pattern.operation)},
            count, gpu.stream());
        gpu.wait();
        return;
    }
    const std::size_t size = size_of(pattern.type);
    const std::size_t most = piece_bytes / size;
    std::vector<std::byte> space(std::min(most, count) * size);
    for (std::size_t done = 0; done < count; done += most) {
        const std::size_t part = std::min(most, count - done);
        fill(pattern, rank, first + done, space.data(), part);
        to_gpu(gpu, space, into + done * size, part * size);
    }
}

void fill_neutral_on(const Gpu& gpu, const Pattern& pattern, std::byte* into, std::size_t count) {
    gpu.use();
    if (gpu.has_kernels()) {
        gpu.launch(kernel("neutral", pattern.type), NeutralArguments{into, count, static_cast<int>(pattern.operation)},
                   count, gpu.stream());
        gpu.wait();
        return;
    }
    const std::size_t size = size_of(pattern.type);
    const std::size_t most = piece_bytes / size;
    std::vector<std::byte> space(std::min(most, count) * size);
    fill_neutral(pattern, space.data(), space.size() / size);
    for (std::size_t done = 0; done < count; done += most) {
        to_gpu(gpu, space, into + done * size, std::min(most, count - done) * size);
    }
}

void poison_on(const Gpu& gpu, std::byte* memory, std::size_t size) {
    gpu.use();
    gpu.cuda().check(gpu.cuda().memset_d8_async(address_of(memory), 0xFF, size, gpu.stream()), "cuMemsetD8Async");
    gpu.wait();
}

Mismatch compare_on(const Gpu& gpu, const Pattern& pattern, const std::byte* output,
                    std::span<const Segment> segments) {
    gpu.use();
    Mismatch all;
    if (!gpu.has_kernels()) {
        for (const Segment& segment : segments) {
            add(all, compare_segment_on_host(gpu, pattern, output, segment), 0);
        }
        return all;
    }
    const GpuMemory counters{gpu, 2 * sizeof(std::uint64_t), nullptr};
    for (const Segment& segment : segments) {
        if (segment.count > 0) {
            add(all, compare_segment(gpu, pattern, output, segment, counters), 0);
        }
    }
    return all;
}

}  // namespace busbw
