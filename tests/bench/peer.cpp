#include "peer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <string_view>
#include <system_error>
#include <utility>

namespace redlock::bench {
namespace {

using namespace std::chrono_literals;

/// Opened for both directions, so that neither side waits for the other to open it.
int open_fifo(const std::filesystem::path& path) {
    if (::mkfifo(path.c_str(), 0600) != 0) throw std::system_error{errno, std::generic_category(), "mkfifo"};
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) throw std::system_error{errno, std::generic_category(), path.string()};
    return fd;
}

support::Program between(const std::filesystem::path& directory, std::vector<std::string> words) {
    std::vector<std::string> shell{"sh", "-c", R"(exec "$@" <"$0/to" >"$0/from")", directory};
    shell.insert(shell.end(), words.begin(), words.end());
    return {.words = std::move(shell)};
}

std::string_view after(std::string_view line, std::string_view key) {
    const auto found = line.find(key);
    return found == std::string_view::npos ? std::string_view{} : line.substr(found + key.size());
}

/// The numbers at the beginning of `text`, whatever stands between them.
std::vector<double> numbers(std::string_view text) {
    std::vector<double> result;
    const auto* const end = text.data() + text.size();
    for (const auto* at = text.data(); at != end && *at != ']' && *at != '}';) {
        double number = 0;
        const auto [rest, error] = std::from_chars(at, end, number);
        if (error == std::errc{}) result.push_back(number);
        at = error == std::errc{} ? rest : at + 1;
    }
    return result;
}

Batch parsed(std::string_view line) {
    const auto failed = numbers(after(line, R"("failed":)"));
    return {.microseconds = numbers(after(line, R"("microseconds":)")),
            .failed = failed.empty() ? 0 : static_cast<std::size_t>(failed.front())};
}

}  // namespace

Peer::Peer(std::string name, std::vector<std::string> words)
    : Client(std::move(name)),
      to_(open_fifo(directory_ / "to")),
      from_(open_fifo(directory_ / "from")),
      process_(between(directory_.path(), std::move(words))) {}

Peer::~Peer() {
    process_.kill();
    ::close(to_);
    ::close(from_);
}

std::unique_ptr<Peer> Peer::start(std::string name, std::vector<std::string> words) {
    std::unique_ptr<Peer> peer{new Peer{std::move(name), std::move(words)}};
    const auto line = peer->read_line(20s);
    if (line && line->find("ready") != std::string::npos) return peer;
    std::cerr << peer->name() << " is left out: " << line.value_or("it does not start") << '\n';
    return nullptr;
}

Batch Peer::run(const Work& work) {
    if (hung_) return {.failed = 1};
    const auto line = "run " + std::to_string(std::min<std::size_t>(work.ops, 1'000'000)) + " " +
                      std::to_string(work.span.count()) + "\n";
    if (::write(to_, line.data(), line.size()) < 0) return {.failed = 1};
    const auto answer = read_line(std::min<std::chrono::milliseconds>(work.span, 2min) + 3s);
    hung_ = !answer;
    return hung_ ? Batch{.failed = 1} : parsed(*answer);
}

std::optional<std::string> Peer::read_line(std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
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

}  // namespace redlock::bench
