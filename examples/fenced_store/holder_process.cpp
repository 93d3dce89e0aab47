#include "holder_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace fenced_store {

namespace {

/// The reading end of a new pipe at `path`. Opened first, so that neither end waits for the other.
int open_ear(const std::filesystem::path& path) {
    if (::mkfifo(path.c_str(), 0600) != 0)
        throw std::system_error(errno, std::generic_category(), path.string());
    const int ear = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (ear < 0) throw std::system_error(errno, std::generic_category(), path.string());
    return ear;
}

std::string text(Writing writing) {
    return writing == Writing::fenced ? "fenced" : "unfenced";
}

std::string text(Pause pause) {
    return pause == Pause::before_the_write ? "paused" : "unpaused";
}

}  // namespace

HolderProcess::HolderProcess(int amount, Writing writing, Pause pause, const std::filesystem::path& file,
                             const std::string& uris)
    : ear_(open_ear(directory_ / "said")),
      process_({.words = {std::filesystem::read_symlink("/proc/self/exe"), "holder", std::to_string(amount),
                          text(writing), text(pause), file, uris},
                .output = directory_ / "said"}) {}

HolderProcess::~HolderProcess() {
    ::close(ear_);
}

std::optional<std::string> HolderProcess::hear() {
    std::string line;
    for (char byte = 0;;) {
        pollfd readable{ear_, POLLIN, 0};
        if (::poll(&readable, 1, 30'000) <= 0) throw std::runtime_error("a holder says nothing");
        if (::read(ear_, &byte, 1) != 1) return std::nullopt;  // nobody has the other end
        if (byte == '\n') return line;
        line += byte;
    }
}

void hold(const std::vector<std::string>& words) {
    std::vector<std::string> uris;
    std::istringstream list{words.at(5)};
    for (std::string uri; std::getline(list, uri, ',');) uris.push_back(uri);
    const auto writing = words.at(2) == text(Writing::fenced) ? Writing::fenced : Writing::unfenced;
    const auto pause = words.at(3) == text(Pause::none) ? Pause::none : Pause::before_the_write;
    prepare_for_pause();
    Holder{words.at(4), uris, writing, pause}.deposit(std::stoi(words.at(1)));
}

}  // namespace fenced_store
