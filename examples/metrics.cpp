// How do I monitor the locks in production: how long rounds take, and which nodes fail?
//
//     metrics redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
//
// The Observer below counts events and formats them as a page in the text format of Prometheus. Let your
// service serve this page at /metrics, or write it to a file for the textfile collector of the node_exporter.
// If you use a client library for Prometheus, let the Observer update the metrics of that library instead.
#include "node_list.hpp"

#include <redlock/redlock.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>

/// Many threads call these functions at the same time.
class Metrics : public redlock::Observer {
public:
    std::string page() const {
        const std::lock_guard guard{mutex_};
        std::string text;
        for (const auto& [name, value] : values_) text += name + " " + std::to_string(value) + "\n";
        return text;
    }

    void round_ended(const redlock::Command& command, const redlock::Tally& tally,
                     std::chrono::nanoseconds took) noexcept override {
        // In the order of redlock::Verb.
        constexpr std::array verbs{
            "acquire",           "extend",          "release", "acquire with a count", "raise the count",
            "wait in the queue", "note the holder", "query"};
        const auto verb = labels({{"command", verbs.at(static_cast<std::size_t>(command.verb))}});
        add("redlock_round_seconds_sum" + verb, std::chrono::duration<double>{took}.count());
        add("redlock_round_seconds_count" + verb, 1);
        for (const auto& node : tally.reports())
            add("redlock_votes_total" + labels({{"node", node.name}, {"vote", name_of(node)}}), 1);
    }

    void connecting(std::string_view node) noexcept override {
        add("redlock_connections" + labels({{"node", node}}), 1);
    }

    void disconnected(std::string_view node, std::error_code, std::string_view) noexcept override {
        add("redlock_connections" + labels({{"node", node}}), -1);
    }

    void wrote(std::string_view node, std::size_t commands,
               std::chrono::nanoseconds waited) noexcept override {
        const auto of_node = labels({{"node", node}});
        add("redlock_writes_total" + of_node, 1);
        add("redlock_written_commands_total" + of_node, static_cast<double>(commands));
        add("redlock_write_wait_seconds_sum" + of_node, std::chrono::duration<double>{waited}.count());
    }

    void backing_off(std::string_view node, std::error_code cause, std::string_view,
                     std::chrono::nanoseconds) noexcept override {
        add("redlock_back_offs_total" + labels({{"node", node}, {"cause", cause.message()}}), 1);
    }

private:
    static std::string labels(const std::map<std::string, std::string_view>& values) {
        std::string text;
        for (const auto& [name, value] : values)
            text += (text.empty() ? "{" : ",") + name + "=\"" + std::string{value} + "\"";
        return text + "}";
    }

    static std::string name_of(const redlock::NodeReport& node) {
        if (node.vote == redlock::Vote::unknown) return node.cause.message();
        return node.vote == redlock::Vote::granted ? "granted" : "refused";
    }

    void add(const std::string& name, double amount) {
        const std::lock_guard guard{mutex_};
        values_[name] += amount;
    }

    mutable std::mutex mutex_;
    std::map<std::string, double> values_{};  // guarded by mutex_
};

int main(int argc, char** argv) {
    try {
        int failed = 0;
        Metrics metrics;
        {
            redlock::RedisNodes nodes{node_list(argc, argv), {.observer = &metrics}};
            for (int i = 0; i < 10; ++i) {  // stands for the work of your service
                redlock::Lock lock{nodes, "orders:42"};
                const auto acquired = lock.acquire();
                if (!acquired && ++failed == 1) std::cerr << acquired.message() << '\n';
            }
            std::cout << metrics.page();
        }
        return failed == 0 ? 0 : 1;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 2;
    }
}
