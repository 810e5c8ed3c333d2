// NVRTC's stand-in: compiles kernels for this host with g++, once for all processes that share STANDIN_CACHE.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "kernel_abi.hpp"

#define STANDIN_API extern "C" __attribute__((visibility("default")))

namespace standin {
namespace {

namespace fs = std::filesystem;

enum Result : int {
    success = 0,
    out_of_memory = 1,
    invalid_input = 3,
    invalid_program = 4,
    invalid_option = 5,
    compilation_failed = 6,
    internal_failure = 11,
};

struct Program {
    std::string source;
    std::vector<std::pair<std::string, std::string>> headers;  // what is included, and its text
    std::string log;
    std::string image;
};

template <class Action>
Result answer(Action&& action) noexcept {
    try {
        return action();
    } catch (const std::bad_alloc&) {
        return out_of_memory;
    } catch (...) {
        return internal_failure;
    }
}

bool starts_with(const std::string& text, std::string_view start) { return text.rfind(start, 0) == 0; }

// Keeps what g++ needs of an option; false for one that NVRTC does not have.
bool take_option(const std::string& option, std::vector<std::string>& kept) {
    for (const char* const standard : {"--std=", "-std="}) {
        if (starts_with(option, standard)) {
            kept.push_back("-std=" + option.substr(std::strlen(standard)));
            return true;
        }
    }
    if (starts_with(option, "-D")) {
        kept.push_back(option);
        return true;
    }
    if (starts_with(option, "--define-macro=")) {
        kept.push_back("-D" + option.substr(std::strlen("--define-macro=")));
        return true;
    }
    for (const char* const known : {"--gpu-architecture=", "-arch=", "--fmad=", "-fmad=", "--use_fast_math",
                                    "-default-device", "--device-as-default-execution-space", "--ftz=", "--prec-div=",
                                    "--prec-sqrt=", "-lineinfo", "--generate-line-info", "-w", "--diag-suppress="}) {
        if (starts_with(option, known)) {
            return true;
        }
    }
    return false;
}

fs::path own_folder() {
    Dl_info info{};
    ::dladdr(reinterpret_cast<const void*>(&own_folder), &info);
    return fs::path{info.dli_fname}.parent_path();
}

fs::path cache_folder() {
    const char* const chosen = std::getenv("STANDIN_CACHE");
    const fs::path folder = chosen != nullptr
                                ? fs::path{chosen}
                                : fs::temp_directory_path() / ("busbw-stand-in-" + std::to_string(::getuid()));
    fs::create_directories(folder);
    return folder;
}

std::string text_of(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream{path}.rdbuf();
    return text.str();
}

void write_text(const fs::path& path, const std::string& text) {
    std::ofstream file{path};
    file << text;
    file.close();
    if (!file) {
        throw std::runtime_error("cannot write " + path.string());
    }
}

// FNV-1a, 64 bits.
std::string hash_of(const std::string& text) {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char each : text) {
        hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3U;
    }
    std::ostringstream name;
    name << std::hex << hash;
    return name.str();
}

// Other processes that compile the same wait until this is gone.
class Lock {
   public:
    explicit Lock(const fs::path& path) : file_{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)} {
        if (file_ < 0 || ::flock(file_, LOCK_EX) != 0) {
            throw std::runtime_error("cannot lock " + path.string());
        }
    }
    ~Lock() { ::close(file_); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    int file_;
};

std::string quoted(const std::string& word) {
    std::string safe = "'";
    for (const char each : word) {
        safe += each == '\'' ? std::string{"'\\''"} : std::string{each};
    }
    return safe + "'";
}

// Runs g++ in `folder`, where the source and its headers are written to. Its words go into the log.
bool compile(Program& program, const std::vector<std::string>& options, const fs::path& folder,
             const fs::path& library) {
    write_text(folder / "program.cu", program.source);
    for (const auto& [name, text] : program.headers) {
        fs::create_directories((folder / name).parent_path());
        write_text(folder / name, text);
    }
    std::string command = "cd " + quoted(folder) +
                          " && g++ -std=c++17 -O2 -shared -fPIC -fno-gnu-unique -nostdinc -nostdinc++ -I. -include " +
                          quoted(own_folder() / "prelude.hpp");
    for (const std::string& option : options) {
        command += " " + quoted(option);
    }
    command += " -x c++ program.cu -o " + quoted(library) + " > log 2>&1";
    const bool compiled = std::system(command.c_str()) == 0;
    program.log = text_of(folder / "log");
    return compiled;
}

Result compile_once(Program& program, const std::vector<std::string>& options) {
    std::string all = program.source + text_of(own_folder() / "prelude.hpp");
    for (const auto& [name, text] : program.headers) {
        all += name + text;
    }
    for (const std::string& option : options) {
        all += option + '\n';
    }
    const fs::path library = cache_folder() / (hash_of(all) + ".so");
    const fs::path work = cache_folder() / (hash_of(all) + ".work");
    {
        const Lock lock{cache_folder() / (hash_of(all) + ".lock")};
        if (!fs::exists(library)) {
            fs::create_directories(work);
            const bool compiled = compile(program, options, work, work / "kernels.so");
            if (compiled) {
                fs::rename(work / "kernels.so", library);
            }
            fs::remove_all(work);
            if (!compiled) {
                return compilation_failed;
            }
        }
    }
    program.image = std::string{image_magic} + library.string() + '\0';
    return success;
}

Result copy_out(const std::string& text, char* to) {
    if (to == nullptr) {
        return invalid_input;
    }
    std::memcpy(to, text.data(), text.size());
    return success;
}

}  // namespace

