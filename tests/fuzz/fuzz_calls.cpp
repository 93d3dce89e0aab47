// Any sequence of calls on two Locks of the same resources, over RedisNodes and nodes that behave as the
// input says. Sockets are real, time is simulated (simulated_time.hpp).
//
// The input begins with the number of nodes ('1' to '5'), the kind of round ('s'equential or 'a'll at once),
// and the kind of lock: '-', 'f'encing, 'm' several resources, or 'b'oth. Then, each a letter, what happens:
//
//     A acquire         T try_acquire     F acquire_for, and a digit: how long     P acquire with a stopped
//     token E extend          X extend with another ttl, and a digit: which              R release M move and
//     back   N move the other lock here        D destroy and make anew  U try_lock, unlock S go on with the
//     other lock                         W wait, and a digit: how long 0 to 4 go on with that node, * with
//     all; H it hangs up; a small letter: its Manner, see made_up_node.hpp
//     "..." what nodes say from now on when they talk nonsense
//
// Held to be true: what the header of Lock promises, on success, on failure and in time; and, as long as no
// node has told of a grant that was none, that a valid lock has a majority of the nodes, that no two are
// valid, and that fencing tokens grow.
#include "claim.hpp"
#include "listener.hpp"
#include "made_up_node.hpp"
#include "simulated_time.hpp"

#include <redlock/redlock.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
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

