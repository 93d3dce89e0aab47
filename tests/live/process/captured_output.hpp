// What is written to standard output and standard error, by whatever means.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

namespace redlock::test {

class CapturedOutput {
public:
    CapturedOutput() : file_(::memfd_create("captured output", MFD_CLOEXEC)) {
        if (file_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
        std::fflush(nullptr);
        for (int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
            original_.at(static_cast<std::size_t>(descriptor)) = ::dup(descriptor);
            ::dup2(file_, descriptor);
        }
    }
    ~CapturedOutput() {
        restore();
        ::close(file_);
    }
    CapturedOutput(const CapturedOutput&) = delete;
    CapturedOutput& operator=(const CapturedOutput&) = delete;

    /// Ends it, and returns what was written.
    std::string stop() {
        restore();
        std::string text(static_cast<std::size_t>(::lseek(file_, 0, SEEK_END)), '\0');
        const auto count = ::pread(file_, text.data(), text.size(), 0);
        text.resize(count > 0 ? static_cast<std::size_t>(count) : 0U);
        return text;
    }

private:
    void restore() {
        std::fflush(nullptr);
        for (int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
            auto& original = original_.at(static_cast<std::size_t>(descriptor));
            if (original < 0) continue;
            ::dup2(original, descriptor);
            ::close(original);
            original = -1;
        }
    }

    int file_;
    std::array<int, 3> original_{-1, -1, -1};
};

}  // namespace redlock::test
