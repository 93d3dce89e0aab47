// Any sequence of calls on two Locks of the same resources, over the library's own nodes and connections, and
// servers that behave as the input says. Network and time are virtual (virtual_network.hpp).
//
// The input begins with the number of nodes ('1' to '5'), the order of a round ('s'equential or 'a'll at
// once), and the kind of lock: '-', 'f'encing, 'm' several resources, or 'b'oth. Then each letter is an
// event:
//
//     A  acquire                                  E  extend
//     T  try_acquire                              X  extend with another ttl, chosen by a digit
//     F  acquire_for, with a digit for the time   B  extend it and two other leases in one round
//     P  acquire with a stop already requested    R  release
//     U  try_lock, unlock                         D  destroy and create again
//     M  move and back                            N  move the other lock here
//     S  continue with the other lock             W  wait, with a digit for the time
//
//     0 to 4       continue with that node, * with all
//     H            the node closes its connections and restarts with its keys
//     small letter its Behavior, see fake_redis_server.hpp
//     "..."        the bytes that nodes send as garbage from now on
//
// The target requires what the header of Lock guarantees, for success, failure and duration. As long as no
// node has reported a wrong grant, it also requires that a valid lock has a majority of the nodes, that no
// two locks are valid, and that fencing tokens grow.
#include "fake_redis_server.hpp"
#include "require.hpp"
#include "virtual_nodes.hpp"

