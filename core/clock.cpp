#include "clock.hpp"

#include <algorithm>
#include <limits>

namespace busbw {

ClockQuality clock_quality(int reads) {
    nanoseconds step = std::numeric_limits<nanoseconds>::max();
    const nanoseconds begin = wall_clock();
    nanoseconds before = begin;
    for (int read = 0; read < reads; ++read) {
        const nanoseconds now = wall_clock();
        if (now > before) {
            step = std::min(step, now - before);
        }
        before = now;
    }
    return {static_cast<double>(before - begin) / reads, step};
}

}  // namespace busbw
