// A buffer is poisoned from the start, and tells when something wrote behind its end.
#include "buffer.hpp"

#include <algorithm>

#include "expect.hpp"

int main() {
    using namespace busbw;
    using namespace busbw::checks;
    for (const std::size_t size : {0UL, 1UL, 4095UL, 4096UL, 4097UL, 3UL << 20}) {
        const std::string text = std::to_string(size) + " bytes";
        const Buffer buffer{size};
        expect(buffer.size() == size, text);
        expect(reinterpret_cast<std::uintptr_t>(buffer.data()) % 4096 == 0, text + " are page-aligned");
        expect(std::ranges::all_of(buffer.bytes(), [](std::byte value) { return value == std::byte{0xFF}; }),
               text + " start poisoned");
        std::ranges::fill(buffer.bytes(), std::byte{1});
        expect(!buffer.overrun(), text + " may all be written");
        buffer.poison();
        expect(std::ranges::all_of(buffer.bytes(), [](std::byte value) { return value == std::byte{0xFF}; }),
               text + " are poisoned again");
        expect(!buffer.overrun(), "poison stays within " + text);
        // The last guarded byte first: it must be seen by itself.
        for (const std::size_t past : {4095UL, 0UL}) {
            const Buffer written{size};
            written.data()[size + past] = std::byte{0};
            expect(written.overrun(), std::to_string(past) + " behind " + text + " is seen");
        }
    }
    return verdict();
}