#include <redlock/redlock.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::fuzz {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr auto ttl = 2'000ms;
constexpr Retry retry{.attempts = 3, .delay = 30ms};
constexpr std::array spans{0ms, 1ms, 5ms, 20ms, 49ms, 51ms, 100ms, 200ms, 300ms, 500ms};
constexpr std::array pauses{1ms, 10ms, 49ms, 51ms, 100ms, 300ms, 500ms, 1'000ms, 1'900ms, 2'100ms};
constexpr std::array ttls{-1ms, 0ms, 1ms, 52ms, 100ms, 500ms, 1'000ms, 2'000ms, 5'000ms, 10'000ms};
constexpr auto least_ttl = 100ms;  // of these: the shorter ones leave no validity

struct Rules {
    std::size_t nodes = 3;
    Round round = Round::sequential;
    bool fencing = false;
    Words resources{"orders:42"};
};

/// Parses the rules, and leaves the events in `input`.
Rules rules_of(std::string_view& input) {
    Rules rules;
    const auto take = [&] {
        const char c = input.empty() ? '-' : input.front();
        input.remove_prefix(std::min<std::size_t>(input.size(), 1));
        return c;
    };
    const char nodes = take();
    if (nodes >= '1' && nodes <= '5') rules.nodes = static_cast<std::size_t>(nodes - '0');
    if (take() == 'a') rules.round = Round::all_at_once;
    const char kind = take();
    rules.fencing = kind == 'f' || kind == 'b';
    if (kind == 'm' || kind == 'b') rules.resources = {"account:1", "account:2"};
    return rules;
}

class Scenario {
public:
    explicit Scenario(const Rules& rules)
        : rules_(rules), world_(rules.nodes), nodes_(rules.nodes, rules.round, world_.network()) {
        for (auto& lock : locks_) make(lock);
    }

    void run(std::string_view input) {
        for (; !input.empty(); check_invariants()) act(input);
        for (auto& lock : locks_) lock.reset();
        check_released();
    }

private:
    static char take(std::string_view& input) {
        const char c = input.front();
        input.remove_prefix(1);
        return c;
    }

    /// Returns one of ten values, chosen by the next digit.
    static milliseconds choose(std::string_view& input, const std::array<milliseconds, 10>& choice) {
        if (input.empty() || input.front() < '0' || input.front() > '9') return choice[5];
        return choice[static_cast<std::size_t>(take(input) - '0')];
    }

    void make(std::optional<Lock>& lock) {
        const LockOptions options{.ttl = ttl, .retry = retry, .fencing = rules_.fencing};
        lock.emplace(nodes_, rules_.resources, options, world_.network(), world_.network());
    }

    Clock::time_point now() { return world_.network().now(); }
    void sleep_for(Clock::duration span) { world_.network().sleep_until(now() + span, {}); }
    Lock& lock() { return *locks_[mine_]; }
    Lock& other() { return *locks_[1 - mine_]; }

    void act(std::string_view& input) {
        const char action = take(input);
        switch (action) {
            case 'A':
                return acquire([](Lock& lock) { return lock.acquire(); },
                               retry.attempts * (attempt() + retry.delay));
            case 'T': return acquire([](Lock& lock) { return lock.try_acquire(); }, attempt());
            case 'F': return acquire_for(choose(input, spans));
            case 'P': return acquire_stopped();
            case 'E': return extend([](Lock& lock) { return lock.extend(); }, ttl);
            case 'X': return extend_by(choose(input, ttls));
            case 'B': return extend_three_in_one_round();
            case 'R': return release();
            case 'M': return move_and_back();
            case 'N': return take_over();
            case 'D': return make(locks_[mine_]);
            case 'U': return use_std_vocabulary();
            case 'S': mine_ = 1 - mine_; return;
            case 'W': return sleep_for(choose(input, pauses));
            default: return act_on_nodes(action, input);
        }
    }

    void act_on_nodes(char action, std::string_view& input) {
        if (action == '"') return set_garbage(input);
        if (action == '*') chosen_.set();
        if (action >= '0' && action <= '4') chosen_.reset().set(static_cast<std::size_t>(action - '0'));
        for (std::size_t node = 0; node < world_.servers().size(); ++node) {
            if (!chosen_[node]) continue;
            if (behaviors.find(action) != behaviors.npos) world_.servers()[node].behave(Behavior{action});
            if (action == 'H') world_.servers()[node].restart();
        }
    }

    void set_garbage(std::string_view& input) {
        const auto end = std::min(input.find('"'), input.size());
        for (auto& server : world_.servers()) server.set_garbage(input.substr(0, end));
        input.remove_prefix(std::min(end + 1, input.size()));
    }

    // ---- How long the functions may take. Each wait may last a millisecond longer than intended.

    milliseconds attempt() const {
        const auto round = rules_.round == Round::sequential ? milliseconds{rules_.nodes * the_node_timeout}
                                                             : the_node_timeout;
        return round + (rules_.fencing ? the_node_timeout : 0ms) + the_node_timeout;
    }

    template <class Verb>
    Result timed(milliseconds longest, Verb verb) {
        const auto start = now();
        auto result = verb(lock());
        const auto slack = 2ms * static_cast<int>(rules_.nodes + 3);
        require(now() - start <= longest + slack, "back in time");
        require_no_secret(result.message());
        require(result.message().find_first_of("\r\n") == std::string::npos, "one line for a log");
        return result;
    }

    // ---- Verbs

    template <class Verb>
    void acquire(Verb verb, milliseconds longest) {
        // A former acquisition whose validity is over is released first.
        const bool held = lock().valid();
        const auto result = timed(longest + the_node_timeout, verb);
        if (held) return require(result.error() == Errc::already_held, "nothing is acquired twice");
        if (!result)
            return require(!lock().valid() && lock().owner().empty(), "nothing is held after a failure");
        check_granted();
    }

    void check_granted() {
        const auto owner = lock().owner();
        const auto granted = std::ranges::count_if(
            world_.servers(), [&](const FakeRedisServer& server) { return server.has_granted(owner); });
        require(is_majority(granted), "a majority has granted");
        require(lock().valid(), "valid when acquired");
        require(rules_.fencing == (lock().fencing_token() > 0), "a fencing token where one was asked for");
        if (!world_.misreported() && rules_.fencing)
            require(lock().fencing_token() > last_token_, "fencing tokens grow");
        last_token_ = lock().fencing_token();
    }

    bool is_majority(std::ptrdiff_t nodes) const {
        return 2 * nodes > static_cast<std::ptrdiff_t>(rules_.nodes);
    }

    void acquire_for(milliseconds span) {
        acquire([span](Lock& lock) { return lock.acquire_for(span); }, span + the_node_timeout);
    }

    void acquire_stopped() {
        std::stop_source stop;
        stop.request_stop();
        const bool held = lock().valid();
        const auto result =
            timed(the_node_timeout, [&](Lock& lock) { return lock.acquire(stop.get_token()); });
        require(result.error() == (held ? Errc::already_held : Errc::cancelled), "nothing more is asked");
    }

    Clock::time_point valid_until() { return now() + lock().remaining(); }

    template <class Verb>
    void extend(Verb verb, milliseconds by) {
        const bool held = lock().valid();
        const auto before = valid_until();
        const auto result = timed(the_node_timeout, verb);
        if (!held)
            return require(result.error() == Errc::not_held || result.error() == Errc::lost,
                           "nothing to extend");
        if (result) {
            require(now() < before, "confirmed while it was valid");
            require(lock().valid() && valid_until() >= before, "extended, and not shortened");
            require(valid_until() <= std::max(before, now() + by), "and by no more than the ttl");
        } else if (lock().valid()) {
            require(valid_until() == before, "what was left stands");
        }
    }

    void extend_by(milliseconds by) {
        if (by >= least_ttl) return extend([by](Lock& lock) { return lock.extend(by); }, by);
        try {
            (void)lock().extend(by);
            require(false, "a ttl that cannot work is refused");
        } catch (const std::invalid_argument&) {
            // as expected
        }
    }

    /// Extends three leases in one round, as a watchdog does. No reply may be taken for that to another lease
    /// (D1).
    void extend_three_in_one_round() {
        const std::vector<Words> resources{rules_.resources, {"side:1"}, {"side:2"}};
        const auto side = [this] { return "side " + std::to_string(++leases_); };
        const std::array owners{std::string{lock().owner()}, side(), side()};
        for (std::size_t i = 1; i < owners.size(); ++i)
            (void)nodes_.ask({.command = {Verb::set_if_absent, resources[i], owners[i], ttl}});
        std::vector<Request> requests;
        for (std::size_t i = 0; i < owners.size(); ++i)
            requests.push_back({.command = {Verb::compare_and_expire, resources[i], owners[i], ttl}});
        std::vector tallies(owners.size(), nodes_.blank_tally());
        nodes_.ask(requests, {}, tallies);
        for (std::size_t i = 0; i < owners.size(); ++i)
            for (std::size_t node = 0; node < nodes_.size(); ++node)
                if (tallies[i][node].vote != Vote::unknown && !world_.misreported())
                    require(world_.servers()[node].holds(resources[i], owners[i], now()) ==
                                (tallies[i][node].vote == Vote::granted),
                            "each vote is that on its own request");
        for (std::size_t i = 1; i < owners.size(); ++i)
            (void)nodes_.ask({.command = {Verb::compare_and_delete, resources[i], owners[i]}});
    }

    void release() {
        const auto verb = [](Lock& lock) { return lock.release(); };
        const auto first = timed(the_node_timeout, verb);
        require(!lock().valid(), "not valid any more");
        if (first) require(lock().owner().empty(), "nothing is left to release");
        const auto second = timed(the_node_timeout, verb);
        if (first) require(second.error() == Errc::not_held, "once is enough");
        require(!lock().valid(), "and never again");
    }

    void move_and_back() {
        const std::string owner{lock().owner()};
        const bool valid = lock().valid();
        Lock elsewhere{std::move(lock())};
        require(!lock().valid() && lock().owner().empty(), "nothing is held after the move");  // NOLINT
        require(!lock().acquire() && !lock().extend() && !lock().release(), "and it cannot do a thing");
        require(elsewhere.owner() == owner && elsewhere.valid() == valid, "as before");
        lock() = std::move(elsewhere);
        require(lock().owner() == owner && lock().valid() == valid, "as before");
    }

    void take_over() {
        lock() = std::move(other());
        make(locks_[1 - mine_]);
    }

    void use_std_vocabulary() {
        const bool held = lock().valid();
        if (lock().try_lock()) {
            require(!held, "nothing is acquired twice");
            check_granted();
        }
        lock().unlock();
        require(!lock().valid(), "not valid any more");
    }

    // ---- At any time

    void check_invariants() {
        sleep_for(0ms);  // lets the servers do what is due
        for (auto& it : locks_) check_valid(*it);
        if (!world_.misreported()) require(!(locks_[0]->valid() && locks_[1]->valid()), "no two hold it");
    }

    void check_valid(const Lock& lock) {
        const auto owner = std::string{lock.owner()};
        require(lock.valid() == (lock.remaining() > 0ns), "valid while something remains");
        if (!lock.valid()) {
            over_.insert(owner);
            return;
        }
        require(!over_.contains(owner), "what was over does not come back");
        const auto having = std::ranges::count_if(world_.servers(), [&](const FakeRedisServer& server) {
            return server.holds(rules_.resources, owner, now());
        });
        if (!world_.misreported()) require(is_majority(having), "a majority has the key");
    }

    /// A2, B1, B5: no key is left at the end, even if commands were executed late.
    void check_released() {
        for (auto& server : world_.servers())
            if (server.executes_all()) server.behave(Behavior::normal);
        sleep_for(1s);  // shorter than a ttl
        for (const auto& server : world_.servers())
            if (server.executes_all()) require(server.empty(now()), "nothing is left");
    }

    Rules rules_;
    World world_;
    VirtualNodes nodes_;
    std::array<std::optional<Lock>, 2> locks_{};
    std::size_t mine_ = 0;
    NodeSet chosen_ = NodeSet{}.set();
    std::set<std::string> over_{""};
    std::uint64_t last_token_ = 0;
    int leases_ = 0;
};

}  // namespace
}  // namespace redlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view input{reinterpret_cast<const char*>(data), size};
    const auto rules = redlock::fuzz::rules_of(input);
    redlock::fuzz::Scenario{rules}.run(input);
    return 0;
}
