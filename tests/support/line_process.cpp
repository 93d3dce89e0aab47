#include "support/line_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace redlock::support {

namespace {

/// Creates a FIFO and opens it for both directions, so that neither side waits for the other one to open it.
int open_fifo(const std::filesystem::path& path) {
    if (::mkfifo(path.c_str(), 0600) != 0) throw std::system_error{errno, std::generic_category(), "mkfifo"};
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) throw std::system_error{errno, std::generic_category(), path.string()};
    return fd;
}

Program between(const std::filesystem::path& directory, const std::vector<std::string>& words) {
    return {.words = joined({"sh", "-c", R"(exec "$@" <"$0/to" >"$0/from")", directory}, words)};
}

}  // namespace

LineProcess::LineProcess(const std::vector<std::string>& words)
    : to_(open_fifo(directory_ / "to")),
      from_(open_fifo(directory_ / "from")),
      process_(between(directory_.path(), words)) {}

LineProcess::~LineProcess() {
    process_.kill();
    ::close(to_);
    ::close(from_);
}

void LineProcess::write_line(std::string line) {
    line += '\n';
    if (::write(to_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
        throw std::system_error{errno, std::generic_category(), "write"};
}

std::optional<std::string> LineProcess::read_line(std::chrono::milliseconds timeout) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    for (;;) {
        if (const auto end = received_.find('\n'); end != std::string::npos) {
            auto line = received_.substr(0, end);
            received_.erase(0, end + 1);
            return line;
        }
        if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
        pollfd readable{from_, POLLIN, 0};
        if (::poll(&readable, 1, 100) == 0) {
            if (!process_.running()) return std::nullopt;
            continue;
        }
        std::array<char, 65'536> bytes;
        const auto length = ::read(from_, bytes.data(), bytes.size());
        if (length > 0) received_.append(bytes.data(), static_cast<std::size_t>(length));
    }
}

}  // namespace redlock::support
