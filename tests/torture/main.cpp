// Sixteen processes after four resources on five real servers, while a nemesis kills, freezes, empties, cuts
// and stops; and a judge, who reads afterwards what each of them claimed to hold.
//
// Exit status: 0 nothing found, 1 a violation, 2 it could not run.
#include "crew.hpp"
#include "judge.hpp"
#include "nemesis.hpp"
#include "resources.hpp"

#include "support/cluster.hpp"
#include "support/tcp_proxy.hpp"
#include "support/temporary_directory.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <iomanip>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace redlock::torture {
namespace {

using namespace std::chrono_literals;
using support::Cluster;
using support::TcpProxy;

struct Request {
    double seconds = 60;
    std::uint64_t seed = std::random_device{}();
    bool quarantine = true;
    bool until_violation = false;
};

class Torture {
public:
    explicit Torture(const Request& request)
        : request_(request), terms_(request.quarantine ? Terms{} : Terms{.quarantine = 0ms}) {}

    /// The number of violations.
    std::size_t run() {
        std::cout << "seed " << request_.seed << ", " << request_.seconds << " s, quarantine "
                  << (request_.quarantine ? "on" : "off") << std::endl;
        suffer();
        return report();
    }

private:
    void suffer() {
        const auto end = now() + static_cast<Instant>(request_.seconds * 1e9);
        auto next_look = now() + 1'000'000'000;
        while (now() < end) {
            nemesis_.strike();
            std::this_thread::sleep_for(std::chrono::milliseconds{50 + randomness_() % 400});
            if (!request_.until_violation || now() < next_look) continue;
            next_look = now() + 1'000'000'000;
            if (!overlaps(ledger_.claims()).empty()) break;
        }
        nemesis_.relent();
        well_ = crew_.stop();
        std::this_thread::sleep_for(2 * terms_.ttl);  // until every key that nobody released has expired
        stray_ = stray_keys(nodes_);
    }

    std::size_t report() {
        const auto claims = ledger_.claims();
        const auto overlapping = overlaps(claims);
        const auto disordered = disorders(claims);
        const auto late = lateness(claims, crew_.stops());
        print_claims(claims);
        for (const auto& [deed, times] : nemesis_.deeds()) row(deed, std::to_string(times));
        row("losses told", std::to_string(late.size()));
        if (!late.empty()) row("notice after the validity, ms: p50, p99, max", in_ms(late));

        std::size_t violations = 0;
        violations += verdict("overlaps of valid holds", overlapping.size());
        violations += verdict("fencing order violations", disordered.size());
        violations += verdict("stray keys", stray_.size());
        violations += verdict("notices later than 100 ms after the validity", too_late(late));
        violations += verdict("workers that ended badly", crew_.size() - well_);
        violations += verdict("modes without a hold", modes_without_a_hold(claims));
        show(overlapping);
        show(disordered);
        for (const auto& key : stray_) std::cout << "  " << key << '\n';
        std::cout << crew_.output() << (violations == 0 ? "nothing found" : "VIOLATIONS") << std::endl;
        return violations;
    }

    void print_claims(const std::vector<Claim>& claims) {
        row("attempts", std::to_string(ledger_.attempts()));
        for (const auto mode : modes) {
            const auto holds = std::ranges::count_if(
                claims, [&](const Claim& it) { return ledger_.pages(it.worker).mode() == mode; });
            row("holds, " + std::string{name_of(mode)}, std::to_string(holds));
        }
    }

    std::size_t modes_without_a_hold(const std::vector<Claim>& claims) {
        return static_cast<std::size_t>(std::ranges::count_if(modes, [&](Mode mode) {
            return std::ranges::none_of(
                claims, [&](const Claim& it) { return ledger_.pages(it.worker).mode() == mode; });
        }));
    }

    static std::size_t too_late(const std::vector<std::int64_t>& late) {
        return static_cast<std::size_t>(
            std::ranges::count_if(late, [](std::int64_t span) { return span > 100'000'000; }));
    }

    static std::string in_ms(const std::vector<std::int64_t>& sorted) {
        std::ostringstream out;
        out << std::fixed << std::setprecision(2);
        for (const double share : {0.5, 0.99, 1.0}) {
            const auto at = static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1));
            out << (share > 0.5 ? ", " : "") << static_cast<double>(sorted[at]) / 1e6;
        }
        return out.str();
    }

    static void row(const std::string& name, const std::string& value) {
        std::cout << std::left << std::setw(58) << name << value << '\n';
    }

    static std::size_t verdict(const std::string& name, std::size_t count) {
        row((count == 0 ? "ok         " : "VIOLATION  ") + name, std::to_string(count));
        return count;
    }

    template <class Finding>
    static void show(const std::vector<Finding>& findings) {
        constexpr std::size_t most = 10;
        for (std::size_t i = 0; i < std::min(most, findings.size()); ++i)
            std::cout << "  " << text(findings[i]) << '\n';
    }

    static std::deque<TcpProxy> linked(Cluster& nodes) {
        std::deque<TcpProxy> links;
        for (const auto& node : nodes)
            for (int side = 0; side < 2; ++side) links.emplace_back(node.port());
        return links;
    }

    static std::vector<std::vector<std::string>> sides(const std::deque<TcpProxy>& links) {
        std::vector<std::vector<std::string>> result(2);
        for (std::size_t link = 0; link < links.size(); ++link)
            result[link % 2].push_back(links[link].name());
        return result;
    }

    Request request_;
    Terms terms_;
    support::TemporaryDirectory directory_{};
    Cluster nodes_{};
    std::deque<TcpProxy> links_ = linked(nodes_);
    Ledger ledger_{directory_ / "ledger"};
    Crew crew_{terms_, directory_ / "", sides(links_)};
    std::mt19937_64 randomness_{request_.seed};
    Nemesis nemesis_{nodes_, links_, crew_, request_.seed};
    std::size_t well_ = 0;
    std::vector<std::string> stray_{};
};

}  // namespace
}  // namespace redlock::torture

int main(int argc, char** argv) {
    redlock::torture::Request request;
    double minutes = 0;
    bool no_quarantine = false;
    CLI::App app{"Redlock on real servers, tortured"};
    app.add_option("--minutes", minutes, "How long (default 1)")->check(CLI::PositiveNumber);
    app.add_option("--seconds", request.seconds, "The same in seconds")->check(CLI::PositiveNumber);
    app.add_option("--seed", request.seed, "Of the nemesis; the processes themselves are not repeatable");
    app.add_flag("--no-quarantine", no_quarantine, "The control: violations are to be found");
    app.add_flag("--until-violation", request.until_violation, "Stop at the first overlap");
    CLI11_PARSE(app, argc, argv);
    if (minutes > 0) request.seconds = 60 * minutes;
    request.quarantine = !no_quarantine;
    try {
        return redlock::torture::Torture{request}.run() == 0 ? 0 : 1;
    } catch (const std::exception& error) {
        std::cerr << "torture: " << error.what() << '\n';
        return 2;
    }
}
