// How do I see in production what the locks do: how long rounds take, which nodes are in trouble?
//
//     metrics redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
//     curl http://127.0.0.1:9464/metrics
//
// An Observer tells Prometheus, by prometheus-cpp (Debian: prometheus-cpp-dev). METRICS_ADDRESS is where to
// serve; with port 0 the system chooses one.
#include "node_list.hpp"

#include <redlock/redlock.hpp>

#include <prometheus/counter.h>
#include <prometheus/exposer.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

using namespace std::chrono_literals;

/// Called by many threads at once, which the families of prometheus-cpp allow.
class Metrics : public redlock::Observer {
public:
    explicit Metrics(prometheus::Registry& registry)
        : rounds_(prometheus::BuildHistogram()
                      .Name("redlock_round_seconds")
                      .Help("How long a round over all nodes took, by command")
                      .Register(registry)),
          votes_(prometheus::BuildCounter()
                     .Name("redlock_votes_total")
                     .Help("How the nodes voted: granted, refused, or why the vote is unknown")
                     .Register(registry)),
          connections_(prometheus::BuildGauge()
                           .Name("redlock_connections")
                           .Help("Connections there are, also those being made")
                           .Register(registry)),
          back_offs_(prometheus::BuildCounter()
                         .Name("redlock_back_offs_total")
                         .Help("How often a node failed and was left alone, by cause")
                         .Register(registry)) {}

    void round_ended(const redlock::Command& command, const redlock::Tally& tally,
                     std::chrono::nanoseconds took) noexcept override {
        // In the order of redlock::Verb.
        constexpr std::array names{"acquire", "extend", "release", "acquire with a count", "raise the count"};
        const prometheus::Histogram::BucketBoundaries buckets{.0003, .001, .003, .01, .03, .1, .3, 1};
        rounds_.Add({{"command", names.at(static_cast<std::size_t>(command.verb))}}, buckets)
            .Observe(std::chrono::duration<double>{took}.count());
        for (const auto& node : tally.reports())
            votes_.Add({{"node", std::string{node.name}}, {"vote", name_of(node)}}).Increment();
    }

    void connecting(std::string_view node) noexcept override {
        connections_.Add({{"node", std::string{node}}}).Increment();
    }

    void disconnected(std::string_view node, std::error_code, std::string_view) noexcept override {
        connections_.Add({{"node", std::string{node}}}).Decrement();
    }

    void backing_off(std::string_view node, std::error_code cause, std::string_view,
                     std::chrono::nanoseconds) noexcept override {
        back_offs_.Add({{"node", std::string{node}}, {"cause", cause.message()}}).Increment();
    }

private:
    static std::string name_of(const redlock::NodeReport& node) {
        switch (node.vote) {
            case redlock::Vote::granted: return "granted";
            case redlock::Vote::refused: return "refused";
            case redlock::Vote::unknown: break;
        }
        return node.cause.message();
    }

    prometheus::Family<prometheus::Histogram>& rounds_;
    prometheus::Family<prometheus::Counter>& votes_;
    prometheus::Family<prometheus::Gauge>& connections_;
    prometheus::Family<prometheus::Counter>& back_offs_;
};

int main(int argc, char** argv) {
    try {
        const auto registry = std::make_shared<prometheus::Registry>();
        Metrics metrics{*registry};
        const char* const address = std::getenv("METRICS_ADDRESS");
        prometheus::Exposer exposer{address != nullptr ? address : "127.0.0.1:9464"};
        exposer.RegisterCollectable(registry);
        std::cout << "http://127.0.0.1:" << exposer.GetListeningPorts().at(0) << "/metrics" << std::endl;

        redlock::RedisNodes nodes{node_list(argc, argv), {.observer = &metrics}};
        for (;; std::this_thread::sleep_for(100ms)) {  // your service
            redlock::Lock lock{nodes, "orders:42"};
            (void)lock.acquire();
        }
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 2;
    }
}
