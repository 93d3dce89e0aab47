#include "process_network.hpp"

#include <netinet/in.h>
#include <sys/un.h>

#include <cerrno>

namespace redlock::sim {
namespace {

class SimSocket final : public Socket {
public:
    SimSocket(Process& process, milliseconds longest_wait, std::shared_ptr<Channel> channel,
              ProcessNetwork::Descriptors& descriptors)
        : process_(process),
          longest_wait_(longest_wait),
          channel_(std::move(channel)),
          descriptors_(descriptors) {
        const auto unused = std::ranges::find(descriptors_, nullptr);
        fd_ = static_cast<int>(unused - descriptors_.begin());
        if (unused == descriptors_.end()) descriptors_.push_back(nullptr);
        descriptors_[static_cast<std::size_t>(fd_)] = channel_.get();
    }
    ~SimSocket() override {
        channel_->listen(nullptr);
        channel_->abandon();
        descriptors_[static_cast<std::size_t>(fd_)] = nullptr;
    }

    int fd() const noexcept override { return fd_; }
    std::optional<int> connect_result() noexcept override { return channel_->connect_result(); }
    std::ptrdiff_t send(std::string_view bytes) override { return channel_->send(bytes); }

    std::ptrdiff_t receive(std::span<char> bytes, Wait wait) override {
        if (wait == Wait::yes) await_input();
        return channel_->receive(bytes);
    }

    bool has_input() const noexcept override { return channel_->has_input(); }
    void drop_unsent() noexcept override {}

private:
    void await_input() const {
        const auto until = process_.now() + longest_wait_;
        channel_->listen(process_.current());
        while (!channel_->has_input() && process_.now() < until) process_.wait_until(until);
        channel_->listen(nullptr);
    }

    Process& process_;
    const milliseconds longest_wait_;
    std::shared_ptr<Channel> channel_;
    ProcessNetwork::Descriptors& descriptors_;
    int fd_;  // the lowest unused number, as in an operating system
};

/// A fiber of the process. It begins when the task is started for the first time.
class SimTask final : public BackgroundTask {
public:
    SimTask(Process& process, Function function)
        : state_(std::make_shared<State>(process, std::move(function))) {}
    ~SimTask() override { state_->over = true; }

    void start() noexcept override {
        state_->started = true;
        if (state_->fiber) return state_->process.wake(*state_->fiber);
        if (std::exchange(state_->spawned, true)) return;
        state_->process.spawn([state = state_] { run(*state); }, Service::background);
    }

private:
    /// Shared, because the fiber may end after the task.
    struct State {
        State(Process& its_process, Function its_function)
            : process(its_process), function(std::move(its_function)) {}
        Process& process;
        const Function function;
        Task* fiber = nullptr;
        bool spawned = false;
        bool started = false;
        bool over = false;
    };

    static void run(State& state) {
        state.fiber = state.process.current();
        for (auto next = Clock::never(); !state.over;) {
            if (!std::exchange(state.started, false)) state.process.wait_until(next);
            if (!state.over) next = state.function(state.process.now());
        }
    }

    const std::shared_ptr<State> state_;
};

}  // namespace

ProcessNetwork::ProcessNetwork(Process& process, sim::Network& network,
                               const std::vector<std::unique_ptr<SimNode>>& nodes, Rng rng,
                               Channel::Sent sent)
    : process_(process),
      network_(network),
      nodes_(nodes),
      sent_(std::move(sent)),
      clock_(process),
      entropy_(rng),
      links_(nodes.size()) {}

std::unique_ptr<Socket> ProcessNetwork::connect(const Address& address, milliseconds longest_wait,
                                                int& error) {
    if (!process_.alive()) {
        error = ENETDOWN;
        return nullptr;
    }
    const auto* const path = reinterpret_cast<const sockaddr_un*>(&address.storage)->sun_path;
    const auto port = ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
    const bool in_cluster = address.storage.ss_family == AF_INET;
    const auto node = in_cluster ? std::size_t{port} - port_of(0) : std::stoul(path);
    auto channel = std::make_shared<Channel>(process_, network_, links_.at(node), *nodes_.at(node), sent_);
    channel->open();
    std::erase_if(channels_, [](const auto& it) { return it.expired(); });
    channels_.push_back(channel);
    return std::make_unique<SimSocket>(process_, longest_wait, std::move(channel), descriptors_);
}

void ProcessNetwork::wait_for_descriptors(std::span<PollEntry> entries, Clock::time_point,
                                          Clock::time_point until, const std::stop_token& stop) {
    if (!process_.current()) {  // the world is over, and destroys the nodes
        for (auto& entry : entries) entry.ready = has_news(entry);
        return;
    }
    process_.check_alive();
    const auto is_ready = [this](const PollEntry& entry) { return has_news(entry); };
    const bool futile = process_.now() >= until && std::ranges::none_of(entries, is_ready);
    const auto last = std::exchange(last_wait_, process_.now());
    futile_waits_ = futile && process_.now() == last ? futile_waits_ + 1 : 0;
    if (futile_waits_ > 1000) {
        on_endless_wait_();
        process_.crash();
        process_.check_alive();
    }
    if (process_.now() < until) sleep_until_news(entries, until, stop);
    for (auto& entry : entries) entry.ready = has_news(entry);
}

void ProcessNetwork::sleep_until_news(std::span<PollEntry> entries, Clock::time_point until,
                                      const std::stop_token& stop) {
    Task& sleeper = *process_.current();
    listen(entries, &sleeper);
    const std::stop_callback alarm{stop, [&] { process_.wake(sleeper); }};
    const auto is_ready = [this](const PollEntry& entry) { return has_news(entry); };
    while (std::ranges::none_of(entries, is_ready) && process_.now() < until && !stop.stop_requested())
        process_.wait_until(until);
    listen(entries, nullptr);
}

std::unique_ptr<BackgroundTask> ProcessNetwork::make_task(BackgroundTask::Function function) {
    return std::make_unique<SimTask>(process_, std::move(function));
}

void ProcessNetwork::abandon() {
    for (const auto& channel : channels_)
        if (const auto it = channel.lock()) it->abandon();
}

}  // namespace redlock::sim
