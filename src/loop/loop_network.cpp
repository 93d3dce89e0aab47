#include "loop_network.hpp"

#include <utility>

namespace redlock::loop {
namespace {

/// A socket that the loop forgets before it is closed.
class LoopSocket final : public Socket {
public:
    LoopSocket(std::unique_ptr<Socket> socket, Watches& watches)
        : socket_(std::move(socket)), watches_(watches) {}
    ~LoopSocket() override { watches_.forget(socket_->fd()); }

    int fd() const noexcept override { return socket_->fd(); }
    std::optional<int> connect_result() noexcept override { return socket_->connect_result(); }
    std::ptrdiff_t send(std::string_view bytes) override { return socket_->send(bytes); }
    std::ptrdiff_t receive(std::span<char> bytes, Wait wait) override {
        return socket_->receive(bytes, wait);
    }
    bool has_input() const noexcept override { return socket_->has_input(); }
    void drop_unsent() noexcept override { socket_->drop_unsent(); }

private:
    const std::unique_ptr<Socket> socket_;
    Watches& watches_;
};

}  // namespace

std::unique_ptr<Socket> LoopNetwork::connect(const Address& address, std::chrono::milliseconds longest_wait,
                                             int& error) {
    auto socket = system_->connect(address, longest_wait, error);
    if (!socket) return nullptr;
    return std::make_unique<LoopSocket>(std::move(socket), watches_);
}

}  // namespace redlock::loop