STANDIN_API Result nvrtcVersion(int* major, int* minor) {
    *major = 13;
    *minor = 0;
    return success;
}

STANDIN_API const char* nvrtcGetErrorString(int result) {
    switch (result) {
        case success: return "NVRTC_SUCCESS";
        case out_of_memory: return "NVRTC_ERROR_OUT_OF_MEMORY";
        case invalid_input: return "NVRTC_ERROR_INVALID_INPUT";
        case invalid_program: return "NVRTC_ERROR_INVALID_PROGRAM";
        case invalid_option: return "NVRTC_ERROR_INVALID_OPTION";
        case compilation_failed: return "NVRTC_ERROR_COMPILATION";
        case internal_failure: return "NVRTC_ERROR_INTERNAL_ERROR";
        default: return "NVRTC_ERROR unknown";
    }
}

STANDIN_API Result nvrtcCreateProgram(Program** program, const char* source, const char*, int header_count,
                                      const char* const* headers, const char* const* names) {
    return answer([&] {
        if (program == nullptr || source == nullptr || header_count < 0) {
            return invalid_input;
        }
        auto made = std::make_unique<Program>();
        made->source = source;
        for (int index = 0; index < header_count; ++index) {
            made->headers.emplace_back(names[index], headers[index]);
        }
        *program = made.release();
        return success;
    });
}

STANDIN_API Result nvrtcDestroyProgram(Program** program) {
    return answer([&] {
        if (program == nullptr || *program == nullptr) {
            return invalid_program;
        }
        const std::unique_ptr<Program> gone{*program};
        *program = nullptr;
        return success;
    });
}

STANDIN_API Result nvrtcCompileProgram(Program* program, int count, const char* const* options) {
    return answer([&] {
        if (program == nullptr) {
            return invalid_program;
        }
        std::vector<std::string> kept;
        for (int index = 0; index < count; ++index) {
            if (!take_option(options[index], kept)) {
                program->log = std::string{"nvrtc: error: unrecognized option "} + options[index] + " found\n";
                return invalid_option;
            }
        }
        return compile_once(*program, kept);
    });
}

STANDIN_API Result nvrtcGetProgramLogSize(Program* program, std::size_t* bytes) {
    *bytes = program->log.size() + 1;
    return success;
}

STANDIN_API Result nvrtcGetProgramLog(Program* program, char* log) { return copy_out(program->log + '\0', log); }

STANDIN_API Result nvrtcGetCUBINSize(Program* program, std::size_t* bytes) {
    *bytes = program->image.size();
    return success;
}

STANDIN_API Result nvrtcGetCUBIN(Program* program, char* image) { return copy_out(program->image, image); }

STANDIN_API Result nvrtcGetPTXSize(Program* program, std::size_t* bytes) { return nvrtcGetCUBINSize(program, bytes); }

STANDIN_API Result nvrtcGetPTX(Program* program, char* image) { return nvrtcGetCUBIN(program, image); }

}  // namespace standin
