// The files of a child of fork() that does what daemons do: it closes all descriptors that it has inherited,
// and then opens files of its own, which get the numbers of the closed descriptors.
//
//     ForkedChild daemon{[&](Report report) {
//         OwnFiles files{directory.path(), report.descriptor()};
//         lock.reset();
//         report(files.state());
//     }};
//     EXPECT_EQ(daemon.receive(), "as written");
//     EXPECT_EQ(OwnFiles::lines_executed_by(world), 0U);
#pragma once

#include "support/process_files.hpp"
#include "support/process_state.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace redlock::test {

class OwnFiles {
public:
    /// Closes all descriptors from 3 on, except `kept`. Then opens files in the directory until they have all
    /// these numbers.
    OwnFiles(const std::filesystem::path& directory, int kept) : directory_(directory) {
        int last = kept;
        for (const int open : support::descriptors()) {
            if (open <= STDERR_FILENO || open == kept) continue;
            ::close(open);
            last = std::max(last, open);
        }
        while (numbers_.empty() || numbers_.back() < last) {
            const auto path = directory / std::to_string(numbers_.size());
            const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
            if (file < 0) throw std::system_error(errno, std::generic_category(), path);
            numbers_.push_back(file);
        }
    }

    /// Appends another line to each file. Returns "as written" if the files hold exactly their lines, and
    /// otherwise a text for people.
    std::string state() {
        written_ += line;
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < numbers_.size(); ++i) {
            const auto taken = ::write(numbers_[i], line.data(), line.size());
            const bool right = taken == static_cast<ssize_t>(line.size()) &&
                               support::content(directory_ / std::to_string(i)) == written_;
            wrong += right ? 0U : 1U;
        }
        if (wrong == 0) return "as written";
        return std::to_string(wrong) + " of " + std::to_string(numbers_.size()) + " files are wrong";
    }

    /// Returns on how many of these servers a line of the files was executed.
    template <class Servers>
    static std::size_t lines_executed_by(Servers& servers) {
        return static_cast<std::size_t>(std::ranges::count_if(servers, [](auto& server) {
            return server.command({"EXISTS", "a-line-of-a-daemon"}) != "0";
        }));
    }

private:
    static inline const std::string line = "SET a-line-of-a-daemon 1\r\n";  // also a command of Redis
    const std::filesystem::path directory_;
    std::vector<int> numbers_{};
    std::string written_{};
};

}  // namespace redlock::test
