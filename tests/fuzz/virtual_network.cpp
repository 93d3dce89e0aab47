#include "virtual_network.hpp"

#include "require.hpp"

#include <netinet/in.h>
#include <sys/un.h>

#include <cerrno>
#include <string_view>

namespace redlock::fuzz {
namespace {

using namespace std::chrono_literals;

class VirtualSocket final : public Socket {
public:
    VirtualSocket(VirtualNetwork& network, Clock::duration longest_wait, std::shared_ptr<Stream> stream)
        : network_(network), longest_wait_(longest_wait), stream_(std::move(stream)) {}
    ~VirtualSocket() override { stream_->closed_by_client = true; }

    int fd() const noexcept override { return -1; }
    std::optional<int> connect_result() noexcept override { return stream_->connect_result; }

    std::ptrdiff_t send(std::string_view bytes) override {
        network_.tick();
        if (stream_->closed_by_server) return -EPIPE;
        if (stream_->room == 0) return -EAGAIN;
        const auto length = std::min(bytes.size(), stream_->room);
        stream_->to_server += bytes.substr(0, length);
        stream_->room -= length;
        return static_cast<std::ptrdiff_t>(length);
    }

    std::ptrdiff_t receive(std::span<char> bytes, Wait wait) override {
        network_.tick();
        constexpr auto two_ticks = 20ms;  // of a kernel; it may wait this much longer
        if (wait == Wait::yes)
            network_.pass_time(network_.now() + longest_wait_ + two_ticks, [this] { return has_input(); });
        auto& input = stream_->to_client;
        if (input.empty()) return stream_->finished ? 0 : -EAGAIN;
        const auto length = std::min(bytes.size(), input.size());
        std::copy_n(input.begin(), length, bytes.begin());
        input.erase(0, length);
        return static_cast<std::ptrdiff_t>(length);
    }

    bool has_input() const noexcept override { return !stream_->to_client.empty() || stream_->finished; }
    void drop_unsent() noexcept override {}

    bool is_ready(const PollEntry& entry) const noexcept {
        if (!stream_->connect_result) return false;
        return (entry.reads && has_input()) || (entry.writes && stream_->room > 0);
    }

private:
    VirtualNetwork& network_;
    const Clock::duration longest_wait_;
    const std::shared_ptr<Stream> stream_;
};

std::size_t number_of(const Address& address) {
    const auto& storage = address.storage;
    if (storage.ss_family == AF_UNIX)
        return std::stoul(reinterpret_cast<const sockaddr_un*>(&storage)->sun_path);
    return std::size_t{ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port)} - 7000;
}

}  // namespace

std::unique_ptr<Socket> VirtualNetwork::connect(const Address& address,
                                                std::chrono::milliseconds longest_wait, int& error) {
    tick();
    auto stream = std::make_shared<Stream>();
    if (const auto number = number_of(address); number < servers_.size()) {
        servers_[number]->accept(stream);
    } else if (number < 7) {
        error = ECONNREFUSED;
        return nullptr;
    }
    return std::make_unique<VirtualSocket>(*this, longest_wait, std::move(stream));
}

void VirtualNetwork::wait_for_descriptors(std::span<PollEntry> entries, time_point now, time_point until,
                                          const std::stop_token&) {
    require(until < never(), "no wait without an end");
    const auto refresh = [&] {
        for (auto& entry : entries) {
            require(entry.socket != nullptr, "something to wait for");
            entry.ready = static_cast<const VirtualSocket*>(entry.socket)->is_ready(entry);
        }
        return std::ranges::any_of(entries, &PollEntry::ready);
    };
    pass_time(now_ + std::chrono::ceil<std::chrono::milliseconds>(until - now), refresh);
}

namespace {

/// A task that never runs, because there are no threads.
class NoTask final : public BackgroundTask {
public:
    void start() noexcept override {}
};

}  // namespace

std::unique_ptr<BackgroundTask> VirtualNetwork::make_task(BackgroundTask::Function) {
    return std::make_unique<NoTask>();
}

void VirtualNetwork::sleep_until(time_point until, std::stop_token stop) {
    require(until < never(), "no sleep without an end");
    pass_time(until, [&] { return stop.stop_requested(); });
}

std::error_code VirtualNetwork::fill(std::span<std::byte> out) noexcept {
    for (auto& byte : out) byte = static_cast<std::byte>(random_() & 0xFFU);
    return {};
}

void VirtualNetwork::act() {
    for (auto* const server : servers_) server->act(now_);
}

Clock::time_point VirtualNetwork::next() const {
    auto next = never();
    for (const auto* const server : servers_) next = std::min(next, server->next());
    return next;
}

}  // namespace redlock::fuzz