constexpr auto node_timeout = 50ms;
constexpr auto ttl = 2'000ms;
constexpr Retry retry{.attempts = 3, .delay = 30ms};
constexpr std::array spans{0ms, 1ms, 5ms, 20ms, 49ms, 51ms, 100ms, 200ms, 300ms, 500ms};
constexpr std::array naps{1ms, 10ms, 49ms, 51ms, 100ms, 300ms, 500ms, 1'000ms, 1'900ms, 2'100ms};
constexpr std::array ttls{-1ms, 0ms, 1ms, 52ms, 100ms, 500ms, 1'000ms, 2'000ms, 5'000ms, 10'000ms};
constexpr auto least_ttl = 100ms;  // of these: the others leave no validity

const Listener& listener(std::size_t number) {
    static const std::array<Listener, 5> listeners{Listener{"node0"}, Listener{"node1"}, Listener{"node2"},
                                                   Listener{"node3"}, Listener{"node4"}};
    return listeners[number];
}

std::size_t open_descriptors() {
    const std::filesystem::directory_iterator all{"/proc/self/fd"};
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

struct Rules {
    std::size_t nodes = 3;
    Round round = Round::sequential;
    bool fencing = false;
    Words resources{"orders:42"};
};

/// What follows the rules is the rest of `input`.
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

class World final : public Surroundings {
public:
    explicit World(const Rules& rules) {
        while (nodes_.size() < rules.nodes) nodes_.emplace_back(listener(nodes_.size()), node_timeout);
    }

    void do_now(Clock::time_point now) override {
        for (auto& node : nodes_) node.do_now(now);
    }
    Clock::time_point next() const override {
        auto next = Clock::never();
        for (const auto& node : nodes_) next = std::min(next, node.next());
        return next;
    }

    std::deque<MadeUpNode>& nodes() { return nodes_; }
    bool lied() const { return std::ranges::any_of(nodes_, &MadeUpNode::has_lied); }

    std::vector<Endpoint> endpoints() const {
        std::vector<Endpoint> endpoints;
        for (std::size_t node = 0; node < nodes_.size(); ++node)
            endpoints.push_back({.unix_socket = listener(node).path(), .password = std::string{secret}});
        return endpoints;
    }

private:
    std::deque<MadeUpNode> nodes_{};
};

class Game {
public:
    explicit Game(const Rules& rules)
        : rules_(rules),
          world_(rules),
          time_(world_),
          nodes_(world_.endpoints(), {.node_timeout = node_timeout, .round = rules.round}) {
        for (auto& lock : locks_) make(lock);
    }

    void play(std::string_view input) {
        for (; !input.empty(); claim_all_is_well()) act(input);
        for (auto& lock : locks_) lock.reset();
        claim_clean();
    }

private:
    static char take(std::string_view& input) {
        const char c = input.front();
        input.remove_prefix(1);
        return c;
    }

    /// One of ten, chosen by the digit that comes next.
    static milliseconds choose(std::string_view& input, const std::array<milliseconds, 10>& choice) {
        if (input.empty() || input.front() < '0' || input.front() > '9') return choice[5];
        return choice[static_cast<std::size_t>(take(input) - '0')];
    }

    void make(std::optional<Lock>& lock) {
        const LockOptions options{.ttl = ttl, .retry = retry, .fencing = rules_.fencing};
        lock.emplace(nodes_, rules_.resources, options, time_, time_);
    }

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
            case 'R': return release();
            case 'M': return move_and_back();
            case 'N': return take_over();
            case 'D': return make(locks_[mine_]);
            case 'U': return use_std_vocabulary();
            case 'S': mine_ = 1 - mine_; return;
            case 'W': return time_.sleep_until(time_.now() + choose(input, naps), {});
            default: return act_on_nodes(action, input);
        }
    }

    void act_on_nodes(char action, std::string_view& input) {
        if (action == '"') return learn_nonsense(input);
        if (action == '*') chosen_.set();
        if (action >= '0' && action <= '4') chosen_.reset().set(static_cast<std::size_t>(action - '0'));
        constexpr std::string_view manners = "pblostnecxrwygiuaz";
        for (std::size_t node = 0; node < world_.nodes().size(); ++node) {
            if (!chosen_[node]) continue;
            if (manners.find(action) != manners.npos) world_.nodes()[node].behave(Manner{action});
            if (action == 'H') world_.nodes()[node].hang_up();
        }
    }

    void learn_nonsense(std::string_view& input) {
        const auto end = std::min(input.find('"'), input.size());
        for (auto& node : world_.nodes()) node.speak_nonsense(input.substr(0, end));
        input.remove_prefix(std::min(end + 1, input.size()));
    }

    // ---- How long the verbs may take. Each wait may be a millisecond longer than meant.

    milliseconds attempt() const {
        const auto round =
            rules_.round == Round::sequential ? milliseconds{rules_.nodes * node_timeout} : node_timeout;
        return round + (rules_.fencing ? node_timeout : 0ms) + node_timeout;
    }

    template <class Verb>
    Result timed(milliseconds longest, Verb verb) {
        const auto start = time_.now();
        auto result = verb(lock());
        const auto slack = 2ms * static_cast<int>(rules_.nodes + 3);
        if (time_.now() - start > longest + slack)
            claim(false, "back in time: " + std::to_string((time_.now() - start) / 1ms) + " ms in place of " +
                             std::to_string(longest.count()) + "; " + result.message());
        claim_no_secret(result.message());
        claim(result.message().find_first_of("\r\n") == std::string::npos, "one line for a log");
        return result;
    }

    // ---- Verbs

    template <class Verb>
    void acquire(Verb verb, milliseconds longest) {
        // What was held before and is over is released first.
        const bool held = lock().valid();
        const auto result = timed(longest + node_timeout, verb);
        if (held) return claim(result.error() == Errc::already_held, "nothing is acquired twice");
        if (!result)
            return claim(!lock().valid() && lock().owner().empty(), "nothing is held after a failure");
        claim_granted();
    }

    void claim_granted() {
        const auto owner = lock().owner();
        const auto granted = std::ranges::count_if(
            world_.nodes(), [&](const MadeUpNode& node) { return node.has_granted(owner); });
        claim(is_majority(granted), "a majority has granted");
        claim(lock().valid(), "valid when acquired");
        claim(rules_.fencing == (lock().fencing_token() > 0), "a fencing token where one was asked for");
        if (!world_.lied() && rules_.fencing)
            claim(lock().fencing_token() > last_token_, "fencing tokens grow");
        last_token_ = lock().fencing_token();
    }

    bool is_majority(std::ptrdiff_t nodes) const {
        return 2 * nodes > static_cast<std::ptrdiff_t>(rules_.nodes);
    }

    void acquire_for(milliseconds span) {
        acquire([span](Lock& lock) { return lock.acquire_for(span); }, span + node_timeout);
    }

    void acquire_stopped() {
        std::stop_source stop;
        stop.request_stop();
        const bool held = lock().valid();
        const auto result = timed(node_timeout, [&](Lock& lock) { return lock.acquire(stop.get_token()); });
        claim(result.error() == (held ? Errc::already_held : Errc::cancelled), "nothing is asked any more");
    }

    Clock::time_point valid_until() { return time_.now() + lock().remaining(); }

    template <class Verb>
    void extend(Verb verb, milliseconds by) {
        const bool held = lock().valid();
        const auto before = valid_until();
        const auto result = timed(node_timeout, verb);
        if (!held)
            return claim(result.error() == Errc::not_held || result.error() == Errc::lost,
                         "nothing to extend");
        if (result) {
            claim(time_.now() < before, "confirmed while it was valid");
            claim(lock().valid() && valid_until() >= before, "extended, and not shortened");
            claim(valid_until() <= std::max(before, time_.now() + by), "and by no more than the ttl");
        } else if (lock().valid()) {
            claim(valid_until() == before, "what was left stands");
        }
    }

    void extend_by(milliseconds by) {
        if (by >= least_ttl) return extend([by](Lock& lock) { return lock.extend(by); }, by);
        try {
            (void)lock().extend(by);
            claim(false, "a ttl that cannot work is refused");
        } catch (const std::invalid_argument&) {
            // as it should be
        }
    }

    void release() {
        const auto verb = [](Lock& lock) { return lock.release(); };
        const auto first = timed(node_timeout, verb);
        claim(!lock().valid(), "not valid any more");
        if (first) claim(lock().owner().empty(), "nothing is left to release");
        const auto second = timed(node_timeout, verb);
        if (first) claim(second.error() == Errc::not_held, "once is enough");
        claim(!lock().valid(), "and never again");
    }

    void move_and_back() {
        const std::string owner{lock().owner()};
        const bool valid = lock().valid();
        Lock elsewhere{std::move(lock())};
        claim(!lock().valid() && lock().owner().empty(), "nothing is held by what was moved from");  // NOLINT
        claim(!lock().acquire() && !lock().extend() && !lock().release(), "and it cannot do a thing");
        claim(elsewhere.owner() == owner && elsewhere.valid() == valid, "as before");
        lock() = std::move(elsewhere);
        claim(lock().owner() == owner && lock().valid() == valid, "as before");
    }

    void take_over() {
        lock() = std::move(other());
        make(locks_[1 - mine_]);
    }

    void use_std_vocabulary() {
        const bool held = lock().valid();
        if (lock().try_lock()) {
            claim(!held, "nothing is acquired twice");
            claim_granted();
        }
        lock().unlock();
        claim(!lock().valid(), "not valid any more");
    }

    // ---- At any time

    void claim_all_is_well() {
        world_.do_now(time_.now());
        for (auto& it : locks_) claim_sound(*it);
        if (!world_.lied()) claim(!(locks_[0]->valid() && locks_[1]->valid()), "no two hold it");
    }

    void claim_sound(const Lock& lock) {
        const auto owner = std::string{lock.owner()};
        claim(lock.valid() == (lock.remaining() > 0ns), "valid while something remains");
        if (!lock.valid()) {
            over_.insert(owner);
            return;
        }
        claim(!over_.contains(owner), "what was over does not come back");
        const auto having = std::ranges::count_if(world_.nodes(), [&](const MadeUpNode& node) {
            return node.store().holds(rules_.resources, owner, time_.now());
        });
        if (!world_.lied()) claim(is_majority(having), "a majority has the key");
    }

    /// A2, B1, B5: in the end nothing is left, however late commands were carried out.
    void claim_clean() {
        for (auto& node : world_.nodes())
            if (node.carries_out_all()) node.behave(Manner::proper);
        time_.sleep_until(time_.now() + 1s, {});  // shorter than a ttl
        for (const auto& node : world_.nodes())
            if (node.carries_out_all()) claim(node.store().empty(time_.now()), "nothing is left");
    }

    Rules rules_;
    World world_;
    SimulatedTime time_;
    RedisNodes nodes_;
    std::array<std::optional<Lock>, 2> locks_{};
    std::size_t mine_ = 0;
    NodeSet chosen_ = NodeSet{}.set();
    std::set<std::string> over_{""};
    std::uint64_t last_token_ = 0;
};

void play(std::string_view input) {
    (void)listener(0);  // the listeners stay
    const auto descriptors = open_descriptors();
    const auto rules = rules_of(input);
    Game{rules}.play(input);
    claim(open_descriptors() == descriptors, "no descriptor is left open");
}

}  // namespace
}  // namespace redlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    redlock::fuzz::play({reinterpret_cast<const char*>(data), size});
    return 0;
}
