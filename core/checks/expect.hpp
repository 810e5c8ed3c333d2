// What every check is written with: a statement that must hold, and the exit code of a program that made some.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <string>

namespace busbw::checks {

inline int failures = 0;

// Counts and reports a statement that does not hold; `what` says which case it was about.
inline void expect(bool holds, const std::string& what,
                   const std::source_location where = std::source_location::current()) {
    if (!holds && ++failures <= 20) {
        std::fprintf(stderr, "%s:%u: does not hold: %s\n", where.file_name(), where.line(), what.c_str());
    }
}

// Reports unless `action` throws an `Error`.
template <class Error, class Action>
void expect_throw(Action&& action, const std::string& what,
                  const std::source_location where = std::source_location::current()) {
    try {
        action();
    } catch (const Error&) {
        return;
    }
    expect(false, what, where);
}

// The exit code of main.
inline int verdict() {
    if (failures > 0) {
        std::fprintf(stderr, "%d statements do not hold\n", failures);
    }
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace busbw::checks
